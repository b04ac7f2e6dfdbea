"""`holdfast doctor --repair NAME`: reset what is damaged under one name, and nothing else."""

from . import lock, orders, reach, say
from .words import Said


def repair(said: Said) -> int:
    name = lock.name(said["repair"])
    if not said["yes"]:
        orders.confirm(
            "doctor --repair",
            name,
            f"If something is damaged under {name!r}, this resets it: its holder loses it and may still be at work.\n"
            "Its fences go on rising. What can be read is left as it is.",
            "so nothing was repaired",
        )
    with reach.client(said) as locks:
        done = locks.repair(name)
        store = locks.store
    if said["json"]:
        say.json({"name": name, "done": list(done)})
    elif done:
        say.out("".join(f"{say.plain(sentence)}\n" for sentence in done))
    else:
        say.err(f"Nothing is damaged under {name!r} in {store}, so nothing was changed.")
    return 0

