"""Deliberate mistakes in the rules, each a few words of rules.py replaced by others, and who must notice.

`noticed_by` names the example that fails, or the law that is broken in a small world, or the crowd in which somebody
starves. They are the smallest that can: most mistakes come to light within three or four steps.
"""

from typing import NamedTuple


class Mutant(NamedTuple):
    words: str
    others: str
    noticed_by: str = ""


M = Mutant

MUTANTS = {
    # -- the clock
    "a clock set back is ignored": M(
        "    if now < record.seen:\n        step.turn_back_the_clock()\n", ""),
    "a clock set back leaves an unsure seat its whole lease": M(
        "now + (e.lease if e.sure else min(e.lease, WINDOW))), since", "now + e.lease), since"),
    "a clock set back leaves the line as it is": M(
        "self.line = [e._replace(expires=min(e.expires, now + e.patience), since=min(e.since, now)) for e in self.line]",
        "pass"),
    "a clock set back leaves the graves as they are": M(
        "self.graves = tuple(g._replace(until=min(g.until, now + g.span)) for g in self.graves)", "pass"),
    "a clock set back is forgotten": M(
        "self.capacity, self.fixed, self.fence, self.places, self.now,",
        "self.capacity, self.fixed, self.fence, self.places, max(self.now, self.before.seen),"),
    # -- the asker
    "patience is refreshed after the sweep": M(
        "    step.hear_the_asker()\n    step.sweep()\n", "    step.sweep()\n    step.hear_the_asker()\n"),
    "a poll refreshes no patience": M(
        "        if self.entering:\n            for i, e in enumerate(self.line):",
        "        if False:\n            for i, e in enumerate(self.line):"),
    "the patience fits the place before the step": M("if e.patience != patience(i):", "if False:"),
    "a poll takes a new place at the tail": M(
        "        if any(e.ticket == c.ticket for e in self.line):\n            return None\n",
        "        self.line = [e for e in self.line if e.ticket != c.ticket]\n"),
    # -- the sweep
    "an expired insider is renewed although somebody waits": M(
        "wanted = any(not self._over(e) for e in self.line)", "wanted = False"),
    "an expired insider is not renewed although nobody waits": M(
        "wanted = any(not self._over(e) for e in self.line)", "wanted = True"),
    "only a living line of any kind counts, the dead too": M(
        "wanted = any(not self._over(e) for e in self.line)", "wanted = bool(self.before.line)"),
    "an expired insider may leave as if it still held": M(
        "return isinstance(c, (Renew, Keep)) and c.ticket == e.ticket",
        "return isinstance(c, (Renew, Keep, Leave)) and c.ticket == e.ticket"),
    "an expired insider is kept for somebody else's fence": M(
        "and c.ticket == e.ticket and c.fence in (None, e.fence)", "and c.ticket == e.ticket"),
    "expired insiders are not swept": M(
        "            if e.expires <= now or self._is_dead(e):\n                self._sweep_inside()",
        "            if self._is_dead(e):\n                self._sweep_inside()"),
    "the line is not swept": M("if e.expires <= now])[:SWEEP]", "if False])[:SWEEP]"),
    "the whole line is swept in one step": M("if e.expires <= now])[:SWEEP]", "if e.expires <= now])"),
    "a dead head is swept only with its batch": M(
        "            if self._over(e):\n                del self.line[i]\n            elif", "            if"),
    "graves are not swept": M("self.graves = tuple(g for g in self.graves if g.until > now)", "pass"),
    "graves are swept before the seats": M(
        "        now = self.now\n        if self.line:\n            expired",
        "        now = self.now\n        self.graves = tuple(g for g in self.graves if g.until > now)\n"
        "        if self.line:\n            expired"),
    # -- the dead
    "the dead live until they expire": M('return e.ticket in self.dead and e.ear != ""', "return False"),
    "one without a process can be dead": M(
        'return e.ticket in self.dead and e.ear != ""', "return e.ticket in self.dead"),
    "a dead asker is admitted": M("        if c.ear and c.ticket in self.dead:\n            return Gone(DEAD)\n", ""),
    "a dead asker without a process is gone": M(
        "        if c.ear and c.ticket in self.dead:\n            return Gone(DEAD)\n",
        "        if c.ticket in self.dead:\n            return Gone(DEAD)\n"),
    "a dead unsure one goes back to the line": M(
        "elif self._is_dead(e) or self._buried(e.ticket):", "elif self._buried(e.ticket):"),
    # -- the silent
    "a silent one is dropped instead of put back": M("back.append(e)  # unless", "pass  # unless"),
    "a silent one is put back at the tail": M(
        "self.line = [self._returned(e) for e in back] + self.line",
        "self.line = self.line + [self._returned(e) for e in back]"),
    "several silent ones are put back in reverse": M(
        "self.line = [self._returned(e) for e in back] + self.line",
        "self.line = [self._returned(e) for e in reversed(back)] + self.line"),
    "a silent one is not passed over": M("            elif e.passed == SILENT:\n", "            elif False:\n"),
    "a silent one is passed over although it has polled": M(
        "passed = HEARD if e.passed in (PASSED, SILENT) else e.passed",
        "passed = HEARD if e.passed == PASSED else e.passed"),
    "a silent one keeps its place number": M("place=self.places, since=self.now, expires=until", "since=self.now, expires=until"),
    "a silent one gets a fresh patience": M("expires=until, patience=until - self.now", "expires=self.now + patience(0), patience=patience(0)"),
    "a silent one comes back however long it was silent": M(
        "elif not e.sure and e.since + e.patience > self.now and", "elif not e.sure and"),
    "a silent one that has become too heavy is put back": M(
        "e.since + e.patience > self.now and e.weight <= self.capacity:", "e.since + e.patience > self.now:"),
    "a sure one whose lease is over is put back, too": M(
        "elif not e.sure and e.since + e.patience > self.now", "elif e.since + e.patience > self.now"),
    "an evicted silent one is put back": M(
        "elif self._is_dead(e) or self._buried(e.ticket):", "elif self._is_dead(e):"),
    "what is left of the patience is forgotten at the grant": M("patience=max(e.expires - self.now, 0),", "patience=0,"),
    # -- the deaf
    "the deaf are dropped": M(
        "                fallback = i if fallback is None else fallback\n                i += 1",
        "                del self.line[i]"),
    "if all are deaf nobody is admitted": M("        return fallback\n", "        return None\n"),
    "if all are deaf the last is admitted": M("fallback = i if fallback is None else fallback", "fallback = i"),
    "the deaf are not passed over": M("elif e.ticket in self.deaf and e.passed != HEARD", "elif False and e.passed != HEARD"),
    "one that was heard is passed over again": M("e.ticket in self.deaf and e.passed != HEARD and", "e.ticket in self.deaf and"),
    "it is not remembered who was passed over": M("if e.passed == FRESH:", "if False:"),
    "the asker is passed over as deaf": M(
        "e.passed != HEARD and not (self.entering and e.ticket == self.asker):", "e.passed != HEARD:"),
    # -- admitting
    "a heavy head is skipped": M(
        "            else:\n                return i\n        return fallback",
        "            elif e.weight > self.room():\n                i += 1\n            else:\n                return i\n"
        "        return fallback"),
    "a newcomer goes before the line": M("if (not self.line or not c.fair) and c.weight", "if c.weight"),
    "fair=False is not heard": M("if (not self.line or not c.fair) and c.weight", "if not self.line and c.weight"),
    "a newcomer goes to the head of the line": M(
        "self.line.append(e._replace(place=self.places))", "self.line.insert(0, e._replace(place=self.places))"),
    "admitting only before the command": M("    reply = step.obey()\n    step.admit()\n", "    reply = step.obey()\n"),
    "admitting only after the command": M("    step.admit()\n    reply = step.obey()\n", "    reply = step.obey()\n"),
    "admitting one at a time": M(
        "            self._let_in(self.line.pop(turn))\n", "            self._let_in(self.line.pop(turn))\n            return\n"),
    "one too many fits": M("return self.capacity - sum([e.weight", "return self.capacity + 1 - sum([e.weight"),
    "expired ones in the middle are counted as room": M(
        "sum([e.weight for e in self.inside])", "sum([e.weight for e in self.inside if e.sure])"),
    "one admitted is unsure for its whole lease": M("(e.lease if sure else min(e.lease, WINDOW)),\n", "e.lease,\n"),
    "one admitted is unsure for the window even if its lease is shorter": M(
        "(e.lease if sure else min(e.lease, WINDOW)),\n", "(e.lease if sure else WINDOW),\n"),
    "the asker is not sure at once": M("sure = self.entering and e.ticket == self.asker", "sure = False"),
    "whoever is admitted is sure at once": M("sure = self.entering and e.ticket == self.asker", "sure = True"),
    # -- fences
    "a fence without the clock": M("fence = max(self.fence + 1, self.now)", "fence = self.fence + 1"),
    "a fence that is only the clock": M("fence = max(self.fence + 1, self.now)", "fence = self.now"),
    "the block is not reserved": M("self.fence = fence + e.block - 1", "self.fence = fence"),
    "a block for those who do not weigh everything": M("max(c.block, 1) if c.weight == wanted else 1", "max(c.block, 1)"),
    "a block of nothing": M("max(c.block, 1) if c.weight == wanted else 1", "c.block if c.weight == wanted else 1"),
    "the block is cut if the capacity has changed": M(
        "self.fence = fence + e.block - 1", "self.fence = fence + (e.block if e.weight == self.capacity else 1) - 1"),
    # -- waking
    "all the unsure are woken at every step": M("if not e.sure and e.fence > self.before.fence and", "if not e.sure and"),
    "the asker is woken, too": M("if not e.sure and e.fence > self.before.fence and", "if e.fence > self.before.fence and"),
    "nobody is woken": M("        return (*granted, *self.dropped)", "        return tuple(self.dropped)"),
    "one evicted in the same step is sent a grant": M(
        "e.fence > self.before.fence and not self._buried(e.ticket)", "e.fence > self.before.fence"),
    "one made too heavy is not woken": M("self.dropped += [Wake(e.ear, e.ticket) for e in heavy]", "pass"),
    # -- Enter
    "a late Enter rises from its grave": M("        if why:\n            return Gone(why)\n", ""),
    "a poll brings another lease": M(
        "self.inside[i] = e._replace(sure=True, expires=self.now + e.lease)\n                return None",
        "self.inside[i] = e._replace(sure=True, lease=c.lease, expires=self.now + c.lease)\n                return None"),
    "a poll of one inside is not a heartbeat": M(
        "self.inside[i] = e._replace(sure=True, expires=self.now + e.lease)\n                return None", "return None"),
    "another capacity is taken over while somebody is there": M(
        "if wanted != self.capacity and (self.inside or self.line or self.fixed):", "if False:"),
    "another capacity is refused even if nobody is there": M(
        "if wanted != self.capacity and (self.inside or self.line or self.fixed):",
        "if self.capacity and wanted != self.capacity:"),
    "a weight of any size fits": M("if not 1 <= c.weight <= wanted:", "if False:"),
    "one who does not wait stands in line": M("if not c.wait and not self._would_pass_all(e):", "if False:"),
    "one who does not wait is refused even past the silent": M(
        "if not c.wait and not self._would_pass_all(e):", "if not c.wait:"),
    "one who does not wait passes everybody": M(
        "first = self._next_in_line() == len(self.line) - 1", "first = True"),
    "retry_in may be nothing": M("return max(soon, 1)", "return soon"),
    "a short lease sleeps as long as any": M("if lease < WINDOW:", "if False:"),
    # -- Renew and Keep
    "a renewal creates": M(
        "        return NotInside(why)\n",
        '        if why is None and c.fence and not self.inside and not self.line:\n'
        '            e = Entrant(c.ticket, 1, WINDOW, 0, 1, "", "", "", 0, self.now, self.now + WINDOW, c.fence, True)\n'
        "            self.inside.append(e)\n"
        "            return Admitted(e.fence, e.lease)\n"
        "        return NotInside(why)\n"),
    "a renewal with another fence is accepted": M(
        "if e.ticket == c.ticket and (c.fence is None or c.fence == e.fence):", "if e.ticket == c.ticket:"),
    "a renewal takes any fence of the block": M(
        "if e.ticket == c.ticket and (c.fence is None or c.fence == e.fence):",
        "if e.ticket == c.ticket and (c.fence is None or e.fence <= c.fence < e.fence + e.block):"),
    "a renewal must name a fence": M(
        "if e.ticket == c.ticket and (c.fence is None or c.fence == e.fence):", "if e.ticket == c.ticket and c.fence == e.fence:"),
    "a renewal raises the weight": M("weight=max(1, min(c.weight, e.weight))", "weight=c.weight"),
    "a renewal does not make sure": M(
        "self.inside[i] = e._replace(sure=True, expires=self.now + e.lease)\n                    return Admitted",
        "self.inside[i] = e._replace(expires=self.now + e.lease)\n                    return Admitted"),
    "one evicted may renew": M(
        "        why = self._buried(c.ticket)\n        if why is None:\n            for i",
        "        why = None\n        if why is None:\n            for i"),
    "a kept seat keeps its ear": M('e = e._replace(lease=c.lease, ear="")', "e = e._replace(lease=c.lease)"),
    "a kept seat keeps its lease": M('e = e._replace(lease=c.lease, ear="")', 'e = e._replace(ear="")'),
    # -- Leave
    "no graves": M("        leases = [e.lease for", "        return\n        leases = [e.lease for"),
    "a grave for everybody who leaves": M("        if c.bury:\n            self._bury", "        if True:\n            self._bury"),
    "a grave is shorter than the lease": M("span = max([GRAVE, *leases])", "span = GRAVE"),
    "a second grave for the same ticket": M("        if self._buried(ticket):\n            return\n", ""),
    "a Leave with another fence is honoured": M(
        "                if c.fence is not None and not e.fence <= c.fence < e.fence + e.block:\n                    return Left(False)\n", ""),
    "a Leave takes only the first fence of the block": M(
        "                if c.fence is not None and not e.fence <= c.fence < e.fence + e.block:\n",
        "                if c.fence is not None and c.fence != e.fence:\n"),
    "one evicted hears that it still held": M("held = self._buried(c.ticket) is None", "held = True"),
    "a Leave leaves the place in line": M(
        "        else:\n            self.line = [e for e in self.line if e.ticket != c.ticket]\n        if c.bury", "        if c.bury"),
    # -- Evict and Resize
    "every eviction is at once": M("            if c.at_once:\n", "            if True:\n"),
    "no eviction is at once": M("            if c.at_once:\n", "            if False:\n"),
    "one evicted keeps its place in line": M(
        "            self.line = [e for e in self.line if e.ticket != ticket]\n            if c.at_once", "            if c.at_once"),
    "an eviction of all means the line, too": M(
        "tickets = [e.ticket for e in self.inside] if", "tickets = [e.ticket for e in (*self.inside, *self.line)] if"),
    "a Resize checks those inside": M(
        "        self.fixed = True\n",
        "        self.fixed = True\n        self.inside = [e for e in self.inside if e.weight <= c.capacity]\n"),
    "a Resize leaves the heavy in line": M("heavy = [e for e in self.line if e.weight > c.capacity]", "heavy = []"),
    "a Resize is forgotten when nobody is there": M("        self.fixed = True\n", ""),
    # -- the short cut
    "the short cut forgets a clock set back": M("or dead or now < record.seen):", "or dead):"),
    "the short cut forgets the graves": M("if not (record.line or record.graves or dead", "if not (record.line or dead"),
    "the short cut forgets the line": M("if not (record.line or record.graves or dead", "if not (record.graves or dead"),
    "the short cut forgets the dead": M("record.graves or dead or now", "record.graves or now"),
    "the short cut forgets that the capacity was set": M("or (fixed and wanted != capacity):", "or False:"),
    "the short cut forgets the clock in a fence": M("first = now if now > fence else fence + 1", "first = fence + 1"),
    "the short cut forgets the last fence": M("first = now if now > fence else fence + 1", "first = now"),
    "the short cut reserves no block": M("return Record(wanted, fixed, first + block - 1,", "return Record(wanted, fixed, first,"),
    "the short cut gives everybody a block": M("block = block if weight == wanted and block > 1 else 1", "block = max(block, 1)"),
    "the short cut lets out an expired one as if it held": M(
        "if e.ticket != command.ticket or e.expires <= now:", "if e.ticket != command.ticket:"),
    "the short cut lets out somebody else": M(
        "if e.ticket != command.ticket or e.expires <= now:", "if e.expires <= now:"),
    "the short cut takes any fence": M(
        "        if given is not None and not e.fence <= given < e.fence + e.block:\n            return None\n", ""),
    "the short cut lets in any weight": M("if not 1 <= weight <= wanted or", "if not wanted or"),
    "the short cut buries nobody": M("len(inside) == 1 and not command.bury:", "len(inside) == 1:"),
}  # fmt: skip
