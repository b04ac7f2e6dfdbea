"""`renew` and `release` by a handle instead of a ticket, and extended leases."""

import json
from pathlib import Path

from tests.cli.conftest import Tool

SECRET = "a secret, läng"


def test_a_lease_is_renewed_and_released_by_its_handle(fairlock: Tool) -> None:
    assert fairlock("acquire", "x", "--handle", SECRET).returncode == 0
    wrong = fairlock("renew", "x", "--handle", "another", "--lease", "1h")
    assert (wrong.returncode, wrong.stderr) == (
        79, "fairlock: No client holds 'x' with this handle: released, expired, or never there.\n"
    )  # fmt: skip
    assert fairlock("renew", "x", "--handle", SECRET, "--lease", "1h").stdout == "'x' is held for at least 1h00m\n"
    (shown,) = json.loads(fairlock("show", "x", "--json").stdout)["resources"][0]["holders"]
    assert 3500 < shown["expires_in"] <= 3600
    assert SECRET not in json.dumps(shown)
    assert json.loads(fairlock("release", "x", "--handle", SECRET, "--json").stdout) == {"name": "x", "held": True}
    (line,) = json.loads(fairlock("show", "x", "--json").stdout)["audit"]
    assert (line["kind"], line["reason"]) == ("released", "released by its handle")
    assert fairlock("run", "-n", "x", "true").returncode == 0
    late = fairlock("release", "x", "--handle", SECRET)
    assert late.returncode == 79
    assert late.stderr == "fairlock: 'x' is not held with this handle: it was released, or its lease has expired.\n"


def test_a_handle_in_a_file(fairlock: Tool, tmp_path: Path) -> None:
    file = tmp_path / "handle"
    file.write_text(f"{SECRET}\n")
    assert fairlock("acquire", "x", "--handle", f"@{file}").returncode == 0
    assert fairlock("release", "x", "--handle", SECRET).returncode == 0
    missing = fairlock("acquire", "x", "--handle", f"@{tmp_path}/nothing")
    assert missing.returncode == 78
    assert missing.stderr.endswith("No such file or directory. Name a file that you may read.\n")


def test_a_command_that_is_released_by_its_handle_is_stopped(fairlock: Tool) -> None:
    running = fairlock.start("run", "--handle", SECRET, "x", "sh", "-c", "echo in; exec sleep 60")
    assert running.stdout is not None
    assert running.stdout.readline() == "in\n"
    assert fairlock("release", "x", "--handle", SECRET).returncode == 0
    assert running.wait(20) == 79


def test_a_lease_is_extended_by_its_ticket(fairlock: Tool) -> None:
    ticket = fairlock("acquire", "x", "--lease", "10").stdout.strip()
    assert fairlock("renew", "x", "--ticket", ticket, "--lease", "10m").stdout == "'x' is held for another 10m00s\n"
    assert fairlock("renew", "x", "--ticket", ticket, "--lease", "1m").stdout == "'x' is held for another 10m00s\n"


def test_a_lease_is_named_once_and_needs_a_duration(fairlock: Tool) -> None:
    both = fairlock("release", "x", "--handle", SECRET, "--ticket", "t")
    assert (both.returncode, "use one of them" in both.stderr) == (64, True)
    no_length = fairlock("renew", "x", "--handle", SECRET)
    assert (no_length.returncode, "No duration is given." in no_length.stderr) == (64, True)
