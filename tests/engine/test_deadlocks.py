"""Rings of holders that wait for each other, found in one snapshot."""

import asyncio
import itertools
import threading
import time

import pytest

import fairlock
from fairlock import Holder, LockTimeout, Resource, Snapshot, Waiter, aio
from fairlock.engine.find_deadlocks import describe, find_rings, in_both
from fairlock.rules.locks import EXCLUSIVE

SHARED = 1


class World:
    """Builds a snapshot. `who` is 'owner' or 'owner/thread'."""

    def __init__(self) -> None:
        self.resources: dict[str, Resource] = {}
        self.tickets = map(str, itertools.count())

    def _of(self, name: str, slots: int) -> Resource:
        return self.resources.setdefault(name, Resource(name, "lock", slots, 1, (), ()))

    def hold(self, who: str, name: str, weight: int = EXCLUSIVE, slots: int = EXCLUSIVE) -> None:
        it = self._of(name, slots)
        owner, _, thread = who.partition("/")
        one = Holder(owner, "", next(self.tickets), 1, weight, 9.0, 9.0, thread)
        self.resources[name] = it._replace(holders=(*it.holders, one))

    def wait(
        self, who: str, name: str, weight: int = EXCLUSIVE, slots: int = EXCLUSIVE, waited: float = 1.0
    ) -> None:
        it = self._of(name, slots)
        owner, _, thread = who.partition("/")
        one = Waiter(owner, "", next(self.tickets), weight, waited, 9.0, thread)
        self.resources[name] = it._replace(queue=(*it.queue, one))

    def rings(self) -> list[tuple[list[str], bool]]:
        """Return the owners of each ring, and if it is certain."""
        rings = find_rings(Snapshot("memory://", 0.0, tuple(self.resources.values())))
        return [(sorted(f"{m.owner}/{m.thread}".rstrip("/") for m in ring.members), ring.certain) for ring in rings]


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("size", [2, 3, 7])
def test_a_ring_is_found(world: World, size: int) -> None:
    for number in range(size):
        world.hold(f"p{number}/1", f"n{number}")
        world.wait(f"p{number}/1", f"n{(number + 1) % size}")
    world.wait("other/1", "n0")
    assert world.rings() == [([f"p{number}/1" for number in range(size)], True)]


def test_a_chain_is_no_ring(world: World) -> None:
    for number in range(5):
        world.hold(f"p{number}/1", f"n{number}")
        world.wait(f"p{number}/1", f"n{number + 1}")
    world.hold("p5/1", "n5")
    assert world.rings() == []


def test_two_rings_are_two(world: World) -> None:
    for a, b in (("a", "b"), ("c", "d")):
        world.hold(f"{a}/1", a)
        world.hold(f"{b}/1", b)
        world.wait(f"{a}/1", b)
        world.wait(f"{b}/1", a)
    assert world.rings() == [(["a/1", "b/1"], True), (["c/1", "d/1"], True)]


def test_threads_of_one_owner_are_told_apart(world: World) -> None:
    world.hold("p/1", "x")
    world.wait("p/2", "y")  # another thread: the holder of x can go on
    world.hold("q/1", "y")
    world.wait("q/1", "x")
    assert world.rings() == []


def test_two_threads_of_one_owner_are_a_ring(world: World) -> None:
    world.hold("p/1", "x")
    world.wait("p/1", "y")
    world.hold("p/2", "y")
    world.wait("p/2", "x")
    assert world.rings() == [(["p/1", "p/2"], True)]


@pytest.mark.parametrize("unknown", ["holder", "waiter", "both"])
def test_without_a_known_thread_it_is_a_possible_ring(world: World, unknown: str) -> None:
    world.hold("p" if unknown != "waiter" else "p/1", "x")
    world.wait("p" if unknown != "holder" else "p/1", "y")
    world.hold("q/1", "y")
    world.wait("q/1", "x")
    ((_, certain),) = world.rings()
    assert not certain


def test_a_wait_for_oneself_is_a_ring_only_if_the_thread_is_known(world: World) -> None:
    world.hold("p", "x")
    world.wait("p", "x")
    assert world.rings() == []
    world.hold("q/1", "y")
    world.wait("q/1", "y")
    assert world.rings() == [(["q/1"], True)]


