"""Wake-ups between clients: which client gets which, which thread reads the socket, and what if none can listen."""

import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fairlock.rules.locks import Granted, Queued, Wakeup
from fairlock.stores.base import Pushed
from fairlock.stores.sqlite import SqliteStore
from fairlock.stores.wakeups import CAPACITY
from fairlock.stores.wakeups import Waiter as StoreWaiter
from tests.sqlite.processes import ThreadEvent, ThreadRuntime, enter, get, leave, put, run, step, store_at, until

Client = Callable[..., SqliteStore]
FOREVER = 30.0


class Waiter:
    """A waiter in a thread."""

    def __init__(
        self, store: SqliteStore, ticket: str, listeners: Sequence[str] = (), timeout: float = FOREVER
    ) -> None:
        self.result: Any = "still waiting"
        self.took = 0.0
        self._args = (store, ticket, listeners, timeout)
        self.thread = threading.Thread(target=self._wait, daemon=True)
        self.thread.start()

    def _wait(self) -> None:
        store, ticket, listeners, timeout = self._args
        began = time.monotonic()
        try:
            self.result = run(store.wait_for_wakeup("k", ticket, timeout, listeners))
        except BaseException as bad:
            self.result = bad
        self.took = time.monotonic() - began

    def woken(self, within: float = 5.0) -> bool:
        self.thread.join(within)
        return isinstance(self.result, Pushed)


def readers(store: SqliteStore) -> int:
    return sum(len(w) for w in store._waiters._waiters.values())


@pytest.fixture
def looks() -> None:
    """For tests in which each waiter reads the row every quarter of a second."""


