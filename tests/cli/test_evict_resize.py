"""The operator's commands: evict and resize."""

import json
import re

from tests.cli.conftest import Tool


def test_evict_needs_a_reason_and_without_a_terminal_a_yes(fairlock: Tool) -> None:
    fairlock("acquire", "x", "--lease", "60")
    assert fairlock("evict", "x", "-y").returncode == 64
    assert fairlock("evict", "x", "-y", "--reason", " ").returncode == 64
    unconfirmed = fairlock("evict", "x", "--reason", "stuck")
    assert unconfirmed.returncode == 64
    assert "Use -y to confirm" in unconfirmed.stderr


def test_evict_stops_renewals_and_at_once_frees(fairlock: Tool) -> None:
    ticket = fairlock("acquire", "x", "--lease", "60").stdout.strip()
    done = fairlock("evict", "x", "--reason", "stuck", "-y")
    assert done.stdout.startswith("'x' is taken from its holder and is free when the lease ends, in ")
    late = fairlock("renew", "x", "--ticket", ticket)
    assert late.returncode == 79
    assert "(stuck)" in late.stderr
    assert fairlock("run", "-n", "x", "true").returncode == 75
    assert fairlock("evict", "x", "--reason", "really", "-y", "--at-once").stdout.endswith("is free now\n")
    assert fairlock("run", "-n", "x", "true").returncode == 0


def test_evict_one_of_many_by_the_ticket_that_show_prints(fairlock: Tool) -> None:
    for _ in range(2):
        fairlock("acquire", "--slots", "2", "x")
    seen = json.loads(fairlock("show", "x", "--json").stdout)["resources"][0]["holders"]
    met = json.loads(
        fairlock("evict", "x", "--reason", "one", "-y", "--at-once", "--json", "--ticket", seen[0]["ticket"]).stdout
    )
    assert met == {"name": "x", "evicted": [seen[0]["ticket"]]}
    left = json.loads(fairlock("show", "x", "--json").stdout)["resources"][0]["holders"]
    assert [one["ticket"] for one in left] == [seen[1]["ticket"]]


def test_evicting_a_free_name_is_no_error(fairlock: Tool) -> None:
    done = fairlock("evict", "x", "--reason", "just in case", "-y")
    assert done.returncode == 0
    assert "so nothing was changed" in done.stderr


def test_what_is_only_kept_closed_has_no_holder_to_evict_and_is_opened_at_once(fairlock: Tool) -> None:
    assert fairlock("run", "--at-least", "60s", "x", "true").returncode == 0
    done = fairlock("evict", "x", "--reason", "too long", "-y")
    assert done.returncode == 0
    assert re.fullmatch(
        r"fairlock: 'x' has no holder: it is kept closed for another \S+ \S+\. Add --at-once to open it now\.\n",
        done.stderr,
    )
    assert json.loads(fairlock("evict", "x", "--reason", "r", "-y", "--json").stdout) == {"name": "x", "evicted": []}
    assert fairlock("run", "-n", "x", "true").returncode == 75
    assert fairlock("evict", "x", "--reason", "too long", "-y", "--at-once").stdout == "'x' is free now\n"
    assert fairlock("run", "-n", "x", "true").returncode == 0


