"""A thread that confirms the grants of tasks whose event loop is blocked.

A grant from the queue is unconfirmed for two seconds. A client that holds it for longer than a tenth of a second
confirms it: its keeper does. But the keeper of tasks runs in their loop, and a task may block that (a plain call that
takes seconds). Then this thread confirms the grant, by a connection of its own, which it opens for that. So a task can
enter as soon as it has read its grant, as a thread does, and a section that is short needs no statement to confirm it.

There is a thread only while tasks hold grants that are younger than half a second. It sleeps for most of that time, and
finds that they have been released or confirmed meanwhile.

Rejected alternatives: to confirm before the section begins (a write more for each grant, and on a crowded row a refused
one besides); to send that without waiting for the reply (if it is refused, a blocked loop cannot repeat it).
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable

from ..engine.grant import Grant
from ..engine.grant_state import HELD
from ..engine.run_sync import run
from ..engine.session import Session
from ..errors import LockError
from ..rules.locks import Granted
from ..stores.base import Answer, Backend

DUE = 0.4  # seconds after which a grant that is still unconfirmed is confirmed here; its keeper needs a tenth
TICK = 0.2  # seconds between two checks


class ThreadConfirmer:
    """Of one session. `watch` is called in its loop."""

    def __init__(self, session: Session, connect: Callable[[], Backend]) -> None:
        """`connect` opens the same store for threads."""
        self._session = weakref.ref(session)
        self._clock = session.clock
        self._connect = connect
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._young: deque[tuple[float, Grant]] = deque()  # with when they were granted, the oldest first
        self._runs = False

    def watch(self, grant: Grant) -> bool:
        """Confirm this grant, which is about to be accepted, if its loop does not. False: no thread can be started."""
        if self._pid != os.getpid():
            self._reset()  # the child of a fork: the thread is the parent's
        with self._mutex:
            if not self._runs:
                try:
                    threading.Thread(target=self._run, name="fairlock-confirmer", daemon=True).start()
                except RuntimeError:
                    return False
                self._runs = True
            self._young.append((self._clock(), grant))
        return True

    def _run(self) -> None:
        while True:
            time.sleep(TICK)
            with self._mutex:
                if not self._young:
                    self._runs = False
                    return
                due = self._clock() - DUE
                old = []
                while self._young and self._young[0][0] <= due:
                    old.append(self._young.popleft())
            late = [each for each in old if _is_unconfirmed(*each)]
            if late:
                self._confirm(late)
                again = [each for each in late if _is_unconfirmed(*each) and self._clock() < each[1].deadline]
                with self._mutex:
                    self._young.extendleft(reversed(again))

    def _confirm(self, grants: list[tuple[float, Grant]]) -> None:
        """Confirm these. If that fails they stay as they are, and it is tried again."""
        try:
            backend = self._connect()
            try:
                size = backend.batch_size
                for n in range(0, len(grants), size):
                    part = [grant for _, grant in grants[n : n + size]]
                    messages = [(grant.name, grant.request.renewal_message(grant)) for grant in part]
                    answers = run(backend.call_many(messages))
                    for grant, answer in zip(part, answers, strict=True):
                        if isinstance(answer, Answer):
                            self._accept(grant, answer)
            finally:
                run(backend.close())
        except LockError:
            pass  # the store cannot be reached

    def _accept(self, grant: Grant, answer: Answer) -> None:
        """Note a renewal. Anything else is left to the keeper, which asks the store itself when it can."""
        reply, session = answer.reply, self._session()
        if session is None:
            return
        with session.mutex:
            if isinstance(reply, Granted) and reply.fence == grant.fence and grant.state is HELD and not grant.cut:
                grant.confirm(answer.at, reply.left, session.backend.skew)


def _is_unconfirmed(since: float, grant: Grant) -> bool:
    return grant.state is HELD and grant.asked <= since
