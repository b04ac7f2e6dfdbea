"""Leases that are found by a handle in place of a ticket, and leases that are extended, by the tool."""

import json
from pathlib import Path

from tests.cli.conftest import Tool

SECRET = "a secret, läng"


def test_a_lease_is_renewed_and_released_by_its_handle(holdfast: Tool) -> None:
    assert holdfast("acquire", "x", "--handle", SECRET).returncode == 0
    wrong = holdfast("renew", "x", "--handle", "another", "--lease", "1h")
    assert (wrong.returncode, wrong.stderr) == (
        79, "holdfast: Nobody holds 'x' with this handle: released, expired, or never there.\n"
    )  # fmt: skip
    assert holdfast("renew", "x", "--handle", SECRET, "--lease", "1h").stdout == "'x' lasts for at least 1h00m\n"
    (shown,) = json.loads(holdfast("show", "x", "--json").stdout)["resources"][0]["inside"]
    assert 3500 < shown["left"] <= 3600
    assert SECRET not in json.dumps(shown)
    assert json.loads(holdfast("release", "x", "--handle", SECRET, "--json").stdout) == {"name": "x", "held": True}
    assert holdfast("run", "-n", "x", "true").returncode == 0
    late = holdfast("release", "x", "--handle", SECRET)
    assert late.returncode == 79
    assert late.stderr == "holdfast: Nobody holds 'x' with this handle: released, or run out.\n"


def test_a_handle_in_a_file(holdfast: Tool, tmp_path: Path) -> None:
    file = tmp_path / "handle"
    file.write_text(f"{SECRET}\n")
    assert holdfast("acquire", "x", "--handle", f"@{file}").returncode == 0
    assert holdfast("release", "x", "--handle", SECRET).returncode == 0
    missing = holdfast("acquire", "x", "--handle", f"@{tmp_path}/nothing")
    assert missing.returncode == 78
    assert missing.stderr.endswith("No such file or directory. Name a file that you may read.\n")


def test_a_command_that_is_released_by_its_handle_is_stopped(holdfast: Tool) -> None:
    running = holdfast.start("run", "--handle", SECRET, "x", "sh", "-c", "echo in; exec sleep 60")
    assert running.stdout is not None
    assert running.stdout.readline() == "in\n"
    assert holdfast("release", "x", "--handle", SECRET).returncode == 0
    assert running.wait(20) == 79


def test_a_lease_is_extended_by_its_ticket(holdfast: Tool) -> None:
    ticket = holdfast("acquire", "x", "--lease", "10").stdout.strip()
    assert holdfast("renew", "x", "--ticket", ticket, "--lease", "10m").stdout == "'x' is yours for another 10m00s\n"
    assert holdfast("renew", "x", "--ticket", ticket, "--lease", "1m").stdout == "'x' is yours for another 10m00s\n"


def test_which_lease_is_said_once_and_how_long_too(holdfast: Tool) -> None:
    both = holdfast("release", "x", "--handle", SECRET, "--ticket", "t")
    assert (both.returncode, "take one of them" in both.stderr) == (64, True)
    no_length = holdfast("renew", "x", "--handle", SECRET)
    assert (no_length.returncode, "For how long?" in no_length.stderr) == (64, True)
