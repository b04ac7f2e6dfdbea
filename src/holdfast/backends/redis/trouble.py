"""What can go wrong with a Redis server, said in sentences. Nothing here repeats a user or a password.

Three kinds, by what is known: the server was not reached, or said no, so that nothing has happened (BackendError, with
`refused` where trying again is of no use); it makes no sense with what the URL says (ConfigError); or a question was
sent and nobody knows what became of it (Unknown, and the flows say the same again).
"""

from __future__ import annotations

from redis import exceptions

from ...errors import BackendError, ConfigError, LockError
from ..contract import Unknown
from ..damage import damaged

# How redis-py calls what a server said. Its messages come without this first word.
CODES = {
    "AuthenticationError": "NOAUTH",
    "AuthorizationError": "NOPERM",
    "NoPermissionError": "NOPERM",
    "BusyLoadingError": "LOADING",
    "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY",
    "NoScriptError": "NOSCRIPT",
    "TryAgainError": "TRYAGAIN",
    "ClusterDownError": "CLUSTERDOWN",
    "ClusterCrossSlotError": "CROSSSLOT",
    "MasterDownError": "MASTERDOWN",
    "AskError": "ASK",
    "MovedError": "MOVED",
}
NOT_NOW = {
    "LOADING": "is still loading its data. Try again in a moment",
    "BUSY": "is busy with a script that does not end. SCRIPT KILL or FUNCTION KILL on the server stops it",
    "MASTERDOWN": "is a replica that has lost its master. Give the URL of a master, or redis+sentinel://",
    "NOREPLICAS": "takes no writes, for it has too few replicas (min-replicas-to-write). Start them, or lower it",
    "MISCONF": "takes no writes, for it cannot save its data to disk. Its log says why: a full disk, most likely",
    "OOM": "has no memory left and takes nothing new; releases go on. Raise its maxmemory, or free some",
    "READONLY": "is a read-only replica. Give the URL of its master, or redis+sentinel://",
}
AGAIN = ("TRYAGAIN", "CLUSTERDOWN")  # over in a moment; the flows say it again, a few times


def cannot_connect(where: str, error: BaseException) -> BackendError | ConfigError:
    """No connection could be made, or not one that lets us talk. Nothing was sent, so the outcome is known."""
    text = str(error)
    if isinstance(error, exceptions.AuthenticationError | exceptions.ResponseError | exceptions.BusyLoadingError):
        return refusal(where, error)
    if isinstance(error, exceptions.AuthorizationError) or "max number of clients" in text:
        return refusal(where, error)
    if isinstance(error, exceptions.InvalidResponse) or "Protocol Error" in text:
        return BackendError(f"What answers at {where} is not a Redis server. Check host and port.")
    if _about_certificates(error):
        return _refused(
            f"{where} shows a certificate that is not trusted here ({_certificate(text)}). Name who signed it: "
            "?ssl_ca_certs=/path/to/ca.pem"
        )
    secure = where.startswith("rediss")
    if secure and ("No such file" in text or "PEM" in text):
        return ConfigError(f"A file that ssl_ca_certs, ssl_certfile or ssl_keyfile names for {where} cannot be read.")
    if "SSL" in text:
        cure = "Does it speak TLS at that port? redis:// is without." if secure else "rediss:// is with TLS."
        return BackendError(f"{where} and this client do not agree about TLS. {cure}")
    if "connecting" not in text.lower() and _is_reset(error):
        return BackendError(f"{where} hangs up at the first word. Does it want TLS? That is rediss://.")
    if isinstance(error, exceptions.TimeoutError | TimeoutError):
        cure = "If it does not speak TLS there, use redis://." if secure else "Does it hang, or is a firewall between?"
        return BackendError(f"{where} does not answer in time. {cure}")
    return BackendError(f"{where} cannot be reached{_cause(text)}. Is it running, and can it be reached from here?")


def bad_guide(where: str, error: BaseException) -> BackendError | ConfigError:
    """A server that was asked where the data is does not know."""
    text = str(error)
    if "cluster support" in text:
        return ConfigError(f"{where} is one server and no Cluster. Use {where.partition('+')[0]}:// and one host.")
    if "No such master" in text:
        return BackendError(f"The sentinels of {where} know no service of this name. Check the end of the URL.")
    if "unknown command" in text.lower() and "sentinel" in text.lower():
        return ConfigError(f"{where} is no sentinel. Give the addresses of sentinels, or use redis:// and one host.")
    return refusal(where, error)


def _about_certificates(error: BaseException) -> bool:
    return "CERTIFICATE" in str(error) or "certificate" in str(error)


def _certificate(text: str) -> str:
    """What OpenSSL has against it, in its own words."""
    return text.partition("verify failed: ")[2].partition(" (_ssl")[0].rstrip(".") or "it cannot be verified"


