"""What happened: from two snapshots, from programs that report it, in memory and in a file."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fairlock
import fairlock.web
from fairlock import Holder, Resource, Snapshot, Waiter
from fairlock.web.event_journal_file import KEPT, KEPT_IN_MEMORY, REPORTED, SEEN, Journal
from fairlock.web.event_journal_writer import WriterLock
from fairlock.web.events_from_snapshots import Happened, find_changes, find_gone

WALL = 1_000_000.0


def holder(ticket: str, held_for: float, expires_in: float = 20, owner: str = "web-1") -> Holder:
    return Holder(owner, "ship", ticket, 7, 1, held_for, expires_in)


def waiter(ticket: str, waited: float) -> Waiter:
    return Waiter("web-2", "ship", ticket, 1, waited, 2)


def snapshot(
    now: float, holders: tuple[Holder, ...] = (), queue: tuple[Waiter, ...] = (), expired: tuple[Holder, ...] = ()
) -> Snapshot:
    return Snapshot("memory://", now, (Resource("x", "lock", 1, 7, holders, queue, expired),))


def kinds(before: Snapshot | None, after: Snapshot) -> list[tuple[str, str, float, float | None]]:
    return [(one.kind, one.ticket, round(one.at - WALL, 3), one.seconds) for one in find_changes(before, after, WALL)]


def test_the_first_look_reports_what_began_earlier_and_still_lasts() -> None:
    first = snapshot(100, (holder("a", 5),), (waiter("b", 3),))
    assert kinds(None, first) == [("acquired", "a", -5, None), ("waiting", "b", -3, None)]


def test_a_hand_over_is_a_release_and_an_acquire_with_the_time_waited() -> None:
    before = snapshot(100, (holder("a", 5),), (waiter("b", 3),))
    after = snapshot(101, (holder("b", 0.25, owner="web-2"),))
    assert kinds(before, after) == [("released", "a", -0.25, 5.75), ("acquired", "b", -0.25, 3.75)]


def test_a_lease_that_ended_is_lost_at_its_end() -> None:
    before = snapshot(100, (holder("a", 5, 0.5),))
    still_there = snapshot(101, expired=(holder("a", 6, -0.5),))
    taken_by_another = snapshot(101, (holder("b", 0.5, owner="web-2"),))
    assert kinds(before, still_there) == [("lost", "a", -0.5, 5.5)]
    assert [one for one in kinds(before, taken_by_another) if one[0] == "lost"] == [("lost", "a", -0.5, 5.5)]
    assert kinds(still_there, snapshot(102)) == []


def test_a_lease_that_ended_before_its_time_is_lost_with_its_process() -> None:
    before = snapshot(100, (holder("a", 5, 20),))
    after = snapshot(101, expired=(holder("a", 6, 0.0),))
    assert kinds(before, after) == [("lost", "a", 0, 6)]
    assert [one.detail for one in find_changes(before, after, WALL)] == ["its process ended without a release"]


def test_a_lease_that_began_and_ended_between_two_looks_is_seen_if_nobody_took_the_lock_since() -> None:
    after = snapshot(101, expired=(holder("a", 0.75, -0.25),))
    assert kinds(snapshot(100), after) == [("acquired", "a", -0.75, None), ("lost", "a", -0.25, 0.5)]
    assert kinds(None, after) == [], "the first look cannot tell when it ended"
    assert kinds(after, snapshot(102, expired=(holder("a", 1.75, -1.25),))) == []


def test_a_holder_that_an_operator_evicted_has_not_released() -> None:
    before = snapshot(100, (holder("a", 5), holder("c", 9)))
    after = snapshot(101, (holder("b", 0.25, owner="web-2"),))
    (name,) = {one.name for one in before.resources}
    assert find_gone(before, after, 9) == [(name, "c"), (name, "a")], "the longest hold first"
    assert find_gone(before, after, 1) == [(name, "c")]
    assert find_gone(before, snapshot(101, (holder("a", 6),), expired=(holder("c", 10, -1),)), 9) == []
    found = {one.ticket: one for one in find_changes(before, after, WALL, {(name, "a"): "by ops: stuck"})}
    assert [(found[ticket].kind, found[ticket].detail) for ticket in "ac"] == [
        ("evicted", "by ops: stuck"), ("released", ""),
    ]  # fmt: skip


def test_a_lease_that_was_late_and_renewed_is_no_event() -> None:
    assert kinds(snapshot(100, expired=(holder("a", 6, -0.5),)), snapshot(101, (holder("a", 7),))) == []


def test_a_waiter_that_goes_away_has_given_up() -> None:
    assert kinds(snapshot(100, queue=(waiter("b", 3),)), snapshot(101)) == [("given_up", "b", 0, 4)]


def test_a_name_that_vanished_was_released_and_one_that_is_kept_closed_has_no_holder() -> None:
    before = snapshot(100, (holder("a", 5),))
    assert kinds(before, Snapshot("memory://", 101, ())) == [("released", "a", 0, 6)]
    assert kinds(before, snapshot(101, (holder("a", 6, owner=""),))) == [("released", "a", 0, 6)]
    assert kinds(None, snapshot(101, (holder("a", 6, owner=""),))) == []


def test_what_is_seen_and_reported_is_one_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    seen = Happened(WALL, "released", "x", "web-1", "ship", "a", 7, 6.0)
    reported = Happened(WALL - 0.4, "evicted", "x", "web-1", "", "a", 7, 5.6, "evicted: stuck")
    for first, second in ((seen, reported), (reported, seen)):
        for one in (first, second):
            journal.add([one._replace(name=first.kind)], REPORTED if one is reported else SEEN)
        (line,) = journal.of_name(first.kind, 10)
        assert (line["kind"], line["seconds"], line["detail"]) == ("evicted", 5.6, "evicted: stuck")
    journal.add([seen._replace(name="released", at=WALL + 7200)])
    assert len(journal.of_name("released", 10)) == 2, "two hours later it is another client with the same short ticket"
    journal.close()


def test_a_journal_keeps_seven_days_and_memory_a_number(tmp_path: Path) -> None:
    for journal, kept in ((Journal(tmp_path / "journal.db"), 1), (Journal(), 2)):
        journal.add([Happened(WALL - KEPT - 1, "lost", "x"), Happened(WALL, "lost", "x")])
        journal.prune(WALL)
        assert len(journal.of_name("x", 10)) == kept
        journal.close()
    memory = Journal()
    memory.add(Happened(WALL + number, "waiting", "x") for number in range(KEPT_IN_MEMORY + 50))
    memory.prune(WALL)
    assert len(memory.after(0, 10**6)) == KEPT_IN_MEMORY
    memory.close()


def test_a_file_that_is_no_journal_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database, and longer than the head of one would be" * 20)
    for bad in (tmp_path / "text", tmp_path / "no-such-folder" / "journal.db"):
        with pytest.raises(fairlock.ConfigError, match=r"cannot be opened: .* Name a file that you may write"):
            fairlock.web.journal(bad)


def test_a_program_reports_a_hold_that_no_look_could_see(tmp_path: Path) -> None:
    write = fairlock.web.journal(tmp_path / "journal.db")
    with fairlock.connect("memory://", owner="web-9", on_event=write) as locks:
        with locks.lock("short"):
            pass
    write.flush()
    journal = Journal(tmp_path / "journal.db")
    lines = journal.of_name("short", 10)
    assert [(line["kind"], line["owner"]) for line in lines] == [("released", "web-9"), ("acquired", "web-9")]
    assert 0 <= lines[0]["seconds"] < 1
    assert [line["kind"] for line in journal.spans(time.time() - 60, time.time() + 1, 10)] == ["released"]
    journal.close()


def test_a_child_of_a_program_reports_too(tmp_path: Path) -> None:
    program = """
