"""Stands in for the wrapper in the tests of the watchdog: starts a real watchdog and a real command, without a lease.

    standin.py ON_LOST EARLY GROUP|SHARED|UNREPORTED SECONDS -- CMD…

Each line of stdin is a new deadline in SECONDS from now, `over`, or `receive`. Pids and replies are printed to stdout.
The watchdog gets the write end of a pipe as its liveness_fd: descriptor 9, which the test passes.
"""

import os
import sys

from fairlock.cli import child_process, signal_handling, watchdog

TICKET = "standin-" + os.urandom(8).hex()


def main() -> None:
    on_lost, early, kind, seconds, _, *command = sys.argv[1:]
    dog = watchdog.start_watchdog(on_lost)
    mask = signal_handling.block()
    dog.send("ticket", TICKET, early)
    dog.send("deadline", watchdog.clock() + float(seconds))
    dog.send("liveness_fd", fd=9)
    os.close(9)
    dog.send("starting")
    env = os.environ | {"FAIRLOCK_TICKET": TICKET, "FAIRLOCK_HELD": f"outer {TICKET}"}
    pid = child_process.spawn(command[0], command, env, mask, kind == "GROUP")
    if kind != "UNREPORTED":
        dog.send("child", pid, pid if kind == "GROUP" else 0)
    print(dog.pid, pid, flush=True)
    for line in sys.stdin:
        word = line.strip()
        if word == "receive":
            print(" ".join(sorted(dog.receive(0.2))) or "nothing", flush=True)
        elif word == "over":
            os.waitpid(pid, 0)
            dog.finish(10)
            print(" ".join(sorted(dog.received)), flush=True)
        else:
            dog.send("deadline", watchdog.clock() + float(word))
    dog.dismiss()


main()
