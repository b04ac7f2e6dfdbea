"""One table of the service: rows by key, conditional on their etag.

A refusal for too many requests (429) is waited out, because nothing was done. No reply, or one that reports a fault
(5xx), is an unknown outcome of a write: the SDK sends no token by which the service could recognise it, so the caller
reads, and sends the same request again. `errors` has the sentences.

The service finds a table by its name and its compartment; without the compartment it looks into the root one, and a
query takes no OCID at all. So of a table given by OCID both are asked for once, before the first request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import oci
from oci.nosql.models import QueryDetails, UpdateRowDetails

from ...errors import LockError
from ..base import OutcomeUnknown, Runtime
from ..deadline import over
from ..jitter import jitter
from . import errors
from .url import Address

RETRY_FOR = 3.0  # seconds for which we wait while the service replies 'too many requests'
SETTLING = 1.0  # seconds for which we wait for a table that we have not seen yet: a new one is not found for a moment
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
SERVER_TIME = 4000  # milliseconds after which the service itself gives up

COLUMNS = "key STRING, score NUMBER NOT NULL DEFAULT 0, owner STRING, body JSON, PRIMARY KEY (SHARD (key))"


T = TypeVar("T")


async def together(
    runtime: Runtime, requests: Sequence[Callable[[], Awaitable[T]]]
) -> list[T | OutcomeUnknown | LockError]:
    """Send these requests at the same time: for each its result, or what it raises. The SDK knows none that is about
    several rows, and waits for each reply: so all but one are sent by threads or tasks of their own."""
    outcomes: dict[int, T | OutcomeUnknown | LockError] = {}
    failures: list[BaseException] = []
    left = list(requests)[1:]
    event = runtime.event()

    async def send(number: int) -> None:
        try:
            outcomes[number] = await requests[number]()
        except (OutcomeUnknown, LockError) as error:
            outcomes[number] = error

    async def send_beside(number: int) -> None:
        try:
            await send(number)
        except BaseException as error:
            failures.append(error)
        finally:
            left.pop()
            if not left:
                event.set()

    for number in range(1, len(requests)):
        runtime.spawn(send_beside(number), "fairlock-renewal")
    await send(0)
    if len(requests) > 1:
        await event.wait(None)
    if failures:
        raise failures[0]
    return [outcomes[number] for number in range(len(requests))]


class Kept(NamedTuple):
    """A row of the table and its etag; both None if there is none."""

    value: dict[str, Any] | None
    etag: str | None


class Table:
    def __init__(self, address: Address, runtime: Runtime) -> None:
        self.compartment = address.compartment
        self.name = address.table
        """May be an OCID until the first request."""
        self.where = address.where
        self.runtime = runtime
        self._make = address.make
        self._client: Any = None
        self._new = True  # until the service has found it, or has not found it for long enough

    async def get(self, key: str) -> Kept:
        """Return the row as it is now, whichever client wrote it."""

        def get(client: Any) -> Any:
            how = {"consistency": "ABSOLUTE", "timeout_in_ms": SERVER_TIME}
            return client.get_row(self.name, [f"key:{key}"], **how, **self._place())

        answer = await self._call(get)
        value = answer.data.value if answer.data is not None else None
        return Kept(value, answer.headers["etag"]) if value is not None else Kept(None, None)

    async def put(self, value: Mapping[str, Any], etag: str | None) -> str | Kept | None:
        """Write the row if its etag is this one (None: if there is no such row). The new etag; if it was not written,
        the row that is there, or None if the service does not show it. Raise OutcomeUnknown if no reply comes."""
        more = {"if_match": etag} if etag else {}

        def put(client: Any) -> Any:
            details = UpdateRowDetails(
                compartment_id=self.compartment, value=dict(value), is_exact_match=True, timeout_in_ms=SERVER_TIME,
                option=None if etag else "IF_ABSENT", is_get_return_row=not etag,
            )  # fmt: skip
            return client.update_row(self.name, details, **more)

        answer = await self._call(put, writes=True)
        if answer is None:
            return None
        result = answer.data
        if result.version:
            return str(result.version)
        return Kept(result.existing_value, result.existing_version) if result.existing_version else None

    async def delete(self, key: str, etag: str) -> bool:
        """Delete this row. Raise OutcomeUnknown if no reply comes."""

        def delete(client: Any) -> Any:
            how = {"if_match": etag, "timeout_in_ms": SERVER_TIME}
            return client.delete_row(self.name, [f"key:{key}"], **how, **self._place())

        answer = await self._call(delete, writes=True)
        return answer is not None and bool(answer.data.is_success)

    async def query(
        self, statement: str, variables: Mapping[str, Any], most: int | None = None
    ) -> list[dict[str, Any]]:
        """Return all rows that this finds, or the first `most`, in no order. A page may be empty and still not be the
        last."""
        found: list[dict[str, Any]] = []
        page: dict[str, Any] = {} if most is None else {"limit": most}

        def query(client: Any) -> Any:
            details = QueryDetails(
                compartment_id=self.compartment, statement=statement.format(table=self.name), consistency="ABSOLUTE",
                variables=dict(variables), timeout_in_ms=SERVER_TIME,
            )  # fmt: skip
            return client.query(details, **page)

        while True:
            answer = await self._call(query)
            found += answer.data.items or []
            token = answer.headers.get("opc-next-page")
            if not token or (most is not None and len(found) >= most):
                return found
            page["page"] = token

    async def about(self) -> Any:
        """Return what the service replies about the table itself."""
        return (await self._call(lambda client: client.get_table(self.name, **self._place()))).data

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.base_client.session.close()

    def forget(self) -> None:
        """A fork came between: the connections belong to the parent."""
        self._client = None

    def _place(self) -> dict[str, Any]:
        return {"compartment_id": self.compartment} if self.compartment else {}

    # -- requests

    async def _call(self, what: Callable[[Any], Any], writes: bool = False) -> Any:
        """Return the reply; None if the etag was another one. Raise OutcomeUnknown only for a write."""
        if self.name.startswith("ocid1."):
            ocid = self.name
            found = (await self._request(lambda client: client.get_table(ocid))).data
            self.compartment, self.name = found.compartment_id, found.name
        return await self._request(what, writes)

    async def _request(self, what: Callable[[Any], Any], writes: bool = False) -> Any:
        pause, waited = FIRST_PAUSE, 0.0
        while True:
            try:
                answer = await self.runtime.call(self._send, what)
                self._new = False
                return answer
            except oci.exceptions.ServiceError as error:
                if error.status == 412:
                    return None
                if waited >= self._retry_time(error.status) or over():
                    self._new = False
                    raise errors.refusal(self.where, error, writes, waited) from None
            except oci.exceptions.RequestException as error:
                raise errors.unreached(self.where, error, writes) from None
            except oci.exceptions.ConnectTimeout:
                raise errors.gone(self.where, "no connection in time") from None
            nap = pause * (0.5 + jitter() / 2)
            await self.runtime.sleep(nap)
            waited += nap
            pause = min(pause * 2, LONGEST_PAUSE)

    def _retry_time(self, status: int) -> float:
        """Return for how many seconds a refusal of this kind is waited out. Nothing was done, whatever it was about."""
        if status == 404 and self._new:
            return SETTLING
        return RETRY_FOR if status == 429 else 0.0

    def _send(self, what: Callable[[Any], Any]) -> Any:
        if self._client is None:
            self._client = self._make()
        return what(self._client)
