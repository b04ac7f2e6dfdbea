"""Deliberate breaks in how the steps of one client at one row are made together."""

from tests.simulation import scene_merged_steps as turns
from tests.simulation.mutant import CAS, SHARED_STEPS, Mutant

MUTANTS = [
    Mutant(
        "a newcomer is written alone",
        turns.a_newcomer_to_a_long_queue_is_written_with_the_next_step_of_its_client, CAS,
        "            await self._wait_for_company(key, batch)\n",
        "            pass\n",
    ),
    Mutant(
        "a newcomer waits until somebody takes it along",
        turns.a_newcomer_to_a_long_queue_is_written_with_the_next_step_of_its_client, CAS,
        "min(COMPANY, PASSES * len(record.queue))",
        "1.0",
    ),
    Mutant(
        "nobody is taken along",
        turns.those_of_one_client_share_a_write, SHARED_STEPS,
        "more = queue[: MOST - len(batch)]",
        "more = queue[:0]",
    ),
    Mutant(
        "one that has been served is not told",
        turns.those_of_one_client_share_a_write, SHARED_STEPS,
        '"""All of these have their reply."""\n    for turn in batch:\n',
        '"""All of these have their reply."""\n    for turn in ():\n',
    ),
    Mutant(
        "those taken along are served in reverse",
        turns.those_who_share_a_write_stand_in_line_as_they_came, SHARED_STEPS,
        "            batch += more  #",
        "            batch += more[::-1]  #",
    ),
    Mutant(
        "the last to come leads next",
        turns.those_who_share_a_write_stand_in_line_as_they_came, SHARED_STEPS,
        "heir = queue.pop(0)",
        "heir = queue.pop()",
    ),
    Mutant(
        "a row stays taken when its last one leaves",
        turns.a_row_at_which_nobody_is_left_is_free, SHARED_STEPS,
        "            queue = self._lines.pop(key, None)\n",
        "            queue = self._lines.get(key)\n",
    ),
    Mutant(
        "the next one is not told that it leads",
        turns.a_cancelled_leader_leaves_the_row_to_the_next, SHARED_STEPS,
        "                heir.event.set()\n",
        "",
    ),
    Mutant(
        "a cancelled leader keeps the row",
        turns.a_cancelled_leader_leaves_the_row_to_the_next, CAS,
        "                raise\n            finally:\n                turns.end(key)\n",
        "                raise\n            turns.end(key)\n",
    ),
    Mutant(
        "a cancelled leader tells nobody",
        turns.a_cancelled_leader_fails_nobody_that_it_took_along, CAS,
        "                turns.failed(batch, error)\n",
        "",
    ),
    Mutant(
        "a cancelled leader cancels those that it took along",
        turns.a_cancelled_leader_fails_nobody_that_it_took_along, SHARED_STEPS,
        "known = isinstance(error, LockError) and",
        "known = True and",
    ),
    Mutant(
        "a leader without time fails those that it took along",
        turns.a_leader_whose_time_is_over_fails_nobody_that_it_took_along, SHARED_STEPS,
        " and not over()",
        "",
    ),
    Mutant(
        "one that is cancelled as it is called keeps the row",
        turns.one_that_is_cancelled_as_it_is_called_leaves_the_row_to_the_next, SHARED_STEPS,
        "            if turn.leads:\n                self.end(key)\n",
        "",
    ),
    Mutant(
        "a follower waits for its leader for as long as that takes",
        turns.a_leader_that_hangs_holds_up_the_others_for_a_second, SHARED_STEPS,
        "                if not turn.taken:\n",
        "                if False:\n",
    ),
    Mutant(
        "a leader that does not come back is waited for without end",
        turns.a_leader_that_never_comes_back_is_given_up, SHARED_STEPS,
        "            if self._runtime.clock() > limit:\n",
        "            if False:\n",
    ),
    Mutant(
        "one that was taken along leads for itself all the same",
        turns.a_release_that_was_taken_along_is_not_made_twice, SHARED_STEPS,
        "                turn.taken = True\n",
        "                pass\n",
    ),
    Mutant(
        "only the leader knows that an earlier try may have been carried out",
        turns.a_release_that_was_taken_along_is_no_loss_if_its_reply_is_lost, CAS,
        "                for turn in batch:\n                    turn.again = True\n",
        "                batch[0].again = True\n",
    ),
    Mutant(
        "a follower is answered from what was read before it came",
        turns.a_refusal_rests_on_what_was_read_after_it_was_asked_for, CAS,
        "                fresh = False  # what was read before they came may be older than their call\n",
        "                pass\n",
    ),
    Mutant(
        "all of a client wait while a newcomer gives way",
        turns.one_that_leaves_does_not_wait_behind_one_that_gives_way, CAS,
        "        if self._turns is None:\n            await self.runtime.sleep(seconds)\n",
        "        if key:\n            await self.runtime.sleep(seconds)\n",
    ),
    Mutant(
        "one that gives way is not called when somebody comes",
        turns.one_that_leaves_does_not_wait_behind_one_that_gives_way, SHARED_STEPS,
        "            resting.set()\n",
        "            pass\n",
    ),
]
