"""The heads of the Lua files say what their bodies do: keys and their types, fields, arguments, and shared numbers."""

import re
from pathlib import Path

import pytest

from holdfast.backends.redis import layout, scripts
from holdfast.doorman import commands, record, rules

FOLDER = Path(scripts.HERE)
STEP = ("record.lua", "hurry.lua", "entrants.lua", "line.lua", "command.lua", "close.lua")
FILES = (*STEP, "enter.lua", "leave.lua", "many.lua", "look.lua")
PARTS = ("door", *layout.PARTS)
TYPES = {"H": "hash", "Z": "zset"}


def head(name: str) -> str:
    found = re.match(r"(?:--.*\n)+", (FOLDER / name).read_text())
    assert found
    return found.group()


def body(*names: str) -> str:
    """The code, without comments."""
    texts = [(FOLDER / name).read_text().removeprefix(head(name)) for name in names]
    return re.sub(r"--.*", "", "\n".join(texts))


def section(name: str, title: str) -> str:
    """What the head says under this title."""
    found = re.search(rf"-- {title} +(.*\n(?:--   +.*\n)*)", head(name))
    assert found, f"{name} says nothing about {title}"
    return found.group(1)


def declared_keys(name: str) -> dict[str, str]:
    """Key -> type, as the head says."""
    return dict(re.findall(r"^--   \d (\w+) +(hash|zset) ", section(name, "KEYS"), re.M))


def test_no_file_is_forgotten() -> None:
    found = {path.name for path in FOLDER.glob("*.lua")}
    assert {name for name in found if not name.startswith("pool")} == set(FILES)  # those have a test of their own
    assert scripts.STEP.text == "\n".join((FOLDER / name).read_text() for name in STEP)


@pytest.mark.parametrize("name", FILES)
def test_a_head_has_all_its_parts(name: str) -> None:
    assert all(section(name, title).strip() for title in ("Purpose", "KEYS", "ARGV", "Returns"))
    assert max(map(len, (FOLDER / name).read_text().splitlines())) <= 120


# -- keys


def test_the_step_knows_its_keys_by_the_names_in_the_head_and_in_the_layout() -> None:
    assert tuple(declared_keys("record.lua")) == PARTS
    assert re.findall(r"local ([A-Z, ]+) = unpack\(KEYS\)", body(*STEP)) == [", ".join(PARTS).upper()]
    assert re.findall(r"^--   (\d) \w+ +(?:hash|zset)", head("record.lua"), re.M) == list("123456")


def test_the_step_uses_every_key_as_what_it_is() -> None:
    used: dict[str, set[str]] = {}
    for command, key in re.findall(r"call\('([A-Z]+)', ([A-Z]+)\b", body(*STEP)):
        if command[0] in TYPES:
            used.setdefault(key.lower(), set()).add(TYPES[command[0]])
    for key in re.findall(r"put\(([A-Z]+),", body(*STEP)):
        used.setdefault(key.lower(), set()).add("zset")
    assert used == {key: {kind} for key, kind in declared_keys("record.lua").items()}


@pytest.mark.parametrize("name", ["enter.lua", "leave.lua", "look.lua"])
def test_the_others_use_the_keys_in_their_heads_as_what_they_are(name: str) -> None:
    numbers = dict(re.findall(r"^--   (\d) (\w+) +(?:hash|zset)", head(name), re.M))
    kinds = declared_keys(name)
    calls = re.findall(r"\bcall\('([A-Z]+)', KEYS\[(\d)\]", body(name))
    calls += [("ZRANGE", number) for number in re.findall(r"found\('.', KEYS\[(\d)\]", body(name))]
    assert {number for _, number in calls} == set(numbers)
    assert all(PARTS[int(number) - 1] == key for number, key in numbers.items())
    assert all(TYPES.get(command[0], "hash") == kinds[numbers[number]] for command, number in calls)


# -- fields


def test_the_fields_of_the_door_are_those_in_the_head() -> None:
    said = section("record.lua", "KEYS").split("--   2 ")[0].split("hash  ")[1]
    fields = set(re.findall(r"(?:^|· |-- +)([a-z:#])(?:TICKET)? ", said))
    code = body(*STEP)
    calls = " ".join(re.findall(r"call\('H\w+', DOOR, (.*?)\)", code))
    used = set(re.findall(r"'([^']+)'", calls))
    used |= set(re.findall(r"\bset\('(.)'", code)) | set(re.findall(r"words = \{DOOR, '(.)'", code))
    assert fields == used == set("cfpshaugk:#")


