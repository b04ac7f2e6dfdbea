"""Clients of one process with the same address and options share connections and threads, and nothing else."""

import asyncio
import gc
import os
import threading
import time
from collections.abc import Callable

import pytest

import fairlock
from fairlock import aio
from tests.machine_load import within
from tests.servers.server import until

SERVERS = ["redis_alone", "postgresql"]
MANY = [60, pytest.param(500, marks=[pytest.mark.soak, pytest.mark.timeout(300)])]
FEW = 20  # threads, and connections


class Place:
    """A server that other tests of this run use, too: what was open before this test began does not count."""

    def __init__(self, server: object) -> None:
        self.url = str(server.url)  # type: ignore[attr-defined]
        self._server = server
        gc.collect()  # clients that other tests have dropped
        self._connections_before = self._open_connections()
        self._threads_before = set(threading.enumerate())

    def _open_connections(self) -> set[int]:
        """Return the server's numbers of its connections, without those of the test itself."""
        run = getattr(self._server, "run", None)
        if run is not None:
            own = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'fairlock%%'"
            return {int(row[0]) for row in run(own)}
        return {int(each["id"]) for each in self._server.client.client_list()}  # type: ignore[attr-defined]

    def connections(self) -> int:
        """Count the connections that were opened since the test began."""
        return len(self._open_connections() - self._connections_before)

    def threads(self) -> int:
        """Count the threads of clients that were started since the test began."""
        new = set(threading.enumerate()) - self._threads_before
        return sum(thread.name.startswith("fairlock") for thread in new)


@pytest.fixture(params=SERVERS)
def place(request: pytest.FixtureRequest) -> Place:
    return Place(request.getfixturevalue(request.param))


def hold_for(many: int) -> float:
    """Return for how many seconds they hold: until all listen, in the long run until all were renewed."""
    return 1.5 if many < 100 else 8.0


@pytest.mark.parametrize("many", MANY)
def test_many_clients_of_threads_need_few_threads_and_connections(place: Place, many: int) -> None:
    clients = [fairlock.connect(place.url, lease=20) for _ in range(many)]
    leases = [client.lock(f"x{number}").acquire() for number, client in enumerate(clients)]
    came: list[object] = []
    waiter = threading.Thread(target=lambda: came.append(clients[0].lock("x1").acquire(timeout=20)))
    waiter.start()
    until(lambda: any(one.queue for one in clients[0].snapshot("x1").resources), "it waits")
    end = time.monotonic() + hold_for(many)
    while time.monotonic() < end:
        assert place.threads() <= FEW
        assert place.connections() <= FEW
        time.sleep(0.25)
    assert not [lease for lease in leases if lease is None or lease.lost]
    clients[1].close()
    waiter.join(20)
    assert came[0]
    for client in clients:
        client.close()
    until(lambda: not place.connections() and not place.threads(), "the last one closes them")


@pytest.mark.parametrize("many", MANY)
def test_many_clients_of_a_loop_need_few_connections(place: Place, many: int) -> None:
    async def main() -> None:
        clients = [aio.connect(place.url, lease=20) for _ in range(many)]
        leases = [await client.lock(f"x{number}").acquire() for number, client in enumerate(clients)]
        waiter = asyncio.create_task(clients[0].lock("x1").acquire(timeout=20))
        await asyncio.sleep(hold_for(many))
        assert place.threads() <= FEW
        assert place.connections() <= FEW
        assert not [lease for lease in leases if lease is None or lease.lost]
        await clients[1].close()
        assert await waiter
        for client in clients:
            await client.close()

    asyncio.run(main())
    until(lambda: not place.connections(), "the last one closes them")


def test_one_that_is_closed_or_dropped_does_not_disturb_another(place: Place) -> None:
    stays = fairlock.connect(place.url)
    held = stays.lock("held").acquire()
    assert held
    came: list[object] = []
    with fairlock.connect(place.url) as holder:
        lease = holder.lock("x").acquire()
        waiter = threading.Thread(target=lambda: came.append(stays.lock("x").acquire(timeout=20)))
        waiter.start()
        until(lambda: any(one.queue for one in stays.snapshot("x").resources), "it waits")
        with fairlock.connect(place.url) as other:
            assert other.lock("x").acquire(timeout=0.1) is None  # both listen
        dropped = fairlock.connect(place.url)
        dropped.ping()
        del dropped
        gc.collect()
        assert waiter.is_alive() and not came
        assert lease is not None and not lease.lost
    begun = time.monotonic()
    waiter.join(20)
    assert came[0] and time.monotonic() - begun < within(0.5, below=3)
    held.ensure_held()
    stays.close()
    until(lambda: not place.connections(), "nothing is left")


