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


def test_ls_names_the_store_and_the_holders(fairlock: Tool) -> None:
    assert fairlock("ls").stdout == f"no busy names in {fairlock.url}\n"
    assert fairlock("ls", "--all").stdout == f"no names in {fairlock.url}\n"
    fairlock.holding("run", "--owner", "web-3", "--note", "ship order", "orders", "sleep", "60", name="orders")
    fairlock("run", "idle", "true")
    lines = fairlock("ls").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["NAME", "orders", "1"]
    assert lines[2] == f"1 busy name in {fairlock.url}"
    lines = fairlock("ls", "--all").stdout.splitlines()
    assert lines[0].split() == ["NAME", "KIND", "HELD", "BY", "FOR", "LEASE", "WAITING", "NOTE"]
    assert lines[1].split() == ["idle", "lock"]
    assert lines[2].split()[:3] == ["orders", "lock", "web-3"]
    assert lines[2].endswith("ship order")
    assert lines[3] == f"2 names in {fairlock.url}"
    assert "idle" not in fairlock("ls", "--held").stdout
    assert fairlock("ls", "--waited").stdout.startswith("no names")
    assert fairlock("ls", "--stale").stdout.startswith("no names")
    assert fairlock("ls", "id*", "-a").stdout.splitlines()[-1].startswith("1 name in")


def test_ls_shows_waiters_and_slots(fairlock: Tool) -> None:
    fairlock.holding("run", "--slots", "1", "gpu", "sleep", "60", name="gpu")
    fairlock.start("run", "--slots", "1", "gpu", "true")
    until(lambda: fairlock.queue("gpu"))
    row = fairlock("ls", "--waited").stdout.splitlines()[1].split()
    assert row[:3] == ["gpu", "semaphore", "1/1"]
    assert row[6] == "1"


def test_json_has_the_keys_of_the_snapshot(fairlock: Tool) -> None:
    fairlock.holding("run", "--owner", "web-3", "x", "sleep", "60")
    fairlock.start("run", "--owner", "web-4", "x", "true")
    until(lambda: fairlock.queue("x"))
    seen = json.loads(fairlock("--json", "ls").stdout)
    assert set(seen) == {"store", "now", "resources"}
    assert set(json.loads(fairlock("show", "x", "--json").stdout)) == {*seen, "pool", "audit"}
    assert seen["store"] == fairlock.url
    (it,) = seen["resources"]
    assert set(it) == {"name", "kind", "capacity", "fence", "holders", "queue", "expired", "namespace", "items"}
    held = {"owner", "note", "ticket", "fence", "weight", "held_for", "expires_in", "thread", "item", "asked"}
    assert set(it["holders"][0]) == held
    assert set(it["queue"][0]) == {"owner", "note", "ticket", "weight", "waited", "expires_in", "thread"}
    assert (it["holders"][0]["owner"], it["queue"][0]["owner"]) == ("web-3", "web-4")


def test_show_prints_one_name_in_detail(fairlock: Tool) -> None:
    assert fairlock("show", "x").stdout == f"there is no lock and no pool 'x' in {fairlock.url}\n"
    fairlock.holding("run", "-s", "--owner", "web-3", "x", "sleep", "60")
    fairlock.start("run", "--owner", "web-4", "--note", "rebuild", "x", "true")
    until(lambda: fairlock.queue("x"))
    out = fairlock("show", "x").stdout
    assert out.startswith("x: rwlock, last fence ")
    for text in ("holders", "web-3", "shared", "in the queue", "web-4", "exclusive", "rebuild"):
        assert text in out


def test_a_name_with_a_star_is_a_name_to_show_and_a_pattern_to_ls(fairlock: Tool) -> None:
    fairlock("run", "a*", "true")
    fairlock("run", "ab", "true")
    assert len(json.loads(fairlock("show", "a*", "--json").stdout)["resources"]) == 1
    assert len(json.loads(fairlock("ls", "--all", "a*", "--json").stdout)["resources"]) == 2


def test_a_reader_of_the_table_may_leave_early(fairlock: Tool) -> None:
    fairlock("run", "x", "true")
    text = f"{' '.join(TOOL)} ls | true"
    done = subprocess.run(["sh", "-c", text], env=fairlock.env, capture_output=True, text=True)
    assert done.stderr == ""


# A lease without a process.


