"""A real server for tests: Redis or Valkey, on loopback, on a free port, in a folder of its own.

    server = Server(program, "--appendonly", "yes")     # it runs and answers
    server.url, server.pid, server.ask("INFO", "server")
    server.kill(); server.restart()                     # kill -9, and up again on the same port and data
    server.stop(); server.cont()                        # as if its machine hung
    server.end()

Nothing is saved unless the options say so. All that runs is ended with the test run, whatever ends that (reaper.py).
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redis import Redis

SOON = 20.0  # seconds within which a server must answer; it takes a hundredth of a second, but machines are busy


def until(what: Callable[[], object], why: str, seconds: float = SOON) -> None:
    """Wait until this is so. A server that does not reply at the moment counts as no."""
    from redis.exceptions import RedisError

    limit = time.monotonic() + seconds
    doubt = ""
    while True:
        try:
            if what():
                return
        except (RedisError, OSError) as error:
            doubt = f" ({error})"
        if time.monotonic() > limit:
            raise AssertionError(f"it never came to this in {seconds:g} s: {why}{doubt}")
        time.sleep(0.01)


def free_port() -> int:
    """A port of loopback that nobody uses and that no outgoing connection will ever get.

    Not one that the system hands out by itself: while its server is down, a client that tries again and again could be
    given that very port for its own end of the connection, and then it talks to itself and the server cannot return.
    """
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        first = 32768
    while True:
        port = random.SystemRandom().randrange(min(10_000, first // 2), first)
        with socket.socket() as trying:
            trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trying.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


class Reaper:
    """Writes to the process that ends everything when this one is gone (reaper.py)."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def watch(self, what: int | Path) -> None:
        if self._process is None or self._process.poll() is not None:
            program = str(Path(__file__).with_name("reaper.py"))
            # In a session of its own: a Ctrl-C in the terminal is for the run, which then ends things itself.
            self._process = subprocess.Popen(
                [sys.executable, "-S", program], stdin=subprocess.PIPE, text=True, start_new_session=True
            )
        assert self._process.stdin is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()

    def end(self) -> None:
        if self._process is not None:
            self._process.communicate(timeout=SOON)
            self._process = None


REAPER = Reaper()


def _states(pid: int) -> list[str]:
    """Of all threads of a process, as the kernel names them: T is stopped."""
    texts = [(task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    return [text.rpartition(")")[2].split()[0] for text in texts]


class Server:
    scheme = "redis"
    user: int | None = None  # the user that it runs as, if not that of the tests
    home: str | None = None  # where its folder is, if not where all are

    def __init__(self, program: str | Path, *options: str, password: str = "", folder: Path | None = None) -> None:
        self.program = str(program)
        self.options = options
        self.password = password
        self._own_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="fairlock-server-", dir=self.home))
        if self._own_folder:
            REAPER.watch(self.folder)
        self.log = self.folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._client: Redis | None = None
        for _ in range(20):
            self.port = free_port()
            if self._start():
                return
        raise AssertionError(f"{self.program} finds no free port; it says: {self.said()}")

    def __repr__(self) -> str:
        return f"<{Path(self.program).name} on {self.port}, {f'pid {self.pid}' if self.alive else 'not running'}>"

    # -- what it is

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        login = f":{self.password}@" if self.password else ""
        return f"{self.scheme}://{login}{self.address}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def count_commands(self, do: Callable[[], object]) -> int:
        """Return how many commands the server gets meanwhile, without those that scripts run."""
        with self.client.monitor() as monitor:
            do()
            self.client.echo("the end")
            lines = itertools.takewhile(lambda line: not line["command"].startswith("ECHO"), monitor.listen())
            return sum(line["client_type"] != "lua" for line in lines)

    def said(self) -> str:
        """The end of what it printed and of its log."""
        texts = [path.read_text(errors="replace") for path in (self.folder / "out", self.log) if path.exists()]
        return "".join(texts)[-1500:] or "nothing"

    # -- asking it

    @property
    def client(self) -> Redis:
        """A redis-py client of this server, for what a test wants to see or set up."""
        if self._client is None:
            self._client = self._connect(5)
        return self._client

    def _connect(self, timeout: float) -> Redis:
        from redis import Redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        return Redis(
            port=self.port, password=self.password or None, socket_timeout=timeout, decode_responses=True,
            retry=Retry(NoBackoff(), 0), protocol=2,
        )  # fmt: skip

    def call(self, *words: str | int) -> Any:
        return self.client.execute_command(*words)

    def info(self, section: str) -> dict[str, Any]:
        found: dict[str, Any] = self.call("INFO", section)
        return found

    def forget_everything(self) -> None:
        self.call("FLUSHALL", "SYNC")

    # -- life and death

    def _command(self) -> list[str]:
        place = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder), "--logfile", str(self.log)]
        secret = ["--requirepass", self.password] if self.password else []
        return [self.program, *place, "--save", "", "--appendonly", "no", *secret, *self.options]

    def _start(self) -> bool:
        """Start it and wait until it answers; False if somebody else has its port."""
        with open(self.folder / "out", "wb") as out:
            self._process = subprocess.Popen(
                self._command(), cwd=self.folder, start_new_session=True, user=self.user,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            )  # fmt: skip
        REAPER.watch(self._process.pid)
        until(lambda: self._process is None or self._process.poll() is not None or self.answers(), f"{self!r} answers")
        if self.alive:
            return True
        if "in use" in self.said():
            self.log.unlink()
            return False
        raise AssertionError(f"{self.program} did not start; it says: {self.said()}")

    def answers(self, within: float = 5.0) -> bool:
        from redis.exceptions import RedisError

        try:
            with self._connect(within) as client:
                return bool(client.ping())
        except (RedisError, OSError):
            return False

    def kill(self) -> None:
        """kill -9."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(SOON)
        until(self._port_is_closed, "nothing listens")  # processes of its own may have the port for another moment

    def _port_is_closed(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) != 0

    def restart(self) -> None:
        """Up again, on the same port and with the data that it has kept; a running one is killed first."""
        if self.alive:
            self.kill()
        assert self._start(), f"somebody took port {self.port}"

    def stop(self) -> None:
        """It hangs, from here on. On a busy machine a thread goes on for a moment: so wait until all have stopped."""
        self._signal(signal.SIGSTOP)
        if self.alive:
            until(lambda: set(_states(self.pid)) == {"T"}, f"{self!r} has stopped")

    def cont(self) -> None:
        self._signal(signal.SIGCONT)

    def heal(self) -> None:
        """Undo what a test did to it: running again, and answering."""
        if self.alive:
            self.cont()
            until(self.answers, f"{self!r} replies again")
        else:
            self.restart()

    def end(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
        self.kill()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _signal(self, number: signal.Signals) -> None:
        if self.alive:
            os.kill(self.pid, number)
