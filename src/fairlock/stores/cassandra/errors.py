"""What the driver raises, as sentences with the cure in them; and which of it leaves the outcome of a write unknown."""

from __future__ import annotations

from typing import Any

from cassandra import (
    AuthenticationFailed,
    DriverException,
    InvalidRequest,
    OperationTimedOut,
    ReadFailure,
    ReadTimeout,
    RequestExecutionException,
    Unauthorized,
    Unavailable,
    WriteFailure,
    WriteTimeout,
)
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.protocol import ErrorMessage, OverloadedErrorMessage

from ...errors import ConfigError, LockError, StoreError, refused

CAS_UNKNOWN = 0x1700
WRITES_MAYBE = (WriteTimeout, WriteFailure, ReadTimeout, ReadFailure, OperationTimedOut, ConnectionException)
PASSING = (*WRITES_MAYBE, OverloadedErrorMessage)  # of a read: another try may go well
DRIVERS = (DriverException, RequestExecutionException, ErrorMessage, NoHostAvailable, ConnectionException, OSError)


def is_unknown(error: BaseException) -> bool:
    """Return whether a transaction that ended with this error may have been done, or may yet be."""
    if isinstance(error, NoHostAvailable):
        return any(is_unknown(each) for each in _each(error))
    return isinstance(error, WRITES_MAYBE) or getattr(error, "code", 0) == CAS_UNKNOWN


def is_passing(error: BaseException) -> bool:
    """Return whether a read that ended with this error is worth another try."""
    if isinstance(error, NoHostAvailable):
        return any(is_passing(each) for each in _each(error))
    return isinstance(error, PASSING) or getattr(error, "code", 0) == CAS_UNKNOWN


def explain(error: BaseException, where: str, keyspace: str) -> LockError:
    """Return what went wrong there, and what to do about it."""
    errors = _each(error) if isinstance(error, NoHostAvailable) else [error]
    for each in errors:
        if isinstance(each, AuthenticationFailed):
            return refused(f"{where} refuses this user or password. Give them in the URL: cassandra://USER:PASSWORD@…")
        if isinstance(each, Unauthorized):
            cure = f"GRANT SELECT ON KEYSPACE {keyspace} TO …; GRANT MODIFY ON KEYSPACE {keyspace} TO …"
            return refused(f"{where} refuses this user ({_short(each)}). It needs: {cure}.")
        if isinstance(each, Unavailable):
            need, alive = each.required_replicas, each.alive_replicas
            return StoreError(
                f"{where} has too few replicas: {need} of a row are needed and {alive} {'is' if alive == 1 else 'are'} "
                "alive. It goes on by itself when they return."
            )
        if isinstance(each, InvalidRequest):
            return _invalid(_short(each), where, keyspace)
    names = ", ".join(sorted({_short(each) for each in errors})) or "no host"
    if "CERTIFICATE_VERIFY_FAILED" in names:
        return ConfigError(
            f"This machine does not trust the certificate of {where}. Name the file of the authority that signed it: "
            "SSL_CERT_FILE=…"
        )
    if "WRONG_VERSION_NUMBER" in names:
        return ConfigError(f"{where} does not encrypt, but ssl=true is set. Omit it, or let the node encrypt.")
    return StoreError(f"{where} does not reply ({names}). Is it there, and can it be reached?")


def _invalid(message: str, where: str, keyspace: str) -> LockError:
    text = message.lower()
    schema = f"'fairlock schema -u {where}' prints it for cqlsh"
    if "keyspace" in text and ("does not exist" in text or "not found" in text):
        return ConfigError(f"There is no keyspace {keyspace} in {where}. Make it, with three replicas: {schema}.")
    if "undefined column" not in text and ("table" in text or "columnfamily" in text):
        return ConfigError(f"There are no tables of fairlock in {where} ({message}). Make them: {schema}.")
    return ConfigError(f"The tables of fairlock in {where} are not as they should be ({message}). Compare: {schema}.")


def _each(error: Any) -> list[BaseException]:
    found = error.errors if isinstance(error.errors, dict) else {}
    return [each for each in found.values() if isinstance(each, BaseException)]


def _short(error: BaseException) -> str:
    """Return the first sentence, without what the driver puts around it."""
    text = str(getattr(error, "message", "") or error).strip().partition("\n")[0]
    if 'message="' in text:
        text = text.partition('message="')[2].rpartition('"')[0]
    return text.rstrip(".") or type(error).__name__
