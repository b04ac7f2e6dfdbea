"""docs/cli.md and its pages name every command, option, exit code, variable and JSON key that the tool has."""

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlock.cli import command_table, exit_codes, parse_arguments
from fairlock.cli.run import Run
from tests.project_rules.snippets import ROOT

HEAD = (ROOT / "docs" / "cli.md").read_text().partition("\n## ")[0]
PAGES = "\n".join(page.read_text() for page in sorted((ROOT / "docs").glob("cli*.md")))
SECTIONS = {name: part for part in re.split(r"(?m)^## ", PAGES)[1:] for name in part.partition("\n")[0].split(", ")}


def options_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])(-[A-Za-z]|--[a-z][a-z-]+)(?![\w-])", text))


@pytest.mark.parametrize("name", command_table.COMMANDS)
def test_every_option_of_a_command_is_documented(name: str) -> None:
    documented = options_in(SECTIONS[name])
    assert [o for option in command_table.COMMANDS[name].options for o in option.names if o not in documented] == []


@pytest.mark.parametrize("name", command_table.COMMANDS)
def test_a_command_has_every_option_that_is_documented(name: str) -> None:
    shown = re.sub(r"(?ms)^```.*?^```$", "", SECTIONS[name])
    everywhere = {o for option in parse_arguments.GLOBAL + parse_arguments.HELP for o in option.names}
    own = {o for option in command_table.COMMANDS[name].options for o in option.names} | {"-c"}
    if name in ("acquire", "renew", "release"):
        together = (command_table.COMMANDS[n] for n in ("acquire", "renew", "release"))
        own |= {o for command in together for option in command.options for o in option.names}
    assert options_in(shown) - own - everywhere == set()


def test_what_every_command_has_is_documented() -> None:
    documented = options_in(HEAD)
    everywhere = parse_arguments.GLOBAL + parse_arguments.HELP
    assert [o for option in everywhere for o in option.names if o not in documented] == []


def test_the_overview_is_what_the_tool_prints() -> None:
    for line in command_table.overview().splitlines()[4 : 4 + len(command_table.COMMANDS)]:
        assert line.strip() in HEAD


def test_every_exit_code_is_documented() -> None:
    codes = {code for code in vars(exit_codes).values() if isinstance(code, int) and code < exit_codes.BY_SIGNAL}
    assert set(exit_codes.MEANINGS) == codes
    rows = re.findall(r"(?m)^\| ([\d, ]+) \|", SECTIONS["Exit codes"])
    assert {int(number) for row in rows for number in row.split(",")} == codes


def test_the_variables_of_the_command_are_documented() -> None:
    given = set(re.findall(r'"(FAIRLOCK_\w+)"', inspect.getsource(Run.environment)))
    assert len(given) == 5
    assert set(re.findall(r"(?m)^\| `(FAIRLOCK_\w+)` \|", SECTIONS["run"])) == given


def keys(row: str) -> set[str]:
    """Return the keys that the table names."""
    (cell,) = re.findall(rf"(?m)^\| (?:`\w+`, )?(?:in )?`{row}`(?:, `\w+`)? \| (.*) \|$", SECTIONS["Keys"])
    names = cell if row == "checks" else re.sub(r":.*", "", cell)
    return set(re.findall(r"`(\w+)`", names)) - ({"ok", "note", "warning", "error"} if row == "checks" else set())


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    env = {**os.environ, "FAIRLOCK_URL": f"sqlite:///{tmp_path}/locks.db"}

    def call(*argv: str) -> Any:
        command = [sys.executable, "-m", "fairlock", "--json", *argv]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return call


def test_the_keys_of_json_are_documented(tool: Any) -> None:
    taken = tool("acquire", "x")
    assert set(taken) == keys("acquire")
    assert set(tool("renew", "x", "--ticket", taken["ticket"])) == keys("renew")
    tool("acquire", "y", "--handle", "secret")
    assert set(tool("renew", "y", "--handle", "secret", "--lease", "60")) == keys("renew --handle")
    for command in ("ls", "show"):
        seen = tool(command, "x")
        assert set(seen) == keys(command)
        assert set(seen["resources"][0]) == keys("resources")
        assert set(seen["resources"][0]["holders"][0]) == keys("holders")
    assert set(tool("release", "x", "--ticket", taken["ticket"])) == keys("release")
    assert set(tool("evict", "x", "--reason", "none", "-y")) == keys("evict")
    assert set(tool("resize", "x", "4")) == keys("resize")
    assert set(tool("pool", "add", "jobs", "a", "b")) == keys("pool add")
    assert set(tool("pool", "ls", "jobs")) == keys("pool ls")
    assert set(tool("pool", "done", "jobs", "a")) == keys("pool done")
    assert set(tool("pool", "rm", "jobs", "a")) == keys("pool rm")
    assert set(tool("schema")) == keys("schema")
    health = tool("doctor")
    assert set(health) == keys("doctor")
    assert set(health["checks"][0]) == keys("checks")


def test_the_keys_of_waiters_are_documented() -> None:
    import fairlock

    assert set(fairlock.Waiter._fields) == keys("queue")
