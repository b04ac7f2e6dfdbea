"""Commands that are packed as far as they repeat: each must be as whole the second time as the first."""

import hiredis
import pytest
from redis import Redis

from holdfast.backends.redis import layout
from holdfast.backends.redis.door import Door
from holdfast.doorman import ALL, Command, Enter, Leave, Left, Renew
from tests.redis.luadoor import LuaDoor
from tests.servers.server import Server


def words(payload: bytes) -> list[bytes]:
    """As the server reads it: exactly one command, and nothing of it missing."""
    reader = hiredis.Reader()
    reader.feed(payload)
    found = reader.gets()
    assert found is not False, "the server would wait for the rest"
    assert reader.gets() is False, "the server would see a second command"
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "command, arguments",
    [
        (Enter("t1", ALL, ALL, 5, block=33, ear="e", owner="o", note="n"), [ALL, 5, 33]),
        (Enter("t1", ALL, 1, 5, block=33), [ALL, 5, 1]),
        (Enter("café", 4, 2, 5, note="ä"), [4, 5, 1]),
        (Enter("t" * 32, 4, 2, 5, owner="o" * 300), [4, 5, 1]),
        (Leave("t1", False, 77), [77]),
        (Leave("t1"), [""]),
    ],
)
def test_a_quick_command_is_whole_every_time(command: Enter | Leave, arguments: list[object]) -> None:
    door = Door("", "x")
    seat = [layout.head(command.ticket.encode())] + ([layout.tail(command)] if isinstance(command, Enter) else [])
    for _ in range(3):
        payload = door.quick(command)
        assert payload is not None
        assert words(payload)[4:] == seat + [str(word).encode() for word in arguments]


@pytest.mark.parametrize("size", [1, 31, 32, 255, 256, 1000])
def test_a_seat_is_packed_here_as_the_server_packs_it(redis_alone: Server, size: int) -> None:
    """The short way out finds its seat by its first bytes, whoever has written them."""
    command = Enter("ü" + "t" * size, 4, 2, 5_000_000, ear="e", owner="o" * size, note="n")
    door = LuaDoor(Redis(port=redis_alone.port))
    assert door.short(command)
    before = door.look()
    for renew in (False, True):
        if renew:
            door.say(Renew(command.ticket))
        assert door.server.hget(door.keys[0], "a").startswith(layout.head(command.ticket.encode()))  # type: ignore[union-attr]
        assert door.look() == before
    assert door.short(Leave(command.ticket)) == Left(True)


@pytest.mark.parametrize(
    "command", [Enter("t1", 0, 1, 5), Enter("t1", 4, 5, 5), Enter("t1", 4, 0, 5), Leave("t1", True), Renew("t1", 7)]
)
def test_what_is_not_for_the_quick_scripts_is_never_packed_for_them(command: Command) -> None:
    door = Door("", "x")
    assert [door.quick(command) for _ in range(3)] == [None, None, None]


@pytest.mark.parametrize(
    "command",
    [Enter("café", ALL, 1, 5, False, True, 1, "e", "ö", ""), Leave("t1", True, 7), Leave("é"), Renew("t1", None, 3)],
)
def test_a_step_is_whole_every_time(command: Command) -> None:
    door = Door("", "x")
    for _ in range(3):
        found = words(door.step(command))
        assert found[3 : 3 + len(door.keys)] == [key.encode() for key in door.keys]
        assert found[4 + len(door.keys) :] == [word.encode() for word in layout.words(command)]