@pytest.fixture(autouse=True)
def no_looks(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Without the reads every quarter of a second, so that only wake-ups can wake."""
    if "looks" not in request.fixturenames:
        monkeypatch.setattr("fairlock.stores.sqlite.wait_for_wakeup.LOOK", FOREVER)


def send_wakeup(sender: SqliteStore, receiver: SqliteStore, ticket: str) -> None:
    run(sender.ping())  # a client sends after a write: its database is open
    run(sender.wake([Wakeup(receiver.open_listener(), ticket)]))


def test_a_wakeup_wakes_the_waiter_it_names(client: Client) -> None:
    one, two = client(), client()
    waiting = Waiter(two, "B")
    until(lambda: readers(two))
    send_wakeup(one, two, "B")
    assert waiting.woken()
    assert waiting.result == Pushed("B")


def test_the_step_that_grants_sends_the_wakeup(client: Client) -> None:
    one, two = client(), client()
    assert isinstance(step(one, "k", enter("A", one.open_listener())), Granted)
    assert isinstance(step(two, "k", enter("B", two.open_listener())), Queued)
    waiting = Waiter(two, "B", [one.open_listener()])
    until(lambda: readers(two))
    step(one, "k", leave("A"))
    assert waiting.woken()
    granted = step(two, "k", enter("B", two.open_listener()))
    assert isinstance(granted, Granted)
    assert waiting.result == Pushed("B", 1, granted.fence), "it names the grant"


def test_after_a_long_hold_the_next_one_gets_the_cpu_first(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    yielded: list[str] = []
    monkeypatch.setattr("fairlock.stores.sqlite.store._yield_cpu", lambda: yielded.append("yes"))
    one, two = client(), client()
    for hold in (-10.0, 10.0):  # as if the last write were still to come: no delay of this machine can spoil it
        step(one, "k", enter("A", one.open_listener()))
        step(two, "k", enter("B", two.open_listener()))
        one._wrote_at = one._clock() - hold
        step(one, "k", leave("A"))
        assert bool(yielded) == (hold > 0), "in a tight loop it pays to get back into the queue first"
        step(two, "k", leave("B"))
    one.runtime.blocking = False  # an event loop has other things to do
    step(one, "k", enter("A", one.open_listener()))
    step(two, "k", enter("B", two.open_listener()))
    one._wrote_at = 0.0
    step(one, "k", leave("A"))
    assert len(yielded) == 1


def test_a_wakeup_that_arrives_before_the_wait_is_not_lost(client: Client) -> None:
    one, two = client(), client()
    assert two.open_listener()
    send_wakeup(one, two, "B")
    assert run(two.wait_for_wakeup("k", "B", FOREVER, ())) == Pushed("B")


def test_a_wakeup_read_by_another_waiter_before_the_wait_is_not_lost(client: Client) -> None:
    one, two = client(), client()
    other = Waiter(two, "other")
    until(lambda: readers(two))
    send_wakeup(one, two, "B")
    until(lambda: two._waiters._wakeups)
    assert run(two.wait_for_wakeup("k", "B", FOREVER, ())) == Pushed("B")
    assert run(two.wait_for_wakeup("k", "B", 0.05, ())) is None, "and it counts once"
    send_wakeup(one, two, "other")
    assert other.woken()


def test_the_memory_for_early_wakeups_is_bounded(client: Client) -> None:
    store = client()
    for i in range(5000):
        store._waiters.deliver(Pushed(f"t{i}"))
    assert len(store._waiters._wakeups) <= CAPACITY
    assert "t4999" in store._waiters._wakeups


def test_time_runs_out_on_time(client: Client) -> None:
    store = client()
    began = time.monotonic()
    assert run(store.wait_for_wakeup("k", "B", 0.2, ())) is None
    assert 0.19 < time.monotonic() - began < 10
    assert run(store.wait_for_wakeup("k", "B", 0, ())) is None
    assert readers(store) == 0


def test_one_reads_for_all_and_passes_it_on_when_it_leaves(client: Client) -> None:
    one, two = client(), client()
    waiting = []
    for name in "ABCDEFG":
        waiting.append(Waiter(two, name))
        until(lambda: readers(two) == len(waiting))
    for i in (3, 0, 1, 6, 2, 5, 4):  # the reader among them, again and again
        send_wakeup(one, two, "ABCDEFG"[i])
        assert waiting[i].woken()
        assert sum(w.result == "still waiting" for w in waiting) == readers(two)
    assert two._waiters._reader is None


def test_a_reader_that_is_interrupted_passes_it_on(path: Path) -> None:
    """Ctrl-C, or a cancelled task: the exception comes out of the runtime."""

    class Runtime(ThreadRuntime):
        interrupt = threading.Event()

        async def readable(self, fds: Sequence[int], timeout: float | None) -> list[int]:
            if threading.current_thread().name == "victim":
                self.interrupt.wait(10)
                raise KeyboardInterrupt
            return await super().readable(fds, timeout)

    two = SqliteStore(str(path), Runtime())
    ended: list[str] = []

    def victim() -> None:
        try:
            run(two.wait_for_wakeup("k", "V", FOREVER, ()))
        except KeyboardInterrupt:
            ended.append("interrupted")

    thread = threading.Thread(target=victim, name="victim")
    thread.start()
    until(lambda: readers(two))
    waiting = Waiter(two, "B")
    until(lambda: readers(two) == 2)
    Runtime.interrupt.set()
    thread.join(5)
    assert ended == ["interrupted"]
    send_wakeup(two, two, "B")
    assert waiting.woken()
    run(two.close())


def test_a_reader_that_was_interrupted_while_leaving_is_replaced(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlock.stores.sqlite.wait_for_wakeup.LOOK", 0.02)
    one, two = client(), client()
    step(one, "k", enter("A", one.open_listener()))
    step(two, "k", enter("B", two.open_listener()))
    assert run(two.wait_for_wakeup("k", "B", 0, ())) is None
    two._waiters._reader = StoreWaiter("gone")
    waiting = Waiter(two, "B")
    until(lambda: two._waiters._reader is not None and two._waiters._reader.ticket == "B")
    send_wakeup(one, two, "B")
    assert waiting.woken()


def test_a_full_queue_wakes_everybody(client: Client) -> None:
    """A socket holds about ten wake-ups; more are refused, so after that many all waiters must read."""
    one, two = client(), client()
    assert two.open_listener()
    for i in range(30):
        send_wakeup(one, two, f"nobody {i}")
    waiting = [Waiter(two, "A"), Waiter(two, "B")]
    assert waiting[0].woken()
    if not waiting[1].woken(0.5):  # it came to wait after the queue had been read
        send_wakeup(one, two, "B")
        assert waiting[1].woken()


def test_forged_wakeups_do_no_harm(client: Client) -> None:
    one, two = client(), client()
    waiting = Waiter(two, "B")
    until(lambda: readers(two))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as forger:
        where = two._listeners._prefix + two.open_listener()  # a path of any length
        for junk in (b"", b"\xff\xfe", b"\0" * 2000, b"x" * 5000):
            forger.sendto(junk, where)
    send_wakeup(one, two, "B")
    assert waiting.woken()


NOT_OURS = ["../../../run/systemd/notify", "/dev/log", "1-2-3/../x", "x", "1-2-3\n", ".", "1--"]


@pytest.mark.parametrize("listener", NOT_OURS)
def test_a_listener_name_that_is_not_ours_is_neither_sent_to_nor_dead(
    client: Client, path: Path, monkeypatch: pytest.MonkeyPatch, listener: str
) -> None:
    """The names of listeners are read from the database, which others may write."""
    store = client()
    assert store.open_listener()
    monkeypatch.chdir(path.parent)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        stranger.bind("x")
        stranger.setblocking(False)
        run(store.wake([Wakeup(listener, "t"), Wakeup("../x", "t")]))
        assert store.liveness([listener, "../x"]) == (frozenset(), frozenset())
        with pytest.raises(BlockingIOError):
            stranger.recv(10)


@pytest.mark.usefixtures("looks")
def test_a_lost_wakeup_costs_a_quarter_of_a_second(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = client(), client()
    step(one, "k", enter("A", one.open_listener()))
    step(two, "k", enter("B", two.open_listener()))
    waiting = Waiter(two, "B")
    until(lambda: readers(two))
    monkeypatch.setattr(one._listeners, "send", lambda listener, ticket: None)
    step(one, "k", leave("A"))
    assert waiting.woken()
    assert waiting.took < 5


@pytest.mark.usefixtures("looks")
def test_a_change_that_does_not_concern_a_waiter_leaves_it_asleep(client: Client) -> None:
    one, two, three = client(), client(), client()
    step(one, "k", enter("A", one.open_listener()))
    step(two, "k", enter("B", two.open_listener()))
    waiting = Waiter(two, "B")
    until(lambda: readers(two))
    step(three, "k", enter("C", three.open_listener()))
    assert not waiting.woken(0.6)
    step(one, "k", leave("A"))
    assert waiting.woken()


@pytest.mark.usefixtures("looks")
def test_somebody_dropped_from_the_line_looks_up(client: Client, path: Path) -> None:
    one, two = client(), client()
    step(one, "k", enter("A", one.open_listener()))
    step(two, "k", enter("B", two.open_listener()))
    waiting = Waiter(two, "B")
    until(lambda: readers(two))
    row = get(one, "k")
    assert run(one.delete("k", row.version or 0))
    assert waiting.woken()


@pytest.fixture
def no_listeners(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, name: str = "") -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("fairlock.stores.sqlite.listener_sockets.WakeupSockets._bind", refuse)


@pytest.mark.usefixtures("no_listeners")
def test_without_an_listener_a_waiter_polls_and_is_quick_at_the_head_of_the_line(client: Client) -> None:
    one, two = client(), client()
    assert one.open_listener() == two.open_listener() == ""
    assert two.liveness_fd() is None
    step(one, "k", enter("A", ""))
    step(two, "k", enter("B", ""))
    waiting = Waiter(two, "B")
    time.sleep(0.02)
    step(one, "k", leave("A"))
    assert waiting.woken()


def test_without_proc_there_is_no_listener_and_nothing_is_left_behind(
    client: Client, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlock.stores.sqlite.listener_sockets._THIS", f"{path}.missing/")
    store = client()
    assert store.open_listener() == ""
    assert "this system has no" in store._listeners.problem
    assert not Path(f"{path}.wakeups").exists()


@pytest.mark.usefixtures("no_listeners")
def test_polls_become_rarer_while_nothing_changes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlock.stores.polling.jitter", lambda: 0.5)
    slept: list[float] = []

    class Runtime(ThreadRuntime):
        now = 0.0

        def clock(self) -> float:  # type: ignore[override]
            return self.now

        def event(self) -> ThreadEvent:
            runtime = self

            class Event(ThreadEvent):
                async def wait(self, timeout: float | None) -> bool:
                    assert timeout is not None
                    slept.append(timeout)
                    runtime.now += timeout
                    return False

            return Event()

    store = SqliteStore(str(path), Runtime())
    for name in "ABC":
        step(store, "k", enter(name, ""))
    assert run(store.wait_for_wakeup("k", "C", 5.0, ())) is None
    assert slept[0] == 0.01
    assert slept[1:9] == pytest.approx([0.0175, 0.035, 0.07, 0.14, 0.28, 0.56, 1.0, 1.0])
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
    send_wakeup(one, two, "B")
    assert waiting.woken()
    run(one.close())
    assert two.liveness([f"{os.getpid()}-x-1"]) == (frozenset(), frozenset())
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
    send_wakeup(one, two, "B")
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


def test_closing_takes_the_listener_away(path: Path) -> None:
    store = store_at(path)
    name = store.open_listener()
    directory = Path(f"{path}.wakeups")
    assert [e.name for e in directory.iterdir()] == [name]
    run(store.close())
    assert list(directory.iterdir()) == []
