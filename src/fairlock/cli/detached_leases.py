"""`fairlock acquire`, `renew`, `release`: for scripts, a lease that needs no process.

    ticket=$(fairlock acquire deploy --lease 10m) || exit
    …
    fairlock release deploy --ticket "$ticket"

A handle is a secret that the user chooses. It is given to `acquire` or `run`, and later to `renew` or `release` instead
of the ticket.

With --json: acquire prints name, ticket, fence, lease; renew prints name, fence, expires_in; release prints name, held.
"""

import os
from typing import TYPE_CHECKING, Any

from fairlock.engine import validate
from fairlock.engine.run_sync import run
from fairlock.errors import NotHeld
from fairlock.rules.locks import Granted, NotHolder, Release, Released, Renew, Reply

from . import acquire_lock, exit_codes, make_client, output
from .parse_arguments import Arguments

if TYPE_CHECKING:
    from fairlock import Locks

PREFIX, RELEASED = "pid", "released by its ticket"  # of `acquire --pid`, why it ends: hold_until_process_ends.py


def acquire(args: Arguments) -> int:
    if args["pid"] is not None:
        from .hold_until_process_ends import acquire_for

        return acquire_for(args, args["pid"])
    if args["on_lost"] is not None:
        raise exit_codes.Usage("--on-lost goes with --pid: without it no process is there to end.")
    own = args["ticket"]
    if own is not None and not (own.isascii() and own.isalnum() and len(own) <= 200):
        raise exit_codes.Usage("--ticket needs 1 to 200 letters and digits, and should be hard to guess.")
    with make_client.client(args) as locks:
        lease = acquire_detached(args, locks, own)
    print_ticket(args, lease)
    return 0


def acquire_detached(args: Arguments, locks: "Locks", ticket: str | None) -> dict[str, Any]:
    """Acquire NAME, with this ticket if it is given, and detach the lease. Return what --json prints about it."""
    name = args.operands[0]
    if ticket is not None:
        locks.session.use_ticket(ticket)
    lease = acquire_lock.acquire(args, locks, acquire_lock.make(args, locks, name, ""))
    fence, length = lease.fence, locks.session.default_lease
    return {"name": name, "ticket": lease.detach(length), "fence": fence, "lease": length}


def print_ticket(args: Arguments, lease: dict[str, Any]) -> None:
    if args["json"]:
        output.json(lease)
    else:
        output.out(f"{lease['ticket']}\n")


def ticket_in(args: Arguments) -> str | None:
    """Return the ticket of the lease to renew or release; None if it is named by a handle."""
    if args["handle"] is not None:
        if args["ticket"] is not None:
            raise exit_codes.Usage("--ticket and --handle both name the lease: use one of them.")
        return None
    ticket = args["ticket"] if args["ticket"] is not None else os.environ.get("FAIRLOCK_TICKET")
    if not ticket:
        form = f"`fairlock {args.command.name} NAME --ticket T`"
        raise exit_codes.Usage(f"No lease is named. Use {form} with the ticket that `acquire` printed.")
    return validate.ticket(ticket)


def renew(args: Arguments) -> int:
    name, ticket = args.operands[0], ticket_in(args)
    if ticket is None:
        return extend(args)
    with make_client.client(args) as locks:
        longer = None if args["lease"] is None else int(validate.lease(args["lease"]) * 1e6)
        reply = run(locks.session.call(validate.name(name), Renew(ticket, lease=longer)))
    if not isinstance(reply, Granted):
        raise exit_codes.Exit(exit_codes.LOST, describe_loss(name, reply), expected=True)
    asked = None if reply.asked is None else {"by": reply.asked.by, "reason": reply.asked.reason}
    if asked is not None and not args["quiet"]:
        output.err(f"{name!r}: {asked['by'] or 'somebody'} asks to release it ({asked['reason']}).")
    found = {"name": name, "fence": reply.fence, "expires_in": reply.left / 1e6, "asked": asked}
    output.result(args, found, f"{name!r} is held for another {output.duration(reply.left / 1e6)}")
    return 0


def extend(args: Arguments) -> int:
    if args["lease"] is None:
        raise exit_codes.Usage("No duration is given. Use `fairlock renew NAME --handle TEXT --lease DUR`.")
    name = args.operands[0]
    with make_client.client(args) as locks:
        try:
            locks.extend(name, args["lease"], handle=make_client.text_or_file(args["handle"], "handle"))
        except NotHeld as bad:
            raise exit_codes.Exit(exit_codes.LOST, str(bad), expected=True) from None
    text = f"{name!r} is held for at least {output.duration(args['lease'])}"
    output.result(args, {"name": name, "lease": args["lease"]}, text)
    return 0


def release(args: Arguments) -> int:
    name, ticket = args.operands[0], ticket_in(args)
    with make_client.client(args) as locks:
        if ticket is None:
            held = locks.release(name, handle=make_client.text_or_file(args["handle"], "handle"))
            loss = f"{name!r} is not held with this handle: it was released, or its lease has expired."
        else:
            if ticket.startswith(PREFIX):  # its keeper reads the reason: this is no loss
                reply: Reply = Released(run(locks.session.release_held(name, ticket, RELEASED)))
            else:
                reply = run(locks.session.call(validate.name(name), Release(ticket, leave_tombstone=False)))
            held, loss = isinstance(reply, Released) and reply.held, describe_loss(name, reply)
    output.result(args, {"name": name, "held": held})
    if not held:
        raise exit_codes.Exit(exit_codes.LOST, loss, expected=True)
    return 0


def describe_loss(name: str, reply: object) -> str:
    why = reply.why if isinstance(reply, NotHolder) else None
    if why is not None and why.kind == "evicted":
        return f"{name!r} was evicted by {why.by or 'an operator'}{f' ({why.reason})' if why.reason else ''}."
    return f"{name!r} is not held with this ticket: it was released, or its lease has expired. Another may hold it now."
