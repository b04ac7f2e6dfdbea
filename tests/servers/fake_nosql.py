"""A fake of OCI's NoSQL service: a small HTTP server that answers the real SDK as the real data plane was seen to do.

It is a fake, and no test that uses it proves anything about Oracle's service; what it imitates was observed there, and
with HOLDFAST_TEST_OCI_URL the same tests are played on a real one. It knows what the store needs and no more:

    GET, PUT, DELETE /20190828/tables/TABLE/rows      one row by its key; PUT and DELETE with if-match
    GET /20190828/tables/TABLE                        what the table is
    POST /20190828/query                              SELECT with simple conditions, a page at a time

and no ORDER BY without an index, no GROUP BY, no join: 400, as over there. Faults are put into its way by `faults`:
the next requests of that method meet them, one each.

    429, 500, 503      refused, nothing done          "lost"       done, and no answer
    "hang"             no answer, nothing done        "late"       no answer now, and done a moment later
"""

from __future__ import annotations

import base64
import json
import os
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COLUMNS = ("key", "score", "owner", "body")
HANGS = 60.0


class No(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        self.status, self.code, self.message = status, code, message


class FakeTable:
    def __init__(self, columns: tuple[str, ...] = COLUMNS, indexed: bool = False) -> None:
        self.columns = columns
        self.indexed = indexed
        self.rows: dict[str, tuple[dict[str, Any], str]] = {}
        self.copies: dict[str, tuple[dict[str, Any], str] | None] = {}
        """Each row as it was before the last write: what a read may show that is content with any copy."""

    def read(self, consistency: str | None) -> dict[str, tuple[dict[str, Any], str]]:
        if consistency == "ABSOLUTE":
            return self.rows
        return {key: kept for key, kept in (self.rows | self.copies).items() if kept is not None}


class FakeNosql:
    """Answers until it is ended. `tables` may be changed under `mutex`; `asked` counts the requests."""

    region, compartment = "fake-region-1", "ocid1.compartment.oc1..fake"
    page_size = 100

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self.mutex = threading.Lock()
        self.tables: dict[str, FakeTable] = {"locks": FakeTable()}
        self.faults: dict[str, deque[int | str]] = {"GET": deque(), "PUT": deque(), "DELETE": deque(), "POST": deque()}
        self.asked: Counter[str] = Counter()
        self.now = now
        self.down = False
        self._over = threading.Event()
        handler = type("Handler", (Handler,), {"fake": self})
        self._http = Http(("127.0.0.1", 0), handler)
        self.endpoint = f"http://127.0.0.1:{self._http.server_port}"
        self.config = folder / "oci.config"
        self.config.write_text(credentials(folder))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def url(self, table: str = "locks") -> str:
        place = f"oci-nosql://{self.region}/{self.compartment}/{table}"
        return f"{place}?endpoint={self.endpoint}&config_file={self.config}"

    def client(self, **how: Any) -> Any:
        """A NosqlClient as anybody makes it."""
        import oci

        config = oci.config.from_file(str(self.config))
        return oci.nosql.NosqlClient(config, service_endpoint=self.endpoint, **how)

    def heal(self) -> None:
        for waiting in self.faults.values():
            waiting.clear()
        self.now, self.page_size, self.down = time.time, 100, False

    def forget_everything(self) -> None:
        with self.mutex:
            self.tables = {"locks": FakeTable()}
        self.asked.clear()

    def end(self) -> None:
        self._over.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def pause(self, seconds: float) -> None:
        self._over.wait(seconds)

    # -- what is asked

    def answer(self, method: str, path: str, query: dict[str, list[str]], head: Any, body: Any) -> Any:
        """The status is 200, the headers and the JSON of the answer are returned. Raises No."""
        words = [unquote(word) for word in path.strip("/").split("/")]
        if words[:1] != ["20190828"] or not head.get("authorization"):
            raise No(401, "NotAuthenticated", "The required information to complete authentication was not provided.")
        with self.mutex:
            if words[1:] == ["query"] and method == "POST":
                return self._query(body, query)
            table = self.tables.get(words[2])
            if table is None:
                raise No(404, "TableNotFound", f"Table not found: {words[2]}")
            if len(words) == 3 and method == "GET":
                state = {"id": words[2], "name": words[2], "compartmentId": self.compartment}
                limits = {"maxReadUnits": 50, "maxWriteUnits": 50, "maxStorageInGBs": 1, "capacityMode": "PROVISIONED"}
                return {}, {**state, "lifecycleState": "ACTIVE", "tableLimits": limits}
            if words[3:] != ["rows"]:
                raise No(404, "NotFound", path)
            return getattr(self, f"_{method.lower()}")(table, query, head, body)

    def _get(self, table: FakeTable, query: dict[str, list[str]], head: Any, body: Any) -> Any:
        kept = table.read(query.get("consistency", [None])[0]).get(_key(query))
        if kept is None:
            return {}, {"value": None}
        return {"etag": kept[1]}, {"value": kept[0], "version": kept[1]}

    def _put(self, table: FakeTable, query: dict[str, list[str]], head: Any, body: Any) -> Any:
        value, etag = body["value"], head.get("if-match")
        unknown = [name for name in value if name not in table.columns]
        if body.get("isExactMatch") and (unknown or set(value) != set(table.columns)):
            raise No(400, "InvalidParameter", f"Not the columns of the table: {', '.join(unknown)}")
        row = {name: value.get(name) for name in table.columns}
        kept = table.rows.get(row["key"])
        if etag is not None:  # counts for more than the option
            _check(kept, etag)
        elif body.get("option") == "IF_ABSENT" and kept is not None:
            shown = {"existingValue": kept[0], "existingVersion": kept[1]} if body.get("isGetReturnRow") else {}
            return {}, {"version": None, **shown}
        elif body.get("option") == "IF_PRESENT" and kept is None:
            return {}, {"version": None}
        version = base64.b64encode(os.urandom(24)).decode()
        table.copies[row["key"]] = kept
        table.rows[row["key"]] = json.loads(json.dumps(row, sort_keys=True)), version
        return {"etag": version}, {"version": version}

    def _delete(self, table: FakeTable, query: dict[str, list[str]], head: Any, body: Any) -> Any:
        kept = table.rows.get(_key(query))
        if head.get("if-match") is not None:
            _check(kept, head["if-match"])
        if kept is not None:
            del table.rows[_key(query)]
            table.copies[_key(query)] = kept
        return {}, {"isSuccess": kept is not None}

    def _query(self, body: Any, query: dict[str, list[str]]) -> Any:
        parsed = SELECT.fullmatch(" ".join(body["statement"].split()))
        if parsed is None:
            raise No(400, "InvalidParameter", f"Error: this is not a simple query: {body['statement']}")
        table = self.tables.get(parsed["table"].strip('"'))
        if table is None:
            raise No(404, "TableNotFound", f"Table not found: {parsed['table']}")
        order, limit = parsed["order"], parsed["limit"]
        if order and not table.indexed:
            raise No(400, "InvalidParameter", "Error: ORDER BY cannot be performed because there is no index")
        where = parsed["where"].split(" AND ") if parsed["where"] else []
        conditions = [_condition(text, body.get("variables") or {}) for text in where]
        rows = [row for row, _ in table.read(body.get("consistency")).values() if all(fits(row) for fits in conditions)]
        if order:
            rows.sort(key=lambda row: row[order.removeprefix("t.")])
        rows = rows[: int(limit)] if limit else rows
        first = int(query.get("page", ["0"])[0])
        last = first + self.page_size
        shown = [self._select(parsed["what"], row) for row in rows[first:last]]
        more = {"opc-next-page": str(last)} if len(rows) >= last else {}  # a full page is never known to be the last
        return more, {"items": shown, "usage": {}}

    def _select(self, what: str, row: dict[str, Any]) -> dict[str, Any]:
        if what == "current_time() AS now":
            moment = datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="milliseconds")
            return {"now": moment.replace("+00:00", "Z")}
        return {name: row[name] for name in what.replace("t.", "").split(", ")}


