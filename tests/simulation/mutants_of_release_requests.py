"""Deliberate breaks in how a client learns that it is asked to release."""

from tests.simulation import scene_release_requests as scenes
from tests.simulation.mutant import RELEASE_REQUEST, RENEWAL, RENEWAL_MESSAGES, Mutant

MUTANTS = [
    Mutant(
        "a request is not read from the reply to a renewal",
        scenes.a_holder_learns_at_its_next_renewal_that_it_is_asked, RENEWAL_MESSAGES,
        "        note_request(session, grant, reply.asked)\n",
        "",
    ),
    Mutant(
        "a request is reported at every renewal",
        scenes.a_holder_learns_within_a_second_that_it_is_asked, RELEASE_REQUEST,
        "session.release_requests.get(grant.ticket) == request or grant.state is not HELD",
        "grant.state is not HELD",
    ),
    Mutant(
        "another reason is no news",
        scenes.a_holder_learns_within_a_second_that_it_is_asked, RELEASE_REQUEST,
        "session.release_requests.get(grant.ticket) == request or grant.state is not HELD",
        "grant.ticket in session.release_requests or grant.state is not HELD",
    ),
    Mutant(
        "what is asked for is passed on",
        scenes.what_is_asked_for_is_not_passed_on, RELEASE_REQUEST,
        "        session.set_apart(grant)\n",
        "",
    ),
    Mutant(
        "only one of those that share a grant is asked",
        scenes.a_reader_that_waited_is_asked_with_the_others, RELEASE_REQUEST,
        "        holds = list(grant.holds)\n",
        "        holds = list(grant.holds)[:1]\n",
    ),
    Mutant(
        "where no wake-up comes, a request waits for the next renewal",
        scenes.a_holder_learns_within_a_second_that_it_is_asked, RENEWAL,
        "why.kind == ASKED and why[1:] == session.release_requests.get(grant.ticket)",
        "why.kind == ASKED",
    ),
]
