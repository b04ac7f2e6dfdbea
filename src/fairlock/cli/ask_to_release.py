"""`fairlock ask`: asks the holders of a name to release it. They decide; `fairlock evict` does not ask.

With --json it prints name, asked (tickets, shortened).
"""

from fairlock.engine.events import short

from . import acquire_lock, describe_holders, exit_codes, make_client, output
from .parse_arguments import Arguments


def ask(args: Arguments) -> int:
    if not (args["reason"] or "").strip():
        raise exit_codes.Usage("ask needs --reason TEXT. The holder gets it.")
    name = acquire_lock.name(args.operands[0])
    with make_client.client(args) as locks:
        tickets = locks.ask(name, reason=args["reason"], ticket=args["ticket"])
        store = locks.store
        hint = "" if tickets or args["json"] else describe_holders.about_pool(locks, name)
    if args["json"]:
        output.json({"name": name, "asked": [short(ticket) for ticket in tickets]})
    elif not tickets:
        which = "no holder with this ticket" if args["ticket"] else "no holder"
        output.err(f"{name!r} has {which} in {store}, so no holder was asked.{hint}")
    elif not args["quiet"]:
        output.out(f"asked {len(tickets)} holder{'s' * (len(tickets) != 1)} to release {name!r}\n")
    return 0
