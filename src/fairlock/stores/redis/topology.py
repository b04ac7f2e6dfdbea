"""The server of a slot: the single server, the one that Sentinel names, or one of a cluster.

The rest of the store calls `node(slot)` and does not know which of these it is. Sentinels and the servers of a cluster
are asked here, on our own connections, one after another until one knows.

Rejected alternative: redis-py's clients for Sentinel and Cluster. They ask all in turn with no limit to the whole,
report what they find by exceptions that are not all RedisErrors, and differ between threads and tasks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ...errors import StoreError
from ..base import OutcomeUnknown, unanswered
from .encoding import pack
from .errors import guide_error
from .reply_reader import ReplyError

T = TypeVar("T")
Place = Callable[[], dict[str, Any]]  # where to connect to, now: arguments of a connection
MakeNode = Callable[..., Any]  # from what it is called, its place, and settings of its own if any, to a node
SLOTS = pack("CLUSTER", "SLOTS")
UNNAMED = ("", "?")  # how a server is listed that does not know its own address: it is where it was asked


def connect_to(host: str, port: int | str | bytes) -> dict[str, Any]:
    """Return the arguments of a connection to this server."""
    return {"host": host, "port": int(port)}


class Topology(ABC):
    many = False
    """Whether slots are on different servers."""
    moves = False
    """Whether another server may take over: a server that cannot be reached may be replaced in a moment."""

    @abstractmethod
    def node(self, slot: int) -> Any:
        """Return the server of this slot. LookupError if it is not known: use `find`."""

    async def find(self, slot: int) -> Any:
        """Return the same, and learn it first if needed. StoreError if no server can be asked, or none has this
        slot."""
        return self.node(slot)

    @abstractmethod
    def named(self, name: str) -> Any:
        """Return the server 'host:port'."""

    def moved(self, slot: int, name: str) -> None:
        """This slot is at the server 'host:port' now."""
        return None

    @property
    def breaks(self) -> int:
        """Return how often a connection broke, or the responsible server was learnt again."""
        return int(sum(node.breaks for node in self.nodes()))

    @abstractmethod
    async def learn(self) -> None:
        """Learn the servers again. StoreError if none can be asked."""

    @abstractmethod
    def nodes(self) -> list[Any]:
        """Return the servers that are in use already."""

    def masters(self) -> list[Any]:
        """Return the servers that have slots, after any request to one of them."""
        return self.nodes()

    async def close(self) -> None:
        for node in self.nodes():
            await node.close()

    def forget(self) -> None:
        for node in self.nodes():
            node.forget()


class SingleServer(Topology):
    def __init__(self, node: Any) -> None:
        self._node = node

    def node(self, slot: int) -> Any:
        return self._node

    def named(self, name: str) -> Any:
        return self._node

    async def learn(self) -> None:
        await self._node.drop()

    def nodes(self) -> list[Any]:
        return [self._node]


class SentinelTopology(SingleServer):
    """The master that the sentinels name. They are asked at first and whenever a connection to it has broken."""

    moves = True

    def __init__(
        self,
        where: str,
        service: str,
        hosts: Iterable[tuple[str, int]],
        make_node: MakeNode,
        settings: dict[str, Any],
    ) -> None:
        self._where = where
        self._service = service
        self._guides: list[tuple[str, Any]] = []  # names and nodes; the last one that replied is asked first
        for host in hosts:
            name = f"{host[0]}:{host[1]}"
            place = connect_to(*host)
            self._guides.append((name, make_node(f"{where} ({name})", lambda place=place: place, settings)))
        self._master = connect_to("", 0)
        self._asked_at = -1  # how often a connection had broken by then
        super().__init__(make_node(where, lambda: self._master))

    def node(self, slot: int) -> Any:
        if self._asked_at != self._node.breaks:
            raise LookupError
        return self._node

    async def find(self, slot: int) -> Any:
        if self._asked_at != self._node.breaks:
            await self.learn()
        return self._node

    async def learn(self) -> None:
        question = pack("SENTINEL", "MASTER", self._service)
        name, master = await first_answer(self._where, self._guides, question, self._read)
        self._guides.sort(key=lambda guide: guide[0] != name)
        for _, guide in self._guides:
            await guide.drop()  # it is needed again only when the master has changed
        if master != self._master:
            self._master = master
            await self._node.drop()
        self._asked_at = self._node.breaks

    def _read(self, name: str, found: Any) -> tuple[str, dict[str, Any]]:
        pairs = found if isinstance(found, dict) else dict(zip(found[::2], found[1::2], strict=True))
        if {b"s_down", b"o_down"} & {*pairs[b"flags"].split(b",")}:
            raise StoreError(f"{self._where}: its master is down. The sentinels will name another one in a moment.")
        return name, connect_to(pairs[b"ip"].decode(), pairs[b"port"])

    async def close(self) -> None:
        await super().close()
        for _, guide in self._guides:
            await guide.close()

    def forget(self) -> None:
        super().forget()
        for _, guide in self._guides:
            guide.forget()


async def first_answer(
    where: str, guides: Iterable[tuple[str, Any]], question: bytes, read: Callable[[str, Any], T]
) -> T:
    """Return the reply of the first of these servers that can give one. StoreError or ConfigError if none does."""
    failed: StoreError | None = None
    for name, node in list(guides):
        try:
            found = (await node.request(question, 1))[0]
            if type(found) is ReplyError:
                raise guide_error(where, found)
            return read(name, found)
        except OutcomeUnknown as doubt:
            failed = unanswered(f"{where} ({name})", doubt)
        except StoreError as error:
            if error.refused:
                raise
            failed = error
    assert failed is not None
    raise failed


class Cluster(Topology):
    many = moves = True

    def __init__(self, where: str, hosts: tuple[tuple[str, int], ...], make_node: MakeNode) -> None:
        self._where = where
        self._hosts = hosts
        self._make_node = make_node
        self._nodes: dict[str, Any] = {}
        self._slots: list[tuple[int, int, str]] = []  # first and last slot, and the name of their master
        self._known: list[str] = []  # servers that have the map; the last one that replied is asked first
        self._at: dict[int, str] = {}  # the master of each slot that was looked up, or that has moved since
        self._learnt = 0

    @property
    def breaks(self) -> int:
        return super().breaks + self._learnt

    def node(self, slot: int) -> Any:
        name = self._at.get(slot)
        if name is None:
            name = next((name for first, last, name in self._slots if first <= slot <= last), None)
            if name is None:
                raise LookupError
            self._at[slot] = name
        return self._nodes.get(name) or self.named(name)

    async def find(self, slot: int) -> Any:
        try:
            return self.node(slot)
        except LookupError:
            await self.learn()
        try:
            return self.node(slot)
        except LookupError:
            cure = "`redis-cli --cluster check` shows what is missing"
            raise StoreError(f"{self._where}: no server of this Cluster has the slot {slot}. {cure}.") from None

    def named(self, name: str) -> Any:
        found = self._nodes.get(name)
        if found is None:
            host, _, port = name.rpartition(":")
            place = connect_to(host or self._hosts[0][0], port)
            found = self._nodes.setdefault(name, self._make_node(f"{self._where} ({name})", lambda: place))
        return found

    def moved(self, slot: int, name: str) -> None:
        self._at[slot] = name

    async def learn(self) -> None:
        given = [f"{host}:{port}" for host, port in self._hosts]
        guides = ((name, self.named(name)) for name in dict.fromkeys([*self._known, *given]))
        await self._use(*await first_answer(self._where, guides, SLOTS, lambda name, found: (name, found)))

    async def _use(self, by: str, found: list[Any]) -> None:
        """Use the map that this server has replied."""
        slots, known = [], [by]
        for first, last, *servers in found:
            names = [f"{_host(host) or by.rpartition(':')[0]}:{port}" for host, port, *_ in servers]
            slots.append((first, last, names[0]))
            known += names
        self._known = list(dict.fromkeys(known))
        self._slots = slots
        self._at = {}
        self._learnt += 1
        for name in [name for name in self._nodes if name not in known]:
            node = self._nodes.pop(name)
            self._learnt += node.breaks
            await node.close()

    def nodes(self) -> list[Any]:
        return list(self._nodes.values())

    def masters(self) -> list[Any]:
        return [self.named(name) for name in dict.fromkeys(name for _, _, name in self._slots)]

def _host(host: bytes | None) -> str:
    """Return the host in an entry of the map; '' if it is the server that was asked."""
    name = (host or b"").decode()
    return "" if name in UNNAMED else name
