"""A plug-in of pytest, found by its entry point: `once_per_run` sets something up once for all workers of pytest-xdist.

    @pytest.fixture(scope="session")
    def database(once_per_run):
        return once_per_run("database", make_database, drop_database)

Each worker is a process with session fixtures of its own. The first one that asks calls `make`; the others wait and
get the same value, as JSON. The last one that ends calls `undo`. Two locks per name do that: `make` excludes the others
while it is made or undone, and each worker holds `use` as a reader until its session ends, so the one that can be its
writer is the last. A worker that is killed is noticed by the store at once. Without xdist there is one worker.

Rejected alternative: a count of the users in a file. A worker that is killed would stay in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")


class OncePerRun:
    """Call it with a name, `make` and perhaps `undo`."""

    def __init__(self, folder: Path, ending: ExitStack) -> None:
        import fairlock

        self._folder, self._ending = folder, ending
        self._locks = ending.enter_context(fairlock.connect(folder / "fairlock-once.db"))

    def __call__(self, name: str, make: Callable[[], T], undo: Callable[[T], object] | None = None) -> T:
        """Return what `make` returned in the worker that called it. It must be JSON: a str, a number, a list, a dict.

        If `make` raises, its worker gets the exception, and the next worker calls it again. `undo` gets the value, in
        the last worker that used it.
        """
        from hashlib import sha256

        from fairlock import safe_name

        value = self._folder / f"fairlock-once-{sha256(name.encode()).hexdigest()[:16]}.json"
        with self._locks.lock(safe_name(f"make:{name}")):
            if not value.exists():
                text = json.dumps(make())
                value.write_text(text)
            use = self._locks.rwlock(safe_name(f"use:{name}"))
            lease = use.read().acquire()
            found: T = json.loads(value.read_text())

        def leave() -> None:
            with self._locks.lock(safe_name(f"make:{name}")):
                lease.release()
                last = use.write().acquire(blocking=False)
                if last is not None and value.exists():
                    with last:
                        value.unlink()
                        if undo is not None:
                            undo(found)

        self._ending.callback(leave)
        return found


@pytest.fixture(scope="session")
def once_per_run(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Call it with a name and a function: that is called once over all workers of pytest-xdist."""
    folder = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):  # with xdist, the folder above is shared by the workers of this run
        folder = folder.parent
    with ExitStack() as ending:
        yield OncePerRun(folder, ending)
