"""The heads of the Lua files say what their bodies do: keys and their types, fields, arguments, and shared numbers."""

import re
from pathlib import Path

import pytest

from fairlock.rules.locks import messages, state, step
from fairlock.stores.redis import encoding, lua_scripts

FOLDER = Path(lua_scripts.HERE)
STEP = lua_scripts.STEP_FILES
FILES = (
    *STEP, "fast_acquire.lua", "fast_release.lua", "batch_fast_steps.lua", "batch_full_steps.lua", "read_state.lua",
    "write_busy_names.lua", "add_audit_line.lua",
)  # fmt: skip
PARTS = ("state", *encoding.PARTS)
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
    """Return the text under this title of the head."""
    found = re.search(rf"-- {title} +(.*\n(?:--   +.*\n)*)", head(name))
    assert found, f"{name} says nothing about {title}"
    return found.group(1)


def constants(prefix: str) -> dict[str, int]:
    """The named positions of the step that begin like this: name -> number."""
    found = {}
    for names, values in re.findall(r"local ([A-Z_]+(?:, [A-Z_]+)*) = ([\d, ]+)\n", body(*STEP)):
        for name, value in zip(names.split(", "), values.split(", "), strict=True):
            if name.startswith(prefix + "_"):
                found[name.removeprefix(prefix + "_").lower()] = int(value)
    return found


def arguments(name: str) -> list[str]:
    """The names that a script gives to its arguments; it uses none of them by its number."""
    code = body(name)
    assert not re.search(r"ARGV\[", code)
    found = re.search(r"local (.*) = unpack\(ARGV, 1, (\d)\)", code)
    names = found.group(1).split(", ") if found else []
    assert not found or len(names) == int(found.group(2))
    return names


def names_of_arguments(name: str) -> list[str]:
    """The names of the arguments, as the head says."""
    return re.findall(r"(?:^|· )\d+ (\w+)", section(name, "ARGV"))


def declared_keys(name: str) -> dict[str, str]:
    """Key -> type, as the head says."""
    return dict(re.findall(r"^--   \d (\w+) +(hash|zset) ", section(name, "KEYS"), re.M))


def test_no_file_is_forgotten() -> None:
    found = {path.name for path in FOLDER.glob("*.lua")}
    assert {name for name in found if not name.startswith("pool")} == set(FILES)  # those have a test of their own
    texts = "\n".join((FOLDER / name).read_text() for name in STEP)
    fast = [(FOLDER / name).read_text() for name in ("fast_acquire.lua", "fast_release.lua")]
    assert lua_scripts.STEP.text == lua_scripts.fold(lua_scripts.put_fast_paths(texts, *fast))
    for text in fast:
        begin, end = text.index("-- ("), text.index("-- )")
        assert lua_scripts.fold(text[begin:end]) in lua_scripts.STEP.text and "return false" not in text[begin:end]


def test_named_numbers_are_replaced_and_nothing_else() -> None:
    text = "local SWEEP, IDLE = 16, 600 -- both\nlocal KEPT = 'SWEEP_ALL'\nreturn SWEEP + IDLE_IF -- SWEEP\n"
    assert lua_scripts.fold(text) == "\nlocal KEPT = 'SWEEP_ALL'\nreturn 16 + IDLE_IF\n"


@pytest.mark.parametrize("name", FILES)
def test_a_head_has_all_its_parts(name: str) -> None:
    assert all(section(name, title).strip() for title in ("Purpose", "KEYS", "ARGV", "Returns"))
    assert max(map(len, (FOLDER / name).read_text().splitlines())) <= 120


# -- keys


def test_the_step_knows_its_keys_by_the_names_in_the_head_and_in_the_layout() -> None:
    assert tuple(declared_keys("step_1_read.lua")) == PARTS
    assert re.findall(r"local ([A-Z_, ]+) = unpack\(KEYS\)", body(*STEP)) == [", ".join(PARTS).upper()]
    assert re.findall(r"^--   (\d) \w+ +(?:hash|zset)", head("step_1_read.lua"), re.M) == list("12345")


