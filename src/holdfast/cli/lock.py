"""The lock that `run` and `acquire` ask for: which kind, how long to wait, and the sentence if it is not to be had."""

import os
from typing import TYPE_CHECKING, Any

from holdfast.errors import LockTimeout
from holdfast.flow.check import name as checked_name

from . import reach
from .exits import NOT_ACQUIRED, Exit
from .words import STORED, Said

if TYPE_CHECKING:
    from holdfast import Lease, Lock, Locks


def name(text: str) -> str:
    """A name for a step that does not go through a lock object. ConfigError if it is none."""
    return checked_name(text)


def make(said: Said, locks: "Locks", name: str, note: str, **options: Any) -> "Lock":
    options["note"] = said["note"] if said["note"] is not None else note
    if said["handle"] is not None:
        options["handle"] = reach.handle(said)
    if said["slots"] is not None:
        return locks.semaphore(name, None if said["slots"] == STORED else said["slots"], **options)
    options["local_handoff"] = False  # one holder in this process: there is nobody to hand it to
    if said["shared"]:
        return locks.rwlock(name, **options).read()
    return locks.lock(name, **options)


def enter(said: Said, locks: "Locks", lock: "Lock") -> "Lease":
    """Inside, or Exit with the sentence that says who is."""
    patience = 0.0 if said["nonblock"] else said["wait"]
    code = NOT_ACQUIRED if said["conflict"] is None else said["conflict"]
    held = os.environ.get("HOLDFAST_HELD", "").split()
    try:
        if held and patience != 0:  # a command of `holdfast run` may be about to wait for its own parent
            lease = lock.acquire(blocking=False)
            if lease is not None:
                return lease
            if not set(held).isdisjoint(reach.tickets_inside(locks, lock.name)):
                sentence = f"{lock.name!r} is held by a `holdfast run` around this one; waiting would never end."
                raise Exit(code, sentence, quietly=True)
        lease = lock.hold(timeout=patience).__enter__()
        if lease.remaining() * 2 < reach.lease_of(locks):
            lease.renew()  # let in on the word of a push; what is begun now counts on the whole lease
        return lease
    except LockTimeout as late:
        raise Exit(code, str(late), quietly=True) from None
