"""Hints between clients: who hears what, who reads the socket for whom, and what happens when nobody can hear."""

import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.backends.contract import Pushed
from holdfast.backends.sqlite import SqliteStore
from holdfast.backends.sqlite.waiting import Waiter as WaiterOfTheRoom
from holdfast.doorman import Admitted, Waiting, Wake
from tests.sqlite.plumbing import ThreadColour, ThreadEvent, enter, get, leave, put, run, step, store_at, until

Client = Callable[..., SqliteStore]
FOR_EVER = 30.0


class Waiter:
    """Somebody who waits in a thread."""

    def __init__(self, store: SqliteStore, ticket: str, ears: Sequence[str] = (), timeout: float = FOR_EVER) -> None:
        self.result: Any = "still waiting"
        self.took = 0.0
        self._args = (store, ticket, ears, timeout)
        self.thread = threading.Thread(target=self._wait, daemon=True)
        self.thread.start()

    def _wait(self) -> None:
        store, ticket, ears, timeout = self._args
        began = time.monotonic()
        try:
            self.result = run(store.changed("k", ticket, timeout, ears))
        except BaseException as bad:
            self.result = bad
        self.took = time.monotonic() - began

    def woken(self, within: float = 5.0) -> bool:
        self.thread.join(within)
        return isinstance(self.result, Pushed)


def readers(store: SqliteStore) -> int:
    return sum(len(w) for w in store._room._waiters.values())


@pytest.fixture
def looks() -> None:
    """For tests in which everybody looks for himself every quarter of a second."""


