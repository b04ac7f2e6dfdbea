"""The line of workers who wait for any item of a pool, as pure as the rules of an item.

First come, first served. A newcomer takes at once only if nobody stands in line. A place lasts for its patience and is
kept by polling, three times as long as its owner may sleep there; the step itself sets it, so worker and line cannot
disagree. Whoever's process is known to be gone is out of it at once; whoever only does not listen just now (a server
that sends wake-ups knows that) is passed over and keeps his place: after a failover that is everybody.

Expiry and the end of a rest happen without anybody doing anything. So the head sleeps only until something is due, as
far as he knows, and takes for himself and for those behind him; the others sleep until they are woken, and look now and
then, for hints get lost and heads die.

Whoever waits for a *named* item stands beside the line: he is woken when that item changes, and races for it.
"""

from collections.abc import Collection, Sequence

from .commands import Seek, Take
from .item import WINDOW, Hint, Item, Line, Worker

SLEEP_CAP = 10_000_000  # nobody sleeps longer than this
NONE: frozenset[str] = frozenset()


def sleep_span(ahead: int) -> int:
    """How long a worker with so many before him may sleep between two polls."""
    return min(WINDOW // 2 * (ahead + 1), SLEEP_CAP)


def patience(ahead: int) -> int:
    """How long a place lasts without a poll: three times as long as its owner may sleep."""
    return 3 * sleep_span(ahead)


def settle(line: Line, now: int, asker: str = "", dead: Collection[str] = NONE) -> Line:
    """The line as it is now: whoever asks is alive, and whoever was silent for too long or is dead has gone."""
    if not line.workers and not line.watchers:
        return line._replace(seen=now)
    back = now < line.seen

    def living(some: tuple[Worker, ...]) -> tuple[Worker, ...]:
        kept = []
        for w in some:
            if back and w.expires > now + w.patience:  # time never runs back
                w = w._replace(expires=now + w.patience)
            if w.ticket == asker or (w.expires > now and w.ticket not in dead):
                kept.append(w)
        return tuple(kept)

    return Line(line.places, now, living(line.workers), living(line.watchers))


def stand(line: Line, seek: Seek, now: int) -> Line:
    """He waits: in the line, or beside it for a named item. Who stands already keeps his place, and is heard."""
    some = line.watchers if seek.key else line.workers
    at = next((i for i, w in enumerate(some) if w.ticket == seek.ticket), len(some))
    span = patience(0 if seek.key else at)
    if at < len(some):
        some = (*some[:at], some[at]._replace(patience=span, expires=now + span), *some[at + 1 :])
        places = line.places
    else:
        places = line.places + 1
        worker = Worker(
            seek.ticket, seek.lease, seek.ear, seek.owner, seek.note, places, now, span, now + span, seek.key
        )
        some = (*some, worker)
    if seek.key:
        return Line(places, now, line.workers, some)
    return Line(places, now, some, line.watchers)


def without(line: Line, tickets: Collection[str]) -> Line:
    """These wait no more."""
    return line._replace(
        workers=tuple(w for w in line.workers if w.ticket not in tickets),
        watchers=tuple(w for w in line.watchers if w.ticket not in tickets),
    )


def is_first(line: Line, ticket: str) -> bool:
    """Whether nobody stands before this one, be he in the line or new."""
    return not line.workers or line.workers[0].ticket == ticket


def deal(line: Line, due: Sequence[Item], deaf: Collection[str] = NONE) -> list[tuple[Item, Take]]:
    """Who gets what: the first in line what has been due for longest, and so on; for WINDOW, until he is heard.

    Whom nobody would hear of it is passed over and keeps his place, but for what is left when all others have theirs.
    """
    workers = line.workers
    if deaf:
        workers = tuple(sorted(workers, key=lambda w: w.ticket in deaf))
    return [(i, Take(w.ticket, w.lease, w.owner, w.note, WINDOW)) for w, i in zip(workers, due, strict=False)]


def hints(
    before: Line, settled: Line, after: Line, keys: Collection[str] = (), rests: bool = False, asker: str = ""
) -> list[Hint]:
    """Whom to wake after a step: those in line who were given something and so stand there no more, whoever is first
    now and was not, those who watch these items. And the first, if something rests: it may be due sooner than he
    knows."""
    stay = {w.ticket for w in after.workers}
    woken = [w for w in settled.workers if w.ticket not in stay]
    woken += [w for w in after.workers[:1] if rests or w.ticket not in (v.ticket for v in before.workers[:1])]
    woken += [w for w in after.watchers if w.key in keys]
    return [Hint(w.ear, w.ticket) for w in woken if w.ear and w.ticket != asker]