@pytest.mark.parametrize("name", ["enter.lua", "leave.lua"])
def test_the_short_cuts_read_and_write_the_fields_in_their_heads(name: str) -> None:
    said = section(name, "KEYS").split("hash  ")[1]
    touched, read = said.split(" written" if "written" in said else " removed")
    code = body(name)
    names = lambda call: set(re.findall(r", '(\w)'", call))  # noqa: E731
    changed = set().union(*map(names, re.findall(r"call\('(?:HSET|HDEL)'(.*?)\)", code)))
    looked = set().union(*map(names, re.findall(r"call\('HM?GET'(.*?)\)", code)))
    assert set(re.findall(r"\b(\w)\b", touched)) == changed
    assert set(re.findall(r"\b(\w)\b", read)) == looked - changed
    assert changed | looked <= set("cfpshaug")


def test_an_entrant_is_packed_and_unpacked_in_the_order_in_the_head() -> None:
    said = re.search(r"MessagePack: ([\w\s-]+?);", head("record.lua"))
    assert said
    alone, *fields = said.group(1).replace("--", " ").split()
    assert alone == "alone"
    assert set(fields) == set(record.Entrant._fields)
    packed, unpacked = body("entrants.lua").split("local function unpacked")
    assert re.findall(r"\balone,|\be\.(\w+)", packed.split("local function packed")[1]) == ["", *fields]
    pairs = re.findall(r"(\w+) = e\[(\d+)\]", unpacked)
    assert [name for name, _ in pairs] == fields
    assert [int(number) for _, number in pairs] == list(range(2, len(fields) + 2))
    short = re.findall(r"cmsgpack\.pack\(\{(.*?)\}\)", body("hurry.lua"), re.S)
    sizes = [len(re.sub(r"\([^()]*\)", "", seat).rstrip(", \n").split(",")) for seat in short]
    assert sizes == [len(fields) + 1]
    assert fields[:5] == ["ticket", "fence", "expires", "since", "block"]  # as the short cuts write and read them
    assert "ARGV[1] .. cmsgpack.pack(first, expires, now) .. ARGV[2]" in body("enter.lua")
    assert "local _, fence, expires, _, block = cmsgpack.unpack_limit(seat, 4, #head)" in body("leave.lua")


def test_a_grave_is_packed_in_the_order_in_the_head() -> None:
    assert "so are graves: span kind by reason" in head("record.lua").replace("\n--", "")
    assert re.findall(r"'#' \.\. ticket, cmsgpack\.pack\(\{(.*?)\}\)", body(*STEP)) == ["span, kind, by, reason"]


# -- arguments


def test_the_arguments_of_the_step_are_the_fields_of_the_commands() -> None:
    said = section("command.lua", "ARGV")
    listed = {}
    for command, fields in re.findall(r"^-- {10}(\w+) +(3 .*)$", said, re.M):
        numbered = [item.split(" ", 1) for item in fields.split(" · ")]
        assert [int(number) for number, _ in numbered] == list(range(3, 3 + len(numbered)))
        listed[command] = tuple(name for _, name in numbered)
    kinds = (commands.Enter, commands.Leave, commands.Renew, commands.Keep, commands.Evict, commands.Resize)
    assert listed == {kind.__name__.lower(): kind._fields for kind in kinds}
    used = {int(number) for number in re.findall(r"ARGV\[(\d+)\]", body(*STEP))}
    assert used == set(range(1, 3 + len(commands.Enter._fields)))


@pytest.mark.parametrize("name", ["enter.lua", "leave.lua", "look.lua"])
def test_the_arguments_of_the_others_are_those_in_their_heads(name: str) -> None:
    said = [int(number) for number in re.findall(r"(?:^|· )(\d+) ", section(name, "ARGV"))]
    assert said == list(range(1, len(said) + 1))
    assert {int(number) for number in re.findall(r"ARGV\[(\d+)\]", body(name))} == set(said)


# -- numbers that must be the same in all places


def test_the_numbers_are_those_of_the_rules() -> None:
    code = body(*STEP)
    found: dict[str, int] = {}
    for names, values in re.findall(r"local ([A-Z_]+(?:, [A-Z_]+)*) = ([\d, ]+)\n", code):
        found.update(zip(names.split(", "), map(int, values.split(", ")), strict=True))
    assert found.pop("IDLE") == layout.IDLE
    assert found.pop("IDLE_IF_FIXED") == layout.IDLE_IF_FIXED
    assert found == {
        "WINDOW": record.WINDOW, "SLEEP_CAP": rules.SLEEP_CAP, "SWEEP": rules.SWEEP, "GRAVE": rules.GRAVE,
        "FRESH": record.FRESH, "PASSED": record.PASSED, "SILENT": record.SILENT, "HEARD": record.HEARD,
    }  # fmt: skip
    short = {int(number) for number in re.findall(r"\b\d{7,}\b", body("enter.lua"))}
    assert short == {1_000_000, layout.IDLE, layout.IDLE_IF_FIXED}