def test_a_semaphore_makes_a_possible_ring(world: World) -> None:
    world.hold("p/1", "x")
    world.wait("p/1", "s", 1, 2)
    world.hold("q/1", "s", 1, 2)
    world.hold("r/1", "s", 1, 2)
    world.wait("q/1", "x")
    assert world.rings() == [(["p/1", "q/1"], False)]


def test_two_readers_do_not_block_each_other(world: World) -> None:
    world.hold("p/1", "x", SHARED)
    world.wait("p/1", "y")
    world.hold("q/1", "y")
    world.wait("q/1", "x", SHARED)
    assert world.rings() == []


def test_a_reader_behind_a_writer_waits_for_the_readers_inside(world: World) -> None:
    world.hold("p/1", "x", SHARED)
    world.wait("p/1", "y")
    world.hold("q/1", "y")
    world.wait("w/1", "x")
    world.wait("q/1", "x", SHARED)
    assert world.rings() == [(["p/1", "q/1", "w/1"], True)]


def test_what_is_only_kept_closed_waits_for_nothing(world: World) -> None:
    world.hold("", "x")
    world.wait("", "y")
    world.hold("q/1", "y")
    world.wait("q/1", "x")
    assert world.rings() == []


def test_the_youngest_and_the_sentence(world: World) -> None:
    world.hold("p/1", "x")
    world.wait("p/1", "y", waited=41)
    world.hold("q/7", "y")
    world.wait("q/7", "x", waited=3)
    (ring,) = find_rings(Snapshot("memory://", 0.0, tuple(world.resources.values())))
    assert (ring.youngest.owner, ring.names) == ("q", {"x", "y"})
    assert describe(ring) in (
        "deadlock: q thread 7 holds 'y' and waits for 'x' since 3 s (youngest); "
        "p thread 1 holds 'x' and waits for 'y' since 41 s",
        "deadlock: p thread 1 holds 'x' and waits for 'y' since 41 s; "
        "q thread 7 holds 'y' and waits for 'x' since 3 s (youngest)",
    )


def test_two_looks_must_agree(world: World) -> None:
    world.hold("p/1", "x")
    world.wait("p/1", "y")
    world.hold("q/1", "y")
    world.wait("q/1", "x")
    first = find_rings(Snapshot("", 0.0, tuple(world.resources.values())))
    assert in_both(first, first) == first
    y = world.resources["y"]
    again = world.resources["y"] = y._replace(queue=(y.queue[0]._replace(ticket="another wait"),))
    assert again != y
    second = find_rings(Snapshot("", 0.0, tuple(world.resources.values())))
    assert len(second) == 1
    assert in_both(first, second) == ()


def test_many_waits_cost_little() -> None:
    queue = tuple(Waiter(f"p{n}", "", f"t{n}", EXCLUSIVE, 1.0, 1.0, "1") for n in range(4_000))
    names = tuple(
        Resource(f"n{n}", "lock", EXCLUSIVE, 1, (Holder("h", "", "h", 1, EXCLUSIVE, 1.0, 1.0, "1"),), queue[n : n + 1])
        for n in range(2_000)
    )
    crowded = Resource("x", "lock", EXCLUSIVE, 1, names[0].holders, queue)
    begun = time.process_time()
    assert find_rings(Snapshot("", 0.0, (crowded, *names))) == ()
    assert time.process_time() - begun < 5


def test_a_long_chain_costs_little_and_the_ring_at_its_end_is_found(world: World) -> None:
    for number in range(3000):
        world.hold(f"p{number}/1", f"n{number}")
        world.wait(f"p{number}/1", f"n{number + 1}")
    world.hold("p3000/1", "n3000")
    begun = time.process_time()
    assert world.rings() == []
    world.wait("p3000/1", "n2999")
    assert world.rings() == [(["p2999/1", "p3000/1"], True)]
    assert time.process_time() - begun < 5


def test_the_tickets_of_a_client_tell_its_threads_apart() -> None:
    url = f"memory://threads-{time.monotonic_ns()}"
    with fairlock.connect(url, owner="p") as one, fairlock.connect(url, owner="p") as other:
        with one.lock("x"), other.lock("y"):
            taken = threading.Event()
            go = threading.Event()

            def hold() -> None:
                with one.lock("z"):
                    taken.set()
                    go.wait(10)

            thread = threading.Thread(target=hold)
            thread.start()
            assert taken.wait(10)
            threads = {r.name: r.holders[0].thread for r in one.snapshot().resources}
            go.set()
            thread.join()
        assert threads["x"] == threads["y"] != threads["z"]
        assert "" not in threads.values()


