"""Pools on Redis and SQLite, raw scripts on a sorted set, and the queues of other libraries side by side, in one run.

    ./dev bench pools [--rounds N] [--into FOLDER] [--only MEASURE …]

Every round measures every contender once, one right after the other and each time in another order. Ratios are taken
within a round, and then the median of those. Workers are processes; a measurement begins when all of them are ready.
Prints a table; with --into also writes pools.json (all figures of all rounds), and the table into bench-pools.md, if
that has a place for it.
"""

import sys

sys.path.append(sys.path.pop(0))  # or bench/redis.py would be found as the driver of the same name

import argparse
import os
import select
import signal
import statistics
import tempfile
import time
from pathlib import Path
from typing import NoReturn

from _about import about, publish
from _pool_contenders import CONTENDERS, Contender, Fairlock, FairlockSqlite
from _redis_measures import Server

ROUNDS = 3
PACKAGES = ("redis", "hiredis", "rq", "arq", "huey", "litequeue")
MEASURES = ("1", "8", "32", "size")
SECONDS = 0.8
LATE = 15  # seconds for workers to begin, or to end: one that hangs must not cost the whole run
Rounds = list[dict[str, dict[str, float]]]

RATIOS = [  # ours, the other, what is wanted
    ("fairlock, redis", "raw scripts, redis-py", "≥ 0.8"),
    ("fairlock, redis", "raw scripts, bare socket", "≥ 0.75"),
    ("fairlock's scripts, bare socket", "raw scripts, bare socket", ""),
    ("fairlock, redis", "rq", ""),
    ("fairlock, redis", "arq", ""),
    ("fairlock, sqlite", "litequeue, sqlite", ""),
    ("fairlock, sqlite", "huey, sqlite", ""),
]


def cpu_of(pid: int) -> float:
    """Seconds of CPU that this process has used."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def crowd(contender: Contender, place: str, workers: int, server: int) -> dict[str, float]:
    """Items per second that so many processes had, and the µs of CPU that each took, with the server's."""
    contender.fill(place, contender.enough)
    go_out, go_in = os.pipe()
    pipes: list[tuple[int, int]] = []
    try:
        for _ in range(workers):
            out, into = os.pipe()
            pid = os.fork()
            if pid == 0:
                _worker(contender, place, go_out, into)
            os.close(into)
            pipes.append((pid, out))
        _lines(pipes)
        time.sleep(0.05)
        begun, before = time.monotonic(), cpu_of(server)
        os.write(go_in, b"." * workers)
        found = [line.split() for line in _lines(pipes)]
        served = cpu_of(server) - before if contender.store == "redis" else 0.0
    finally:
        for pid, out in pipes:
            os.kill(pid, signal.SIGKILL)  # a worker that has answered is done, and one that has not is too late
            os.waitpid(pid, 0)
            os.close(out)
        os.close(go_out)
        os.close(go_in)
    total = sum(int(each[0]) for each in found)
    last = max(float(each[1]) for each in found)
    cpu = sum(float(each[2]) for each in found) + served
    return {f"{workers}": total / (last - begun), f"cpu {workers}": cpu / total * 1e6}


