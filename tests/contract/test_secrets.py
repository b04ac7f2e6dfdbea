"""No part of a password appears anywhere: not in an error, a repr, a log, `where`, doctor, schema, nor in the tool.

Thousands of URLs of every scheme, with a password that is put together from two marks and whatever separates parts of a
URL, in any place where somebody could have written it. Nothing listens where they lead to.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import fairlock
from fairlock import LockError, aio
from fairlock.connect import SCHEMES
from fairlock.engine.run_sync import run

MARKS = ("Xq7Zw", "Kj3Vp")
GLUE = [
    "", "@", ":", "/", "?", "#", "%", "&", "=", "@@", "@:", ":@", "/@", "?@", "&x=", "?x=", "%zz", "é", "密", " ", "[",
    "]", ",", "\\", "$", "\udce9",
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
            quoted = quote(password, safe="", errors="surrogateescape")
            yield form.format(scheme=scheme, password=password, quoted=quoted, place=place)


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


def whole_chain(error: BaseException | None) -> list[str]:
    """An error as it is printed, and every one behind it, also those that a traceback hides: a reporter of errors may
    read them."""
    if error is None:
        return []
    shown = ["".join(traceback.format_exception(error)), str(error), repr(error)]
    behind = {id(each): each for each in (error.__cause__, error.__context__)}
    return shown + [text for each in behind.values() for text in whole_chain(each)]


def opened(url: str) -> list[str]:
    """Everything that the two faces show of this URL before anything is asked for."""
    shown: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for connect in (fairlock.connect, aio.connect):
            try:
                shown += what_is_shown(connect(url))
            except LockError as error:
                shown += whole_chain(error)
    return shown + [str(each.message) for each in caught]


@pytest.mark.parametrize("scheme", [*SCHEMES, "postgresql+psycopg", "mysql+pymysql"])
def test_no_url_shows_a_part_of_its_password(scheme: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    leaks = {url: found for url in urls_of(scheme) if (found := clean(*opened(url)))}
    assert not leaks, f"{len(leaks)} leak, for example {next(iter(leaks.items()))}"
    assert not clean(caplog.text)


BEGINNINGS = [":", ":/", ":///", ":////", ":/ /", "://://", ":\\\\", "://\\", "", "//", "=//", "//:", "::", "%3A//"]
ENDS = ["@127.0.0.1:1/0", "@127.0.0.1", "@127.0.0.1:1/s/0", "@/no/such", "@region/c/t", "%40h/d", "@h\n"]
LOGINS = ["user:{}", ":{}", "h/user:{}", "@user:{}", "/@user:{}"]


def with_a_wrong_slash(scheme: str) -> list[str]:
    """URLs whose beginning has a slash too many or too few, so that the login stands where a path does."""
    passwords = itertools.cycle(PASSWORDS[:12])
    beginnings, logins = itertools.product(BEGINNINGS, ENDS), itertools.cycle(LOGINS)
    return [scheme + begin + next(logins).format(next(passwords)) + end for begin, end in beginnings]


@pytest.mark.parametrize("scheme", [*SCHEMES, "postgres", "valkey", "postgresql+psycopg", "REDIS", "http"])
def test_no_url_with_a_slash_too_many_or_too_few_shows_its_password(
    scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    leaks = {url: found for url in with_a_wrong_slash(scheme) if (found := clean(*opened(url)))}
    assert not leaks, f"{len(leaks)} leak, for example {next(iter(leaks.items()))}"
    assert not clean(caplog.text)


def test_a_path_with_both_letters_of_a_login_is_given_as_a_path(tmp_path: Path) -> None:
    """A URL with it is refused, because it is rather a login behind a slash too many."""
    (tmp_path / "a:b@c").mkdir()
    with pytest.raises(fairlock.ConfigError, match=r"looks as if it held .*pathlib\.Path"):
        fairlock.connect(f"sqlite:///{tmp_path}/a:b@c/x.db")
    with fairlock.connect(tmp_path / "a:b@c/x.db") as locks, locks.lock("x"):
        pass
    with fairlock.connect(f"sqlite:///{tmp_path}/b@c:d.db") as locks, locks.lock("x"):
        pass


BY_HOST = [scheme for scheme in SCHEMES if scheme not in ("memory", "sqlite", "unix", "oci-nosql")]


@pytest.mark.parametrize("scheme", BY_HOST)
def test_a_password_in_place_of_a_number_is_not_repeated(scheme: str) -> None:
    """Without the host a password looks like a port. And a number of an option may be missing before a password."""
    forms = ["user:{}", ":{}", "user:{}/0", "127.0.0.1:1/d?port={}", "127.0.0.1:1/0?socket_timeout={}"]
    forms += ["127.0.0.1:1/d?connect_timeout={}", "127.0.0.1:1/d?timeout={}", "127.0.0.1:1/d?skew={}"]
    passwords = [glue.join(MARKS) for glue in ("", "/", "?", ":", "%", "²")]
    urls = [f"{scheme}://{form.format(password)}" for form in forms for password in passwords]
    leaks = {url: found for url in urls if (found := clean(*opened(url)))}
    assert not leaks, f"{len(leaks)} leak, for example {next(iter(leaks.items()))}"


@pytest.mark.parametrize("begin", ["redis://", "redis:/", "redis:", "postgresql:///", "sqlite:////", "unix:///"])
@pytest.mark.parametrize("by", ["@", "FAIRLOCK_URL_FILE"])
def test_a_url_in_place_of_the_file_that_holds_it_is_not_repeated(
    begin: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url: str | None = f"@{begin}user:{MARKS[0]}@h/d"
    if by != "@":
        monkeypatch.setenv(by, f"{begin}user:{MARKS[0]}@h/d")
        url = None
    with pytest.raises(fairlock.ConfigError, match=f"The file .{by}.* cannot be read") as caught:
        fairlock.connect(url)
    assert not clean(*whole_chain(caught.value))


def test_a_file_that_is_not_text_is_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "url"
    path.write_bytes(f"redis://user:{MARKS[0]}é@127.0.0.1".encode("latin-1"))
    assert not clean(*opened(f"@{path}"))


ASKED = ["redis", "rediss", "redis+sentinel", "redis+cluster", "postgresql", "mariadb", "cassandra"]


@pytest.mark.parametrize("host", ["127.0.0.1", "a..b"])
@pytest.mark.parametrize("scheme", ASKED)
def test_no_server_that_cannot_be_reached_shows_it(
    scheme: str, host: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    place = PLACES.get(scheme, USUAL)[0].replace("127.0.0.1", host)  # or a host that no network can have
    url = f"{scheme}://user:{MARKS[0]}@密{MARKS[1]}@{place}"
    shown = []
    with fairlock.connect(url, lease=0.5) as locks:  # closed: one that is left connects again beside other tests
        examine = locks.session.backend.doctor
        for ask in (lambda: locks.lock("x").acquire(timeout=0.1), locks.ping, lambda: run(examine())):
            try:
                shown.append(repr(ask()))
            except LockError as error:
                shown.append("".join(whole_chain(error)))

    async def by_task() -> None:
        async with aio.connect(url, lease=0.5) as tasks:
            try:
                await tasks.lock("x").acquire(timeout=0.1)
            except LockError as error:
                shown.append("".join(whole_chain(error)))

    asyncio.run(by_task())
    assert len(shown) == 4
    assert not clean(*shown, caplog.text), url


@pytest.mark.parametrize("scheme", ["redis_alone", "mariadb"])
def test_a_password_that_a_driver_cannot_send_is_not_repeated(scheme: str, request: pytest.FixtureRequest) -> None:
    """By an object of the driver, because a URL that is not text is refused before."""
    server = request.getfixturevalue(scheme)
    password = f"{MARKS[0]}\udce9{MARKS[1]}"
    if scheme == "redis_alone":
        from redis import Redis

        client: Any = Redis(port=server.port, password=password)
    else:
        import sqlalchemy as sa

        url = sa.URL.create("mariadb+pymysql", "app", password, "127.0.0.1", server.port, "fairlock")
        client = sa.create_engine(url)
    with fairlock.connect(client) as locks, pytest.raises(fairlock.ConfigError, match="cannot send") as caught:
        locks.lock("x").acquire(timeout=5)
    assert not clean(*whole_chain(caught.value))


def test_a_handle_that_is_not_text_is_not_repeated() -> None:
    with fairlock.connect("memory://") as locks, pytest.raises(fairlock.ConfigError, match="UTF-8") as caught:
        locks.lock("x", handle=f"{MARKS[0]}\ud800{MARKS[1]}")
    assert not clean(*whole_chain(caught.value))


def test_the_tool_shows_nothing_of_it(capfd: pytest.CaptureFixture[str]) -> None:
    for scheme in SCHEMES:
        begins = itertools.product(("://", ":///", ":////", ":/", ":"), ("", "@", "/", "?"))
        urls = [f"{scheme}{begin}user:{glue.join(MARKS)}@127.0.0.1:1/0" for begin, glue in begins]
        for url in urls:
            schema = [["-u", url, "schema"], ["-u", f"@{url}", "schema"]]
            for words in ([url], ["ls", "x", url], ["schema", url, url], ["ls", "--scope", url], ["-w", url], *schema):
                assert not clean(*printed(capfd, words)), words


def printed(capfd: pytest.CaptureFixture[str], words: list[str]) -> tuple[str, str]:
    from fairlock.cli import main

    with contextlib.suppress(SystemExit):
        main(words)
    return capfd.readouterr()
