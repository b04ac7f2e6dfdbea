"""Deliberate breaks in the renewal of many leases by one message."""

from tests.simulation import scene_batches as batches
from tests.simulation.mutant import RENEWAL, RENEWAL_MESSAGES, Mutant

MUTANTS = [
    Mutant(
        "the last lease of a message is left out",
        batches.every_lease_of_a_message_is_renewed, RENEWAL_MESSAGES,
        "_Message(grants[n : n + size])",
        "_Message(grants[n : n + size - 1])",
    ),
    Mutant(
        "a message has one lease",
        batches.every_lease_of_a_message_is_renewed, RENEWAL_MESSAGES,
        "messages = deque(_messages(locks, session.backend.batch_size))",
        "messages = deque(_messages(locks, 1))",
    ),
    Mutant(
        "a reply is taken for another's",
        batches.an_eviction_in_a_message_is_about_one_lease, RENEWAL_MESSAGES,
        "in zip(grants, outcomes, in_time, strict=True):",
        "in zip(grants, outcomes[::-1], in_time, strict=True):",
    ),
    Mutant(
        "damage in a message is a failure that passes",
        batches.a_damaged_record_in_a_message_is_about_one_lease, RENEWAL_MESSAGES,
        "if isinstance(error, RecordDamaged) and not grant.request.pool:",
        "if False:",
    ),
    Mutant(
        "one refusal is the failure of the message",
        batches.a_refused_renewal_does_not_delay_the_next_message, RENEWAL_MESSAGES,
        "if failure is not None and not answers:",
        "if failure is not None:",
    ),
    Mutant(
        "what is unknown is repeated before the others",
        batches.an_unknown_outcome_does_not_delay_the_next_message, RENEWAL_MESSAGES,
        "messages.append(repeated)",
        "messages.appendleft(repeated)",
    ),
    Mutant(
        "after a whole message has failed the next one is sent",
        batches.a_store_that_is_down_is_not_asked_again_and_again, RENEWAL_MESSAGES,
        "if failure is not None and not answers:",
        "if False:",
    ),
    Mutant(
        "every lease is renewed when it is due and no sooner",
        batches.leases_that_are_due_soon_go_along, RENEWAL,
        "due += [s for s in early if clock - s.asked >= s.lease / 8]",
        "pass",
    ),
    Mutant(
        "a lease that was spread needs a round of its own",
        batches.leases_that_were_spread_go_along, RENEWAL,
        "clock - s.asked >= s.lease / 8]",
        "clock - s.asked >= s.lease / 4]",
    ),
    Mutant(
        "a round renews all that is due",
        batches.a_new_lease_does_not_wait_for_all_others, RENEWAL,
        "[: MESSAGES * session.backend.batch_size]",
        "",
    ),
    Mutant(
        "leases that are due together stay together",
        batches.leases_that_are_due_together_are_spread, RENEWAL,
        "            _spread(grants, session.backend.batch_size)\n",
        "            pass\n",
    ),
]  # fmt: skip
