"""Mistakes in how a step begins: the clock, the sender, the sweep, the dead."""

from tests.lock_rules.mutants.mutant import M, example, law

MUTANTS = [
    # the clock
    M("a clock set back is ignored",
      "    if now < record.seen:\n"
      "        step.turn_back_the_clock()\n",
      "",
      law("nothing_lasts_longer_than_its_span", "a clock that goes back over tombstones")),
    M("a clock set back leaves an unconfirmed grant its whole lease",
      "now + (e.lease if e.confirmed else min(e.lease, CONFIRM_WINDOW))),\n", "now + e.lease),\n",
      law("nothing_lasts_longer_than_its_span", "a clock that goes back over tombstones")),
    M("a clock set back leaves the queue as it is",
      "self.queue = [e._replace(expires=min(e.expires, now + e.poll_ttl), since=min(e.since, now)) "
      "for e in self.queue]",
      "pass",
      law("nothing_lasts_longer_than_its_span", "a clock that goes back over tombstones")),
    M("a clock set back leaves the tombstones as they are",
      "self.tombstones = tuple(g._replace(until=min(g.until, now + g.span)) for g in self.tombstones)", "pass",
      law("tickets_with_a_tombstone_stay_away", "a clock that goes back over tombstones")),
    M("a clock set back is forgotten",
      "self.capacity, self.fixed, self.fence, self.places, self.now,",
      "self.capacity, self.fixed, self.fence, self.places, max(self.now, self.before.seen),",
      law("nothing_lasts_longer_than_its_span", "a clock that goes back over tombstones")),
    # the sender
    M("poll_ttl is refreshed after the sweep",
      "    step.refresh_the_sender()\n"
      "    step.sweep()\n",
      "    step.sweep()\n"
      "    step.refresh_the_sender()\n",
      law("the_living_keep_their_place", "a lock and renewals")),
    M("a poll refreshes no poll_ttl",
      "        if self.acquiring:\n"
      "            for i, e in enumerate(self.queue):",
      "        if False:\n"
      "            for i, e in enumerate(self.queue):",
      law("the_poll_ttl_fits_the_answer", "a lock and renewals")),
    M("the poll_ttl fits the place before the step",
      "if e.poll_ttl != poll_ttl(i):", "if False:",
      example("test_the_poll_ttl_fits_the_place_that_is_answered_even_if_the_step_put_others_ahead")),
    M("a poll takes a new place at the tail",
      "        if any(e.ticket == c.ticket for e in self.queue):\n"
      "            return None\n",
      "        self.queue = [e for e in self.queue if e.ticket != c.ticket]\n",
      law("the_same_command_again_changes_nothing", "a lock and renewals")),
    # the sweep
    M("an expired holder is renewed although somebody waits",
      "wanted = any(not self._over(e) for e in self.queue)", "wanted = False",
      law("an_expired_grant_is_renewed_only_if_nobody_waits", "a lock and renewals")),
    M("an expired holder is not renewed although nobody waits",
      "wanted = any(not self._over(e) for e in self.queue)", "wanted = True",
      law("a_renewal_never_creates", "a lock and renewals")),
    M("the dead in queue count as waiting",
      "wanted = any(not self._over(e) for e in self.queue)", "wanted = bool(self.before.queue)",
      law("a_renewal_never_creates", "a lock and renewals")),
    M("an expired holder may leave as if it still held",
      "return isinstance(c, (Renew, Detach)) and c.ticket == e.ticket",
      "return isinstance(c, (Renew, Detach, Release)) and c.ticket == e.ticket",
      law("leaving_leaves", "a lock and renewals")),
    M("an expired holder is kept for somebody else's fence",
      "and c.ticket == e.ticket and c.fence in (None, e.fence)", "and c.ticket == e.ticket",
      law("the_expired_and_the_dead_are_gone", "blocks and other people's fences")),
    M("expired holders are not swept",
      "            if e.expires <= now or self._is_dead(e):\n"
      "                self._sweep_holders()",
      "            if self._is_dead(e):\n"
      "                self._sweep_holders()",
      law("leaving_leaves", "a lock and renewals")),
    M("the queue is not swept",
      "if e.expires <= now])[:SWEEP]", "if False])[:SWEEP]",
      example("test_one_step_sweeps_a_bounded_number_from_the_middle_of_the_line")),
    M("the whole queue is swept in one step",
      "if e.expires <= now])[:SWEEP]", "if e.expires <= now])",
      example("test_one_step_sweeps_a_bounded_number_from_the_middle_of_the_line")),
    M("a dead head is swept only with its batch",
      "            if self._over(e):\n"
      "                del self.queue[i]\n"
      "            elif",
      "            if",
      example("test_a_dead_head_is_swept_however_many_have_expired")),
    M("tombstones are not swept",
      "self.tombstones = tuple(g for g in self.tombstones if g.until > now)", "pass",
      law("the_expired_and_the_dead_are_gone", "tombstones")),
    M("tombstones are swept before the grants",
      "        now = self.now\n"
      "        if self.queue:\n"
      "            expired",
      "        now = self.now\n"
      "        self.tombstones = tuple(g for g in self.tombstones if g.until > now)\n"
      "        if self.queue:\n"
      "            expired",
      law("an_expired_grant_is_renewed_only_if_nobody_waits", "evictions")),
    # the dead
    M("the dead live until they expire",
      "return e.ticket in self.dead and e.listener != \"\"", "return False",
      law("the_expired_and_the_dead_are_gone", "one without a process")),
    M("one without a process can be dead",
      "return e.ticket in self.dead and e.listener != \"\"", "return e.ticket in self.dead",
      law("the_same_command_again_changes_nothing", "one without a process")),
    M("a dead sender is admitted",
      "        if c.listener and c.ticket in self.dead:\n"
      "            return Revoked(DEAD)\n",
      "",
      law("the_expired_and_the_dead_are_gone", "one without a process")),
    M("a dead sender without a process is gone",
      "        if c.listener and c.ticket in self.dead:\n"
      "            return Revoked(DEAD)\n",
      "        if c.ticket in self.dead:\n"
      "            return Revoked(DEAD)\n",
      law("entering_is_answered_as_the_table_says", "one without a process")),
    M("a dead unconfirmed one goes back to the queue",
      "elif self._is_dead(e) or self._tombstone_for(e.ticket):", "elif self._tombstone_for(e.ticket):",
      law("the_expired_and_the_dead_are_gone", "kept grants")),
]  # fmt: skip
