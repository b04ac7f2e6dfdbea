"""The tool on each database: the URL is all that it needs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def tool(url: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairlock", "-u", url, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("name", ["postgresql", "pgbouncer", "mariadb"])
def test_the_tool_by_its_url_alone(name: str, request: pytest.FixtureRequest) -> None:
    url: str = request.getfixturevalue(name).url
    shown = url.replace("app:open-sesame@", "")
    within = tool(url, "run", "nightly", "--", "sh", "-c", "echo $FAIRLOCK_NAME; exit 7")
    assert (within.stdout, within.returncode) == ("nightly\n", 7), within.stderr
    assert tool(url, "pool", "add", "jobs", "a").returncode == 0
    done = tool(url, "pool", "run", "jobs", "--", "sh", "-c", "echo $FAIRLOCK_ITEM")
    assert (done.stdout, done.returncode) == ("a\n", 0), done.stderr
    listed = json.loads(tool(url, "--json", "ls").stdout)
    assert listed["store"] == shown
    examined = json.loads(tool(url, "--json", "doctor").stdout)
    texts = " ".join(check["text"] for check in examined["checks"])
    assert all(check["level"] != "error" for check in examined["checks"]), texts
    assert "Its tables are there, and this user may read and write them." in texts
    assert ("PostgreSQL 1" in texts) == (name != "mariadb")
    assert ("A pooler is in front of it, so waiters poll" in texts) == (name == "pgbouncer")
    assert ("fsync is off" in texts) == (name != "mariadb")
    assert "open-sesame" not in texts
    printed = tool(url, "schema").stdout
    assert "CREATE TABLE IF NOT EXISTS fairlock_locks" in printed
    assert ("SET STORAGE EXTERNAL;" in printed) == (name != "mariadb")
    assert "GRANT SELECT, INSERT, UPDATE, DELETE ON fairlock_items TO app;" in printed
