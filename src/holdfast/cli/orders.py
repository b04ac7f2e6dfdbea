"""`holdfast evict` and `holdfast resize`: what an operator may order.

With --json: evict prints name, evicted (tickets, shortened), with --pattern pattern, names (each with name, evicted);
resize prints name, slots (null with --program).

A pattern must be asked for. Rejected alternative: a name with a star that nobody holds is a pattern. A lock whose name
contains a star may have been released a moment ago, and then others would be evicted in its place.
"""

import os
import sys
from typing import TYPE_CHECKING

from holdfast.flow.events import short

from . import exits, lock, reach, say, who
from .words import Said, count

if TYPE_CHECKING:
    from holdfast import Resource


def orders(said: Said) -> int:
    return evict(said) if said.command.name == "evict" else resize(said)


def evict(said: Said) -> int:
    if not (said["reason"] or "").strip():
        raise exits.Usage("evict wants --reason TEXT: the holder is told, and so is whoever reads the log.")
    if not said["yes"]:
        want_terminal("evict")
    return evict_matching(said) if said["pattern"] else evict_name(said)


def evict_name(said: Said) -> int:
    name = lock.name(said.words[0])
    with reach.client(said) as locks:
        it = who.find(locks, name)
        if it is None or not (it.inside or (said["ticket"] and it.line)):
            if said["json"]:
                say.json({"name": name, "evicted": []})
            else:
                hint = " To evict from all names that match it, add --pattern." if set(name) & set("*?") else ""
                say.err(f"Nobody holds {name!r} in {locks.store}, so nobody is evicted.{hint}")
            return 0
        if not said["yes"]:
            ask(said, name, it)
        met = locks.evict(name, reason=said["reason"], ticket=said["ticket"], at_once=bool(said["at_once"]))
    if said["json"]:
        say.json({"name": name, "evicted": [short(ticket) for ticket in met]})
    elif not said["quiet"]:
        left = say.for_(max((one.left for one in it.inside), default=0.0))
        when = "now" if said["at_once"] else f"when the lease ends, in {left} at most"
        say.out(f"{name!r} is taken from its holder and free {when}\n" if met else "nobody was met\n")
    return 0


def ask(said: Said, name: str, it: "Resource") -> None:
    """Say what will happen to whom, and have the name typed."""
    whom = f"the one with ticket {said['ticket']}" if said["ticket"] else who.evicted(it) if it.inside else "nobody"
    text = f"This takes {name!r} from {say.plain(whom)}.\n{fate(said)}"
    confirm("evict", name, text, "so nobody was evicted")


def fate(said: Said) -> str:
    if said["at_once"]:
        return "It is free at once, while the holder may still be at work: two may be inside."
    return "Its lease is not renewed any more. A holder that looks will stop; the name is free when the lease ends."


def evict_matching(said: Said) -> int:
    """Evict the holders that are listed, and none that came after."""
    pattern = said.words[0]
    if said["ticket"]:
        raise exits.Usage("A ticket belongs to one name: evict takes --ticket or --pattern, not both.")
    with reach.client(said) as locks:
        held = reach.holders(locks, pattern)
        if not held and not said["json"]:
            say.err(f"No name in {locks.store} that matches {pattern!r} is held, so nobody is evicted.")
            return 0
        if held and not said["yes"]:
            listed = "".join(f"  {say.plain(f'{it.name!r} from {who.evicted(it)}')}\n" for it, _ in held)
            text = f"This takes {names(len(held))}:\n{listed}Of each: {fate(said)}"
            confirm("evict", pattern, text, "so nobody was evicted", "pattern")
        evicted = []
        for it, tickets in held:
            met = reach.evict_tickets(locks, it.name, tickets, said["reason"], bool(said["at_once"]))
            if met:
                evicted.append((it.name, met))
                if not (said["json"] or said["quiet"]):  # each at once: if the next one fails, this one is evicted
                    say.out(f"{say.plain(repr(it.name))} is taken from its holder\n")
    if said["json"]:
        rows = [{"name": name, "evicted": [short(ticket) for ticket in met]} for name, met in evicted]
        say.json({"pattern": pattern, "names": rows})
    elif not said["quiet"]:
        left = say.for_(max(one.left for it, _ in held for one in it.inside))
        when = "now" if said["at_once"] else f"when the leases end, in {left} at most"
        say.out(f"{names(len(evicted))} free {when}\n" if evicted else "nobody was met\n")
    return 0


def names(number: int) -> str:
    return f"{number} name{'s' * (number != 1)}"


def want_terminal(command: str) -> None:
    if not os.isatty(0):
        raise exits.Usage(f"{command} asks before it acts, and there is no terminal to ask at: say -y if you mean it.")


def confirm(command: str, name: str, text: str, else_: str, what: str = "name") -> None:
    """Show what will happen, and have the name typed, or the pattern."""
    want_terminal(command)
    sys.stderr.write(f"{text}\nType the {what} to go on: ")
    sys.stderr.flush()
    try:
        typed = sys.stdin.readline().rstrip("\n")
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        typed = ""
    if typed != name:
        raise exits.Exit(exits.REFUSED, f"That is not the {what}, {else_}.")


def resize(said: Said) -> int:
    name, *given = said.words
    if bool(given) == bool(said["program"]):
        raise exits.Usage("How many? `holdfast resize NAME SLOTS`, or --program for the number that programs ask for.")
    slots = None
    if given:
        try:
            slots = count(given[0])
        except ValueError as wants:
            raise exits.Usage(f"SLOTS is {wants}, not {given[0]!r}.") from None
    with reach.client(said) as locks:
        locks.resize(name, slots)
    if said["json"]:
        say.json({"name": name, "slots": slots})
    elif slots is None and not said["quiet"]:
        say.out(f"{name!r} has the number of slots that programs ask for, as soon as it is idle\n")
    elif not said["quiet"]:
        say.out(f"{name!r} has {slots} slot{'s' * (slots != 1)} now\n")
    return 0
