"""The heads of the Lua files of pools say what their bodies do: keys and their types, fields, arguments, numbers."""

import re

import pytest

from fairlock.rules.pools import Finish, Give, Look, Quit, Remove, Seek, Touch, state
from fairlock.rules.pools.queue import SLEEP_CAP
from fairlock.rules.pools.state import Worker
from fairlock.stores.redis import lua_scripts, pool_encoding
from tests.redis.test_heads import FOLDER, TYPES, arguments, body, declared_keys, head, names_of_arguments, section

STEP = ("pool_step_1_read.lua", "pool_step_2_queue.lua", "pool_step_3_command.lua", "pool_step_4_write.lua")
SHORT = ("pool_fast_take.lua", "pool_fast_touch.lua", "pool_fast_finish.lua")
LOOKS = ("pool_read_items.lua", "pool_count.lua", "pool_read_queue.lua", "pool_read_taken.lua")
FILES = (*STEP, *SHORT, *LOOKS)


def test_no_file_of_pools_is_forgotten() -> None:
    assert {path.name for path in FOLDER.glob("pool*.lua")} == set(FILES)
    assert pool_encoding.STEP.text == lua_scripts.fold("\n".join((FOLDER / name).read_text() for name in STEP))


@pytest.mark.parametrize("name", FILES)
def test_a_head_of_pools_has_all_its_parts(name: str) -> None:
    assert all(section(name, title).strip() for title in ("Purpose", "KEYS", "ARGV", "Returns"))
    assert max(map(len, (FOLDER / name).read_text().splitlines())) <= 120


def test_the_step_uses_every_key_of_a_pool_as_what_it_is() -> None:
    assert tuple(declared_keys("pool_step_1_read.lua")) == pool_encoding.PARTS
    assert re.findall(r"local ([A-Z_, ]+) = unpack\(KEYS\)", body(*STEP)) == [", ".join(pool_encoding.PARTS).upper()]
    used: dict[str, set[str]] = {}
    for command, key in re.findall(r"call\('([A-Z]+)', ([A-Z_]+)\b", body(*STEP)):
        if command[0] in TYPES:
            used.setdefault(key.lower(), set()).add(TYPES[command[0]])
    assert used == {key: {kind} for key, kind in declared_keys("pool_step_1_read.lua").items()}


@pytest.mark.parametrize("name", [*SHORT, *LOOKS])
def test_the_others_of_a_pool_use_the_keys_in_their_heads_as_what_they_are(name: str) -> None:
    numbers = dict(re.findall(r"^--   (\d) (\w+) +(?:hash|zset)", head(name), re.M))
    kinds = declared_keys(name)
    calls = re.findall(r"call\('([A-Z]+)', KEYS\[(\d)\]", body(name))
    assert {number for _, number in calls} == set(numbers)
    assert set(numbers.values()) <= set(pool_encoding.PARTS)
    assert all(TYPES[command[0]] == kinds[numbers[number]] for command, number in calls)


def test_the_fields_of_a_pool_are_those_in_the_head() -> None:
    said = section("pool_step_1_read.lua", "KEYS").split("--   2 ")[0].split("hash  ")[1]
    fields = set(re.findall(r"(?:^|· |-- +)([a-z]|[=#:>][A-Z]+) ", said))
    assert {field[0] for field in fields} == set("=#:>sp")
    code = body(*STEP)
    calls = " ".join(re.findall(r"call\('H\w+', ITEMS, (.*?)\)", code, re.S))
    assert set(re.findall(r"'([^']+)'", calls)) == set("=#:>sp")


@pytest.mark.parametrize("name", SHORT)
def test_the_short_cuts_of_a_pool_read_and_write_the_fields_in_their_heads(name: str) -> None:
    written, _, read = section(name, "KEYS").split("hash  ")[1].split("\n")[0].partition(" are written")
    assert "own: a colon and the ticket" in section(name, "ARGV")
    code = re.sub(r"\bown\b", "':'", body(name))
    fields = lambda call: set(re.findall(r", '([=#:>a-z])'", call))  # noqa: E731
    set_ = set().union(*map(fields, re.findall(r"call\('(?:HSET|HDEL)'(.*?)\)", code)))
    got = set().union(*map(fields, re.findall(r"call\('HMGET'(.*?)\)", code)))
    assert set(written.split()) == set_
    assert set(read.removeprefix(",").split()[:1]) == got - set_


