"""`holdfast pool`: a work list for shell scripts."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from holdfast.cli.waiting import AFTER
from tests.cli.conftest import TOOL, Tool, until


def states(tool: Tool, pool: str = "jobs") -> dict[str, str]:
    seen = json.loads(tool("--json", "pool", "ls", pool).stdout)
    return {item["key"]: item["state"] for item in seen["items"]}


def said(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    return done.returncode, done.stdout, done.stderr


# -- add, ls, done, rm


def test_items_are_added_from_the_command_line_and_shown(holdfast: Tool) -> None:
    assert said(holdfast("pool", "add", "jobs", "a", "b", "--body", '{"n": 1}')) == (0, "2 added to 'jobs'\n", "")
    assert said(holdfast("pool", "add", "jobs", "b", "c"))[1] == "1 added to 'jobs', 1 there already\n"
    lines = holdfast("pool", "ls", "jobs").stdout.splitlines()
    assert [line.split()[:2] for line in lines[:-1]] == [["KEY", "STATE"], ["a", "free"], ["b", "free"], ["c", "free"]]
    assert lines[1].endswith('{"n": 1}')
    assert lines[-1] == f"3 free in the pool 'jobs' of {holdfast.url}"


@pytest.mark.parametrize("dash", [[], ["-"]])
def test_items_are_added_from_stdin_one_a_line(holdfast: Tool, dash: list[str]) -> None:
    text = 'a\n\n  b c \n{"key": "d", "body": [1, null]}\n"e"\n{"key": "f"}\n'
    assert holdfast("--json", "pool", "add", "jobs", *dash, stdin=text).stdout == (
        '{"pool": "jobs", "added": 5, "there": 0}\n'
    )
    items = json.loads(holdfast("--json", "pool", "ls", "jobs").stdout)["items"]
    assert {i["key"]: i["body"] for i in items} == {"a": None, "b c": None, "d": [1, None], "e": None, "f": None}


@pytest.mark.parametrize(
    "line, why",
    [
        ("{nonsense", "Line 2 begins like JSON and is none"),
        ('{"body": 1}', 'Line 2 wants {"key": NAME, "body": …}'),
        ('{"key": "x", "boddy": 1}', "and nothing else"),
        ('{"key": 5}', "Line 2 wants"),
    ],
)
def test_one_bad_line_adds_nothing(holdfast: Tool, line: str, why: str) -> None:
    done = holdfast("pool", "add", "jobs", stdin=f"good\n{line}\n")
    assert done.returncode == 64
    assert why in done.stderr
    assert states(holdfast) == {}


def test_a_body_that_is_no_json_is_told_of(holdfast: Tool) -> None:
    done = holdfast("pool", "add", "jobs", "a", "--body", "text")
    assert done.returncode == 64
    assert "--body wants JSON" in done.stderr


def test_a_body_that_is_too_large_is_told_of_and_nothing_is_lost(holdfast: Tool) -> None:
    done = holdfast("pool", "add", "jobs", stdin="a\n" + json.dumps({"key": "b", "body": "x" * 70_000}) + "\n")
    assert done.returncode == 78
    assert "64 KiB" in done.stderr
    assert states(holdfast) == {}


def test_items_can_be_done_and_removed_by_hand(holdfast: Tool) -> None:
    holdfast("pool", "add", "jobs", "a", "b", "c")
    assert said(holdfast("pool", "done", "jobs", "a", "--body", '"by hand"')) == (0, "", "")
    assert said(holdfast("pool", "done", "jobs", "a")) == (0, "", "holdfast: 'a' of 'jobs' was done already.\n")
    assert holdfast("pool", "rm", "jobs", "b").returncode == 0
    assert states(holdfast) == {"a": "done", "c": "free"}
    for word in ("done", "rm"):
        gone = holdfast("pool", word, "jobs", "b")
        assert gone.returncode == 78
        assert gone.stderr.startswith("holdfast: There is no 'b' in the pool 'jobs'.")
    (seen,) = json.loads(holdfast("--json", "pool", "ls", "jobs", "--state", "done").stdout)["items"]
    assert seen["body"] == "by hand"


def test_what_somebody_has_is_neither_done_nor_removed_but_by_force(holdfast: Tool) -> None:
    holdfast("pool", "add", "jobs", "a")
    running = holdfast.start("pool", "run", "--owner", "web-3", "jobs", "--", "sleep", "30")
    until(lambda: states(holdfast) == {"a": "taken"})
    busy = holdfast("pool", "done", "jobs", "a")
    assert (busy.returncode, "taken by web-3" in busy.stderr) == (75, True)
    taken = holdfast("pool", "rm", "jobs", "a")
    assert (taken.returncode, "say --force" in taken.stderr) == (75, True)
    assert holdfast("pool", "rm", "jobs", "a", "--force").returncode == 0
    running.terminate()
    running.wait(20)
    assert states(holdfast) == {}


def test_words_that_make_no_sense_are_told(holdfast: Tool) -> None:
    for words in (["pool"], ["pool", "drain"]):
        done = holdfast(*words)
        assert (done.returncode, "holdfast pool add|run|ls|done|rm" in done.stderr) == (64, True)
    assert holdfast("pool", "ls").returncode == 64
    assert "POOL" in holdfast("pool", "run", "--help").stdout
    assert "stdin" in holdfast("help", "pool", "add").stdout
    assert "What shall run" in holdfast("pool", "run", "jobs").stderr


# -- run


def test_the_command_gets_the_item_and_the_item_is_done(holdfast: Tool) -> None:
    holdfast("pool", "add", "jobs", "a", "--body", '{"n": "ö"}')
    done = holdfast("pool", "run", "jobs", "--", "sh", "-c", 'echo "$HOLDFAST_NAME $HOLDFAST_ITEM $HOLDFAST_BODY"')
    assert said(done) == (0, 'jobs a {"n": "ö"}\n', "")
    assert states(holdfast) == {"a": "done"}


def test_a_command_that_fails_gives_the_item_back_for_later(holdfast: Tool) -> None:
    holdfast("pool", "add", "jobs", "a")
    assert holdfast("pool", "run", "jobs", "-c", "exit 3").returncode == 3
    (item,) = json.loads(holdfast("--json", "pool", "ls", "jobs").stdout)["items"]
    assert item["state"] == "resting"
    assert 0 < item["due_in"] <= 5
    holdfast("pool", "add", "jobs", "b")
    assert holdfast("pool", "run", "--back-off", "1h", "jobs", "-c", "exit 4").returncode == 4
    due = {i["key"]: i["due_in"] for i in json.loads(holdfast("--json", "pool", "ls", "jobs").stdout)["items"]}
    assert 3000 < due["b"] <= 3600
    early = holdfast("pool", "done", "jobs", "b")
    assert (early.returncode, "'b' of 'jobs' rests for another" in early.stderr) == (75, True)


def test_what_is_never_finished_is_given_back(holdfast: Tool) -> None:
    holdfast("pool", "add", "gpus", "gpu0")
    for _ in range(2):
        assert holdfast("pool", "run", "-n", "--give-back", "gpus", "-c", "echo $HOLDFAST_ITEM").stdout == "gpu0\n"
    assert states(holdfast, "gpus") == {"gpu0": "free"}


def test_one_item_and_no_other(holdfast: Tool) -> None:
    holdfast("pool", "add", "jobs", "a", "b")
    assert holdfast("pool", "run", "--key", "b", "jobs", "-c", "echo $HOLDFAST_ITEM").stdout == "b\n"
    assert states(holdfast) == {"a": "free", "b": "done"}


def test_nothing_to_be_had_is_75(holdfast: Tool) -> None:
    done = holdfast("pool", "run", "-n", "jobs", "true")
    assert said(done) == (75, "", "holdfast: Nothing of 'jobs' was to be had (the pool is empty).\n")
    assert holdfast("-q", "pool", "run", "-w", "50ms", "-E", "9", "jobs", "true").returncode == 9


def test_a_run_waits_for_what_is_added(holdfast: Tool) -> None:
    waiting = holdfast.start("pool", "run", "jobs", "-c", "echo $HOLDFAST_ITEM")
    assert waiting.stdout is not None
    until(lambda: (holdfast.folder / "locks.db").exists())
    holdfast("pool", "add", "jobs", "late")
    assert waiting.stdout.readline() == "late\n"
    assert waiting.wait(20) == 0


def test_a_run_that_is_ended_while_it_works_gives_the_item_back(holdfast: Tool) -> None:
    holdfast("pool", "add", "jobs", "a")
    running = holdfast.start("pool", "run", "jobs", "--", "sleep", "60")
    until(lambda: states(holdfast) == {"a": "taken"})
    running.terminate()
    assert running.wait(20) == 128 + signal.SIGTERM
    assert states(holdfast) == {"a": "resting"}


def test_a_run_that_is_killed_loses_the_item_to_the_next_after_its_lease(holdfast: Tool) -> None:
    holdfast("pool", "add", "jobs", "a")
    running = holdfast.start("pool", "run", "--lease", "1s", "jobs", "--", "sleep", "60")
    until(lambda: states(holdfast) == {"a": "taken"})
    running.kill()
    running.wait()
    done = holdfast("pool", "run", "-w", "10s", "jobs", "-c", "echo $HOLDFAST_ITEM")
    assert (done.returncode, done.stdout) == (0, "a\n")


# -- run --forever


def test_forever_goes_on_until_nothing_is_left(holdfast: Tool, tmp_path: Path) -> None:
    holdfast("pool", "add", "jobs", *"abcd")
    work = f'echo $HOLDFAST_ITEM >> {tmp_path}/seen; test "$HOLDFAST_ITEM" != b'
    done = holdfast("pool", "run", "--forever", "-n", "--back-off", "1h", "jobs", "-c", work)
    assert said(done) == (0, "", "")
    assert (tmp_path / "seen").read_text().split() == list("abcd")
    assert states(holdfast) == {"a": "done", "b": "resting", "c": "done", "d": "done"}


def test_forever_waits_for_more_and_ends_by_a_signal(holdfast: Tool, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    seen.touch()
    running = holdfast.start("pool", "run", "--forever", "jobs", "-c", f"echo $HOLDFAST_ITEM >> {seen}")
    for number, key in enumerate(("a", "b"), 1):
        holdfast("pool", "add", "jobs", key)
        until(lambda number=number: len(seen.read_text().split()) == number)
    until(lambda: states(holdfast) == {"a": "done", "b": "done"})
    running.terminate()
    assert running.wait(20) == 128 + signal.SIGTERM
    assert running.stderr is not None
    assert running.stderr.read() == ""


def test_forever_passes_its_end_on_to_the_command(holdfast: Tool) -> None:
    holdfast("pool", "add", "jobs", "a")
    running = holdfast.start("pool", "run", "--forever", "jobs", "-c", "echo $$ > pid; exec sleep 60")
    (pid,) = holdfast.pids("pid")
    running.terminate()
    assert running.wait(20) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert states(holdfast) == {"a": "resting"}


def test_forever_says_on_a_terminal_what_it_gives_back_when_it_is_stopped(holdfast: Tool) -> None:
    main, other = os.openpty()
    command = [*TOOL, "pool", "run", "--forever", "--give-back", "gpus", "-c", 'echo > "$HOLDFAST_ITEM"; sleep 60']
    running = subprocess.Popen(
        command, env=holdfast.env, cwd=holdfast.folder, stderr=other, stdin=subprocess.DEVNULL, start_new_session=True
    )
    time.sleep(AFTER + 0.5)  # a wait of that length prints a line, unless the pool prints one
    holdfast("pool", "add", "gpus", "gpu0")
    until((holdfast.folder / "gpu0").exists)
    running.terminate()
    assert running.wait(20) == 128 + signal.SIGTERM
    shown = os.read(main, 10_000).decode()
    os.close(main)
    os.close(other)
    assert shown.endswith("gpus: 0 used; stopped, and item 'gpu0' is given back\r\n")
    assert "holdfast:" not in shown, "one line, which nothing else runs into"


def test_forever_shows_how_far_it_is_on_a_terminal(holdfast: Tool) -> None:
    holdfast("pool", "add", "jobs", "a", "b")
    main, other = os.openpty()
    command = [*TOOL, "pool", "run", "--forever", "-n", "jobs", "-c", 'test "$HOLDFAST_ITEM" = a']
    done = subprocess.run(
        command, env=holdfast.env, stderr=other, stdin=subprocess.DEVNULL, start_new_session=True, timeout=30
    )
    assert done.returncode == 0
    shown = os.read(main, 10_000).decode()
    os.close(main)
    os.close(other)
    assert "jobs: 0 done; at a" in shown
    assert shown.endswith("jobs: 1 done, 1 given back after a failure; nothing left\r\n")

