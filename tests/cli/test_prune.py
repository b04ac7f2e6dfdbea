"""`fairlock prune`: names that were not used for long, and items that are done."""

import json

from fairlock import connect
from tests.cli.conftest import Tool
from tests.engine.test_prune import DAY, make_audit_older


def test_the_command(fairlock: Tool) -> None:
    assert fairlock("run", "x", "true").returncode == 0
    assert fairlock("prune").stdout.startswith("0 names not used for 1d00h, in sqlite:///")
    assert "1 name not used for 0.0s" in fairlock("prune", "--older-than", "0").stdout
    assert fairlock("prune", "y", "--older-than", "0", "-y").stdout.startswith("0 names deleted")
    assert fairlock("prune", "--older-than", "0", "-y").stdout.startswith("1 name deleted")
    assert "no names" in (listed := fairlock("ls", "--all")).stdout + listed.stderr or "0 names" in listed.stdout


def test_audit_lines_are_counted_by_themselves(fairlock: Tool) -> None:
    assert fairlock("resize", "x", "3").returncode == 0
    seen = json.loads(fairlock("prune", "--older-than", "0", "-y", "--json").stdout)
    assert [seen[key] for key in ("found", "deleted", "audit_found", "audit_deleted")] == [0, 0, 0, 0]
    with connect(fairlock.url) as locks:  # open all the time: at the end, SQLite may delete them by itself
        for words, text in (("", "1 list of audit lines older"), ("-y", "1 list deleted, of audit lines older")):
            locks.resize("x", 3)
            make_audit_older(locks, "x", 31 * DAY)
            lines, names = fairlock("prune", *words.split()).stdout.splitlines()
            assert lines.startswith(f"{text} than 30d00h, in sqlite:///")
            assert names.startswith("0 names ")
        assert locks.audit("x") == ()


def test_items_that_are_done(fairlock: Tool) -> None:
    fairlock("pool", "add", "jobs", "a", "b", "c")
    assert fairlock("pool", "run", "jobs", "true").returncode == 0
    fairlock("pool", "done", "jobs", "b")
    assert fairlock("prune", "--done", "jobs", "-y").stdout.startswith("0 items deleted"), "taken a moment ago"
    assert fairlock("prune", "--done", "jobs", "--older-than", "0").stdout.startswith("2 items of the pool 'jobs'")
    assert fairlock("prune", "--done", "jobs", "--older-than", "0", "-y").stdout.startswith("2 items deleted")
    left = fairlock("pool", "ls", "jobs", "--json").stdout
    assert '"key": "c"' in left and '"key": "b"' not in left
