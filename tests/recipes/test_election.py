"""Elections of real processes: SIGTERM resigns at once, a handler of the program's own stays, threads do without."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import fairlock
from fairlock.recipes.election import ENDED_BY_SIGTERM

PROGRAM = """
import sys, time, fairlock

def main(term):
    print("leads", term.fence, flush=True)
    try:
        time.sleep(60)
    finally:
        print("ends", flush=True)

fairlock.connect(sys.argv[1], lease=30).elect("x").run(main)
"""

ASYNC_PROGRAM = """
import asyncio, sys
from fairlock import aio

async def main(term):
    print("leads", term.fence, flush=True)
    try:
        await asyncio.sleep(60)
    finally:
        print("ends", flush=True)

async def program():
    async with aio.connect(sys.argv[1], lease=30) as locks:
        await locks.elect("x").run(main)

asyncio.run(program())
"""


def start(program: str, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", program, url], stdout=subprocess.PIPE, text=True)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("program", [PROGRAM, ASYNC_PROGRAM], ids=["threads", "tasks"])
def test_sigterm_ends_main_and_the_next_candidate_leads_at_once(program: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    with start(program, url) as leader:
        assert line(leader).startswith("leads")
        with start(program, url) as next_one, fairlock.connect(url) as locks:
            while not locks.snapshot("x").resources[0].queue:
                time.sleep(0.01)
            leader.send_signal(signal.SIGTERM)
            assert line(leader) == "ends"
            assert line(next_one).startswith("leads")
            assert leader.wait(10) == ENDED_BY_SIGTERM
            next_one.send_signal(signal.SIGTERM)
            assert line(next_one) == "ends"
            assert next_one.wait(10) == ENDED_BY_SIGTERM
            assert locks.leader("x") is None


@pytest.mark.parametrize("program", [PROGRAM, ASYNC_PROGRAM], ids=["threads", "tasks"])
def test_sigterm_ends_a_candidate_that_waits(program: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    with fairlock.connect(url) as locks, locks.elect("x"):
        with start(program, url) as candidate:
            while not locks.snapshot("x").resources[0].queue:
                time.sleep(0.01)
            candidate.send_signal(signal.SIGTERM)
            assert candidate.wait(10) == ENDED_BY_SIGTERM
        assert locks.snapshot("x").resources[0].queue == ()


def test_the_handler_of_sigterm_is_restored() -> None:
    locks = fairlock.connect("memory://")
    during = []

    def main(term: fairlock.Lease) -> None:
        during.append(signal.getsignal(signal.SIGTERM))

    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        locks.elect("x").run(main)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        assert callable(during[0])
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        locks.elect("x").run(main)
        assert during[1] == signal.SIG_IGN, "what the program has chosen stays"
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        thread = threading.Thread(target=locks.elect("x").run, args=(main,))
        thread.start()
        thread.join()
        assert during[2] == signal.SIG_DFL, "only the main thread may set it"
    finally:
        signal.signal(signal.SIGTERM, before)
        locks.close()


def test_a_leader_whose_client_is_closed_sees_that_it_has_resigned(tmp_path: Path) -> None:
    """`lost` stays False: it was released. So the examples ask for `held`."""
    url = f"sqlite:///{tmp_path}/locks.db"
    locks = fairlock.connect(url)
    seen = []

    def main(term: fairlock.Lease) -> None:
        thread = threading.Thread(target=locks.close)
        thread.start()
        thread.join()
        seen.append((term.held, term.lost))

    with fairlock.connect(url) as other:
        locks.elect("x").run(main)
        assert seen == [(False, False)]
        assert other.leader("x") is None
