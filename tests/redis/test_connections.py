"""How much goes over the thread_connections, and over how many connections: figures that a server can be asked for."""

import asyncio
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

import fairlock
from fairlock import ConfigError, aio
from fairlock.stores.base import OutcomeUnknown
from fairlock.stores.redis.reply_reader import ReplyError
from fairlock.stores.redis.thread_connections import ThreadConnection, ThreadNode
from tests.servers.groups import Cluster, Sentinels
from tests.servers.server import Server, until


def connections(server: Server) -> int:
    return len(server.client.client_list())


def commands(server: Server) -> int:
    """Return the number of commands that our clients have sent. Those inside scripts are not sent and not counted."""
    stats = server.client.info("commandstats")
    sent = ("evalsha", "ping", "subscribe", "hello", "wait", "script|load")
    return sum(int(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"]) for name in sent)


def in_queue(locks: fairlock.Locks, name: str) -> int:
    return sum(len(r.queue) for r in locks.snapshot(name).resources)


def test_alone_a_thread_needs_one_connection_and_two_commands(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url) as locks:
        with locks.lock("x"):
            pass
        before, many = commands(redis_alone), connections(redis_alone)
        for _ in range(50):
            with locks.lock("x"):
                pass
        assert commands(redis_alone) - before == 100
        assert connections(redis_alone) == many


@pytest.mark.parametrize(
    "pieces, found",
    [
        ([b":1\r\n"], 1), ([b":17", b"9\r", b"\n"], 179), ([b"$-1\r\n"], None), ([b"$", b"-1\r\n"], None),
        ([b"_\r\n"], None), ([b"*1\r\n$5", b"00\r\n", b"x" * 500, b"\r\n"], [b"x" * 500]),
        ([b"-NOSCRIPT no\r\n"], ReplyError), ([b"-NOSCRIPT", b" " * 500 + b"\r\n"], ReplyError),
    ],
)  # fmt: skip
def test_a_reply_in_pieces_is_the_same_reply(pieces: list[bytes], found: object) -> None:
    ours, theirs = socket.socketpair()
    node = ThreadNode(lambda: None, "the server")
    node._free.append(ThreadConnection(SimpleNamespace(_sock=ours), 5.0))
    heard: list[Any] = []
    with ours, theirs:
        thread = threading.Thread(target=lambda: heard.append(node.request_one(b"PING")))
        thread.start()
        assert theirs.recv(9) == b"PING"
        for piece in pieces:
            theirs.sendall(piece)
            until(lambda: not select.select([ours], [], [], 0)[0], "it is taken in")
        thread.join(5)
    assert heard == [found] or [type(one) for one in heard] == [found]
    assert len(node._free) == 1


@pytest.mark.parametrize(
    "pieces, found",
    [
        ([b"+PONG\r\n:2\r\n"], 2), ([b"+PONG\r\n", b":2\r\n"], 2), ([b"+PO", b"NG\r\n:", b"2\r\n"], 2),
        ([b"+PONG\r\n*3\r\n:1\r\n:2\r\n", b":3\r\n"], [1, 2, 3]),
    ],
)  # fmt: skip
def test_the_reply_to_a_ping_is_left_out(pieces: list[bytes], found: object) -> None:
    ours, theirs = socket.socketpair()
    node = ThreadNode(lambda: None, "the server")
    node._free.append(ThreadConnection(SimpleNamespace(_sock=ours), 5.0))
    heard: list[Any] = []
    with ours, theirs:
        thread = threading.Thread(target=lambda: heard.append(node.request_one(b"PING", True)))
        thread.start()
        assert theirs.recv(9) == b"PING"
        for piece in pieces:
            theirs.sendall(piece)
            until(lambda: not select.select([ours], [], [], 0)[0], "it is taken in")
        thread.join(5)
    assert heard == [found]
    assert len(node._free) == 1


@pytest.mark.parametrize("error, left, breaks", [(KeyboardInterrupt(), 1, 0), (ConnectionResetError(), 0, 1)])
def test_a_ctrl_c_closes_only_its_own_connection(error: BaseException, left: int, breaks: int) -> None:
    """Its reply would be taken for the next one's. The idle ones, perhaps of other clients, are as good as before."""
    pairs = [socket.socketpair() for _ in range(2)]
    node = ThreadNode(lambda: None, "the server")
    node._count = 2
    for ours, _ in pairs:
        node._free.append(ThreadConnection(SimpleNamespace(_sock=ours, disconnect=ours.close), 5.0))

    def fails(size: int) -> bytes:
        raise error

    node._free[-1].recv = fails
    with pytest.raises((KeyboardInterrupt, OutcomeUnknown)):
        node.request_one(b"PING")
    assert (len(node._free), node._count, node.breaks) == (left, left, breaks)
    for pair in pairs:
        for end in pair:
            end.close()


@contextmanager
def crowd(size: int, wait: Callable[[], object]) -> Iterator[None]:
    threads = [threading.Thread(target=wait, daemon=True) for _ in range(size)]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)


def test_200_waiting_threads_cost_one_connection_and_a_command_a_second(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url) as holder, fairlock.connect(redis_alone.url) as locks:
        with locks.lock("y"):
            pass
        held = holder.lock("x").acquire()
        assert held is not None
        many = connections(redis_alone)
        lock = locks.lock("x")

        def wait() -> None:
            with lock:
                pass

        with crowd(200, wait):
            until(lambda: in_queue(holder, "x"), "they stand in the queue")
            time.sleep(1.5)  # by now the holder listens, too
            before, begun = commands(redis_alone), time.monotonic()
            time.sleep(3)
            rate = (commands(redis_alone) - before) / (time.monotonic() - begun)
            more = connections(redis_alone) - many
            held.release()
        assert rate <= 1.5
        assert more <= 2


def test_a_killed_listener_costs_a_waiter_at_most_a_second(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url) as holder, fairlock.connect(redis_alone.url) as locks:
        held = holder.lock("x").acquire()
        assert held is not None
        came: list[float] = []

        def wait() -> None:
            with locks.lock("x"):
                came.append(time.monotonic())

        with crowd(1, wait):
            until(lambda: in_queue(holder, "x"), "it stands in the queue")
            redis_alone.client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
            held.release()
            left = time.monotonic()
        assert came[0] - left < 1.2


def test_the_commands_of_one_turn_go_out_in_one_write(redis_alone: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[int] = []

    async def main() -> None:
        async with aio.connect(redis_alone.url) as locks:
            for _ in range(2):  # the first time opens the doors, the second makes the script known that is for many
                for lease in await asyncio.gather(*[locks.lock(f"x{i}").acquire() for i in range(40)]):
                    assert lease is not None
                    await lease.release()
            pipe: Any = locks._session.backend.topology._node.pipe  # type: ignore[attr-defined]
            write = pipe.transport.write
            monkeypatch.setattr(pipe.transport, "write", lambda data: (writes.append(len(data)), write(data)))
            got = await asyncio.gather(*[locks.lock(f"x{i}").acquire() for i in range(40)])
            assert all(got)
            assert len(writes) == 1
            assert connections(redis_alone) <= before + 2  # this one, and perhaps the listener of a holder

    before = connections(redis_alone)
    asyncio.run(main())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_child_does_not_listen_in_its_parents_place(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url) as holder, fairlock.connect(redis_alone.url) as locks:
        held = holder.lock("x").acquire()
        assert held is not None
        assert locks.lock("x").acquire(timeout=0.1) is None  # it has stood in the queue, so it listens
        listener = locks._session.backend.listener

        def listeners() -> int:
            return int(redis_alone.client.pubsub_numsub(f"fairlock:listener:{listener}")[0][1])

        assert listeners() == 1
        pid = os.fork()
        if not pid:
            time.sleep(30)
            os._exit(0)
        try:
            run = locks._session.backend.listeners.close()  # type: ignore[attr-defined]
            with pytest.raises(StopIteration):
                run.send(None)
            until(lambda: listeners() == 0, "nothing listens there any more")
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def test_more_threads_than_connections_wait_for_one(redis_alone: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairlock.stores.redis import thread_connections

    monkeypatch.setattr(thread_connections, "MOST", 4)
    before = connections(redis_alone)
    with fairlock.connect(redis_alone.url) as locks:
        names = iter(range(1000))

        def work() -> None:
            for _ in range(10):
                with locks.lock(f"x{next(names)}"):
                    pass

        with crowd(24, work):
            pass
        assert connections(redis_alone) - before <= 5


def test_nothing_is_opened_before_it_is_needed() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        for scheme in ("redis", "redis+sentinel", "redis+cluster"):
            url = f"{scheme}://127.0.0.1:{nobody.getsockname()[1]}/{'service' if 'sentinel' in scheme else ''}"
            fairlock.connect(url).close()


def test_a_slot_that_was_given_away_is_found(redis_cluster: Cluster) -> None:
    """MOVED: the client follows the redirection, and the user notices nothing."""
    with fairlock.connect(redis_cluster.url) as locks:
        with locks.lock("x") as first:
            pass
        source = redis_cluster.owner_of("fairlock:{x}")
        target = next(one for one in redis_cluster.masters if one.port != source.port)
        slot = source.call("CLUSTER", "KEYSLOT", "fairlock:{x}")
        to, of = (str(one.call("CLUSTER", "MYID"), "ascii") if isinstance(one.call("CLUSTER", "MYID"), bytes)
                  else one.call("CLUSTER", "MYID") for one in (target, source))  # fmt: skip
        target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", of)
        source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", to)
        with locks.lock("x") as asked:  # half of it has moved: ASK, TRYAGAIN
            assert asked.fence > first.fence
        keys = source.call("CLUSTER", "GETKEYSINSLOT", slot, 100)
        if keys:
            source.call("MIGRATE", "127.0.0.1", target.port, "", 0, 1000, "KEYS", *keys)
        for one in (target, source):
            one.call("CLUSTER", "SETSLOT", slot, "NODE", to)
        try:
            with locks.lock("x") as moved:
                assert moved.fence > asked.fence
        finally:
            keys = target.call("CLUSTER", "GETKEYSINSLOT", slot, 100)
            if keys:
                target.call("DEL", *keys)
            for one in (source, target):
                one.call("CLUSTER", "SETSLOT", slot, "NODE", of)


def test_in_a_cluster_the_listener_is_at_the_server_of_the_lock(redis_cluster: Cluster) -> None:
    with fairlock.connect(redis_cluster.url) as holder, fairlock.connect(redis_cluster.url) as locks:
        for name in ("a", "b", "c", "d"):
            held = holder.lock(name).acquire()
            assert held is not None
            came: list[float] = []

            def wait(name: str = name, came: list[float] = came) -> None:
                with locks.lock(name):
                    came.append(time.monotonic())

            with crowd(1, wait):
                until(lambda name=name: in_queue(holder, name), "it stands in the queue")  # type: ignore[misc]
                left = time.monotonic()
                held.release()
            assert came[0] - left < 0.5


def test_sentinels_are_asked_again_when_the_master_has_changed(redis_sentinel: Sentinels) -> None:
    with fairlock.connect(redis_sentinel.url) as locks:
        with locks.lock("x") as before:
            pass
        redis_sentinel.failover()
        end = time.monotonic() + 15
        while True:
            try:
                with locks.lock("x") as after:
                    break
            except fairlock.StoreError:
                assert time.monotonic() < end
                time.sleep(0.1)
        assert after.fence > before.fence


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ConfigError, match="min_replica"):
        fairlock.connect("redis://localhost", min_replica=1)
