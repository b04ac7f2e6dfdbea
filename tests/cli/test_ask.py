"""`fairlock ask`, what `run` does when it is asked, and the audit lines that `show` prints."""

import json
import os
import signal
import sys

import pytest

from tests.cli.conftest import Tool, until


def test_ask_needs_a_reason_and_asks_every_holder_or_one(fairlock: Tool) -> None:
    for _ in range(2):
        fairlock("acquire", "--slots", "2", "x", "--owner", "worker")
    assert fairlock("ask", "x").returncode == 64
    assert fairlock("ask", "x", "--reason", " ").returncode == 64
    seen = json.loads(fairlock("show", "x", "--json").stdout)["resources"][0]["holders"]
    assert [one["asked"] for one in seen] == [None, None]
    one = fairlock("ask", "x", "--reason", "this one", "--ticket", seen[0]["ticket"], "--json", FAIRLOCK_OWNER="ops")
    assert json.loads(one.stdout) == {"name": "x", "asked": [seen[0]["ticket"]]}
    shown = json.loads(fairlock("show", "x", "--json").stdout)
    assert [one["asked"] for one in shown["resources"][0]["holders"]] == [{"by": "ops", "reason": "this one"}, None]
    assert shown["audit"][0] | {"at": 0} == {
        "at": 0, "kind": "asked", "by": "ops", "reason": "this one", "owner": "worker", "ticket": seen[0]["ticket"],
    }  # fmt: skip
    assert fairlock("ask", "x", "--reason", "all").stdout == "asked 2 holders to release 'x'\n"
    assert len(fairlock.holders("x")) == 2


def test_asking_a_free_name_is_no_error(fairlock: Tool) -> None:
    done = fairlock("ask", "x", "--reason", "just in case")
    assert (done.returncode, done.stdout) == (0, "")
    assert "'x' has no holder in" in done.stderr and "so no holder was asked" in done.stderr
    assert json.loads(fairlock("ask", "x", "--reason", "test", "--json").stdout) == {"name": "x", "asked": []}


def test_a_worker_that_holds_a_lock_of_its_own_is_asked_and_gives_its_item_back(fairlock: Tool) -> None:
    fairlock("pool", "add", "jobs", "one")
    worker = [sys.executable, "-m", "fairlock", "pool", "run", "jobs", "--", "sleep", "60"]
    it = fairlock.start("run", "--on-asked", "term", "worker-7", "--", *worker)
    until(lambda: json.loads(fairlock("pool", "ls", "jobs", "--json").stdout)["items"][0]["state"] == "taken")
    assert fairlock("ask", "worker-7", "--reason", "drain this host").returncode == 0
    assert it.wait(30) == 128 + 15
    item = json.loads(fairlock("pool", "ls", "jobs", "--json").stdout)["items"][0]
    assert item["state"] in ("resting", "free")
    assert "no busy names" in fairlock("ls").stdout


def test_the_items_of_a_pool_are_not_asked_for_and_the_cure_is_named(fairlock: Tool) -> None:
    fairlock("pool", "add", "my jobs", "one")
    it = fairlock.start("pool", "run", "my jobs", "--", "sleep", "60")
    until(lambda: json.loads(fairlock("pool", "ls", "my jobs", "--json").stdout)["items"][0]["state"] == "taken")
    cure = "It is a pool: `fairlock pool rm 'my jobs' KEY --force` takes an item and deletes it."
    polite = "A worker that holds a lock of its own, too, can be asked for that one."
    for words in (("ask", "my jobs", "--reason", "please"), ("evict", "my jobs", "--reason", "please", "-y")):
        done = fairlock(*words)
        assert done.returncode == 0 and done.stderr.endswith(f". {cure} {polite}\n"), done.stderr
    it.kill()
    it.communicate()
    assert "It is a pool" not in fairlock("ask", "x", "--reason", "please").stderr


