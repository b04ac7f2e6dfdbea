"""A connection to H2 by its PostgreSQL protocol."""

from __future__ import annotations

import os
import select
import socket
import time
from typing import Any

import psycopg
from psycopg.waiting import Ready, Wait

from .sql import DATABASE


class Wire(psycopg.Connection[Any]):
    """A connection to H2, which sends an answer in pieces and waits for each to be confirmed: so confirm at once."""

    limit = 20.0  # seconds; 0: forever, as python-oracledb does

    def wait(self, gen: Any, interval: float = 0, timeout: float | None = None) -> Any:
        end = time.monotonic() + self.limit
        with socket.socket(fileno=os.dup(self.fileno())) as sock:
            try:
                wanted = next(gen)
                while True:
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                    reads = [sock] if wanted & Wait.R else []
                    writes = [sock] if wanted & Wait.W else []
                    read, written, _ = select.select(reads, writes, [], 0.1)
                    if read or written:
                        wanted = gen.send((Ready.R if read else 0) | (Ready.W if written else 0))
                    elif self.closed or (self.limit and time.monotonic() > end):
                        raise TimeoutError
            except StopIteration as done:
                return done.value


def reach(port: int, user: str, password: str, limit: float) -> Wire:
    wire = Wire.connect(
        host="127.0.0.1", port=port, user=user, password=password, dbname=DATABASE, autocommit=True,
        connect_timeout=max(int(limit), 2), prepare_threshold=None,
    )  # fmt: skip
    # Each connection by this protocol sets the mode of the whole database to PostgreSQL's: so set it back. (In between
    # only a CREATE TABLE of somebody else would be read otherwise; all else that differs is in oracle_strict.)
    wire.execute("SET MODE Oracle")
    wire.execute("SET NON_KEYWORDS KEY, VALUE")
    return wire
