"""SQL databases as a store: a row per lock, one statement per step, the server's clock.

`dialects`, `schema`, `item_statements`, `many_rows` hold the statements; `executor`, `libpq_executor` and their async
twins run them; `lock_rows` keeps the locks, `pool_items` the items of pools; `notify_listener` receives PostgreSQL's
wake-ups.
"""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from ..base import NEVER, ItemSnapshot, Pushed, RowSnapshot, Runtime
from ..shared_connections import Share
from .executor import Executor
from .lock_rows import SqlRows
from .schema import ddl
from .wait_for_wakeup import listen

if TYPE_CHECKING:
    from ..user_transaction import UserTransaction
    from .notify_listener import NotifyListener
    from .pool_items import SqlItemStore

GOODBYE = 1.0  # seconds for which closing waits for the listener to end: the server may hang
TABLES = ("fairlock_locks", "fairlock_items")


class SqlStore(SqlRows):
    scope = "machines"
    wakes_holder = True
    shares_steps = True
    longest_pauses = 0.1, 0.5
    backs_off = True  # of 64 clients that come at once, each needs 25 statements and not a hundred

    def __init__(self, share: Share[Executor], runtime: Runtime) -> None:
        super().__init__(share, runtime)
        self.skew = self.address.skew
        self._listener: NotifyListener | None = None

    @property
    def items(self) -> "SqlItemStore":
        """The items of pools."""
        from .item_statements import items_for
        from .pool_items import SqlItemStore

        return SqlItemStore(self, items_for(self.dialect))  # not kept: a cycle would keep a forgotten store alive

    # -- waiting

    def open_listener(self) -> str:
        found = self._find_listener()
        self.listener = found.name if found is not None else ""
        return self.listener

    def _find_listener(self) -> "NotifyListener | None":
        address = self.address
        direct = address.listen
        if direct is None or (self.executor.pooled and direct is address.engine.url) or self._closed:
            return None
        if self._listener is None:
            try:
                from .notify_listener import listener_at
            except ImportError:  # an Engine with another driver than psycopg: its waiters poll
                self.address = address._replace(listen=None)
                return None
            self._listener = listener_at(direct, address.timeout, self)
        return self._listener

    async def wait_for_wakeup(self, key: str, ticket: str, timeout: float, listeners: Collection[str]) -> Pushed | None:
        listener = self._find_listener()
        if listener is None:
            return await self.poll(key, ticket, timeout, self.inbox)
        return await listen(self, self.runtime, listener, key, ticket, timeout)

    def wake_here(self, tickets: Collection[str]) -> None:
        super().wake_here(tickets)
        if self._listener is not None:
            self._listener.wake_here(tickets)

    async def attend(self) -> float:
        listener = self._find_listener()
        lasted = listener.attend() if listener is not None else -1.0
        return self._clock() - lasted if lasted >= 0 else NEVER

    def take_wakeups(self, tickets: Iterable[str]) -> Collection[str]:
        return self._listener.take_wakeups(tickets) if self._listener is not None else ()

    # -- the rest

    async def lock_row(self, key: str, transaction: "UserTransaction", lease: float) -> RowSnapshot:
        from .lock_in_user_transaction import LOCK, lock_row

        return self._seen(key, *await lock_row(LOCK, self, {"v_key": key}, transaction, lease))

    async def lock_item(self, pool: str, key: str, transaction: "UserTransaction", lease: float) -> ItemSnapshot:
        from .lock_in_user_transaction import ITEM, lock_row

        (now, *row), at = await lock_row(ITEM, self, {"v_pool": pool, "v_key": key}, transaction, lease)
        return self.items.snapshot(pool, row, now, at)

    async def ping(self) -> None:
        at = self._clock()
        result = await self.call(self.dialect.time, {})
        self.sampled(result.rows[0][0], at)

    async def close(self) -> None:
        self._closed = True
        self.listener = ""
        listener, self._listener = self._listener, None
        if listener is not None:
            from .notify_listener import remove_reader

            thread = remove_reader(listener, self)
            if thread is not None:
                await self.runtime.call(thread.join, GOODBYE)
        if self._share.leave():
            await self.executor.close()

    def forked(self) -> None:
        super().forked()
        self._server.forget()
        self.listener = ""
        self._listener = None
        self._lost.clear()
        self._making = None
        self.executor.forked()

    async def doctor(self) -> list[tuple[str, str]]:
        from .doctor import examine

        return await examine(self)

    def schema(self) -> str:
        dialect = self.dialect
        lines = [f"-- {self.where}: created by the first use if the user may, else by an administrator"]
        lines += [text + ";" for text in ddl(dialect.sa, dialect.makes_if_absent)]
        lines += ["-- what the user of the program needs:"]
        user = self.address.engine.url.username or "the_user"
        lines += [f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {user};" for table in TABLES]
        lines += [line.format(table=table, user=user) for line in dialect.owned for table in TABLES]
        lines += [line.format(user=user) for line in dialect.quota]
        return "\n".join(lines)
