"""`fairlock lead`: one of several runs the command, and another takes over."""

import os
import signal
import time
from pathlib import Path

import fairlock as library
from tests.cli.conftest import Tool, alive, until

WORK = ("sh", "-c", "echo $$ $FAIRLOCK_FENCE >> led; echo leads; exec sleep 60")


def led(tool: Tool) -> list[list[str]]:
    """Return the pids and the fences of the terms so far."""
    file = tool.folder / "led"
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def wait_for_terms(tool: Tool, number: int) -> None:
    until(lambda: len(led(tool)) == number)


def test_the_exit_code_of_the_command_ends_it(fairlock: Tool) -> None:
    done = fairlock("lead", "x", "--", "sh", "-c", "echo $FAIRLOCK_NAME; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "x\n", "")
    assert fairlock.holders("x") == []


def test_sigterm_resigns_and_the_next_one_leads_at_once(fairlock: Tool) -> None:
    first = fairlock.start("lead", "x", "--", *WORK)
    wait_for_terms(fairlock, 1)
    second = fairlock.start("lead", "x", "--", *WORK)
    until(lambda: fairlock.queue("x"))
    first.terminate()
    assert first.wait(15) == 128 + signal.SIGTERM
    wait_for_terms(fairlock, 2)
    assert not alive(int(led(fairlock)[0][0]))
    assert int(led(fairlock)[0][1]) < int(led(fairlock)[1][1])
    second.terminate()
    assert second.wait(15) == 128 + signal.SIGTERM


def test_a_candidate_that_waits_ends_by_sigterm(fairlock: Tool) -> None:
    with library.connect(fairlock.url) as locks, locks.elect("x"):
        waiting = fairlock.start("lead", "x", "--", *WORK)
        until(lambda: fairlock.queue("x"))
        waiting.terminate()
        assert waiting.wait(15) == 128 + signal.SIGTERM
        assert fairlock.queue("x") == []
    assert led(fairlock) == []


def test_after_a_loss_it_stands_again_in_the_same_process(fairlock: Tool) -> None:
    leading = fairlock.start("lead", "--lease", "2s", "--file", "ready", "x", "--", *WORK)
    wait_for_terms(fairlock, 1)
    for term in (2, 3):
        with library.connect(fairlock.url) as locks:
            locks.evict("x", reason="a test", at_once=True)
        wait_for_terms(fairlock, term)
        assert not alive(int(led(fairlock)[term - 2][0])), "the command of the lost term was stopped"
    fences = [int(fence) for _, fence in led(fairlock)]
    assert fences == sorted(set(fences))
    until(lambda: (fairlock.folder / "ready").exists())
    assert (fairlock.folder / "ready").read_text().split()[1] == str(fences[-1])
    assert "FAIRLOCK_STANDS_AGAIN" not in Path(f"/proc/{led(fairlock)[-1][0]}/environ").read_text()
    leading.terminate()
    assert leading.wait(15) == 128 + signal.SIGTERM
    assert not (fairlock.folder / "ready").exists()


def test_the_file_exists_while_it_leads(fairlock: Tool) -> None:
    ready = fairlock.folder / "ready"
    ready.write_text("of a process that was killed\n")
    with library.connect(fairlock.url) as locks:
        with locks.elect("x"):
            waiting = fairlock.start("lead", "--owner", "me", "--file", "ready", "x", "--", *WORK)
            until(lambda: fairlock.queue("x"))
            assert not ready.exists()
        wait_for_terms(fairlock, 1)
        leader = locks.leader("x")
        assert leader is not None
        assert ready.read_text() == f"me {leader.fence}\n"
        waiting.terminate()
        waiting.wait(15)
    assert os.listdir(fairlock.folder).count("ready") == 0


def test_a_file_that_cannot_be_written_is_an_error(fairlock: Tool) -> None:
    done = fairlock("lead", "--file", "no/such/folder", "x", "--", "true")
    assert done.returncode == 74
    assert "Cannot write" in done.stderr
    assert fairlock.holders("x") == []


def test_a_leader_that_is_killed_is_followed_by_another(fairlock: Tool) -> None:
    first = fairlock.start("lead", "--lease", "1s", "x", "--", *WORK)
    wait_for_terms(fairlock, 1)
    fairlock.start("lead", "--lease", "1s", "x", "--", *WORK)
    until(lambda: fairlock.queue("x"))
    first.kill()
    began = time.monotonic()
    wait_for_terms(fairlock, 2)
    assert time.monotonic() - began < 10
    assert not alive(int(led(fairlock)[0][0]))
