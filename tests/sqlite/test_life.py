"""Who is alive: the ear as a beacon, noticed at once when a process ends, whatever way it ends."""

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

from holdfast.backends.contract import Pushed
from holdfast.backends.sqlite import SqliteStore
from holdfast.doorman import Admitted, Leave, Waiting
from tests.busy import within
from tests.sqlite.plumbing import enter, python, run, step, store_at

Client = Callable[..., SqliteStore]
NOBODY: frozenset[str] = frozenset()

HOLDER = """
    store = store_at(sys.argv[1])
    print(step(store, "k", enter("H%d" % os.getpid(), store.ear)).__class__.__name__, store.ear, flush=True)
    sys.stdin.read()
"""


class Process:
    def __init__(self, code: str, *args: object, **more: object) -> None:
        self.popen = python(code, *args, **more)
        self.pid = self.popen.pid

    def line(self) -> str:
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


def ear_file(store: SqliteStore) -> str:
    name = store.ear
    return os.path.join(store._ears.directory, name)


def test_a_living_client_is_not_silent_and_a_closed_one_is_dead(client: Client, path: Path) -> None:
    one, two = client(), store_at(path)
    ear = two.ear
    assert one.silent([ear, one.ear]) == (NOBODY, NOBODY)
    os.dup2(two.beacon() or -1, copy := os.dup(0))
    two._ears.socket.close()  # type: ignore[union-attr]  # as a killed process leaves it: the file stays
    assert one.silent([ear]) == (NOBODY, NOBODY), "somebody holds a copy"
    os.close(copy)
    assert one.silent([ear]) == (NOBODY, {ear})
    run(two.close())


def test_a_killed_process_is_dead_at_once(client: Client, path: Path, start: Start) -> None:
    store = client()
    holder = start(HOLDER, path)
    kind, ear = holder.line().split()
    assert kind == "Admitted"
    assert isinstance(step(store, "k", enter("B", store.ear)), Waiting)
    assert store.silent([ear])[1] == NOBODY
    holder.kill()
    assert store.silent([ear])[1] == {ear}
    assert isinstance(step(store, "k", enter("B", store.ear)), Admitted)


def test_a_stopped_process_is_not_dead(client: Client, path: Path, start: Start) -> None:
    store = client()
    holder = start(HOLDER, path)
    _, ear = holder.line().split()
    holder.kill(signal.SIGSTOP)
    assert store.silent([ear])[1] == NOBODY


def test_a_waiter_is_told_of_a_death_within_milliseconds(client: Client, path: Path, start: Start) -> None:
    store = client()
    took = []
    for _ in range(5):
        holder = start(HOLDER, path)
        _, ear = holder.line().split()
        killed: list[float] = []

        def kill(holder: Process = holder, killed: list[float] = killed) -> None:
            killed.append(time.monotonic())
            os.kill(holder.pid, signal.SIGKILL)

        timer = threading.Timer(0.05, kill)
        step(store, "k", enter("B", store.ear))
        timer.start()
        assert run(store.changed("k", "B", 10, [ear])) == Pushed("B")
        took.append(time.monotonic() - killed[0])
        assert isinstance(step(store, "k", enter("B", store.ear)), Admitted)
        step(store, "k", Leave("B"))
        timer.join()
    assert min(took) < within(0.05, below=0.25), took  # the best of five; a look would take a quarter


def test_a_death_before_the_waiting_began_is_told_at_once(client: Client, path: Path, start: Start) -> None:
    store = client()
    holder = start(HOLDER, path)
    _, ear = holder.line().split()
    holder.kill()
    began = time.monotonic()
    assert run(store.changed("k", "B", 10, [ear])) == Pushed("B")
    assert time.monotonic() - began < within(2, below=9)


