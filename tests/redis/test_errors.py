"""An error of a server is one sentence: the cause, the cure, never a secret. Nothing is left behind.

Each case is tried by threads, by tasks and by the tool, against real servers.
"""

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fairlock
from fairlock import ConfigError, StoreError, aio
from fairlock.errors import LockError
from tests.machine_load import within
from tests.servers.groups import Sentinels, WithReplica
from tests.servers.server import Server, free_port, until

Start = Callable[..., Server]

SECRET = "s3cr3t-w0rd"
QUICK = "socket_timeout=0.5&socket_connect_timeout=0.5"


def by_threads(url: str) -> LockError:
    with pytest.raises(LockError) as caught, fairlock.connect(url) as locks:
        locks.lock("x").acquire(timeout=5)
    return caught.value


def by_tasks(url: str) -> LockError:
    async def go() -> None:
        async with aio.connect(url) as locks:
            await locks.lock("x").acquire(timeout=5)

    with pytest.raises(LockError) as caught:
        asyncio.run(go())
    return caught.value


def tool(url: str, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "FAIRLOCK_URL": url}
    command = [sys.executable, "-m", "fairlock", *(words or ("run", "-w", "5", "x", "--", "echo", "locked"))]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)


def says(url: str, *words: str, kind: type[LockError] = StoreError, code: int = 69) -> None:
    """Everybody says all of these words, and nobody a secret."""
    for error in (by_threads(url), by_tasks(url)):
        assert type(error) is kind, repr(error)
        sentence = str(error)
        assert all(word in sentence for word in words), sentence
        assert sentence.endswith((".", "?", ".pem")), sentence
        assert getattr(error, "refused", code == 77) is (code == 77)
        assert SECRET not in "".join(traceback.format_exception(error))
    done = tool(url)
    assert done.returncode == code, done
    assert all(word in done.stderr for word in words), done.stderr
    assert done.stderr.count("\n") == 1
    assert "locked" not in done.stdout
    assert SECRET not in done.stderr + done.stdout


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    subject = ["-subj", "/CN=fairlock tests", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-days", "2"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *made, *subject]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def with_tls(start_redis: Start, certificate: Path) -> tuple[int, str]:
    """A server's TLS port, and the option that trusts it."""
    port = free_port()
    files = ["--tls-cert-file", f"{certificate}/cert.pem", "--tls-key-file", f"{certificate}/key.pem"]
    files += ["--tls-ca-cert-file", f"{certificate}/cert.pem"]
    start_redis("--tls-port", str(port), *files, "--tls-auth-clients", "no")
    return port, f"ssl_ca_certs={certificate}/cert.pem"


# Not reached


def test_no_server_listens() -> None:
    says(f"redis://:{SECRET}@127.0.0.1:{free_port()}", "cannot be reached", "nothing listens there", "Is it running")


def test_no_such_host() -> None:
    says(f"redis://:{SECRET}@no-such-host.invalid", "redis://no-such-host.invalid cannot be reached", "no such host")


def test_no_such_socket(tmp_path: Path) -> None:
    says(f"unix://:{SECRET}@{tmp_path}/none.sock", "cannot be reached", "no such file")


def test_a_unix_socket_works(start_redis: Start, tmp_path: Path) -> None:
    start_redis("--unixsocket", f"{tmp_path}/redis.sock")
    assert tool(f"unix://{tmp_path}/redis.sock?db=3").stdout == "locked\n"


@pytest.fixture
def silent_server() -> Iterator[int]:
    """The port of a server that accepts and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(50)
        yield listening.getsockname()[1]


def test_a_server_that_hangs_from_the_start(silent_server: int) -> None:
    began = time.monotonic()
    says(f"redis://:{SECRET}@127.0.0.1:{silent_server}?{QUICK}", "does not reply in time")
    assert time.monotonic() - began < within(10, below=60)


def test_a_server_that_hangs_later(start_redis: Start) -> None:
    server = start_redis()
    with fairlock.connect(f"{server.url}?{QUICK}") as locks:
        with locks.lock("x"):
            pass
        server.stop()
        began = time.monotonic()
        with pytest.raises(StoreError, match="does not reply"):
            locks.lock("x").acquire()
        assert time.monotonic() - began < 5
        server.cont()
        with locks.lock("x", timeout=5):
            pass
    with fairlock.connect(server.url) as locks:
        until(lambda: not any(r.holders or r.queue for r in locks.snapshot(idle=True).resources), "nothing is left")


def test_something_that_is_no_redis() -> None:
    def answer(listening: socket.socket) -> None:
        try:
            while True:
                with listening.accept()[0] as one:
                    one.recv(1000)
                    one.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        except OSError:
            pass

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        thread = threading.Thread(target=answer, args=[listening])
        thread.start()
        says(f"redis://:{SECRET}@127.0.0.1:{port}", "is not a Redis server")
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def test_sentinels_that_are_none_or_know_nothing(redis_alone: Server, redis_sentinel: Sentinels) -> None:
    url = f"redis+sentinel://:{SECRET}@{redis_alone.address}/main"
    says(url, "is no sentinel", "redis://", kind=ConfigError, code=78)
    address = redis_sentinel.sentinels[0].address
    with fairlock.connect(f"redis+sentinel://:{SECRET}@{address}/main") as locks:
        with pytest.raises(StoreError, match="know no service of this name"):
            locks.ping()


# TLS


def test_tls_to_a_plain_port(redis_alone: Server) -> None:
    says(f"rediss://:{SECRET}@{redis_alone.address}?{QUICK}", "TLS", "redis://")


def test_plain_to_a_tls_port(with_tls: tuple[int, str]) -> None:
    says(f"redis://:{SECRET}@127.0.0.1:{with_tls[0]}?{QUICK}", "TLS", "rediss://")


def test_a_certificate_that_nobody_here_trusts(with_tls: tuple[int, str]) -> None:
    says(f"rediss://127.0.0.1:{with_tls[0]}", "certificate", "self-signed", "ssl_ca_certs", code=77)


def test_a_missing_file_of_certificates(with_tls: tuple[int, str]) -> None:
    says(f"rediss://127.0.0.1:{with_tls[0]}?ssl_ca_certs=/no/such.pem", "ssl_ca_certs", kind=ConfigError, code=78)


def test_tls_works(with_tls: tuple[int, str]) -> None:
    port, trusted = with_tls
    assert tool(f"rediss://127.0.0.1:{port}?{trusted}").stdout == "locked\n"

    async def go() -> None:
        async with aio.connect(f"rediss://127.0.0.1:{port}", ssl_ca_certs=trusted.partition("=")[2]) as locks:
            async with locks.lock("x"):
                pass

    asyncio.run(go())


# Not let in


@pytest.mark.parametrize("login", ["", f":{SECRET}x@", f"joe:{SECRET}@"])
def test_a_wrong_password(start_redis: Start, login: str) -> None:
    server = start_redis(password=SECRET)
    words = ["wants a password"] if not login else ["does not accept this user and password"]
    says(f"redis://{login}{server.address}", *words, code=77)


def test_no_such_database(redis_alone: Server) -> None:
    says(f"{redis_alone.url}/99", f"{redis_alone.url}/99 has no such database", kind=ConfigError, code=78)


def test_no_connection_left(start_redis: Start) -> None:
    server = start_redis("--maxclients", "2")
    with server.client.pubsub() as one, server.client.pubsub() as two:
        one.subscribe("x")
        two.subscribe("x")
        says(server.url, "no connection left", "maxclients")


USER = f"redis://joe:{SECRET}@"


def acl(server: Server, *rights: str) -> str:
    server.call("ACL", "SETUSER", "joe", "reset", "on", f">{SECRET}", "~*", "&*", "+@all", *rights)
    return f"{USER}{server.address}"


@pytest.mark.parametrize(
    "right, words",
    [
        ("-evalsha", "to run EVALSHA"),
        ("-script", "to run SCRIPT LOAD"),
        ("-hset", "to run a command that the scripts use"),
        ("resetkeys", "to use the keys fairlock:*"),
    ],
)
def test_a_right_that_is_missing(start_redis: Start, right: str, words: str) -> None:
    server = start_redis()
    says(acl(server, right), "does not allow this user", words, "`fairlock schema` prints", code=77)


def test_a_queue_without_the_right_to_listen(start_redis: Start) -> None:
    server = start_redis()
    with fairlock.connect(server.url) as other, other.lock("x"):
        for right in ("-subscribe", "resetchannels"):
            says(acl(server, right), "does not allow this user", "`fairlock schema` prints", code=77)
            (resource,) = other.snapshot("x").resources
            assert resource.queue == ()


# Not now


def test_a_replica_that_takes_no_writes(redis_with_replica: WithReplica) -> None:
    says(redis_with_replica.replica.url, "is a read-only replica", "redis+sentinel://")


def full(server: Server) -> None:
    server.call("CONFIG", "SET", "maxmemory", "1")


def test_a_server_without_memory_releases_and_grants_nothing(start_redis: Start) -> None:
    server = start_redis()
    with fairlock.connect(server.url) as locks, fairlock.connect(server.url) as other:
        alone, contended = locks.lock("alone").acquire(), locks.lock("contended").acquire()
        readers = [locks.rwlock("shared").read().acquire() for _ in range(2)]
        assert alone and contended and all(readers)
        waiting = threading.Thread(target=other.lock("contended", timeout=20).acquire)
        waiting.start()
        until(lambda: [r for r in locks.snapshot("contended").resources if r.queue], "somebody stands in the queue")
        full(server)
        says(server.url, "has no memory left", "maxmemory")
        for lease in (alone, contended, *readers):
            assert lease is not None
            lease.release()
        waiting.join(5)
        assert not waiting.is_alive()
        server.call("CONFIG", "SET", "maxmemory", "0")
        held = [r.name for r in locks.snapshot().resources if r.holders]
        assert held == ["contended"]


def test_a_server_that_is_loading(start_redis: Start) -> None:
    server = start_redis("--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024")
    server.client.mset({f"key{number}": "x" * 50 for number in range(8000)})
    server.call("SAVE")
    server.kill()
    server.answers = lambda: True  # type: ignore[method-assign]  # as soon as it can be connected to
    server.restart()
    until(lambda: socket.create_connection(("127.0.0.1", server.port)).close() is None, "it listens")
    says(server.url, "is still loading its data")


def test_a_server_that_is_busy_with_a_script(start_redis: Start) -> None:
    server = start_redis("--busy-reply-threshold", "50")
    endless = subprocess.Popen(["redis-cli", "-p", str(server.port), "EVAL", "while true do end", "0"])
    try:
        time.sleep(0.3)
        says(server.url, "is busy with a script", "SCRIPT KILL")
        server.call("SCRIPT", "KILL")
    finally:
        endless.kill()
        endless.wait()


def test_a_server_with_too_few_replicas(start_redis: Start) -> None:
    says(start_redis("--min-replicas-to-write", "1").url, "too few replicas", "min-replicas-to-write")


def test_a_server_that_cannot_save_is_an_error_with_the_cure(start_redis: Start) -> None:
    server = start_redis("--save", "3600 1")
    (server.folder / "dump.rdb").mkdir()
    server.call("SET", "x", "1")
    server.call("BGSAVE")
    until(lambda: server.info("persistence")["rdb_last_bgsave_status"] == "err", "it could not save")
    says(server.url, "cannot save its data to disk")


# Makes no sense


@pytest.mark.parametrize(
    "url, words",
    [
        (f"redis://:{SECRET}@host:six", "port"),
        (f"redis://:{SECRET}@host:99999", "port"),
        (f"redis://:{SECRET}/@host:6379", "%2F"),
        (f"redis://:{SECRET}#@host:6379", "%23"),
        (f"redis://:{SECRET}?@host:6379", "%3F"),
        (f"redis://:a/{SECRET}@host:6379/0", "%2F"),
        (f"redis://:{SECRET}@host/O", "number of a database"),
        (f"redis://:{SECRET}@host/1/2", "number of a database"),
        (f"redis://:{SECRET}@host/-1", "number of a database"),
        (f"redis://:{SECRET}@[::1", "The port in this redis:// URL is not a number"),
        (f"redis://:{SECRET}@h1,h2", "redis+sentinel://"),
        (f"redis://:{SECRET}@host?db=three", "'db' of redis:// is a whole number"),
        (f"redis://:{SECRET}@host?socket_timeout=-1", "'socket_timeout' of redis:// is a number of seconds"),
        (f"redis://:{SECRET}@host?protocol=4", "'protocol' of redis:// is 2 or 3"),
        (f"redis://:{SECRET}@host?nonsense=1", "'nonsense' is not an option of redis://. Known: client_name"),
        (f"redis://:{SECRET}@host?{SECRET}", "cannot be read"),
        (f"redis://:{SECRET}@host?ssl_ca_certs=x", "It is one of rediss://."),
        (f"unix://:{SECRET}@", "names no socket"),
        (f"unix://:{SECRET}@host/path", "names no socket"),
    ],
)
def test_a_url_that_makes_no_sense(url: str, words: str) -> None:
    for connect in (fairlock.connect, aio.connect):
        with pytest.raises(ConfigError) as caught:
            connect(url)
        assert words in str(caught.value)
        assert SECRET not in "".join(traceback.format_exception(caught.value))
    done = tool(url)
    assert done.returncode == 78
    assert words in done.stderr
    assert SECRET not in done.stderr


def test_an_unknown_keyword() -> None:
    with pytest.raises(ConfigError, match=r"'nonsense' is not an option of redis://\. Known: .*socket_timeout"):
        fairlock.connect("redis://host", nonsense=1)


@pytest.mark.parametrize(
    "url, shown",
    [
        (f"redis://joe:{SECRET}@host:6379/0?password={SECRET}", "redis://host:6379/0"),
        (f"redis://:{SECRET}@", "redis://localhost"),
        (f"rediss://[::1]:7000?password={SECRET}", "rediss://[::1]:7000"),
        (f"redis://[::1]?password={SECRET}", "redis://[::1]"),
        (f"unix://joe:{SECRET}@/run/redis.sock?db=2", "unix:///run/redis.sock"),
    ],
)
def test_a_store_is_named_without_its_secrets(url: str, shown: str) -> None:
    with fairlock.connect(url) as locks:
        assert locks.store == shown
        assert SECRET not in repr(locks)
