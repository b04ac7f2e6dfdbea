"""`fairlock mcp` with the real client of the protocol: two agents, each with a server of its own, in one checkout."""

from __future__ import annotations

import subprocess

import pytest

from tests.integrations.conftest import Project

AGENTS = """
import asyncio, json, os, sys
from contextlib import AsyncExitStack, asynccontextmanager
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

@asynccontextmanager
async def agent(name, *options):
    # The server is started in a folder of the checkout, with no URL.
    env = {**os.environ, "PYTHONPATH": os.environ["PYTHONPATH"]}
    env.pop("FAIRLOCK_URL", None)
    command = ["-m", "fairlock", "mcp", "--owner", name, *options]
    server = StdioServerParameters(command=sys.executable, args=command, env=env, cwd=os.getcwd() + "/src")
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        hello = await session.initialize()
        assert "Release it as soon as" in hello.instructions
        async def call(tool, **arguments):
            reply = await session.call_tool(tool, arguments)
            if reply.isError:
                return reply.content[0].text
            return reply.structuredContent
        call.tools = sorted(tool.name for tool in (await session.list_tools()).tools)
        yield call

async def main():
    async with agent("one") as one, agent("two") as two:
        print(one.tools)
        got = await one("acquire", path="src/api", purpose="new route")
        assert got["acquired"] and got["fence"] and got["path"] == "src/api", got
        # In a folder above and in one below, another agent is refused and learns who is there. Elsewhere it is not.
        for path in ("src/api/v2.py", "src", "."):
            refused = await two("acquire", path=path)
            assert refused["acquired"] is False, refused
            assert [(h["path"], h["agent"], h["purpose"], h["mode"], h["you"]) for h in refused["holders"]] == [
                ("src/api", "one", "new route", "write", False)], refused
        assert (await two("acquire", path="docs/index.md"))["acquired"]
        assert (await two("acquire", path="README.md", mode="read"))["acquired"]
        assert (await one("acquire", path="README.md", mode="read"))["acquired"]
        listed = await one("list")
        assert sorted((h["path"], h["agent"], h["you"]) for h in listed["holders"]) == [
            ("README.md", "one", True), ("README.md", "two", False),
            ("docs/index.md", "two", False), ("src/api", "one", True)], listed
        # A wait that returns too early keeps its place, and the next call gets the lock.
        late = await two("wait", path="src", purpose="all of it", seconds=0.3)
        assert late["acquired"] is False and late["waiting"][0]["agent"] == "two", late
        waiting = asyncio.create_task(two("wait", path="src", purpose="all of it", seconds=30))
        await asyncio.sleep(0.2)
        assert await one("release", path="src/api") == {"path": "src/api", "released": True}
        assert (await waiting)["acquired"]
        assert (await two("status", path="src/api"))["holders"][0]["path"] == "src"
        # Mistakes are sentences.
        print(await one("renew", path="src/api"))
        print(await one("acquire", path="../elsewhere"))
        print(await two("acquire", path="src/api"))
        print(await one("acquire", path=" "))
        print(await one("acquire", path="docs", minutes=-1))
        print(await two("renew", path="src", minutes=1e9))
        # Minutes end a hold, and renew sets them again.
        assert (await two("renew", path="src", minutes=0.02))["held"]
        assert (await one("wait", path="src/new.py", seconds=20))["acquired"]
        assert (await two("release", path="src"))["released"] is False
    async with agent("three") as three:  # all that the others held is free
        assert (await three("acquire", path="."))["acquired"]
asyncio.run(main())
"""


@pytest.fixture
def checkout(project: Project) -> Project:
    subprocess.run(["git", "init", "-q", str(project.folder)], check=True)
    (project.folder / "src").mkdir()
    return project


def test_two_agents_share_a_checkout(checkout: Project) -> None:
    printed = checkout.run("-c", AGENTS).splitlines()
    assert printed[0] == "['acquire', 'list', 'release', 'renew', 'status', 'wait']"
    assert "You do not hold 'src/api'" in printed[1]
    assert "'../elsewhere' is outside of the checkout" in printed[2]
    assert "You hold 'src' yourself" in printed[3]
    assert "'.' is the whole checkout" in printed[4]
    assert "minutes is more than 0 and at most 1440 (a day), not -1." in printed[5]
    assert "not 1e+09" in printed[6]
    assert (checkout.folder / ".git" / "fairlock.db").exists()


def test_a_store_that_no_other_agent_reaches_is_refused(checkout: Project) -> None:
    exit_code, printed = checkout.attempt("-m", "fairlock", "-u", "memory://", "mcp")
    assert exit_code == 78
    assert printed == "fairlock: memory:// ends with this process and locks nothing for other agents. Omit -u.\n"


def test_without_the_extra_it_names_the_cure(checkout: Project) -> None:
    code = "import sys; sys.modules['mcp'] = None\nfrom fairlock.cli import main\nsys.exit(main(['mcp']))"
    exit_code, printed = checkout.attempt("-c", code)
    assert (exit_code, printed) == (78, "fairlock: `fairlock mcp` needs mcp: pip install 'fairlock[mcp]'.\n")