def test_a_lease_without_a_process(fairlock: Tool) -> None:
    ticket = fairlock("acquire", "x", "--lease", "10m", "--note", "deploy").stdout.strip()
    assert len(ticket) == 32
    refused = fairlock("run", "-n", "x", "true")
    assert refused.returncode == 75
    assert "(deploy)" in refused.stderr
    assert fairlock("acquire", "-n", "x").returncode == 75
    assert fairlock("renew", "x", "--ticket", ticket).stdout == "'x' is held for another 10m00s\n"
    assert fairlock("release", "x", "--ticket", ticket).returncode == 0
    assert fairlock("run", "-n", "x", "true").returncode == 0
    late = fairlock("renew", "x", FAIRLOCK_TICKET=ticket)
    assert late.returncode == 79
    assert late.stderr.startswith("fairlock: 'x' is not held with this ticket: it was released, or its lease")
    assert fairlock("release", "x", "--ticket", ticket).returncode == 79


def test_it_ends_by_itself(fairlock: Tool) -> None:
    fairlock("acquire", "x", "--lease", "1")
    assert fairlock("run", "-w", "20", "x", "echo", "in").stdout == "in\n"


def test_acquire_in_json(fairlock: Tool) -> None:
    got = json.loads(fairlock("acquire", "x", "--lease", "60", "--json").stdout)
    assert set(got) == {"name", "ticket", "fence", "lease"}
    assert (got["name"], got["lease"]) == ("x", 60)
    again = json.loads(fairlock("renew", "x", "--ticket", got["ticket"], "--json").stdout)
    assert (again["name"], again["fence"]) == ("x", got["fence"])
    assert 59 < again["expires_in"] <= 60
    done = json.loads(fairlock("release", "x", "--ticket", got["ticket"], "--json").stdout)
    assert done == {"name": "x", "held": True}


def test_with_a_ticket_of_its_own_an_acquire_may_be_repeated(fairlock: Tool) -> None:
    first, second = (fairlock("acquire", "x", "--ticket", "job4711", "--json", "-n") for _ in range(2))
    assert json.loads(first.stdout) == json.loads(second.stdout)
    assert fairlock("acquire", "x", "--ticket", "another1", "-n").returncode == 75
    assert fairlock("acquire", "x", "--ticket", "no good").returncode == 64


def test_readers_and_slots_can_be_acquired_too(fairlock: Tool) -> None:
    assert [fairlock("acquire", "-s", "-n", "r").returncode for _ in range(2)] == [0, 0]
    assert [fairlock("acquire", "--slots", "2", "-n", "s").returncode for _ in range(3)] == [0, 0, 75]


def test_a_missing_ticket_is_a_usage_error(fairlock: Tool) -> None:
    done = fairlock("renew", "x")
    assert done.returncode == 64
    assert "No lease is named." in done.stderr


def test_ctrl_c_while_acquiring_leaves_nothing(fairlock: Tool) -> None:
    fairlock("acquire", "x")
    it = fairlock.start("acquire", "x")
    until(lambda: fairlock.queue("x"))
    it.send_signal(signal.SIGINT)
    assert it.wait(20) == 130
    assert it.stderr is not None
    assert it.stderr.read() == ""
    assert fairlock.queue("x") == []


# Expired leases, and the state of the store.


def test_an_expired_lease_is_listed_as_such_and_not_as_held(fairlock: Tool) -> None:
    fairlock("acquire", "--lease", "0.5s", "--owner", "late", "x")
    time.sleep(0.6)
    assert fairlock("ls", "--held").stdout.startswith("no names")
    for command in (["ls"], ["ls", "--stale"]):
        assert re.search(r"x +lock +late +\S+ +expired", fairlock(*command).stdout), "it names the owner"
    shown = fairlock("show", "x").stdout
    assert "no holder\n\nexpired leases, not yet taken by another\n" in shown
    assert "'x' has no holder in" in fairlock("evict", "x", "--reason", "late", "-y").stderr


def test_a_name_that_stays_closed_has_no_holder(fairlock: Tool) -> None:
    assert fairlock("run", "--at-least", "5m", "--owner", "gone", "x", "true").returncode == 0
    for command in (["ls"], ["show", "x"]):
        shown = fairlock(*command).stdout
        assert "kept closed" in shown
        assert "gone" not in shown
    refused = fairlock("run", "-n", "x", "true")
    assert refused.returncode == 75
    assert re.fullmatch(r"fairlock: 'x' is kept closed for another \d+ s\.\n", refused.stderr)


def test_doctor_prints_its_checks(fairlock: Tool) -> None:
    done = fairlock("doctor")
    assert done.returncode == 0
    assert f"The store is {fairlock.url}, chosen by FAIRLOCK_URL." in done.stdout
    assert "It replies in" in done.stdout
    found = json.loads(fairlock("doctor", "--json").stdout)
    assert found["scope"] == "machine"
    assert {check["level"] for check in found["checks"]} <= {"ok", "note", "warning", "error"}


