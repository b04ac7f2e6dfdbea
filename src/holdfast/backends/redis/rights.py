"""The smallest set of rights under which locks work, as one line of ACL. Read off the scripts, so that it cannot drift.

A user of a Redis server that runs a script needs the right to each command in it, as if it had typed them.
"""

from __future__ import annotations

from . import layout, scripts

# What is sent beside the scripts: the scripts themselves, listening, the index of names, the server's time, and a word
# that changes the order in which the server answers.
SENT = ("evalsha", "ping", "script|load", "subscribe", "time", "zadd", "zrange", "zremrangebyscore")
DATABASE = ("select",)  # with a database other than 0
CLUSTER = ("asking", "cluster|slots")
REPLICAS = ("wait",)  # with min_replicas


def commands() -> list[str]:
    """All of them, as an ACL writes them, by name."""
    import re

    from . import pool_layout

    found = set(SENT)
    p = pool_layout
    pools = (p.TAKE, p.KEEP, p.FINISH, p.STEP, p.LOOK, p.COUNT, p.LINE)
    for script in (scripts.ENTER, scripts.LEAVE, scripts.STEP, scripts.LOOK, *pools):
        for command, sub in re.findall(r"call\('([A-Z]+)'(?:, '([A-Z]+)')?", script.text):
            found.add(f"{command}|{sub}".lower() if command == "PUBSUB" else command.lower())
    return sorted(found)


def line(extra: tuple[str, ...] = (), user: str = "holdfast", password: str = "PASSWORD") -> str:
    allowed = " ".join(f"+{command}" for command in sorted({*commands(), *extra}))
    places = f"resetkeys ~{layout.PREFIX}* resetchannels &{layout.EARS}*"
    return f"ACL SETUSER {user} on >{password} {places} -@all {allowed}"


def text(where: str, extra: tuple[str, ...] = ()) -> str:
    return (
        f"# A user for locks on {where}: nothing has to be made there but this, and this only if you want to.\n"
        f"{line(extra)}\n"
        "# With these two, `holdfast doctor` can tell what becomes of locks when the server restarts or is full.\n"
        "ACL SETUSER holdfast +info +config|get\n"
    )
