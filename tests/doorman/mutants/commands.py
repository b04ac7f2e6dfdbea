"""Mistakes in what the commands do."""

from tests.doorman.mutants.mutant import M, example, law, starves

MUTANTS = [
    # Enter
    M("a late Enter rises from its grave",
      "        if why:\n"
      "            return Gone(why)\n",
      "",
      law("the_asker_is_sure_and_others_have_the_window", "burials")),
    M("a poll brings another lease",
      "self.inside[i] = e._replace(sure=True, expires=self.now + e.lease)\n"
      "                return None",
      "self.inside[i] = e._replace(sure=True, lease=c.lease, expires=self.now + c.lease)\n"
      "                return None",
      law("a_living_seat_stays", "kept seats")),
    M("a poll of one inside is not a heartbeat",
      "self.inside[i] = e._replace(sure=True, expires=self.now + e.lease)\n"
      "                return None",
      "return None",
      law("the_asker_is_sure_and_others_have_the_window", "a lock and renewals")),
    M("another capacity is taken over while somebody is there",
      "if wanted != self.capacity and (self.inside or self.line or self.fixed):", "if False:",
      law("capacity_changes_only_by_resize_or_when_idle", "another size")),
    M("another capacity is refused even if nobody is there",
      "if wanted != self.capacity and (self.inside or self.line or self.fixed):",
      "if self.capacity and wanted != self.capacity:",
      example("test_enter_unknown_with_another_capacity_counts_when_all_inside_have_expired")),
    M("a weight of any size fits",
      "if not 1 <= c.weight <= wanted:", "if False:",
      example("test_enter_unknown_heavier_than_the_capacity_is_a_mismatch")),
    M("one who does not wait stands in line",
      "if not c.wait and not self._would_pass_all(e):", "if False:",
      law("entering_is_answered_as_the_table_says", "one that only tries")),
    M("one who does not wait is refused even past the silent",
      "if not c.wait and not self._would_pass_all(e):", "if not c.wait:",
      law("entering_is_answered_as_the_table_says", "one that only tries")),
    M("one who does not wait passes everybody",
      "first = self._next_in_line() == len(self.line) - 1", "first = True",
      law("entering_is_answered_as_the_table_says", "one that only tries")),
    M("retry_in may be nothing",
      "return max(soon, 1)", "return soon",
      example("test_retry_in_is_never_zero")),
    M("a short lease sleeps as long as any",
      "if lease < WINDOW:", "if False:",
      starves("a lease shorter than the window")),
    # Renew and Keep
    M("a renewal creates",
      "        return NotInside(why)\n",
      "        if why is None and c.fence and not self.inside and not self.line:\n"
      "            e = Entrant(c.ticket, 1, WINDOW, 0, 1, '', '', '', 0, self.now, self.now + WINDOW, c.fence, True)\n"
      "            self.inside.append(e)\n"
      "            return Admitted(e.fence, e.lease)\n"
      "        return NotInside(why)\n",
      law("a_seat_is_what_was_asked_for", "blocks and other people's fences")),
    M("a renewal with another fence is accepted",
      "if e.ticket == c.ticket and (c.fence is None or c.fence == e.fence):", "if e.ticket == c.ticket:",
      law("a_renewal_never_creates", "blocks and other people's fences")),
    M("a renewal takes any fence of the block",
      "if e.ticket == c.ticket and (c.fence is None or c.fence == e.fence):",
      "if e.ticket == c.ticket and (c.fence is None or e.fence <= c.fence < e.fence + e.block):",
      law("a_renewal_never_creates", "blocks and other people's fences")),
    M("a renewal must name a fence",
      "if e.ticket == c.ticket and (c.fence is None or c.fence == e.fence):",
      "if e.ticket == c.ticket and c.fence == e.fence:",
      example("test_renew_inside_by_one_who_knows_just_the_ticket_is_enough")),
    M("a renewal raises the weight",
      "weight=max(1, min(c.weight, e.weight))", "weight=c.weight",
      example("test_renew_never_raises_the_weight")),
    M("a renewal does not make sure",
      "self.inside[i] = e._replace(sure=True, expires=self.now + e.lease)\n"
      "                    return Admitted",
      "self.inside[i] = e._replace(expires=self.now + e.lease)\n"
      "                    return Admitted",
      law("the_asker_is_sure_and_others_have_the_window", "a lock and renewals")),
    M("one evicted may renew",
      "        why = self._buried(c.ticket)\n"
      "        if why is None:\n"
      "            for i",
      "        why = None\n"
      "        if why is None:\n"
      "            for i",
      law("the_asker_is_sure_and_others_have_the_window", "evictions")),
    M("a kept seat keeps its ear",
      "e = e._replace(lease=c.lease, ear=\"\")", "e = e._replace(lease=c.lease)",
      law("a_renewal_never_creates", "kept seats")),
    M("a kept seat keeps its lease",
      "e = e._replace(lease=c.lease, ear=\"\")", "e = e._replace(ear=\"\")",
      law("a_renewal_never_creates", "kept seats")),
    # Leave
    M("no graves",
      "        leases = [e.lease for",
      "        return\n"
      "        leases = [e.lease for",
      law("whoever_asks_to_be_buried_is", "burials")),
    M("a grave for everybody who leaves",
      "        if c.bury:\n"
      "            self._bury",
      "        if True:\n"
      "            self._bury",
      law("whoever_asks_to_be_buried_is", "a lock and renewals")),
    M("a grave is shorter than the lease",
      "span = max([GRAVE, *leases])", "span = GRAVE",
      example("test_a_grave_outlasts_the_lease_of_one_evicted")),
    M("a second grave for the same ticket",
      "        if self._buried(ticket):\n"
      "            return\n",
      "",
      law("the_same_command_again_changes_nothing", "burials")),
    M("a Leave with another fence is honoured",
      "if not (let_in_just_now or c.fence is None or e.fence <= c.fence < e.fence + e.block):", "if False:",
      law("leaving_leaves", "blocks and other people's fences")),
    M("a Leave takes only the first fence of the block",
      "or e.fence <= c.fence < e.fence + e.block):", "or e.fence == c.fence):",
      example("test_leave_inside_takes_any_fence_of_the_block_while_others_are_there")),
    M("one evicted hears that it still held",
      "held = not let_in_just_now and self._buried(c.ticket) is None", "held = not let_in_just_now",
      law("the_buried_stay_away", "evictions")),
    M("one let in and gone in the same step hears that it held",
      "held = not let_in_just_now and self._buried", "held = self._buried",
      law("leaving_leaves", "a lock and renewals")),
    M("a fence bars even one who stood in line",
      "if not (let_in_just_now or c.fence is None", "if not (c.fence is None",
      example("test_leave_in_line_with_any_fence_gives_up_the_place_even_if_this_step_let_it_in")),
    M("a Leave leaves the place in line",
      "        else:\n"
      "            self.line = [e for e in self.line if e.ticket != c.ticket]\n"
      "        if c.bury",
      "        if c.bury",
      law("leaving_leaves", "a lock and renewals")),
    # Evict and Resize
    M("every eviction is at once",
      "            if c.at_once:\n", "            if True:\n",
      law("leaving_leaves", "evictions")),
    M("no eviction is at once",
      "            if c.at_once:\n", "            if False:\n",
      law("leaving_leaves", "evictions")),
    M("one evicted keeps its place in line",
      "            self.line = [e for e in self.line if e.ticket != ticket]\n"
      "            if c.at_once",
      "            if c.at_once",
      law("leaving_leaves", "evictions")),
    M("an eviction of all means the line, too",
      "tickets = [e.ticket for e in self.inside] if", "tickets = [e.ticket for e in (*self.inside, *self.line)] if",
      example("test_evict_without_a_ticket_means_all_inside_and_nobody_in_line")),
    M("a Resize checks those inside",
      "        self.fixed = True\n",
      "        self.fixed = True\n"
      "        self.inside = [e for e in self.inside if e.weight <= c.capacity]\n",
      law("a_living_seat_stays", "another size")),
    M("a Resize leaves the heavy in line",
      "heavy = [e for e in self.line if e.weight > c.capacity]", "heavy = []",
      law("the_living_keep_their_place", "another size")),
    M("a Resize is forgotten when nobody is there",
      "        self.fixed = True\n", "",
      law("capacity_changes_only_by_resize_or_when_idle", "another size")),
]  # fmt: skip
