"""Reads replies with hiredis, on sockets that redis-py has opened.

redis-py makes the connection (address, TLS, AUTH, HELLO) and keeps it; the bytes that go over it afterwards are packed
and read here. That spares half of the time of a command, and redis-py's reactions to errors, which are made for other
purposes: an error is a value here, and the caller decides.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from typing import Any

from hiredis import Reader

from ..base import Pushed

NOT_YET: Any = object()
new: Any = tuple.__new__  # makes a named tuple in half the time of its own constructor


class ReplyError(Exception):
    """An error reply, whole: its first word says what kind it is."""


def reader() -> Reader:
    return Reader(replyError=ReplyError, notEnoughData=NOT_YET)


def set_timeouts(sock: socket.socket, seconds: float, tick: float) -> Callable[[bytes], None]:
    """Let the kernel end a read after a tick and a write after `seconds`. Returns the function that sends.

    Python's own timeouts cost two more system calls each time. TLS needs them: it would take the kernel's timeout for
    the end of the connection.
    """
    if type(sock) is not socket.socket:
        sock.settimeout(tick)

        def send(payload: bytes) -> None:
            sock.settimeout(seconds)
            sock.sendall(payload)
            sock.settimeout(tick)

        return send
    sock.settimeout(None)
    for option, span in ((socket.SO_RCVTIMEO, tick), (socket.SO_SNDTIMEO, seconds)):
        sock.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", int(span), int(span % 1 * 1e6)))
    return sock.sendall


def detach_socket(fd: int) -> None:
    """In the child of a fork: give up a socket without any effect on the parent or the server.

    Closing it could notify the server, or the epoll of the event loop that is shared with the parent. So /dev/null
    takes its place.
    """
    try:
        null = os.open(os.devnull, os.O_RDWR)
        try:
            os.dup2(null, fd, inheritable=False)
        finally:
            os.close(null)
    except OSError:
        pass


def parse_wakeup(message: Any) -> Pushed | None:
    """Return the wake-up in a pushed message; None if it is something else."""
    if type(message) is ReplyError:
        raise message
    if len(message) != 3 or message[0] != b"message":
        return None
    try:
        ticket, place, fence = message[2].split()
        return new(Pushed, (ticket.decode(), int(place), int(fence), 0.0))  # type: ignore[no-any-return]
    except ValueError:
        return None
