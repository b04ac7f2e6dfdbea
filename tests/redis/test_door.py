"""Commands that are packed as far as they repeat: each must be as whole the second time as the first."""

import hiredis
import pytest

from holdfast.backends.redis import layout
from holdfast.backends.redis.door import Door
from holdfast.doorman import ALL, Command, Enter, Leave, Renew


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
        (Enter("t1", ALL, ALL, 5, block=33, ear="e", owner="o", note="n"), ["t1", ALL, ALL, 5, 33, "e", "o", "n"]),
        (Enter("t1", ALL, 1, 5, block=33), ["t1", ALL, 1, 5, 1, "", "", ""]),
        (Enter("café", 4, 2, 5, note="ä"), ["café", 4, 2, 5, 1, "", "", "ä"]),
        (Leave("t1", False, 77), ["t1", 77]),
        (Leave("t1"), ["t1", ""]),
    ],
)
def test_a_quick_command_is_whole_every_time(command: Command, arguments: list[object]) -> None:
    door = Door("", "x")
    for _ in range(3):
        payload = door.quick(command)
        assert payload is not None
        assert words(payload)[4:] == [str(word).encode() for word in arguments]


@pytest.mark.parametrize(
    "command", [Enter("t1", 0, 1, 5), Enter("t1", 4, 5, 5), Enter("t1", 4, 0, 5), Leave("t1", True), Renew("t1", 7)]
)
def test_what_is_not_for_the_quick_scripts_is_never_packed_for_them(command: Command) -> None:
    door = Door("", "x")
    assert [door.quick(command) for _ in range(3)] == [None, None, None]


@pytest.mark.parametrize(
    "command", [Enter("café", ALL, 1, 5, False, True, 1, "e", "ö", ""), Leave("t1", True, 7), Renew("t1", None, 3)]
)
def test_a_step_is_whole_every_time(command: Command) -> None:
    door = Door("", "x")
    for _ in range(3):
        found = words(door.step(command))
        assert found[3 : 3 + len(door.keys)] == [key.encode() for key in door.keys]
        assert found[4 + len(door.keys) :] == [word.encode() for word in layout.words(command)]
