"""fairlock on Redis, the locks of other libraries and bare sockets side by side, in one run.

    ./dev bench redis [--rounds N] [--into FOLDER] [--only MEASURE …]

Every round measures every contender once, one right after the other and each time in another order, so that what else
happens on the machine happens to all of them. Ratios are taken within a round, and then the median of those. "Same
core" pins client and server together, so that what the client costs shows; "two cores" gives each its own. Prints a
table; with --into also writes redis.json (all figures of all rounds) and redis.svg.
"""

import sys

sys.path.append(sys.path.pop(0))  # or this file would be found as the driver of the same name

import argparse
import json
import statistics
import time
from pathlib import Path

import _redis_measures as measures
from _about import about, show
from _picture import draw_panels
from _redis_contenders import ALONE, FIGHTING, WAITING, runnable

ROUNDS = 5
PACKAGES = ("redis", "hiredis", "python-redis-lock", "sherlock", "tooz", "pottery", "aioredlock", "coredis",
            "valkey-glide")  # fmt: skip
MEASURES = ("alone", "fights", "idle", "threads", "tasks", "waiters", "server")
Rounds = list[dict[str, dict[str, float]]]

# figure, what it is called, the limit that fairlock is compared with, what is wanted
RATIOS = [
    ("alone, same core", "alone, same core: of the raw socket", "raw socket", "≥ 0.52"),
    ("alone, two cores", "alone, two cores: of the raw socket", "raw socket", "≥ 0.78"),
    ("alone, same core", "alone, same core: times redis-py's", "redis-py", "≥ 3"),
    ("8 processes", "8 processes on one lock: of the token list", "token list", "≥ 0.58"),
    ("200 threads", "200 threads on one lock: of the token list", "token list", "≥ 2.5"),
    ("idle", "idle while one waits: times the token list's", "token list", "≤ 1.7"),
    ("1000 tasks, two cores", "1,000 tasks, two cores: of the raw batch", "raw socket", "≥ 0.45"),
    ("1000 tasks, two cores", "1,000 tasks, two cores: times redis.asyncio's", "redis.asyncio", "≥ 12"),
    ("1000 tasks, same core", "1,000 tasks, same core: of the raw batch", "raw socket", ""),
]
FIGURES = [  # figure, what it is called, digits, what is wanted of fairlock, less is better
    ("alone, same core", "cycles/s, nobody else, same core", 0, "", False),
    ("alone, two cores", "cycles/s, nobody else, two cores", 0, "", False),
    ("8 processes", "cycles/s, 8 processes on one lock", 0, "", False),
    ("200 threads", "cycles/s, 200 threads on one lock", 0, "", False),
    ("jain of 32", "fairness of 32 processes, 1 ms each (Jain)", 4, "≥ 0.999", False),
    ("longest of 32", "ms that somebody waited, 32 processes", 0, "", True),
    ("idle", "ms the lock lies idle while one waits", 3, "≤ 0.45", True),
    ("1000 tasks, same core", "cycles/s, 1,000 tasks, same core", 0, "", False),
    ("1000 tasks, two cores", "cycles/s, 1,000 tasks, two cores", 0, "", False),
    ("waiters, commands", "500 waiters: commands/s", 2, "≤ 1.5", True),
    ("waiters, connections", "500 waiters: connections more", 0, "≤ 2", True),
    ("waiters, drained", "500 waiters: s until all are through", 2, "≤ 0.3", True),
    ("server, queue ratio", "server time, 10,000 in the queue: times that with 1", 2, "≤ 1.2", True),
    ("server, holders ratio", "server time, 10,000 holders: times that with 1", 2, "≤ 1.2", True),
]
PALETTE = {
    "fairlock": "#2f6fb3", "raw socket": "#7f8c8d", "token list": "#95a5a6", "redis-py": "#b9770e",
    "python-redis-lock": "#8e5ea2", "sherlock": "#c0392b", "tooz": "#16a085", "pottery": "#a04000",
    "redis.asyncio": "#b9770e", "aioredlock": "#c0392b", "coredis": "#16a085", "glide, bare": "#8e5ea2",
}  # fmt: skip


