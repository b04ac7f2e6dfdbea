"""What goes wrong at the service, as sentences with the cure in them. Its own texts are shown where they are about our
request, and never where they are about its inside."""

from __future__ import annotations

from typing import Any

from ...errors import ConfigError, LockError, StoreError, refused
from ..base import OutcomeUnknown

FULL = {
    "RowSizeLimitExceeded": "A row has at most 512 KB there: keep less in a body, or let fewer clients wait for a name",
    "RequestSizeLimitExceeded": "A request has at most 2 MB there: keep less in the body",
    "SizeLimitExceeded": "The table is full: give it more storage",
}
KEY = "A key has at most 64 bytes there: choose a shorter name"


def refusal(where: str, error: Any, writes: bool, waited: float) -> Exception:
    """Return the exception for a reply with an error: OutcomeUnknown if a write may have been done nevertheless."""
    code = f"{error.status} {error.code}"
    if error.status >= 500:
        request = f", request {error.request_id}" if error.request_id else ""
        if writes:
            return OutcomeUnknown(code + request)
        return StoreError(f"{where} has a fault of its own ({code}{request}). It may recover by itself.")
    if error.status == 429:
        return StoreError(
            f"{where} refuses requests for {waited:.1f} s, because there are more than the table was given. "
            "Raise its read and write units, or ask less often."
        )
    if error.status in (401, 403):
        return refused(f"{where} refuses these credentials ({code}). 'fairlock schema' prints the rights.")
    if error.status == 404:
        return ConfigError(
            f"{where} is not there, or may not be seen ({code}). Make the table first: 'fairlock schema' prints how, "
            "and which rights it takes."
        )
    if error.code in FULL:
        return StoreError(f"{where} has no room for this ({code}). {FULL[error.code]}.")
    if error.code == "KeySizeLimitExceeded":
        return ConfigError(f"{where} refuses this name ({code}). {KEY}.")
    text = f"{code}: {_first_line(error.message)}"
    if error.status == 400:
        return ConfigError(
            f"{where} refuses a request as invalid ({text}). 'fairlock doctor' compares the columns of the table with "
            "those that 'fairlock schema' prints."
        )
    return StoreError(f"{where} refuses a request ({text}).")


def unreached(where: str, error: BaseException, writes: bool) -> Exception:
    """No reply. If not even a connection came about, nothing was sent."""
    inner: Any = error.args[0] if error.args else error
    cause = inner.args[0] if isinstance(inner, BaseException) and inner.args else inner
    names = f"{type(inner).__name__} {cause}"
    if "NewConnectionError" in names or "NameResolution" in names or "ConnectTimeout" in names:
        return gone(where, "no connection")
    what = "no reply in time" if "timed out" in names or "Timeout" in names else "the connection broke"
    return OutcomeUnknown(what) if writes else gone(where, what)


def gone(where: str, what: str) -> LockError:
    return StoreError(f"{where} does not reply: {what}. Is the service there, and can it be reached?")


def _first_line(message: object) -> str:
    return (str(message or "").strip().partition("\n")[0][:160]).rstrip(". ")
