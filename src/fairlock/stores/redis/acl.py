"""The smallest set of rights under which locks work. Read off the scripts, so that it cannot drift.

`commands` is the one list: the line of ACL that `fairlock schema` prints is made of it, and the doctor tries each of
them, as TRIES writes it. A user of a Redis server that runs a script needs the right to each command in it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import encoding, lua_scripts

if TYPE_CHECKING:
    from .store import RedisBackend

# What is sent beside the scripts: the scripts themselves, listening, looks at the busy names and at all names, the
# server's time, a repair, and a word that changes the order in which the server answers.
REPAIR = ("del", "hdel", "type", "zrem")
SENT = ("evalsha", "lrange", "ping", "scan", "script|load", "subscribe", "time", "zadd", "zrange", *REPAIR)
DATABASE = ("select",)  # with a database other than 0
CLUSTER = ("asking", "cluster|slots")
REPLICAS = ("wait",)  # with min_replicas


def commands() -> list[str]:
    """Return all of them, as an ACL writes them, by name."""
    import re

    found = set(SENT)
    for name in os.listdir(lua_scripts.HERE):
        text = lua_scripts.fold(lua_scripts.read(name)) if name.endswith(".lua") else ""
        for command, sub in re.findall(r"call\('([A-Z]+)'(?:, '([A-Z]+)')?", text):
            found.add(f"{command}|{sub}".lower() if command == "PUBSUB" else command.lower())
    return sorted(found)


KEY, CHANNEL = "KEY", "CHANNEL"  # placeholders for a key and a channel of the doctor

# How the doctor tries a command, in this order: what is written is removed again, by more than one command. Whether the
# reply is an error does not matter, as long as it is not about rights. SUBSCRIBE is tried by listening.
TRIES: dict[str, tuple[str, ...]] = {
    "ping": ("PING",),
    "time": ("TIME",),
    "script|load": ("SCRIPT", "LOAD", "return 1"),
    "evalsha": ("EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"),
    "scan": ("SCAN", "0", "COUNT", "1"),
    "publish": ("PUBLISH", CHANNEL, "doctor"),
    "pubsub|numsub": ("PUBSUB", "NUMSUB", CHANNEL),
    "zadd": ("ZADD", KEY, "1", "x"),
    "zcard": ("ZCARD", KEY),
    "zcount": ("ZCOUNT", KEY, "0", "1"),
    "zrange": ("ZRANGE", KEY, "0", "0"),
    "zrangebylex": ("ZRANGEBYLEX", KEY, "-", "+"),
    "zrangebyscore": ("ZRANGEBYSCORE", KEY, "0", "1"),
    "zrank": ("ZRANK", KEY, "x"),
    "zscore": ("ZSCORE", KEY, "x"),
    "persist": ("PERSIST", KEY),
    "pexpire": ("PEXPIRE", KEY, "1000"),
    "pexpireat": ("PEXPIREAT", KEY, "1"),
    "zrem": ("ZREM", KEY, "x"),
    "zremrangebyscore": ("ZREMRANGEBYSCORE", KEY, "-inf", "+inf"),
    "hset": ("HSET", KEY, "x", "1"),
    "hget": ("HGET", KEY, "x"),
    "hgetall": ("HGETALL", KEY),
    "hmget": ("HMGET", KEY, "x"),
    "hscan": ("HSCAN", KEY, "0"),
    "exists": ("EXISTS", KEY),
    "llen": ("LLEN", KEY),
    "lpush": ("LPUSH", KEY, "x"),
    "lrange": ("LRANGE", KEY, "0", "0"),
    "ltrim": ("LTRIM", KEY, "1", "0"),
    "type": ("TYPE", KEY),
    "hdel": ("HDEL", KEY, "x"),
    "del": ("DEL", KEY),
    "select": ("SELECT", "DATABASE"),
    "asking": ("ASKING",),
    "cluster|slots": ("CLUSTER", "SLOTS"),
    "wait": ("WAIT", "0", "1"),
}


def tries(extra: tuple[str, ...], key: str, channel: str, database: int) -> list[tuple[str, ...]]:
    """Return every command of the list, as it can be sent."""
    wanted = {*commands(), *extra} - {"subscribe"}
    missing = wanted - {*TRIES}
    assert not missing, f"the doctor does not know how to try {missing}"
    stand_for = {KEY: key, CHANNEL: channel, "DATABASE": str(database)}
    return [tuple(stand_for.get(word, word) for word in TRIES[name]) for name in TRIES if name in wanted]


def line(
    extra: tuple[str, ...] = (), user: str = "fairlock", password: str = "PASSWORD", namespace: str = ""
) -> str:
    allowed = " ".join(f"+{command}" for command in sorted({*commands(), *extra}))
    places = f"resetkeys {' '.join(patterns(namespace))} resetchannels &{encoding.LISTENERS}*"
    return f"ACL SETUSER {user} on >{password} {places} -@all {allowed}"


def patterns(namespace: str) -> list[str]:
    """Return the keys of a namespace, as an ACL writes them for redis-cli: the index of names is shared by all."""
    from .busy_name_index import BUSY

    if not namespace:
        return [f"~{encoding.PREFIX}*"]
    own = "".join(f"\\{c}" if c in "*?[]\\" else c for c in encoding.tag(namespace, ""))
    own = own.replace(" ", "?")  # an ACL cannot contain a space
    quoted = f"~{encoding.PREFIX}{{{own}*".replace("\\", "\\\\").replace('"', '\\"').replace("\x1f", "\\x1f")
    return [f'"{quoted}"', f"~{BUSY}*"]


def extra(backend: RedisBackend) -> tuple[str, ...]:
    """Return the rights that this client needs beside those of every client."""
    rights: tuple[str, ...] = DATABASE if backend.database else ()
    rights += CLUSTER if backend.topology.many else ()
    return rights + (REPLICAS if backend.min_replicas else ())


def text(backend: RedisBackend) -> str:
    where, namespace = backend.where, backend.namespace
    user = f"fairlock-{namespace}" if namespace.isalnum() else "fairlock"
    only = f", which reaches only the namespace {namespace!r}" if namespace else ""
    return (
        f"# A user for locks on {where}{only}: nothing has to be made there but this, and this only if you want to.\n"
        f"{line(extra(backend), user, namespace=namespace)}\n"
        "# With these two, `fairlock doctor` reports what becomes of locks when the server restarts or is full.\n"
        f"ACL SETUSER {user} +info +config|get\n"
    )
