"""Liveness: the end of a process is noticed at once by its listener, whatever way it ends."""

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fairlock
from fairlock.rules.locks import Granted, Queued, Release
from fairlock.stores.base import Pushed
from fairlock.stores.sqlite import SqliteStore
from tests.machine_load import within
from tests.sqlite.processes import enter, python, run, step, store_at

Client = Callable[..., SqliteStore]
NOBODY: frozenset[str] = frozenset()

HOLDER = """
    store = store_at(sys.argv[1])
    reply = step(store, "k", enter("H%d" % os.getpid(), store.open_listener()))
    print(type(reply).__name__, store.listener, flush=True)
    sys.stdin.read()
"""


LEASE = """
    import fairlock
    locks = fairlock.connect("sqlite:///" + sys.argv[1], owner="dies")
    lease = locks.lock("k", lease=300).acquire()
    print("held", flush=True)
    sys.stdin.read()
"""


class Process:
    def __init__(self, code: str, *args: object, **more: object) -> None:
        self.popen = python(code, *args, **more)
        self.pid = self.popen.pid

    def read_line(self) -> str:
        assert self.popen.stdout is not None
        return self.popen.stdout.readline().strip()

    def kill(self, how: int = signal.SIGKILL) -> None:
        os.kill(self.pid, how)
        if how == signal.SIGKILL:
            self.popen.wait()

    def end(self) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.communicate()


@pytest.fixture
def start() -> Iterator[Callable[..., Process]]:
    processes: list[Process] = []

    def begin(code: str, *args: object, **more: object) -> Process:
        processes.append(Process(code, *args, **more))
        return processes[-1]

    yield begin
    for process in processes:
        process.end()


Start = Callable[..., Process]


def listener_file(store: SqliteStore) -> str:
    name = store.open_listener()
    return os.path.join(store._db.real + ".wakeups", name)


def test_a_living_client_is_not_silent_and_a_closed_one_is_dead(client: Client, path: Path) -> None:
    one, two = client(), store_at(path)
    listener = two.open_listener()
    assert one.liveness([listener, one.open_listener()]) == (NOBODY, NOBODY)
    os.dup2(two.liveness_fd() or -1, copy := os.dup(0))
    two._listeners.socket.close()  # type: ignore[union-attr]  # as a killed process leaves it: the file stays
    assert one.liveness([listener]) == (NOBODY, NOBODY), "somebody holds a copy"
    os.close(copy)
    assert one.liveness([listener]) == (NOBODY, {listener})
    run(two.close())


def test_a_killed_process_is_dead_at_once(client: Client, path: Path, start: Start) -> None:
    store = client()
    holder = start(HOLDER, path)
    kind, listener = holder.read_line().split()
    assert kind == "Granted"
    assert isinstance(step(store, "k", enter("B", store.open_listener())), Queued)
    assert store.liveness([listener])[1] == NOBODY
    holder.kill()
    assert store.liveness([listener])[1] == {listener}
    assert isinstance(step(store, "k", enter("B", store.open_listener())), Granted)


def test_a_look_shows_the_lease_of_a_killed_process_as_expired_until_another_takes_it(path: Path, start: Start) -> None:
    """Before, it showed nothing, and a page took the death for a release."""
    holder = start(LEASE, path)
    with fairlock.connect(f"sqlite:///{path}", owner="looks") as locks:
        assert holder.read_line() == "held"
        holder.kill()
        for seen in (locks.snapshot(), locks.snapshot("k")):
            (one,) = seen.resources
            assert (one.name, one.holders, one.queue) == ("k", (), ())
            assert [(each.owner, each.expires_in) for each in one.expired] == [("dies", 0.0)]
        with locks.lock("k").hold(timeout=0):
            (one,) = locks.snapshot().resources
            assert (len(one.holders), one.expired) == (1, ())
        assert locks.snapshot().resources == ()


def test_a_stopped_process_is_not_dead(client: Client, path: Path, start: Start) -> None:
    store = client()
    holder = start(HOLDER, path)
    _, listener = holder.read_line().split()
    holder.kill(signal.SIGSTOP)
    assert store.liveness([listener])[1] == NOBODY


