"""Deliberate breaks in messages and beliefs: deadlines, pushes, unknown outcomes, pending releases, tombstones."""

from tests.simulation import scene_doubt as doubt
from tests.simulation import scene_time as time
from tests.simulation.mutant import (
    ACQUIRE,
    CAS,
    GRANT,
    LEASE_OPS,
    RELEASE,
    RENEWAL,
    RENEWAL_MESSAGES,
    SESSION,
    Mutant,
)

MUTANTS = [
    Mutant(
        "the deadline counts from the reply",
        time.a_deadline_counts_from_the_request_not_from_the_reply, ACQUIRE,
        "accept_grant(session, hold, grant, reply.fence, answer.at, reply.left)",
        "accept_grant(session, hold, grant, reply.fence, session.clock(), reply.left)",
    ),
    Mutant(
        "a renewal counts from its reply",
        time.a_slow_renewal_counts_from_its_request, RENEWAL_MESSAGES,
        "grant.confirm(answer.at, reply.left)",
        "grant.confirm(session.clock(), reply.left)",
    ),
    Mutant(
        "no margin",
        time.a_margin_covers_a_slow_clock, GRANT,
        "deadline = at + seconds - margin",
        "deadline = at + seconds",
    ),
    Mutant(
        "the deadline counts from the write, not from the read that sampled the time",
        time.a_row_that_was_read_long_ago_grants_only_what_is_left, CAS,
        "_answer(batch, replies, at)\n                return\n            conflicts += 1",
        "_answer(batch, replies, result.at)\n                return\n            conflicts += 1",
    ),
    Mutant(
        "a push is taken as a grant from the moment it is read",
        time.an_old_push_is_no_grant_after_a_pause, ACQUIRE,
        "accept_grant(session, hold, grant, pushed.fence, at, window)",
        "accept_grant(session, hold, grant, pushed.fence, session.clock(), window)",
        (ACQUIRE, "if session.clock() < at + window / 4e6:", "if window:"),
    ),
    Mutant(
        "a row that shows the grant counts from the moment when it has come",
        time.a_row_that_shows_us_inside_grants_only_what_is_left, ACQUIRE,
        "at = pushed.until - window / 1e6 if pushed.until else answer.at",
        "at = session.clock() if pushed.until else answer.at",
    ),
    Mutant(
        "what a row shows counts from its answer",
        time.a_row_that_shows_us_inside_grants_only_what_is_left, CAS,
        "seen.at + (grant.expires - seen.now) / 1e6)",
        "seen.at + 0.9 + (grant.expires - seen.now) / 1e6)",
    ),
    Mutant(
        "a push grants a whole lease",
        time.a_push_grants_only_the_window, ACQUIRE,
        "window = min(grant.request.lease_us, CONFIRM_WINDOW)",
        "window = grant.request.lease_us",
    ),
    Mutant(
        "a push for another place is taken as the grant",
        time.a_push_for_another_place_is_no_grant, ACQUIRE,
        "pushed.fence and pushed.place == grant.place and",
        "pushed.fence and",
    ),
    Mutant(
        "a wake-up is taken as a grant",
        time.a_hint_is_no_grant, ACQUIRE,
        "if pushed is not None and pushed.fence and pushed.place == grant.place and backend.pushes_grants:",
        "if pushed is not None:",
    ),
    Mutant(
        "renewed too late",
        time.a_renewal_comes_in_time, GRANT,
        "self.renew_at = at + seconds / 3",
        "self.renew_at = at + seconds",
    ),
    Mutant(
        "the keeper is not woken for a grant that is due sooner",
        time.a_shorter_lease_wakes_the_keeper, SESSION,
        "            self.wake_at = due\n            self.bell.set()",
        "            self.wake_at = due",
    ),
    Mutant(
        "a loss is forgotten when the store answers again",
        time.a_loss_is_final, GRANT,
        "        self._session.lose(grant)\n        self._reason = grant.reason\n        return True",
        "        return True",
    ),
    Mutant(
        "nobody watches the clock while the store hangs",
        time.a_hung_store_does_not_keep_a_loss_from_being_told, GRANT,
        "            self.watched = True",
        "            pass",
    ),
    Mutant(
        "a silent store is asked five times, whatever the time-out",
        time.a_time_out_holds_over_a_silent_store, SESSION,
        "late = (until is not None and self.clock() >= until) or over()",
        "late = False",
    ),
    Mutant(
        "slow answers are asked for without end",
        time.a_time_out_holds_when_answers_are_slower_than_the_lease, ACQUIRE,
        "if until is None or session.clock() < until:",
        "if True:",
    ),
    Mutant(
        "a new ticket with every poll",
        doubt.a_poll_keeps_its_ticket, ACQUIRE,
        "    grant.sent = grant.doubtful = True\n",
        "    grant.sent = grant.doubtful = True\n    grant.ticket = session.ticket()\n",
    ),
    Mutant(
        "a new ticket after an unknown outcome",
        doubt.a_lost_reply_is_cured_by_asking_again, SESSION,
        "                turn += 1\n                look_up(self)",
        "                turn += 1\n                look_up(self)\n"
        "                command = command._replace(ticket=self.ticket())",
    ),
    Mutant(
        "an unknown outcome is an error",
        doubt.a_lost_reply_is_cured_by_asking_again, SESSION,
        "TRIES = 5",
        "TRIES = 1",
    ),
    Mutant(
        "no tombstone for a request that is withdrawn while its Acquire is under way",
        doubt.a_late_enter_finds_a_tombstone, ACQUIRE,
        "            leave_tombstone = grant.doubtful or session.backend.may_duplicate",
        "            leave_tombstone = session.backend.may_duplicate",
    ),
    Mutant(
        "a later answer makes an earlier Acquire forgotten",
        doubt.a_late_enter_finds_a_tombstone_after_a_release_too, ACQUIRE,
        "grant.doubtful = doubt or answer.again",
        "grant.doubtful = False",
    ),
    Mutant(
        "no tombstone for a grant whose first Acquire is still under way",
        doubt.a_late_enter_finds_a_tombstone_after_a_release_too, RELEASE,
        "    leave_tombstone = grant.doubtful or session.backend.may_duplicate\n",
        "    leave_tombstone = session.backend.may_duplicate\n",
    ),
    Mutant(
        "a refusal ends the matter, although an earlier Acquire is under way",
        doubt.a_late_try_finds_a_tombstone, ACQUIRE,
        "grant.sent = grant.waited or grant.doubtful or backend.may_duplicate",
        "grant.sent = False",
    ),
    Mutant(
        "no pending release for a request that is withdrawn",
        doubt.a_cancelled_wait_leaves_the_queue_when_the_store_replies_again, ACQUIRE,
        "            session.schedule_release(\n"
        "                PendingRelease(grant.name, grant.ticket, leave_tombstone, clock + 1.0, "
        "clock + max(grant.lease, FORGET))\n            )\n",
        "            pass\n",
    ),
    Mutant(
        "no pending release for a release that found the store down",
        doubt.a_release_that_finds_the_store_down_is_made_good, RELEASE,
        "            session.schedule_release(\n"
        "                PendingRelease(grant.name, grant.ticket, leave_tombstone, clock + max(stay, 0.1), until)\n"
        "            )\n",
        "",
    ),
    Mutant(
        "pending releases are never sent",
        doubt.a_release_that_finds_the_store_down_is_made_good, RENEWAL,
        "if pending.ticket in session.pending_releases and not await flush_release(session, pending.ticket):",
        "if pending.ticket in session.pending_releases:",
    ),
    Mutant(
        "what may have left is still held",
        doubt.a_release_that_finds_the_store_down_is_made_good, GRANT,
        "return not self._released and not self._grant.leaving and not self.lost",
        "return not self._released and not self.lost",
    ),
    Mutant(
        "a release that is repeated is a loss",
        doubt.a_release_that_finds_the_store_down_is_made_good, RELEASE,
        "(answer.again or not first or session.backend.may_duplicate)",
        "(answer.again or session.backend.may_duplicate)",
    ),
    Mutant(
        "a Release whose reply was lost is a loss",
        doubt.a_release_whose_reply_is_lost_is_no_loss, RELEASE,
        "(answer.again or not first or session.backend.may_duplicate)",
        "(not first or session.backend.may_duplicate)",
    ),
    Mutant(
        "a release that is slow is a loss",
        doubt.a_release_that_takes_longer_than_the_lease_is_no_loss, RELEASE,
        "if grant.going < grant.deadline <= session.clock():",
        "if False:",
    ),
    Mutant(
        "what ended before it was released is no loss",
        doubt.the_first_leave_tells_of_a_loss, RELEASE,
        "if grant.going < grant.deadline <= session.clock():",
        "if grant.deadline <= session.clock():",
    ),
    Mutant(
        "the engine does not say that it had to ask again",
        doubt.a_release_whose_reply_is_lost_is_no_loss, CAS,
        "turn.again = True",
        "pass",
    ),
    Mutant(
        "Released(held=False) is ignored",
        doubt.the_first_leave_tells_of_a_loss, RELEASE,
        "(isinstance(answer.reply, Released) and answer.reply.held)",
        "isinstance(answer.reply, Released)",
    ),
    Mutant(
        "a loss noticed during the release is kept quiet",
        doubt.a_loss_that_is_noticed_during_the_release_is_told, RELEASE,
        "    over(hold)\n    if kept:\n",
        "    over(hold)\n    if kept or grant.reason:\n",
    ),
    Mutant(
        "an evicted one stays where it was let in",
        doubt.a_waiter_that_was_let_in_and_evicted_moves_out, ACQUIRE,
        "        session.schedule_release(\n"
        "            PendingRelease(grant.name, grant.ticket, False, clock + 1.0, clock + max(grant.lease, FORGET))\n"
        "        )\n",
        "",
    ),
    Mutant(
        "a downgrade counts from its answer",
        doubt.a_downgrade_counts_from_its_first_sending, LEASE_OPS,
        "        grant.weight = 1\n        grant.lowered = True\n",
        "        grant.lowered = True\n",
    ),
    Mutant(
        "a downgrade is sent once",
        doubt.a_downgrade_is_repeated_until_it_arrives, RENEWAL_MESSAGES,
        "weight, span = grant.weight if grant.lowered else None,",
        "weight, span = grant.weight if grant.lowered and not grant.failed else None,",
    ),
    Mutant(
        "a shorter lease counts from its answer",
        doubt.a_shorter_lease_counts_from_its_first_sending, LEASE_OPS,
        "            grant.shorten(session.clock(), lease)\n",
        "",
    ),
    Mutant(
        "a renewal lengthens a lease that was shortened after it",
        doubt.an_older_renewal_does_not_lengthen_a_lease_again, GRANT,
        "        if seconds > self.lease:\n            seconds = self.lease\n",
        "",
    ),
    Mutant(
        "detached although it was lost meanwhile",
        doubt.what_was_lost_while_it_was_detached_is_not_handed_over, LEASE_OPS,
        "    if grant.reason:  # a loss is final",
        "    if False:  # a loss is final",
    ),
    Mutant(
        "who attaches a hold knows all about its past",
        doubt.a_late_enter_finds_a_tombstone_after_any_release, LEASE_OPS,
        "    grant.doubtful = True",
        "    grant.doubtful = False",
    ),
    Mutant(
        "a lost wake-up is waited for",
        doubt.a_lost_wake_up_costs_a_second_at_most, ACQUIRE,
        "nap = min(reply.retry_in, sleep_span(reply.ahead)) / 1e6",
        "nap = 10.0",
    ),
    Mutant(
        "a client that cannot listen gives up",
        time.a_client_that_cannot_listen_polls, ACQUIRE,
        "            except StoreError:  # it cannot listen",
        "            except ZeroDivisionError:  # it cannot be listened to",
    ),
    Mutant(
        "a client that cannot listen polls all the time",
        time.a_client_that_cannot_listen_polls, ACQUIRE,
        "                await session.runtime.sleep(min(nap, RETRY_MOST))\n",
        "",
    ),
    Mutant(
        "a queued client gives up when the store is down",
        time.a_store_that_is_down_for_a_while_costs_nobody_its_wait, ACQUIRE,
        "if not grant.waited or error.refused or",
        "if True or",
    ),
]
