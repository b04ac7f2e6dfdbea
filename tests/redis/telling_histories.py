"""For a mistake that none of the first twenty histories shows, the first one that does.

It only saves time: the search for a mistake begins there, and if histories change, all of them are searched.
"""

from tests.redis.mutants import M

SHOWN_BY = {
    "it is handed over although the clock went back": 337,
    "it is handed over to the first of several that fit": 331,
    "it is handed over to one that was passed over": 268,
    "one that joins does not expire": 144,
    "a newcomer outlasts the record": 132,
    "one that has grown too heavy goes back into the queue": 126,
    "one that polls may be unreachable": 82,
    "one evicted is renewed after its lease": 80,
    "a newcomer joins with another capacity": 59,
    "a Detach that changes the end wakes nobody": 54,
    "one granted and released in the same step held it": 50,
    "the record does not outlast several holders": 45,
    "a waiter that releases stays in the queue": 44,
    "a fence that is handed over is the time": 37,
    "one that gets it reserves none": 37,
    "it is handed over to one without a process": 34,
    "fast_acquire.lua leaves a size that was set to the full step": 34,
    "the last waiter that gets it is still wanted": 30,
    "the fences outlast the record": 28,
    "one evicted still held it": 27,
    "fast_acquire.lua does not outlast its fences": 26,
    "fast_release.lua after the end": 26,
    "one that gets it unheard may stay for its whole lease": 25,
    "one that gets it forgets how long it may be silent": 25,
    "the second waiter is not the head": 25,
    "a fence that is handed over is the next number": 25,
    "one that gets it stays in the queue": 25,
    "one that gets it is not woken": 25,
    "a newcomer joins although the clock went back": 22,
    "fast_acquire.lua does not outlast its lease": 22,
    "it is handed over past expired waiters": 20,
}

SHOWN_BY_OF_POOLS = {
    "the fast take gives a fence twice": 117,
    "the unreachable are served before a newcomer": 86,
    "the sender is unreachable": 63,
    "the fast take forgets nobody": 39,
    "a repeated Finish is lost": 26,
    "the fast finish forgets a new body": 24,
    "what is done still belongs to somebody": 23,
    "who finishes by the short cut is not forgotten": 20,
    "force does not help": 20,
}


def telling(mutants: list[M], shown_by: dict[str, int], kind: str) -> list[int]:
    """Return the histories of this kind that show the mistakes. The true scripts must pass each of them."""
    return sorted({*range(20), *(shown_by.get(each.mistake, 0) for each in mutants if each.kind == kind)})
