"""A real Cassandra for tests: one node, or three, on loopback, on free ports, in a folder of their own.

    ring = Ring(1)                                      # it runs and answers
    ring.hosts, ring.port, ring.session()               # a Session of the driver, as a superuser
    ring.nodes[1].kill(); ring.nodes[1].stop(); …       # as any other server

It is started from jars that `./dev` gets with Maven and keeps under .dev/cassandra; FAIRLOCK_CASSANDRA says where they
are. A node takes half a minute and half a gigabyte, so there is one ring for all tests of a run.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from . import programs
from .server import REAPER, free_port

SOON = 120.0  # seconds within which a node must answer; on two busy cores it takes half a minute

EXPORTS = (
    "java.base/jdk.internal.misc java.base/java.lang.ref java.management.rmi/com.sun.jmx.remote.internal.rmi "
    "java.management/com.sun.jmx.remote.security java.rmi/sun.rmi.registry java.rmi/sun.rmi.server "
    "java.sql/java.sql jdk.unsupported/sun.misc"
)
OPENS = (
    "java.base/java.io java.base/java.lang java.base/java.lang.module java.base/java.lang.reflect java.base/java.nio "
    "java.base/java.util java.base/jdk.internal.loader java.base/jdk.internal.math java.base/jdk.internal.module "
    "java.base/jdk.internal.ref java.base/jdk.internal.reflect java.base/jdk.internal.util.jar java.base/sun.nio.ch "
    "jdk.management/com.sun.management.internal"
)
FLAGS = [
    "-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote", "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC", "-Xshare:auto", "-Xms256m", "-Xmx512m", "-Xss512k",
    "-Djdk.attach.allowAttachSelf=true", "-Dio.netty.tryReflectionSetAccessible=true",
    "-Djava.net.preferIPv4Stack=true", "-Dchronicle.analytics.disable=true", "-Dcassandra.ring_delay_ms=1000",
    "-Dcassandra.skip_wait_for_gossip_to_settle=0", "-Dcassandra.superuser_setup_delay_ms=0",
    *(f"--add-exports={name}=ALL-UNNAMED" for name in EXPORTS.split()),
    *(f"--add-opens={name}=ALL-UNNAMED" for name in OPENS.split()),
]  # fmt: skip

SETTINGS = """
cluster_name: fairlock-{storage}
num_tokens: 1
initial_token: {token}
auto_bootstrap: false
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
commitlog_sync: periodic
commitlog_sync_period: 10000ms
seed_provider: [{{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{{seeds: "127.0.0.1"}}]}}]
listen_address: {host}
rpc_address: {host}
native_transport_port: {port}
storage_port: {storage}
endpoint_snitch: SimpleSnitch
cas_contention_timeout: 1000ms
auto_snapshot: false
disk_access_mode: standard
paxos_variant: v2
concurrent_reads: 8
concurrent_writes: 8
memtable_flush_writers: 1
file_cache_size: 32MiB
authenticator: {authenticator}
authorizer: {authorizer}
permissions_validity: 100ms
data_file_directories: [{folder}/data]
commitlog_directory: {folder}/commitlog
saved_caches_directory: {folder}/saved_caches
hints_directory: {folder}/hints
cdc_raw_directory: {folder}/cdc
"""
LOG = """<configuration><appender name="F" class="ch.qos.logback.core.FileAppender"><file>{folder}/log</file>
<encoder><pattern>%-5level %d %msg%n</pattern></encoder></appender>
<root level="WARN"><appender-ref ref="F"/></root></configuration>
"""


def missing() -> str:
    """Return what this machine lacks for a Cassandra; '' if nothing."""
    if programs.find("java") is None:
        return "This machine has no java"
    if programs.find_jars("cassandra", "cassandra-all-*.jar") is None:
        return "This checkout has no Cassandra"
    return ""


def jars() -> Path:
    return Path(os.environ.get("FAIRLOCK_CASSANDRA") or Path(__file__).parents[2] / ".dev" / "cassandra")


class Node:
    def __init__(self, number: int, folder: Path, port: int, storage: int, secured: bool) -> None:
        self.host = f"127.0.0.{number}"
        self.port = port
        self.folder = folder / str(number)
        self.folder.mkdir()
        password, rights = ("Password", "Cassandra") if secured else ("AllowAll", "AllowAll")
        said = SETTINGS.format(
            host=self.host, port=port, storage=storage, folder=self.folder, token=(number - 2) * 2**62,
            authenticator=f"{password}Authenticator", authorizer=f"{rights}Authorizer",
        )  # fmt: skip
        (self.folder / "cassandra.yaml").write_text(said)
        (self.folder / "logback.xml").write_text(LOG.format(folder=self.folder))
        self._process: subprocess.Popen[bytes] | None = None
        self.hurt = False  # since the last heal()

    def __repr__(self) -> str:
        return f"<Cassandra on {self.host}:{self.port}>"

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        lib = jars()
        (agent,) = lib.glob("jamm-*.jar")
        command = [
            "java", f"-javaagent:{agent}", *FLAGS, f"-Dcassandra.config=file://{self.folder}/cassandra.yaml",
            f"-Dcassandra.storagedir={self.folder}", f"-Dcassandra.jmx.local.port={free_port()}",
            f"-Dlogback.configurationFile={self.folder}/logback.xml", f"-Djava.io.tmpdir={self.folder}",
            "-cp", f"{lib}/*", "org.apache.cassandra.service.CassandraDaemon",
        ]  # fmt: skip
        with open(self.folder / "out", "ab") as out:
            self._process = subprocess.Popen(
                command, cwd=self.folder, start_new_session=True, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        REAPER.watch(self._process.pid)

    def answers(self) -> bool:
        if not self.alive:
            raise AssertionError(f"{self!r} did not start; it says: {self.said()}")
        try:
            with socket.create_connection((self.host, self.port), 1):
                return True
        except OSError:
            return False

    def said(self) -> str:
        files = [self.folder / name for name in ("out", "log")]
        return "\n".join(file.read_text()[-1500:] for file in files if file.exists())

    def wait(self) -> None:
        limit = time.monotonic() + SOON
        while not self.answers():
            assert time.monotonic() < limit, f"{self!r} does not reply; it says: {self.said()}"
            time.sleep(0.1)

    def kill(self) -> None:
        """kill -9."""
        self.hurt = True
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(20)

    def stop(self) -> None:
        """It hangs, from here on."""
        self.hurt = True
        self._signal(signal.SIGSTOP)

    def cont(self) -> None:
        self._signal(signal.SIGCONT)

    def heal(self) -> None:
        if self.alive:
            self.cont()
        else:
            self.start()
        self.wait()
        self.hurt = False

    def _signal(self, number: signal.Signals) -> None:
        if self.alive:
            assert self._process is not None
            os.kill(self._process.pid, number)


class Ring:
    """So many nodes that know each other, with a keyspace `fairlock` that has a copy on each."""

    def __init__(self, number: int, secured: bool = False) -> None:
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # half of its start is the disk
        self.folder = Path(tempfile.mkdtemp(prefix="fairlock-cassandra-", dir=memory))
        REAPER.watch(self.folder)
        self.secured = secured
        self.port, storage = free_port(), free_port()
        self.nodes = [Node(n, self.folder, self.port, storage, secured) for n in range(1, number + 1)]
        self._session: Any = None
        self.nodes[0].start()  # before the others, which ask it for the members
        self.nodes[0].wait()
        for node in self.nodes[1:]:
            node.start()
        for node in self.nodes[1:]:
            node.wait()
        self._together()
        self.session().execute(
            f"CREATE KEYSPACE fairlock WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {number}}}"
        )
        from fairlock.stores.cassandra.cql import ITEMS, LOCKS

        for table in (LOCKS, ITEMS):
            self.session().execute(table.format(keyspace="fairlock"))

    @property
    def url(self) -> str:
        user = "cassandra:cassandra@" if self.secured else ""
        hosts = ",".join(f"{node.host}:{self.port}" for node in self.nodes)
        return f"cassandra://{user}{hosts}/fairlock"

    def session(self) -> Any:
        if self._session is None:
            self._session = connect([node.host for node in self.nodes], self.port, self.secured)
        return self._session

    def _together(self) -> None:
        """Until each node holds all the others for alive: one that has just started, or come back, does not yet."""
        if len(self.nodes) < 3:
            return
        from cassandra import ConsistencyLevel, DriverException
        from cassandra.cluster import NoHostAvailable
        from cassandra.query import SimpleStatement

        three_copies = "SELECT keyspace_name FROM system_distributed.view_build_status LIMIT 1"
        look = SimpleStatement(three_copies, consistency_level=ConsistencyLevel.ALL)
        limit = time.monotonic() + SOON
        waiting = [node.host for node in self.nodes]
        while waiting:
            found = [host for host in self.session().cluster.metadata.all_hosts() if host.address == waiting[-1]]
            try:
                self.session().execute(look, host=found[0], timeout=5)
                waiting.pop()
            except (DriverException, NoHostAvailable, IndexError):
                if time.monotonic() > limit:
                    raise
                time.sleep(0.1)

    def heal(self) -> None:
        hurt = [node for node in self.nodes if node.hurt]
        for node in hurt:
            node.heal()
        if hurt:
            self._together()

    def forget_everything(self) -> None:
        for table in ("fairlock_locks", "fairlock_items"):
            if self.session().execute(f"SELECT zero FROM fairlock.{table} LIMIT 1").one() is not None:
                self.session().execute(f"TRUNCATE fairlock.{table}")

    def end(self) -> None:
        if self._session is not None:
            self._session.cluster.shutdown()
        for node in self.nodes:
            node.cont()
            node.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def connect(hosts: list[str], port: int, secured: bool = False, keyspace: str | None = None) -> Any:
    """A Session of the driver, once the server takes one."""
    from cassandra.auth import PlainTextAuthProvider
    from cassandra.cluster import Cluster, NoHostAvailable

    auth = PlainTextAuthProvider("cassandra", "cassandra") if secured else None
    limit = time.monotonic() + SOON
    while True:
        cluster = Cluster(hosts, port=port, auth_provider=auth, protocol_version=5, connect_timeout=10)
        try:
            session = cluster.connect(keyspace)
            session.default_timeout = 30.0
            return session
        except NoHostAvailable:
            cluster.shutdown()
            if time.monotonic() > limit:
                raise
            time.sleep(0.5)
