"""Several locks at once, with `lock_all`."""


import pytest

from ... import aio
from ...errors import ConfigError, LockTimeout
from ..harness import Harness
from .parametrize import Behaviours, enter_and_leave, take


class TestLockAll(Behaviours):
    async def test_all_are_held_and_all_are_left(self, harness: Harness) -> None:
        client = harness.connect()
        async with client.lock_all("b", "a", client.lock("c", note="with a note")) as leases:
            assert list(leases) == ["a", "b", "c"]
            assert all(each.held for each in leases.values())
            assert [len((await harness.resource(name)).holders) for name in "abc"] == [1, 1, 1]
        assert [(await harness.resource(name)).holders for name in "abc"] == [(), (), ()]

    async def test_two_with_crossed_names_do_not_wait_for_each_other(self, harness: Harness) -> None:
        one, two = harness.connect(), harness.connect()

        async def both(client: aio.Locks, *names: str) -> None:
            for _ in range(20):
                async with client.lock_all(*names):
                    await harness.rest()

        working = [harness.go(both(one, "a", "b")), harness.go(both(two, "b", "a"))]
        for each in working:
            await each.result(within=1)

    async def test_if_one_is_not_to_be_had_none_is_kept(self, harness: Harness) -> None:
        await take(harness.connect(owner="other").lock("b"))
        begun = harness.time()
        waiting = harness.go(enter_and_leave(harness.connect().lock_all("a", "b", "c", timeout=0.1)))
        with pytest.raises(LockTimeout, match="'b' is held by other"):
            await waiting.result(within=0.15)
        assert harness.time() - begun < 1
        assert (await harness.resource("a")).holders == ()
        assert (await harness.resource("c")).holders == ()

    async def test_one_name_twice_is_refused(self, harness: Harness) -> None:
        with pytest.raises(ConfigError, match="twice"):
            await enter_and_leave(harness.connect().lock_all("a", "b", "a"))
        assert (await harness.resource("a")).holders == ()

    async def test_what_the_body_raises_leaves_them_all(self, harness: Harness) -> None:
        with pytest.raises(ZeroDivisionError):
            async with harness.connect().lock_all("a", "b"):
                raise ZeroDivisionError
        assert (await harness.resource("a")).holders == ()
        assert (await harness.resource("b")).holders == ()