def test_a_waiter_is_notified_of_a_death_within_milliseconds(client: Client, path: Path, start: Start) -> None:
    store = client()
    took = []
    for _ in range(5):
        holder = start(HOLDER, path)
        _, listener = holder.read_line().split()
        killed: list[float] = []

        def kill(holder: Process = holder, killed: list[float] = killed) -> None:
            killed.append(time.monotonic())
            os.kill(holder.pid, signal.SIGKILL)

        timer = threading.Timer(0.05, kill)
        step(store, "k", enter("B", store.open_listener()))
        timer.start()
        assert run(store.wait_for_wakeup("k", "B", 10, [listener])) == Pushed("B")
        took.append(time.monotonic() - killed[0])
        assert isinstance(step(store, "k", enter("B", store.open_listener())), Granted)
        step(store, "k", Release("B"))
        timer.join()
    assert min(took) < within(0.05, below=0.25), took  # the best of five; a look would take a quarter


def test_a_death_before_the_wait_began_is_noticed_at_once(client: Client, path: Path, start: Start) -> None:
    store = client()
    holder = start(HOLDER, path)
    _, listener = holder.read_line().split()
    holder.kill()
    began = time.monotonic()
    assert run(store.wait_for_wakeup("k", "B", 10, [listener])) == Pushed("B")
    assert time.monotonic() - began < within(2, below=9)


