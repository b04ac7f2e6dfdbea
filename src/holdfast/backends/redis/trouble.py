"""What can go wrong with a Redis server, said in sentences. Nothing here repeats a URL, a user or a password."""

from __future__ import annotations

from redis import exceptions

from ...errors import BackendError
from ..contract import Unknown


def cannot_connect(where: str, error: Exception) -> BackendError:
    """Nothing was sent: the outcome is known."""
    text = str(error)
    refused = isinstance(error, (exceptions.AuthenticationError, exceptions.AuthorizationError))
    refused = refused or text.startswith(("NOAUTH", "WRONGPASS", "NOPERM"))
    if refused:
        found = BackendError(f"{where} does not let this client in: wrong user or password. Check them in the URL.")
        found.refused = True
        return found
    if isinstance(error, exceptions.BusyLoadingError) or text.startswith("LOADING"):
        return BackendError(f"{where} is still loading its data. Try again in a moment.")
    if "SSL" in text or "ssl" in text:
        return BackendError(f"{where} and this client do not agree about TLS. rediss:// is with, redis:// without.")
    if isinstance(error, exceptions.TimeoutError):
        return BackendError(f"{where} does not answer. Is it running, and can it be reached from here?")
    return BackendError(f"{where} cannot be reached. Is it running, and can it be reached from here?")


def said_no(where: str, text: str) -> BackendError | Unknown:
    """The server answered with an error: nothing was done, or nothing more than the same command would do again."""
    code = text.split(" ", 1)[0]
    if code in ("LOADING", "BUSY", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN", "NOREPLICAS"):
        return Unknown(f"{where} says {code}")
    if code == "OOM" or "maxmemory" in text:
        return BackendError(f"{where} has no memory left and takes nothing new. Raise maxmemory or free some.")
    if code == "READONLY" or "read only" in text:
        return BackendError(f"{where} is a read-only replica. Give the URL of its master, or redis+sentinel://.")
    if code in ("NOPERM", "NOAUTH"):
        found = BackendError(f"{where} does not allow what locks need. `holdfast schema` prints the rights.")
        found.refused = True
        return found
    return BackendError(f"{where} answered with an error: {text[:200]}.")


def lost(where: str) -> Unknown:
    return Unknown(f"the connection to {where} broke")
