"""Functions that hold a lock while they run: `guard`, and a lock as a decorator."""

from collections.abc import Iterator

import pytest

from ...errors import ConfigError
from ..harness import Harness
from .parametrize import Behaviours, take


class TestDecorating(Behaviours):
    async def test_a_guarded_function_holds_the_lock_while_it_runs(self, harness: Harness) -> None:
        client = harness.connect()

        @client.guard("order:{order}")
        async def ship(order: int, *, fast: bool = False) -> tuple[int, int]:
            return order, len((await harness.resource(f"order:{order}")).holders)

        assert await ship(42) == (42, 1)
        assert await ship(order=43, fast=True) == (43, 1)
        assert (await harness.resource("order:42")).holders == ()

    async def test_without_a_name_the_functions_own_is_taken(self, harness: Harness) -> None:
        client = harness.connect()

        @client.guard
        async def report() -> list[str]:
            return [r.name for r in (await harness.snapshot()).resources if r.holders]

        (name,) = await report()
        assert name.endswith("report")
        assert name.startswith("fairlock.testing.suite.decorators.")

    async def test_skip_does_nothing_if_it_is_taken(self, harness: Harness) -> None:
        calls: list[int] = []

        @harness.connect().guard("x", skip=True, note="skipping")
        async def work() -> int:
            calls.append(1)
            return 7

        assert await work() == 7
        lease = await take(harness.connect().lock("x"))
        assert await work() is None
        await lease.release()
        assert await work() == 7
        assert len(calls) == 2

    async def test_a_lock_decorates_too(self, harness: Harness) -> None:
        lock = harness.connect().lock("x")

        @lock
        async def work(one: int, two: int = 2) -> tuple[int, int, bool]:
            return one, two, lock.held

        assert await work(1) == (1, 2, True)
        assert not lock.held

    async def test_what_it_raises_comes_out(self, harness: Harness) -> None:
        @harness.connect().guard("x")
        async def work() -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await work()
        assert (await harness.resource("x")).holders == ()

    async def test_a_name_that_cannot_be_filled_lists_the_arguments(self, harness: Harness) -> None:
        @harness.connect().guard("order:{oder}")
        async def ship(order: int) -> None: ...

        with pytest.raises(ConfigError, match="the arguments are: order"):
            await ship(1)

    async def test_a_filled_name_is_checked_like_any_other(self, harness: Harness) -> None:
        @harness.connect().guard("{name}")
        async def work(name: str) -> None: ...

        with pytest.raises(ConfigError, match="control characters"):
            await work("a\nb")
        with pytest.raises(ConfigError, match="empty"):
            await work("")

    async def test_generators_and_bad_options_are_refused_where_they_are_written(self, harness: Harness) -> None:
        client = harness.connect()

        def generate() -> Iterator[int]:
            yield 1

        for decorate in (client.guard("x"), client.lock("x")):
            with pytest.raises(ConfigError, match="generator"):
                decorate(generate)  # type: ignore[arg-type]
        with pytest.raises(ConfigError):
            client.guard("x", lease=-1)
        with pytest.raises(TypeError):
            client.guard("x", no_such_option=1)
