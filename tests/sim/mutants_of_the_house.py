"""Deliberate breaks in the client and the engine: parties, the keeper, rows."""

from tests.sim import scene_party as party
from tests.sim import scene_rows as rows
from tests.sim.mutant import ACQUIRE, CAS, DESK, ENTER, KEEP, PARTY, RELEASE, SHORT, Mutant

MUTANTS = [
    Mutant(
        "one fence for all local holders",
        party.each_local_holder_has_a_fence_of_its_own, PARTY,
        "seat.give(heir, seat.fence + seat.given, clock)",
        "seat.give(heir, seat.fence, clock)",
    ),
    Mutant(
        "no block of fences is reserved",
        party.passing_on_ends_after_32_times, ACQUIRE,
        "not trying, wish.fair, wish.block,",
        "not trying, wish.fair, 1,",
    ),
    Mutant(
        "passed on as often as anybody likes",
        party.passing_on_ends_after_32_times, PARTY,
        "        and seat.given + 1 < seat.wish.block\n",
        "",
    ),
    Mutant(
        "passed on for as long as anybody likes",
        party.passing_on_ends_after_a_tenth_of_a_second, PARTY,
        "        and clock - seat.admitted < PASSING\n",
        "",
    ),
    Mutant(
        "passed on after the deadline",
        party.nothing_is_passed_on_after_its_deadline, PARTY,
        "        and clock < seat.deadline\n",
        "",
    ),
    Mutant(
        "a leader that gives up takes the ticket with it",
        party.a_leader_that_gives_up_leaves_an_heir, ACQUIRE,
        "            lead(seat, seat.line[0])\n",
        "            seat.ticket = desk.ticket()\n            lead(seat, seat.line[0])\n",
    ),
    Mutant(
        "nobody is the heir",
        party.a_lost_seat_leaves_an_heir, DESK,
        "        if seat.line:\n            heir",
        "        if False:\n            heir",
    ),
    Mutant(
        "readers who come later stand behind the party that is inside",
        party.a_reader_that_comes_later_needs_no_turn, ACQUIRE,
        "            desk.set_apart(seat)\n",
        "",
    ),
    Mutant(
        "readers who come later share the place that is inside",
        party.readers_do_not_starve_a_writer, ACQUIRE,
        "        else:\n            stand_by(",
        "        elif seat.fence and wish.weight != ALL and not seat.leaving:\n"
        "            seat.give(hold, seat.fence, desk.clock(), seat.holds)\n"
        "            hold._event = desk.colour.event()\n"
        "        else:\n            stand_by(",
        (ACQUIRE, "            desk.set_apart(seat)\n", ""),
    ),
    Mutant(
        "'once more' without looking whose seat it is",
        party.a_reentrant_hold_ends_when_the_seat_is_passed_on, ENTER,
        "mine = any(h._who == who for h in seat.holds)",
        "mine = bool(seat.holds)",
        (RELEASE, "    if nested:\n", "    if False:\n"),
    ),
    Mutant(
        "whoever has released its first hold has none",
        party.reentrant_holds_may_be_released_in_any_order, RELEASE,
        "                nested[key] = rest[0]",
        "                nested.pop(key)",
    ),
    Mutant(
        "reentrant holds are remembered for ever",
        party.reentrant_holds_may_be_released_in_any_order, RELEASE,
        "                nested.pop(key, None)",
        "                pass",
    ),
    Mutant(
        "one record that cannot be read stops the keeper",
        party.a_bad_record_costs_only_its_own_lease, KEEP,
        "key=lambda s: (s.failed, s.end())",
        "key=lambda s: s.end()",
    ),
    Mutant(
        "an eviction is told as something else",
        party.an_evicted_holder_is_told_at_its_next_renewal, KEEP,
        'if why is not None and why.kind == "evicted":',
        "if why is None:",
    ),
    Mutant(
        "a hint for a holder is not heeded",
        party.an_evicted_holder_is_told_within_a_second, KEEP,
        "            ours[ticket].renew_at = clock\n",
        "            pass\n",
    ),
    Mutant(
        "a lost place is not reported",
        party.a_place_that_was_lost_is_reported, ACQUIRE,
        "reply.place != seat.place and reply.ahead > seat.ahead",
        "reply.place == seat.place and reply.ahead > seat.ahead",
    ),
    Mutant(
        "closing passes the seat on",
        party.closing_leaves_nothing_held, RELEASE,
        "if not desk.closing and may_pass_on(",
        "if may_pass_on(",
    ),
    Mutant(
        "refused from memory",
        rows.a_refusal_rests_on_a_fresh_read, CAS,
        "                if not fresh:\n                    start = None\n                    continue\n",
        "",
    ),
    Mutant(
        "a conflict counts as written",
        rows.a_conflict_is_made_again_from_what_is_there, CAS,
        "            conflicts += 1\n            self.conflicts += 1",
        "            _answer(batch, replies, at)\n            return",
    ),
    Mutant(
        "a write refused for its time is taken for done",
        rows.a_time_ahead_of_the_stores_is_refused_and_read_again, CAS,
        "            stale = result.version == version",
        "            if result.version == version:\n"
        "                _answer(batch, replies, at)\n                return\n"
        "            stale = False",
    ),
    Mutant(
        "nobody is woken after an unknown outcome",
        rows.an_unknown_leave_wakes_whom_it_admitted, CAS,
        "                    await self._wake_unsure(start[0][0])\n",
        "",
    ),
    Mutant(
        "an unknown write is forgotten with the step that made it",
        rows.an_unknown_write_is_settled_by_the_next_step_if_not_by_this, CAS,
        "        settle = key in self._doubts\n",
        "        settle = False\n",
    ),
    Mutant(
        "a conflict on the short way counts as written",
        rows.a_conflict_on_the_short_way_is_no_grant, CAS,
        "if said is not None and not isinstance(said, Seen):",
        "if key:",
    ),
    Mutant(
        "the short way out does not look at what it is told",
        rows.the_short_way_out_tells_of_a_loss_too, SHORT,
        " or not answer.reply.held:",
        ":",
    ),
]
