"""Deliberate breaks in what is said and believed: deadlines, pushes, unknown outcomes, debts, graves."""

from tests.sim import scene_doubt as doubt
from tests.sim import scene_time as time
from tests.sim.mutant import ACQUIRE, CAS, CHANGE, DESK, KEEP, SEAT, Mutant

MUTANTS = [
    Mutant(
        "the deadline counts from the reply",
        time.a_deadline_counts_from_the_request_not_from_the_reply, ACQUIRE,
        "take_seat(desk, guest, party, reply.fence, answer.at, reply.left)",
        "take_seat(desk, guest, party, reply.fence, desk.clock(), reply.left)",
    ),
    Mutant(
        "a renewal counts from its reply",
        time.a_slow_renewal_counts_from_its_request, KEEP,
        "seat.confirm(answer.at, reply.left)",
        "seat.confirm(desk.clock(), reply.left)",
    ),
    Mutant(
        "no margin",
        time.a_margin_covers_a_slow_clock, SEAT,
        "deadline = at + seconds - min(self.margin, seconds / 2)",
        "deadline = at + seconds",
    ),
    Mutant(
        "the deadline counts from the write, not from the read that sampled the time",
        time.a_row_that_was_read_long_ago_grants_only_what_is_left, CAS,
        "return Answer(reply, at, again)\n            conflicts += 1",
        "return Answer(reply, result.at, again)\n            conflicts += 1",
    ),
    Mutant(
        "a push is taken as a grant from the moment it is read",
        time.an_old_push_is_no_grant_after_a_pause, ACQUIRE,
        "take_seat(desk, guest, party, pushed.fence, answer.at, window)",
        "take_seat(desk, guest, party, pushed.fence, desk.clock(), window)",
    ),
    Mutant(
        "a push grants a whole lease",
        time.a_push_grants_only_the_window, ACQUIRE,
        "window = min(int(wish.lease * 1e6), WINDOW)",
        "window = int(wish.lease * 1e6)",
    ),
    Mutant(
        "a push for another place is taken as the grant",
        time.a_push_for_another_place_is_no_grant, ACQUIRE,
        "pushed.fence and pushed.place == party.place and",
        "pushed.fence and",
    ),
    Mutant(
        "a hint is taken as a grant",
        time.a_hint_is_no_grant, ACQUIRE,
        "if pushed is not None and pushed.fence and pushed.place == party.place and backend.pushes_grants:",
        "if pushed is not None:",
    ),
    Mutant(
        "renewed too late",
        time.a_renewal_comes_in_time, SEAT,
        "self.renew_at = at + seconds / 3",
        "self.renew_at = at + seconds",
    ),
    Mutant(
        "the keeper is not woken for a seat that is due sooner",
        time.a_shorter_lease_wakes_the_keeper, DESK,
        "            self.wake_at = due\n            self.bell.set()",
        "            self.wake_at = due",
    ),
    Mutant(
        "a loss is forgotten when the store answers again",
        time.a_loss_is_final, SEAT,
        "        self._desk.lose(seat)\n        self._reason = seat.reason\n        return True",
        "        return True",
    ),
    Mutant(
        "nobody watches the clock while the store hangs",
        time.a_hung_store_does_not_keep_a_loss_from_being_told, DESK,
        "            seat.watched = True",
        "            pass",
    ),
    Mutant(
        "a silent store is asked five times, whatever the time-out",
        time.a_time_out_holds_over_a_silent_store, DESK,
        "late = until is not None and self.clock() >= until",
        "late = False",
    ),
    Mutant(
        "slow answers are asked for without end",
        time.a_time_out_holds_when_answers_are_slower_than_the_lease, ACQUIRE,
        "if until is None or desk.clock() < until:",
        "if True:",
    ),
    Mutant(
        "a new ticket with every poll",
        doubt.a_poll_keeps_its_ticket, ACQUIRE,
        "    if not party.ticket:\n        party.ticket = desk.ticket()\n    party.sent",
        "    party.ticket = desk.ticket()\n    party.sent",
    ),
    Mutant(
        "a new ticket after an unknown outcome",
        doubt.a_lost_reply_is_cured_by_asking_again, DESK,
        "            except Unknown as doubt:\n                turn += 1",
        "            except Unknown as doubt:\n                turn += 1\n"
        "                command = command._replace(ticket=self.ticket())",
    ),
    Mutant(
        "an unknown outcome is an error",
        doubt.a_lost_reply_is_cured_by_asking_again, DESK,
        "TRIES = 5",
        "TRIES = 1",
    ),
    Mutant(
        "no grave for a wish that is withdrawn while its Enter is under way",
        doubt.a_late_enter_finds_a_grave, ACQUIRE,
        "        bury = party.unanswered or desk.backend.doubles",
        "        bury = desk.backend.doubles",
    ),
    Mutant(
        "a later answer makes an earlier Enter forgotten",
        doubt.a_late_enter_finds_a_grave_after_a_release_too, ACQUIRE,
        "party.unanswered = doubt or answer.again",
        "party.unanswered = False",
    ),
    Mutant(
        "no grave for a seat whose first Enter is still under way",
        doubt.a_late_enter_finds_a_grave_after_a_release_too, ACQUIRE,
        "    seat.doubtful = party.unanswered\n",
        "",
    ),
    Mutant(
        "a refusal ends the matter, although an earlier Enter is under way",
        doubt.a_late_try_finds_a_grave, ACQUIRE,
        "party.sent = party.waited or party.unanswered or backend.doubles",
        "party.sent = False",
    ),
    Mutant(
        "no debt for a wish that is withdrawn",
        doubt.a_cancelled_wait_leaves_the_line_when_the_store_answers_again, ACQUIRE,
        "        desk.owe(Debt(party.wish.name, ticket, bury, clock + 1.0, clock + max(party.wish.lease, FORGET)))\n",
        "",
    ),
    Mutant(
        "no debt for a release that found the store down",
        doubt.a_release_that_finds_the_store_down_is_made_good, ACQUIRE,
        "            desk.owe(Debt(seat.name, seat.ticket, bury, clock + max(stay, 0.1), until))\n",
        "",
    ),
    Mutant(
        "debts are never paid",
        doubt.a_release_that_finds_the_store_down_is_made_good, KEEP,
        "if debt.ticket in desk.debts and await pay(desk, debt.ticket) is None:",
        "if debt.ticket in desk.debts:",
    ),
    Mutant(
        "what may have left is still held",
        doubt.a_release_that_finds_the_store_down_is_made_good, SEAT,
        "return not self._released and not self._seat.leaving and not self.lost",
        "return not self._released and not self.lost",
    ),
    Mutant(
        "a release that is repeated is a loss",
        doubt.a_release_that_finds_the_store_down_is_made_good, ACQUIRE,
        "(answer.again or not first or desk.backend.doubles)",
        "(answer.again or desk.backend.doubles)",
    ),
    Mutant(
        "a Leave whose reply was lost is a loss",
        doubt.a_release_whose_reply_is_lost_is_no_loss, ACQUIRE,
        "(answer.again or not first or desk.backend.doubles)",
        "(not first or desk.backend.doubles)",
    ),
    Mutant(
        "the engine does not say that it had to ask again",
        doubt.a_release_whose_reply_is_lost_is_no_loss, CAS,
        "known, settle, again = None, True, True",
        "known, settle = None, True",
    ),
    Mutant(
        "Left(held=False) is ignored",
        doubt.the_first_leave_tells_of_a_loss, ACQUIRE,
        "(isinstance(answer.reply, Left) and answer.reply.held)",
        "isinstance(answer.reply, Left)",
    ),
    Mutant(
        "a loss noticed during the release is kept quiet",
        doubt.a_loss_that_is_noticed_during_the_release_is_told, ACQUIRE,
        "    over(hold)\n    if kept:\n",
        "    over(hold)\n    if kept or seat.reason:\n",
    ),
    Mutant(
        "an evicted one stays where it was let in",
        doubt.a_waiter_that_was_let_in_and_evicted_moves_out, ACQUIRE,
        "        ticket, party.ticket = party.ticket, \"\"\n        party.sent",
        "        ticket, party.ticket = \"\", \"\"\n        party.sent",
    ),
    Mutant(
        "a downgrade counts from its answer",
        doubt.a_downgrade_counts_from_its_first_sending, CHANGE,
        "        seat.weight = 1\n        seat.lowered = True\n",
        "        seat.lowered = True\n",
    ),
    Mutant(
        "a downgrade is sent once",
        doubt.a_downgrade_is_repeated_until_it_arrives, KEEP,
        "Renew(seat.ticket, seat.fence, seat.weight if seat.lowered else None)",
        "Renew(seat.ticket, seat.fence, seat.weight if seat.lowered and not seat.failed else None)",
    ),
    Mutant(
        "a shorter lease counts from its answer",
        doubt.a_shorter_lease_counts_from_its_first_sending, CHANGE,
        "            seat.shorten(desk.clock(), lease)\n",
        "",
    ),
    Mutant(
        "a renewal lengthens a lease that was shortened after it",
        doubt.an_older_renewal_does_not_lengthen_a_lease_again, SEAT,
        "seconds = min(left / 1e6, self.lease)",
        "seconds = left / 1e6",
    ),
    Mutant(
        "detached although it was lost meanwhile",
        doubt.what_was_lost_while_it_was_detached_is_not_handed_over, CHANGE,
        "    if seat.reason:  # a loss is final",
        "    if False:  # a loss is final",
    ),
    Mutant(
        "who attaches a hold knows all about its past",
        doubt.a_late_enter_finds_a_grave_whoever_has_left, CHANGE,
        "    seat.doubtful = True",
        "    seat.doubtful = False",
    ),
    Mutant(
        "a lost wake-up is waited for",
        doubt.a_lost_wake_up_costs_a_second_at_most, ACQUIRE,
        "nap = min(reply.retry_in, sleep_span(reply.ahead)) / 1e6",
        "nap = 10.0",
    ),
]
