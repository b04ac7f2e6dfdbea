"""No part of a password appears anywhere: not in an error, a repr, a log, `where`, doctor, schema, nor in the tool.

Thousands of URLs of every scheme, with a password that is put together from two marks and whatever separates parts of a
URL, in any place where somebody could have written it. Nothing listens where they lead to.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import logging
import traceback
import warnings
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

import fairlock
from fairlock import LockError, aio
from fairlock.cli.make_client import examine
from fairlock.connect import SCHEMES

MARKS = ("Xq7Zw", "Kj3Vp")
GLUE = [
    "", "@", ":", "/", "?", "#", "%", "&", "=", "@@", "@:", ":@", "/@", "?@", "&x=", "?x=", "%zz", "é", "密", " ", "[",
    "]", ",", "\\", "$",
]  # fmt: skip
PLACES = {
    "memory": ["", "name", "h"],
    "sqlite": ["", "h", "h/x.db"],
    "unix": ["/no/such.sock", ""],
    "cassandra": ["127.0.0.1:1/ks", "127.0.0.1:1"],
    "oci-nosql": ["region/c/t", "region//ocid1.t"],
    "redis+sentinel": ["127.0.0.1:1/s", "127.0.0.1:1"],
    "rediss+sentinel": ["127.0.0.1:1/s"],
}
USUAL = ["127.0.0.1:1/0", "127.0.0.1:1", "127.0.0.1:x/0", "[::1]:1/d"]


PASSWORDS = [
    *[f"{MARKS[0]}{glue}{MARKS[1]}" for glue in GLUE],
    *[f"{one}{MARKS[0]}{other}{MARKS[1]}{one}" for one, other in itertools.permutations("@/?#:", 2)],
]
FORMS = [
    "{scheme}://user:{password}@{place}",
    "{scheme}://:{password}@{place}",
    "{scheme}://us/er:{password}@{place}",
    "{scheme}://user:{quoted}@{place}",
    "{scheme}://u:{password}@{place}?password={password}&nonsense=1",
    "{scheme}://u:{password}@{place}?timeout={password}&socket_timeout={password}",
]
# Where a user is no secret it may be one of theirs, and where there is a path or a name this is one.
ALONE = ["{scheme}://{password}@{place}", "{scheme}://{place}?password={password}"]


def urls_of(scheme: str) -> Iterator[str]:
    """Every password in the first form and place, and everything else with one of them after the other."""
    alone = ALONE if scheme.startswith(("redis", "cassandra", "oci")) else []
    turns = itertools.cycle(PASSWORDS)
    for number, (place, form) in enumerate(itertools.product(PLACES.get(scheme, USUAL), [*FORMS, *alone])):
        for password in PASSWORDS if number == 0 else itertools.islice(turns, 5):
            yield form.format(scheme=scheme, password=password, quoted=quote(password, safe=""), place=place)


def clean(*texts: str) -> list[str]:
    return [text for text in texts if any(mark in text for mark in MARKS)]


def what_is_shown(locks: Any) -> list[str]:
    lock, pool = locks.lock("x"), locks.pool("p")
    return [
        locks.store,
        repr(locks),
        repr(lock),
        repr(pool),
        locks._session.backend.schema(),
        repr(locks._session.backend),
    ]


def opened(url: str) -> list[str]:
    """Everything that the two faces show of this URL before anything is asked for."""
    shown: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for connect in (fairlock.connect, aio.connect):
            try:
                shown += what_is_shown(connect(url))
            except LockError as error:
                shown += ["".join(traceback.format_exception(error)), repr(error)]
    return shown + [str(each.message) for each in caught]


@pytest.mark.parametrize("scheme", [*SCHEMES, "postgresql+psycopg", "mysql+pymysql"])
def test_no_url_shows_a_part_of_its_password(scheme: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    leaks = {url: found for url in urls_of(scheme) if (found := clean(*opened(url)))}
    assert not leaks, f"{len(leaks)} leak, for example {next(iter(leaks.items()))}"
    assert not clean(caplog.text)


ASKED = ["redis", "rediss", "redis+sentinel", "redis+cluster", "postgresql", "mariadb", "cassandra"]


@pytest.mark.parametrize("scheme", ASKED)
def test_no_server_that_cannot_be_reached_shows_it(scheme: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    place = PLACES.get(scheme, USUAL)[0]
    url = f"{scheme}://user:{MARKS[0]}@密{MARKS[1]}@{place}"
    shown = []
    with fairlock.connect(url, lease=0.5) as locks:  # closed: one that is left connects again beside other tests
        for ask in (lambda: locks.lock("x").acquire(timeout=0.1), locks.ping, lambda: examine(locks)):
            try:
                shown.append(repr(ask()))
            except LockError as error:
                shown.append("".join(traceback.format_exception(error)))

    async def by_task() -> None:
        async with aio.connect(url, lease=0.5) as tasks:
            try:
                await tasks.lock("x").acquire(timeout=0.1)
            except LockError as error:
                shown.append("".join(traceback.format_exception(error)))

    asyncio.run(by_task())
    assert len(shown) == 4
    assert not clean(*shown, caplog.text), url


def test_the_tool_shows_nothing_of_it() -> None:
    from fairlock.cli import main

    for scheme in SCHEMES:
        for glue in ("", "@", "/", "?"):
            url = f"{scheme}://user:{MARKS[0]}{glue}{MARKS[1]}@127.0.0.1:1/0"
            for words in ([url], ["ls", "x", url], ["-u", url, "schema"], ["schema", url, url]):
                out, err = io.StringIO(), io.StringIO()
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                    with contextlib.suppress(SystemExit):
                        main(words)
                assert not clean(out.getvalue(), err.getvalue()), words