def test_a_damaged_name_is_shown_and_repaired_and_the_others_go_on(fairlock: Tool) -> None:
    for name in ("good", "it's bad"):
        fairlock("run", name, "true")
    with sqlite3.connect(fairlock.folder / "locks.db") as db:
        db.execute("UPDATE fairlock_locks SET body='[3,' WHERE key LIKE '%bad'")
    db.close()
    listed = [line.split()[-2:] for line in fairlock("ls", "--all").stdout.splitlines()[1:3]]
    assert listed == [["good", "lock"], ["bad", "damaged"]]
    assert "damaged, in" in fairlock("show", "it's bad").stdout
    assert fairlock("run", "good", "true").returncode == 0
    done = fairlock("run", "it's bad", "true")
    assert done.returncode == 77
    assert "is damaged" in done.stderr
    assert "Traceback" not in done.stderr
    found = fairlock("doctor")
    assert found.returncode == 78
    assert "error    The record of \"it's bad\" in sqlite:///" in found.stdout and " is damaged: " in found.stdout
    cure = found.stdout.partition("`fairlock ")[2].partition("`")[0]
    assert fairlock(*shlex.split(cure)).returncode == 64, "it asks, and there is no terminal"
    assert "was reset" in fairlock(*shlex.split(cure), "-y").stdout
    assert "Nothing is damaged" in fairlock(*shlex.split(cure), "-y").stderr
    assert json.loads(fairlock(*shlex.split(cure), "-y", "--json").stdout) == {"name": "it's bad", "done": []}
    assert fairlock("run", "it's bad", "true").returncode == 0
    assert fairlock("doctor").returncode == 0


def test_schema_says_what_a_namespace_does_not_do(fairlock: Tool) -> None:
    done = fairlock("--namespace", "shop", "schema")
    assert "no rights can be limited to 'shop'. Use a database, schema, keyspace or file of its own." in done.stdout


def test_schema_prints_and_runs_nothing(fairlock: Tool) -> None:
    other = fairlock.folder / "other.db"
    done = fairlock("schema", f"sqlite:///{other}")
    assert "CREATE TABLE fairlock_locks" in done.stdout
    assert not other.exists()


# Bad input.


@pytest.mark.parametrize(
    "name, text",
    [("", "A name must not be empty"), ("a" * 201, "at most 200 bytes"), ("é" * 101, "at most 200 bytes"),
     ("a\nb", "no control characters"), ("a\x1b[31mb", "no control characters"), ("a\udc80", "UTF-8"),
     ("a" * 100_000, "at most 200 bytes")],
)
@pytest.mark.parametrize("command", ["run", "acquire", "release", "evict", "show"])
def test_a_bad_name_is_a_sentence_and_78(fairlock: Tool, command: str, name: str, text: str) -> None:
    args = {"run": ["run", name, "true"], "evict": ["evict", name, "--reason", "x", "-y"], "show": ["show", name]}
    done = fairlock(*args.get(command, [command, name, "--ticket", "t"]))
    assert done.returncode == 78
    assert text in done.stderr
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize(
    "args, code, text",
    [
        (["-u", "nosuch://host", "ls"], 78, "nosuch"),
        (["-u", "not a url", "ls"], 78, "not a store's URL"),
        (["-u", "memory://", "run", "x", "true"], 78, "ends with this process"),
        (["--scope", "machines", "run", "x", "true"], 78, "reaches only this machine"),
        (["run", "--lease", "0", "x", "true"], 78, "lease"),
        (["run", "--lease", "100ms", "x", "true"], 78, "at least 0.5 s"),
        (["run", "--lease", "9999999999999", "x", "true"], 78, "ten years"),
        (["run", "--lease", "nan", "x", "true"], 64, "--lease needs a duration"),
        (["run", "--note", "a\nb", "x", "true"], 78, "no control characters"),
        (["run", "--slots", "9999999999", "x", "true"], 78, "slots"),
        (["run", "--max-hold", "0", "x", "true"], 78, "max_hold"),
        (["-u", "sqlite:////proc/nowhere/locks.db", "run", "x", "true"], None, "/proc/nowhere"),
        (["-u", "sqlite:///plain.txt", "run", "x", "true"], None, "plain.txt"),
    ],
)
def test_bad_input_is_a_sentence_and_its_code(fairlock: Tool, args: list[str], code: int | None, text: str) -> None:
    (fairlock.folder / "plain.txt").write_text("This is not a database. " * 100)
    done = fairlock(*args)
    assert done.returncode in ([code] if code else [69, 77, 78])
    assert text in done.stderr
    assert done.stderr.startswith("fairlock: ")
    assert done.stderr.count("\n") == 1
    assert "Internal error" not in done.stderr
    assert done.stdout == ""


