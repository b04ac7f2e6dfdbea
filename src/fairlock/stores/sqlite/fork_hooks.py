"""Calls every store before and after each fork of this process.

SQLite's locks belong to a process, its memory of them does not: a child that inherits an open connection and opens
another one *loses writes*. So every connection is closed before a fork, with the guard held so that no other thread
opens it in between, and opened again by its next use, on either side.
"""

import os
import threading
import weakref

from ...forks import reset_in_child
from ..base import StoreClient

_stores: "weakref.WeakSet[StoreClient]" = weakref.WeakSet()
_paused: dict[int, list[StoreClient]] = {}  # by the thread that forks: two may do so at once


def register(one: StoreClient) -> None:
    _stores.add(one)


def _before() -> None:
    _paused[threading.get_ident()] = [f for f in list(_stores) if f.before_fork()]


def _in_parent() -> None:
    for one in _paused.pop(threading.get_ident(), ()):
        one.after_fork()


def _in_child() -> None:
    for one in list(_stores):
        one.forked()
    _paused.clear()  # only now: this may be the last that holds one of them, and its end needs what forked() has mended


os.register_at_fork(before=_before, after_in_parent=_in_parent)
reset_in_child(_in_child)
