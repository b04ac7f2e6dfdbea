"""The manual page names every command, option and exit code, and groff accepts it without a warning."""

import re
import subprocess

import pytest

from fairlock.cli import exit_codes, main
from fairlock.cli.command_table import COMMANDS
from fairlock.cli.man_page import ENVIRONMENT, man_page
from fairlock.cli.parse_arguments import GLOBAL, HELP
from tests.servers import programs
from tests.servers.fixtures import lacking

SECTIONS = [
    "NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "EXAMPLES", "SEE ALSO",
]  # fmt: skip


def test_the_tool_prints_it(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["man"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert out.startswith(".TH FAIRLOCK 1 ")
    assert re.findall(r"(?m)^\.SH (.*)$", out) == SECTIONS


def test_every_line_is_a_known_request_or_text() -> None:
    requests = set(re.findall(r"(?m)^(\.\w+)", man_page("1.0")))
    assert requests == {".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".BR", ".br", ".nf", ".fi"}


def rendered() -> str:
    groff = programs.find("groff") or lacking("This machine has no groff.")
    command = [groff, "-man", "-Tascii", "-ww", "-P-cbou", "-rLL=200n"]
    done = subprocess.run(command, input=man_page("1.0"), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_groff_shows_every_command_option_and_exit_code() -> None:
    page = rendered()
    for command in COMMANDS.values():
        assert f"fairlock {command.name}" in page
        for option in command.options + GLOBAL + HELP:
            assert f"{', '.join(option.names)} {option.value}".rstrip() in page
            assert option.help in re.sub(r"\s+", " ", page)
    for code, text in exit_codes.MEANINGS.items():
        assert re.search(rf"(?m)^ +{code} +{re.escape(text)}", page)
    for name in ENVIRONMENT:
        assert name in page
