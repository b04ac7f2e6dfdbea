"""The fixtures for users do what they say, in a test of a user."""

import pytest

pytest_plugins = ["pytester"]

USER = '''
import asyncio


def test_a_client_in_memory(locks):
    with locks.lock("x") as lease:
        assert lease.held
        assert locks.lock("x").acquire(blocking=False) is None


def test_each_test_has_its_own(locks):
    assert locks.snapshot().resources == ()


def test_it_lives_by_the_clock_of_the_test(locks, manual_clock):
    lease = locks.lock("x", lease=30).acquire()
    manual_clock.advance(3600)
    assert lease.held
    manual_clock.jump(3600)
    assert lease.lost


def test_for_tasks(aio_locks):
    async def main():
        async with aio_locks.lock("x") as lease:
            assert lease.held

    asyncio.run(main())


def test_tasks_live_by_the_clock_too(aio_locks, manual_clock):
    async def main():
        lease = await aio_locks.lock("x", lease=30).acquire()
        await manual_clock.aio_advance(3600)
        assert lease.held
        manual_clock.jump(3600)
        assert lease.lost
        await aio_locks.close()

    asyncio.run(main())
'''


def test_who_loads_the_fixtures_can_test_without_a_server_and_without_sleeping(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["fairlock.testing.fixtures"]')
    pytester.makepyfile(USER)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=5)
