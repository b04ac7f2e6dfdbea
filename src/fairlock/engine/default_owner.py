"""The default owner of a client: its host and its process, which is another one after a fork."""

import os


def this_process() -> str:
    host = os.uname().nodename if hasattr(os, "uname") else "host"
    return f"{host}:{os.getpid()}"


def salt() -> int:
    """Return a number that differs between processes: a child of a fork has the same thread objects as its parent."""
    return os.getpid() * 2654435761 >> 4
