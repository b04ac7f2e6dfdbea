"""Commands that are packed as far as they repeat: each must be as whole the second time as the first."""

import struct

import hiredis
import pytest
from redis import Redis

from fairlock.rules.locks import EXCLUSIVE, Acquire, Command, Release, Released, Renew
from fairlock.stores.redis import encoding
from fairlock.stores.redis.packed_commands import PackedCommands
from tests.redis.lua_store import LuaLock
from tests.servers.server import Server


def numbers(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}d", *values)


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
        (
            Acquire("t1", EXCLUSIVE, EXCLUSIVE, 5, block=33, listener="e", owner="o", note="n"),
            [b"\2\0t1", numbers(33, EXCLUSIVE, 5), b"\1\0e\1\0o\1\0n", numbers(EXCLUSIVE)],
        ),
        (
            Acquire("t1", EXCLUSIVE, 1, 5, block=33),
            [b"\2\0t1", numbers(1, 1, 5), b"\0\0\0\0\0\0", numbers(EXCLUSIVE)],
        ),
        (
            Acquire("café", 4, 2, 5, note="ä"),
            [b"\5\0caf\xc3\xa9", numbers(1, 2, 5), b"\0\0\0\0\2\0\xc3\xa4", numbers(4)],
        ),
        (
            Acquire("t" * 32, 4, 2, 5, owner="o" * 300),
            [b"\x20\0" + b"t" * 32, numbers(1, 2, 5), b"\0\0\x2c\1" + b"o" * 300 + b"\0\0", numbers(4)],
        ),
        (Release("t1", False, 77), [b"\2\0t1", b"77"]),
        (Release("t" * 32, False, 10**15), [b"\x20\0" + b"t" * 32, b"1000000000000000"]),
        (Release("t1"), [b"\2\0t1", b""]),
    ],
)
def test_a_quick_command_is_whole_every_time(command: Acquire | Release, arguments: list[bytes]) -> None:
    packed = PackedCommands("", "x")
    for _ in range(3):
        payload = packed.pack_fast(command)
        assert payload is not None
        assert words(payload)[4:] == arguments == list(encoding.fast_args(command))


@pytest.mark.parametrize("size", [1, 31, 32, 255, 256, 1000])
def test_a_grant_is_packed_here_as_the_server_packs_it(redis_alone: Server, size: int) -> None:
    """The fast release finds its grant by its first bytes, no matter which side has written them."""
    command = Acquire("ü" + "t" * size, 4, 2, 5_000_000, listener="e", owner="o" * size, note="n")
    packed = LuaLock(Redis(port=redis_alone.port))
    assert packed.short(command)
    before = packed.look()
    for renew in (False, True):
        if renew:
            packed.say(Renew(command.ticket))
        assert packed.server.hget(packed.keys[0], "a")[67:].startswith(encoding.sized(command.ticket.encode()))  # type: ignore[index]
        assert packed.look() == before
    assert packed.short(Release(command.ticket)) == Released(True)


@pytest.mark.parametrize(
    "command",
    [Acquire("t1", 0, 1, 5), Acquire("t1", 4, 5, 5), Acquire("t1", 4, 0, 5), Release("t1", True), Renew("t1", 7)],
)
def test_what_is_not_for_the_quick_scripts_is_never_packed_for_them(command: Command) -> None:
    packed = PackedCommands("", "x")
    assert [packed.pack_fast(command) for _ in range(3)] == [None, None, None]


@pytest.mark.parametrize(
    "command",
    [
        Acquire("café", EXCLUSIVE, 1, 5, False, True, 1, "e", "ö", ""), Release("t1", True, 7), Release("é"),
        Renew("t1", None, 3), Acquire("t" * 32, EXCLUSIVE, EXCLUSIVE, 5, block=33, listener="e", owner="ö", note="n"),
        Release("t" * 32, False, 10**15), Release("t" * 32, True, 10**15), Release("t" * 32, False, 7),
        Release("t" * 32, False, 10**15, 5), Release("é" * 16, False, 10**15), Acquire("é" * 16, 4, 2, 5),
    ],
)
def test_a_step_is_whole_every_time(command: Command) -> None:
    packed = PackedCommands("", "x")
    for _ in range(3):
        found = words(packed.pack_step(command))
        assert found[3 : 3 + len(packed.keys)] == [key.encode() for key in packed.keys]
        assert found[3 + len(packed.keys) :] == [
            word if isinstance(word, bytes) else word.encode() for word in encoding.message_args(command)
        ]


def test_other_fields_of_a_step_are_packed_again() -> None:
    packed, usual = PackedCommands("", "x"), Acquire("t" * 32, 4, 2, 5, note="n")
    for command in (usual, usual._replace(note="other"), usual._replace(ticket="u" * 32), usual._replace(wait=False)):
        assert words(packed.pack_step(command))[-2:] == encoding.message_args(command)[1:]
