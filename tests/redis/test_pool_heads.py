"""The heads of the Lua files of pools say what their bodies do: keys and their types, fields, arguments, numbers."""

import re

import pytest

from holdfast.backends.redis import pool_layout
from holdfast.pool import Finish, Give, Look, Quit, Remove, Seek, Touch, item
from holdfast.pool.item import Worker
from holdfast.pool.line import SLEEP_CAP
from tests.redis.test_heads import FOLDER, TYPES, body, declared_keys, head, section

STEP = ("pool.lua", "pool_line.lua", "pool_order.lua", "pool_close.lua")
SHORT = ("pool_take.lua", "pool_keep.lua", "pool_finish.lua")
LOOKS = ("pool_look.lua", "pool_count.lua", "pool_line_look.lua")
FILES = (*STEP, *SHORT, *LOOKS)


def test_no_file_of_pools_is_forgotten() -> None:
    assert {path.name for path in FOLDER.glob("pool*.lua")} == set(FILES)
    assert pool_layout.STEP.text == "\n".join((FOLDER / name).read_text() for name in STEP)


@pytest.mark.parametrize("name", FILES)
def test_a_head_of_pools_has_all_its_parts(name: str) -> None:
    assert all(section(name, title).strip() for title in ("Purpose", "KEYS", "ARGV", "Returns"))
    assert max(map(len, (FOLDER / name).read_text().splitlines())) <= 120


def test_the_step_uses_every_key_of_a_pool_as_what_it_is() -> None:
    assert tuple(declared_keys("pool.lua")) == pool_layout.PARTS
    assert re.findall(r"local ([A-Z, ]+) = unpack\(KEYS\)", body(*STEP)) == [", ".join(pool_layout.PARTS).upper()]
    used: dict[str, set[str]] = {}
    for command, key in re.findall(r"call\('([A-Z]+)', ([A-Z]+)\b", body(*STEP)):
        if command[0] in TYPES:
            used.setdefault(key.lower(), set()).add(TYPES[command[0]])
    assert used == {key: {kind} for key, kind in declared_keys("pool.lua").items()}


@pytest.mark.parametrize("name", [*SHORT, *LOOKS])
def test_the_others_of_a_pool_use_the_keys_in_their_heads_as_what_they_are(name: str) -> None:
    numbers = dict(re.findall(r"^--   (\d) (\w+) +(?:hash|zset)", head(name), re.M))
    kinds = declared_keys(name)
    calls = re.findall(r"redis\.call\('([A-Z]+)', KEYS\[(\d)\]", body(name))
    assert {number for _, number in calls} == set(numbers)
    assert set(numbers.values()) <= set(pool_layout.PARTS)
    assert all(TYPES[command[0]] == kinds[numbers[number]] for command, number in calls)


def test_the_fields_of_a_pool_are_those_in_the_head() -> None:
    said = section("pool.lua", "KEYS").split("--   2 ")[0].split("hash  ")[1]
    fields = set(re.findall(r"(?:^|· |-- +)([a-z]|[=#:>][A-Z]+) ", said))
    assert {field[0] for field in fields} == set("=#:>sp")
    code = body(*STEP)
    calls = " ".join(re.findall(r"call\('H\w+', ITEMS, (.*?)\)", code, re.S))
    assert set(re.findall(r"'([^']+)'", calls)) == set("=#:>sp")


@pytest.mark.parametrize("name", SHORT)
def test_the_short_cuts_of_a_pool_read_and_write_the_fields_in_their_heads(name: str) -> None:
    written, _, read = section(name, "KEYS").split("hash  ")[1].split("\n")[0].partition(" are written")
    ticket = re.search(r"(\d) colon and ticket", section(name, "ARGV"))
    assert ticket
    code = body(name).replace(f"ARGV[{ticket[1]}]", "':'")
    fields = lambda call: set(re.findall(r", '([=#:>a-z])'", call))  # noqa: E731
    set_ = set().union(*map(fields, re.findall(r"call\('(?:HSET|HDEL)'(.*?)\)", code)))
    got = set().union(*map(fields, re.findall(r"call\('HMGET'(.*?)\)", code)))
    assert set(written.split()) == set_
    assert set(read.removeprefix(",").split()[:1]) == got - set_


def test_who_waits_is_packed_and_unpacked_in_the_order_in_the_head() -> None:
    said = re.search(r"waits is an array in MessagePack: ([\w\s-]+?)\.", head("pool.lua"))
    assert said
    fields = said.group(1).replace("--", " ").split()
    assert set(fields) == set(Worker._fields) - {"ticket", "expires"}
    unpacked = body("pool_line.lua").split("local function stand")[0]
    assert re.findall(r"(\w+) = w\[(\d+)\]", unpacked) == [(name, str(n)) for n, name in enumerate(fields, 1)]
    packed = re.search(r"cmsgpack\.pack\(\{(.*?)\}\)", body("pool_line.lua"), re.S)
    assert packed and re.findall(r"w\.(\w+)", packed.group(1)) == fields
    told = section("pool_line_look.lua", "Returns").replace("--", " ").partition("waits:")[2]
    assert [word.strip() for word in told.split(",")] == ["ticket", "end", *fields]


def test_the_arguments_of_the_step_are_the_fields_of_the_orders() -> None:
    said = section("pool_order.lua", "ARGV")
    listed = {}
    for order, fields in re.findall(r"^-- {10}(\w+) +(3 .*)$", said, re.M):
        fields = fields.removesuffix(" · and so on, two for each item")
        numbered = [field.split(" ", 1) for field in fields.split(" · ")]
        assert [int(number) for number, _ in numbered] == list(range(3, 3 + len(numbered)))
        listed[order] = tuple(name for _, name in numbered)
    on = {kind.__name__.lower(): ("key", *kind._fields) for kind in (Touch, Give, Finish, Remove, Look)}
    seek = tuple(name for name in Seek._fields if name != "again")
    assert listed == {"put": ("first", "key", "body"), **on, "seek": seek, "quit": Quit._fields}


@pytest.mark.parametrize("name", [*SHORT, *LOOKS])
def test_the_arguments_of_the_others_of_a_pool_are_those_in_their_heads(name: str) -> None:
    said = [int(number) for number in re.findall(r"(?:^|· )(\d+) ", section(name, "ARGV"))]
    assert said == list(range(1, len(said) + 1))
    assert {int(number) for number in re.findall(r"ARGV\[(\d+)\]", body(name))} == set(said)


def test_the_numbers_are_those_of_the_rules_of_pools() -> None:
    found = re.search(r"local WINDOW, SLEEP_CAP, AGO, DONE = (.*)\n", body(*STEP))
    assert found and list(map(int, found.group(1).split(", "))) == [item.WINDOW, SLEEP_CAP, item.AGO, item.DONE]
    assert f"local AGO, PAGE = {item.AGO}, " in body("pool_count.lua")