def test_the_step_uses_every_key_as_what_it_is() -> None:
    used: dict[str, set[str]] = {}
    for command, key in re.findall(r"call\(\s*'([A-Z]+)', ([A-Z_]+)\b", body(*STEP)):
        if command[0] in TYPES:
            used.setdefault(key.lower(), set()).add(TYPES[command[0]])
    assert used == {key: {kind} for key, kind in declared_keys("step_1_read.lua").items()}


@pytest.mark.parametrize("name", ["fast_acquire.lua", "fast_release.lua", "read_state.lua"])
def test_the_others_use_the_keys_in_their_heads_as_what_they_are(name: str) -> None:
    numbers = dict(re.findall(r"^--   (\d) (\w+) +(?:hash|zset)", head(name), re.M))
    kinds = declared_keys(name)
    code = body(name)
    for number, key in numbers.items():
        code = re.sub(rf"(call\('\w+', )KEYS\[{number}\]", rf"\g<1>{key.upper()}", code)
    used = re.findall(r"\bp?call\(\s*'([A-Z]+)', ([A-Z_]+)\b", code)
    assert {key.lower() for _, key in used} == set(numbers.values())
    assert all(PARTS[int(number) - 1] == key for number, key in numbers.items())
    assert all(TYPES.get(command[0], kinds[key.lower()]) == kinds[key.lower()] for command, key in used)


# -- fields


def test_the_fields_of_the_state_are_those_in_the_head() -> None:
    said = section("step_1_read.lua", "KEYS").split("--   2 ")[0].split("hash  ")[1]
    fields = set(re.findall(r"(?:^|· |-- +)([a-z:#])(?:TICKET)? ", said))
    code = body(*STEP)
    calls = " ".join(re.findall(r"call\('H\w+', STATE, (.*?)\)", code))
    used = set(re.findall(r"'([na:#])'", calls))
    assert fields == used == set("na:#")


@pytest.mark.parametrize("name", ["fast_acquire.lua", "fast_release.lua"])
def test_the_short_cuts_read_and_write_the_fields_in_their_heads(name: str) -> None:
    said = section(name, "KEYS").split("hash  ")[1].split("\n")[0]
    touched, read = said.split(" written")
    code = body(name)
    names = lambda call: set(re.findall(r"\s'([a-z])'", call))  # noqa: E731
    changed = set().union(*map(names, re.findall(r"call\(\s*'(?:HSET|HDEL)'(.*?)\n", code)))
    changed |= set().union(*map(names, re.findall(r"\n +('a', pack.*)", code.replace("'a'", " 'a'"))))
    looked = set().union(*map(names, re.findall(r"call\('HM?GET'(.*?)\)", code)))
    assert set(re.findall(r"\b(\w)\b", touched)) == changed
    assert set(re.findall(r"\b(\w)\b", read)) <= changed >= looked
    assert changed | looked <= set("na")


NUMBERS = (
    "fence", "seen", "place", "queue", "head", "earliest", "capacity", "horizon", "used", "detached", "tombstones",
)  # fmt: skip
TIMES, AMOUNTS = ("fence", "expires", "since", "poll_ttl", "place"), ("block", "weight", "lease")
TEXTS = ("ticket", "listener", "owner", "note")


def flat(name: str) -> str:
    """Return the head on one line, without the remarks in brackets."""
    text = re.sub(r"\n-- *", " ", head(name))
    return re.sub(r" \([^()]*\)", "", text)


