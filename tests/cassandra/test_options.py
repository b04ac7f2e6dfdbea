"""The options of the store: encryption, the data centre, how far clocks may differ; and what the doctor makes of
nodes whose clocks do."""

import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra import OperationTimedOut
from cassandra.policies import DCAwareRoundRobinPolicy, RoundRobinPolicy

import fairlock
from fairlock import ConfigError
from fairlock.stores.cassandra import doctor, url
from tests.servers.cassandra import Ring


def certificate(folder: Path) -> Path:
    """One for 127.0.0.1 that signs itself, with its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a node")])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + day)
    signed = made.add_extension(names, False).sign(key, hashes.SHA256())
    form = serialization.PrivateFormat.PKCS8
    file = folder / "node.pem"
    file.write_bytes(
        signed.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    )
    return file


@contextmanager
def encrypted(port: int, pem: Path) -> Iterator[int]:
    """A node as it would be with encryption: what comes in is decrypted and passed on."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    door = socket.create_server(("127.0.0.1", 0))
    served: list[threading.Thread] = []

    def pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def serve(plain: socket.socket) -> None:
        with plain, suppress(OSError), context.wrap_socket(plain, server_side=True) as outer:
            with socket.create_connection(("127.0.0.1", port)) as inner:
                back = threading.Thread(target=pump, args=(inner, outer))
                back.start()
                pump(outer, inner)
                back.join()

    def accept() -> None:
        with suppress(OSError):
            while True:
                served.append(threading.Thread(target=serve, args=(door.accept()[0],)))
                served[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    with door:
        yield door.getsockname()[1]
        door.shutdown(socket.SHUT_RDWR)
    for each in (accepting, *served):
        each.join(10)


def test_encrypted_and_only_if_the_certificate_is_good(
    cassandra: Ring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pem = certificate(tmp_path)
    with encrypted(cassandra.port, pem) as port:
        url = cassandra.url.replace(f":{cassandra.port}", f":{port}") + "?ssl=true"
        with fairlock.connect(url) as locks, pytest.raises(ConfigError, match=r"does not trust .* SSL_CERT_FILE"):
            locks.lock("x").acquire()
        monkeypatch.setenv("SSL_CERT_FILE", str(pem))  # now it is trusted
        with fairlock.connect(url) as locks, locks.lock("x"):
            assert locks.lock("x").locked()


def test_a_node_that_does_not_encrypt_is_told_from_one_that_is_not_there(cassandra: Ring) -> None:
    with fairlock.connect(f"{cassandra.url}?ssl=true") as locks, pytest.raises(ConfigError, match="does not encrypt"):
        locks.lock("x").acquire()


def test_a_data_centre_is_asked_and_no_other() -> None:
    def asked(target: str) -> Any:
        return url.read(target, {}).route._child_policy  # type: ignore[union-attr]

    assert isinstance(asked("cassandra://h1/k"), RoundRobinPolicy)
    near = asked("cassandra://h1/k?local_dc=east&consistency=local_serial")
    assert isinstance(near, DCAwareRoundRobinPolicy)
    assert near.local_dc == "east"
    assert near.used_hosts_per_remote_dc == 0
    assert url.read("cassandra://h1/k?skew=0.4", {"timeout": 7}).skew == 0.4


def test_what_schema_prints_is_enough_for_a_role_with_these_rights_only(cassandra: Ring) -> None:
    with fairlock.connect(cassandra.url.replace("/fairlock", "/printed?replication=1")) as locks:
        printed = locks._session.backend.schema()
    statements = [line.removeprefix("-- ") if line.endswith(";") else line for line in printed.splitlines()]
    session = cassandra.session()
    session.execute("CREATE ROLE IF NOT EXISTS locker WITH PASSWORD = 'open-sesame' AND LOGIN = true")
    for statement in "\n".join([*statements, ""]).split(";\n"):
        if words := [line for line in statement.splitlines() if line and not line.startswith("--")]:
            session.execute("\n".join(words))
    url = cassandra.url.replace("cassandra:cassandra", "locker:open-sesame").replace("/fairlock", "/printed")
    with fairlock.connect(url) as locks, locks.lock("x"):
        locks.pool("jobs").add("a")
        assert locks.pool("jobs").acquire(blocking=False) is not None


@pytest.mark.parametrize(
    ("said", "copies"),
    [("", "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}"),
     ("?replication=5", "{'class': 'NetworkTopologyStrategy', 'replication_factor': 5}"),
     ("?replication=east:3,us-west_2:2", "{'class': 'NetworkTopologyStrategy', 'east': 3, 'us-west_2': 2}")],
)  # fmt: skip
def test_three_copies_unless_something_else_is_said(said: str, copies: str) -> None:
    with fairlock.connect(f"cassandra://h1/k{said}") as locks:
        assert f"-- CREATE KEYSPACE IF NOT EXISTS k WITH replication = {copies};" in locks._session.backend.schema()


class Nodes:
    """A session whose nodes return these times, in milliseconds from ours; None does not reply."""

    def __init__(self, *apart: int | None) -> None:
        hosts = [SimpleNamespace(address=f"h{number}", apart=one) for number, one in enumerate(apart)]
        self.cluster = SimpleNamespace(metadata=SimpleNamespace(all_hosts=lambda: hosts))
        self.here = 1_000.0

    def execute(self, statement: object, host: Any, timeout: float) -> Any:
        if host.apart is None:
            raise OperationTimedOut
        return SimpleNamespace(one=lambda: SimpleNamespace(now=self.here * 1000 + host.apart))


@pytest.mark.parametrize(
    ("apart", "told"),
    [
        ((0, 3, -4), [("ok", "The clocks of 3 nodes differ by 7 ms.")]),
        ((0, 250, None), [("warning", "The clocks of 2 nodes differ by 250 ms, and 'skew' allows for 100. "
                                      "Let NTP set them, or raise it.")]),
        ((500, 500), [("ok", "The clocks of 2 nodes differ by 0 ms.")]),
        ((70,), []),
    ],
)  # fmt: skip
def test_the_doctor_tells_how_far_the_clocks_of_nodes_are_apart(apart: Any, told: Any) -> None:
    nodes = Nodes(*apart)
    sender = SimpleNamespace(runtime=SimpleNamespace(clock=lambda: nodes.here))
    assert doctor._clocks(SimpleNamespace(sender=sender, skew=0.1), nodes) == told  # type: ignore[arg-type]
