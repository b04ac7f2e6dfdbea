"""The errors of a Redis server as sentences. None of them contains a user or a password.

There are three kinds: the server was not reached, or refused, so that nothing was done (StoreError, with `refused`
where a retry is of no use); the server does not fit the URL (ConfigError); or a request was sent and its outcome is
unknown (OutcomeUnknown: the engine repeats the request).
"""

from __future__ import annotations

import struct

from redis import exceptions

from ...errors import ConfigError, LockError, StoreError, refused
from ...rules.other_format import other_format
from .. import split_url
from ..base import OutcomeUnknown
from ..damaged_records import damaged
from .encoding import FORMAT

# The names of redis-py for error codes. Its messages come without this first word.
CODES = {
    "AuthenticationError": "NOAUTH",
    "AuthorizationError": "NOPERM",
    "NoPermissionError": "NOPERM",
    "BusyLoadingError": "LOADING",
}
NOT_NOW = {
    "LOADING": "is still loading its data. Try again in a moment",
    "BUSY": "is busy with a script that does not end. SCRIPT KILL or FUNCTION KILL on the server stops it",
    "MASTERDOWN": "is a replica that has lost its master. Give the URL of a master, or redis+sentinel://",
    "NOREPLICAS": "takes no writes because it has too few replicas (min-replicas-to-write). Start them, or lower it",
    "MISCONF": "takes no writes because it cannot save its data to disk. Its log says why: a full disk, most likely",
    "OOM": "has no memory left and takes nothing new; releases go on. Raise its maxmemory, or free some",
    "READONLY": "is a read-only replica. Give the URL of its master, or redis+sentinel://",
}
NOT_CONNECTED = (exceptions.RedisError, OSError, UnicodeError)  # raised when a connection is opened
REPLIES = (
    exceptions.AuthenticationError,
    exceptions.AuthorizationError,
    exceptions.BusyLoadingError,
    exceptions.ResponseError,
)
AGAIN = ("TRYAGAIN", "CLUSTERDOWN")  # over in a moment; the engine repeats the request a few times


def cannot_connect(where: str, error: BaseException) -> StoreError | ConfigError:
    """No usable connection could be made. Nothing was sent, so the outcome is known."""
    text = str(error)
    if isinstance(error, UnicodeError):
        return split_url.cannot_send(where, error)
    if isinstance(error, REPLIES) or "max number of clients" in text:
        return refusal(where, error)
    if isinstance(error, exceptions.InvalidResponse) or "Protocol Error" in text:
        return StoreError(f"What answers at {where} is not a Redis server. Check host and port.")
    if "CERTIFICATE" in text or "certificate" in text:
        reason = text.partition("verify failed: ")[2].partition(" (_ssl")[0].rstrip(".") or "it cannot be verified"
        return refused(
            f"{where} shows a certificate that is not trusted here ({reason}). Name who signed it: "
            "?ssl_ca_certs=/path/to/ca.pem"
        )
    secure = where.startswith("rediss")
    if secure and ("No such file" in text or "PEM" in text):
        return ConfigError(f"A file that ssl_ca_certs, ssl_certfile or ssl_keyfile names for {where} cannot be read.")
    if "SSL" in text:
        cure = "Does it speak TLS at that port? redis:// is without." if secure else "rediss:// is with TLS."
        return StoreError(f"{where} and this client do not agree about TLS. {cure}")
    is_reset = "reset by peer" in text or "closed by server" in text or isinstance(error, ConnectionResetError)
    if "connecting" not in text.lower() and is_reset:
        return StoreError(f"{where} closes the connection at once. Does it want TLS? That is rediss://.")
    if isinstance(error, exceptions.TimeoutError | TimeoutError):
        cure = "If it does not speak TLS there, use redis://." if secure else "Does it hang, or is a firewall between?"
        return StoreError(f"{where} does not reply in time. {cure}")
    return StoreError(f"{where} cannot be reached{_cause(text)}. Is it running, and can it be reached from here?")


def guide_error(where: str, error: BaseException) -> StoreError | ConfigError:
    """Return the error for a server that does not know the location of the data."""
    text = str(error)
    if "cluster support" in text:
        return ConfigError(f"{where} is one server and no Cluster. Use {where.partition('+')[0]}:// and one host.")
    if "No such master" in text:
        return StoreError(f"The sentinels of {where} know no service of this name. Check the end of the URL.")
    if "unknown command" in text.lower() and "sentinel" in text.lower():
        return ConfigError(f"{where} is no sentinel. Give the addresses of sentinels, or use redis:// and one host.")
    return refusal(where, error)


