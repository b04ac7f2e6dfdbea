"""`holdfast acquire`, `renew`, `release`: for scripts, a lease that lives without a process.

    ticket=$(holdfast acquire deploy --lease 10m) || exit
    …
    holdfast release deploy --ticket "$ticket"

A handle is a secret of your own choice. It is given to `acquire` or `run`, and to `renew` or `release` in the place of
the ticket.

With --json: acquire prints name, ticket, fence, lease; renew prints name, fence, left; release prints name, held.
"""

import os

from holdfast.doorman import Admitted, Leave, Left, NotInside, Renew
from holdfast.errors import NotHeld
from holdfast.flow import check

from . import exits, lock, reach, say
from .words import Said


def tickets(said: Said) -> int:
    if said.command.name == "acquire":
        return acquire(said)
    if said["handle"] is not None:
        if said["ticket"] is not None:
            raise exits.Usage("Each of --ticket and --handle says which lease: take one of them.")
        return extend(said) if said.command.name == "renew" else release_by_handle(said)
    ticket = said["ticket"] if said["ticket"] is not None else os.environ.get("HOLDFAST_TICKET")
    if not ticket:
        word = said.command.name
        raise exits.Usage(f"Which lease? `holdfast {word} NAME --ticket T` takes the ticket that `acquire` printed.")
    check.ticket(ticket)
    return renew(said, ticket) if said.command.name == "renew" else release(said, ticket)


def acquire(said: Said) -> int:
    own = said["ticket"]
    if own is not None and not (own.isascii() and own.isalnum() and len(own) <= 200):
        raise exits.Usage("A ticket of your own has up to 200 letters and digits only, and should be hard to guess.")
    name = said.words[0]
    with reach.client(said) as locks:
        if said["ticket"] is not None:
            reach.choose_ticket(locks, said["ticket"])
        lease = lock.enter(said, locks, lock.make(said, locks, name, ""))
        fence, length = lease.fence, reach.lease_of(locks)
        ticket = lease.detach(length)
    if said["json"]:
        say.json({"name": name, "ticket": ticket, "fence": fence, "lease": length})
    else:
        say.out(f"{ticket}\n")
    return 0


def renew(said: Said, ticket: str) -> int:
    name = said.words[0]
    with reach.client(said) as locks:
        longer = None if said["lease"] is None else int(check.lease(said["lease"]) * 1e6)
        reply = reach.ask(locks, lock.name(name), Renew(ticket, lease=longer))
    if not isinstance(reply, Admitted):
        raise exits.Exit(exits.LOST, gone(name, reply), quietly=True)
    if said["json"]:
        say.json({"name": name, "fence": reply.fence, "left": reply.left / 1e6})
    elif not said["quiet"]:
        say.out(f"{name!r} is yours for another {say.for_(reply.left / 1e6)}\n")
    return 0


def extend(said: Said) -> int:
    if said["lease"] is None:
        raise exits.Usage("For how long? `holdfast renew NAME --handle TEXT --lease DUR`.")
    name = said.words[0]
    with reach.client(said) as locks:
        try:
            locks.extend(name, said["lease"], handle=reach.handle(said))
        except NotHeld as bad:
            raise exits.Exit(exits.LOST, str(bad), quietly=True) from None
    if said["json"]:
        say.json({"name": name, "lease": said["lease"]})
    elif not said["quiet"]:
        say.out(f"{name!r} lasts for at least {say.for_(said['lease'])}\n")
    return 0


def release_by_handle(said: Said) -> int:
    name = said.words[0]
    with reach.client(said) as locks:
        held = locks.release(name, handle=reach.handle(said))
    if said["json"]:
        say.json({"name": name, "held": held})
    if not held:
        raise exits.Exit(exits.LOST, f"Nobody holds {name!r} with this handle: released, or run out.", quietly=True)
    return 0


def release(said: Said, ticket: str) -> int:
    name = said.words[0]
    with reach.client(said) as locks:
        reply = reach.ask(locks, lock.name(name), Leave(ticket, bury=False))
    held = isinstance(reply, Left) and reply.held
    if said["json"]:
        say.json({"name": name, "held": held})
    if not held:
        raise exits.Exit(exits.LOST, gone(name, reply), quietly=True)
    return 0


def gone(name: str, reply: object) -> str:
    why = reply.why if isinstance(reply, NotInside) else None
    if why is not None and why.kind == "evicted":
        return f"{name!r} was taken away by {why.by or 'somebody'}{f' ({why.reason})' if why.reason else ''}."
    return f"Nobody holds {name!r} by this ticket: released, or run out. Somebody else may hold it now."
