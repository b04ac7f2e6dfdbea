"""The code under test: the flows, the engine and the rules as they are, or with one snippet replaced.

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

from tests.broken import SOURCE, rewritten

_numbers = count(1)
ENDLESS = types.SimpleNamespace(begin=lambda *_: 0.0, end=lambda *_: None, over=lambda: False)


class House:
    """The modules that the simulation works with, by short names."""

    def __init__(self, package: str = "holdfast") -> None:
        def module(name: str) -> Any:
            return importlib.import_module(f"{package}.{name}")

        self.doorman = module("doorman")
        self.rules = module("doorman.rules")
        self.contract = module("backends.contract")
        self.cas = module("backends.cas")
        self.turns = module("backends.turns")
        self.polling = module("backends.polling")
        self.errors = module("errors")
        self.desk = module("flow.desk")
        self.seat = module("flow.seat")
        self.wish = module("flow.wish")
        self.party = module("flow.party")
        self.acquire = module("flow.acquire")
        self.release = module("flow.release")
        self.short = module("flow.short")
        self.keep = module("flow.keep")
        self.change = module("flow.change")
        self.enter = module("flow.enter")
        self.look = module("flow.look")
        self.close = module("flow.close")

    @contextmanager
    def loaded_dice(self, dice: Random) -> Iterator[None]:
        """Have the flows and the engine take their chances from here, so that the same seed plays the same."""
        replaced: list[tuple[Any, str, Any]] = [
            (self.desk, "chance", dice.random),
            (self.acquire, "chance", dice.random),
            (self.cas, "os", types.SimpleNamespace(urandom=dice.randbytes)),
            # Patience belongs to a real thread or task and its real clock; here all are played by one thread.
            (self.desk, "over", lambda: False),
            (self.release, "patience", ENDLESS),
            (self.enter, "patience", ENDLESS),
        ]
        before = [getattr(module, name) for module, name, _ in replaced]
        for module, name, ours in replaced:
            setattr(module, name, ours)
        try:
            yield
        finally:
            for (module, name, _), theirs in zip(replaced, before, strict=True):
                setattr(module, name, theirs)


REAL = House()


def rebuilt(*changes: tuple[str, str, str]) -> House:
    """A house in which, in each named file, one snippet is replaced by another."""
    package = f"holdfast_mutant_{next(_numbers)}"
    texts = rewritten(changes)
    root = types.ModuleType(package)
    root.__path__ = [str(SOURCE)]
    sys.modules[package] = root
    finder = _Finder(package, texts)
    sys.meta_path.insert(0, finder)
    try:
        return House(package)
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
