"""`fairlock ask`: asks the holders of a name to release it. They decide; `fairlock evict` does not ask.

With --json it prints name, asked (tickets, shortened).
"""

from fairlock.engine import validate
from fairlock.engine.events import short

from . import describe_holders, exit_codes, make_client, output
from .parse_arguments import Arguments


def ask(args: Arguments) -> int:
    if not (args["reason"] or "").strip():
        raise exit_codes.Usage("ask needs --reason TEXT. The holder gets it.")
    name = validate.name(args.operands[0])
    with make_client.client(args) as locks:
        tickets = locks.ask(name, reason=args["reason"], ticket=args["ticket"])
        store = locks.store
        hint = "" if tickets or args["json"] else describe_holders.about_pool(locks, name)
    value = {"name": name, "asked": [short(ticket) for ticket in tickets]}
    if tickets:
        output.result(args, value, f"asked {output.plural(len(tickets), 'holder')} to release {name!r}")
    else:
        which = "no holder with this ticket" if args["ticket"] else "no holder"
        output.unchanged(args, value, f"{name!r} has {which} in {store}, so no holder was asked.{hint}")
    return 0
