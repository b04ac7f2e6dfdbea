"""`fairlock pool`: a work list for shell scripts."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fairlock.cli.wait_status_line import AFTER
from tests.cli.conftest import TOOL, Tool, until


def states(tool: Tool, pool: str = "jobs") -> dict[str, str]:
    seen = json.loads(tool("--json", "pool", "ls", pool).stdout)
    return {item["key"]: item["state"] for item in seen["items"]}


def args(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    return done.returncode, done.stdout, done.stderr


# -- add, ls, done, rm


def test_items_are_added_from_the_command_line_and_shown(fairlock: Tool) -> None:
    assert args(fairlock("pool", "add", "jobs", "a", "b", "--body", '{"n": 1}')) == (0, "2 added to 'jobs'\n", "")
    assert args(fairlock("pool", "add", "jobs", "b", "c"))[1] == "1 added to 'jobs', 1 already in it\n"
    lines = fairlock("pool", "ls", "jobs").stdout.splitlines()
    assert [line.split()[:2] for line in lines[:-1]] == [["KEY", "STATE"], ["a", "free"], ["b", "free"], ["c", "free"]]
    assert lines[1].endswith('{"n": 1}')
    assert lines[-1] == f"3 free in the pool 'jobs' of {fairlock.url}"


@pytest.mark.parametrize("dash", [[], ["-"]])
def test_items_are_added_from_stdin_one_per_line(fairlock: Tool, dash: list[str]) -> None:
    text = 'a\n\n  b c \n{"key": "d", "body": [1, null]}\n"e"\n{"key": "f"}\n'
    assert fairlock("--json", "pool", "add", "jobs", *dash, stdin=text).stdout == (
        '{"pool": "jobs", "added": 5, "there": 0}\n'
    )
    items = json.loads(fairlock("--json", "pool", "ls", "jobs").stdout)["items"]
    assert {i["key"]: i["body"] for i in items} == {"a": None, "b c": None, "d": [1, None], "e": None, "f": None}


@pytest.mark.parametrize(
    "line, why",
    [
        ("{nonsense", "Line 2 is not valid JSON"),
        ('{"body": 1}', 'Line 2 needs the form {"key": KEY, "body": …}'),
        ('{"key": "x", "boddy": 1}', "Line 2 needs the form"),
        ('{"key": 5}', "Line 2 needs the form"),
    ],
)
def test_one_bad_line_adds_nothing(fairlock: Tool, line: str, why: str) -> None:
    done = fairlock("pool", "add", "jobs", stdin=f"good\n{line}\n")
    assert done.returncode == 64
    assert why in done.stderr
    assert states(fairlock) == {}


def test_a_body_that_is_not_json_is_a_usage_error(fairlock: Tool) -> None:
    done = fairlock("pool", "add", "jobs", "a", "--body", "text")
    assert done.returncode == 64
    assert "--body needs JSON" in done.stderr


def test_a_body_that_is_too_large_is_an_error_and_nothing_is_added(fairlock: Tool) -> None:
    done = fairlock("pool", "add", "jobs", stdin="a\n" + json.dumps({"key": "b", "body": "x" * 70_000}) + "\n")
    assert done.returncode == 78
    assert "64 KiB" in done.stderr
    assert states(fairlock) == {}


def test_items_can_be_done_and_removed_by_hand(fairlock: Tool) -> None:
    fairlock("pool", "add", "jobs", "a", "b", "c")
    assert args(fairlock("pool", "done", "jobs", "a", "--body", '"by hand"')) == (0, "", "")
    assert args(fairlock("pool", "done", "jobs", "a")) == (0, "", "fairlock: 'a' of 'jobs' is already done.\n")
    assert fairlock("pool", "rm", "jobs", "b").returncode == 0
    assert states(fairlock) == {"a": "done", "c": "free"}
    for command in ("done", "rm"):
        gone = fairlock("pool", command, "jobs", "b")
        assert gone.returncode == 78
        assert gone.stderr.startswith("fairlock: There is no item 'b' in the pool 'jobs'.")
    (seen,) = json.loads(fairlock("--json", "pool", "ls", "jobs", "--state", "done").stdout)["items"]
    assert seen["body"] == "by hand"


def test_a_taken_item_is_neither_done_nor_removed_without_force(fairlock: Tool) -> None:
    fairlock("pool", "add", "jobs", "a")
    running = fairlock.start("pool", "run", "--owner", "web-3", "jobs", "--", "sleep", "30")
    until(lambda: states(fairlock) == {"a": "taken"})
    busy = fairlock("pool", "done", "jobs", "a")
    assert (busy.returncode, "taken by web-3" in busy.stderr) == (75, True)
    taken = fairlock("pool", "rm", "jobs", "a")
    assert (taken.returncode, "use --force" in taken.stderr) == (75, True)
    assert fairlock("pool", "rm", "jobs", "a", "--force").returncode == 0
    running.terminate()
    running.wait(20)
    assert states(fairlock) == {}


def test_a_usage_error_shows_the_form(fairlock: Tool) -> None:
    for words in (["pool"], ["pool", "drain"]):
        done = fairlock(*words)
        assert (done.returncode, "fairlock pool add|run|ls|done|rm" in done.stderr) == (64, True)
    assert fairlock("pool", "done").returncode == 64
    assert "POOL" in fairlock("pool", "run", "--help").stdout
    assert "stdin" in fairlock("help", "pool", "add").stdout
    assert "No command is given." in fairlock("pool", "run", "jobs").stderr


# -- run


def test_the_command_gets_the_item_and_the_item_is_done(fairlock: Tool) -> None:
    fairlock("pool", "add", "jobs", "a", "--body", '{"n": "ö"}')
    done = fairlock("pool", "run", "jobs", "--", "sh", "-c", 'echo "$FAIRLOCK_NAME $FAIRLOCK_ITEM $FAIRLOCK_BODY"')
    assert args(done) == (0, 'jobs a {"n": "ö"}\n', "")
    assert states(fairlock) == {"a": "done"}


def test_a_command_that_fails_gives_the_item_back_for_later(fairlock: Tool) -> None:
    fairlock("pool", "add", "jobs", "a")
    assert fairlock("pool", "run", "jobs", "-c", "exit 3").returncode == 3
    (item,) = json.loads(fairlock("--json", "pool", "ls", "jobs").stdout)["items"]
    assert item["state"] == "resting"
    assert 0 < item["due_in"] <= 5
    fairlock("pool", "add", "jobs", "b")
    assert fairlock("pool", "run", "--back-off", "1h", "jobs", "-c", "exit 4").returncode == 4
    due = {i["key"]: i["due_in"] for i in json.loads(fairlock("--json", "pool", "ls", "jobs").stdout)["items"]}
    assert 3000 < due["b"] <= 3600
    early = fairlock("pool", "done", "jobs", "b")
    assert (early.returncode, "'b' of 'jobs' rests for another" in early.stderr) == (75, True)


def test_give_back_returns_the_item(fairlock: Tool) -> None:
    fairlock("pool", "add", "gpus", "gpu0")
    for _ in range(2):
        assert fairlock("pool", "run", "-n", "--give-back", "gpus", "-c", "echo $FAIRLOCK_ITEM").stdout == "gpu0\n"
    assert states(fairlock, "gpus") == {"gpu0": "free"}


def test_only_the_item_with_this_key(fairlock: Tool) -> None:
    fairlock("pool", "add", "jobs", "a", "b")
    assert fairlock("pool", "run", "--key", "b", "jobs", "-c", "echo $FAIRLOCK_ITEM").stdout == "b\n"
    assert states(fairlock) == {"a": "free", "b": "done"}


def test_no_free_item_is_75(fairlock: Tool) -> None:
    done = fairlock("pool", "run", "-n", "jobs", "true")
    assert args(done) == (75, "", "fairlock: No item of 'jobs' is free (the pool is empty).\n")
    assert fairlock("-q", "pool", "run", "-w", "50ms", "-E", "9", "jobs", "true").returncode == 9


def test_a_run_waits_for_what_is_added(fairlock: Tool) -> None:
    waiting = fairlock.start("pool", "run", "jobs", "-c", "echo $FAIRLOCK_ITEM")
    assert waiting.stdout is not None
    until(lambda: (fairlock.folder / "locks.db").exists())
    fairlock("pool", "add", "jobs", "late")
    assert waiting.stdout.readline() == "late\n"
    assert waiting.wait(20) == 0


def test_a_run_that_is_ended_while_it_works_gives_the_item_back(fairlock: Tool) -> None:
    fairlock("pool", "add", "jobs", "a")
    running = fairlock.start("pool", "run", "jobs", "--", "sleep", "60")
    until(lambda: states(fairlock) == {"a": "taken"})
    running.terminate()
    assert running.wait(20) == 128 + signal.SIGTERM
    assert states(fairlock) == {"a": "resting"}


def test_a_run_that_is_killed_loses_the_item_to_the_next_after_its_lease(fairlock: Tool) -> None:
    fairlock("pool", "add", "jobs", "a")
    running = fairlock.start("pool", "run", "--lease", "1s", "jobs", "--", "sleep", "60")
    until(lambda: states(fairlock) == {"a": "taken"})
    running.kill()
    running.wait()
    done = fairlock("pool", "run", "-w", "10s", "jobs", "-c", "echo $FAIRLOCK_ITEM")
    assert (done.returncode, done.stdout) == (0, "a\n")


# -- run --forever


def test_forever_continues_until_no_item_is_left(fairlock: Tool, tmp_path: Path) -> None:
    fairlock("pool", "add", "jobs", *"abcd")
    work = f'echo $FAIRLOCK_ITEM >> {tmp_path}/seen; test "$FAIRLOCK_ITEM" != b'
    done = fairlock("pool", "run", "--forever", "-n", "--back-off", "1h", "jobs", "-c", work)
    assert args(done) == (0, "", "")
    assert (tmp_path / "seen").read_text().split() == list("abcd")
    assert states(fairlock) == {"a": "done", "b": "resting", "c": "done", "d": "done"}


def test_forever_waits_for_more_and_ends_by_a_signal(fairlock: Tool, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    seen.touch()
    running = fairlock.start("pool", "run", "--forever", "jobs", "-c", f"echo $FAIRLOCK_ITEM >> {seen}")
    for number, key in enumerate(("a", "b"), 1):
        fairlock("pool", "add", "jobs", key)
        until(lambda number=number: len(seen.read_text().split()) == number)
    until(lambda: states(fairlock) == {"a": "done", "b": "done"})
    running.terminate()
    assert running.wait(20) == 128 + signal.SIGTERM
    assert running.stderr is not None
    assert running.stderr.read() == ""


def test_forever_passes_its_end_on_to_the_command(fairlock: Tool) -> None:
    fairlock("pool", "add", "jobs", "a")
    running = fairlock.start("pool", "run", "--forever", "jobs", "-c", "echo $$ > pid; exec sleep 60")
    (pid,) = fairlock.pids("pid")
    running.terminate()
    assert running.wait(20) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert states(fairlock) == {"a": "resting"}


def test_forever_shows_on_a_terminal_what_it_gives_back_when_it_is_stopped(fairlock: Tool) -> None:
    main, other = os.openpty()
    command = [*TOOL, "pool", "run", "--forever", "--give-back", "gpus", "-c", 'echo > "$FAIRLOCK_ITEM"; sleep 60']
    running = subprocess.Popen(
        command, env=fairlock.env, cwd=fairlock.folder, stderr=other, stdin=subprocess.DEVNULL, start_new_session=True
    )
    time.sleep(AFTER + 0.5)  # a wait of that length prints a line, unless the pool prints one
    fairlock("pool", "add", "gpus", "gpu0")
    until((fairlock.folder / "gpu0").exists)
    running.terminate()
    assert running.wait(20) == 128 + signal.SIGTERM
    shown = os.read(main, 10_000).decode()
    os.close(main)
    os.close(other)
    assert shown.endswith("gpus: 0 used; stopped; item 'gpu0' is given back\r\n")
    assert "fairlock:" not in shown, "one line, which nothing else runs into"


def test_forever_shows_how_far_it_is_on_a_terminal(fairlock: Tool) -> None:
    fairlock("pool", "add", "jobs", "a", "b")
    main, other = os.openpty()
    command = [*TOOL, "pool", "run", "--forever", "-n", "jobs", "-c", 'test "$FAIRLOCK_ITEM" = a']
    done = subprocess.run(
        command, env=fairlock.env, stderr=other, stdin=subprocess.DEVNULL, start_new_session=True, timeout=30
    )
    assert done.returncode == 0
    shown = os.read(main, 10_000).decode()
    os.close(main)
    os.close(other)
    assert "jobs: 0 done; at a" in shown
    assert shown.endswith("jobs: 1 done, 1 given back after a failure; no item left\r\n")



def test_a_pool_is_listed_and_shown_with_its_owners_and_waiters(fairlock: Tool) -> None:
    fairlock("pool", "add", "jobs", "a", "b")
    fairlock("pool", "add", "idle", "x")
    fairlock.start("pool", "run", "--owner", "web-3", "--key", "a", "jobs", "sleep", "60")
    until(lambda: json.loads(fairlock("pool", "ls", "jobs", "--json").stdout)["counts"]["taken"] == 1)
    until(lambda: "jobs" in fairlock("ls").stdout)
    row = fairlock("ls").stdout.splitlines()[1].split()
    assert row[:4] == ["jobs", "pool", "1/2", "web-3"]
    shown = fairlock("show", "jobs").stdout
    assert shown.startswith("jobs: pool, 1 free, 1 taken, in ")
    assert re.search(r"^  web-3 .* a$", shown, re.M)
    (resource,) = json.loads(fairlock("show", "jobs", "--json").stdout)["resources"]
    assert (resource["kind"], resource["items"]["taken"], resource["holders"][0]["item"]) == ("pool", 1, "a")
    for words in (("top", "--once"), ("top", "--once", "jobs"), ("top", "--once", "j*")):
        assert fairlock(*words).stdout.splitlines()[1].split()[:3] == ["jobs", "1/2", "web-3"], words
    assert fairlock("ls", "jobs").stdout.splitlines()[1].split()[:4] == ["jobs", "pool", "1/2", "web-3"]
    assert fairlock("ls", "idle").stdout.startswith("no busy names")
    assert fairlock("ls", "--all", "idle").stdout.splitlines()[1].split()[:3] == ["idle", "pool", "0/1"]


def test_the_pools_of_all_namespaces_are_listed_at_once(fairlock: Tool) -> None:
    for namespace, pool in (("", "jobs"), ("one", "jobs"), ("two", "more")):
        assert fairlock("--namespace", namespace, "pool", "add", pool, "a").returncode == 0
    head, *rows, _ = fairlock("--namespace", "*", "pool", "ls").stdout.splitlines()
    assert head.split()[:3] == ["NAMESPACE", "POOL", "FREE"]
    assert [row.split()[:2] for row in rows] == [["jobs", "1"], ["one", "jobs"], ["two", "more"]]
    found = json.loads(fairlock("--namespace", "*", "pool", "ls", "--json").stdout)["pools"]
    assert [(one["namespace"], one["name"]) for one in found] == [("", "jobs"), ("one", "jobs"), ("two", "more")]


def test_without_a_name_pool_ls_lists_the_pools(fairlock: Tool) -> None:
    assert fairlock("pool", "ls").stdout == f"no pools in {fairlock.url}\n"
    fairlock("pool", "add", "jobs", "a", "b")
    fairlock("pool", "add", "more", "x")
    fairlock("pool", "done", "jobs", "a")
    head, *rows, last = fairlock("pool", "ls").stdout.splitlines()
    assert head.split() == ["POOL", "FREE", "RESTING", "TAKEN", "EXPIRED", "DONE", "WAITING"]
    assert [row.split() for row in rows] == [["jobs", *"100010"], ["more", *"100000"]]
    assert last == f"2 pools in {fairlock.url}"
    found = json.loads(fairlock("pool", "ls", "--json").stdout)["pools"]
    assert [(one["name"], one["counts"]["done"], one["waiting"]) for one in found] == [("jobs", 1, 0), ("more", 0, 0)]
    assert fairlock("pool", "ls", "--state", "free").returncode == 64
