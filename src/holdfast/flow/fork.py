"""After a fork the child holds nothing: every desk of the process is told."""

from __future__ import annotations

import os
import weakref

from .desk import Desk

desks: weakref.WeakSet[Desk] = weakref.WeakSet()


def remember(desk: Desk) -> None:
    desks.add(desk)


def _in_the_child() -> None:
    for desk in list(desks):
        desk.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_the_child)
