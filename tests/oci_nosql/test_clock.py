"""The clock of OCI's NoSQL service, a fake of it, is another one than ours, and is set back: only its own counts."""

import re
import time
from types import SimpleNamespace

import pytest

import fairlock
from fairlock.engine.run_sync import run
from fairlock.stores.oci_nosql import clock
from tests.servers.fake_nosql import FakeNosql


@pytest.mark.parametrize("hours", [-30, 30])
def test_it_may_be_far_from_ours(fake_nosql: FakeNosql, hours: int) -> None:
    fake_nosql.now = lambda: time.time() + hours * 3600
    with fairlock.connect(fake_nosql.url(), lease=20) as locks, fairlock.connect(fake_nosql.url()) as others:
        with locks.lock("x") as lease:
            assert 10 < lease.remaining() <= 20
            assert others.lock("x").acquire(blocking=False) is None
            assert abs(others.snapshot("x").now - fake_nosql.now()) < 10
        assert others.lock("x").acquire(timeout=5)
        told = run(locks._session.backend.doctor())
    (skew,) = [found[1] for _, text in told if (found := re.search(r"^Its clock is ([+-][\d.]+) s", text))]
    assert abs(float(skew) - hours * 3600) < 10, told


def test_it_is_set_back_and_no_entry_is_dropped_or_kept_for_longer(fake_nosql: FakeNosql) -> None:
    with fairlock.connect(fake_nosql.url(), lease=5) as locks, fairlock.connect(fake_nosql.url(), lease=1) as others:
        lease = locks.lock("x").acquire()
        abandoned = others.lock("y").acquire()
        assert lease is not None and abandoned is not None
        others._session.closing = others._session.closed = True  # as if it were dead: no more renewals
        fake_nosql.now = lambda: time.time() - 3600
        lease.renew()
        assert locks.lock("x").acquire(blocking=False) is None
        with locks.lock("y").hold(timeout=30) as next_one:  # not after an hour and a second
            assert next_one.fence > abandoned.fence
        first = lease.fence
        lease.release()
        with locks.lock("x") as lease:
            assert lease.fence > first
        others._session.closing = others._session.closed = False


def test_a_guess_is_never_ahead_and_counts_from_when_it_was_that_at_the_earliest() -> None:
    """The service read its clock some time between our question and its answer. Whenever that was: it is not yet less
    than what we guess, and it was not yet more when, as we say, it was that."""
    begun, took, since = 10.0, clock.VAGUE * 0.9, 0.5
    guessing = clock.Clock(SimpleNamespace(runtime=SimpleNamespace(clock=lambda: begun + took + since)))  # type: ignore[arg-type]
    guessing._note(1_000_000_000, begun, begun + took)
    guess = guessing.guess()
    assert guess is not None
    for read_at in (begun, begun + took / 2, begun + took):
        assert guess[0] <= 1_000_000_000 + (begun + took + since - read_at) * 1e6 + 1
        assert guess[0] >= 1_000_000_000 + (guess[1] - read_at) * 1e6 - 1
    guessing._note(1_000_000_000, begun - clock.VAGUE, begun + took)
    assert guessing.guess() is None, "a reply that took longer is too imprecise"
    guessing._note(1_000_000_000, begun - clock.KEPT, begun - clock.KEPT + took)
    assert guessing.guess() is None, "and one of long ago nothing"


def test_one_slow_reply_is_not_believed_but_a_slow_network_is() -> None:
    """The time that a reply took is missing from each lease that depends on it."""
    here = SimpleNamespace(now=0.0)
    guessing = clock.Clock(SimpleNamespace(runtime=SimpleNamespace(clock=lambda: here.now)))  # type: ignore[arg-type]

    def reply(took: float) -> bool:
        here.now += took
        guessing._note(1_000_000_000, here.now - took, here.now)
        return guessing.guess() is not None

    assert [reply(took) for took in (0.005, 0.019, 0.2, 0.005, 0.019)] == [True, True, False, True, True]
    assert [reply(0.2) for _ in range(12)][-4:] == [True] * 4
