"""Renewals by one script for many leases: what goes wrong in the script, at the server and on the way."""

import asyncio
from typing import Any

import pytest

import fairlock
from fairlock import aio
from fairlock.engine.run_sync import run
from fairlock.rules.locks import Granted, Renew
from fairlock.stores.base import OutcomeUnknown
from fairlock.stores.redis import encoding, send_many_renewals
from fairlock.stores.redis.lua_scripts import STEP, read
from tests.engine.test_renewals_in_batches import each_has_its_own_outcome, hold
from tests.servers.groups import Cluster
from tests.servers.server import Server

MUTANTS = [
    ("all keys are those of the first", "(i - 1) * key_count + 1, i * key_count", "1, key_count"),
    ("the keys are shifted", "(i - 1) * key_count + 1", "(i - 1) * key_count + 2"),
    ("all arguments are those of the first", "(i - 1) * arg_count + 3, i * arg_count + 2", "3, arg_count + 2"),
    ("the last argument is missing", "i * arg_count + 2", "i * arg_count + 1"),
    ("the last lease is left out", "#KEYS / key_count do", "#KEYS / key_count - 1 do"),
    ("the error of one is the error of all", "pcall(run_one, keys, args)", "true, run_one(keys, args)"),
]


def scripts_run(server: Server) -> int:
    return int(server.client.info("commandstats")["cmdstat_evalsha"]["calls"])


async def some(backend: Any, count: int = 70) -> list[tuple[str, Renew]]:
    return [(f"x{n}", Renew(f"t{n}", await hold(backend, f"x{n}", f"t{n}"))) for n in range(count)]


async def whole_scenario(backend: Any, server: Server) -> None:
    """Every kind of lease, and one that is damaged, without a second try by `call`."""
    await each_has_its_own_outcome(backend)
    calls = await some(backend, 5)
    server.call("DEL", "fairlock:{x1}")
    server.call("SET", "fairlock:{x1}", "of another type")
    steps = [backend._renewal(*call) for call in calls]
    replies = await send_many_renewals.send_many(backend, send_many_renewals.BATCH_STEP, steps)
    assert [type(reply) for reply in replies] == [int, type(None), int, int, int]
    assert (await backend.call_many(calls))[1].name == "x1"


def test_the_scenario(redis_alone: Server) -> None:
    with fairlock.connect(redis_alone.url, namespace="scenario") as locks:
        run(each_has_its_own_outcome(locks._session.backend))
    with fairlock.connect(redis_alone.url) as locks:
        run(whole_scenario(locks._session.backend, redis_alone))


@pytest.mark.parametrize("mistake, words, others", MUTANTS, ids=[mistake for mistake, *_ in MUTANTS])
def test_a_mistake_in_the_script_is_noticed(
    mistake: str, words: str, others: str, redis_alone: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = read("batch_full_steps.lua")
    assert frame.count(words) == 1

    def mutated(*names: str) -> str:
        return frame.replace(words, others) if names == ("batch_full_steps.lua",) else read(*names)

    monkeypatch.setattr(send_many_renewals, "read", mutated)
    good = send_many_renewals.BATCH_STEP
    script = send_many_renewals.BatchScript(STEP, good._key_count, good._arg_count)
    monkeypatch.setattr(send_many_renewals, "BATCH_STEP", script)

    with fairlock.connect(redis_alone.url) as locks, pytest.raises((AssertionError, ValueError, AttributeError)):
        run(whole_scenario(locks._session.backend, redis_alone))


@pytest.mark.parametrize("namespace", ["", "a %namespace{"])
@pytest.mark.parametrize("name", ["x", "é{%}" * 10])
def test_what_is_packed_at_once_is_the_same(redis_alone: Server, name: str, namespace: str) -> None:
    with fairlock.connect(redis_alone.url, namespace=namespace) as locks:
        backend: Any = locks._session.backend
        plain = Renew("t", 0), Renew("é" * 16, 10**15)
        for command in (*plain, Renew("t", None), Renew("t", 7, 2), Renew("t", 7, None, 9)):
            for _ in range(2):  # the second time from what is kept
                step = backend._renewal(name, command)
                assert step.keys == encoding.pack_args(*encoding.keys(namespace, name))
                assert step.args == encoding.pack_args(*encoding.message_args(command))


def test_each_script_of_a_message_has_32_leases(redis_alone: Server) -> None:
    async def work(backend: Any) -> None:
        calls = await some(backend, 128)
        await backend.call_many(calls)
        before = scripts_run(redis_alone)
        outcomes = await backend.call_many(calls)
        assert all(isinstance(outcome.reply, Granted) for outcome in outcomes)
        assert scripts_run(redis_alone) - before == 4

    with fairlock.connect(redis_alone.url) as locks:
        run(work(locks._session.backend))


def test_a_server_that_has_forgotten_the_scripts_gets_them_again(redis_alone: Server) -> None:
    async def work(backend: Any) -> None:
        calls = await some(backend)
        redis_alone.call("SCRIPT", "FLUSH")
        assert all(isinstance(outcome.reply, Granted) for outcome in await backend.call_many(calls))

    with fairlock.connect(redis_alone.url) as locks:
        run(work(locks._session.backend))

    async def main() -> None:
        async with aio.connect(redis_alone.url) as locks:
            await work(locks._session.backend)

    asyncio.run(main())


def test_a_server_of_a_cluster_that_hangs_delays_the_others_only_once(redis_cluster: Cluster) -> None:
    """Its own renewals are unknown and are repeated. The leases at other servers are renewed without a pause."""

    async def work(backend: Any) -> None:
        calls = await some(backend, 60)
        assert all(isinstance(outcome.reply, Granted) for outcome in await backend.call_many(calls))
        hangs = backend.topology.node(backend.commands_for("x0").slot)
        real = hangs.request
        asked = 0

        async def request(payload: bytes, replies: int) -> Any:
            nonlocal asked
            asked += 1
            raise OutcomeUnknown("no reply came in time")

        hangs.request = request
        try:
            for _ in range(3):
                for (name, _), outcome in zip(calls, await backend.call_many(calls), strict=True):
                    there = backend.topology.node(backend.commands_for(name).slot) is hangs
                    assert isinstance(outcome, OutcomeUnknown) if there else isinstance(outcome.reply, Granted)
            assert asked == 1
        finally:
            hangs.request = real
        backend.silent.clear()
        assert all(isinstance(outcome.reply, Granted) for outcome in await backend.call_many(calls))

    with fairlock.connect(redis_cluster.url) as locks:
        run(work(locks._session.backend))
