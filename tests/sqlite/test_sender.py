"""One socket sends all wake-ups of a client. It stays connected to the listener that was asked or woken last."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlock.stores.sqlite import location
from fairlock.stores.sqlite.listener_sockets import WakeupSockets

Three = tuple[WakeupSockets, WakeupSockets, WakeupSockets]


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Three]:
    path = tmp_path / "locks.db"
    place = location.prepare(str(path))
    one, two, three = (WakeupSockets(lambda: place, lambda: "boot") for _ in range(3))
    assert all(each.open() for each in (one, two, three))
    yield one, two, three
    for each in (one, two, three):
        each.close()


def test_a_wakeup_goes_to_its_listener_and_not_to_the_one_that_was_asked_last(three: Three) -> None:
    one, two, other = three
    assert not one.is_dead(two.name)
    assert not one.is_dead(other.name)
    one.send(two.name, "a 1 2")
    one.send(two.name, "b 1 3")
    assert two.receive() == ["a 1 2", "b 1 3"]
    assert other.receive() == []


def test_a_listener_that_was_bound_again_gets_the_wakeup(three: Three) -> None:
    one, two, _ = three
    assert not one.is_dead(two.name)  # connected to the socket that ends now
    os.unlink(two._prefix + two.name)
    two.heal()
    one.send(two.name, "a 1 2")
    assert two.receive() == ["a 1 2"]
    assert not one.is_dead(two.name)


def test_a_link_in_place_of_a_socket_gets_no_wakeup(three: Three) -> None:
    one, two, other = three
    name = two.name
    os.unlink(two._prefix + name)
    os.symlink(other.name, two._prefix + name)
    assert not one.is_dead(name)  # its process runs
    one.send(name, "a 1 2")
    assert other.receive() == []


def test_a_wakeup_to_a_listener_that_is_gone_is_dropped_and_the_next_one_arrives(three: Three) -> None:
    one, two, other = three
    gone = other.name
    assert not one.is_dead(gone)
    other.drop()  # as a killed process does: the file stays
    one.send(gone, "a 1 2")
    assert one.is_dead(gone)
    one.send(two.name, "b 1 3")
    assert two.receive() == ["b 1 3"]
