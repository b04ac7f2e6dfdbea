"""The threads that run the keepers of all clients of one store: two of them, however many clients there are.

One thread, the leader, works for each client when that is due. A second one waits. If the leader has been at work for
a client for too long (a row that is locked, a server of a cluster that hangs), the second one takes over, so that the
leases of the other clients are renewed in time; then another one waits. So one slow client costs a thread, not leases.

Which clients these are, the store decides (`keeper_key`): those that share connections, or use the same file. In a
cluster each client has a thread of its own, because one server may hang while the others reply. A client with
`on_event` has one, too, because the callback runs there and may take any time. Tasks cost little: in asyncio each
client has a task of its own.

Rejected alternative: one thread for all clients of a process, whatever their stores. A store that hangs would end the
leases at another one.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from ..forks import reset_in_child
from .boot_clock import boot_clock
from .grant import NEVER

if TYPE_CHECKING:
    from ..stores.base import Runtime
    from .renewal import Keeper
    from .session import Session

LATE = 0.2  # seconds at work for one client, after which another thread takes over
MOST = 8  # threads


class _Member:
    """One client. An entry of the heap with another `due` is an old one, and ignored."""

    __slots__ = ("at_work", "called", "counted", "due", "keeper", "planned")

    def __init__(self, keeper: Keeper) -> None:
        self.keeper: Keeper | None = keeper  # None: nothing is left; a reference would keep a dropped client alive
        self.due = 0.0
        self.planned = self.at_work = self.called = self.counted = False


class _KeeperEvent:
    """The event that wakes the keeper of one client. Only the group waits for it."""

    def __init__(self, group: KeeperGroup) -> None:
        self._group = group
        self.member: _Member | None = None

    def set(self) -> None:
        if self.member is not None:
            self._group.call_leader(self.member)

    def clear(self) -> None:
        pass

    async def wait(self, timeout: float | None) -> bool:
        raise AssertionError("the group waits for all its clients")


class KeeperGroup:
    """Lock order: the mutex of a session, then the one of its group."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._mutex = runtime.mutex()
        self._leader_event = runtime.event()  # wakes the leader
        self._heap: list[tuple[float, int, _Member]] = []
        self._number = count()
        self._members = 0  # those that a thread has begun to work for; a Ctrl-C never stops the counting halfway
        self._threads = 0
        self._leader: object = None
        self._busy_since = 0.0  # when the leader went to work; 0: it waits
        self._second: object = None

    def event(self) -> _KeeperEvent:
        """Return the event of one client."""
        return _KeeperEvent(self)

    def add(self, session: Session, keeper: Keeper) -> None:
        """Work for this client from now on. Under its mutex. LockError if no thread can be started."""
        member = _Member(keeper)
        with self._mutex:
            if self._leader is None:
                me = self._leader = object()
                try:
                    session.start(self._run(me), "fairlock-keeper")
                except BaseException:
                    self._leader = None
                    raise
                self._threads += 1
            session.keeper_event.member = member  # type: ignore[attr-defined]
            self._push(member, 0.0)

    def call_leader(self, member: _Member) -> None:
        """Work for this client now."""
        with self._mutex:
            if member.at_work:
                member.called = True  # what it plans may be old already
            elif member.keeper is not None:
                self._push(member, 0.0)

    def _push(self, member: _Member, due: float) -> None:
        """Call this under the mutex."""
        if not self._heap or due < self._heap[0][0]:
            self._leader_event.set()
        member.due = due
        heappush(self._heap, (due, next(self._number), member))

    def _next_due(self) -> float:
        """Under the mutex: drop old entries, and return when the next client is due."""
        heap = self._heap
        while heap and (heap[0][2].at_work or heap[0][2].due != heap[0][0]):
            heappop(heap)
        return heap[0][0] if heap else NEVER

    def _is_needed(self) -> bool:
        """Under the mutex: return True if there is a client to work for."""
        return self._members > 0 or self._next_due() != NEVER

    async def _run(self, me: object) -> None:
        """Lead, or wait as the second thread, until this thread is no longer needed."""
        try:
            while await self._wait_as_second(me):
                await self._lead(me)
        finally:
            with self._mutex:
                self._threads -= 1
                if self._second is me:
                    self._second = None
                if self._leader is me:
                    self._leader = None
                    if self._is_needed():  # it ends by an error of one client: the others need another one
                        self._start()

    def _start(self) -> None:
        """Under the mutex: start a thread, as the leader if there is none, else as the second one."""
        me = object()
        work = self._run(me)
        try:
            self._runtime.spawn(work, "fairlock-keeper")
        except RuntimeError:
            work.close()  # there are too many threads; the next call of a client tries again
            return
        self._threads += 1
        if self._leader is None:
            self._leader = me
        else:
            self._second = me

    async def _wait_as_second(self, me: object) -> bool:
        """Wait until there is no leader, or it has been at work for too long. Return False if nothing needs this."""
        while True:
            with self._mutex:
                clock = self._runtime.clock()
                late = self._busy_since and clock - self._busy_since > LATE and self._next_due() <= clock
                if self._leader is None or late:
                    self._leader, self._busy_since = me, 0.0
                if self._leader is me:
                    if self._second is me:
                        self._second = None
                    if not self._is_needed():
                        self._leader = None
                    return self._leader is me
                if self._members < 2 or self._second not in (None, me):
                    return False
                self._second = me
            await self._runtime.sleep(LATE)

    async def _lead(self, me: object) -> None:
        """Work for each client when that is due, until another thread has taken over, or no client is left."""
        while True:
            with self._mutex:
                if self._leader is not me:
                    return
                clock = self._runtime.clock()
                due = self._next_due()
                self._busy_since = 0.0
                if not self._members and due == NEVER:
                    return
                if due <= clock:
                    member = heappop(self._heap)[2]
                    member.at_work, self._busy_since = True, clock
                    if not member.counted:
                        member.counted = True
                        self._members += 1
                    if self._members > 1 and self._second is None and self._threads < MOST:
                        self._start()
                else:
                    self._leader_event.clear()
            if due <= clock:
                await self._work(member)
            else:
                await self._leader_event.wait(None if due == NEVER else due - clock)

    async def _work(self, member: _Member) -> None:
        keeper = member.keeper
        assert keeper is not None
        try:
            if member.planned:
                await keeper.work()
            member.planned = True
            with self._mutex:
                member.called = False
            due = keeper.plan()
        except BaseException:
            keeper.fail()
            self._remove(member)
            raise
        if due is None:
            self._remove(member)
            await keeper.end()
            return
        with self._mutex:
            member.at_work = False
            self._push(member, 0.0 if member.called else due)

    def _remove(self, member: _Member) -> None:
        with self._mutex:
            member.keeper = None
            self._members -= 1
            if not self._members:
                self._leader_event.set()  # another thread may lead, and wait for one that is due


def keepers_for(session: Session) -> KeeperGroup | None:
    """Return the threads that run the keeper of this session; None if it has one of its own."""
    key, runtime = session.backend.keeper_key, session.runtime
    if key is None or not runtime.blocking or runtime.clock is not boot_clock or session.on_event is not None:
        return None
    found = _groups.get(key)
    if found is None:
        found = _groups[key] = KeeperGroup(runtime)
    return found


_groups: WeakValueDictionary[Hashable, KeeperGroup] = WeakValueDictionary()
reset_in_child(_groups.clear)  # before the sessions are reset: close_client.py is imported later