@pytest.fixture(autouse=True)
def no_looks(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Without the looks every quarter of a second, so that only hints can be what wakes."""
    if "looks" not in request.fixturenames:
        monkeypatch.setattr("holdfast.backends.sqlite.waiting.LOOK", FOR_EVER)


def hint(sender: SqliteStore, receiver: SqliteStore, ticket: str) -> None:
    run(sender.wake([Wake(receiver.ear, ticket)]))


def test_a_hint_wakes_the_one_it_names(client: Client) -> None:
    one, two = client(), client()
    waiting = Waiter(two, "B")
    until(lambda: readers(two))
    hint(one, two, "B")
    assert waiting.woken()
    assert waiting.result == Pushed("B")


def test_the_step_that_lets_somebody_in_sends_the_hint(client: Client) -> None:
    one, two = client(), client()
    assert isinstance(step(one, "k", enter("A", one.ear)), Admitted)
    assert isinstance(step(two, "k", enter("B", two.ear)), Waiting)
    waiting = Waiter(two, "B", [one.ear])
    until(lambda: readers(two))
    step(one, "k", leave("A"))
    assert waiting.woken()
    inside = step(two, "k", enter("B", two.ear))
    assert isinstance(inside, Admitted)
    assert waiting.result == Pushed("B", 1, inside.fence), "it names the grant"


def test_after_a_long_hold_the_next_one_gets_the_cpu_first(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    yielded: list[str] = []
    monkeypatch.setattr("holdfast.backends.sqlite.store._yield_cpu", lambda: yielded.append("yes"))
    one, two = client(), client()
    for hold in (-10.0, 10.0):  # as if the last write were still to come: no delay of this machine can spoil it
        step(one, "k", enter("A", one.ear))
        step(two, "k", enter("B", two.ear))
        one._wrote_at = one._clock() - hold
        step(one, "k", leave("A"))
        assert bool(yielded) == (hold > 0), "in a tight loop it pays to get back in line first"
        step(two, "k", leave("B"))
    one._colour.blocking = False  # an event loop has other things to do
    step(one, "k", enter("A", one.ear))
    step(two, "k", enter("B", two.ear))
    one._wrote_at = 0.0
    step(one, "k", leave("A"))
    assert len(yielded) == 1


def test_a_hint_that_comes_before_the_waiting_is_not_lost(client: Client) -> None:
    one, two = client(), client()
    assert two.ear
    hint(one, two, "B")
    assert run(two.changed("k", "B", FOR_EVER, ())) == Pushed("B")


def test_a_hint_read_by_somebody_else_before_the_waiting_is_not_lost(client: Client) -> None:
    one, two = client(), client()
    other = Waiter(two, "other")
    until(lambda: readers(two))
    hint(one, two, "B")
    until(lambda: two._room._heard)
    assert run(two.changed("k", "B", FOR_EVER, ())) == Pushed("B")
    assert run(two.changed("k", "B", 0.05, ())) is None, "and it counts once"
    hint(one, two, "other")
    assert other.woken()


def test_the_memory_for_early_hints_is_bounded(client: Client) -> None:
    store = client()
    for i in range(5000):
        store._room._remember(Pushed(f"t{i}"))
    assert len(store._room._heard) <= 1024
    assert "t4999" in store._room._heard


def test_time_runs_out_on_time(client: Client) -> None:
    store = client()
    began = time.monotonic()
    assert run(store.changed("k", "B", 0.2, ())) is None
    assert 0.19 < time.monotonic() - began < 10
    assert run(store.changed("k", "B", 0, ())) is None
    assert readers(store) == 0


def test_one_reads_for_all_and_passes_it_on_when_it_leaves(client: Client) -> None:
    one, two = client(), client()
    waiting = []
    for name in "ABCDEFG":
        waiting.append(Waiter(two, name))
        until(lambda: readers(two) == len(waiting))
    for i in (3, 0, 1, 6, 2, 5, 4):  # the reader among them, again and again
        hint(one, two, "ABCDEFG"[i])
        assert waiting[i].woken()
        assert sum(w.result == "still waiting" for w in waiting) == readers(two)
    assert two._room._reader is None


def test_a_reader_that_is_interrupted_passes_it_on(path: Path) -> None:
    """Ctrl-C, or a cancelled task: the exception comes out of the colour."""

    class Colour(ThreadColour):
        interrupt = threading.Event()

        async def readable(self, fds: Sequence[int], timeout: float | None) -> list[int]:
            if threading.current_thread().name == "victim":
                self.interrupt.wait(10)
                raise KeyboardInterrupt
            return await super().readable(fds, timeout)

    two = SqliteStore(str(path), Colour())
    ended: list[str] = []

    def victim() -> None:
        try:
            run(two.changed("k", "V", FOR_EVER, ()))
        except KeyboardInterrupt:
            ended.append("interrupted")

    thread = threading.Thread(target=victim, name="victim")
    thread.start()
    until(lambda: readers(two))
    waiting = Waiter(two, "B")
    until(lambda: readers(two) == 2)
    Colour.interrupt.set()
    thread.join(5)
    assert ended == ["interrupted"]
    hint(two, two, "B")
    assert waiting.woken()
    run(two.close())


def test_a_reader_that_was_interrupted_while_leaving_is_replaced(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.backends.sqlite.waiting.LOOK", 0.02)
    one, two = client(), client()
    step(one, "k", enter("A", one.ear))
    step(two, "k", enter("B", two.ear))
    assert run(two.changed("k", "B", 0, ())) is None
    two._room._reader = WaiterOfTheRoom("gone", ())
    waiting = Waiter(two, "B")
    until(lambda: two._room._reader is not None and two._room._reader.ticket == "B")
    hint(one, two, "B")
    assert waiting.woken()


def test_a_full_queue_wakes_everybody(client: Client) -> None:
    """A socket holds about ten hints; those sent on top are refused, so after that many all must look."""
    one, two = client(), client()
    assert two.ear
    for i in range(30):
        hint(one, two, f"nobody {i}")
    waiting = [Waiter(two, "A"), Waiter(two, "B")]
    assert waiting[0].woken()
    if not waiting[1].woken(0.5):  # it came to wait after the queue had been read
        hint(one, two, "B")
        assert waiting[1].woken()


def test_forged_hints_harm_nobody(client: Client) -> None:
    one, two = client(), client()
    waiting = Waiter(two, "B")
    until(lambda: readers(two))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as forger:
        where = two._ears._prefix + two.ear  # a path of any length
        for junk in (b"", b"\xff\xfe", b"\0" * 2000, b"x" * 5000):
            forger.sendto(junk, where)
    hint(one, two, "B")
    assert waiting.woken()


@pytest.mark.parametrize("ear", ["../../../run/systemd/notify", "/dev/log", "1-2-3/../x", "x", "1-2-3\n", ".", "1--"])
def test_an_ear_that_is_none_is_neither_sent_to_nor_dead(
    client: Client, path: Path, monkeypatch: pytest.MonkeyPatch, ear: str
) -> None:
    """Ears are read from the database, which others may write."""
    store = client()
    assert store.ear
    monkeypatch.chdir(path.parent)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("x")
        listener.setblocking(False)
        run(store.wake([Wake(ear, "t"), Wake("../x", "t")]))
        assert store.silent([ear, "../x"]) == (frozenset(), frozenset())
        with pytest.raises(BlockingIOError):
            listener.recv(10)


@pytest.mark.usefixtures("looks")
def test_a_lost_hint_costs_a_quarter_of_a_second(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = client(), client()
    step(one, "k", enter("A", one.ear))
    step(two, "k", enter("B", two.ear))
    waiting = Waiter(two, "B")
    until(lambda: readers(two))
    monkeypatch.setattr(one._ears, "send", lambda ear, ticket: None)
    step(one, "k", leave("A"))
    assert waiting.woken()
    assert waiting.took < 5


@pytest.mark.usefixtures("looks")
def test_a_change_that_does_not_concern_a_waiter_leaves_it_asleep(client: Client) -> None:
    one, two, three = client(), client(), client()
    step(one, "k", enter("A", one.ear))
    step(two, "k", enter("B", two.ear))
    waiting = Waiter(two, "B")
    until(lambda: readers(two))
    step(three, "k", enter("C", three.ear))
    assert not waiting.woken(0.6)
    step(one, "k", leave("A"))
    assert waiting.woken()


@pytest.mark.usefixtures("looks")
def test_somebody_dropped_from_the_line_looks_up(client: Client, path: Path) -> None:
    one, two = client(), client()
    step(one, "k", enter("A", one.ear))
    step(two, "k", enter("B", two.ear))
    waiting = Waiter(two, "B")
    until(lambda: readers(two))
    row = get(one, "k")
    assert run(one.delete("k", row.version or 0))
    assert waiting.woken()


@pytest.fixture
def no_ears(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, name: str = "") -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("holdfast.backends.sqlite.ears.Ears._bind", refuse)


@pytest.mark.usefixtures("no_ears")
def test_without_an_ear_a_waiter_polls_and_is_quick_at_the_head_of_the_line(client: Client) -> None:
    one, two = client(), client()
    assert one.ear == two.ear == ""
    assert two.beacon() is None
    step(one, "k", enter("A", ""))
    step(two, "k", enter("B", ""))
    waiting = Waiter(two, "B")
    time.sleep(0.02)
    step(one, "k", leave("A"))
    assert waiting.woken()


def test_without_proc_there_is_no_ear_and_nothing_is_left_behind(
    client: Client, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.backends.sqlite.ears._THIS", f"{path}.missing/")
    store = client()
    assert store.ear == ""
    assert "this system has no" in store._ears.problem
    assert not Path(f"{path}.ears").exists()


@pytest.mark.usefixtures("no_ears")
def test_polls_become_rarer_while_nothing_changes(path: Path) -> None:
    slept: list[float] = []

    class Colour(ThreadColour):
        now = 0.0

        def clock(self) -> float:  # type: ignore[override]
            return self.now

        def event(self) -> ThreadEvent:
            colour = self

            class Event(ThreadEvent):
                async def wait(self, timeout: float | None) -> bool:
                    assert timeout is not None
                    slept.append(timeout)
                    colour.now += timeout
                    return False

            return Event()

    store = SqliteStore(str(path), Colour())
    for name in "ABC":
        step(store, "k", enter(name, ""))
    assert run(store.changed("k", "C", 5.0, ())) is None
    assert slept[0] == 0.01
    assert slept[1:9] == pytest.approx([0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0])
    assert sum(slept) == pytest.approx(5.0)
    run(store.close())


def test_a_database_deeper_than_a_socket_path_can_be(tmp_path: Path) -> None:
    deep = tmp_path
    for i in range(6):
        deep = deep / (f"{i}" * 50)
    deep.mkdir(parents=True)
    one, two = store_at(deep / "locks.db"), store_at(deep / "locks.db")
    assert len(str(deep)) > 300
    waiting = Waiter(two, "B")
    until(lambda: readers(two))
    hint(one, two, "B")
    assert waiting.woken()
    run(one.close())
    assert two.silent([f"{os.getpid()}-x-1"]) == (frozenset(), frozenset())
    run(two.close())


def test_a_symbolic_link_to_the_database_is_the_same_store(client: Client, path: Path, tmp_path: Path) -> None:
    one = client()
    put(one, "k", "shared")
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(path)
    two = client(path=link)
    row = get(two, "k").row
    assert row is not None
    assert row.body == "shared"
    waiting = Waiter(two, "B")
    until(lambda: readers(two))
    hint(one, two, "B")
    assert waiting.woken()


def test_closing_lets_waiters_go(path: Path) -> None:
    store = store_at(path)
    put(store, "k")
    waiting = [Waiter(store, "A"), Waiter(store, "B")]
    until(lambda: readers(store) == 2)
    run(store.close())
    for one in waiting:
        one.thread.join(5)
        assert one.result != "still waiting"


def test_closing_takes_the_ear_away(path: Path) -> None:
    store = store_at(path)
    name = store.ear
    directory = Path(f"{path}.ears")
    assert [e.name for e in directory.iterdir()] == [name]
    run(store.close())
    assert list(directory.iterdir()) == []
