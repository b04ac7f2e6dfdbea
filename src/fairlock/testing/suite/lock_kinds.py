"""Kinds of lock: which can be held together, how many slots there are, and what happens when that changes."""

import pytest

from ...errors import AlreadyHeld, ConfigError
from ..faults import Faults
from ..harness import Harness
from .parametrize import Behaviours, enter_and_leave, take


class TestReadersAndWriters(Behaviours):
    async def test_readers_go_in_beside_each_other(self, harness: Harness) -> None:
        readers = [await take(harness.connect().rwlock("x").read()) for _ in range(4)]
        assert all(each.held for each in readers)
        assert (await harness.resource("x")).kind == "rwlock"

    async def test_a_lock_and_a_writer_and_readers_of_one_name_exclude_each_other(self, harness: Harness) -> None:
        one, two = harness.connect(), harness.connect()
        for holder in (one.lock("x"), one.rwlock("x").write()):
            async with holder:
                assert await two.lock("x").acquire(False) is None
                assert await two.rwlock("x").write().acquire(False) is None
                assert await two.rwlock("x").read().acquire(False) is None
        async with one.rwlock("x").read():
            assert await two.lock("x").acquire(False) is None
            assert await two.rwlock("x").write().acquire(False) is None
            await enter_and_leave(two.rwlock("x").read())

    @pytest.mark.parametrize("of_one_client", [False, True])
    async def test_a_waiting_writer_is_not_starved_by_readers(self, harness: Harness, of_one_client: bool) -> None:
        client = harness.connect()
        reader = await take(client.rwlock("x").read())
        writer = await harness.queue_up(take(harness.connect().rwlock("x").write()))
        late = await harness.queue_up(take((client if of_one_client else harness.connect()).rwlock("x").read()), 2)
        await reader.release()
        holders = await writer.result()
        assert not late.done
        await holders.release()
        assert (await late.result()).held

    async def test_one_reader_that_falls_silent_is_not_kept_alive_by_the_others(self, harness: Harness) -> None:
        faults = Faults()
        silent = harness.connect(lease=0.5, faults=faults, owner="silent")
        await take(silent.rwlock("x").read())
        living = await take(harness.connect(lease=2, owner="living").rwlock("x").read())
        faults.cut = True
        await harness.pass_time(0.8)
        await living.release()
        assert await harness.connect().lock("x").acquire(False)

    async def test_a_writer_becomes_a_reader_without_letting_a_writer_in(self, harness: Harness) -> None:
        lease = await take(harness.connect().rwlock("x").write())
        writer = await harness.queue_up(take(harness.connect().lock("x")))
        await lease.downgrade()
        assert lease.held
        await harness.pass_time(0.05)
        assert not writer.done
        await lease.release()
        assert (await writer.result()).held

    async def test_after_a_downgrade_readers_come_in(self, harness: Harness) -> None:
        lease = await take(harness.connect().rwlock("x").write())
        reader = await harness.queue_up(take(harness.connect().rwlock("x").read()))
        await lease.downgrade()
        assert (await reader.result()).held
        assert lease.held
        assert await harness.connect().lock("x").acquire(False) is None

    async def test_a_downgrade_ends_the_passing_on(self, harness: Harness) -> None:
        client = harness.connect()
        lease = await take(client.rwlock("x").write())
        waiting = harness.go(take(client.rwlock("x").write()))
        await harness.pass_time(0.02)
        await lease.downgrade()
        await harness.in_queue("x", 1)
        assert not waiting.done
        await lease.release()
        assert (await waiting.result()).fence > lease.fence


