"""Stands in for the wrapper in the guard's tests: posts a real guard, starts a real command, but keeps no lease.

    standin.py ON_LOST EARLY GROUP|SHARED|UNTOLD SECONDS -- CMD…

Deadlines are moved by hand: each line on stdin is SECONDS from now, `over`, or `listen`. stdout tells pids and answers.
The guard gets the write end of a pipe as its beacon; its read end is descriptor 9 of whoever started us.
"""

import os
import sys

from holdfast.cli import child, guard, signals

TICKET = "standin-" + os.urandom(8).hex()


def main() -> None:
    on_lost, early, kind, seconds, _, *command = sys.argv[1:]
    post = guard.post(on_lost)
    mask = signals.block()
    post.tell("ticket", TICKET, early)
    post.tell("deadline", guard.clock() + float(seconds))
    post.tell("beacon", fd=9)
    os.close(9)
    post.tell("starting")
    env = os.environ | {"HOLDFAST_TICKET": TICKET, "HOLDFAST_HELD": f"outer {TICKET}"}
    pid = child.spawn(command[0], command, env, mask, kind == "GROUP")
    if kind != "UNTOLD":
        post.tell("child", pid, pid if kind == "GROUP" else 0)
    print(post.pid, pid, flush=True)
    for line in sys.stdin:
        word = line.strip()
        if word == "listen":
            print(" ".join(sorted(post.listen(0.2))) or "nothing", flush=True)
        elif word == "over":
            os.waitpid(pid, 0)
            post.finish(10)
            print(" ".join(sorted(post.heard)), flush=True)
        else:
            post.tell("deadline", guard.clock() + float(word))
    post.dismiss()


main()
