"""Mistakes in how a step begins: the clock, the asker, the sweep, the dead."""

from tests.doorman.mutants.mutant import M, example, law

MUTANTS = [
    # the clock
    M("a clock set back is ignored",
      "    if now < record.seen:\n"
      "        step.turn_back_the_clock()\n",
      "",
      law("nothing_lasts_longer_than_its_span", "a clock that goes back over graves")),
    M("a clock set back leaves an unsure seat its whole lease",
      "now + (e.lease if e.sure else min(e.lease, WINDOW))), since", "now + e.lease), since",
      law("nothing_lasts_longer_than_its_span", "a clock that goes back over graves")),
    M("a clock set back leaves the line as it is",
      "self.line = [e._replace(expires=min(e.expires, now + e.patience), since=min(e.since, now)) for e in self.line]",
      "pass",
      law("nothing_lasts_longer_than_its_span", "a clock that goes back over graves")),
    M("a clock set back leaves the graves as they are",
      "self.graves = tuple(g._replace(until=min(g.until, now + g.span)) for g in self.graves)", "pass",
      law("the_buried_stay_away", "a clock that goes back over graves")),
    M("a clock set back is forgotten",
      "self.capacity, self.fixed, self.fence, self.places, self.now,",
      "self.capacity, self.fixed, self.fence, self.places, max(self.now, self.before.seen),",
      law("nothing_lasts_longer_than_its_span", "a clock that goes back over graves")),
    # the asker
    M("patience is refreshed after the sweep",
      "    step.hear_the_asker()\n"
      "    step.sweep()\n",
      "    step.sweep()\n"
      "    step.hear_the_asker()\n",
      law("the_living_keep_their_place", "a lock and renewals")),
    M("a poll refreshes no patience",
      "        if self.entering:\n"
      "            for i, e in enumerate(self.line):",
      "        if False:\n"
      "            for i, e in enumerate(self.line):",
      law("the_patience_fits_the_answer", "a lock and renewals")),
    M("the patience fits the place before the step",
      "if e.patience != patience(i):", "if False:",
      example("test_the_patience_fits_the_place_that_is_answered_even_if_the_step_put_others_ahead")),
    M("a poll takes a new place at the tail",
      "        if any(e.ticket == c.ticket for e in self.line):\n"
      "            return None\n",
      "        self.line = [e for e in self.line if e.ticket != c.ticket]\n",
      law("the_same_command_again_changes_nothing", "a lock and renewals")),
    # the sweep
    M("an expired insider is renewed although somebody waits",
      "wanted = any(not self._over(e) for e in self.line)", "wanted = False",
      law("an_expired_seat_is_renewed_only_if_nobody_waits", "a lock and renewals")),
    M("an expired insider is not renewed although nobody waits",
      "wanted = any(not self._over(e) for e in self.line)", "wanted = True",
      law("a_renewal_never_creates", "a lock and renewals")),
    M("the dead in line count as waiting",
      "wanted = any(not self._over(e) for e in self.line)", "wanted = bool(self.before.line)",
      law("a_renewal_never_creates", "a lock and renewals")),
    M("an expired insider may leave as if it still held",
      "return isinstance(c, (Renew, Keep)) and c.ticket == e.ticket",
      "return isinstance(c, (Renew, Keep, Leave)) and c.ticket == e.ticket",
      law("leaving_leaves", "a lock and renewals")),
    M("an expired insider is kept for somebody else's fence",
      "and c.ticket == e.ticket and c.fence in (None, e.fence)", "and c.ticket == e.ticket",
      law("the_expired_and_the_dead_are_gone", "blocks and other people's fences")),
    M("expired insiders are not swept",
      "            if e.expires <= now or self._is_dead(e):\n"
      "                self._sweep_inside()",
      "            if self._is_dead(e):\n"
      "                self._sweep_inside()",
      law("leaving_leaves", "a lock and renewals")),
    M("the line is not swept",
      "if e.expires <= now])[:SWEEP]", "if False])[:SWEEP]",
      example("test_one_step_sweeps_a_bounded_number_from_the_middle_of_the_line")),
    M("the whole line is swept in one step",
      "if e.expires <= now])[:SWEEP]", "if e.expires <= now])",
      example("test_one_step_sweeps_a_bounded_number_from_the_middle_of_the_line")),
    M("a dead head is swept only with its batch",
      "            if self._over(e):\n"
      "                del self.line[i]\n"
      "            elif",
      "            if",
      example("test_a_dead_head_is_swept_however_many_have_expired")),
    M("graves are not swept",
      "self.graves = tuple(g for g in self.graves if g.until > now)", "pass",
      law("the_expired_and_the_dead_are_gone", "burials")),
    M("graves are swept before the seats",
      "        now = self.now\n"
      "        if self.line:\n"
      "            expired",
      "        now = self.now\n"
      "        self.graves = tuple(g for g in self.graves if g.until > now)\n"
      "        if self.line:\n"
      "            expired",
      law("an_expired_seat_is_renewed_only_if_nobody_waits", "evictions")),
    # the dead
    M("the dead live until they expire",
      "return e.ticket in self.dead and e.ear != \"\"", "return False",
      law("the_expired_and_the_dead_are_gone", "one without a process")),
    M("one without a process can be dead",
      "return e.ticket in self.dead and e.ear != \"\"", "return e.ticket in self.dead",
      law("the_same_command_again_changes_nothing", "one without a process")),
    M("a dead asker is admitted",
      "        if c.ear and c.ticket in self.dead:\n"
      "            return Gone(DEAD)\n",
      "",
      law("the_expired_and_the_dead_are_gone", "one without a process")),
    M("a dead asker without a process is gone",
      "        if c.ear and c.ticket in self.dead:\n"
      "            return Gone(DEAD)\n",
      "        if c.ticket in self.dead:\n"
      "            return Gone(DEAD)\n",
      law("entering_is_answered_as_the_table_says", "one without a process")),
    M("a dead unsure one goes back to the line",
      "elif self._is_dead(e) or self._buried(e.ticket):", "elif self._buried(e.ticket):",
      law("the_expired_and_the_dead_are_gone", "kept seats")),
]  # fmt: skip
