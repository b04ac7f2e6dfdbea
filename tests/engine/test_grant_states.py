"""The states of a grant: every change is a legal one, and every legal one happens."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fairlock
from fairlock.engine import grant as grants
from fairlock.engine.grant import Grant
from fairlock.engine.grant_state import HELD, LOST, QUEUED, RELEASED, RELEASING, REQUESTING, TRANSITIONS, GrantState
from fairlock.testing.faults import Faults, install

Change = tuple[GrantState, GrantState]


class Checked:
    """In place of `Grant.state`: refuses a change that the table does not have, and remembers the others."""

    def __init__(self, slot: Any) -> None:
        self.slot = slot
        self.changes: set[Change] = set()
        self.illegal: list[Change] = []

    def __get__(self, grant: Any, owner: Any = None) -> Any:
        return self if grant is None else self.slot.__get__(grant, owner)

    def __set__(self, grant: Any, new: GrantState) -> None:
        try:
            old = self.slot.__get__(grant)
        except AttributeError:
            old = new  # it is made
        if old is not new:
            self.changes.add((old, new))
            if new not in TRANSITIONS[old]:
                self.illegal.append((old, new))
        self.slot.__set__(grant, new)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Checked]:
    checked = Checked(Grant.__dict__["state"])
    monkeypatch.setattr(Grant, "state", checked)
    yield checked
    assert checked.illegal == []


@pytest.fixture
def locks(tmp_path: Path) -> Iterator[fairlock.Locks]:
    with fairlock.connect(f"memory://{tmp_path.name}") as client:
        yield client


@pytest.fixture
def others(tmp_path: Path) -> Iterator[fairlock.Locks]:
    with fairlock.connect(f"memory://{tmp_path.name}") as client:
        yield client


def test_a_grant_has_at_most_18_attributes() -> None:
    assert len(Grant.__slots__) <= 18
    assert set(TRANSITIONS) == set(GrantState)


def test_no_state_leads_back() -> None:
    """A grant that was lost or released never becomes held again; none is asked for a second time."""
    order = list(GrantState)
    assert all(order.index(old) < order.index(new) for old, then in TRANSITIONS.items() for new in then)
    assert TRANSITIONS[LOST] == TRANSITIONS[RELEASED] == frozenset()


def test_every_legal_change_happens_and_no_other(
    checked: Checked, locks: fairlock.Locks, others: fairlock.Locks
) -> None:
    session = locks._session

    def wait_in_the_queue(timeout: float) -> None:
        with locks.lock("a", timeout=timeout):
            pass

    with locks.lock("a"):  # REQUESTING, HELD, RELEASING, RELEASED
        assert others.lock("a").acquire(False) is None  # REQUESTING, RELEASED
    taken = others.lock("a").acquire()
    assert taken is not None
    with pytest.raises(fairlock.LockTimeout):  # QUEUED, RELEASING
        wait_in_the_queue(0.05)
    waiter = threading.Thread(target=wait_in_the_queue, args=(20,))
    waiter.start()
    while not any(grant.state is QUEUED for grant in session.grants.values()):
        time.sleep(0.001)
    taken.release()
    waiter.join(20)  # QUEUED, HELD

    lease = locks.lock("b").acquire()
    assert lease is not None
    lease.detach(60)  # HELD, RELEASED
    lost = locks.lock("c").acquire()
    assert lost is not None
    session.lose(lost._grant, "evicted", "a test")  # HELD, LOST
    assert lost.lost

    late = locks.lock("d").acquire()
    assert late is not None
    others.evict("d", reason="a test", at_once=True)
    with pytest.raises(fairlock.LeaseLost):
        late.release()  # RELEASING, LOST

    faults = install(Faults(*["after"] * 5, on="Acquire"), locks)
    with pytest.raises(fairlock.StoreError):  # REQUESTING, RELEASING: whether it has arrived is not known
        locks.lock("e").acquire(timeout=0.01)
    faults.over()

    with fairlock.connect("memory://") as child:  # REQUESTING, LOST and QUEUED, LOST: of a child the parent's waits
        request = grants.LockRequest("f", 1, 1, 1.0)
        asks, waits = Grant(request, "asks"), Grant(request, "waits")
        waits.state = QUEUED
        child._session.grants.update(asks=asks, waits=waits)
        child._session.forked()
        assert asks.state is LOST and waits.state is LOST

    legal = {(old, new) for old, then in TRANSITIONS.items() for new in then}
    assert checked.changes == legal


def test_an_item_goes_the_same_way(checked: Checked, locks: fairlock.Locks) -> None:
    jobs = locks.pool("jobs")
    jobs.add("a")
    with jobs.hold(finish=True):
        pass
    assert jobs.acquire(timeout=0.02) is None
    assert checked.changes == {
        (REQUESTING, HELD), (HELD, RELEASING), (RELEASING, RELEASED), (REQUESTING, QUEUED), (QUEUED, RELEASING),
    }  # fmt: skip


def test_the_check_refuses_what_the_table_lacks() -> None:
    checked = Checked(Grant.__dict__["state"])
    one = Grant(grants.LockRequest("x", 1, 1, 1.0), "t")
    checked.__set__(one, HELD)
    checked.__set__(one, LOST)
    assert checked.illegal == []
    checked.__set__(one, HELD)
    checked.__set__(one, RELEASED)
    checked.__set__(one, RELEASING)
    assert checked.illegal == [(LOST, HELD), (RELEASED, RELEASING)]
