"""`fairlock run --once-per DUR`: runs a command once per tick of the store's clock, over all machines.

The others exit with 0 and print nothing: a crontab line on many hosts must not send mail. If the command fails, or its
machine dies, the tick is free for another try.
"""

import time
from typing import TYPE_CHECKING, Any

from . import exit_codes, make_client, output
from .parse_arguments import Arguments
from .run import Run

if TYPE_CHECKING:
    from fairlock import Item

OF_A_LOCK = ("at_least", "max_hold", "slots", "shared", "handle", "note")


def once_run(args: Arguments) -> type[Run]:
    """Return the class for it. Usage if an option was given that belongs to a lock."""
    if not args["once_per"]:
        raise exit_codes.Usage("--once-per needs a span longer than 0, such as 1h.")
    for key in OF_A_LOCK:
        if args[key] is not None:
            name = "-s, -x or -e" if key == "shared" else f"--{key.replace('_', '-')}"
            raise exit_codes.Usage(f"--once-per holds no lock, so {name} has no meaning with it. Omit one of them.")
    return OnceRun


class OnceRun(Run):
    def acquire(self) -> "Item":  # type: ignore[override]
        args = self.args
        self.locks = make_client.client(args, self.on_event)
        timeout = 0.0 if args["nonblock"] or args["wait"] is None else args["wait"]
        tries = {} if args["tries"] is None else {"tries": args["tries"]}
        self.once = self.locks.once(self.name, every=args["once_per"], timeout=timeout, **tries)
        item = self.once.__enter__()
        if item is None:
            sentence = f"{self.name!r} has been executed in this tick, or is being executed." if args["verbose"] else ""
            raise exit_codes.Exit(args["conflict"] or 0, sentence, expected=True)
        return item

    def give_back(self, lease: Any, code: int) -> None:
        error = exit_codes.Exit(code) if code else None  # a failure frees the tick for another try
        self.once.__exit__(None if error is None else type(error), error, None)

    def describe(self) -> str:
        return f"waiting for {self.name!r}, for {output.duration(time.monotonic() - self.waiting.began)} now."
