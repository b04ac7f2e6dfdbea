"""A loop that ends: what its tasks hold is released on their way out, and nothing is left open or pending."""

import subprocess
import sys

import pytest

import holdfast
from tests.servers.groups import Cluster, Sentinels
from tests.servers.server import Server

HELD_TO_THE_END = """
import asyncio, gc, sys
from holdfast import aio

async def main():
    locks = aio.connect(sys.argv[1])  # and nobody closes it

    async def work():
        async with locks.lock("x"):
            inside.set()
            await asyncio.sleep(60)

    inside = asyncio.Event()
    worker = asyncio.create_task(work())
    waiter = asyncio.create_task(locks.lock("x").acquire())
    await inside.wait()
    await asyncio.sleep(0.1)

asyncio.run(main())
gc.collect()
"""


def played(url: str) -> None:
    done = subprocess.run([sys.executable, "-W", "always", "-c", HELD_TO_THE_END, url], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    with holdfast.connect(url) as locks:
        assert not locks.lock("x").locked()
        assert not any(resource.line for resource in locks.snapshot("x").resources)


def test_one_server(redis_alone: Server) -> None:
    played(redis_alone.url)


@pytest.mark.parametrize("name", ["redis_sentinel", "redis_cluster"])
def test_sentinel_and_cluster(name: str, request: pytest.FixtureRequest) -> None:
    group: Sentinels | Cluster = request.getfixturevalue(name)
    played(group.url)
