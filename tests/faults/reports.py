"""How a worker reports to the referee: one datagram for each event, never a reply.

Datagrams of a Unix socket are neither lost nor reordered, so the referee sees the events of all processes in the order
in which they were sent. A time is time.monotonic(), which all processes of a machine share.
"""

import json
import os
import socket
import time
from typing import Any


class Reporter:
    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.connect(path)

    def __call__(self, what: str, **facts: Any) -> None:
        event = {"what": what, "pid": os.getpid(), "at": time.monotonic(), **facts}
        try:
            self._socket.send(json.dumps(event).encode())
        except OSError:
            pass  # the referee is gone, and so is the run
