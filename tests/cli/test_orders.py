"""An operator's orders: evict and resize."""

import json

from tests.cli.conftest import Tool


def test_evict_needs_a_reason_and_without_a_terminal_a_yes(holdfast: Tool) -> None:
    holdfast("acquire", "x", "--lease", "60")
    assert holdfast("evict", "x", "-y").returncode == 64
    assert holdfast("evict", "x", "-y", "--reason", " ").returncode == 64
    unsure = holdfast("evict", "x", "--reason", "stuck")
    assert unsure.returncode == 64
    assert "say -y if you mean it" in unsure.stderr


def test_evict_stops_renewals_and_at_once_frees(holdfast: Tool) -> None:
    ticket = holdfast("acquire", "x", "--lease", "60").stdout.strip()
    done = holdfast("evict", "x", "--reason", "stuck", "-y")
    assert done.stdout.startswith("'x' is taken from its holder and free when the lease ends, in ")
    late = holdfast("renew", "x", "--ticket", ticket)
    assert late.returncode == 79
    assert "(stuck)" in late.stderr
    assert holdfast("run", "-n", "x", "true").returncode == 75
    assert holdfast("evict", "x", "--reason", "really", "-y", "--at-once").stdout.endswith("free now\n")
    assert holdfast("run", "-n", "x", "true").returncode == 0


def test_evict_one_of_many_by_the_ticket_that_show_prints(holdfast: Tool) -> None:
    for _ in range(2):
        holdfast("acquire", "--slots", "2", "x")
    seen = json.loads(holdfast("show", "x", "--json").stdout)["resources"][0]["inside"]
    met = json.loads(
        holdfast("evict", "x", "--reason", "one", "-y", "--at-once", "--json", "--ticket", seen[0]["ticket"]).stdout
    )
    assert met == {"name": "x", "evicted": [seen[0]["ticket"]]}
    left = json.loads(holdfast("show", "x", "--json").stdout)["resources"][0]["inside"]
    assert [one["ticket"] for one in left] == [seen[1]["ticket"]]


def test_evicting_nobody_is_no_error(holdfast: Tool) -> None:
    done = holdfast("evict", "x", "--reason", "just in case", "-y")
    assert done.returncode == 0
    assert "so nobody is evicted" in done.stderr


def test_evict_by_pattern_meets_what_matches_and_no_other(holdfast: Tool) -> None:
    for name in ("web-1", "web-*", "db-1"):
        holdfast("acquire", name, "--lease", "60")
    for ticket in ("workersfirst", "workerssecond"):  # both are shortened to the same
        holdfast("acquire", "--slots", "2", "web-many", "--lease", "60", "--ticket", ticket)
    unsure = holdfast("evict", "web-*", "--pattern", "--reason", "stuck")
    assert unsure.returncode == 64
    assert "say -y if you mean it" in unsure.stderr
    assert holdfast("evict", "web-*", "--pattern", "-y").returncode == 64
    assert "not both" in holdfast("evict", "*", "--pattern", "-y", "--reason", "x", "--ticket", "worker").stderr
    assert [len(holdfast.inside(name)) for name in ("web-1", "web-*", "db-1", "web-many")] == [1, 1, 1, 2]
    done = holdfast("evict", "web-*", "--pattern", "--reason", "stuck", "-y")
    assert done.stdout.startswith("'web-*' is taken from its holder\n'web-1' is taken from its holder\n")
    assert "3 names free when the leases end, in " in done.stdout
    told = json.loads(holdfast("evict", "web-*", "--pattern", "--reason", "now", "-y", "--at-once", "--json").stdout)
    assert told["pattern"] == "web-*"
    assert {row["name"]: len(row["evicted"]) for row in told["names"]} == {"web-1": 1, "web-*": 1, "web-many": 2}
    assert [len(holdfast.inside(name)) for name in ("web-1", "web-*", "db-1", "web-many")] == [0, 0, 1, 0]
    again = holdfast("evict", "web-*", "--pattern", "--reason", "late", "-y")
    assert (again.returncode, again.stdout) == (0, "")
    assert "that matches 'web-*' is held, so nobody is evicted" in again.stderr


def test_evict_without_pattern_never_meets_another_name(holdfast: Tool) -> None:
    for name in ("web-1", "web-*"):
        holdfast("acquire", name, "--lease", "60")
    assert holdfast("evict", "web-*", "--reason", "it", "-y", "--at-once").stdout == (
        "'web-*' is taken from its holder and free now\n"
    )
    second = holdfast("evict", "web-*", "--reason", "gone already", "-y", "--at-once")
    assert second.returncode == 0
    assert "so nobody is evicted. To evict from all names that match it, add --pattern." in second.stderr
    assert len(holdfast.inside("web-1")) == 1


def test_resize(holdfast: Tool) -> None:
    holdfast("acquire", "--slots", "1", "x")
    assert holdfast("acquire", "-n", "--slots", "1", "x").returncode == 75
    assert holdfast("resize", "x", "2").stdout == "'x' has 2 slots now\n"
    assert holdfast("acquire", "-n", "--slots", "2", "x").returncode == 0
    assert holdfast("resize", "x", "0").returncode == 64
    assert json.loads(holdfast("resize", "x", "1", "--json").stdout) == {"name": "x", "slots": 1}


def test_an_operators_number_counts_until_it_is_given_back_to_the_programs(holdfast: Tool) -> None:
    holdfast("resize", "x", "2")
    assert holdfast("acquire", "-n", "--slots", "1", "x").returncode == 0
    assert holdfast("run", "-n", "--slots", "1", "x", "echo", "in").stdout == "in\n"
    ticket = holdfast("acquire", "-n", "--slots", "stored", "x").stdout.strip()
    assert holdfast("run", "-n", "--slots", "9", "x", "true").returncode == 75
    given = "'x' has the number of slots that programs ask for, as soon as it is idle\n"
    assert holdfast("resize", "x", "--program").stdout == given
    holdfast("release", "x", "--ticket", ticket)
    refused = holdfast("run", "-n", "--slots", "1", "x", "true")
    assert refused.returncode == 78
    assert refused.stderr == (
        "holdfast: 'x' has 2 slots and is in use; this client asks for 1. "
        "Use `holdfast resize x 1`, or --slots stored.\n"
    )
    assert holdfast("run", "-n", "--slots", "stored", "x", "echo", "in").stdout == "in\n"
    assert json.loads(holdfast("resize", "x", "--program", "--json").stdout) == {"name": "x", "slots": None}


def test_resize_wants_a_number_or_the_programs(holdfast: Tool) -> None:
    for words in (["x"], ["x", "2", "--program"]):
        done = holdfast("resize", *words)
        assert done.returncode == 64
        assert "`holdfast resize NAME SLOTS`, or --program" in done.stderr


def test_stored_slots_of_what_was_never_used(holdfast: Tool) -> None:
    done = holdfast("run", "--slots", "stored", "x", "true")
    assert done.returncode == 78
    assert done.stderr == "holdfast: No program has given the number of slots of 'x' yet. Give it: --slots 4.\n"
    assert "a whole number from 1 up, or `stored`" in holdfast("run", "--slots", "some", "x", "true").stderr
