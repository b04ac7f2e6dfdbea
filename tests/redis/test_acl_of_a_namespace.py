"""The user that `fairlock schema --namespace` prints: it reaches its namespace and no other."""

import subprocess
from pathlib import Path

import pytest

import fairlock
from fairlock.errors import StoreError
from tests.cli.conftest import Tool
from tests.servers.server import Server


@pytest.mark.parametrize("namespace", ["shop", 'a*b [x] \\ "q" {y} %'])
def test_a_user_of_one_namespace(redis_alone: Server, tmp_path: Path, namespace: str) -> None:
    tool = Tool(tmp_path, redis_alone.url)
    printed = tool("--namespace", namespace, "schema").stdout
    line = next(each for each in printed.splitlines() if each.startswith("ACL SETUSER"))
    client = Path(redis_alone.program).parent / "redis-cli"
    done = subprocess.run(
        [str(client), "-p", str(redis_alone.port)], input=line + "\n", capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "OK", (line, done.stdout)
    user = line.split()[2]
    url = redis_alone.url.replace("://", f"://{user}:PASSWORD@")
    try:
        with fairlock.connect(url, namespace=namespace) as locks:
            with locks.lock("x"):
                assert [r.name for r in locks.snapshot("x").resources] == ["x"]
            locks.pool("jobs").add("a")
            item = locks.pool("jobs").acquire(blocking=False)
            assert item is not None
            item.done()
        for other in ("", "other", namespace + "x"):
            with fairlock.connect(url, namespace=other) as locks, pytest.raises(StoreError) as refused:
                locks.lock("x").acquire()
            assert refused.value.refused, other
    finally:
        redis_alone.call("ACL", "DELUSER", user)