import os, sys, fairlock, fairlock.web
write = fairlock.web.journal(sys.argv[1])
locks = fairlock.connect(f"sqlite:///{sys.argv[1]}.locks", on_event=write)
with locks.lock("before"): pass
if os.fork() == 0:
    with locks.lock("in-the-child"): pass
    write.flush()
    os._exit(0)
os.wait()
"""
    file = tmp_path / "journal.db"
    subprocess.run([sys.executable, "-W", "ignore", "-c", program, str(file)], check=True, timeout=60)
    journal = Journal(file)
    assert {line["name"] for line in journal.after(0, 100)} == {"before", "in-the-child"}
    journal.close()


def test_a_journal_that_cannot_be_written_stops_no_program(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write = fairlock.web.journal(tmp_path / "journal.db")
    for path in tmp_path.iterdir():
        path.unlink()
    os.mkdir(tmp_path / "journal.db")
    with fairlock.connect("memory://", on_event=write) as locks:
        for _ in range(3):
            with locks.lock("x"):
                pass
        write.flush()
    assert [record.message for record in caplog.records if "missing in the journal" in record.message] != []


def test_one_process_is_the_writer_and_another_takes_over(tmp_path: Path) -> None:
    file = str(tmp_path / "journal.db")
    first, second = WriterLock(file), WriterLock(file)
    assert [first.held(), first.held(), second.held()] == [True, True, False]
    first.close()
    assert second.held()
    second.close()
