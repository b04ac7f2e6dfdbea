"""Makes and acquires the lock of `run` and `acquire`: its kind, the timeout, and the sentence if it is not acquired."""

import os
from typing import TYPE_CHECKING, Any

from fairlock.engine.run_sync import run
from fairlock.errors import LockTimeout

from . import make_client
from .exit_codes import NOT_ACQUIRED, Exit
from .parse_arguments import STORED, Arguments

if TYPE_CHECKING:
    from fairlock import Lease, Lock, Locks


def make(args: Arguments, locks: "Locks", name: str, note: str, **options: Any) -> "Lock":
    options["note"] = args["note"] if args["note"] is not None else note
    if args["handle"] is not None:
        options["handle"] = make_client.text_or_file(args["handle"], "handle")
    if args["slots"] is not None:
        return locks.semaphore(name, None if args["slots"] == STORED else args["slots"], **options)
    options["local_handoff"] = False  # this process has one holder, so there is no other to hand it to
    if args["shared"]:
        return locks.rwlock(name, **options).read()
    return locks.lock(name, **options)


def acquire(args: Arguments, locks: "Locks", lock: "Lock") -> "Lease":
    """Acquire the lock, or raise Exit with a sentence that names the holder."""
    timeout = 0.0 if args["nonblock"] else args["wait"]
    code = NOT_ACQUIRED if args["conflict"] is None else args["conflict"]
    held = os.environ.get("FAIRLOCK_HELD", "").split()
    try:
        if held and timeout != 0:  # the command of a `fairlock run` could wait for its own parent
            lease = lock.acquire(blocking=False)
            if lease is not None:
                return lease
            state, _ = run(locks.session.read(lock.name))  # a snapshot would shorten the tickets
            if not set(held).isdisjoint(entry.ticket for entry in state.holders):
                sentence = f"{lock.name!r} is held by a `fairlock run` around this one; waiting would never end."
                raise Exit(code, sentence, expected=True)
        lease = lock.hold(timeout=timeout).__enter__()
        if lease.remaining() * 2 < locks.session.default_lease:
            lease.renew()  # the grant is provisional; the command needs the full lease
        return lease
    except LockTimeout as late:
        raise Exit(code, str(late), expected=True) from None
