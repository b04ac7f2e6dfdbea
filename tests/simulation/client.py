"""A client in the world: a process with a real session, and the errands that its visitors run.

An errand is what a program does: ask for the lock, work under it, write to what it protects, give it back. The parts
that the two faces do (withdraw on any exception, shielded) are done here in the same way.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.simulation.engine_under_test import EngineUnderTest
from tests.simulation.invariants import Stay, Witness
from tests.simulation.network import Wire
from tests.simulation.world import Cancelled, Process, SimRuntime, Task, Violation, World

EXCLUSIVE = 2**31 - 1


class Client:
    def __init__(
        self, world: World, engine: EngineUnderTest, witness: Witness, store: Any, name: str, **clock: float
    ) -> None:
        self.world = world
        self.engine = engine
        self.witness = witness
        self.process = Process(world, name, **clock)
        self.runtime = SimRuntime(self.process)
        self.backend = store.client(self.process)
        self.events: list[Any] = []
        self.session = engine.session.Session(self.backend, self.runtime, name, self.events.append)
        self.session._prefix = name.ljust(18, "-")
        self.session.passed_on = True  # tickets do not show threads: the hash of one differs from run to run
        self.ledger_wire = Wire(world)
        self.slack = store.slack
        self.going: set[str] = set()  # being released
        self.asking: dict[Any, None] = {}  # the holds of those who wait
        witness.clients.append(self)
        store.witness = witness

    def request(
        self, name: str = "x", weight: int = EXCLUSIVE, capacity: int = EXCLUSIVE, lease: float = 4.0, **more: Any
    ) -> Any:
        return self.engine.request.LockRequest(name, capacity, weight, lease, **more)

    def start(self, work: Any, name: str = "visitor") -> Task:
        return self.process.start(work, name)

    def tickets(self) -> set[str]:
        """Every ticket that this client knows of."""
        waiting = {hold._grant.ticket for hold in self.asking}
        return (
            waiting
            | {grant.ticket for grant in self.session.grants.values()}
            | self.session.pending_releases.keys()
            | self.going
        )

    # -- the parts of an errand

    async def get(self, request: Any, limit: float | None = None, reentrant: bool = False) -> Stay | None:
        """Ask, as the faces do. None: not in time. Whatever is raised, nothing is left behind."""
        asked = self.world.now
        task = self.process.current
        assert task is not None
        hold = self.session.hold(self.session, request, task)
        self.asking[hold] = None
        try:
            had = await self._exchange(hold, limit, reentrant)
        except GeneratorExit:
            raise  # a crash: nothing more is done
        except BaseException as error:
            self.world.note(self.process.name, f"asks no longer: {error!r}")
            await self.runtime.shield(self.engine.with_block.undo(self.session, hold))
            self._in_time(asked, limit)
            raise
        finally:
            self.asking.pop(hold, None)
        self._in_time(asked, limit)
        if not had:
            self.world.note(self.process.name, "did not get it in time")
            return None
        return self.witness.got(self, hold, request.capacity, asked)

    async def _exchange(self, hold: Any, limit: float | None, reentrant: bool) -> bool:
        """Begin, one exchange with the store, finish; then wait if that is needed: as a thread does."""
        session, engine = self.session, self.engine
        if reentrant:
            return await engine.with_block.get(session, hold, limit, True)  # type: ignore[no-any-return]
        until = session.clock() + limit if limit else None
        message = engine.acquire.begin_acquire(session, hold, limit == 0)
        answer = None
        if message is not None:
            try:
                answer = self.backend.call_nowait(hold.name, message)
            except (engine.base.OutcomeUnknown, engine.errors.StoreError):
                pass
            else:
                if answer is None:
                    hold._grant.doubtful = False
                elif engine.acquire.finish_acquire(session, hold, answer):
                    return True
        return await engine.acquire.acquire(session, hold, until, limit == 0, answer)  # type: ignore[no-any-return]

    async def let_go(self, hold: Any) -> None:
        session, engine = self.session, self.engine
        message = None
        if hold._grant.state is engine.grant_state.HELD:
            message = engine.release.begin_release(session, hold)
            if message is None:
                return
            try:
                answer = self.backend.call_nowait(hold.name, message)
            except (engine.base.OutcomeUnknown, engine.errors.StoreError):
                await self.runtime.shield(engine.release.release(session, hold, False, message, True))
                return
            if answer is not None:
                engine.release.finish_release(session, hold, answer)
                return
        await self.runtime.shield(engine.release.release(session, hold, False, message))

    def _in_time(self, asked: float, limit: float | None) -> None:
        """Every acquire ends: with its time-out, plus what a silent store costs."""
        spent = (self.world.now - asked) * self.process.rate
        if limit is not None and self.process.thawed < asked and spent > limit + self.slack(limit == 0):
            raise Violation(f"{self.process.name} asked for {limit} s and got its answer after {spent:.2f} s")

    async def give_back(self, stay: Stay) -> None:
        """Release, with a few tries. A loss that cannot have been one is a violation."""
        sound = stay.believed
        if sound and stay.seen_lost:
            raise Violation(f"lost and then held again: {stay}")
        self.witness.gives_back(stay)
        self.going.add(stay.hold.ticket)
        try:
            await self._release(stay, sound, self.witness.must_be_told(stay))
        finally:
            self.going.discard(stay.hold.ticket)

    async def _release(self, stay: Stay, sound: bool, taken: bool) -> None:
        self.world.note(self.process.name, "gives back the fence {}", stay.fence)
        for _ in range(4):
            try:
                await self.let_go(stay.hold)
                if taken:
                    raise Violation(f"somebody had it meanwhile, and it was not told: {stay}")
                return
            except self.engine.errors.LeaseLost as loss:
                self.lost(stay, loss)
                sound = sound and self.process.clock() < stay.grant.deadline
                if sound and loss.reason == "expired" and not self.witness.excused and not self.witness.evicted:
                    raise Violation(f"told that it had been lost, which it was not: {stay}: {loss}") from loss
                return
            except self.engine.errors.StoreError:
                await self.runtime.sleep(0.3)

    def lost(self, stay: Stay, loss: Any = "") -> None:
        self.world.note(self.process.name, f"lost the fence {stay.fence}: {stay.grant.reason} {loss}")
        if self.witness.calm and stay.grant.reason != "max_hold":
            raise Violation(f"lost in fine weather: {stay}: {stay.grant.reason or loss}")

    async def work(self, stay: Stay, seconds: float) -> None:
        """Hold it for this time, writing now and then while it is held. A write takes its time to arrive."""
        ledger = self.witness.ledger(stay.name)
        end = self.process.clock() + seconds
        while True:
            if not stay.hold.held:
                stay.seen_lost = True
                self.lost(stay)
                await self.runtime.sleep(seconds / 3)
                return
            if stay.grant.weight == stay.capacity:
                self.ledger_wire.carry(partial(ledger.write, stay), "", "a write under the fence {}", stay.fence)
            rest = end - self.process.clock()
            if rest <= 0:
                return
            await self.runtime.sleep(min(rest, seconds / 3 + 0.0001))

    async def errand(self, request: Any, limit: float | None, seconds: float, doing: Any = None) -> Stay | None:
        """Acquire, work, release. None: it was not acquired. doing: something to do with it instead of work."""
        stay = None
        try:
            stay = await self.get(request, limit)
            if stay is not None:
                await (self.work if doing is None else doing)(stay, seconds)
        except self.engine.errors.LockError as error:
            if self.witness.calm and (stay is None or stay.grant.reason != "max_hold"):
                raise Violation(f"in fine weather: {error!r}") from error
        except Cancelled:
            if stay is None:
                return None
        if stay is not None and not stay.given_back:
            await self.give_back(stay)
        return stay
