"""What a store still has when everybody is gone: holders, places in the queue, and items that are not as reported."""

from __future__ import annotations

import time
from typing import Any

import fairlock


def leftovers(url: str, gone: set[str], done: dict[str, int], seconds: float) -> list[str]:
    """Sentences about what should not be there. `gone`: owners that ended in order, which leave nothing for even a
    second; the killed may leave something for `seconds`. `done`: items whose end was acknowledged, with the fence."""
    wrong: list[str] = []
    with fairlock.connect(url, lease=5) as locks:
        start = time.monotonic()
        while found := [entry for entry in _entries(locks) if entry[0] in gone or time.monotonic() < start + seconds]:
            late = time.monotonic() - start
            if late > seconds or (late > 1 and any(owner in gone for owner, _ in found)):
                break
            time.sleep(0.1)
        wrong += [f"{text} is left {time.monotonic() - start:.1f} s after the end" for _, text in _entries(locks)]
        pool = locks.pool("pool", lease=5)
        for item in pool.items():
            if item.key in done and item.state != "done":
                wrong.append(f"item {item.key} was done with fence {done[item.key]}, and is {item.state}")
        while item := pool.acquire(blocking=False):
            item.done()
        for item in pool.items():
            if item.state != "done":
                wrong.append(f"item {item.key} is {item.state} and cannot be taken")
    return wrong


def _entries(locks: Any) -> list[tuple[str, str]]:
    return [
        (one.owner, f"{one.owner} {where} {resource.name}")
        for resource in locks.snapshot(idle=True).resources
        for where, some in (("holders", resource.holders), ("in the queue of", resource.queue))
        for one in some
    ]
