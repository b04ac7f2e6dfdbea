"""A store that is broken on purpose: a few words of its source replaced by others, in this process and for one test.

The words must occur exactly once, so a mutant whose words have drifted away fails loudly.
"""

import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "holdfast"


class Mutant(NamedTuple):
    what: str
    caught_by: Callable[..., None]
    """The test that fails with it; its first argument is the server."""
    changes: tuple[tuple[str, str, str], ...]
    more: tuple[Any, ...] = ()
    """Its other arguments."""


def put_to_the_test(mutant: Mutant, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails with the mutant; that it does not without it is shown where it stands."""
    rebuild(monkeypatch, *mutant.changes)
    inspect.signature(mutant.caught_by).bind(server, *mutant.more)  # or a missing argument would be taken for a failure
    with pytest.raises((Exception, pytest.fail.Exception)):
        mutant.caught_by(server, *mutant.more)


def rewritten(changes: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """The texts of the files in which, each time, one snippet is replaced by another."""
    texts: dict[str, str] = {}
    for file, old, new in changes:
        text = texts.get(file) or (SOURCE / file).read_text()
        if text.count(old) != 1:
            raise LookupError(f"{file} contains {text.count(old)} times, not once:\n{old}")
        texts[file] = text.replace(old, new)
    return texts


def rebuild(monkeypatch: pytest.MonkeyPatch, *changes: tuple[str, str, str]) -> None:
    """In each file other words. What is defined there is replaced in every module that has it."""
    texts = {
        "holdfast." + file.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): (file, text)
        for file, text in rewritten(changes).items()
    }
    for name in texts:
        importlib.import_module(name)  # or one that nobody has used so far would stay as it is
    modules = [module for name, module in sys.modules.items() if name.startswith("holdfast.")]
    for name, (file, text) in texts.items():
        ours = sys.modules[name]
        theirs = types.ModuleType(name)
        theirs.__package__ = ours.__package__
        exec(compile(text, f"a mutant of {file}", "exec"), theirs.__dict__)
        modules.append(theirs)
        for word, value in list(vars(ours).items()):
            for module in modules:
                if not word.startswith("__") and vars(module).get(word) is value:
                    monkeypatch.setattr(module, word, vars(theirs)[word])
