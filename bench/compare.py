"""fairlock on its embedded store, filelock, portalocker and flock(2) side by side, in one run.

    ./dev bench compare [--rounds N] [--into FOLDER] [--only MEASURE …]

Every round measures every contender once, one right after the other and each time in another order, so that what else
happens on the machine happens to all of them. Figures are medians over the rounds; ratios are taken within a round, and
then the median of those. Prints a table; with --into also writes bench.json (all figures of all rounds), bench.svg, and
the table into bench.md, if that has a place for it.
"""

import argparse
import json
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _crowd
from _contenders import CONTENDERS, VERSIONS, Contender, Fairlock
from _picture import draw

ROUNDS = 7
Figures = dict[str, float]  # of one contender in one round
Rounds = list[dict[str, Figures]]


# -- what is measured


def cycles(folder: str) -> dict[str, Figures]:
    contenders = [kind() for kind in CONTENDERS]
    found = _crowd.cycles(contenders, folder, 2.0)
    return {
        contender.name: {"cycles_fresh": fresh, "cycles_same": same}
        for contender, (fresh, same) in zip(contenders, found, strict=True)
    }


def idle(contender: Contender, folder: str) -> Figures:
    long = _crowd.idle(contender, folder, hold=0.05, turns=12, seconds=2.0)
    short = _crowd.idle(contender, folder, hold=0.002, turns=150, seconds=1.0)
    return {"idle_50": statistics.median(long) * 1e3, "idle_2": statistics.median(short) * 1e3}


def fights(contender: Contender, folder: str) -> Figures:
    eight = _crowd.fight(contender, folder, 8, 1.5)
    many = _crowd.fight(contender, folder, 32, 1.5)
    return {
        "handoffs_8": eight.handoffs, "cpu_8": eight.cpu * 1e6, "jain_8": eight.jain, "longest_8": eight.longest * 1e3,
        "handoffs_32": many.handoffs, "cpu_32": many.cpu * 1e6, "jain_32": many.jain, "longest_32": many.longest * 1e3,
    }  # fmt: skip


def kill(contender: Contender, folder: str) -> Figures:
    return {"kill": statistics.median(_crowd.after_a_kill(contender, folder) for _ in range(5)) * 1e3}


MEASURES: dict[str, Callable[[Contender, str], Figures]] = {
    "idle": idle, "fights": fights, "kill": kill,
}  # fmt: skip


def start_up(folder: str) -> Figures:
    """A command under a lock, bare Python, and flock(1): milliseconds until each has ended."""
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    source = str(Path(__file__).resolve().parents[1] / "src")
    env = {"PATH": os.environ.get("PATH", ""), "HOME": folder, "PYTHONPATH": source, "FAIRLOCK_URL": _url(folder)}
    commands = {
        "python": [python, "-c", "pass"],
        "fairlock_run": [python, "-m", "fairlock", "run", "x", "--", "true"],
        "flock_1": ["flock", f"{folder}/flock1", "true"],
    }
    took: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(9):
        for name, command in commands.items():
            begun = time.monotonic()
            if shutil.which(command[0]) is None:
                continue
            subprocess.run(command, env=env, check=True, stdin=subprocess.DEVNULL)
            if turn:  # the first one compiles, and makes the database
                took[name].append((time.monotonic() - begun) * 1e3)
    return {name: statistics.median(times) for name, times in took.items() if times}


def _url(folder: str) -> str:
    return f"sqlite:///{folder}/run.db"


# -- the run


def run(rounds: int, only: list[str]) -> tuple[Rounds, list[Figures]]:
    results: Rounds = []
    starts: list[Figures] = []
    for number in range(rounds):
        this: dict[str, Figures] = {c.name: {} for c in CONTENDERS}
        if not only or "cycles" in only:
            with tempfile.TemporaryDirectory(prefix="bench") as folder:
                for name, figures in cycles(folder).items():
                    this[name] |= figures
        for name, measure in MEASURES.items():
            if only and name not in only:
                continue
            turn = number % len(CONTENDERS)
            for kind in (*CONTENDERS[turn:], *CONTENDERS[:turn]):
                with tempfile.TemporaryDirectory(prefix="bench") as folder:
                    _crowd.prepare(kind(), folder)
                    this[kind.name] |= measure(kind(), folder)
        results.append(this)
        if not only or "start" in only:
            with tempfile.TemporaryDirectory(prefix="bench") as folder:
                starts.append(start_up(folder))
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return results, starts


def others_share(before: tuple[int, int], after: tuple[int, int], ours: float) -> float:
    """Which share of the machine's time went to others meanwhile."""
    busy = (after[0] - before[0]) / os.sysconf("SC_CLK_TCK")
    total = (after[1] - before[1]) / os.sysconf("SC_CLK_TCK")
    return max(busy - ours, 0.0) / total if total else 0.0


