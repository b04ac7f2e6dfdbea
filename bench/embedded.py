"""holdfast on its embedded store against filelock, portalocker and flock(2), in one interleaved run.

    ./dev bench embedded [ROUNDS] [FOLDER]

Every round measures every contender once, one after the other, so that whatever else the machine does meets them all;
the ratios are taken within a round, and what is printed is the median of the rounds with the lowest and the highest.
Absolute numbers are those of one machine on one day. With FOLDER a table (embedded.json) and a picture (embedded.svg)
are written there.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import _crowd as crowd
from _contenders import CONTENDERS, VERSIONS
from _picture import number, picture

Figures = dict[str, dict[str, list[float]]]  # figure -> contender -> one number a round

FIGURES = {
    "new": ("acquire + release, a new object each time", "cycles/s"),
    "reused": ("acquire + release, one object", "cycles/s"),
    "handoffs8": ("8 processes, empty section: hand-offs to another process", "/s"),
    "handoffs32": ("32 processes, empty section: hand-offs to another process", "/s"),
    "jain32": ("32 processes: Jain's fairness in a window of time", ""),
    "longest32": ("32 processes: longest wait", "ms"),
    "idle50": ("lock idle although another process waits, 50 ms holds", "ms"),
    "idle2": ("lock idle although another process waits, 2 ms holds", "ms"),
    "killed": ("from kill -9 of the holder until the next is inside", "ms"),
}


def one_round(found: Figures) -> None:
    for make in CONTENDERS:
        with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
            new, reused = crowd.cycles(make(), folder, 0.5)
            eight = crowd.fight(make(), folder, 8, 1.0)
            many = crowd.fight(make(), folder, 32, 1.5)
            long = crowd.idle(make(), folder, 0.05, 12, 10)
            short = crowd.idle(make(), folder, 0.002, 80, 10)
            killed = crowd.after_a_kill(make(), folder)
        numbers = {
            "new": new,
            "reused": reused,
            "handoffs8": eight.handoffs,
            "handoffs32": many.handoffs,
            "jain32": many.jain,
            "longest32": many.longest * 1e3,
            "idle50": statistics.median(long) * 1e3 if long else 0.0,
            "idle2": statistics.median(short) * 1e3 if short else 0.0,
            "killed": killed * 1e3,
        }
        for figure, value in numbers.items():
            found.setdefault(figure, {}).setdefault(make.name, []).append(value)


def start_up(rounds: int) -> list[float]:
    """How many times a bare `python3 -c pass` a `holdfast run x -- true` takes, wall time, one ratio a round."""
    ratios = []
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        source = str(Path(__file__).resolve().parent.parent / "src")
        env = {**os.environ, "PYTHONPATH": source, "HOLDFAST_URL": f"sqlite:///{folder}/locks.db"}
        bare = [sys.executable, "-c", "pass"]
        ours = [sys.executable, "-m", "holdfast", "run", "x", "--", "true"]
        for command in (bare, ours):
            subprocess.run(command, env=env, check=True)
        for _ in range(rounds):
            times = []
            for command in (bare, ours):
                took = []
                for _ in range(5):
                    begun = time.monotonic()
                    subprocess.run(command, env=env, check=True)
                    took.append(time.monotonic() - begun)
                times.append(min(took))
            ratios.append(times[1] / times[0])
    return ratios


def table(found: Figures, starts: list[float]) -> str:
    names = [make.name for make in CONTENDERS]
    lines = [f"{'':62}" + "".join(f"{name:>16}" for name in names)]
    for figure, (heading, unit) in FIGURES.items():
        cells = [number(statistics.median(found[figure][name])) for name in names]
        lines.append(f"{heading + (', ' + unit if unit else ''):62}" + "".join(f"{cell:>16}" for cell in cells))
    lines.append("")
    for figure in ("new", "reused"):
        ratios = [a / b for a, b in zip(found[figure]["holdfast"], found[figure]["filelock"], strict=True)]
        lines.append(f"{FIGURES[figure][0]}: {spread(ratios)} times filelock")
    lines.append(f"`holdfast run x -- true`: {spread(starts)} times `python3 -c pass`")
    return "\n".join(lines)


def spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    found: Figures = {}
    for done in range(rounds):
        one_round(found)
        print(f"round {done + 1} of {rounds}", file=sys.stderr, flush=True)
    starts = start_up(rounds)
    print(table(found, starts))
    if len(sys.argv) > 2:
        folder = Path(sys.argv[2])
        about = {"python": platform.python_version(), "cores": os.cpu_count(), "rounds": rounds, **VERSIONS}
        text = json.dumps({"about": about, "figures": found, "start_up": starts}, indent=1)
        (folder / "embedded.json").write_text(text + "\n")
        medians = {f: {n: statistics.median(v) for n, v in by.items()} for f, by in found.items()}
        panels = [(FIGURES[f][0], FIGURES[f][1], medians[f]) for f in FIGURES if f != "jain32"]
        (folder / "embedded.svg").write_text(picture("holdfast on SQLite, and file locks", panels))


if __name__ == "__main__":
    main()