# -- named in the LockTimeout of those in it


def run_threads(*works: tuple[fairlock.Locks, str, str], timeouts: tuple[float, ...] = (0.6, 30, 30)) -> list[str]:
    """Each thread holds its first name and waits for its second. Return the sentences of the timeouts."""
    caught: list[str] = []
    all_hold = threading.Barrier(len(works))

    def work(locks: fairlock.Locks, first: str, second: str, timeout: float) -> None:
        with locks.lock(first):
            all_hold.wait(20)
            try:
                with locks.lock(second).hold(timeout=timeout):
                    pass
            except LockTimeout as error:
                caught.append(str(error))

    threads = [
        threading.Thread(target=work, args=(*each, timeout))
        for each, timeout in zip(works, timeouts, strict=False)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return caught


def fresh_url() -> str:
    return f"memory://deadlock-{time.monotonic_ns()}"


def test_a_timeout_names_the_ring_of_two_processes() -> None:
    url = fresh_url()
    with fairlock.connect(url, owner="one") as one, fairlock.connect(url, owner="two") as two:
        (sentence,) = run_threads((one, "x", "y"), (two, "y", "x"))
    assert " This is a deadlock: " in sentence
    assert "holds 'x' and waits for 'y'" in sentence
    assert "holds 'y' and waits for 'x'" in sentence
    assert sentence.startswith("'y' is held by two")


def test_a_timeout_names_a_ring_of_three() -> None:
    url = fresh_url()
    with (
        fairlock.connect(url, owner="one") as one,
        fairlock.connect(url, owner="two") as two,
        fairlock.connect(url, owner="three") as three,
    ):
        (sentence,) = run_threads((one, "x", "y"), (two, "y", "z"), (three, "z", "x"))
    assert " This is a deadlock: " in sentence
    assert all(f"waits for {name!r}" in sentence for name in "xyz")


def test_two_threads_of_one_client_are_a_ring_also_after_a_lock_was_passed_on() -> None:
    """The store shows one owner and no waiter: the client knows more."""
    with fairlock.connect("memory://", owner="p") as locks:
        held = locks.lock("w").acquire()
        waiting = [threading.Thread(target=lambda: locks.lock("w").acquire().release()) for _ in range(3)]
        for thread in waiting:
            thread.start()
        time.sleep(0.05)
        held.release()
        for thread in waiting:
            thread.join()
        (sentence,) = run_threads((locks, "x", "y"), (locks, "y", "x"))
    assert " This is a deadlock: " in sentence
    assert sentence.count("p thread ") == 2


def test_two_tasks_of_one_client_are_a_ring() -> None:
    caught: list[str] = []

    async def work(locks: aio.Locks, first: str, second: str, timeout: float) -> None:
        async with locks.lock(first):
            await asyncio.sleep(0.05)
            try:
                async with locks.lock(second, timeout=timeout):
                    pass
            except LockTimeout as error:
                caught.append(error.deadlock)

    async def main() -> None:
        async with aio.connect("memory://", owner="p") as locks:
            await asyncio.gather(work(locks, "x", "y", 0.4), work(locks, "y", "x", 30))

    asyncio.run(main())
    (ring,) = caught
    assert ring.startswith("deadlock: ")


def test_a_slow_holder_is_no_deadlock() -> None:
    """Another thread of the holder's process waits for what this one holds; the holder itself waits for nothing."""
    url = fresh_url()
    with fairlock.connect(url, owner="one") as one, fairlock.connect(url, owner="two") as two:
        held = two.lock("y").acquire()
        other = threading.Thread(target=lambda: two.lock("x").acquire().release())
        with one.lock("x"):
            other.start()
            with pytest.raises(LockTimeout) as caught, one.lock("y").hold(timeout=0.3):
                pass
        other.join()
        held.release()
    assert caught.value.deadlock == ""
    assert "deadlock" not in str(caught.value)


def test_a_timeout_without_a_hold_reads_one_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    url = fresh_url()
    with fairlock.connect(url) as one, fairlock.connect(url) as two, one.lock("x"):
        backend = two.session.backend
        monkeypatch.setattr(backend, "looks", None)
        with pytest.raises(LockTimeout), two.lock("x").hold(timeout=0.05):
            pass
