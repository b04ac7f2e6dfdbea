"""The commands for scripts and operators: ls, show, acquire, renew, release, doctor, schema."""

import json
import re
import shlex
import signal
import sqlite3
import subprocess
import time

import pytest

from tests.cli.conftest import TOOL, Tool, until


def test_ls_names_the_store_and_says_who_holds_what(holdfast: Tool) -> None:
    assert holdfast("ls").stdout == f"no names in {holdfast.url}\n"
    holdfast.holding("run", "--owner", "web-3", "--note", "ship order", "orders", "sleep", "60", name="orders")
    holdfast("run", "idle", "true")
    lines = holdfast("ls").stdout.splitlines()
    assert lines[0].split() == ["NAME", "KIND", "HELD", "BY", "FOR", "LEASE", "LINE", "NOTE"]
    assert lines[1].split() == ["idle", "lock"]
    assert lines[2].split()[:3] == ["orders", "lock", "web-3"]
    assert lines[2].endswith("ship order")
    assert lines[3] == f"2 names in {holdfast.url}"
    assert "idle" not in holdfast("ls", "--held").stdout
    assert holdfast("ls", "--waited").stdout.startswith("no names")
    assert holdfast("ls", "--stale").stdout.startswith("no names")
    assert holdfast("ls", "id*").stdout.splitlines()[-1].startswith("1 name in")


def test_ls_shows_lines_and_slots(holdfast: Tool) -> None:
    holdfast.holding("run", "--slots", "1", "gpu", "sleep", "60", name="gpu")
    holdfast.start("run", "--slots", "1", "gpu", "true")
    until(lambda: holdfast.line("gpu"))
    row = holdfast("ls", "--waited").stdout.splitlines()[1].split()
    assert row[:3] == ["gpu", "semaphore", "1/1"]
    assert row[6] == "1"


def test_json_has_the_keys_of_the_snapshot(holdfast: Tool) -> None:
    holdfast.holding("run", "--owner", "web-3", "x", "sleep", "60")
    holdfast.start("run", "--owner", "web-4", "x", "true")
    until(lambda: holdfast.line("x"))
    seen = json.loads(holdfast("--json", "ls").stdout)
    assert set(seen) == {"store", "now", "resources"}
    assert set(json.loads(holdfast("show", "x", "--json").stdout)) == {*seen, "pool"}
    assert seen["store"] == holdfast.url
    (it,) = seen["resources"]
    assert set(it) == {"name", "kind", "capacity", "fence", "inside", "line", "expired"}
    assert set(it["inside"][0]) == {"owner", "note", "ticket", "fence", "weight", "held_for", "left"}
    assert set(it["line"][0]) == {"owner", "note", "ticket", "weight", "waited", "left"}
    assert (it["inside"][0]["owner"], it["line"][0]["owner"]) == ("web-3", "web-4")


def test_show_tells_everything_about_one_name(holdfast: Tool) -> None:
    assert holdfast("show", "x").stdout == f"there is no lock and no pool 'x' in {holdfast.url}\n"
    holdfast.holding("run", "-s", "--owner", "web-3", "x", "sleep", "60")
    holdfast.start("run", "--owner", "web-4", "--note", "rebuild", "x", "true")
    until(lambda: holdfast.line("x"))
    out = holdfast("show", "x").stdout
    assert out.startswith("x: rwlock, last fence ")
    assert [word in out for word in ("inside", "web-3", "reader", "in line", "web-4", "alone", "rebuild")] == [True] * 7


def test_a_name_with_a_star_is_a_name_to_show_and_a_pattern_to_ls(holdfast: Tool) -> None:
    holdfast("run", "a*", "true")
    holdfast("run", "ab", "true")
    assert len(json.loads(holdfast("show", "a*", "--json").stdout)["resources"]) == 1
    assert len(json.loads(holdfast("ls", "a*", "--json").stdout)["resources"]) == 2


def test_a_reader_of_the_table_may_leave_early(holdfast: Tool) -> None:
    holdfast("run", "x", "true")
    text = f"{' '.join(TOOL)} ls | true"
    done = subprocess.run(["sh", "-c", text], env=holdfast.env, capture_output=True, text=True)
    assert done.stderr == ""


