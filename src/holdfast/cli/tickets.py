"""`holdfast acquire`, `renew`, `release`: for scripts, a lease that lives without a process.

    ticket=$(holdfast acquire deploy --lease 10m) || exit
    …
    holdfast release deploy --ticket "$ticket"

With --json: acquire prints name, ticket, fence, lease; renew prints name, fence, left; release prints name, held.
"""

import os

from holdfast.doorman import Admitted, Leave, Left, NotInside, Renew
from holdfast.flow import check

from . import exits, lock, reach, say
from .words import Said


def tickets(said: Said) -> int:
    if said.command.name == "acquire":
        return acquire(said)
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
        reply = reach.ask(locks, lock.name(name), Renew(ticket))
    if not isinstance(reply, Admitted):
        raise exits.Exit(exits.LOST, gone(name, reply), quietly=True)
    if said["json"]:
        say.json({"name": name, "fence": reply.fence, "left": reply.left / 1e6})
    elif not said["quiet"]:
        say.out(f"{name!r} is yours for another {say.for_(reply.left / 1e6)}\n")
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
