"""After a fork the child holds nothing: this resets every session of the process."""

from __future__ import annotations

import os
import weakref

from .session import Session

sessions: weakref.WeakSet[Session] = weakref.WeakSet()


def _in_the_child() -> None:
    for session in list(sessions):
        session.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_the_child)
