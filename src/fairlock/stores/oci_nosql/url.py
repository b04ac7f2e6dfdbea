"""From a URL, or a NosqlClient of the caller, to a client of ours: the same table and rights, but one that never sends
anything twice by itself.

The SDK tries again up to eight times for ten minutes, and its circuit breaker stops every client of the
process after ten refusals. For a lock the first would be a renewal that hangs, the second a loss of all leases at once.
Both are off in ours, whatever they are in yours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

import oci

from ...errors import ConfigError
from .. import split_url
from ..deadline import limit

FORM = "oci-nosql://REGION/COMPARTMENT/TABLE"
OPTIONS = ("config_file", "profile", "auth", "endpoint", "timeout", "skew")
CLIENT_OPTIONS = ("table", "compartment", "timeout", "skew")
TABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]*|ocid1\..+")
CONNECT = 2.0  # seconds for a connection
ANSWER = 5.0  # seconds for each answer
MOMENT = 0.25  # seconds that a request has in any case
SKEW = 0.1  # seconds by which the clocks behind the service may differ

AUTH = {
    "instance_principal": "InstancePrincipalsSecurityTokenSigner",
    "resource_principal": "get_resource_principals_signer",
}


class Limits(tuple[float, ...]):
    """For a connection and for a reply, as the SDK has them for all requests: each takes no longer than its caller
    waits, because they are looked up by the thread that sends it. A step is several requests: one that is sent when the
    time is almost over, because those before it were slow, has a moment nevertheless."""

    def __iter__(self) -> Iterator[float]:
        return (min(each, max(limit(each), MOMENT)) for each in super().__iter__())


class Address(NamedTuple):
    make: Callable[[], Any]
    """Makes a client of ours."""
    compartment: str | None
    table: str
    where: str
    skew: float


def read(url: str, options: Mapping[str, Any]) -> Address:
    """Options are keywords of connect(); a URL has them as `?name=value`, and a keyword counts for more."""
    parts = split_url.split(url, FORM)
    words = [unquote(word) for word in parts.path.split("/")[1:]]
    if parts.user is not None or not parts.place or ":" in parts.place or len(words) != 2 or not words[1]:
        raise ConfigError(
            f"This oci-nosql:// URL cannot be read. Its form is {FORM}; COMPARTMENT may be empty if TABLE is an OCID. "
            "The user is named in ~/.oci/config, not in the URL."
        )
    region, (compartment, table) = parts.place, words
    if not compartment and not table.startswith("ocid1."):
        raise ConfigError("A table by name needs its compartment: oci-nosql://REGION/COMPARTMENT/TABLE.")
    _check_table(table)
    given = split_url.options([*parts.query, *options.items()], OPTIONS, "oci-nosql")
    auth = str(given.get("auth", "config"))
    if auth not in ("config", *AUTH):
        raise ConfigError(f"auth is config, {' or '.join(AUTH)}.")
    timeout, skew = _times(given)

    def make() -> Any:
        endpoint = {"service_endpoint": given["endpoint"]} if "endpoint" in given else {}
        try:
            if auth == "config":
                file = os.path.expanduser(str(given.get("config_file", oci.config.DEFAULT_LOCATION)))
                config = {**oci.config.from_file(file, str(given.get("profile", "DEFAULT"))), "region": region}
                return _client(config, timeout, **endpoint)
            signer = getattr(oci.auth.signers, AUTH[auth])()
            return _client({"region": region}, timeout, signer=signer, **endpoint)
        except (oci.exceptions.ClientError, ValueError, OSError) as bad:
            raise ConfigError(
                f"There are no credentials for OCI by auth={auth}: {_first_line(bad)}. "
                "Make them with 'oci setup config', or name config_file, profile or auth in the URL."
            ) from None

    return Address(make, compartment or None, table, f"oci-nosql://{region}/{compartment}/{table}", skew)


def from_client(client: Any, options: Mapping[str, Any]) -> Address:
    """Return a client of ours with the rights of this one."""
    if not isinstance(client, oci.nosql.NosqlClient):
        raise ConfigError(f"Of OCI's clients a NosqlClient can be used, not {type(client).__name__}.")
    given = split_url.options(options.items(), CLIENT_OPTIONS, "oci-nosql")
    table = given.get("table")
    if not table or not isinstance(table, str):
        raise ConfigError("A NosqlClient reaches many tables: name one, connect(client, table='locks').")
    _check_table(table)
    timeout, skew = _times(given)
    theirs = client.base_client
    compartment = given.get("compartment") or (
        None if table.startswith("ocid1.") else (theirs.config or {}).get("tenancy")
    )

    def make() -> Any:
        return _client(theirs.config, timeout, signer=theirs.signer, service_endpoint=theirs.get_endpoint())

    region = (theirs.config or {}).get("region") or "-"
    return Address(make, compartment, table, f"oci-nosql://{region}/{compartment or ''}/{table}", skew)


def _client(config: Any, timeout: float, **how: Any) -> Any:
    return oci.nosql.NosqlClient(
        config,
        retry_strategy=oci.retry.NoneRetryStrategy(),
        circuit_breaker_strategy=oci.circuit_breaker.NoCircuitBreakerStrategy(),
        timeout=Limits((min(CONNECT, timeout), timeout)),
        allow_control_chars=True,  # the service sends them raw, and keys have separators
        **how,
    )


def _check_table(table: str) -> None:
    if TABLE.fullmatch(table) is None:
        raise ConfigError(f"{table!r} is no table: its name has letters, digits and _, or it is an OCID (ocid1.…).")


def _times(given: Mapping[str, Any]) -> tuple[float, float]:
    return split_url.seconds(given, "timeout", ANSWER), split_url.seconds(given, "skew", SKEW, zero=True)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
