"""The laws: what must be true of every single step, whatever the state, the command and the clock.

They are written from the promises and not from the code: none of them calls into the rules, except to repeat an order.
"""

from collections.abc import Callable

from tests.pool_rules.laws import items, queue, replies
from tests.pool_rules.step import Broken, Step

Law = Callable[[Step], None]
LAWS: tuple[Law, ...] = (
    items.nothing_is_lost_and_nothing_made_up,
    items.a_living_take_stays,
    items.only_its_owner_keeps_an_item,
    items.fences_rise_with_every_take_and_only_then,
    items.done_is_done,
    items.a_body_is_changed_only_by_who_has_the_item,
    items.given_back_goes_behind_what_is_due,
    items.nothing_lasts_longer_than_its_span,
    items.nothing_belongs_to_nobody_for_a_reason,
    queue.nobody_waits_while_something_is_due,
    queue.first_come_first_served,
    queue.what_was_due_first_goes_first,
    queue.the_living_keep_their_place,
    queue.the_silent_and_the_dead_are_gone,
    queue.the_sender_has_its_lease_and_the_others_the_window,
    queue.the_poll_ttl_fits_the_place,
    queue.everybody_is_in_one_place,
    queue.exactly_the_concerned_are_woken,
    replies.a_seek_is_answered_by_what_is_there,
    replies.an_item_is_answered_as_the_table_says,
    replies.the_same_again_changes_nothing,
)


def check(step: Step) -> None:
    for law in LAWS:
        try:
            law(step)
        except AssertionError as broken:
            raise Broken(law.__name__, step, broken) from None
