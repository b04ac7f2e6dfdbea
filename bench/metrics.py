"""What metrics cost: an uncontended cycle of acquire and release with nothing, with `on_event`, and with metrics.

    ./dev bench metrics [--rounds N] [--url URL …]

Every round measures every contender once, one right after the other and each time in another order. A round is so short
that most of them are not interrupted by other programs: the tenth of the rounds with the smallest figures counts, and
their median is printed. "off again" is the same as "off" and shows how exact the others are. The last two are what
reading the metrics costs, for one cycle: values are evaluated only then, here after every 500 cycles. Without
--url: memory://, a file of SQLite, and a redis-server.
"""

import argparse
import gc
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

sys.path.append(sys.path.pop(0))  # or bench/redis.py would be found as the driver of the same name

import fairlock

EVALUATED, RECORDED = "at a scrape of Prometheus", "when OpenTelemetry's SDK collects"
ROUNDS = 400
CYCLES = 50
READ_AFTER = 10  # rounds


def nothing() -> None:
    return None


def a_function() -> Callable[[Any], None]:
    return lambda event: None


def prometheus() -> Any:
    from fairlock.metrics.prometheus import Metrics

    return Metrics()


def otel() -> Any:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider

    from fairlock.metrics.otel import Metrics

    reader = InMemoryMetricReader()
    metrics = Metrics(MeterProvider([reader]), TracerProvider())
    metrics.reader = reader  # type: ignore[attr-defined]
    return metrics


CONTENDERS: dict[str, Callable[[], Any]] = {
    "off": nothing, "off again": nothing, "a function": a_function, "Prometheus": prometheus, "OpenTelemetry": otel,
}  # fmt: skip


def cycle(lock: fairlock.Lock) -> float:
    """Return the µs of one cycle."""
    begun = time.perf_counter()
    for _ in range(CYCLES):
        with lock:
            pass
    return (time.perf_counter() - begun) / CYCLES * 1e6


def measure(url: str, rounds: int) -> dict[str, list[float]]:
    """Return the µs of each contender in each round."""
    found: dict[str, list[float]] = {name: [] for name in [*CONTENDERS, EVALUATED, RECORDED]}
    clients, locks, listeners = [], {}, {}
    for number, (name, make) in enumerate(CONTENDERS.items()):
        listeners[name] = make()
        clients.append(fairlock.connect(url, on_event=listeners[name]))
        locks[name] = clients[-1].lock(f"bench-{number}")
        cycle(locks[name])
    collect = listeners["OpenTelemetry"].reader.get_metrics_data
    reads = (EVALUATED, listeners["Prometheus"].evaluate), (RECORDED, collect)
    gc.disable()
    try:
        for number in range(1, rounds + 1):
            order = list(CONTENDERS)
            random.shuffle(order)
            for name in order:
                found[name].append(cycle(locks[name]))
            for name, work in reads if number % READ_AFTER == 0 else ():
                begun = time.perf_counter()
                work()
                found[name].append((time.perf_counter() - begun) / (CYCLES * READ_AFTER) * 1e6)
    finally:
        gc.enable()
        for client in clients:
            client.close()
    return found


def table(where: str, found: dict[str, list[float]]) -> None:
    best = {name: statistics.median(sorted(values)[: max(len(values) // 10, 1)]) for name, values in found.items()}
    off = best.pop("off")
    print(f"\n{where} {off:.1f} µs for a cycle with nothing")
    for name, value in best.items():
        more = value if name in (EVALUATED, RECORDED) else value - off
        print(f"  {name:{len(RECORDED)}} {more:+7.2f} µs  {more / off * 100:+6.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--url", action="append", default=[])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for url in args.url or ["memory://", f"sqlite:///{folder}/locks.db"]:
            table(url.partition("://")[0] + "://", measure(url, args.rounds))
        if not args.url:
            from _redis_measures import Server

            with Server() as server:
                table("redis://", measure(server.url, args.rounds))


if __name__ == "__main__":
    main()
