"""A fake of OCI's NoSQL service: a small HTTP server that replies to the real SDK as the real data plane did.

It is a fake, and no test that uses it proves anything about Oracle's service. What it imitates was observed on a real
data plane (Oracle NoSQL 25.3, REST 20190828); where nobody has looked, it refuses. tests/oci_nosql/test_fake.py has one
test for each line of that behaviour, and with FAIRLOCK_TEST_OCI_URL the contract runs on a real table.

    GET, PUT, DELETE /20190828/tables/TABLE/rows      one row by its key; PUT and DELETE with if-match
    GET /20190828/tables/TABLE                        what the table is
    POST /20190828/tables                             CREATE TABLE; for a moment after it the table is not found
    POST /20190828/query                              simple queries, a page at a time: see nosql_sql

A test arranges faults by `faults`: the next requests of that method meet them, one each.

    429, 500, 503      refused, nothing done          "lost"       done, and no reply
    "hang"             no reply, nothing done         "late"       no reply now, and done a moment later
    Refused(…)         refused with that code

`delay` is how many seconds every reply takes, `store_down` after how many seconds the service reports that the store
behind it is down.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar
from zlib import crc32

from . import nosql_sql as sql
from .nosql_http import INTERNALS, Handler, Http, credentials, words
from .nosql_sql import Column, Refused, invalid

COLUMNS = (
    Column("key", "STRING", nullable=False), Column("score", "NUMBER", 0, nullable=False), Column("owner", "STRING"),
    Column("body", "JSON"),
)  # fmt: skip
PARTITIONS = 7
LONGEST_KEY, LARGEST_ROW = 64, 512 * 1024
Kept = tuple[dict[str, Any], str]
"""A row and its version."""
Reply = tuple[int, dict[str, str], Any]


class FakeTable:
    def __init__(self, columns: tuple[Column, ...] = COLUMNS, *, ocid: str = "", compartment: str = "") -> None:
        self.columns = {column.name: column for column in columns}
        self.key = columns[0].name
        self.ocid = ocid
        self.compartment = compartment
        self.found_from = 0.0  # by the monotonic clock; before that it is not found
        self.rows: dict[str, Kept] = {}
        self.copies: dict[str, Kept | None] = {}
        """Each row as it was before the last write: a read may show it that accepts any copy."""

    def read(self, consistency: str | None) -> dict[str, Kept]:
        if consistency == "ABSOLUTE":
            return self.rows
        if consistency not in (None, "EVENTUAL"):
            raise invalid(f"Invalid consistency: {consistency}")
        return {key: kept for key, kept in (self.rows | self.copies).items() if kept is not None}

    def row(self, value: Any, exact: bool) -> dict[str, Any]:
        """Return the row that this value of a PUT makes."""
        if not isinstance(value, dict):
            raise invalid("value is missing, or no object")
        if self.key not in value:
            raise invalid(f"Missing primary key field: {self.key}")
        if exact and set(value) != set(self.columns):
            raise invalid(f"Not the fields of the table: {sorted(set(value) ^ set(self.columns))}")
        row = {name: column.check(value.get(name, column.default)) for name, column in self.columns.items()}
        if len(row[self.key].encode()) > LONGEST_KEY:
            raise Refused(400, "KeySizeLimitExceeded", f"Primary key size exceeded the limit of {LONGEST_KEY}")
        text = json.dumps(row, sort_keys=True)
        if len(text.encode()) > LARGEST_ROW:
            raise Refused(400, "RowSizeLimitExceeded", f"Row size exceeded the limit of {LARGEST_ROW}")
        found: dict[str, Any] = json.loads(text)
        return found

    def one_key(self, keys: list[str]) -> str:
        if len(keys) != 1:
            raise invalid(f"The primary key has one field, and {len(keys)} are given")
        column, colon, value = keys[0].partition(":")
        if not colon or column.lower() != self.key.lower():
            raise invalid(f"Unknown primary key field: {column}")
        if len(value.encode()) > LONGEST_KEY:
            raise Refused(400, "KeySizeLimitExceeded", f"Primary key size exceeded the limit of {LONGEST_KEY}")
        return value


class FakeNosql:
    """Replies until it is ended. `tables` may be changed under `mutex`; `asked` counts the requests."""

    region, compartment = "fake-region-1", "ocid1.compartment.oc1..fake"
    tenancy = "ocid1.tenancy.oc1..fake"
    page_size = 100
    delay = 0.0
    settles_in = 0.2  # seconds after CREATE TABLE in which the table is not found
    store_down: float | None = None
    _versions: ClassVar[Iterator[int]] = itertools.count(1)

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self.mutex = threading.Lock()
        self.tables: dict[str, FakeTable] = {"locks": FakeTable()}
        self.faults: dict[str, deque[int | str | Refused]] = {
            "GET": deque(), "PUT": deque(), "DELETE": deque(), "POST": deque()
        }  # fmt: skip
        self.asked: Counter[str] = Counter()
        self.now = now
        self._over = threading.Event()
        self._goes_on = threading.Event()
        self._goes_on.set()
        self._store = os.urandom(16)
        handler = type("Handler", (Handler,), {"fake": self})
        self._http = Http(("127.0.0.1", 0), handler)
        self.endpoint = f"http://127.0.0.1:{self._http.server_port}"
        self.config = folder / "oci.config"
        self.config.write_text(credentials(folder, self.region, self.tenancy))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def url(self, table: str = "locks") -> str:
        place = f"oci-nosql://{self.region}/{'' if table.startswith('ocid1.') else self.compartment}/{table}"
        return f"{place}?endpoint={self.endpoint}&config_file={self.config}"

    def client(self, **how: Any) -> Any:
        """A NosqlClient as anybody makes it."""
        import oci

        config = oci.config.from_file(str(self.config))
        return oci.nosql.NosqlClient(config, service_endpoint=self.endpoint, **how)

    def stop(self) -> None:
        """From here on it accepts connections and requests, and replies to none."""
        self._goes_on.clear()

    def cont(self) -> None:
        self._goes_on.set()

    def wait_while_stopped(self) -> None:
        self._goes_on.wait()

    def heal(self) -> None:
        self.cont()
        for waiting in self.faults.values():
            waiting.clear()
        self.now, self.page_size, self.delay, self.store_down = time.time, 100, 0.0, None

    def forget_everything(self) -> None:
        with self.mutex:
            self.tables = {"locks": FakeTable()}
        self.asked.clear()

    def end(self) -> None:
        self._over.set()
        self.cont()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def pause(self, seconds: float) -> None:
        if seconds:
            self._over.wait(seconds)

    def ocid(self, name: str) -> str:
        """The id of the table of this name."""
        return self.tables[name].ocid or f"ocid1.nosqltable.oc1.{self.region}.{sha256(name.encode()).hexdigest()[:24]}"

    # -- requests

    def answer(
        self, method: str, path: str, query: dict[str, str], keys: list[str], etag: str | None, body: Any
    ) -> Reply:
        """The status, the headers and the JSON of the reply. Raises Refused."""
        if self.store_down is not None:
            self.pause(self.store_down)
            raise Refused(500, "InternalServerError", INTERNALS)
        body = body or {}
        with self.mutex:
            match method, words(path):
                case "POST", ["20190828", "query"]:
                    return self._query(body, query)
                case "POST", ["20190828", "tables"]:
                    return self._create(body)
                case "GET", ["20190828", "tables", table]:
                    return self._about(table, query.get("compartmentId"))
                case "GET", ["20190828", "tables", table, "rows"]:
                    return self._get(self._table(table, query.get("compartmentId"))[1], query, keys)
                case "PUT", ["20190828", "tables", table, "rows"]:
                    return self._put(self._table(table, body.get("compartmentId"))[1], etag, body)
                case "DELETE", ["20190828", "tables", table, "rows"]:
                    return self._delete(self._table(table, query.get("compartmentId"))[1], etag, keys)
        raise invalid(f"Unsupported request {path}")

    def _table(self, name_or_id: str, compartment: str | None) -> tuple[str, FakeTable]:
        """By its name, whatever the case of its letters, or by its id. No compartment means the root one."""
        for name, table in self.tables.items():
            if name_or_id == self.ocid(name) or name_or_id.lower() == name.lower():
                if (compartment or self.tenancy) == (table.compartment or self.compartment):
                    if time.monotonic() >= table.found_from:
                        return name, table
        raise Refused(404, "TableNotFound", f"Table not found: {name_or_id}")

    def _about(self, name_or_id: str, compartment: str | None) -> Reply:
        self.asked["get_table"] += 1
        if name_or_id.startswith("ocid1."):  # an id says where the table is
            compartment = next(
                (t.compartment or self.compartment for n, t in self.tables.items() if self.ocid(n) == name_or_id), None
            )
        name, table = self._table(name_or_id, compartment)
        columns = [
            {"name": c.name, "type": c.type, "isNullable": c.nullable,
             "defaultValue": None if c.default is None else str(c.default)}
            for c in table.columns.values()
        ]  # fmt: skip
        return 200, {}, {
            "id": self.ocid(name), "name": name, "compartmentId": table.compartment or self.compartment,
            "lifecycleState": "ACTIVE",
            "schema": {"columns": columns, "primaryKey": [table.key], "shardKey": [table.key], "ttl": 0},
            "tableLimits": {"maxReadUnits": 50, "maxWriteUnits": 50, "maxStorageInGBs": 1,
                            "capacityMode": "PROVISIONED"},
        }  # fmt: skip

    def _create(self, body: dict[str, Any]) -> Reply:
        if missing := {"name", "compartmentId", "ddlStatement", "tableLimits"} - set(body):
            raise invalid(f"{sorted(missing)} may not be null")
        name, columns, gently = sql.create(body["ddlStatement"])
        if name.lower() != str(body["name"]).lower():
            raise invalid(f"The statement is about {name}, the request about {body['name']}")
        if any(name.lower() == each.lower() for each in self.tables):
            if not gently:
                raise Refused(409, "TableAlreadyExists", f"Table {name} already exists")
        else:
            self.tables[name] = FakeTable(columns, compartment=body["compartmentId"])
            self.tables[name].found_from = time.monotonic() + self.settles_in
        return 202, {"opc-work-request-id": "ocid1.nosqltableworkrequest.fake"}, None

    def _get(self, table: FakeTable, query: dict[str, str], keys: list[str]) -> Reply:
        kept = table.read(query.get("consistency")).get(table.one_key(keys))
        return (200, {}, {"value": None}) if kept is None else (200, {"etag": kept[1]}, {"value": kept[0]})

    def _put(self, table: FakeTable, etag: str | None, body: dict[str, Any]) -> Reply:
        option = body.get("option")
        if option not in (None, "IF_ABSENT", "IF_PRESENT"):
            raise invalid(f"Unknown option: {option}")
        row = table.row(body.get("value"), bool(body.get("isExactMatch")))
        key = row[table.key]
        kept = table.rows.get(key)
        if etag is not None:  # counts for more than the option
            self._check(kept, etag)
        elif option == "IF_ABSENT" and kept is not None:
            shown = {"existingValue": kept[0], "existingVersion": kept[1]} if body.get("isGetReturnRow") else {}
            return 200, {}, {"version": None, **shown}
        elif option == "IF_PRESENT" and kept is None:
            return 200, {}, {"version": None}
        version = self._version()
        table.copies[key] = kept
        table.rows[key] = row, version
        return 200, {"etag": version}, {"version": version}

    def _version(self) -> str:
        return base64.b64encode(self._store + next(self._versions).to_bytes(8)).decode()

    def edit(self, key: str, /, **change: Any) -> None:
        """Change columns of a row of the table of locks, as a person at a console does."""
        with self.mutex:
            rows = self.tables["locks"].rows
            rows[key] = {**rows[key][0], **change}, self._version()

    def _delete(self, table: FakeTable, etag: str | None, keys: list[str]) -> Reply:
        key = table.one_key(keys)
        kept = table.rows.get(key)
        if etag is not None:
            self._check(kept, etag)
        if kept is not None:
            del table.rows[key]
            table.copies[key] = kept
        return 200, {}, {"isSuccess": kept is not None}

    def _check(self, kept: Kept | None, etag: str) -> None:
        try:
            version = base64.b64decode(etag, validate=True)
        except ValueError:
            raise invalid("Invalid if-match: no base64") from None
        if len(version) != 24 or version[:16] != self._store:
            raise invalid("Invalid if-match: no version")
        if kept is None or kept[1] != etag:
            raise Refused(412, "ETagMismatch", "The version does not match the existing row or the row is not present.")

    def _query(self, body: dict[str, Any], query: dict[str, str]) -> Reply:
        if not body.get("compartmentId") or not body.get("statement"):
            raise invalid("compartmentId and statement may not be null")
        asked = sql.query(body["statement"], body.get("variables") or {})
        table = self._table(asked.table, body["compartmentId"])[1]
        for name in {*asked.columns, *(condition[0] for condition in asked.conditions)}:
            if name not in table.columns:
                raise invalid(f"There is no column {name} in table {asked.table}")
        limit, after = _number(query.get("limit"), self.page_size), _place(query.get("page"))
        rows = table.read(body.get("consistency"))
        found = sorted((_partition(key), key) for key, (row, _) in rows.items() if asked.finds(row))
        found = [place for place in found if place > after][: min(limit, self.page_size)]
        # Where a page ends is known, and not whether anything comes behind it: the last page is an empty one.
        more = {"opc-next-page": _page(found[-1])} if found else {}
        return 200, more, {"items": [self._shown(asked, rows[key][0]) for _, key in found], "usage": {}}

    def _shown(self, asked: sql.Query, row: dict[str, Any]) -> dict[str, Any]:
        if asked.clock:
            moment = datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="milliseconds")
            return {asked.clock: moment.replace("+00:00", "Z")}
        return {name: row[name] for name in asked.columns}


def _partition(key: str) -> int:
    return crc32(key.encode()) % PARTITIONS


def _number(text: str | None, default: int) -> int:
    if text is not None and (not text.isascii() or not text.isdigit() or not int(text)):
        raise invalid(f"limit is no number: {text}")
    return int(text) if text is not None else default


def _page(place: tuple[int, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def _place(page: str | None) -> tuple[int, str]:
    if page is None:
        return -1, ""
    try:
        partition, key = json.loads(base64.urlsafe_b64decode(page))
        return int(partition), str(key)
    except (TypeError, ValueError):
        raise invalid(f"Invalid page token: {page}") from None