# A lease without a process.


def test_a_lease_that_lives_without_a_process(holdfast: Tool) -> None:
    ticket = holdfast("acquire", "x", "--lease", "10m", "--note", "deploy").stdout.strip()
    assert len(ticket) == 32
    refused = holdfast("run", "-n", "x", "true")
    assert refused.returncode == 75
    assert "(deploy)" in refused.stderr
    assert holdfast("acquire", "-n", "x").returncode == 75
    assert holdfast("renew", "x", "--ticket", ticket).stdout == "'x' is yours for another 10m00s\n"
    assert holdfast("release", "x", "--ticket", ticket).returncode == 0
    assert holdfast("run", "-n", "x", "true").returncode == 0
    late = holdfast("renew", "x", HOLDFAST_TICKET=ticket)
    assert late.returncode == 79
    assert late.stderr.startswith("holdfast: Nobody holds 'x' by this ticket: released, or run out.")
    assert holdfast("release", "x", "--ticket", ticket).returncode == 79


def test_it_ends_by_itself(holdfast: Tool) -> None:
    holdfast("acquire", "x", "--lease", "1")
    assert holdfast("run", "-w", "20", "x", "echo", "in").stdout == "in\n"


def test_acquire_in_json(holdfast: Tool) -> None:
    got = json.loads(holdfast("acquire", "x", "--lease", "60", "--json").stdout)
    assert set(got) == {"name", "ticket", "fence", "lease"}
    assert (got["name"], got["lease"]) == ("x", 60)
    again = json.loads(holdfast("renew", "x", "--ticket", got["ticket"], "--json").stdout)
    assert (again["name"], again["fence"]) == ("x", got["fence"])
    assert 59 < again["left"] <= 60
    done = json.loads(holdfast("release", "x", "--ticket", got["ticket"], "--json").stdout)
    assert done == {"name": "x", "held": True}


def test_with_a_ticket_of_its_own_an_acquire_may_be_repeated(holdfast: Tool) -> None:
    first, second = (holdfast("acquire", "x", "--ticket", "job4711", "--json", "-n") for _ in range(2))
    assert json.loads(first.stdout) == json.loads(second.stdout)
    assert holdfast("acquire", "x", "--ticket", "another1", "-n").returncode == 75
    assert holdfast("acquire", "x", "--ticket", "no good").returncode == 64


def test_readers_and_slots_can_be_acquired_too(holdfast: Tool) -> None:
    assert [holdfast("acquire", "-s", "-n", "r").returncode for _ in range(2)] == [0, 0]
    assert [holdfast("acquire", "--slots", "2", "-n", "s").returncode for _ in range(3)] == [0, 0, 75]


def test_which_lease_is_a_fair_question(holdfast: Tool) -> None:
    done = holdfast("renew", "x")
    assert done.returncode == 64
    assert "Which lease?" in done.stderr


def test_ctrl_c_while_acquiring_leaves_nothing(holdfast: Tool) -> None:
    holdfast("acquire", "x")
    it = holdfast.start("acquire", "x")
    until(lambda: holdfast.line("x"))
    it.send_signal(signal.SIGINT)
    assert it.wait(20) == 130
    assert it.stderr is not None
    assert it.stderr.read() == ""
    assert holdfast.line("x") == []


# What has ended, and what the store is like.


def test_a_lease_that_has_run_out_is_not_listed_as_held(holdfast: Tool) -> None:
    holdfast("acquire", "--lease", "0.5s", "--owner", "late", "x")
    time.sleep(0.6)
    assert holdfast("ls", "--held").stdout.startswith("no names")
    assert "late" not in holdfast("ls").stdout
    assert re.search(r"x +lock +late +0?.*run out", holdfast("ls", "--stale").stdout)
    shown = holdfast("show", "x").stdout
    assert "nobody is inside\n\nthe lease has run out, and nobody else has come\n" in shown
    assert "Nobody holds 'x'" in holdfast("evict", "x", "--reason", "late", "-y").stderr


