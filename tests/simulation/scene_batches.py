"""Renewals of many leases in one message: each has its own outcome, and none waits for another."""

import itertools

from tests.simulation.engine_under_test import EngineUnderTest
from tests.simulation.renewal_messages import SIZE, held, holding


def every_lease_of_a_message_is_renewed(engine: EngineUnderTest) -> None:
    stage, messages, stays = holding(engine, 10)
    stage.until(6.0)
    stage.expect(all(held(stays)), f"all are held: {held(stays)}")
    stage.expect(max(len(names) for _, names in messages.sent) == SIZE, "messages are full")
    stage.expect(all(len(names) <= SIZE for _, names in messages.sent), "and no fuller than that")


def an_eviction_in_a_message_is_about_one_lease(engine: EngineUnderTest) -> None:
    stage, _, stays = holding(engine, 6, 6.0)
    stage.clients[0].backend.push_fate = "lost"
    stage.store.step("x1", engine.locks.Evict(None, "ops", "stuck", False))
    stage.until(2.5)
    stage.expect(held(stays) == [True, False, True, True, True, True], f"one is lost: {held(stays)}")
    stage.expect(stays[1].hold.reason == "evicted", f"and learns why: {stays[1].hold.reason}")


def a_damaged_record_in_a_message_is_about_one_lease(engine: EngineUnderTest) -> None:
    stage, messages, stays = holding(engine, 6, 6.0)
    messages.outcomes["x2"] = lambda: engine.errors.RecordDamaged("The record of 'x2' is damaged.")
    stage.until(2.5)
    stage.expect(held(stays) == [True, True, False, True, True, True], f"one is lost, at once: {held(stays)}")
    stage.expect(stays[2].hold.reason == "store_reset", f"and learns why: {stays[2].hold.reason}")


def a_refused_renewal_does_not_delay_the_next_message(engine: EngineUnderTest) -> None:
    stage, messages, stays = holding(engine, 10, 6.0)
    messages.outcomes["x0"] = lambda: engine.errors.StoreError("'x0' cannot be renewed.")
    stage.until(2.4)
    began = messages.sent[0][0]
    first = {name for at, names in messages.sent if at < began + 0.05 for name in names}
    stage.expect(len(first) == 10, f"all are sent in the same round: {messages.sent}")
    stage.until(8.0)
    stage.expect(held(stays) == [False] + [True] * 9, f"only the refused one is lost: {held(stays)}")


def an_unknown_outcome_does_not_delay_the_next_message(engine: EngineUnderTest) -> None:
    stage, messages, stays = holding(engine, 10, 3.0)
    messages.hangs = 0.5
    messages.outcomes["x0"] = lambda: engine.base.OutcomeUnknown("no answer")
    stage.until(2.0)
    others = {name for at, names in messages.sent if at < 1.65 for name in names}
    stage.expect(len(others) == 10, f"one hangs for half a second, and then the others go first: {messages.sent}")
    del messages.outcomes["x0"]
    stage.until(6.0)
    stage.expect(all(held(stays)), f"it was repeated, and nothing is lost: {held(stays)}")


def a_store_that_is_down_is_not_asked_again_and_again(engine: EngineUnderTest) -> None:
    stage, messages, stays = holding(engine, 10, 6.0)
    for number in range(10):
        messages.outcomes[f"x{number}"] = lambda: engine.errors.StoreError("it is down")
    stage.until(3.0)
    stage.expect(2 <= len(messages.sent) <= 4, f"one message each time, with pauses: {messages.sent}")
    stage.expect(stage.clients[0].session.down, "and that is reported")
    messages.outcomes.clear()
    stage.until(9.0)
    stage.expect(all(held(stays)), f"nothing is lost: {held(stays)}")


def leases_that_are_due_soon_go_along(engine: EngineUnderTest) -> None:
    stage, messages, stays = holding(engine, 4, 16.0, 0.05)
    stage.until(6.0)
    stage.expect([len(names) for _, names in messages.sent] == [4], f"one message for all: {messages.sent}")
    stage.expect(all(held(stays)), "all are held")


def leases_that_are_due_together_are_spread(engine: EngineUnderTest) -> None:
    stage, _, stays = holding(engine, 40, 12.0)
    stage.until(4.5)
    due = sorted(stay.grant.renew_at for stay in stays)
    stage.expect(all(at > 4.5 for at in due), f"all were renewed: {due}")
    stage.expect(due[-1] - due[0] > 0.5, f"and the next time they are not due together: {due}")


def leases_that_were_spread_go_along(engine: EngineUnderTest) -> None:
    stage, messages, stays = holding(engine, 200, 30.0)
    stage.until(15.0)
    before = len(messages.sent)
    stage.until(65.0)
    times = sorted(at for at, _ in messages.sent[before:])
    rounds = 1 + sum(later - at > 0.02 for at, later in itertools.pairwise(times))
    stage.expect(rounds <= 5 * 17, f"a sixteenth of a third of the lease is one round: {rounds}, {times}")
    stage.expect(all(held(stays)), f"nothing is lost: {held(stays)}")


def a_new_lease_does_not_wait_for_all_others(engine: EngineUnderTest) -> None:
    stage, messages, stays = holding(engine, 200, 30.0)
    (a,) = stage.clients
    messages.takes = 0.03  # all of them take 1.5 s
    engine.recheck_leases.suspect(a.session)
    stage.until(0.15)
    short = stage.go(a, a.get(a.request("short", lease=1.0)))
    stage.until(1.4)
    stage.expect(stage.result(short).hold.held, "it was renewed between the others")
    stage.until(3.0)
    stage.expect(all(held(stays)), "and they were, too")
