"""The laws: what must be true of every single step, whatever the record, the command and the clock.

They are written from the promises and not from the code: none of them calls into the rules, except to repeat a
command. A law is a function that asserts; `check` runs all of them and says which one was broken, by which step.
"""

from collections.abc import Callable

from tests.doorman.laws import ends, inside, line, record, replies
from tests.doorman.step import Broken, Step

Law = Callable[[Step], None]
LAWS: tuple[Law, ...] = (
    inside.capacity_is_kept,
    inside.a_living_seat_stays,
    inside.only_its_holder_lengthens_a_seat,
    inside.a_seat_is_what_was_asked_for,
    inside.the_asker_is_sure_and_others_have_the_window,
    inside.fences_rise,
    line.the_living_keep_their_place,
    line.nobody_passes,
    line.the_deaf_go_first_only_when_all_are_deaf,
    line.the_silent_wait_until_they_poll,
    line.the_passed_over_are_remembered,
    line.the_first_who_listens_does_not_fit,
    line.a_lost_turn_is_not_a_lost_place,
    line.the_patience_goes_along_into_the_window,
    line.the_patience_fits_the_answer,
    ends.the_expired_and_the_dead_are_gone,
    ends.an_expired_seat_is_renewed_only_if_nobody_waits,
    ends.the_buried_stay_away,
    ends.whoever_asks_to_be_buried_is,
    ends.leaving_leaves,
    replies.a_renewal_never_creates,
    replies.entering_is_answered_as_the_table_says,
    replies.capacity_changes_only_by_resize_or_when_idle,
    replies.exactly_the_newly_admitted_are_woken,
    replies.those_evicted_or_dropped_are_told_of,
    record.nothing_lasts_longer_than_its_span,
    record.everybody_is_in_one_place,
    record.the_same_command_again_changes_nothing,
)


def check(step: Step) -> None:
    for law in LAWS:
        try:
            law(step)
        except AssertionError as broken:
            raise Broken(law.__name__, step, broken) from None
