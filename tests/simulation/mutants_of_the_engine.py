"""Deliberate breaks in the client and the engine: parties, the keeper, rows."""

from tests.simulation import scene_local_queue as local
from tests.simulation import scene_rows as rows
from tests.simulation.mutant import (
    ACQUIRE,
    CAS,
    LOCAL_QUEUE,
    RELEASE,
    RENEWAL,
    RENEWAL_MESSAGES,
    REQUEST,
    SESSION,
    WITH_BLOCK,
    WITHDRAW,
    Mutant,
)

MUTANTS = [
    Mutant(
        "one fence for all local holders",
        local.each_local_holder_has_a_fence_of_its_own, LOCAL_QUEUE,
        "grant.give(heir, grant.holds[0].fence + 1, clock)",
        "grant.give(heir, grant.fence, clock)",
    ),
    Mutant(
        "no block of fences is reserved",
        local.passing_on_ends_after_32_times, REQUEST,
        "wait, self.fair, self.block, listener",
        "wait, self.fair, 1, listener",
    ),
    Mutant(
        "passed on as often as anybody likes",
        local.passing_on_ends_after_32_times, LOCAL_QUEUE,
        "        and grant.holds[0].fence + 1 < grant.fence + grant.request.block\n",
        "",
    ),
    Mutant(
        "passed on for as long as anybody likes",
        local.passing_on_ends_after_a_tenth_of_a_second, LOCAL_QUEUE,
        "        and clock - grant.since < PASSING\n",
        "",
    ),
    Mutant(
        "passed on after the deadline",
        local.nothing_is_passed_on_after_its_deadline, LOCAL_QUEUE,
        "        and clock < grant.deadline\n",
        "",
    ),
    Mutant(
        "a leader that gives up takes the ticket with it",
        local.a_leader_that_gives_up_leaves_an_heir, WITHDRAW,
        "            lead(grant, grant.queue[0])\n",
        "            grant.ticket = session.ticket()\n            lead(grant, grant.queue[0])\n",
    ),
    Mutant(
        "nobody is the heir",
        local.a_lost_grant_leaves_an_heir, SESSION,
        "        if grant.queue:\n            heir",
        "        if False:\n            heir",
    ),
    Mutant(
        "readers who come later wait behind readers that hold it",
        local.a_reader_that_comes_later_needs_no_turn, ACQUIRE,
        "            session.set_apart(grant)\n",
        "",
    ),
    Mutant(
        "readers who come later share the grant of earlier ones",
        local.readers_do_not_starve_a_writer, ACQUIRE,
        "        join_local_queue(",
        "        if grant.state is HELD and request.together:\n"
        "            grant.give(hold, grant.fence, session.clock(), grant.holds)\n"
        "            hold._event = session.runtime.event()\n"
        "            return NOWHERE\n"
        "        join_local_queue(",
        (ACQUIRE, "            session.set_apart(grant)\n", ""),
    ),
    Mutant(
        "all readers that wait when the grant is known share its fence",
        local.a_reader_that_comes_after_the_grant_has_a_greater_fence, LOCAL_QUEUE,
        "    while grant.queue and came_before(grant.queue[0], queued):\n",
        "    while grant.queue:\n",
    ),
    Mutant(
        "readers share a grant only if all of them waited before the first request",
        local.a_reader_that_comes_after_the_grant_has_a_greater_fence, ACQUIRE,
        "    grant.since = at\n",
        "",
    ),
    Mutant(
        "a grant is made when its reply arrives",
        local.a_reader_that_comes_while_the_first_asks_has_a_greater_fence, ACQUIRE,
        "    queued = grant.since\n",
        "    queued = clock\n",
    ),
    Mutant(
        "a ticket is inherited with its fence",
        local.a_reader_that_inherits_a_grant_has_a_greater_fence, ACQUIRE,
        "    if request.together and not came_before(hold, queued):\n        return False\n",
        "",
    ),
    Mutant(
        "a reader waits until its leader polls by itself",
        local.a_reader_does_not_lose_its_turn_because_its_leader_rarely_polls, LOCAL_QUEUE,
        "            session.backend.wake_here((grant.ticket,))\n",
        "            pass\n",
    ),
    Mutant(
        "'once more' without looking whose grant it is",
        local.a_reentrant_hold_ends_when_the_grant_is_passed_on, WITH_BLOCK,
        "mine = any(h._who == who for h in grant.holds)",
        "mine = bool(grant.holds)",
        (RELEASE, "    if nested:\n", "    if False:\n"),
    ),
    Mutant(
        "a client that has released its first hold has none",
        local.reentrant_holds_may_be_released_in_any_order, RELEASE,
        "                nested[key] = rest[0]",
        "                nested.pop(key)",
    ),
    Mutant(
        "reentrant holds are remembered forever",
        local.reentrant_holds_may_be_released_in_any_order, RELEASE,
        "                nested.pop(key, None)",
        "                pass",
    ),
    Mutant(
        "one record that cannot be read stops the keeper",
        local.a_bad_record_costs_only_its_own_lease, RENEWAL,
        "        due.sort(key=lambda s: s.failed)\n",
        "",
    ),
    Mutant(
        "an eviction is told as something else",
        local.an_evicted_holder_learns_of_it_at_its_next_renewal, RENEWAL_MESSAGES,
        'if why is not None and why.kind == "evicted":',
        "if why is None:",
    ),
    Mutant(
        "a wake-up for a holder is ignored",
        local.an_evicted_holder_learns_of_it_within_a_second, RENEWAL,
        "            grant.renew_at = clock  # evicted",
        "            pass  # evicted",
    ),
    Mutant(
        "a lost place is not reported",
        local.a_place_that_was_lost_is_reported, ACQUIRE,
        "number != before[1] and ahead > before[0]",
        "number == before[1] and ahead > before[0]",
    ),
    Mutant(
        "closing passes the grant on",
        local.closing_leaves_nothing_held, RELEASE,
        "return not session.closing and pass_on(",
        "return pass_on(",
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
        rows.an_unknown_leave_wakes_those_that_it_admitted, CAS,
        "                    await self._wake_unconfirmed(start[0])\n",
        "",
    ),
    Mutant(
        "an unknown write is forgotten with the step that made it",
        rows.an_unknown_write_is_settled_by_the_next_step_if_not_by_this, CAS,
        "        settle = key in self._doubts\n",
        "        settle = False\n",
    ),
    Mutant(
        "a conflict without waiting counts as written",
        rows.a_conflict_without_waiting_is_no_grant, CAS,
        "if result is not None and not isinstance(result, RowSnapshot):",
        "if key:",
    ),
    Mutant(
        "a release without waiting does not look at its reply",
        rows.a_release_without_waiting_tells_of_a_loss, RELEASE,
        "kept = reply == RELEASED_NOW or isinstance(reply, request.ended)",
        "kept = True",
    ),
]