def test_without_a_url_it_is_a_file_of_this_user(fairlock: Tool) -> None:
    del fairlock.env["FAIRLOCK_URL"]
    done = fairlock("run", "hello", "--", "echo", "hi")
    assert (done.returncode, done.stdout, done.stderr) == (0, "hi\n", "")
    assert str(fairlock.folder) in fairlock("ls").stdout


def test_verbose_prints_events_and_quiet_does_not(fairlock: Tool) -> None:
    loud = fairlock("-v", "run", "x", "true").stderr
    assert "fairlock: 'x' acquired, fence " in loud
    assert "fairlock: 'x' released.\n" in loud
    assert fairlock("-q", "run", "x", "true").stderr == ""


def test_version(fairlock: Tool) -> None:
    assert fairlock("--version").stdout.startswith("fairlock 0.")


# Encodings


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_an_output_that_cannot_write_every_character_gets_what_it_can(fairlock: Tool, encoding: str) -> None:
    helped = fairlock("--help", PYTHONIOENCODING=encoding)
    assert (helped.returncode, helped.stderr) == (0, "")
    assert ("…" if encoding == "utf-8" else "...") in helped.stdout
    fairlock("acquire", "größe→")
    listed = fairlock("show", "größe→", PYTHONIOENCODING=encoding)
    assert listed.returncode == 0
    assert "\\u2192" in listed.stdout or encoding == "utf-8"


def test_an_input_that_is_not_text_is_a_usage_error(fairlock: Tool) -> None:
    it = fairlock.start("pool", "add", "jobs", PYTHONIOENCODING="utf-8:strict")
    assert it.stdin is not None
    it.stdin.buffer.write(b"one\ncaf\xe9\n")
    _, err = it.communicate()
    assert (it.returncode, err) == (64, "fairlock: stdin is not text in utf-8. Nothing was added.\n")


# A name that is a pool


def test_show_prints_pools(fairlock: Tool) -> None:
    fairlock("pool", "add", "jobs", "a", "b")
    fairlock("pool", "run", "jobs", "true")
    text = f"jobs: pool, 1 free, 1 done, in {fairlock.url}\n"
    assert fairlock("show", "jobs").stdout == text
    fairlock("acquire", "jobs")
    assert fairlock("show", "jobs").stdout.startswith(text + "jobs: lock")
    shown = json.loads(fairlock("show", "jobs", "--json").stdout)
    assert (shown["pool"]["free"], shown["pool"]["done"], shown["resources"][0]["name"]) == (1, 1, "jobs")
    assert json.loads(fairlock("show", "x", "--json").stdout)["pool"] is None


def test_all_namespaces_are_listed_at_once(fairlock: Tool) -> None:
    for namespace, name in (("", "x"), ("one", "x"), ("two", "y")):
        assert fairlock("--namespace", namespace, "acquire", "--lease", "60", name).returncode == 0
    assert [line.split()[0] for line in fairlock("ls").stdout.splitlines()[1:-1]] == ["x"]
    head, *rows, _ = fairlock("--namespace", "*", "ls").stdout.splitlines()
    assert head.split()[:2] == ["NAMESPACE", "NAME"]
    assert [row.split()[:2] for row in rows] == [["x", "lock"], ["one", "x"], ["two", "y"]]
    seen = json.loads(fairlock("--namespace", "*", "ls", "--json").stdout)
    assert [(one["namespace"], one["name"]) for one in seen["resources"]] == [("", "x"), ("one", "x"), ("two", "y")]
    shown = fairlock("--namespace", "*", "top", "--once").stdout.splitlines()[1:-1]
    assert sorted(line.split()[0] for line in shown) == ["/x", "one/x", "two/y"]


def test_what_does_more_than_look_needs_one_namespace(fairlock: Tool) -> None:
    for command in (("evict", "x", "--reason", "r", "-y"), ("run", "x", "true"), ("show", "x"), ("pool", "ls", "x")):
        done = fairlock("--namespace", "*", *command)
        assert done.returncode == 64
        assert "--namespace '*' is for ls, top, events, ui, pool ls without a name, which only look." in done.stderr
