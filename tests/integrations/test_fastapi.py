"""FastAPI under uvicorn: requests that wait or are refused, a lost lease, and one leader among two servers."""

from __future__ import annotations

import os
import signal

from tests.integrations.conftest import Project, until

REQUESTS = """
import anyio, asyncio, time
from shop import *
from starlette.testclient import TestClient
import fairlock

@app.post("/slow/{order}")
async def slow(order: int, lease: Annotated[aio.Lease, Depends(held("order:{order}", timeout=20, note="slow"))]) -> str:
    return "done"

@app.post("/lost/{order}")
async def lost(order: int, lease: Annotated[aio.Lease, Depends(held("order:{order}"))]) -> str:
    try:
        other.evict(f"order:{order}", reason="test", at_once=True)
        await asyncio.sleep(20)
    except asyncio.CancelledError:
        print("cancelled", lease.lost)
        raise
    return "done"

with fairlock.connect("sqlite:///locks.db") as other:
    with TestClient(app, raise_server_exceptions=False) as client:
        busy = other.lock("order:1").acquire()
        import threading
        threading.Timer(0.3, busy.release).start()
        print(client.post("/slow/1").json())
        print(client.post("/lost/2").status_code)
        print([r.name for r in other.snapshot().resources if r.holders])
        print(client.post("/orders/2/ship").status_code)
"""


def test_a_request_waits_and_a_lost_lease_ends_it(project: Project) -> None:
    project.take_files("integrations-fastapi.md")
    project.write("main.py", REQUESTS)
    printed = project.run("main.py").splitlines()
    assert [line for line in printed if line in ("done", "cancelled True", "500", "[]", "200")] == [
        "done", "cancelled True", "500", "[]", "200",
    ], printed  # fmt: skip


LEADER = """
import os, time
import shop
async def refresh_prices(term):
    while True:
        with open("log", "a") as log:
            log.write(f"{os.getpid()}\\n")
        await shop.asyncio.sleep(0.05)
shop.refresh_prices = refresh_prices
app = shop.FastAPI(lifespan=shop.with_leader)
"""


def test_one_of_two_servers_leads_and_the_other_takes_over(project: Project) -> None:
    project.take_files("integrations-fastapi.md")
    project.write("main.py", LEADER)
    first, second = (project.start("-m", "uvicorn", "main:app", "--port", "0") for _ in range(2))

    def leaders() -> list[int]:
        return [int(line) for line in project.read("log").split()]

    until(lambda: len(leaders()) > 5 and project.run("-m", "fairlock", "ls", "--waited").count("price-refresher"))
    (leader,) = set(leaders())
    assert leader in (first.pid, second.pid)
    os.kill(leader, signal.SIGTERM)
    other = second.pid if leader == first.pid else first.pid
    until(lambda: leaders()[-1] == other)
    assert leaders() == sorted(leaders(), key=lambda pid: pid == other)  # never both at once