def _cause(text: str) -> str:
    known = {
        "Connection refused": "nothing listens there",
        "Connect call failed": "nothing listens there",
        "Name or service not known": "no such host",
        "nodename nor servname": "no such host",
        "Temporary failure in name resolution": "its name cannot be looked up just now",
        "No such file": "no such file",
        "Permission denied": "permission denied",
        "No route": "no route to it",
        "unreachable": "its network cannot be reached",
    }
    return next((f": {cause}" for sign, cause in known.items() if sign in text), "")


class Garbage(StoreError):
    """A script could not read its keys. Never shown: the caller knows the name and raises a better error."""

    refused = True


def error_code(error: BaseException | str) -> str:
    """Return the code of an error reply: its first word."""
    if not isinstance(error, str) and type(error).__name__ in CODES:
        return CODES[type(error).__name__]
    word = str(error).split(" ", 1)[0]
    return word if word.isupper() else "ERR"


def error_for(where: str, error: BaseException | str) -> StoreError | ConfigError | OutcomeUnknown:
    """Return the error for a reply that is one: nothing was done."""
    code = error_code(error)
    return OutcomeUnknown(f"it replies {code}") if code in AGAIN else refusal(where, error)


def raise_if_begun(error: BaseException) -> None:
    """Raise OutcomeUnknown if a script was stopped in its middle: it may be done, so it is repeated."""
    if " script: " in str(error):
        raise OutcomeUnknown("the server broke off a script")


def refusal(where: str, error: BaseException | str) -> StoreError | ConfigError:
    code, text = error_code(error), str(error)
    if code in NOT_NOW:
        return StoreError(f"{where} {NOT_NOW[code]}.")
    if code == "NOPERM" or "can't run this command" in text or "can't access" in text:
        return refused(
            f"{where} does not allow this user {_what(text)}. `fairlock schema` prints the rights that locks need."
        )
    if code == "NOSCRIPT":
        sentence = "forgets scripts at once, or does not allow this user to run SCRIPT LOAD"
        return refused(f"{where} {sentence}. `fairlock schema` prints the rights that locks need.")
    if code == "NOAUTH" and ("HELLO must" in text or "required" in text):
        return refused(f"{where} wants a password. Give it in the URL: redis://user:password@host.")
    if code in ("NOAUTH", "WRONGPASS") or "AUTH" in text:
        return refused(f"{where} does not accept this user and password. Check them in the URL.")
    if code == "DENIED":
        return refused(f"{where} is in protected mode and talks to its own machine only. Give it a password.")
    if "max number of clients" in text:
        return StoreError(f"{where} has no connection left for this client. Raise its maxclients.")
    if "DB index" in text or "SELECT is not allowed" in text:
        return ConfigError(f"{where} has no such database. Most servers have 0 to 15, a Cluster has only 0.")
    if "unknown command" in text and "HELLO" in text:
        return ConfigError(f"{where} is older than Redis 6 and does not speak RESP3. Use ?protocol=2, or a newer one.")
    if code == "FORMAT":
        found = text.partition(" ")[2]
        return Garbage(other_format(found, FORMAT) if found.isdecimal() else ValueError("values that are none"))
    if code == "WRONGTYPE" or "user_script" in text or "Error running script" in text:
        return Garbage(f"the server replies {' '.join(text.split())[:120]!r}")
    text = " ".join(text.partition(", with args")[0].split())  # it repeats what it was sent, passwords too
    return StoreError(f"{where} replied with an error: {text[:100]!r}.")


def _what(text: str) -> str:
    """Return which command, key or channel the server did not allow."""
    command = text.partition("run the '")[2].partition("'")[0]
    if command:
        return "to run " + command.upper().replace("|", " ")
    if "channel" in text:
        return "to use the channels fairlock:listener:*"
    if "key" in text:
        return "to use the keys fairlock:*"
    return "to run a command that the scripts use"


def lost(where: str, error: BaseException | None = None) -> OutcomeUnknown | StoreError | ConfigError:
    """Return the error for a request without a reply, or with one that redis-py takes for the end of the connection."""
    if isinstance(error, exceptions.BusyLoadingError | exceptions.AuthenticationError):
        return refusal(where, error)
    late = isinstance(error, exceptions.TimeoutError | TimeoutError | BlockingIOError)
    return OutcomeUnknown("no reply came in time" if late else "the connection broke")


UNREADABLE = (Garbage, TypeError, ValueError, LookupError, AttributeError, AssertionError, OverflowError, struct.error)
"""The exceptions that values of another program cause."""


def unreadable(bad: BaseException, name: str, where: str, what: str = "") -> LockError:
    """Return the error for damaged values; or `bad` itself if it is another error of ours."""
    if isinstance(bad, LockError) and not isinstance(bad, Garbage):
        return bad
    why = bad.args[0] if isinstance(bad, Garbage) else f"values that are none ({bad!r:.100})"
    return damaged(name, where, why, what)
