"""The laws: what must be true of every single step, whatever the state, the command and the clock.

They are written from the promises and not from the code: none of them calls into the rules, except to repeat a
command. A law is a function that asserts; `check` runs all of them and says which one was broken, by which step.
"""

from collections.abc import Callable

from tests.lock_rules.laws import ends, holders, queue, replies, state
from tests.lock_rules.step import Broken, Step

Law = Callable[[Step], None]
LAWS: tuple[Law, ...] = (
    holders.capacity_is_kept,
    holders.a_living_grant_stays,
    holders.only_its_holder_lengthens_a_grant,
    holders.a_grant_is_what_was_asked_for,
    holders.the_sender_is_confirmed_and_others_have_the_window,
    holders.fences_rise,
    queue.the_living_keep_their_place,
    queue.nobody_passes,
    queue.the_unreachable_go_first_only_when_all_are_unreachable,
    queue.the_silent_wait_until_they_poll,
    queue.the_passed_over_are_remembered,
    queue.the_first_who_listens_does_not_fit,
    queue.a_lost_turn_is_not_a_lost_place,
    queue.the_poll_ttl_goes_along_into_the_window,
    queue.the_poll_ttl_fits_the_answer,
    ends.the_expired_and_the_dead_are_gone,
    ends.an_expired_grant_is_renewed_only_if_nobody_waits,
    ends.tickets_with_a_tombstone_stay_away,
    ends.a_requested_tombstone_is_made,
    ends.leaving_leaves,
    ends.a_request_to_release_ends_with_its_grant,
    ends.only_an_operator_asks,
    replies.a_renewal_never_creates,
    replies.entering_is_answered_as_the_table_says,
    replies.capacity_changes_only_by_resize_or_when_idle,
    replies.exactly_the_newly_admitted_are_woken,
    replies.the_evicted_and_the_dropped_are_woken,
    replies.a_holder_that_is_asked_is_told_so_in_every_grant,
    state.nothing_lasts_longer_than_its_span,
    state.everybody_is_in_one_place,
    state.the_same_command_again_changes_nothing,
)


def check(step: Step) -> None:
    for law in LAWS:
        try:
            law(step)
        except AssertionError as broken:
            raise Broken(law.__name__, step, broken) from None