def test_the_numbers_of_the_state_lie_where_the_head_says() -> None:
    assert f"then eleven d: {' '.join(NUMBERS)}." in flat("step_1_read.lua")
    first, last = "fence, seen, last_place, queue_size, head_expires", "earliest, capacity, horizon, used, detached"
    names = f"{first}, {last}, tombstone_count"
    code = re.sub(r"\s+", " ", body(*STEP))
    assert f"{names} = unpack_from('<{'d' * len(NUMBERS)}', numbers, N_FENCE)" in code
    written = re.search(r"numbers = mark \.\. pack\( '<(d+)', (.*?) \)", code)
    assert written and len(written[1]) == len(NUMBERS)
    places = ["fence", "now", "last_place", "queue_size", "head_expires", "earliest", "capacity", "horizon"]
    assert written[2].split(", ") == [
        *places, "several and used or 0", "several and detached or 0", "tombstone_count"
    ]  # fmt: skip
    at = {f"n_{name}": 3 + 8 * number for number, name in enumerate(NUMBERS)}
    for name in ("step_1_read.lua", "fast_acquire.lua", "fast_release.lua"):
        assert positions("N", name).items() <= at.items()
    for name in ("fast_acquire.lua", "fast_release.lua"):
        assert f"unpack_from('<{'d' * len(NUMBERS)}', numbers, N_FENCE)" in body(name)
    assert positions("N", "fast_acquire.lua") and positions("N", "step_1_read.lua")


def test_an_entry_is_packed_and_unpacked_in_the_order_in_the_head() -> None:
    said = flat("step_1_read.lua")
    assert f"five d: {' '.join(TIMES)}, two B: confirmed passed, three d: {' '.join(AMOUNTS)}, then its texts: " in said
    assert f"texts: {' '.join(TEXTS)}." in said
    fields = (*TIMES, "confirmed", "passed", *AMOUNTS, *TEXTS)
    assert set(fields) == set(state.Entry._fields)
    code = re.sub(r"\s+", " ", body(*STEP))
    packed = re.search(r"pack\( '<c1dddddBB', alone, (.*?) \) \.\.", code)
    assert packed and re.findall(r"e\.(\w+)", packed[1]) == list(fields[:7])
    unpacked = re.search(r"local _, ([\w, ]+) = unpack_from\('<c1dddddBBdddHc0Hc0', text\)", code)
    assert unpacked and unpacked[1].split(", ") == list(fields[:12])
    table = re.search(r"return \{ (fence = .*?)text = text", code)
    assert table
    assert re.findall(r"(\w+) = (\w+)(?: == 1)?,", table[1]) == [(name, name) for name in fields[:12]]
    at = {"e_fence": 2, "e_expires": 10, "e_confirmed": 42, "e_passed": 43, "e_block": 44, "e_ticket": 68}
    for name in ("step_1_read.lua", "fast_release.lua"):
        assert positions("E", name).items() <= at.items()
    acquire, release = body("fast_acquire.lua"), body("fast_release.lua")
    assert "tail = unpack_from('<d', requested), amounts .. own .. texts" in acquire
    assert "pack('<c1dddddBBc0', '1', fence, expires, now, POLL_TTL, 0, 1, 0, tail)" in acquire
    assert "pack('<c1dddddBBc0', '0', 0, till, now, poll_ttl, place + 1, 0, 0, tail)" in acquire
    assert "local _, _, expires, _, _, _, confirmed, _, _, used, _, holder = unpack_from('<c1dddddBBdddHc0'" in acquire
    assert "local alone, fence, expires = unpack_from('<c1dd', grant)" in release
    assert "local _, _, till, _, _, place, _, passed, block, weight, lease, ticket, listener =\n" in release
    assert "alone, fence, expires, now, till - now, place, 0, 0, sub(text, E_BLOCK)" in release


def positions(letter: str, name: str) -> dict[str, int]:
    """The named positions of a script that begin with this letter: name -> number."""
    found = {}
    for names, values in re.findall(r"local ([A-Z_]+(?:, [A-Z_]+)*) = ([\d, ]+)\n", body(name)):
        for each, value in zip(names.split(", "), values.split(", "), strict=True):
            if each.startswith(letter + "_"):
                found[each.lower()] = int(value)
    return found


def test_a_tombstone_is_packed_in_the_order_in_the_head() -> None:
    assert "A tombstone: its span as d, then the texts kind by reason." in flat("step_1_read.lua")
    code = body(*STEP)
    assert "pack('<dHc0Hc0Hc0', span, #kind, kind, #by, by, #reason, reason)" in code
    assert "_, kind, by, reason = unpack_from('<dHc0Hc0Hc0', tombstone)" in code


