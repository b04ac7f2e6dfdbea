"""Where a slot lives: at the one server, at the one that Sentinel names, or at one of a cluster's.

The rest of the backend says `node(slot)` and does not know which of these it is. redis-py knows the way: it asks the
sentinels with every new connection, and it reads the map of a cluster; we only ask it to do so again when a server
says that we are wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from redis import exceptions

from .trouble import cannot_connect

MakeNode = Callable[[Callable[[], Any], str], Any]  # from what makes connections, and the name, to a node


class Node(Protocol):
    where: str
    breaks: int

    async def talk(self, payload: bytes, replies: int) -> list[Any]: ...

    async def drop(self) -> None: ...

    def forget(self) -> None: ...

    async def close(self) -> None: ...


class Atlas(Protocol):
    many: bool
    """Slots live on different servers."""
    moves: bool
    """Another server may take over: who cannot be reached may be somewhere else in a moment."""

    def node(self, slot: int) -> Any:
        """LookupError if that has to be learnt first."""

    def named(self, name: str) -> Any:
        """The server 'host:port'. LookupError if that has to be learnt first."""

    def moved(self, slot: int, name: str) -> None: ...

    @property
    def breaks(self) -> int:
        """How often a connection broke, or the responsible server was looked up anew."""

    async def learn(self) -> None:
        """Find out anew. BackendError if nobody can be asked."""

    def nodes(self) -> list[Any]: ...

    async def close(self) -> None: ...

    def forget(self) -> None: ...


class OneServer:
    many = False

    def __init__(self, node: Any, sentinel: Any = None, keep: Any = None) -> None:
        self.moves = sentinel is not None
        self._node = node
        self._sentinel = sentinel
        self._keep = keep  # a client of redis-py, whose connections know it by a weak reference only

    def node(self, slot: int) -> Any:
        return self._node

    def named(self, name: str) -> Any:
        return self._node

    def moved(self, slot: int, name: str) -> None:
        pass

    @property
    def breaks(self) -> int:
        return int(self._node.breaks)

    async def learn(self) -> None:
        await self._node.drop()

    def nodes(self) -> list[Any]:
        return [self._node]

    async def close(self) -> None:
        await self._node.close()
        for guide in self._sentinel.sentinels if self.moves else ():
            closing = guide.connection_pool.disconnect()
            if closing is not None:
                await closing

    def forget(self) -> None:
        self._node.forget()


class Cluster:
    many = moves = True

    def __init__(
        self,
        where: str,
        client: Callable[[], Any],
        blocking: bool,
        make_node: MakeNode,
        arrange: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> None:
        self._where = where
        self._open = client
        self._blocking = blocking
        self._make_node = make_node
        self._arrange = arrange
        self._client: Any = None
        self._nodes: dict[str, Any] = {}
        self._moved: dict[int, str] = {}
        self._learnt = 0

    @property
    def breaks(self) -> int:
        return int(sum(node.breaks for node in self._nodes.values())) + self._learnt

    def node(self, slot: int) -> Any:
        if not self._learnt:
            raise LookupError
        name = self._moved.get(slot)
        return self.named(self._client.nodes_manager.slots_cache[slot][0].name if name is None else name)

    def named(self, name: str) -> Any:
        found = self._nodes.get(name)
        if found is None:
            one = None if self._client is None else self._client.get_node(node_name=name)
            if one is None:
                raise LookupError
            found = self._nodes.setdefault(name, self._make_node(self._maker(one), f"{self._where} ({name})"))
        return found

    def _maker(self, one: Any) -> Callable[[], Any]:
        if self._blocking:
            pool = self._client.get_redis_connection(one).connection_pool
            kind, arguments = pool.connection_class, self._arrange(pool.connection_kwargs)
        else:
            kind, arguments = one.connection_class, self._arrange(one.connection_kwargs)
        return lambda: kind(**arguments)

    def moved(self, slot: int, name: str) -> None:
        self._moved[slot] = name

    async def learn(self) -> None:
        try:
            if self._client is None:
                self._client = self._open()  # redis-py's client for threads asks at once
            elif self._blocking:
                self._client.nodes_manager.initialize()
            if not self._blocking:
                await self._client.nodes_manager.initialize()
            await self._hang_up()
        except (exceptions.RedisError, OSError) as error:
            raise cannot_connect(self._where, getattr(error, "__cause__", None) or error) from None
        self._learnt += 1
        self._moved.clear()
        gone = [name for name in self._nodes if self._client.get_node(node_name=name) is None]
        for name in gone:
            node = self._nodes.pop(name)
            self._learnt += node.breaks
            await node.close()

    def nodes(self) -> list[Any]:
        """The servers that somebody has asked for already."""
        return list(self._nodes.values())

    async def close(self) -> None:
        for node in self._nodes.values():
            await node.close()
        if self._client is not None:
            await self._hang_up()

    async def _hang_up(self) -> None:
        """redis-py has asked for the map on connections of its own, which nobody needs now."""
        if self._blocking:
            self._client.close()
        else:
            await self._client.nodes_manager.aclose("startup_nodes")
            await self._client.nodes_manager.aclose("nodes_cache")

    def forget(self) -> None:
        for node in self._nodes.values():
            node.forget()
