"""From a URL, or a Session of the caller, to a session of the driver and how it is used.

The driver's retries are off: a lightweight transaction whose outcome is unknown must not be sent again by anything but
the engine, which looks first. All clients ask the same replica of a row as long as it answers: two coordinators of one
row disturb each other, and have two clocks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import unquote

from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import DCAwareRoundRobinPolicy, FallthroughRetryPolicy, RoundRobinPolicy

from ...errors import ConfigError
from .. import split_url
from .load_balancing import SameReplica

FORM = "cassandra://USER:PASSWORD@HOST1,HOST2/KEYSPACE"
OPTIONS = ("port", "local_dc", "consistency", "timeout", "skew", "ssl", "replication")
SESSION_OPTIONS = ("keyspace", "consistency", "timeout", "skew", "replication")
PORT = 9042
ANSWER = 3.0  # seconds for each answer: longer than the server itself tries, so that it reports the outcome
SKEW = 0.1  # seconds by which the clocks of the nodes may differ
COPIES = "3"  # of everything, and so one node of three may be down
STRATEGY = "NetworkTopologyStrategy"
REPLICATION = re.compile(r"[1-9]\d?|[\w-]+:[1-9]\d?(,[\w-]+:[1-9]\d?)*")
CONSISTENCIES = {"serial": ("SERIAL", "QUORUM"), "local_serial": ("LOCAL_SERIAL", "LOCAL_QUORUM")}


class Address(NamedTuple):
    make: Callable[[], Session] | None
    """Connects; None if the session is the caller's."""
    session: Session | None
    keyspace: str
    where: str
    consistency: tuple[str, str]
    """Of a transaction and of a read; together they see each other."""
    timeout: float
    skew: float
    route: SameReplica | None
    """Learns which nodes do not answer."""
    replication: str
    """Of the keyspace, as CQL has it."""


def read(url: str, options: Mapping[str, Any]) -> Address:
    """Options are keywords of connect(); a URL has them as `?name=value`, and a keyword counts for more."""
    parts = split_url.split(url, FORM)
    keyspace = unquote(parts.path[1:])
    given = split_url.options([*parts.query, *options.items()], OPTIONS, "cassandra")
    hosts, ports = _hosts(parts.place)
    if not hosts or not keyspace.replace("_", "a").isalnum() or len(ports) > 1:
        raise ConfigError(f"This cassandra:// URL cannot be read. Its form is {FORM}; all hosts have the same port.")
    port = _port(given.get("port") or (ports.pop() if ports else PORT))
    timeout, skew, consistency = _numbers(given)
    local = given.get("local_dc")
    if consistency[0] == "LOCAL_SERIAL" and not local:
        raise ConfigError("consistency=local_serial counts for one data centre only: name it, local_dc=NAME.")
    route = SameReplica(DCAwareRoundRobinPolicy(local) if local else RoundRobinPolicy())

    def make() -> Session:
        profile = ExecutionProfile(route, FallthroughRetryPolicy(), request_timeout=timeout)
        auth = PlainTextAuthProvider(parts.user, parts.password or "") if parts.user else None
        cluster = Cluster(
            hosts, port=port, auth_provider=auth, ssl_context=_ssl(given), connect_timeout=timeout,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile}, control_connection_timeout=timeout,
            idle_heartbeat_interval=5, idle_heartbeat_timeout=5,
        )  # fmt: skip
        try:
            return cluster.connect()
        except BaseException:
            cluster.shutdown()
            raise

    where = f"cassandra://{parts.place}/{keyspace}"
    return Address(make, None, keyspace, where, consistency, timeout, skew, route, _replication(given))


def from_session(session: Any, options: Mapping[str, Any]) -> Address:
    """Return the keyspace of this session, or another one that it can reach."""
    if not isinstance(session, Session):
        raise ConfigError(f"Of the driver's objects a Session can be used, not a {type(session).__name__}.")
    given = split_url.options(options.items(), SESSION_OPTIONS, "cassandra")
    keyspace = given.get("keyspace") or session.keyspace
    if not keyspace:
        raise ConfigError("This session has no keyspace: name it, connect(session, keyspace='locks').")
    hosts = ",".join(sorted(str(host) for host in session.cluster.contact_points or ()))
    timeout, skew, consistency = _numbers(given)
    where = f"cassandra://{hosts}/{keyspace}"
    return Address(None, session, keyspace, where, consistency, timeout, skew, None, _replication(given))


def _hosts(place: str) -> tuple[list[str], set[str]]:
    hosts, ports = [], set()
    for one in filter(None, place.split(",")):
        host, colon, port = one.rpartition(":") if not one.endswith("]") else (one, "", "")
        if colon and not port.isdigit():
            return [], set()
        hosts.append((host if colon else one).strip("[]"))
        if colon:
            ports.add(port)
    return hosts, ports


def _port(value: Any) -> int:
    with suppress(TypeError, ValueError):
        if 0 < int(value) < 65536:
            return int(value)
    raise ConfigError("The port of a cassandra:// URL is a number from 1 to 65535.")


def _ssl(given: Mapping[str, Any]) -> Any:
    if str(given.get("ssl", "false")).lower() not in ("1", "true", "yes"):
        return None
    import ssl

    return ssl.create_default_context()


def _replication(given: Mapping[str, Any]) -> str:
    """Return the replication of a text such as 3 or east:3,west:3."""
    text = str(given.get("replication", COPIES))
    if not REPLICATION.fullmatch(text):
        raise ConfigError("replication is 3, or for each data centre its number, east:3,west:3.")
    copies = [part.rpartition(":") for part in text.split(",")]
    return str({"class": STRATEGY, **{centre or "replication_factor": int(number) for centre, _, number in copies}})


def _numbers(given: Mapping[str, Any]) -> tuple[float, float, tuple[str, str]]:
    consistency = CONSISTENCIES.get(str(given.get("consistency", "serial")).lower())
    if consistency is None:
        raise ConfigError(f"consistency is {' or '.join(CONSISTENCIES)}.")
    return split_url.seconds(given, "timeout", ANSWER), split_url.seconds(given, "skew", SKEW, zero=True), consistency
