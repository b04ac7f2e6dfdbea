"""What the flows ask of a backend that keeps pools, and what `CasPools` asks of a store.

Apart from `contract`, because most programs use no pool and start-up time counts.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..pool import Answered, Item, Line, Order, Take


class PoolAnswer(NamedTuple):
    reply: Answered
    at: float  # the client's clock before the request that sampled the time this reply rests on
    again: bool = False  # an earlier try may have been carried out


class Pools(Protocol):
    """What the flows use: the attribute `pools` of a backend. Each order is one step, and one round trip where the
    store can make it one."""

    async def ask(self, pool: str, order: Order) -> PoolAnswer:
        """Raises Unknown or BackendError; the same order may be sent again after either."""

    def at_once(self, pool: str, order: Order) -> PoolAnswer | None:
        """The same step, if it takes no waiting of any kind. None: it was not made, for whatever reason; ask.

        Only for threads. Raises Unknown if it was sent and no answer came.
        """

    async def changed(self, pool: str, ticket: str, timeout: float) -> None:
        """Wait until it may be worth to seek again, for a hint has come for this ticket; at most so long.

        A hint that came between the last step and this call must not be lost.
        """

    async def all(self, pool: str) -> tuple[list[Item], int]:
        """Every item, by key, and the store's time. Changes nothing."""

    async def count(self, pool: str) -> dict[str, int]:
        """How many there are of each state."""

    async def line(self, pool: str) -> Line:
        """Who waits. Changes nothing."""


class SeenItem(NamedTuple):
    """What a shelf showed: the item (None: there is none), something that tells whether it is still the same, when."""

    item: Item | None
    version: object
    now: int  # the store's clock
    at: float  # the client's clock, before the request


class PutAndLook(Protocol):
    async def __call__(self, pool: str, key: str, item: Item, seen: SeenItem, line: str) -> tuple[bool, str | None]:
        """As `put`, and what is in the line's row; who comes to it at the same moment may be overlooked."""


class Shelf(Protocol):
    """Where a store keeps the items of its pools. `pool` is complete (namespace included). Raises as `Store` does."""

    async def get(self, pool: str, key: str, settle: bool = False) -> SeenItem: ...

    async def put(self, pool: str, key: str, item: Item | None, seen: SeenItem) -> bool:
        """Write it (None: delete it) if it is still as seen, and seen.now is not ahead of the clock."""

    async def add(self, pool: str, rows: Sequence[tuple[str, str]], first: int = 0) -> int:
        """Add (key, body), in this order (`first` as in Put), where there is none of that key; how many are new."""

    async def take(self, pool: str, take: Take, line: str) -> SeenItem | None:
        """Take the one that has been due for longest, as the rules do; None if nothing is due. With the key of a line's
        row: only if nobody stands in it (its score is 0, or there is none). In one step where the store can.

        The version is of no use after this.
        """

    async def of(self, pool: str, ticket: str, span: int) -> SeenItem | None:
        """What has this ticket and is due within this span from now, but not yet."""

    async def coming(self, pool: str, span: int) -> int | None:
        """How long until the next one is due, if that is within this span."""

    async def all(self, pool: str) -> tuple[list[Item], int]: ...

    async def count(self, pool: str) -> dict[str, int]: ...

    # A shelf whose `put` compares what is in the item, and not a version, may say so:
    # by_content = True
    # Then what was taken is written again without being read, with a time of the store's `now()`.

    # A shelf that can do so in one step may also have
    # put_and_look: PutAndLook
