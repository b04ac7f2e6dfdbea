"""Errors of a database as sentences. They never repeat a user or a password.

Three kinds: nothing was done, because the server was not reached or refused (StoreError, with `refused` where trying
again is of no use; ConfigError where the URL is wrong); nothing was done, and the statement may be repeated right away
(Conflict); or the outcome is unknown (OutcomeUnknown).
"""

from typing import Any

from ...errors import ConfigError, StoreError, refused
from .. import split_url
from ..base import OutcomeUnknown
from .dialects import Dialect

SCHEMA = "`fairlock schema` prints what an administrator has to run."


class Conflict(Exception):
    """Another client was first, or the server ended a deadlock. Nothing was done."""


class NoTable(Exception):
    """There is no such table (yet)."""


class Exists(Exception):
    """There is such a row, or such a table, already."""


def cannot_connect(dialect: Dialect, where: str, error: BaseException) -> StoreError | ConfigError:
    """No connection could be made, so nothing was sent."""
    if isinstance(error, UnicodeError):
        return split_url.cannot_send(where, error)
    text = " ".join(f"{error} {_beneath(error)}".split()).lower()
    code = dialect.code(error)
    if isinstance(error, TypeError) or "invalid connection option" in text or "invalid dsn" in text:
        return ConfigError(f"The driver of {where} does not know a parameter of the URL, or refuses its value.")
    if code in dialect.bad_login or "password authentication failed" in text or "no password supplied" in text:
        return refused(f"{where} does not accept this user and password. Check them in the URL.")
    if code in dialect.unsupported:
        return refused(f"{where}: {dialect.unsupported[code]}")
    if code in dialect.no_database or ('database "' in text and "does not exist" in text) or "no such database" in text:
        return ConfigError(f"{where}: there is no such database. Create it, or check the end of the URL.")
    if ('role "' in text and "does not exist" in text) or "no such user" in text or "sasl auth" in text:
        return refused(f"{where} does not accept this user and password. Check them in the URL.")
    if code in dialect.no_right or "permission denied for database" in text or "pg_hba.conf" in text:
        return refused(f"{where} does not allow this user to connect from here. An administrator has to allow it.")
    if code in dialect.full or "too many" in text or "remaining connection slots" in text:
        return StoreError(f"{where} has no connection left for this client. Raise its limit, or use a pooler.")
    if code in dialect.starting or "starting up" in text or "shutting down" in text or "recovery mode" in text:
        return StoreError(f"{where} is just starting or stopping. Try again in a moment.")
    if "queuepool limit" in text:
        return StoreError(f"All connections of this client to {where} are busy, for seconds. Does the server hang?")
    if "timeout" in text or dialect.is_late(error):
        return StoreError(f"{where} does not reply in time. Does it hang, or is a firewall between?")
    if "ssl" in text or "certificate" in text:
        return StoreError(f"{where} and this client do not agree about TLS. See sslmode or ssl_ca of its driver.")
    return StoreError(f"{where} cannot be reached{_cause(text)}. Is it running, and can it be reached from here?")


def _beneath(error: BaseException) -> str:
    """Return the text of the causes: some drivers do not repeat it."""
    known = error.__cause__ or error.__context__
    return f"{known} {known.__cause__ or known.__context__ or ''}" if known is not None else ""


def _cause(text: str) -> str:
    known = {
        "connection refused": "nothing listens there", "errno 111": "nothing listens there",
        "name or service not known": "no such host", "failed to resolve": "no such host",
        "nodename nor servname": "no such host", "temporary failure": "its name cannot be looked up just now",
        "no such file": "no such file", "no route": "no route to it", "unreachable": "its network cannot be reached",
        "closed the connection": "it closed the connection", "cannot connect to server": "the pooler does not reach it",
    }  # fmt: skip
    return next((f": {cause}" for sign, cause in known.items() if sign in text), "")


def is_over(dialect: Dialect, error: BaseException) -> bool:
    """Return whether the connection is unusable after this error."""
    code = dialect.code(error)
    if code is None or not isinstance(error, Exception):
        return True
    return isinstance(code, str) and code[:2] in ("08", "57") and code != "57014"


def explain_failure(dialect: Dialect, where: str, error: BaseException) -> Exception:
    """Return the error for a statement that failed or got no reply."""
    code: Any = dialect.code(error)
    if code is None:
        return OutcomeUnknown("no reply came in time" if dialect.is_late(error) else "the connection broke")
    if is_over(dialect, error):
        return OutcomeUnknown("the connection broke")
    if code in dialect.conflict:
        return Conflict()
    if code in dialect.exists:
        return Exists()
    if code in dialect.no_table:
        return NoTable()
    if code in dialect.no_right:
        return refused(f"{where} does not allow this user to use or create the tables of fairlock. {SCHEMA}")
    if code in dialect.no_database:
        return ConfigError(f"{where}: there is no such database or schema. Create it, or check the end of the URL.")
    if code in dialect.no_room:
        return refused(f"{where} gives this user no room for rows. Its administrator sets a quota. {SCHEMA}")
    if code in dialect.read_only:
        return refused(f"{where} takes no writes: a replica, or set to read only. Give the URL of the primary.")
    if code in dialect.full:
        return StoreError(f"{where} has no connection left for this client. Raise its limit, or use a pooler.")
    if code in dialect.starting:
        return StoreError(f"{where} is just starting or stopping. Try again in a moment.")
    return StoreError(f"{where} replied with an error ({code}). Its log says more; {SCHEMA}")
