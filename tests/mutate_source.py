"""Break a store on purpose: replace a snippet of its source by another, in this process and for one test.

The snippet must occur exactly once, so a mutant whose snippet no longer exists fails loudly. Each mutant names the
exceptions that catch it, so a typo in a mutant is not taken for a catch.
"""

import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "fairlock"


ASSERTIONS = (AssertionError, pytest.fail.Exception)
"""An assertion of the test fails, or `pytest.raises` in it sees no exception."""


class Mutant(NamedTuple):
    what: str
    caught_by: Callable[..., None]
    """The test that fails with it; its first argument is the server."""
    changes: tuple[tuple[str, str, str], ...]
    more: tuple[Any, ...] = ()
    """Its other arguments."""
    raises: tuple[type[BaseException], ...] = ASSERTIONS
    """The exceptions with which the test fails: these classes, not their subclasses."""


def put_to_the_test(mutant: Mutant, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the test fails with the mutant. The test itself, run elsewhere, shows that it passes without it."""
    rebuild(monkeypatch, *mutant.changes)
    inspect.signature(mutant.caught_by).bind(server, *mutant.more)  # or a missing argument would be taken for a failure
    with pytest.raises(mutant.raises) as caught:
        mutant.caught_by(server, *mutant.more)
    assert type(caught.value) in mutant.raises, f"{caught.value!r} is no failure that this mutant names"


def rewritten(changes: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return the text of each named file with one snippet replaced by another."""
    texts: dict[str, str] = {}
    for file, old, new in changes:
        text = texts.get(file) or (SOURCE / file).read_text()
        if text.count(old) != 1:
            raise LookupError(f"{file} contains {text.count(old)} times, not once:\n{old}")
        texts[file] = text.replace(old, new)
    return texts


def rebuild(monkeypatch: pytest.MonkeyPatch, *changes: tuple[str, str, str]) -> None:
    """Replace the snippets. Every module that imported a changed name gets the new one."""
    texts = {
        "fairlock." + file.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): (file, text)
        for file, text in rewritten(changes).items()
    }
    for name in texts:
        importlib.import_module(name)  # a module that is not imported yet would stay as it is
    modules = [module for name, module in sys.modules.items() if name.startswith("fairlock.")]
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
