"""How replies are read: by hiredis, on sockets that redis-py has opened.

redis-py makes the connection (address, TLS, AUTH, HELLO) and keeps it; the bytes that go over it afterwards are packed
and read here. That spares half of the time of a command, and redis-py's reactions to errors, which are made for other
purposes: an error is a value here, and whoever sent the command decides.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from typing import Any

from hiredis import Reader

NOT_YET: Any = object()


class Said(Exception):
    """An error reply, whole: its first word says what kind it is."""


def reader() -> Reader:
    return Reader(replyError=Said, notEnoughData=NOT_YET)


def patient(sock: socket.socket, seconds: float, tick: float) -> Callable[[bytes], None]:
    """Let the kernel end a read after a tick and a write after so many seconds; what sends.

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


def let_go(fd: int) -> None:
    """In the child of a fork: give up a socket without a word to anybody.

    Closing it could tell the server, or the event loop's epoll that is shared with the parent. Something harmless in
    its place tells nobody.
    """
    try:
        null = os.open(os.devnull, os.O_RDWR)
        try:
            os.dup2(null, fd, inheritable=False)
        finally:
            os.close(null)
    except OSError:
        pass


def wake_up(message: Any) -> tuple[str, int, int] | None:
    """The ticket, place and fence in a pushed message; None if it is something else."""
    if type(message) is Said:
        raise message
    if len(message) != 3 or message[0] != b"message":
        return None
    try:
        ticket, place, fence = message[2].split()
        return ticket.decode(), int(place), int(fence)
    except ValueError:
        return None