def _worker(contender: Contender, place: str, go: int, into: int) -> NoReturn:
    try:
        work = contender.worker(place)
        os.write(into, b"ready\n")
        os.read(go, 1)
        before = time.process_time()
        count, last = work(SECONDS)
        os.write(into, f"{count} {last} {time.process_time() - before}\n".encode())
    except BaseException as error:
        print(f"a worker of {contender.name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(0)


def _lines(pipes: list[tuple[int, int]]) -> list[str]:
    """One line of each worker. RuntimeError if they are not all there in time."""
    end = time.monotonic() + LATE
    texts = {out: b"" for _, out in pipes}
    while late := [out for out, text in texts.items() if not text.endswith(b"\n")]:
        ready, _, _ = select.select(late, [], [], max(end - time.monotonic(), 0))
        pieces = {out: os.read(out, 4096) for out in ready}
        if not pieces or not all(pieces.values()):
            raise RuntimeError(f"{len(late)} of {len(pipes)} workers failed, or took longer than {LATE} s")
        for out, piece in pieces.items():
            texts[out] += piece
    return [text.decode() for text in texts.values()]


def size(place: str) -> dict[str, float]:
    """Measure acquire and release in a pool of 100,000 items against one of 1,000: in turns, a few at a time."""
    import fairlock

    took: dict[int, list[float]] = {1_000: [], 100_000: []}
    with fairlock.connect(place) as locks:
        pools = {number: locks.pool(f"of {number}") for number in took}
        for number, pool in pools.items():
            pool.add_many(f"item {n}" for n in range(number))
        for turn in range(60):
            for number in sorted(took, reverse=bool(turn % 2)):
                begun = time.perf_counter()
                for _ in range(50):
                    item = pools[number].acquire(timeout=0)
                    assert item is not None
                    item.release()
                took[number].append(time.perf_counter() - begun)
    small, large = (statistics.median(took[number]) / 50 * 1e6 for number in (1_000, 100_000))
    ratio = statistics.median(b / a for a, b in zip(took[1_000], took[100_000], strict=True))
    return {"µs in a pool of 1,000": small, "µs in a pool of 100,000": large, "100,000 of 1,000": ratio}


def run(rounds: int, only: list[str], missing: dict[str, str]) -> Rounds:
    results: Rounds = []
    with Server() as server:
        for number in range(rounds):
            this: dict[str, dict[str, float]] = {}
            for measure in only or MEASURES:
                turn = number % len(CONTENDERS)
                for kind in (*CONTENDERS[turn:], *CONTENDERS[:turn]):
                    if kind.name in missing or (measure == "size" and kind not in (Fairlock, FairlockSqlite)):
                        continue
                    server.client.flushall()
                    with tempfile.TemporaryDirectory(prefix="bench") as folder:
                        place = server.url if kind.store == "redis" else f"sqlite:///{folder}/pools.db"
                        try:
                            if measure == "size":
                                found = size(place)
                            else:
                                found = crowd(kind(), place, int(measure), server.pid)
                        except (ImportError, RuntimeError) as error:
                            name = kind.name if type(error) is ImportError else f"{kind.name}, {measure}"
                            missing[name] = str(error)
                            continue
                    this.setdefault(kind.name, {}).update(found)
            results.append(this)
            print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return results


def values(results: Rounds, name: str, figure: str) -> list[float]:
    return [r[name][figure] for r in results if figure in r.get(name, {})]


def spread(found: list[float], digits: int) -> str:
    if not found:
        return ""
    middle = f"{statistics.median(found):,.{digits}f}"
    return middle if len(found) == 1 else f"{middle} ({min(found):,.{digits}f} to {max(found):,.{digits}f})"


def tables(results: Rounds) -> list[list[list[str]]]:
    counts = [measure for measure in MEASURES[:-1] if any(measure in f for r in results for f in r.values())]
    titles = [f"{count} worker{'s' if count != '1' else ''}" for count in counts]
    found = [["items per second", *titles]]
    found += [[k.name, *[spread(values(results, k.name, count), 0) for count in counts]] for k in CONTENDERS]
    costs = [["µs of CPU for an item, of workers and server", *titles]]
    costs += [[k.name, *[spread(values(results, k.name, f"cpu {count}"), 0) for count in counts]] for k in CONTENDERS]
    ratios = [["ratio", "wanted", *titles]]
    for ours, other, wanted in RATIOS:
        for figure, called in (("", f"{ours}: items, of {other}"), ("cpu ", f"{ours}: CPU, times {other}")):
            cells = []
            for count in counts:
                pairs = [(r.get(ours, {}).get(figure + count), r.get(other, {}).get(figure + count)) for r in results]
                cells.append(spread([a / b for a, b in pairs if a and b], 2))
            ratios.append([called, wanted if not figure else "", *cells])
    sizes = [["taking and giving back", "wanted", Fairlock.name, FairlockSqlite.name]]
    for figure, wanted, digits in (
        ("µs in a pool of 1,000", "", 0), ("µs in a pool of 100,000", "", 0), ("100,000 of 1,000", "≤ 1.2", 2),
    ):  # fmt: skip
        cells = [spread(values(results, kind.name, figure), digits) for kind in (Fairlock, FairlockSqlite)]
        sizes.append([figure, wanted, *cells])
    return [some for some in (found, costs, ratios, sizes) if any(any(row[-2:]) for row in some[1:])]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--into", type=Path, help="write pools.json here, and the table into bench-pools.md")
    parser.add_argument("--only", nargs="*", default=[], choices=MEASURES, metavar="MEASURE")
    wanted = parser.parse_args()
    missing: dict[str, str] = {}
    begun = time.monotonic()
    results = run(wanted.rounds, wanted.only, missing)
    run_by = about(wanted.rounds, begun, PACKAGES)
    publish("pools", "pools", tables(results), run_by, missing, results, wanted.into)


if __name__ == "__main__":
    main()
