"""Play scenarios by their seeds:  ./dev python -m tests.simulation SEED [LAST]

One seed: its whole history and what was wrong with it. A range: how many failed, and the first seed of each kind.
"""

import logging
import re
import sys
import time
from collections import defaultdict

from tests.simulation.plan import Run
from tests.simulation.world import Violation


def main(first: int, last: int) -> None:
    logging.getLogger("fairlock").disabled = True
    begun = time.monotonic()
    steps = grants = 0
    wrong: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for seed in range(first, last + 1):
        run = Run(seed)
        try:
            run.play()
        except Violation as violation:
            sentence = str(violation).splitlines()[0]
            wrong[re.sub(r"[0-9.]+", "#", sentence)[:60]].append((seed, sentence))
        if first == last:
            print(run.world.tell(10_000))
            print(run)
        steps += run.world.steps
        grants += run.witness.grants
    print(f"{last - first + 1} scenarios, {grants} grants, {steps} steps in {time.monotonic() - begun:.1f} s")
    for cases in sorted(wrong.values(), key=len, reverse=True):
        print(f"{len(cases)} times, first with seed {cases[0][0]}: {cases[0][1]}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[-1]))