def run(rounds: int, only: list[str], missing: dict[str, str]) -> Rounds:
    results: Rounds = []
    with measures.Server() as server:
        by_alone, by_fighting, by_waiting = (runnable(k, server.url, missing) for k in (ALONE, FIGHTING, WAITING))
        by_tasks = measures.runnable_tasks(server, missing)
        for number in range(rounds):
            this: dict[str, dict[str, float]] = {}

            def note(found: dict[str, dict[str, float]], this: dict[str, dict[str, float]] = this) -> None:
                for name, figures in found.items():
                    this.setdefault(name, {}).update(figures)

            for measure in only or MEASURES:
                if measure == "alone":
                    for where in ("same core", "two cores"):
                        note(measures.alone(by_alone, server, where))
                elif measure in ("fights", "idle"):
                    kinds = by_fighting if measure == "fights" else by_waiting
                    turn = number % len(kinds)
                    for kind in (*kinds[turn:], *kinds[:turn]):
                        note({kind.name: (measures.fights if measure == "fights" else measures.gap)(kind, server)})
                elif measure == "threads":
                    note(measures.threads(server, 200, 2.0))
                elif measure == "tasks":
                    turn = number % len(by_tasks)
                    for where in ("same core", "two cores"):
                        note(measures.tasks(server, by_tasks[turn:] + by_tasks[:turn], where, 1000))
                elif number == 0 and measure == "waiters":
                    note({"fairlock": measures.waiters(server, 500, 10.0)})
                elif number == 0 and measure == "server":
                    for kind in ("queue", "holders"):
                        note({"fairlock": measures.server_time(server, 10_000, kind)})
            results.append(this)
            print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return results


def values(results: Rounds, name: str, figure: str) -> list[float]:
    return [r[name][figure] for r in results if figure in r.get(name, {})]


def spread(found: list[float], digits: int) -> str:
    middle = f"{statistics.median(found):,.{digits}f}"
    return middle if len(found) == 1 else f"{middle} ({min(found):,.{digits}f} to {max(found):,.{digits}f})"


def table(results: Rounds) -> str:
    rows = [["fairlock", "wanted", "median (lowest to highest)"]]
    for figure, called, limit, wanted in RATIOS:
        found = [
            r["fairlock"][figure] / r[limit][figure]
            for r in results if figure in r.get("fairlock", {}) and r.get(limit, {}).get(figure)
        ]  # fmt: skip
        if found:
            rows.append([called, wanted, spread(found, 2)])
    for figure, called, digits, wanted, _ in FIGURES:
        if wanted and (found := values(results, "fairlock", figure)):
            rows.append([called, wanted, spread(found, digits)])
    each: list[list[str]] = []
    names = [name for name in PALETTE if any(name in r for r in results)]
    each.append(["median of each", *names])
    for figure, called, digits, _, _ in FIGURES:
        cells = [values(results, name, figure) for name in names]
        if sum(map(bool, cells)) > 1:
            each.append([called, *[f"{statistics.median(c):,.{digits}f}" if c else "" for c in cells]])
    return "\n\n".join(show(some) for some in (rows, each) if len(some) > 1)


def picture(results: Rounds) -> str:
    panels = []
    for figure, called, digits, _, less in FIGURES:
        found = {name: values(results, name, figure) for name in PALETTE}
        found = {name: some for name, some in found.items() if some}
        if len(found) > 1:
            panels.append((called + (", less is better" if less else ""), found, digits))
    return draw_panels(panels, PALETTE)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--into", type=Path, help="write redis.json and redis.svg here")
    parser.add_argument("--only", nargs="*", default=[], choices=MEASURES, metavar="MEASURE")
    wanted = parser.parse_args()
    missing: dict[str, str] = {}
    begun = time.monotonic()
    results = run(wanted.rounds, wanted.only, missing)
    run_by = about(wanted.rounds, begun, PACKAGES)
    print(table(results))
    for name, why in missing.items():
        print(f"not measured: {name}: {why}")
    print("\n" + ", ".join(f"{name}: {value}" for name, value in run_by.items()))
    if wanted.into:
        wanted.into.mkdir(parents=True, exist_ok=True)
        data = {"about": run_by, "not measured": missing, "rounds": results}
        (wanted.into / "redis.json").write_text(json.dumps(data, indent=1) + "\n")
        (wanted.into / "redis.svg").write_text(picture(results))


if __name__ == "__main__":
    main()
