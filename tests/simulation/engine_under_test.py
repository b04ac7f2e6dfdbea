"""The code under test: the engine, the rules and the stores' common code as they are, or with one snippet replaced.

A mutant is a second copy of the package under a name of its own, made from the same files with one exact snippet
exchanged. The snippet must occur exactly once, so a mutant cannot silently become the original when the code changes.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from tests.mutate_source import SOURCE, rewritten

_numbers = count(1)
ENDLESS = types.SimpleNamespace(begin=lambda *_: 0.0, end=lambda *_: None, over=lambda: False)


class EngineUnderTest:
    """The modules that the simulation works with."""

    def __init__(self, package: str = "fairlock") -> None:
        def module(name: str) -> Any:
            return importlib.import_module(f"{package}.{name}")

        self.locks = module("rules.locks")
        self.step = module("rules.locks.step")
        self.base = module("stores.base")
        self.cas = module("stores.cas")
        self.merge_concurrent_steps = module("stores.merge_concurrent_steps")
        self.polling = module("stores.polling")
        self.errors = module("errors")
        self.session = module("engine.session")
        self.grant = module("engine.grant")
        self.grant_state = module("engine.grant_state")
        self.request = module("engine.request")
        self.local_queue = module("engine.local_queue")
        self.acquire = module("engine.acquire")
        self.release = module("engine.release")
        self.renewal = module("engine.renewal")
        self.recheck_leases = module("engine.recheck_leases")
        self.lease_ops = module("engine.lease_ops")
        self.with_block = module("engine.with_block")
        self.snapshots = module("engine.snapshots")
        self.close_client = module("engine.close_client")

    @contextmanager
    def seeded_jitter(self, rng: Random) -> Iterator[None]:
        """Make the engine take its random numbers from here, so that the same seed gives the same history."""
        replaced: list[tuple[Any, str, Any]] = [
            (self.session, "jitter", rng.random),
            (self.acquire, "jitter", rng.random),
            (self.cas, "jitter", rng.random),
            (self.renewal, "jitter", rng.random),
            # A deadline belongs to a real thread or task and its real clock; here one thread runs all of them.
            (self.session, "over", lambda: False),
            (self.release, "deadline", ENDLESS),
            (self.with_block, "deadline", ENDLESS),
        ]
        before = [getattr(module, name) for module, name, _ in replaced]
        for module, name, ours in replaced:
            setattr(module, name, ours)
        try:
            yield
        finally:
            for (module, name, _), theirs in zip(replaced, before, strict=True):
                setattr(module, name, theirs)


REAL = EngineUnderTest()


def rebuilt(*changes: tuple[str, str, str]) -> EngineUnderTest:
    """Load a copy of the engine in which one snippet of each named file is replaced by another."""
    package = f"fairlock_mutant_{next(_numbers)}"
    texts = rewritten(changes)
    root = types.ModuleType(package)
    root.__path__ = [str(SOURCE)]
    sys.modules[package] = root
    finder = _Finder(package, texts)
    sys.meta_path.insert(0, finder)
    try:
        return EngineUnderTest(package)
    finally:
        sys.meta_path.remove(finder)  # every module is loaded now, also those that functions import late


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, package: str, texts: dict[str, str]) -> None:
        self.package = package
        self.texts = texts

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(self.package + "."):
            return None
        inner = fullname[len(self.package) + 1 :].replace(".", "/")
        file = f"{inner}/__init__.py" if (SOURCE / inner).is_dir() else f"{inner}.py"
        loader = _Loader(SOURCE / file, self.texts.get(file))
        return importlib.machinery.ModuleSpec(fullname, loader, is_package=file.endswith("__init__.py"))


class _Loader(importlib.abc.Loader):
    def __init__(self, path: Path, text: str | None) -> None:
        self.path = path
        self.text = text

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        if self.path.name == "__init__.py":
            module.__path__ = [str(self.path.parent)]
        text = self.path.read_text() if self.text is None else self.text
        exec(compile(text, str(self.path), "exec"), module.__dict__)