def machine_time() -> tuple[int, int]:
    """Ticks of all CPUs: busy, and all."""
    try:
        ticks = [int(n) for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    except OSError:
        return 0, 0
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


# -- the report

WANTED = [  # figure, what it is called, unit, digits, wanted of fairlock
    ("cycles_fresh", "cycles, a new object each time", "/s", 0, ""),
    ("cycles_same", "cycles, one object used again", "/s", 0, ""),
    ("idle_50", "idle while one waits, 50 ms holds", "ms", 2, "≤ 0.7"),
    ("idle_2", "idle while one waits, 2 ms holds", "ms", 2, "≤ 0.4"),
    ("handoffs_8", "hand-offs, 8 processes", "/s", 0, "≥ 3000"),
    ("handoffs_32", "hand-offs, 32 processes", "/s", 0, "≥ 1500"),
    ("jain_8", "fairness (Jain), 8 processes", "", 4, ""),
    ("jain_32", "fairness (Jain), 32 processes", "", 4, "≥ 0.99"),
    ("longest_8", "longest wait, 8 processes", "ms", 0, ""),
    ("longest_32", "longest wait, 32 processes", "ms", 0, ""),
    ("cpu_8", "CPU for a hand-off, 8 processes", "µs", 0, ""),
    ("cpu_32", "CPU for a hand-off, 32 processes", "µs", 0, ""),
    ("kill", "kill -9 of the holder to next inside", "ms", 2, ""),
]


def median_and_spread(values: list[float], digits: int) -> str:
    """'median (lowest to highest)'."""
    low, high = min(values), max(values)
    return f"{statistics.median(values):.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def ratios(results: Rounds, figure: str, one: str, other: str) -> list[float]:
    return [r[one][figure] / r[other][figure] for r in results if figure in r[one] and r[other].get(figure)]


def table(results: Rounds, starts: list[Figures]) -> list[list[str]]:
    names = [c.name for c in CONTENDERS]
    rows = [["", "wanted", *names]]
    for figure, called, unit, digits, wanted in WANTED:
        cells = [[r[name][figure] for r in results if figure in r[name]] for name in names]
        if cells[0]:
            label = f"{called}, {unit}" if unit else called
            rows.append([label, wanted, *[median_and_spread(c, digits) if c else "" for c in cells]])
    for figure, called, wanted in (
        ("cycles_fresh", "a new object each time", "≥ 2.2"), ("cycles_same", "one object used again", "≥ 1.8")
    ):  # fmt: skip
        found = ratios(results, figure, Fairlock.name, "filelock")
        if found:
            rows.append([f"cycles, {called}: times filelock's", wanted, median_and_spread(found, 2)])
    if starts:
        times = [s["fairlock_run"] / s["python"] for s in starts]
        rows.append(["fairlock run x -- true: times python3 -c pass", "≤ 4.5", median_and_spread(times, 2)])
        for name, called in (("fairlock_run", "fairlock run"), ("python", "python3 -c pass"), ("flock_1", "flock(1)")):
            values = [s[name] for s in starts if name in s]
            if values:
                rows.append([f"{called}, ms", "", median_and_spread(values, 1)])
    return rows


def show(rows: list[list[str]]) -> str:
    width = [max(len(row[i]) for row in rows if i < len(row)) for i in range(max(map(len, rows)))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, width, strict=False)).rstrip() for row in rows)


def markdown(rows: list[list[str]]) -> str:
    width = max(map(len, rows))
    lines = ["| " + " | ".join([*row, *[""] * (width - len(row))]) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * width + "|", *lines[1:]])


def put_into(page: Path, text: str) -> None:
    """Replace what stands between the two marks of the page, if it has them."""
    begin, end = "<!-- figures -->\n", "<!-- end of figures -->\n"
    old = page.read_text() if page.exists() else ""
    head, found, rest = old.partition(begin)
    _, closed, tail = rest.partition(end)
    if found and closed:
        page.write_text(f"{head}{begin}\n{text}\n\n{end}{tail}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--into", type=Path, help="write bench.json and bench.svg here")
    parser.add_argument("--only", nargs="*", default=[], choices=["cycles", *MEASURES, "start"], metavar="MEASURE")
    wanted = parser.parse_args()
    before, begun = machine_time(), time.monotonic()
    results, starts = run(wanted.rounds, wanted.only)
    used = os.times()
    share = others_share(before, machine_time(), used.user + used.system + used.children_user + used.children_system)
    about: dict[str, Any] = {
        "rounds": wanted.rounds,
        "seconds": round(time.monotonic() - begun),
        "cpus": os.cpu_count(),
        "share of the CPUs used by others": round(share, 2),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        **VERSIONS,
    }
    rows = table(results, starts)
    print(show(rows))
    below = "Median (lowest to highest) of the rounds. " + ", ".join(f"{k}: {v}" for k, v in about.items()) + "."
    print("\n" + below)
    if wanted.into:
        wanted.into.mkdir(parents=True, exist_ok=True)
        data = {"about": about, "rounds": results, "start": starts}
        (wanted.into / "bench.json").write_text(json.dumps(data, indent=1) + "\n")
        (wanted.into / "bench.svg").write_text(draw(results, starts))
        put_into(wanted.into / "bench.md", markdown(rows) + "\n\n" + below)


if __name__ == "__main__":
    main()