def test_clients_that_are_all_dropped_close_their_connections(place: Place) -> None:
    def use() -> None:
        clients = [fairlock.connect(place.url) for _ in range(5)]
        for number, client in enumerate(clients):
            with client.lock(f"x{number}"):
                pass
        clients[0].close()

    def is_closed() -> bool:
        gc.collect()  # again and again: the thread that renews may use a client a moment longer
        return not place.connections()

    use()
    until(is_closed, "nothing is left")


def test_loops_do_not_share(place: Place) -> None:
    """A loop that has ended takes its connections with it; one that runs beside it has others."""
    ready, end = threading.Event(), threading.Event()
    nodes: list[object] = []

    async def beside() -> None:
        async with aio.connect(place.url) as locks:
            async with locks.lock("beside"):
                nodes.append(connections_of(locks))
                ready.set()
                while not end.is_set():
                    await asyncio.sleep(0.01)

    async def main() -> None:
        async with aio.connect(place.url) as one, aio.connect(place.url) as two:
            async with one.lock("x"), two.lock("y"):
                assert connections_of(one) is connections_of(two)
                assert connections_of(one) is not nodes[0]

    thread = threading.Thread(target=asyncio.run, args=(beside(),))
    thread.start()
    assert ready.wait(20)
    asyncio.run(main())
    asyncio.run(main())
    end.set()
    thread.join(20)
    until(lambda: not place.connections(), "nothing is left")


def connections_of(client: object) -> object:
    backend = client._session.backend  # type: ignore[attr-defined]
    return getattr(backend, "store", backend)._share.of


def test_a_cancelled_task_of_one_client_does_not_disturb_another(place: Place) -> None:
    async def main() -> None:
        async with aio.connect(place.url) as one, aio.connect(place.url) as two:
            tasks = [asyncio.create_task(one.lock(f"x{n}").acquire()) for n in range(10)]
            other = asyncio.create_task(two.lock("y").acquire())
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            lease = await other
            assert lease is not None
            lease.ensure_held()

    asyncio.run(main())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_child_shares_nothing_with_its_parent(place: Place) -> None:
    with fairlock.connect(place.url) as one, fairlock.connect(place.url) as two:
        lease, kept = one.lock("x").acquire(), two.lock("y").acquire()
        assert lease and kept
        pid = os.fork()
        if not pid:
            try:
                assert one.lock("x").acquire(timeout=0) is None
                assert two.lock("z").acquire(timeout=5)
                with fairlock.connect(place.url) as three, three.lock("u"):
                    pass
                assert connections_of(one) is connections_of(two)
                os._exit(0)
            except BaseException as error:
                os.write(2, f"{type(error).__name__}: {error}\n".encode())
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        lease.release()
        kept.release()
    until(lambda: not place.connections(), "those of the child are closed, too")


def test_what_makes_a_difference_is_not_shared(place: Place) -> None:
    url = place.url
    redis = url.startswith("redis")
    others = [f"{url}/1", f"{url}?client_name=me", f"{url}?socket_timeout=3"] if redis else [f"{url}?timeout=3"]
    clients = [fairlock.connect(each) for each in (url, *others)]
    clients.append(fairlock.connect(url, socket_timeout=4) if redis else fairlock.connect(url, skew=1))
    assert len({id(connections_of(client)) for client in clients}) == len(clients)
    same = fairlock.connect(url, namespace="n", owner="o", lease=5, on_event=lambda event: None)
    assert connections_of(same) is connections_of(clients[0])
    for client in [*clients, same]:
        client.close()


def test_a_client_of_asyncio_made_before_its_loop_has_its_own() -> None:
    make: Callable[[], aio.Locks] = lambda: aio.connect("redis://127.0.0.1:1")  # noqa: E731
    one, two = make(), make()
    assert connections_of(one) is not connections_of(two)
