"""The HTTP side of the fake of OCI's NoSQL service: requests, faults, replies, and credentials that open nothing."""

from __future__ import annotations

import json
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from .nosql_sql import Refused, invalid

if TYPE_CHECKING:
    from .fake_nosql import FakeNosql

HANGS = 60.0
LARGEST = 2 * 1024 * 1024  # bytes of a request

CODES = {
    400: "InvalidParameter", 401: "InvalidAuthorization", 403: "NotAllowed", 404: "TableNotFound",
    429: "TooManyRequests", 503: "ServiceAvailable",
}  # fmt: skip
INTERNALS = (
    "PUT: Server too busy: Problem during unmarshalling (25.3.21) on [2026-11-16 04:47:10.123 UTC] Fault class name: "
    "java.rmi.ConnectException\nRemote stack trace: oracle.kv.FaultException: Couldn't access any replication nodes of "
    "rg1 at 10.0.12.7:5021\n\tat oracle.kv.impl.api.RequestDispatcherImpl.execute(RequestDispatcherImpl.java:824)"
)
SHORT_ESCAPES = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


def as_json(value: Any) -> str:
    """As the service writes it: a control character without an escape of its own goes out raw."""
    if isinstance(value, str):
        return '"' + "".join(SHORT_ESCAPES.get(character, character) for character in value) + '"'
    if isinstance(value, dict):
        return "{" + ",".join(f"{as_json(name)}:{as_json(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(as_json, value)) + "]"
    return json.dumps(value)


class Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # the client has gone


class Handler(BaseHTTPRequestHandler):
    fake: FakeNosql
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _do(self) -> None:
        fake = self.fake
        length = int(self.headers.get("content-length") or 0)
        text = self.rfile.read(length)
        parts = urlsplit(self.path)
        fake.asked[self.command] += 1
        waiting = fake.faults[self.command]
        fault = waiting.popleft() if waiting else ""
        fake.wait_while_stopped()
        fake.pause(fake.delay / 2)
        try:
            if fault == "late":
                threading.Timer(0.3, self._late, (parts, text)).start()
            if fault in ("hang", "late"):
                fake.pause(HANGS)
                self.close_connection = True
                return
            if isinstance(fault, Refused):
                raise fault
            if isinstance(fault, int):
                message = INTERNALS if fault >= 500 else "no"
                raise Refused(fault, CODES.get(fault, "InternalServerError"), message)
            status, headers, result = self._answer(parts, text)
            if fault == "lost":
                self.close_connection = True
                return
        except Refused as no:
            status, headers, result = no.status, {}, {"code": no.code, "message": no.message}
        fake.pause(fake.delay / 2)
        self._reply(status, headers, result)

    do_GET = do_PUT = do_POST = do_DELETE = _do

    def _answer(self, parts: Any, text: bytes) -> tuple[int, dict[str, str], Any]:
        if not self.headers.get("authorization"):
            raise Refused(401, CODES[401], "Missing authorization header")
        if len(text) > LARGEST:
            raise Refused(400, "RequestSizeLimitExceeded", f"The size of request exceeded the limit of {LARGEST}")
        try:
            body = json.loads(text) if text else None
        except ValueError:
            raise Refused(400, "CannotParseRequest", "The request cannot be parsed") from None
        if body is not None and not isinstance(body, dict):
            raise invalid("The payload is no object")
        query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        keys = parse_qs(parts.query, keep_blank_values=True).get("key", [])
        return self.fake.answer(self.command, parts.path, query, keys, self.headers.get("if-match"), body)

    def _late(self, parts: Any, text: bytes) -> None:
        try:
            self._answer(parts, text)
        except Refused:
            pass

    def _reply(self, status: int, headers: dict[str, str], result: Any) -> None:
        text = as_json(result).encode() if result is not None else b""
        head = {"content-type": "application/json", "content-length": str(len(text)), "opc-request-id": "x", **headers}
        lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in head.items()), "", ""]
        self.wfile.write("\r\n".join(lines).encode() + text)  # at once, or the second half waits for the first

    def log_message(self, *args: Any) -> None:
        pass


@cache
def _private_key() -> str:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # the weakest: each client checks it again
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def credentials(folder: Path, region: str, tenancy: str) -> str:
    """A file as 'oci setup config' writes it, with a key that opens nothing."""
    (folder / "key.pem").write_text(_private_key())
    (folder / "key.pem").chmod(0o600)
    fingerprint = ":".join(["00"] * 16)
    return (
        f"[DEFAULT]\nuser=ocid1.user.oc1..fake\ntenancy={tenancy}\nfingerprint={fingerprint}\n"
        f"key_file={folder}/key.pem\nregion={region}\n"
    )


def words(path: str) -> list[str]:
    return [unquote(word) for word in path.strip("/").split("/")]