def _is_reset(error: BaseException) -> bool:
    text = str(error)
    return "reset by peer" in text or "closed by server" in text or isinstance(error, ConnectionResetError)


def _cause(text: str) -> str:
    known = {
        "Connection refused": "nobody listens there",
        "Connect call failed": "nobody listens there",
        "Name or service not known": "no such host",
        "nodename nor servname": "no such host",
        "Temporary failure in name resolution": "its name cannot be looked up just now",
        "No such file": "no such file",
        "Permission denied": "permission denied",
        "No route": "no route to it",
        "unreachable": "its network cannot be reached",
    }
    return next((f": {cause}" for sign, cause in known.items() if sign in text), "")


class Garbage(BackendError):
    """A script could not read what is kept under its keys. Never shown: those who know the name say which it is."""

    refused = True


def code_of(error: BaseException | str) -> str:
    """The first word of what the server said."""
    if not isinstance(error, str) and type(error).__name__ in CODES:
        return CODES[type(error).__name__]
    word = str(error).split(" ", 1)[0]
    return word if word.isupper() else "ERR"


def said_no(where: str, error: BaseException | str) -> BackendError | ConfigError | Unknown:
    """The server answered a command with an error: nothing was done."""
    code = code_of(error)
    return Unknown(f"it says {code}") if code in AGAIN else refusal(where, error)


def doubt_if_begun(error: BaseException) -> None:
    """Unknown if a script was refused in its middle: it may have done what it was for, and then it is repeated."""
    if " script: " in str(error):
        raise Unknown("the server broke off a script")


def refusal(where: str, error: BaseException | str) -> BackendError | ConfigError:
    code, text = code_of(error), str(error)
    if code in NOT_NOW:
        return BackendError(f"{where} {NOT_NOW[code]}.")
    if code == "NOPERM" or "can't run this command" in text or "can't access" in text:
        return _refused(
            f"{where} does not allow this user {_what(text)}. `holdfast schema` prints the rights that locks need."
        )
    if code == "NOSCRIPT":
        sentence = "forgets scripts at once, or does not allow this user to run SCRIPT LOAD"
        return _refused(f"{where} {sentence}. `holdfast schema` prints the rights that locks need.")
    if code == "NOAUTH" and ("HELLO must" in text or "required" in text):
        return _refused(f"{where} wants a password. Give it in the URL: redis://user:password@host.")
    if code in ("NOAUTH", "WRONGPASS") or "AUTH" in text:
        return _refused(f"{where} does not accept this user and password. Check them in the URL.")
    if code == "DENIED":
        return _refused(f"{where} is in protected mode and talks to its own machine only. Give it a password.")
    if "max number of clients" in text:
        return BackendError(f"{where} has no connection left for this client. Raise its maxclients.")
    if "DB index" in text or "SELECT is not allowed" in text:
        return ConfigError(f"{where} has no such database. Most servers have 0 to 15, a Cluster has only 0.")
    if "unknown command" in text and "HELLO" in text:
        return ConfigError(f"{where} is older than Redis 6 and does not speak RESP3. Use ?protocol=2, or a newer one.")
    if code == "WRONGTYPE" or "user_script" in text or "Error running script" in text:
        return Garbage(f"the server says {' '.join(text.split())[:120]!r}")
    told = " ".join(text.partition(", with args")[0].split())  # it repeats what it was sent, passwords too
    return BackendError(f"{where} answered with an error: {told[:100]!r}.")


def _refused(sentence: str) -> BackendError:
    error = BackendError(sentence)
    error.refused = True
    return error


def _what(text: str) -> str:
    """Which command, key or channel a server did not allow."""
    command = text.partition("run the '")[2].partition("'")[0]
    if command:
        return "to run " + command.upper().replace("|", " ")
    if "channel" in text:
        return "to use the channels holdfast:ear:*"
    if "key" in text:
        return "to use the keys holdfast:*"
    return "to run a command that the scripts use"


def lost(where: str, error: BaseException | None = None) -> Unknown | BackendError | ConfigError:
    """It was sent, and no answer came; or one that redis-py takes for the end of the connection."""
    if isinstance(error, exceptions.BusyLoadingError | exceptions.AuthenticationError):
        return refusal(where, error)
    late = isinstance(error, exceptions.TimeoutError | TimeoutError | BlockingIOError)
    return Unknown("no answer came in time" if late else "the connection broke")


UNREADABLE = (Garbage, TypeError, ValueError, LookupError, AttributeError, AssertionError, OverflowError)
"""What comes of values that nobody of us has written."""


def unreadable(bad: BaseException, name: str, where: str, what: str = "") -> LockError:
    """The sentence about it; or what it is, if it is one of ours that only looks like it."""
    if isinstance(bad, LockError) and not isinstance(bad, Garbage):
        return bad
    return damaged(name, where, bad if isinstance(bad, Garbage) else f"values that are none ({bad!r:.100})", what)
