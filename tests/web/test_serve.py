"""uvicorn under `fairlock ui`: a signal ends it in order, also while a loop is half made."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, signal, socket, sys
import uvicorn
from fairlock.web import serve

class Loop(asyncio.SelectorEventLoop):
    def __init__(self):
        signal.raise_signal(signal.Signals[sys.argv[1]])
        super().__init__()

uvicorn.Config.get_loop_factory = lambda self: Loop

async def app(scope, receive, send):
    assert scope["type"] == "lifespan"
    for each in ("startup", "shutdown"):
        assert (await receive())["type"] == f"lifespan.{each}"
        print(each)
        await send({"type": f"lifespan.{each}.complete"})

serve.run(app, socket.create_server(("127.0.0.1", 0)))
print("ended")
"""


@pytest.mark.parametrize("end", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_while_the_loop_is_made_ends_it_in_order(end: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, end], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr, done.returncode) == ("startup\nshutdown\nended\n", "", 0)
