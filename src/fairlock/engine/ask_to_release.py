"""Requests to release: an operator asks, the store keeps the request with the grant, the holder decides.

A holder learns of it like of an eviction: the store wakes its keeper, which renews at once; the reply to every renewal
names the client that asks, and its reason. Where no wake-up comes, the keeper reads the state once a second.

A grant that is asked for is not passed on any more inside this client: its release goes to the queue of the store, and
those that wait here ask for a grant of their own. Rejected alternative: to pass it on. Then the next thread would hold
what the operator asked for, under the same ticket, and its own `on_asked` would have to run before it began.
"""

from __future__ import annotations

from typing import NamedTuple

from ..rules.locks import Why
from .events import report_asked
from .grant import Grant
from .grant_state import HELD
from .session import Session


class ReleaseRequest(NamedTuple):
    """A client asks the holder of a lock to release it. Whether it does is the holder's decision."""

    by: str
    """The owner of the client that asks."""
    reason: str


def note_request(session: Session, grant: Grant, asked: Why | None) -> None:
    """Note what a reply says about a request to release. The same one again is no news, another one replaces it."""
    if asked is None:
        return
    request = ReleaseRequest(asked.by, asked.reason)
    with session.mutex:
        if session.release_requests.get(grant.ticket) == request or grant.state is not HELD:
            return
        session.set_apart(grant)
        held = {ticket: each for ticket, each in session.release_requests.items() if ticket in session.grants}
        session.release_requests = {**held, grant.ticket: request}
        holds = list(grant.holds)
    for hold in holds:
        report_asked(session, hold, request.by, request.reason)
        session.call_back(hold, "on_asked")
