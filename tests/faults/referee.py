"""The referee: the resource that the locks protect, and the memory of the run.

Every worker reports "I ask", "I am in, with this fence", "I write" and "I am out". The referee keeps everything in the
order of arrival. As a resource that is protected by fences, it refuses a write whose fence is smaller than one that has
written the same name before; docs/fences.md advises users to do exactly this.
"""

import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

Event = dict[str, Any]


class Referee:
    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "referee")
        self.history: list[Event] = []
        self._fences: dict[str, int] = {}
        self._mutex = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def note(self, what: str, **facts: Any) -> Event:
        """An event of the nemesis itself."""
        event = {"what": what, "at": time.monotonic(), **facts}
        with self._mutex:
            self.history.append(event)
        return event

    def seen(self) -> list[Event]:
        with self._mutex:
            return list(self.history)

    def close(self) -> None:
        self.note("end")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self.path)
        self._thread.join()
        self._socket.close()

    def _listen(self) -> None:
        while said := self._socket.recv(1 << 16):
            event: Event = json.loads(said)
            with self._mutex:
                if event["what"] == "write":
                    last = self._fences.get(event["name"], 0)
                    event["accepted"] = event["fence"] >= last
                    self._fences[event["name"]] = max(last, event["fence"])
                self.history.append(event)