class TestSlots(Behaviours):
    async def test_as_many_as_there_are_slots_go_in(self, harness: Harness) -> None:
        leases = [await take(harness.connect().semaphore("x", 3)) for _ in range(3)]
        other = harness.connect().semaphore("x", 3)
        assert await other.acquire(False) is None
        assert len({each.fence for each in leases}) == 3
        await leases[1].release()
        assert await other.acquire(False)

    async def test_weights_add_up(self, harness: Harness) -> None:
        slots = harness.connect().semaphore("x", 5)
        async with slots.hold(weight=3):
            assert await slots.acquire(False, weight=3) is None
            async with slots.hold(weight=2):
                assert await slots.acquire(False) is None
            assert await slots.acquire(False)

    async def test_a_weight_that_can_never_fit_is_refused(self, harness: Harness) -> None:
        client = harness.connect()
        slots = client.semaphore("x", 3)
        for bad in (0, -1, 4, 1.5, "1", True):
            with pytest.raises(ConfigError, match="weight"):
                await slots.acquire(weight=bad)  # type: ignore[arg-type]
        await take(slots)
        with pytest.raises(ConfigError, match=r"'x' has 3 slots; a weight of 4 can never fit\. Use resize\('x', 4\)"):
            await client.semaphore("x", None).acquire(weight=4)

    async def test_the_number_of_slots_is_a_whole_number(self, harness: Harness) -> None:
        client = harness.connect()
        for bad in (0, -1, 2**31, 1.5, "3", True):
            with pytest.raises(ConfigError, match="slots"):
                client.semaphore("x", bad)  # type: ignore[arg-type]
            with pytest.raises(ConfigError, match="slots"):
                await client.resize("x", bad)  # type: ignore[arg-type]

    async def test_other_slots_than_those_in_use_are_refused_with_the_number(self, harness: Harness) -> None:
        lease = await take(harness.connect().semaphore("gpu", 4))
        other = harness.connect().semaphore("gpu", 8)
        with pytest.raises(ConfigError) as caught:
            await other.acquire(timeout=1)
        assert str(caught.value) == (
            "'gpu' has 4 slots and is in use; this client asks for 8. "
            "Use resize('gpu', 8), or slots=None for the stored number."
        )
        await lease.release()
        async with other:
            assert (await harness.resource("gpu")).capacity == 8

    async def test_making_an_object_changes_nothing_that_is_stored(self, harness: Harness) -> None:
        lease = await take(harness.connect().semaphore("x", 1))
        harness.connect().semaphore("x", 5)
        assert await harness.connect().semaphore("x", 1).acquire(False) is None
        assert lease.held
        assert (await harness.resource("x")).capacity == 1

    async def test_a_lock_and_a_semaphore_of_one_name_are_a_mistake_while_in_use(self, harness: Harness) -> None:
        lease = await take(harness.connect().lock("x"))
        with pytest.raises(ConfigError, match="'x' is a lock and is in use"):
            await harness.connect().semaphore("x", 2).acquire()
        await lease.release()
        async with harness.connect().semaphore("x", 2):
            with pytest.raises(ConfigError, match="'x' has 2 slots, so it is a semaphore; this client asks for a"):
                await harness.connect().lock("x").acquire()

    async def test_without_a_number_the_stored_one_counts(self, harness: Harness) -> None:
        unknown = harness.connect().semaphore("x", None)
        assert unknown.slots is None
        with pytest.raises(ConfigError, match=r"No program has .* Give it: semaphore\('x', 4\)"):
            await unknown.acquire()
        async with harness.connect().semaphore("x", 2):
            async with unknown:
                assert await unknown.acquire(False) is None

    async def test_resize_changes_the_number_while_in_use(self, harness: Harness) -> None:
        client = harness.connect()
        await take(client.semaphore("x", 1))
        waiting = await harness.queue_up(take(harness.connect().semaphore("x", 1)))
        await client.resize("x", 2)
        assert (await waiting.result()).held
        for number in (1, 2, 3):
            assert await client.semaphore("x", number).acquire(False) is None

    async def test_fewer_slots_keep_all_holders(self, harness: Harness) -> None:
        client = harness.connect()
        leases = [await take(client.semaphore("x", 3)) for _ in range(3)]
        await client.resize("x", 1)
        assert all(each.held for each in leases)
        for each in leases[:2]:
            await each.release()
            assert await client.semaphore("x", 1).acquire(False) is None
        await leases[2].release()
        assert await client.semaphore("x", 1).acquire(False)

    async def test_a_waiter_that_has_become_too_heavy_gets_an_error(self, harness: Harness) -> None:
        client = harness.connect()
        await take(client.semaphore("x", 3))
        heavy = await harness.queue_up(harness.connect().semaphore("x", 3).acquire(weight=3))
        await client.resize("x", 2)
        with pytest.raises(ConfigError, match="'x' has 2 slots"):
            await heavy.result()

    async def test_programs_go_on_with_the_number_that_an_operator_has_set(self, harness: Harness) -> None:
        program = harness.connect().semaphore("gpu", 1)
        lease = await take(program)
        await harness.connect().resize("gpu", 2)
        await lease.release()
        async with program, program:  # idle or in use
            assert await program.acquire(False) is None
            assert await harness.connect().semaphore("gpu", 5).acquire(False) is None
            assert (await harness.resource("gpu")).capacity == 2
        async with harness.connect().semaphore("gpu", None):
            assert await harness.connect().semaphore("gpu", 5).acquire(False, weight=2) is None

    async def test_no_client_waits_for_itself_after_an_operator_reduced_the_slots(self, harness: Harness) -> None:
        client = harness.connect()
        await client.resize("x", 1)
        slots = client.semaphore("x", 2)
        async with slots:
            with pytest.raises(AlreadyHeld):
                await slots.acquire()

    async def test_only_a_weight_that_never_fits_the_number_set_is_refused(self, harness: Harness) -> None:
        client = harness.connect()
        await client.resize("x", 2)
        assert await client.semaphore("x", 4).acquire(False, weight=2)
        with pytest.raises(ConfigError, match=r"'x' has 2 slots; a weight of 3 can never fit\. Use resize\('x', 4\)"):
            await client.semaphore("x", 4).acquire(False, weight=3)
        with pytest.raises(ConfigError, match=r"'x' has 2 slots, so it is a semaphore.*resize\('x', None\)"):
            await client.lock("x").acquire(False)

    async def test_a_number_that_was_set_can_be_given_back_to_the_programs(self, harness: Harness) -> None:
        client = harness.connect()
        await client.resize("x", 2)
        lease = await take(client.semaphore("x", 1))
        await client.resize("x", None)
        with pytest.raises(ConfigError, match="'x' has 2 slots and is in use; this client asks for 1"):
            await client.semaphore("x", 1).acquire(False)
        assert lease.held
        await lease.release()
        async with client.semaphore("x", 1):
            assert (await harness.resource("x")).capacity == 1

    async def test_slots_that_stay_closed_for_a_while_are_taken_when_they_open(self, harness: Harness) -> None:
        slots = harness.connect().semaphore("x", 2, at_least=0.4)
        begun = harness.time()
        starts: list[float] = []

        async def visit() -> None:
            async with slots:
                starts.append(harness.time() - begun)

        visits = [harness.go(visit(), f"visitor {number}") for number in range(5)]
        await harness.pass_time(0.9)
        for each in visits:
            await each.result()
        assert len(starts) == 5
        assert 0.79 <= max(starts) < 2.5  # after 0, 0.4 and 0.8 s, and not when the last one looks by itself

    async def test_the_slot_of_one_that_fell_silent_is_free_after_its_lease(self, harness: Harness) -> None:
        faults = Faults()
        await take(harness.connect(lease=0.5, faults=faults).semaphore("x", 2))
        faults.cut = True
        client = harness.connect()
        slots = client.semaphore("x", 2)
        await take(slots)
        assert await slots.acquire(False) is None
        await harness.pass_time(0.6)
        assert await slots.acquire(False)
        assert await slots.acquire(False) is None
