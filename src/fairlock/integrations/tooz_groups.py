"""tooz: groups, their members and their leader, on the pools and locks of fairlock.

    tooz:groups          a pool: the groups, an item each
    tooz:members:GROUP   a pool: the members, an item each, with the capabilities as its body. A member holds its item
    tooz:leader:GROUP    a lock: the leader holds it

A member renews its item as a holder renews its lease, so one that dies leaves its groups when its lease ends.
`run_watchers` compares the members with those of its last call, as most drivers of tooz do.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

import tooz
from tooz import coordination, utils

import fairlock
from fairlock import Item, Lease, LockError, Locks, Pool


class Ready(coordination.CoordAsyncResult):
    """The result of a call that has ended. What it raised is raised by `get`, as in tooz."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._value, self._error = None, None
        try:
            self._value = call()
        except tooz.ToozError as error:
            self._error = error
        except LockError as error:
            self._error = coordination.ToozConnectionError(str(error))

    def get(self, timeout: float | None = None) -> Any:
        if self._error is not None:
            raise self._error
        return self._value

    def done(self) -> bool:
        return True


class Groups(coordination.CoordinationDriverCachedRunWatchers):
    """Groups, members, capabilities, watchers and leaders of a coordinator."""

    def __init__(self, member_id: bytes, parsed_url: Any, options: dict[str, Any]) -> None:
        super().__init__(member_id, parsed_url, options)
        self._locks: Locks | None = None
        self._memberships: dict[str, Item] = {}
        self._terms: dict[str, Lease] = {}

    def create_group(self, group_id: bytes) -> Ready:
        def create() -> None:
            if not self._groups().add(as_text(group_id)):
                raise coordination.GroupAlreadyExist(group_id)

        return Ready(create)

    def get_groups(self) -> Ready:
        return Ready(lambda: [item.key.encode() for item in self._groups().items()])

    def delete_group(self, group_id: bytes) -> Ready:
        def delete() -> None:
            if self._living(group_id):
                raise coordination.GroupNotEmpty(group_id)
            if not self._groups().remove(as_text(group_id)):
                raise coordination.GroupNotCreated(group_id)

        return Ready(delete)

    def join_group(self, group_id: bytes, capabilities: Any = None) -> Ready:
        def join() -> None:
            self._living(group_id)  # or GroupNotCreated
            pool, key = self._members(group_id), as_text(self._member_id)
            body = _encode(capabilities)
            pool.add(key, body)
            item = pool.acquire(blocking=False, key=key)  # also what a member of this name left when it died
            if item is None:
                raise coordination.MemberAlreadyExist(group_id, self._member_id)
            item.update(body)
            self._memberships[as_text(group_id)] = item
            self._joined_groups.add(group_id)

        return Ready(join)

    def leave_group(self, group_id: bytes) -> Ready:
        def leave() -> None:
            self._living(group_id)  # or GroupNotCreated
            item = self._memberships.pop(as_text(group_id), None)
            self._joined_groups.discard(group_id)
            if item is not None and item.held:
                item.delete()
            elif not self._members(group_id).remove(as_text(self._member_id), force=True):  # another coordinator's
                raise coordination.MemberNotJoined(group_id, self._member_id)

        return Ready(leave)

    def get_members(self, group_id: bytes) -> Ready:
        return Ready(lambda: {key.encode() for key in self._living(group_id)})

    def get_member_capabilities(self, group_id: bytes, member_id: bytes) -> Ready:
        return Ready(lambda: self._capabilities(group_id, member_id))

    def get_members_with_capabilities(self, group_id: bytes) -> Ready:
        return Ready(lambda: {key.encode(): _decode(body) for key, body in self._living(group_id).items()})

    def get_member_info(self, group_id: bytes, member_id: bytes) -> Ready:
        return Ready(lambda: {"capabilities": self._capabilities(group_id, member_id)})

    def update_capabilities(self, group_id: bytes, capabilities: Any) -> Ready:
        def update() -> None:
            item = self._memberships.get(as_text(group_id))
            if item is None:
                self._living(group_id)  # or GroupNotCreated
                raise coordination.MemberNotJoined(group_id, self._member_id)
            item.update(_encode(capabilities))

        return Ready(update)

    def get_leader(self, group_id: bytes) -> Ready:
        def find() -> bytes | None:
            leader = self._client().leader(leader_lock(group_id))
            return None if leader is None else leader.owner.encode()

        return Ready(find)

    def run_elect_coordinator(self) -> None:
        for group_id in list(self._hooks_elected_leader):
            term = self._terms.get(as_text(group_id))
            if term is None or not term.held:
                term = self._client().lock(leader_lock(group_id), local_handoff=False).acquire(blocking=False)
                if term is not None:
                    self._terms[as_text(group_id)] = term
                    self._hooks_elected_leader[group_id].run(coordination.LeaderElected(group_id, self._member_id))

    def stand_down_group_leader(self, group_id: bytes) -> bool:
        term = self._terms.pop(as_text(group_id), None)
        if term is None or not term.held:
            return False
        term.release()
        return True

    def run_watchers(self, timeout: float | None = None) -> list[Any]:
        result: list[Any] = super().run_watchers(timeout)
        self.run_elect_coordinator()
        return result

    def _client(self) -> Locks:
        if self._locks is None:
            raise tooz.ToozError("Call start() first.")
        return self._locks

    def _groups(self) -> Pool:
        return self._client().pool("tooz:groups")

    def _members(self, group_id: bytes) -> Pool:
        client = self._client()
        return client.pool(fairlock.safe_name(f"tooz:members:{as_text(group_id)}"), lease=client.session.default_lease)

    def _living(self, group_id: bytes) -> dict[str, Any]:
        """Return the members with their bodies. GroupNotCreated if there is no such group."""
        if as_text(group_id) not in {item.key for item in self._groups().items()}:
            raise coordination.GroupNotCreated(group_id)
        return {item.key: item.body for item in self._members(group_id).items("taken")}

    def _capabilities(self, group_id: bytes, member_id: bytes) -> Any:
        members = self._living(group_id)
        if as_text(member_id) not in members:
            raise coordination.MemberNotJoined(group_id, member_id)
        return _decode(members[as_text(member_id)])


def leader_lock(group_id: bytes) -> str:
    return fairlock.safe_name(f"tooz:leader:{as_text(group_id)}")


def as_text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")


def _encode(capabilities: Any) -> str:
    return b64encode(utils.dumps(capabilities)).decode()


def _decode(body: str) -> Any:
    return utils.loads(b64decode(body))
