"""An item that is free costs one exchange to acquire and one to give up, without a coroutine."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fairlock
from fairlock.rules.pools import On
from fairlock.stores.base import OutcomeUnknown
from fairlock.testing.faults import Faults, install
from tests.engine.ctrl_c import CtrlC, settled


def said(order: Any) -> str:
    return type(order.command if isinstance(order, On) else order).__name__


class Counted:
    """Which orders needed no waiting, and which a coroutine sent. `unconfirmed`: done, and the reply is lost."""

    def __init__(self, locks: fairlock.Locks, *unconfirmed: str) -> None:
        self.call_nowait: list[str] = []
        self.called: list[str] = []
        pools: Any = locks._session.backend.pools  # type: ignore[attr-defined]
        call_nowait, call = pools.call_nowait, pools.call

        def counted_call_nowait(pool: str, order: Any) -> Any:
            answer = call_nowait(pool, order)
            if answer is not None:
                self.call_nowait.append(said(order))
            if said(order) in unconfirmed:
                raise OutcomeUnknown("a test wants it so")
            return answer

        async def counted_call(pool: str, order: Any) -> Any:
            self.called.append(said(order))
            pools.call_nowait = call_nowait  # a store may use it itself
            try:
                return await call(pool, order)
            finally:
                pools.call_nowait = counted_call_nowait

        pools.call_nowait, pools.call = counted_call_nowait, counted_call


@pytest.fixture(params=["memory", "redis_alone"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return f"memory://{tmp_path.name}"
    return str(request.getfixturevalue(request.param).url)


@pytest.fixture
def locks(url: str) -> Iterator[fairlock.Locks]:
    with fairlock.connect(url) as client:
        jobs = client.pool("jobs")
        jobs.add("warm")
        for finish in (False, True):
            with jobs.hold(finish=finish):
                pass  # the name is known, and the scripts are there
        jobs.remove("warm")
        yield client


def test_what_is_free_is_taken_and_finished_or_given_back_at_once(locks: fairlock.Locks) -> None:
    jobs = locks.pool("jobs")
    jobs.add_many({"a": 1, "b": 2})
    counted = Counted(locks)
    first = jobs.acquire()
    assert first is not None
    assert (first.key, first.body, first.held) == ("a", 1, True)
    first.done()
    assert not first.held and not first.lost
    with jobs.hold() as second:
        assert second.fence
    with jobs.hold(finish=True) as third:
        assert third.key == "b" and third.fence > second.fence
    assert counted.call_nowait == ["Seek", "Finish", "Seek", "Give", "Seek", "Finish"]
    assert counted.called == []
    assert not locks._session.grants and not locks._session.pending_releases
    assert jobs.counts().done == 2


def test_a_second_time_does_nothing(locks: fairlock.Locks) -> None:
    jobs = locks.pool("jobs")
    jobs.add("a")
    item = jobs.acquire()
    assert item is not None
    item.done()
    item.release()
    assert jobs.counts().done == 1


def test_what_is_not_there_is_waited_for(locks: fairlock.Locks) -> None:
    jobs = locks.pool("jobs")
    assert jobs.acquire(False) is None
    assert jobs.acquire(timeout=0.02) is None
    threading.Timer(0.05, jobs.add, ["a"]).start()
    item = jobs.acquire(timeout=20)
    assert item is not None
    item.done(body=7)
    assert [found.body for found in jobs.items()] == [7]


def test_a_body_and_a_rest_go_with_it(locks: fairlock.Locks) -> None:
    jobs = locks.pool("jobs")
    jobs.add("a", 1)
    item = jobs.acquire()
    assert item is not None
    item.release(body={"half": "done"}, after=100)
    found = jobs.items()[0]
    assert (found.state, found.body) == ("resting", {"half": "done"})
    assert 90 < found.due_in <= 100


def test_an_answer_that_is_lost_is_asked_for_again_by_the_same_ticket(locks: fairlock.Locks) -> None:
    jobs = locks.pool("jobs")
    jobs.add_many(["a", "b"])
    counted = Counted(locks, "Seek", "Finish")
    item = jobs.acquire(timeout=0)
    assert item is not None and item.key == "a"
    assert jobs.counts().taken == 1
    item.done()  # and no word of a loss: it was finished by the first try
    assert counted.called == ["Seek", "Finish"]
    assert jobs.counts()[-1] == 1 and jobs.counts().taken == 0
    assert not locks._session.grants and not locks._session.pending_releases


def test_a_try_whose_answer_is_lost_leaves_nothing_though_there_was_nothing(locks: fairlock.Locks) -> None:
    jobs = locks.pool("jobs")
    counted = Counted(locks, "Seek")
    assert jobs.acquire(timeout=0) is None
    assert counted.called == ["Seek", "Quit"]  # the first Seek may still be under way


def test_what_was_taken_away_is_told_as_lost(locks: fairlock.Locks, url: str) -> None:
    jobs = locks.pool("jobs")
    for let_go in (fairlock.Item.done, fairlock.Item.release):
        jobs.add("a")
        item = jobs.acquire()
        assert item is not None
        with fairlock.connect(url) as other:
            other.pool("jobs").remove("a", force=True)
        with pytest.raises(fairlock.LeaseLost):
            let_go(item)
        assert item.reason == "expired"


def test_what_ended_inside_is_told_as_lost(locks: fairlock.Locks) -> None:
    jobs = locks.pool("jobs")
    jobs.add("a")
    with pytest.raises(fairlock.LeaseLost):
        with jobs.hold(finish=True) as item:
            item._grant.deadline = 0.0


def test_faults_are_not_passed_by(locks: fairlock.Locks) -> None:
    jobs = locks.pool("jobs")
    jobs.add("a")
    faults = install(Faults("after", "after"), locks)
    with jobs.hold(finish=True):
        pass
    assert [fault for _, fault in faults.made] == ["after", "after"]
    assert jobs.counts().done == 1


def test_nothing_is_taken_by_a_client_that_is_closed(url: str) -> None:
    locks = fairlock.connect(url)
    jobs = locks.pool("jobs")
    jobs.add("a")
    locks.close()
    with pytest.raises(fairlock.ConfigError, match="closed"):
        jobs.acquire()


def test_ctrl_c_before_any_line_of_a_take_leaves_nothing_taken(locks: fairlock.Locks) -> None:
    jobs = locks.pool("jobs")
    jobs.add("a")
    for nth in range(1, 400):
        ctrl_c = CtrlC(nth)
        item = ctrl_c.run(jobs.acquire)
        if item is not None:
            item.release()
            break
        settled(locks)
        assert not locks._session.grants, ctrl_c.at
        assert jobs.counts().free == 1, ctrl_c.at
    assert 30 < nth < 399


@pytest.mark.parametrize("done", [True, False])
def test_ctrl_c_before_any_line_of_letting_go_lets_go_or_keeps(locks: fairlock.Locks, done: bool) -> None:
    jobs = locks.pool("jobs")
    for nth in range(1, 400):
        jobs.add("a")
        item = jobs.acquire()
        assert item is not None
        ctrl_c = CtrlC(nth)
        ctrl_c.run(item.done if done else item.release)
        settled(locks)
        counts = jobs.counts()
        if item.held:
            assert counts.taken == 1, ctrl_c.at  # it had not begun
            item.release()
        else:
            assert not item.lost, ctrl_c.at
            assert (counts.done if done else counts.free) == 1, ctrl_c.at
        assert not locks._session.grants, ctrl_c.at
        jobs.remove("a")
        if not ctrl_c.at:
            break
    assert 30 < nth < 399