SELECT = re.compile(
    r"(DECLARE [^;]+; ?(\$\w+ \w+; )*)?SELECT (?P<what>current_time\(\) AS now|t\.\w+(, t\.\w+)*) "
    r'FROM (?P<table>\w+|"[^"]+") t( WHERE (?P<where>t\.\w+ [<>=]+ \$?\w+( AND t\.\w+ [<>=]+ \$?\w+)*))?'
    r"( ORDER BY (?P<order>t\.\w+))?( LIMIT (?P<limit>\d+))?"
)
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b, ">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b,
    "<": lambda a, b: a < b, ">": lambda a, b: a > b,
}  # fmt: skip


def _condition(text: str, variables: dict[str, Any]) -> Callable[[dict[str, Any]], bool]:
    column, operator, operand = text.split(" ")
    value = variables[operand] if operand.startswith("$") else int(operand)
    return lambda row: COMPARE[operator](row[column.removeprefix("t.")], value)


def _key(query: dict[str, list[str]]) -> str:
    column, _, value = query["key"][0].partition(":")
    if column != "key":
        raise No(400, "InvalidParameter", f"Unknown primary key field: {column}")
    return value


def _check(kept: tuple[dict[str, Any], str] | None, etag: str) -> None:
    try:
        base64.b64decode(etag, validate=True)
    except ValueError:
        raise No(400, "InvalidParameter", "Invalid if-match") from None
    if kept is None or kept[1] != etag:
        raise No(412, "ETagMismatch", "The etag does not match")


class Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # whoever asked has gone


class Handler(BaseHTTPRequestHandler):
    fake: FakeNosql
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _do(self) -> None:
        fake = self.fake
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        parts = urlsplit(self.path)
        fake.asked[self.command] += 1
        fault = fake.faults[self.command].popleft() if fake.faults[self.command] else ""
        try:
            if fault == "hang":
                fake.pause(HANGS)
            if fault == "late":
                threading.Timer(0.3, self._late, (parts, body)).start()
                fake.pause(HANGS)
            if fault in ("hang", "late"):
                self.close_connection = True
                return
            if isinstance(fault, int):
                raise No(fault, {429: "TooManyRequests", 503: "ServiceUnavailable"}.get(fault, "InternalError"), "no")
            headers, told = fake.answer(self.command, parts.path, parse_qs(parts.query), self.headers, body)
            if fault == "lost":
                self.close_connection = True
                return
            self._tell(200, headers, told)
        except No as no:
            self._tell(no.status, {}, {"code": no.code, "message": no.message})

    do_GET = do_PUT = do_POST = do_DELETE = _do

    def _late(self, parts: Any, body: Any) -> None:
        try:
            self.fake.answer(self.command, parts.path, parse_qs(parts.query), self.headers, body)
        except No:
            pass

    def _tell(self, status: int, headers: dict[str, str], told: Any) -> None:
        text = json.dumps(told).encode()
        head = {"content-type": "application/json", "content-length": str(len(text)), "opc-request-id": "x", **headers}
        lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in head.items()), "", ""]
        self.wfile.write("\r\n".join(lines).encode() + text)  # at once, or the second half waits for the first

    def log_message(self, *args: Any) -> None:
        pass


@cache
def _private_key() -> str:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # the weakest: each client checks it anew
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def credentials(folder: Path) -> str:
    """A file as 'oci setup config' writes it, with a key that opens nothing."""
    (folder / "key.pem").write_text(_private_key())
    (folder / "key.pem").chmod(0o600)
    user, tenancy = "ocid1.user.oc1..fake", "ocid1.tenancy.oc1..fake"
    fingerprint = ":".join(["00"] * 16)
    return (
        f"[DEFAULT]\nuser={user}\ntenancy={tenancy}\nfingerprint={fingerprint}\nkey_file={folder}/key.pem\n"
        f"region={FakeNosql.region}\n"
    )
