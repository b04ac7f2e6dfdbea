"""`fairlock prune`: names that were not used for long, and items that are done."""

from tests.cli.conftest import Tool


def test_the_command(fairlock: Tool) -> None:
    assert fairlock("run", "x", "true").returncode == 0
    assert fairlock("prune").stdout.startswith("0 names not used for 1d00h, in sqlite:///")
    assert "1 name not used for 0.0s" in fairlock("prune", "--older-than", "0").stdout
    assert fairlock("prune", "y", "--older-than", "0", "-y").stdout.startswith("0 names deleted")
    assert fairlock("prune", "--older-than", "0", "-y").stdout.startswith("1 name deleted")
    assert "no names" in (listed := fairlock("ls", "--all")).stdout + listed.stderr or "0 names" in listed.stdout


def test_items_that_are_done(fairlock: Tool) -> None:
    fairlock("pool", "add", "jobs", "a", "b", "c")
    assert fairlock("pool", "run", "jobs", "true").returncode == 0
    fairlock("pool", "done", "jobs", "b")
    assert fairlock("prune", "--done", "jobs", "-y").stdout.startswith("0 items deleted"), "taken a moment ago"
    assert fairlock("prune", "--done", "jobs", "--older-than", "0").stdout.startswith("2 items of the pool 'jobs'")
    assert fairlock("prune", "--done", "jobs", "--older-than", "0", "-y").stdout.startswith("2 items deleted")
    left = fairlock("pool", "ls", "jobs", "--json").stdout
    assert '"key": "c"' in left and '"key": "b"' not in left