def test_one_that_reads_for_all_sees_the_deaths_that_the_others_wait_for(
    client: Client, path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlock.stores.sqlite.wait_for_wakeup.LOOK", 30.0)
    store = client()
    results: dict[str, object] = {}

    def wait(ticket: str, listeners: list[str]) -> None:
        results[ticket] = run(store.wait_for_wakeup("k", ticket, 20, listeners))

    reader = threading.Thread(target=wait, args=("reader", []))
    reader.start()
    while store._waiters._reader is None:
        time.sleep(0.001)
    holder = start(HOLDER, path)
    _, listener = holder.read_line().split()
    follower = threading.Thread(target=wait, args=("follower", [listener]))
    follower.start()
    while "follower" not in store._waiters._waiters:
        time.sleep(0.001)
    holder.kill()
    follower.join(10)
    assert results == {"follower": Pushed("follower")}
    store._listeners.send(store.open_listener(), "reader")
    reader.join()


def test_a_copy_of_the_liveness_fd_keeps_the_client_alive_and_its_end_is_seen_soon(
    client: Client, path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard of `fairlock run` outlives its wrapper until the work is dead, too."""
    monkeypatch.setattr("fairlock.stores.sqlite.wait_for_wakeup.LOOK", 30.0)
    store = client()
    holder = start(
        """
        store = store_at(sys.argv[1])
        step(store, "k", enter("H", store.open_listener()))
        read, write = os.pipe()
        copy = os.dup(store.liveness_fd())
        if os.fork() == 0:
            os.close(write)
            os.read(read, 1)        # until the wrapper is dead
            time.sleep(0.3)         # the work is being ended
            os._exit(0)
        print(store.open_listener(), flush=True)
        sys.stdin.read()
        """,
        path,
    )
    listener = holder.read_line()
    killed: list[float] = []

    def kill() -> None:
        killed.append(time.monotonic())
        os.kill(holder.pid, signal.SIGKILL)

    timer = threading.Timer(0.1, kill)
    timer.start()
    assert run(store.wait_for_wakeup("k", "B", 10, [listener])) == Pushed("B")
    took = time.monotonic() - killed[0]
    timer.join()
    assert 0.25 < took < 5, "long before the next look"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody without rights")
def test_no_right_to_knock_counts_as_alive(client: Client, public: Path) -> None:
    one, two = client(path=public), client(path=public)
    os.chmod(listener_file(two), 0)
    os.chmod(two._db.real + ".wakeups", 0o755)
    listener = two.open_listener()
    assert one.open_listener()
    os.seteuid(65534)
    try:
        with pytest.raises(PermissionError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as knock:
            knock.connect(one._listeners._prefix + listener)
        assert one.liveness([listener]) == (NOBODY, NOBODY)
    finally:
        os.seteuid(0)


def test_a_full_queue_counts_as_alive(client: Client) -> None:
    one, two = client(), client()
    assert two.open_listener()
    for _ in range(50):
        one._listeners.send(two.open_listener(), "x")
    assert one.liveness([two.open_listener()]) == (NOBODY, NOBODY)


def test_a_missing_listener_is_dead_only_if_its_process_is_gone_too(client: Client, start: Start, path: Path) -> None:
    store = client()
    assert store.open_listener()
    holder = start(HOLDER, path)
    _, listener = holder.read_line().split()
    os.unlink(os.path.join(store._db.real + ".wakeups", listener))
    assert store.liveness([listener])[1] == NOBODY, "somebody tidied up too much"
    holder.kill()
    assert store.liveness([listener])[1] == {listener}


def test_taking_away_all_listeners_makes_nobody_dead_and_they_come_back(client: Client) -> None:
    one, two = client(), client()
    listeners = {one.open_listener(), two.open_listener()}
    run(one.ping())
    run(two.ping())
    gone = f"{2**22 + 1}-x-1"  # no such process
    assert one.liveness([gone])[1] == {gone}
    shutil.rmtree(one._db.real + ".wakeups")
    assert one.liveness([two.open_listener(), gone]) == (NOBODY, NOBODY), "this directory proves nothing any more"
    for store in (one, two):
        store._check_at = 0.0  # 200 ms later
        run(store.read("k"))
    assert set(os.listdir(one._db.real + ".wakeups")) == listeners
    assert {one.open_listener(), two.open_listener()} == listeners
    one._listeners.send(two.open_listener(), "hello")
    assert two._listeners.receive() == ["hello"]


def test_files_of_the_dead_are_removed_after_an_hour(client: Client, path: Path, start: Start) -> None:
    store = client()
    assert store.open_listener()
    holder = start(HOLDER, path)
    _, listener = holder.read_line().split()
    holder.kill()
    file = Path(store._db.real + ".wakeups", listener)
    store._listeners.clean()
    assert file.exists()
    old = time.time() - 3700
    os.utime(file, (old, old))
    os.utime(os.path.join(store._db.real + ".wakeups", store.open_listener()), (old, old))
    stranger = Path(store._db.real + ".wakeups", "1-a-b")
    stranger.touch()
    os.utime(stranger, (old, old))
    store._listeners.clean()
    assert not file.exists()
    assert stranger.exists(), "not a socket: not ours"
    assert Path(store._db.real + ".wakeups", store.open_listener()).exists()


def test_watching_many_processes_does_not_use_up_file_descriptors(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = client()
    assert store.open_listener()
    listeners = []
    for i in range(200):
        listeners.append(f"{os.getppid()}-x-{i:x}")
        Path(store._db.real + ".wakeups", listeners[-1]).touch()
    monkeypatch.setattr(store._listeners, "is_dead", lambda listener: False)
    before = len(os.listdir("/proc/self/fd"))
    for listener in listeners:
        assert run(store.wait_for_wakeup("k", "B", 0, [listener])) is None
    assert len(os.listdir("/proc/self/fd")) <= before + 70


NAMESPACES = ["--net", "--pid --fork --kill-child --mount-proc", "--mount", "--ipc --uts", "--user --map-root-user"]


@pytest.mark.parametrize("kind", NAMESPACES)
def test_listeners_work_across_namespaces(client: Client, path: Path, start: Start, kind: str) -> None:
    before = ["unshare", *kind.split()]
    if subprocess.run([*before, "true"], capture_output=True).returncode:
        pytest.skip(f"unshare {kind} is not allowed here")
    store = client()
    assert store.open_listener()
    other = start(
        """
        store = store_at(sys.argv[1])
        step(store, "k", enter("H", store.open_listener()))
        print(store.open_listener(), store.liveness([sys.argv[2]])[1] == frozenset(), flush=True)
        print(run(store.wait_for_wakeup("k", "H2", 10, [])) is not None, flush=True)
        sys.stdin.read()
        """,
        path,
        store.open_listener(),
        before=before,
    )
    listener, alive = other.read_line().split()
    assert alive == "True"
    assert store.liveness([listener])[1] == NOBODY
    store._listeners.send(listener, "H2")
    assert other.read_line() == "True", "it received the wake-up"
    threading.Timer(0.1, other.popen.kill).start()
    step(store, "k", enter("B", store.open_listener()))
    assert run(store.wait_for_wakeup("k", "B", 10, [listener])) == Pushed("B")
    until = time.monotonic() + 5
    while store.liveness([listener])[1] != {listener} and time.monotonic() < until:
        time.sleep(0.01)
    assert isinstance(step(store, "k", enter("B", store.open_listener())), Granted)


def test_the_pid_of_an_listener_from_another_namespace_may_be_anybodys(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its death says nothing; only the listener does."""
    monkeypatch.setattr("fairlock.stores.sqlite.wait_for_wakeup.LOOK", 30.0)
    one, two = client(), client()
    stranger = subprocess.Popen(["sleep", "60"])
    fake = f"{stranger.pid}-x-1"
    os.link(listener_file(two), os.path.join(two._db.real + ".wakeups", fake))
    threading.Timer(0.05, stranger.kill).start()
    began = time.monotonic()
    assert run(one.wait_for_wakeup("k", "B", 0.5, [fake])) is None
    assert time.monotonic() - began >= 0.45
    stranger.wait()
