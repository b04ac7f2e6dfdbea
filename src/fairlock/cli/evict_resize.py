"""`fairlock evict` and `fairlock resize`: for operators.

With --json: evict prints name, evicted (tickets, shortened), with --pattern pattern, names (each with name, evicted);
resize prints name, slots (null with --program).

A pattern needs --pattern. Rejected alternative: a name with a star that is not held is a pattern. A lock whose name
contains a star may just have been released, and then the holders of other names would be evicted.
"""

import os
import sys
from typing import TYPE_CHECKING

from fairlock.engine import validate
from fairlock.engine.events import short
from fairlock.engine.run_sync import run

from . import describe_holders, exit_codes, make_client, output
from .parse_arguments import Arguments, count

if TYPE_CHECKING:
    from fairlock import Resource


def evict(args: Arguments) -> int:
    if not (args["reason"] or "").strip():
        raise exit_codes.Usage("evict needs --reason TEXT. The holder gets it, and the log shows it.")
    if not args["yes"]:
        require_terminal("evict")
    return evict_matching(args) if args["pattern"] else evict_name(args)


def evict_name(args: Arguments) -> int:
    name = validate.name(args.operands[0])
    with make_client.client(args) as locks:
        it = describe_holders.find(locks, name)
        if it is None or not (it.holders or (args["ticket"] and it.queue)):
            hint = "" if args["json"] else describe_holders.about_pool(locks, name)
            hint += " To evict from all names that match it, add --pattern." if set(name) & set("*?") else ""
            why = f"{name!r} has no holder in {locks.store}, so nothing was changed.{hint}"
            output.unchanged(args, {"name": name, "evicted": []}, why)
            return 0
        closed = not args["ticket"] and not any(one.owner for one in it.holders)
        if closed and not args["at_once"]:  # nothing would change: it has no client that could be notified
            why = f"{name!r} has no holder: it is {describe_holders.held_by(it)}. Add --at-once to open it now."
            output.unchanged(args, {"name": name, "evicted": []}, why)
            return 0
        if not args["yes"]:
            ask_first(args, name, it)
        tickets = locks.evict(name, reason=args["reason"], ticket=args["ticket"], at_once=bool(args["at_once"]))
    left = output.duration(max((one.expires_in for one in it.holders), default=0.0))
    when = "now" if args["at_once"] else f"when the lease ends, in {left} at most"
    done = f"{name!r} is free now" if closed else f"{name!r} is taken from its holder and is free {when}"
    value = {"name": name, "evicted": [short(ticket) for ticket in tickets]}
    output.result(args, value, done if tickets else "no holder was evicted")
    return 0


def ask_first(args: Arguments, name: str, it: "Resource") -> None:
    """Explain what will happen, and require the name to be typed."""
    holder = f"the holder with ticket {args['ticket']}" if args["ticket"] else describe_holders.describe_evicted(it)
    text = f"This takes {name!r} from {output.plain(holder)}.\n{consequence(args)}"
    if not args["ticket"] and not any(one.owner for one in it.holders):
        text = f"{name!r} has {describe_holders.describe_evicted(it)}. This opens it at once."
    confirm("evict", name, text)


def consequence(args: Arguments) -> str:
    if args["at_once"]:
        return "It is free at once. The holder may still be working, so two may work at the same time."
    return "Its lease is not renewed any more. The holder is notified; the name is free when the lease ends, or sooner."


def evict_matching(args: Arguments) -> int:
    """Evict the holders that are listed, and none that came later."""
    pattern = args.operands[0]
    if args["ticket"]:
        raise exit_codes.Usage("A ticket belongs to one name: use --ticket or --pattern, not both.")
    with make_client.client(args) as locks:
        held = run(locks.session.holders(pattern))
        if not held:
            why = f"No name in {locks.store} that matches {pattern!r} has a holder, so nothing was changed."
            output.unchanged(args, {"pattern": pattern, "names": []}, why)
            return 0
        if not args["yes"]:
            texts = [f"{it.name!r} from {describe_holders.describe_evicted(it)}" for it, _ in held]
            listed = "".join(f"  {output.plain(text)}\n" for text in texts)
            text = f"This takes {output.plural(len(held), 'name')}:\n{listed}For each: {consequence(args)}"
            confirm("evict", pattern, text, "pattern")
        evicted = []
        for it, tickets in held:
            gone = run(locks.session.evict_tickets(it.name, tickets, args["reason"], bool(args["at_once"])))
            if gone:
                evicted.append((it.name, gone))
                if not (args["json"] or args["quiet"]):  # one by one: if the next one fails, this one is evicted
                    output.out(f"{output.plain(repr(it.name))} is taken from its holder\n")
    rows = [{"name": name, "evicted": [short(ticket) for ticket in gone]} for name, gone in evicted]
    left = output.duration(max((one.expires_in for it, _ in held for one in it.holders), default=0.0))
    when = "now" if args["at_once"] else f"when the leases end, in {left} at most"
    text = f"{output.plural(len(evicted), 'name')} free {when}" if evicted else "no holder was evicted"
    output.result(args, {"pattern": pattern, "names": rows}, text)
    return 0


def require_terminal(command: str) -> None:
    if not os.isatty(0):
        raise exit_codes.Usage(f"{command} asks for a confirmation, and there is no terminal. Use -y to confirm.")


def confirm(command: str, name: str, text: str, what: str = "name") -> None:
    """Explain what will happen, and require the name or the pattern to be typed."""
    require_terminal(command)
    sys.stderr.write(f"{text}\nType the {what} to continue: ")
    sys.stderr.flush()
    try:
        typed = sys.stdin.readline().rstrip("\n")
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        typed = ""
    if typed != name:
        raise exit_codes.Exit(exit_codes.REFUSED, f"That is not the {what}; nothing was changed.")


def resize(args: Arguments) -> int:
    name, *given = args.operands
    if bool(given) == bool(args["program"]):
        raise exit_codes.Usage("Use `fairlock resize NAME SLOTS`, or --program for the number that programs ask for.")
    slots = None
    if given:
        try:
            slots = count(given[0])
        except ValueError as wants:
            raise exit_codes.Usage(f"SLOTS must be {wants}, not {given[0]!r}.") from None
    with make_client.client(args) as locks:
        locks.resize(name, slots)
    if slots is None:
        text = f"{name!r} gets the number of slots that programs ask for, as soon as it is idle"
    else:
        text = f"{name!r} has {output.plural(slots, 'slot')} now"
    output.result(args, {"name": name, "slots": slots}, text)
    return 0