# -- arguments


def test_the_arguments_of_the_step_are_the_fields_of_the_commands() -> None:
    said = re.sub(r"\n-- +·", " ·", section("step_4_command.lua", "ARGV"))
    listed = {}
    for command, fields in re.findall(r"^-- {10}(\w+) +(2 .*)$", said, re.M):
        numbered = [item.split(" ", 1) for item in fields.split(" · ")]
        assert [int(number) for number, _ in numbered] == list(range(2, 2 + len(numbered)))
        listed[command] = tuple(name for _, name in numbered)
    kinds = (messages.Acquire, messages.Release, messages.Renew, messages.Detach, messages.Evict, messages.Ask,
             messages.Resize)  # fmt: skip
    wanted: dict[str, tuple[str, ...]] = {kind.__name__.lower(): kind._fields for kind in kinds}
    wanted["acquire"] = ("options", "entry")
    assert listed == wanted
    assert "local COMMAND, TICKET = unpack(ARGV, 1, 2)" in body(*STEP)
    assert f"local LISTENERS = '{encoding.LISTENERS}'" in body(*STEP)
    for command, names in listed.items():
        numbered_from_2 = {name: number for number, name in enumerate(names, 2) if name != "ticket"}
        assert constants(command.upper()) == numbered_from_2
    used = set(re.findall(r"ARGV\[(.*?)\]", body(*STEP)))
    expected = {f"{command}_{name}" for command, names in listed.items() for name in names if name != "ticket"}
    assert used == {name.upper() for name in expected}


@pytest.mark.parametrize("name", ["fast_acquire.lua", "fast_release.lua", "read_state.lua", "add_audit_line.lua"])
def test_the_arguments_of_the_others_are_those_in_their_heads(name: str) -> None:
    said = [int(number) for number in re.findall(r"(?:^|· )(\d+) ", section(name, "ARGV"))]
    assert said == list(range(1, len(said) + 1))
    assert arguments(name) == names_of_arguments(name)


# -- numbers that must be the same in all places


def test_the_numbers_are_those_of_the_rules() -> None:
    code = body(*STEP)
    found: dict[str, int] = {}
    for names, values in re.findall(r"local ([A-Z_]+(?:, [A-Z_]+)*) = ([\d, ]+)(?: --.*)?\n", code):
        found.update(zip(names.split(", "), map(int, values.split(", ")), strict=True))
    prefixes = ("ACQUIRE_", "RELEASE_", "RENEW_", "DETACH_", "EVICT_", "ASK_", "RESIZE_", "E_", "N_")
    found = {name: number for name, number in found.items() if not name.startswith(prefixes)}
    assert found.pop("IDLE") == encoding.IDLE
    assert found.pop("IDLE_IF_FIXED") == encoding.IDLE_IF_FIXED
    assert found == {
        "CONFIRM_WINDOW": state.CONFIRM_WINDOW, "SLEEP_CAP": step.SLEEP_CAP, "SWEEP": step.SWEEP,
        "TOMBSTONE": step.TOMBSTONE,
        "FRESH": state.FRESH, "PASSED": state.PASSED, "SILENT": state.SILENT, "POLLED": state.POLLED,
        "TICKETS": 2 * 10**15, "EXPIRIES": 4 * 10**15, "FOREVER": 9 * 10**15,
    }  # fmt: skip
    found.update(IDLE=encoding.IDLE, IDLE_IF_FIXED=encoding.IDLE_IF_FIXED, POLL_TTL=step.poll_ttl(0))
    for name in ("fast_acquire.lua", "fast_release.lua"):
        for names, values in re.findall(r"local ([A-Z_]+(?:, [A-Z_]+)*) = ([\d, ]+)\n", body(name)):
            for each, value in zip(names.split(", "), values.split(", "), strict=True):
                assert each[:2] in ("N_", "E_") or found[each] == int(value), each