def test_what_only_stays_closed_names_nobody_as_its_holder(holdfast: Tool) -> None:
    assert holdfast("run", "--at-least", "5m", "--owner", "gone", "x", "true").returncode == 0
    for command in (["ls"], ["show", "x"]):
        shown = holdfast(*command).stdout
        assert "kept closed" in shown
        assert "gone" not in shown
    refused = holdfast("run", "-n", "x", "true")
    assert refused.returncode == 75
    assert re.fullmatch(r"holdfast: 'x' is kept closed for another \d+ s\.\n", refused.stderr)


def test_doctor_says_what_it_found(holdfast: Tool) -> None:
    done = holdfast("doctor")
    assert done.returncode == 0
    assert f"The store is {holdfast.url}, chosen by HOLDFAST_URL." in done.stdout
    assert "It answers in" in done.stdout
    found = json.loads(holdfast("doctor", "--json").stdout)
    assert found["span"] == "machine"
    assert {check["level"] for check in found["checks"]} <= {"ok", "note", "warning", "error"}


def test_a_damaged_name_is_shown_and_repaired_and_the_others_go_on(holdfast: Tool) -> None:
    for name in ("good", "it's bad"):
        holdfast("run", name, "true")
    with sqlite3.connect(holdfast.folder / "locks.db") as db:
        db.execute("UPDATE holdfast_locks SET body='[2,' WHERE key LIKE '%bad'")
    db.close()
    listed = [line.split()[-2:] for line in holdfast("ls").stdout.splitlines()[1:3]]
    assert listed == [["good", "lock"], ["bad", "damaged"]]
    assert "damaged, in" in holdfast("show", "it's bad").stdout
    assert holdfast("run", "good", "true").returncode == 0
    done = holdfast("run", "it's bad", "true")
    assert done.returncode == 77
    assert "is damaged" in done.stderr
    assert "Traceback" not in done.stderr
    found = holdfast("doctor")
    assert found.returncode == 78
    assert "error    The record of \"it's bad\" is damaged" in found.stdout
    cure = found.stdout.partition("`holdfast ")[2].partition("`")[0]
    assert holdfast(*shlex.split(cure)).returncode == 64, "it asks, and there is no terminal"
    assert "was reset" in holdfast(*shlex.split(cure), "-y").stdout
    assert "Nothing is damaged" in holdfast(*shlex.split(cure), "-y").stderr
    assert json.loads(holdfast(*shlex.split(cure), "-y", "--json").stdout) == {"name": "it's bad", "done": []}
    assert holdfast("run", "it's bad", "true").returncode == 0
    assert holdfast("doctor").returncode == 0


def test_schema_prints_and_runs_nothing(holdfast: Tool) -> None:
    other = holdfast.folder / "other.db"
    done = holdfast("schema", f"sqlite:///{other}")
    assert "CREATE TABLE holdfast_locks" in done.stdout
    assert not other.exists()


# What cannot be.


