"""`holdfast evict` and `holdfast resize`: what an operator may order.

With --json: evict prints name, evicted (tickets, shortened); resize prints name, slots (null with
--program).
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
    name = lock.name(said.words[0])
    if not (said["reason"] or "").strip():
        raise exits.Usage("evict wants --reason TEXT: the holder is told, and so is whoever reads the log.")
    if not said["yes"]:
        want_terminal("evict")
    with reach.client(said) as locks:
        it = who.find(locks, name)
        if it is None or not (it.inside or (said["ticket"] and it.line)):
            if said["json"]:
                say.json({"name": name, "evicted": []})
            else:
                say.err(f"Nobody holds {name!r} in {locks.store}, so nobody is evicted.")
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
    if said["at_once"]:
        fate = "It is free at once, while the holder may still be at work: two may be inside."
    else:
        fate = "Its lease is not renewed any more. A holder that looks will stop; the name is free when the lease ends."
    confirm("evict", name, f"This takes {name!r} from {say.plain(whom)}.\n{fate}", "so nobody was evicted")


def want_terminal(command: str) -> None:
    if not os.isatty(0):
        raise exits.Usage(f"{command} asks before it acts, and there is no terminal to ask at: say -y if you mean it.")


def confirm(command: str, name: str, text: str, else_: str) -> None:
    """Show what will happen, and have the name typed."""
    want_terminal(command)
    sys.stderr.write(f"{text}\nType the name to go on: ")
    sys.stderr.flush()
    try:
        typed = sys.stdin.readline().rstrip("\n")
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        typed = ""
    if typed != name:
        raise exits.Exit(exits.REFUSED, f"That is not the name, {else_}.")


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
