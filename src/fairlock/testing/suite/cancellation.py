"""Cancelling a wait by an event: it ends without a lock or item, and leaves no place behind."""

import threading

import pytest

from ...errors import ConfigError
from ..harness import Harness
from .parametrize import Behaviours, Kind, PoolBehaviours, every_kind, take

WITHIN = 0.2  # seconds of the manual clock in which a cancelled wait has ended


@every_kind
class TestCancelEvent(Behaviours):
    async def test_a_wait_that_is_called_off_ends_and_leaves_no_place_behind(
        self, harness: Harness, kind: Kind
    ) -> None:
        held = await take(kind.rival(harness.connect(), "x"))
        client, cancel = harness.connect(), threading.Event()
        waiting = await harness.queue_up(kind.mine(client, "x").acquire(cancel=cancel))
        cancel.set()
        assert await waiting.result(within=WITHIN) is None
        assert (await harness.resource("x")).queue == ()
        await held.release()
        assert await kind.mine(client, "x").acquire(False)

    async def test_only_the_one_that_is_called_off_ends(self, harness: Harness, kind: Kind) -> None:
        held = await take(kind.rival(harness.connect(), "x"))
        client, cancel = harness.connect(), threading.Event()
        stays = [harness.go(take(kind.mine(client, "x")))]
        await harness.in_queue("x", 1)
        ends = harness.go(kind.mine(client, "x").acquire(cancel=cancel))
        stays.append(harness.go(take(kind.mine(client, "x"), cancel=threading.Event())))  # which is never set
        await harness.rest()
        cancel.set()
        assert await ends.result(within=WITHIN) is None
        await held.release()
        for one in stays:
            await (await one.result()).release()

    async def test_one_that_was_called_off_before_it_began_does_not_wait(self, harness: Harness, kind: Kind) -> None:
        await take(kind.rival(harness.connect(), "x"))
        cancel = threading.Event()
        cancel.set()
        assert await harness.go(kind.mine(harness.connect(), "x").acquire(cancel=cancel)).result(within=WITHIN) is None
        assert (await harness.resource("x")).queue == ()


class TestBadCancelEvent(Behaviours):
    async def test_what_has_no_is_set_is_refused(self, harness: Harness) -> None:
        with pytest.raises(ConfigError, match="cancel must be an Event"):
            await harness.connect().lock("x").acquire(cancel=5)  # type: ignore[call-overload]


class TestCancelEventOfItems(PoolBehaviours):
    async def test_a_wait_for_an_item_can_be_called_off(self, harness: Harness) -> None:
        client, cancel = harness.connect(), threading.Event()
        waiting = await harness.queue_up_for_item(client.pool("jobs").acquire(cancel=cancel))
        cancel.set()
        assert await waiting.result(within=WITHIN) is None
        await harness.workers("jobs", 0)
