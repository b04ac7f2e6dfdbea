"""`fairlock doctor --repair NAME`: resets what is damaged under one name, and nothing else."""

from fairlock.engine import validate

from . import evict_resize, make_client, output
from .parse_arguments import Arguments


def repair(args: Arguments) -> int:
    name = validate.name(args["repair"])
    if not args["yes"]:
        evict_resize.confirm(
            "doctor --repair",
            name,
            f"If something is damaged under {name!r}, this resets it. Its holder loses it and may still be working.\n"
            "Its fences go on rising. Data that can be read is not changed.",
            "nothing was changed",
        )
    with make_client.client(args) as locks:
        done = locks.repair(name)
        store = locks.store
    if args["json"]:
        output.json({"name": name, "done": list(done)})
    elif done:
        output.out("".join(f"{output.plain(sentence)}\n" for sentence in done))
    else:
        output.err(f"Nothing is damaged under {name!r} in {store}, so nothing was changed.")
    return 0

