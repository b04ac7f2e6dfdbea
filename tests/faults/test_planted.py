"""Bugs that are planted on purpose, one at a time, into the fairlock that the workers use: the nemesis reports each.

It plays until the first thing is wrong, so most of them take a few seconds. Each names the faults that bring it to
light, so that no seed has to wait for them, and the words that its report must contain.
"""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults.nemesis import Nemesis
from tests.faults.stores import Sqlite
from tests.mutate_source import SOURCE, rewritten

RULES, GRANT, LOCK, LOCAL_QUEUE, RENEWAL, ITEMS = (
    f"{name}.py"
    for name in (
        "rules/locks/step", "engine/grant", "engine/lock_base", "engine/local_queue", "engine/renewal_messages",
        "rules/pools/step",
    )
)

NO_SHORT_CUT = ((RULES, "if not (unreachable or dead):", "if False:"),)


class Planted(NamedTuple):
    bug: str
    file: str
    old: str
    new: str
    reported: str
    faults: tuple[str, ...] = ("cancel",)
    jobs: tuple[str, ...] = ("lock", "read", "write", "sem", "both", "pool")
    long: float = 0.06
    processes: tuple[tuple[int, int], ...] = Sqlite.processes
    visits: tuple[float, ...] = Sqlite.visits
    too: tuple[tuple[str, str, str], ...] = ()


PLANTED = [
    Planted(
        "others are let in beside the holder", RULES,
        "return self.capacity - sum([e.weight for e in self.holders])", "return self.capacity", "too many believe",
        too=NO_SHORT_CUT,
    ),
    Planted(
        "a semaphore has a slot more", RULES, "or not c.fair) and c.weight <= self.room()",
        "or not c.fair) and c.weight <= self.room() + (self.capacity < 9)", "too many believe", jobs=("sem",),
        too=NO_SHORT_CUT,
    ),
    Planted(
        "a writer comes in as a reader", LOCK,
        "self._write = write", "write._request = write._request.but(weight=1)\n        self._write = write",
        "too many believe", jobs=("read", "write"),
    ),
    Planted(
        "a stopped holder believes for longer than its lease", GRANT,
        "deadline = at + seconds - margin", "deadline = at + seconds * 3",
        "believe", ("pause",), jobs=("lock",), long=0.5, processes=((1, 0), (0, 1), (1, 0)),
        too=((RENEWAL, "    if grant.state is not HELD:\n        return\n    reply", "    return\n    reply"),),
    ),
    Planted(
        "a fence does not rise", RULES, "fence = max(self.fence + 1, self.now)", "fence = self.now // 3_000_000",
        "a fence",
    ),
    Planted(
        "a lock is handed on with the same fence", LOCAL_QUEUE, "grant.give(heir, grant.holds[0].fence + 1, clock)",
        "grant.give(heir, grant.fence, clock)", "a fence was given twice", jobs=("handoff",),
    ),
    Planted(
        "the last that comes is served first", RULES,
        "self.queue.append(e._replace(place=self.places))", "self.queue.insert(0, e._replace(place=self.places))",
        "passed by one that came later", jobs=("lock",), long=0.2,
        too=NO_SHORT_CUT,
    ),
    Planted(
        "leases are not renewed", RENEWAL, "    if not grants:\n", "    if grants:\n",
        "lost, although nothing had happened", jobs=("lock", "sem"), long=0.6,
    ),
    Planted(
        "a forked child goes on to believe", "engine/close_client.py", "        session.forked()", "        pass",
        "a forked child", ("fork",),
    ),
    Planted(
        "an item that is done is free again", ITEMS, 'return item._replace(score=DONE, ticket=""), Finished()',
        'return item._replace(score=1, ticket=""), Finished()', "item ", jobs=("pool",),
    ),
    Planted(
        "an item is renewed for others only", ITEMS, "return item._replace(score=now + item.lease), Touched",
        "return item._replace(score=1), Touched", "too many believe", jobs=("pool",), long=0.5,
    ),
    Planted(
        "closing releases nothing", "engine/close_client.py", "        await _give_up(session)\n", "        pass\n",
        "was closed, and is left", ("close",), long=0.5,
    ),
    Planted(
        "a closed client raises what nobody expects", "engine/acquire.py",
        "            raise session.over()\n", "            raise KeyError('closed')\n",
        "undocumented: KeyError", ("close",), jobs=("handoff",), long=0.3,
    ),
    Planted(
        "a holder that was evicted at once goes on to believe", RENEWAL,
        "    why = reply.why if isinstance(reply, NotHolder) else None\n",
        "    return grant.confirm(answer.at, grant.request.lease_us, 0.0)\n", "too many believe", ("evict at once",),
        jobs=("lock",), long=1.0, processes=((2, 0), (0, 2)),
    ),
    Planted(
        "a disk that takes no more is told by SQLite's own exception", "stores/sqlite/errors.py",
        "    number = code(error)\n    kind = number & 0xFF\n", "    raise error\n", "OperationalError",
        ("file limit",),
    ),
    Planted(
        "nobody ends the command of a `run` that is stopped", "cli/watchdog.py",
        "if due and self.process_tree is not None:", "if False:", "believe", ("pause",), jobs=("lock",),
        processes=((2, 0),), visits=(5.0,),
    ),
    Planted(
        "a timeout is not kept", "engine/acquire.py", "over = trying or (until is not None and clock >= until)\n",
        "over = trying\n", "with a timeout of", jobs=("lock",), long=1.0,
    ),
]  # fmt: skip


SLOW = {"a timeout is not kept"}  # nothing is called late before it is very late
EACH = [
    pytest.param(each, id=each.bug, marks=[pytest.mark.soak] if each.bug in SLOW else []) for each in PLANTED
]  # fmt: skip


def test_every_bug_can_still_be_planted() -> None:
    """Also those of the long runs: the words that they replace are in the source."""
    for planted in PLANTED:
        assert rewritten([(planted.file, planted.old, planted.new), *planted.too])


@pytest.mark.parametrize("planted", EACH)
def test_it_is_reported(planted: Planted, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(SOURCE, source / "fairlock")  # with what is compiled, or each process would compile all of it
    for file, text in rewritten([(planted.file, planted.old, planted.new), *planted.too]).items():
        path = source / "fairlock" / file
        path.write_text(text)
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()
    target = Sqlite(tmp_path)
    try:
        target.jobs, target.long = planted.jobs, planted.long
        target.process_faults = tuple(set(planted.faults) - set(target.faults)) or ("cancel",)
        target.processes, target.visits = planted.processes, planted.visits
        target.faults = {kind: pair for kind, pair in target.faults.items() if kind in planted.faults}
        nemesis = Nemesis(target, target.plan(1, 50.0), tmp_path, source)  # it ends as soon as it is met
        wrong = nemesis.play(until_wrong=True)
        if not any(planted.reported in each for each in wrong):
            print(nemesis.story())
            pytest.fail("\n".join(["It was not reported.", *wrong[:20]]), pytrace=False)
    finally:
        target.close()
