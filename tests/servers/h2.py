"""A connection to H2 by its PostgreSQL protocol.

H2 sends an answer in pieces and waits for each to be confirmed, which the system does after 40 ms: here, at once.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import generators
from psycopg.conninfo import make_conninfo
from psycopg.waiting import Ready, Wait

from .sql import DATABASE


class Wire(psycopg.Connection[Any]):
    limit = 20.0  # seconds; 0: forever, as python-oracledb does

    def wait(self, gen: Any, interval: float = 0, timeout: float | None = None) -> Any:
        return play(gen, self.limit, lambda wanted: (self.fileno(), wanted), lambda: bool(self.closed))


def play(gen: Any, limit: float, what: Callable[[Any], tuple[int, Any]], closed: Callable[[], bool]) -> Any:
    """Drive a generator of psycopg, which says what it waits for. TimeoutError after `limit` seconds of silence."""
    end = time.monotonic() + limit
    try:
        number, wanted = what(next(gen))
        while True:
            with socket.socket(fileno=os.dup(number)) as sock:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                reads = [sock] if wanted & Wait.R else []
                writes = [sock] if wanted & Wait.W else []
                read, written, _ = select.select(reads, writes, [], 0.1)
            if read or written:
                number, wanted = what(gen.send((Ready.R if read else 0) | (Ready.W if written else 0)))
            elif closed() or (limit and time.monotonic() > end):
                raise TimeoutError
    except StopIteration as done:
        return done.value


def reach(port: int, user: str, password: str, limit: float) -> Wire:
    place = make_conninfo(host="127.0.0.1", port=port, user=user, password=password, dbname=DATABASE)
    wire = Wire(play(generators.connect(place), limit, lambda wanted: wanted, lambda: False))
    wire.autocommit = True
    wire.prepare_threshold = None
    # Each connection by this protocol sets the mode of the whole database to PostgreSQL's: so set it back. (In between
    # only a CREATE TABLE of somebody else would be read otherwise; all else that differs is in oracle_strict.)
    wire.execute("SET MODE Oracle")
    wire.execute("SET NON_KEYWORDS KEY, VALUE")
    return wire