def test_show_prints_who_asks_and_what_was_done_before(fairlock: Tool) -> None:
    ticket = fairlock("acquire", "x", "--owner", "worker").stdout.strip()
    fairlock("resize", "x", "5", FAIRLOCK_OWNER="ops")
    fairlock("ask", "x", "--reason", "the disk is \x1b[31mfull", FAIRLOCK_OWNER="ops")
    refused = fairlock("show", "x").stdout
    assert "asked to release" not in refused  # a reason may not contain control characters
    fairlock("ask", "x", "--reason", "the disk is full", FAIRLOCK_OWNER="ops")
    shown = fairlock("show", "x").stdout.splitlines()
    assert any(line.endswith(" is asked to release by ops: the disk is full") for line in shown)
    at = shown.index("audit")
    assert shown[at + 1].split() == ["WHEN", "WHAT", "BY", "OWNER", "TICKET", "REASON"]
    assert "asked" in shown[at + 2] and shown[at + 2].endswith("the disk is full")
    assert "resized" in shown[at + 3] and shown[at + 3].endswith("to 5 slots")
    renewed = fairlock("renew", "x", "--ticket", ticket)
    assert renewed.returncode == 0
    assert renewed.stderr == "fairlock: 'x': ops asks to release it (the disk is full).\n"
    fairlock("release", "x", "--ticket", ticket)
    after = fairlock("show", "x").stdout
    assert "is asked to release" not in after and "the disk is full" in after


def test_show_prints_the_newest_lines(fairlock: Tool) -> None:
    for number in range(1, 13):
        fairlock("resize", "x", str(number))
    shown = fairlock("show", "x").stdout
    assert "to 12 slots" in shown and "to 3 slots" in shown and "to 2 slots" not in shown
    assert "  and 2 older ones: --json prints them\n" in shown
    assert len(json.loads(fairlock("show", "x", "--json").stdout)["audit"]) == 12


def test_with_warn_the_command_goes_on(fairlock: Tool) -> None:
    it = fairlock.holding("run", "x", "-c", "trap 'exit 3' USR2; echo $$ > up; while :; do sleep 0.05; done")
    fairlock.pids("up")
    fairlock("ask", "x", "--reason", "maintenance", FAIRLOCK_OWNER="ops")
    until(lambda: fairlock.state("x")[0][0].asked)
    assert it.stderr is not None
    assert it.stderr.readline() == "fairlock: 'x': ops asks to release it (maintenance).\n"
    it.send_signal(signal.SIGUSR2)
    assert it.wait(20) == 3


@pytest.mark.parametrize("action, name", [("usr1", "USR1"), ("term", "TERM")])
def test_the_command_gets_the_signal_once(fairlock: Tool, action: str, name: str) -> None:
    """A shell in a group of its own, and its child: both get it."""
    text = f"""
        exec 2>/dev/null; trap 'echo $$ >> signals' {name}; trap 'exit 7' USR2
        sh -c 'trap "echo $$ >> signals" {name}; echo $$ > inner; while :; do sleep 0.05; done' &
        echo $$ > up; while :; do sleep 0.05; done
    """
    it = fairlock.holding("run", "--on-asked", action, "x", "-c", text)
    outer, inner = fairlock.pids("up", "inner")
    fairlock("ask", "x", "--reason", "first")
    signals = fairlock.folder / "signals"
    until(lambda: signals.exists() and len(signals.read_text().split()) == 2)
    assert it.stderr is not None and "(first)" in it.stderr.readline()
    fairlock("ask", "x", "--reason", "second")
    assert "(second)" in it.stderr.readline()
    it.send_signal(signal.SIGUSR2)
    assert it.wait(20) == 7
    assert sorted(map(int, signals.read_text().split())) == sorted([outer, inner])
    assert fairlock.holders("x") == []


def test_after_term_the_lock_is_free_when_the_command_has_ended(fairlock: Tool) -> None:
    it = fairlock.holding("run", "--on-asked", "term", "x", "sleep", "600")
    fairlock("ask", "x", "--reason", "maintenance")
    assert it.wait(20) == 128 + signal.SIGTERM  # that of the command: nothing was lost
    assert fairlock.holders("x") == []


def test_an_operator_is_a_person(fairlock: Tool) -> None:
    fairlock("acquire", "x")
    fairlock("ask", "x", "--reason", "test", SUDO_USER="alice")
    (line,) = json.loads(fairlock("show", "x", "--json").stdout)["audit"]
    assert line["by"] == f"alice@{os.uname().nodename}"


def test_the_action_is_one_of_three(fairlock: Tool) -> None:
    done = fairlock("run", "--on-asked", "kill", "x", "true")
    assert done.returncode == 64
    assert "--on-asked needs warn, usr1 or term, not 'kill'" in done.stderr