def test_evict_by_pattern_affects_only_what_matches(fairlock: Tool) -> None:
    for name in ("web-1", "web-*", "db-1"):
        fairlock("acquire", name, "--lease", "60")
    for ticket in ("workersfirst", "workerssecond"):  # both are shortened to the same
        fairlock("acquire", "--slots", "2", "web-many", "--lease", "60", "--ticket", ticket)
    unconfirmed = fairlock("evict", "web-*", "--pattern", "--reason", "stuck")
    assert unconfirmed.returncode == 64
    assert "Use -y to confirm" in unconfirmed.stderr
    assert fairlock("evict", "web-*", "--pattern", "-y").returncode == 64
    assert "not both" in fairlock("evict", "*", "--pattern", "-y", "--reason", "x", "--ticket", "worker").stderr
    assert [len(fairlock.holders(name)) for name in ("web-1", "web-*", "db-1", "web-many")] == [1, 1, 1, 2]
    done = fairlock("evict", "web-*", "--pattern", "--reason", "stuck", "-y")
    assert done.stdout.startswith("'web-*' is taken from its holder\n'web-1' is taken from its holder\n")
    assert "3 names free when the leases end, in " in done.stdout
    report = json.loads(fairlock("evict", "web-*", "--pattern", "--reason", "now", "-y", "--at-once", "--json").stdout)
    assert report["pattern"] == "web-*"
    assert {row["name"]: len(row["evicted"]) for row in report["names"]} == {"web-1": 1, "web-*": 1, "web-many": 2}
    assert [len(fairlock.holders(name)) for name in ("web-1", "web-*", "db-1", "web-many")] == [0, 0, 1, 0]
    again = fairlock("evict", "web-*", "--pattern", "--reason", "late", "-y")
    assert (again.returncode, again.stdout) == (0, "")
    assert "that matches 'web-*' has a holder, so nothing was changed" in again.stderr


def test_evict_without_pattern_never_affects_another_name(fairlock: Tool) -> None:
    for name in ("web-1", "web-*"):
        fairlock("acquire", name, "--lease", "60")
    assert fairlock("evict", "web-*", "--reason", "it", "-y", "--at-once").stdout == (
        "'web-*' is taken from its holder and is free now\n"
    )
    second = fairlock("evict", "web-*", "--reason", "gone already", "-y", "--at-once")
    assert second.returncode == 0
    assert "so nothing was changed. To evict from all names that match it, add --pattern." in second.stderr
    assert len(fairlock.holders("web-1")) == 1


def test_resize(fairlock: Tool) -> None:
    fairlock("acquire", "--slots", "1", "x")
    assert fairlock("acquire", "-n", "--slots", "1", "x").returncode == 75
    assert fairlock("resize", "x", "2").stdout == "'x' has 2 slots now\n"
    assert fairlock("acquire", "-n", "--slots", "2", "x").returncode == 0
    assert fairlock("resize", "x", "0").returncode == 64
    assert json.loads(fairlock("resize", "x", "1", "--json").stdout) == {"name": "x", "slots": 1}


def test_an_operators_number_counts_until_it_is_given_back_to_the_programs(fairlock: Tool) -> None:
    fairlock("resize", "x", "2")
    assert fairlock("acquire", "-n", "--slots", "1", "x").returncode == 0
    assert fairlock("run", "-n", "--slots", "1", "x", "echo", "in").stdout == "in\n"
    ticket = fairlock("acquire", "-n", "--slots", "stored", "x").stdout.strip()
    assert fairlock("run", "-n", "--slots", "9", "x", "true").returncode == 75
    given = "'x' gets the number of slots that programs ask for, as soon as it is idle\n"
    assert fairlock("resize", "x", "--program").stdout == given
    fairlock("release", "x", "--ticket", ticket)
    refused = fairlock("run", "-n", "--slots", "1", "x", "true")
    assert refused.returncode == 78
    assert refused.stderr == (
        "fairlock: 'x' has 2 slots and is in use; this client asks for 1. "
        "Use `fairlock resize x 1`, or --slots stored.\n"
    )
    assert fairlock("run", "-n", "--slots", "stored", "x", "echo", "in").stdout == "in\n"
    assert json.loads(fairlock("resize", "x", "--program", "--json").stdout) == {"name": "x", "slots": None}


def test_resize_needs_a_number_or_the_programs(fairlock: Tool) -> None:
    for words in (["x"], ["x", "2", "--program"]):
        done = fairlock("resize", *words)
        assert done.returncode == 64
        assert "`fairlock resize NAME SLOTS`, or --program" in done.stderr


def test_stored_slots_of_what_was_never_used(fairlock: Tool) -> None:
    done = fairlock("run", "--slots", "stored", "x", "true")
    assert done.returncode == 78
    assert done.stderr == "fairlock: No program has given the number of slots of 'x' yet. Give it: --slots 4.\n"
    assert "a whole number from 1 up, or `stored`" in fairlock("run", "--slots", "some", "x", "true").stderr