def test_who_waits_is_packed_and_unpacked_in_the_order_in_the_head() -> None:
    said = re.search(r"waiter is an array in\n--   MessagePack: ([\w\s-]+?)\.", head("pool_step_1_read.lua"))
    assert said
    fields = said.group(1).replace("--", " ").split()
    assert set(fields) == set(Worker._fields) - {"ticket", "expires"}
    unpacked = body("pool_step_2_queue.lua").split("local function save_waiter")[0]
    assert f"local {', '.join(fields)} = unpack(cmsgpack.unpack(packed))" in unpacked
    pairs = re.findall(r"(\w+) = (\w+),", unpacked.split("return {")[1])
    assert pairs == [(name, name) for name in ["ticket", *fields]]
    packed = re.search(r"cmsgpack\.pack\(\{(.*?)\}\)", body("pool_step_2_queue.lua"), re.S)
    assert packed and re.findall(r"w\.(\w+)", packed.group(1)) == fields
    told = section("pool_read_queue.lua", "Returns").replace("--", " ").partition("waiter:")[2]
    assert [word.strip() for word in told.split(",")] == ["ticket", "expires", *fields]


def test_the_arguments_of_the_step_are_the_fields_of_the_orders() -> None:
    said = section("pool_step_3_command.lua", "ARGV")
    listed = {}
    for order, fields in re.findall(r"^-- {10}(\w+) +(3 .*)$", said, re.M):
        fields = fields.removesuffix(" · and so on, two for each item")
        numbered = [field.split(" ", 1) for field in fields.split(" · ")]
        assert [int(number) for number, _ in numbered] == list(range(3, 3 + len(numbered)))
        listed[order] = tuple(name for _, name in numbered)
    on = {kind.__name__.lower(): ("key", *kind._fields) for kind in (Touch, Give, Finish, Remove, Look)}
    seek = tuple(name for name in Seek._fields if name != "again")
    assert listed == {"put": ("first", "key", "body"), **on, "seek": seek, "quit": Quit._fields}
    code = body(*STEP)
    assert "local LISTENERS, ORDER, SUBJECT = unpack(ARGV, 1, 3)" in code
    positions = {}
    for names, values in re.findall(r"local ((?:PUT|TOUCH|GIVE|FINISH|REMOVE|SEEK)_[A-Z_, ]+) = ([\d, ]+)\n", code):
        positions.update(zip(names.split(", "), map(int, values.split(", ")), strict=True))
    assert positions.pop("PUT_FIRST_ROW") == 3 + listed.pop("put").index("key")
    del listed["quit"]  # nothing but its ticket is used
    assert positions == {
        f"{order}_{name}".upper(): number for order, names in listed.items() for number, name in enumerate(names[1:], 4)
    }
    assert not re.search(r"ARGV\[\d", code)


@pytest.mark.parametrize("name", [*SHORT, *LOOKS])
def test_the_arguments_of_the_others_of_a_pool_are_those_in_their_heads(name: str) -> None:
    said = [int(number) for number in re.findall(r"(?:^|· )(\d+) ", section(name, "ARGV"))]
    assert said == list(range(1, len(said) + 1))
    assert arguments(name) == names_of_arguments(name)


def test_the_numbers_are_those_of_the_rules_of_pools() -> None:
    found = re.search(r"local CONFIRM_WINDOW, SLEEP_CAP, AGO, DONE = (.*)\n", body(*STEP))
    expected = [state.CONFIRM_WINDOW, SLEEP_CAP, state.AGO, state.DONE]
    assert found and list(map(int, found.group(1).split(", "))) == expected
    assert f"local AGO, PAGE = {state.AGO}, " in body("pool_count.lua")
