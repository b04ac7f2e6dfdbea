"""One table of the service: rows by key, conditional on their etag. What the service says no with, as sentences.

A refusal for too many requests (429) is waited out, for nothing was done. No answer, or one that says that something
broke (5xx), is an unknown outcome of a write: the SDK sends no token by which the service could know it again, so the
same thing is said anew by whoever asked, after a read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import oci
from oci.nosql.models import QueryDetails, UpdateRowDetails

from ...errors import BackendError, ConfigError, LockError
from ..contract import Colour, Unknown

PATIENCE = 3.0  # seconds for which we wait while the service says 'too many requests'
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
SERVER_TIME = 4000  # milliseconds after which the service itself gives up

COLUMNS = "key STRING, score NUMBER NOT NULL, owner STRING, body JSON, PRIMARY KEY (SHARD (key))"


class Kept(NamedTuple):
    """A row of the table and its etag; both None if there is none."""

    value: dict[str, Any] | None
    etag: str | None


class Table:
    def __init__(
        self, make: Callable[[], Any], compartment: str | None, name: str, where: str, colour: Colour
    ) -> None:
        self.compartment = compartment
        self.name = name
        self.where = where
        self.colour = colour
        self._make = make
        self._client: Any = None

    async def get(self, key: str) -> Kept:
        """The row as it is now, whoever wrote it."""

        def get(client: Any) -> Any:
            return client.get_row(self.name, [f"key:{key}"], consistency="ABSOLUTE", **self._place())

        answer = await self._ask(get)
        value = answer.data.value if answer.data is not None else None
        return Kept(value, answer.headers.get("etag") or answer.data.version) if value is not None else Kept(None, None)

    async def put(self, value: Mapping[str, Any], etag: str | None) -> str | Kept | None:
        """Write the row if its etag is this one (None: if there is no such row). The new etag, and if it was not
        written: the row that is there, or None if the service does not show it. Raises Unknown."""
        details = UpdateRowDetails(
            compartment_id=self.compartment, value=dict(value), is_exact_match=True, timeout_in_ms=SERVER_TIME,
            option=None if etag else "IF_ABSENT", is_get_return_row=not etag,
        )  # fmt: skip
        more = {"if_match": etag} if etag else {}
        answer = await self._ask(lambda client: client.update_row(self.name, details, **more), writes=True)
        if answer is None:
            return None
        result = answer.data
        if result.version:
            return str(result.version)
        return Kept(result.existing_value, result.existing_version) if result.existing_version else None

    async def delete(self, key: str, etag: str) -> bool:
        """Raises Unknown."""

        def delete(client: Any) -> Any:
            return client.delete_row(self.name, [f"key:{key}"], if_match=etag, **self._place())

        answer = await self._ask(delete, writes=True)
        return answer is not None and bool(answer.data.is_success)

    async def query(
        self, statement: str, variables: Mapping[str, Any], most: int | None = None
    ) -> list[dict[str, Any]]:
        """All rows that this finds, or the first `most`. A page may be empty and still not be the last."""
        details = QueryDetails(
            compartment_id=self.compartment, statement=statement.format(table=self._quoted()), consistency="ABSOLUTE",
            variables=dict(variables), timeout_in_ms=SERVER_TIME,
        )  # fmt: skip
        found: list[dict[str, Any]] = []
        page: dict[str, Any] = {}
        while True:
            answer = await self._ask(lambda client: client.query(details, **page))  # noqa: B023
            found += answer.data.items or []
            token = answer.headers.get("opc-next-page")
            if not token or (most is not None and len(found) >= most):
                return found
            page = {"page": token}

    async def about(self) -> Any:
        """What the service tells about the table itself."""
        more = self._place()
        return (await self._ask(lambda client: client.get_table(self.name, **more))).data

    def forget(self) -> None:
        """The connections belong to somebody else: a fork came between, or this is the end."""
        self._client = None

    def _place(self) -> dict[str, Any]:
        return {"compartment_id": self.compartment} if self.compartment else {}

    def _quoted(self) -> str:
        return f'"{self.name}"' if not self.name.isidentifier() else self.name

    # -- the service says no

    async def _ask(self, what: Callable[[Any], Any], writes: bool = False) -> Any:
        """The answer; None if the etag was another one. Raises Unknown only for a write."""
        pause, waited = FIRST_PAUSE, 0.0
        while True:
            try:
                return await self.colour.call(self._say, what)
            except oci.exceptions.ServiceError as error:
                if error.status == 412:
                    return None
                if error.status != 429:
                    raise self._no(error, writes) from None
                if waited >= PATIENCE:
                    raise BackendError(
                        f"{self.where} refuses requests for {waited:.1f} s, because there are more than the table was "
                        "given. Raise its read and write units, or ask less often."
                    ) from None
            except oci.exceptions.RequestException as error:
                raise self._unreached(error, writes) from None
            except oci.exceptions.ConnectTimeout:
                raise self._gone("no connection in time") from None
            nap = pause * (0.5 + os.urandom(1)[0] / 512)
            await self.colour.sleep(nap)
            waited += nap
            pause = min(pause * 2, LONGEST_PAUSE)

    def _say(self, what: Callable[[Any], Any]) -> Any:
        if self._client is None:
            self._client = self._make()
        return what(self._client)

    def _no(self, error: Any, writes: bool) -> Exception:
        said = f"{error.status} {error.code}: {str(error.message or '').rstrip('.')}"
        if error.status >= 500:
            if writes:
                return Unknown(said)
            return BackendError(f"{self.where} has a fault of its own ({said}). It may go on by itself.")
        if error.status in (401, 403):
            no = BackendError(f"{self.where} refuses these credentials ({said}). 'holdfast schema' prints the rights.")
            no.refused = True
            return no
        if error.status == 404:
            return ConfigError(
                f"{self.where} is not there, or may not be seen ({said}). Make the table first: 'holdfast schema' "
                "prints how, and which rights it takes."
            )
        if error.status == 400:
            return ConfigError(
                f"{self.where} cannot keep locks ({said}). Its columns must be these: {COLUMNS}."
            )
        return BackendError(f"{self.where} says no: {said}.")

    def _unreached(self, error: BaseException, writes: bool) -> Exception:
        """No answer. If not even a connection came about, nothing was sent."""
        inner: Any = error.args[0] if error.args else error
        cause = inner.args[0] if isinstance(inner, BaseException) and inner.args else inner
        names = f"{type(inner).__name__} {cause}"
        if "NewConnectionError" in names or "NameResolution" in names or "ConnectTimeout" in names:
            return self._gone("no connection")
        what = "no answer in time" if "timed out" in names or "Timeout" in names else "the connection broke"
        return Unknown(what) if writes else self._gone(what)

    def _gone(self, what: str) -> LockError:
        return BackendError(f"{self.where} does not answer: {what}. Is the service there, and can it be reached?")