@pytest.mark.parametrize(
    "name, says",
    [("", "A name must not be empty"), ("a" * 201, "at most 200 bytes"), ("é" * 101, "at most 200 bytes"),
     ("a\nb", "no control characters"), ("a\x1b[31mb", "no control characters"), ("a\udc80", "UTF-8"),
     ("a" * 100_000, "at most 200 bytes")],
)
@pytest.mark.parametrize("command", ["run", "acquire", "release", "evict", "show"])
def test_a_bad_name_is_a_sentence_and_78(holdfast: Tool, command: str, name: str, says: str) -> None:
    args = {"run": ["run", name, "true"], "evict": ["evict", name, "--reason", "x", "-y"], "show": ["show", name]}
    done = holdfast(*args.get(command, [command, name, "--ticket", "t"]))
    assert done.returncode == 78
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize(
    "args, code, says",
    [
        (["-u", "nosuch://host", "ls"], 78, "nosuch"),
        (["-u", "not a url", "ls"], 78, "not a store's URL"),
        (["-u", "memory://", "run", "x", "true"], 78, "ends with this process"),
        (["--span", "machines", "run", "x", "true"], 78, "reaches only this machine"),
        (["run", "--lease", "0", "x", "true"], 78, "lease"),
        (["run", "--lease", "100ms", "x", "true"], 78, "at least 0.5 s"),
        (["run", "--lease", "9999999999999", "x", "true"], 78, "ten years"),
        (["run", "--lease", "nan", "x", "true"], 64, "--lease wants a duration"),
        (["run", "--note", "a\nb", "x", "true"], 78, "no control characters"),
        (["run", "--slots", "9999999999", "x", "true"], 78, "slots"),
        (["run", "--max-hold", "0", "x", "true"], 78, "max_hold"),
        (["-u", "sqlite:////proc/nowhere/locks.db", "run", "x", "true"], None, "/proc/nowhere"),
        (["-u", "sqlite:///plain.txt", "run", "x", "true"], None, "plain.txt"),
    ],
)
def test_bad_input_is_a_sentence_and_its_code(holdfast: Tool, args: list[str], code: int | None, says: str) -> None:
    (holdfast.folder / "plain.txt").write_text("This is not a database. " * 100)
    done = holdfast(*args)
    assert done.returncode in ([code] if code else [69, 77, 78])
    assert says in done.stderr
    assert done.stderr.startswith("holdfast: ")
    assert done.stderr.count("\n") == 1
    assert "bug" not in done.stderr
    assert done.stdout == ""


def test_without_a_url_it_is_a_file_of_this_user(holdfast: Tool) -> None:
    del holdfast.env["HOLDFAST_URL"]
    done = holdfast("run", "hello", "--", "echo", "hi")
    assert (done.returncode, done.stdout, done.stderr) == (0, "hi\n", "")
    assert str(holdfast.folder) in holdfast("ls").stdout


def test_verbose_says_what_happens_and_quiet_does_not(holdfast: Tool) -> None:
    loud = holdfast("-v", "run", "x", "true").stderr
    assert "holdfast: 'x' acquired, fence " in loud
    assert "holdfast: 'x' released.\n" in loud
    assert holdfast("-q", "run", "x", "true").stderr == ""


def test_version(holdfast: Tool) -> None:
    assert holdfast("--version").stdout.startswith("holdfast 0.")


# Encodings


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_an_output_that_cannot_write_every_character_gets_what_it_can(holdfast: Tool, encoding: str) -> None:
    helped = holdfast("--help", PYTHONIOENCODING=encoding)
    assert (helped.returncode, helped.stderr) == (0, "")
    assert ("…" if encoding == "utf-8" else "...") in helped.stdout
    holdfast("acquire", "größe→")
    listed = holdfast("show", "größe→", PYTHONIOENCODING=encoding)
    assert listed.returncode == 0
    assert "\\u2192" in listed.stdout or encoding == "utf-8"


def test_an_input_that_is_no_text_is_said(holdfast: Tool) -> None:
    it = holdfast.start("pool", "add", "jobs", PYTHONIOENCODING="utf-8:strict")
    assert it.stdin is not None
    it.stdin.buffer.write(b"one\ncaf\xe9\n")
    _, err = it.communicate()
    assert (it.returncode, err) == (64, "holdfast: stdin is not text in utf-8. Nothing was added.\n")


# A name that is a pool


def test_show_knows_pools(holdfast: Tool) -> None:
    holdfast("pool", "add", "jobs", "a", "b")
    holdfast("pool", "run", "jobs", "true")
    says = f"'jobs' is a pool in {holdfast.url}: 1 free, 1 done. `holdfast pool ls` lists its items.\n"
    assert holdfast("show", "jobs").stdout == says
    holdfast("acquire", "jobs")
    assert holdfast("show", "jobs").stdout.startswith(says + "jobs: lock")
    shown = json.loads(holdfast("show", "jobs", "--json").stdout)
    assert (shown["pool"]["free"], shown["pool"]["done"], shown["resources"][0]["name"]) == (1, 1, "jobs")
    assert json.loads(holdfast("show", "x", "--json").stdout)["pool"] is None