def test_one_that_reads_for_all_sees_the_deaths_that_the_others_wait_for(
    client: Client, path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.backends.sqlite.waiting.LOOK", 30.0)
    store = client()
    results: dict[str, object] = {}

    def wait(ticket: str, ears: list[str]) -> None:
        results[ticket] = run(store.changed("k", ticket, 20, ears))

    reader = threading.Thread(target=wait, args=("reader", []))
    reader.start()
    while store._room._reader is None:
        time.sleep(0.001)
    holder = start(HOLDER, path)
    _, ear = holder.line().split()
    follower = threading.Thread(target=wait, args=("follower", [ear]))
    follower.start()
    while "follower" not in store._room._waiters:
        time.sleep(0.001)
    holder.kill()
    follower.join(10)
    assert results == {"follower": Pushed("follower")}
    store._ears.send(store.ear, "reader")
    reader.join()


def test_a_copy_of_the_beacon_keeps_the_client_alive_and_its_end_is_seen_soon(
    client: Client, path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard of `holdfast run` outlives its wrapper until the work is dead, too."""
    monkeypatch.setattr("holdfast.backends.sqlite.waiting.LOOK", 30.0)
    store = client()
    holder = start(
        """
        store = store_at(sys.argv[1])
        step(store, "k", enter("H", store.ear))
        read, write = os.pipe()
        copy = os.dup(store.beacon())
        if os.fork() == 0:
            os.close(write)
            os.read(read, 1)        # until the wrapper is dead
            time.sleep(0.3)         # the work is being ended
            os._exit(0)
        print(store.ear, flush=True)
        sys.stdin.read()
        """,
        path,
    )
    ear = holder.line()
    killed: list[float] = []

    def kill() -> None:
        killed.append(time.monotonic())
        os.kill(holder.pid, signal.SIGKILL)

    timer = threading.Timer(0.1, kill)
    timer.start()
    assert run(store.changed("k", "B", 10, [ear])) == Pushed("B")
    took = time.monotonic() - killed[0]
    timer.join()
    assert 0.25 < took < 5, "long before the next look"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody without rights")
def test_no_right_to_knock_counts_as_alive(client: Client, public: Path) -> None:
    one, two = client(path=public), client(path=public)
    os.chmod(ear_file(two), 0)
    os.chmod(two._ears.directory, 0o755)
    ear = two.ear
    assert one.ear
    os.seteuid(65534)
    try:
        with pytest.raises(PermissionError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as knock:
            knock.connect(one._ears._prefix + ear)
        assert one.silent([ear]) == (NOBODY, NOBODY)
    finally:
        os.seteuid(0)


def test_a_full_queue_counts_as_alive(client: Client) -> None:
    one, two = client(), client()
    assert two.ear
    for _ in range(50):
        one._ears.send(two.ear, "x")
    assert one.silent([two.ear]) == (NOBODY, NOBODY)


def test_a_missing_ear_is_dead_only_if_its_process_is_gone_too(client: Client, start: Start, path: Path) -> None:
    store = client()
    assert store.ear
    holder = start(HOLDER, path)
    _, ear = holder.line().split()
    os.unlink(os.path.join(store._ears.directory, ear))
    assert store.silent([ear])[1] == NOBODY, "somebody tidied up too much"
    holder.kill()
    assert store.silent([ear])[1] == {ear}


def test_taking_away_all_ears_makes_nobody_dead_and_they_come_back(client: Client) -> None:
    one, two = client(), client()
    ears = {one.ear, two.ear}
    run(one.ping())
    run(two.ping())
    gone = f"{2**22 + 1}-x-1"  # no such process
    assert one.silent([gone])[1] == {gone}
    shutil.rmtree(one._ears.directory)
    assert one.silent([two.ear, gone]) == (NOBODY, NOBODY), "this directory proves nothing any more"
    for store in (one, two):
        store._check_at = 0.0  # 200 ms later
        run(store.read("k"))
    assert set(os.listdir(one._ears.directory)) == ears
    assert {one.ear, two.ear} == ears
    one._ears.send(two.ear, "hello")
    assert two._ears.receive() == ["hello"]


def test_files_of_the_dead_are_removed_after_an_hour(client: Client, path: Path, start: Start) -> None:
    store = client()
    assert store.ear
    holder = start(HOLDER, path)
    _, ear = holder.line().split()
    holder.kill()
    file = Path(store._ears.directory, ear)
    store._ears.clean()
    assert file.exists()
    old = time.time() - 3700
    os.utime(file, (old, old))
    os.utime(os.path.join(store._ears.directory, store.ear), (old, old))
    stranger = Path(store._ears.directory, "1-a-b")
    stranger.touch()
    os.utime(stranger, (old, old))
    store._ears.clean()
    assert not file.exists()
    assert stranger.exists(), "not a socket: not ours"
    assert Path(store._ears.directory, store.ear).exists()


def test_watching_many_processes_does_not_use_up_file_descriptors(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = client()
    assert store.ear
    ears = []
    for i in range(200):
        ears.append(f"{os.getppid()}-x-{i:x}")
        Path(store._ears.directory, ears[-1]).touch()
    monkeypatch.setattr(store._ears, "is_dead", lambda ear: False)
    before = len(os.listdir("/proc/self/fd"))
    for ear in ears:
        assert run(store.changed("k", "B", 0, [ear])) is None
    assert len(os.listdir("/proc/self/fd")) <= before + 70


NAMESPACES = ["--net", "--pid --fork --kill-child --mount-proc", "--mount", "--ipc --uts", "--user --map-root-user"]


@pytest.mark.parametrize("kind", NAMESPACES)
def test_ears_work_across_namespaces(client: Client, path: Path, start: Start, kind: str) -> None:
    before = ["unshare", *kind.split()]
    if subprocess.run([*before, "true"], capture_output=True).returncode:
        pytest.skip(f"unshare {kind} is not allowed here")
    store = client()
    assert store.ear
    inside = start(
        """
        store = store_at(sys.argv[1])
        step(store, "k", enter("H", store.ear))
        print(store.ear, store.silent([sys.argv[2]])[1] == frozenset(), flush=True)
        print(run(store.changed("k", "H2", 10, [])) is not None, flush=True)
        sys.stdin.read()
        """,
        path,
        store.ear,
        before=before,
    )
    ear, alive = inside.line().split()
    assert alive == "True"
    assert store.silent([ear])[1] == NOBODY
    store._ears.send(ear, "H2")
    assert inside.line() == "True", "it heard the hint"
    threading.Timer(0.1, inside.popen.kill).start()
    step(store, "k", enter("B", store.ear))
    assert run(store.changed("k", "B", 10, [ear])) == Pushed("B")
    until = time.monotonic() + 5
    while store.silent([ear])[1] != {ear} and time.monotonic() < until:
        time.sleep(0.01)
    assert isinstance(step(store, "k", enter("B", store.ear)), Admitted)


def test_the_pid_of_an_ear_from_another_namespace_may_be_anybodys(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its death says nothing; only the ear does."""
    monkeypatch.setattr("holdfast.backends.sqlite.waiting.LOOK", 30.0)
    one, two = client(), client()
    stranger = subprocess.Popen(["sleep", "60"])
    fake = f"{stranger.pid}-x-1"
    os.link(ear_file(two), os.path.join(two._ears.directory, fake))
    threading.Timer(0.05, stranger.kill).start()
    began = time.monotonic()
    assert run(one.changed("k", "B", 0.5, [fake])) is None
    assert time.monotonic() - began >= 0.45
    stranger.wait()
