"""How the URL of a store is taken apart, for every store alike: what may be shown of it, and what never.

The user and the password end at the last `@` before the path. A password with a `/`, `?` or `#` in it makes its own end
look like a path or an option, and a slash too many makes the whole login look like one. So a URL with a `:` or an `@`
behind its hosts is refused, and no error repeats a word of a URL but the names of its options. The path of a file may
have both, but not as a login has them. What is shown of a store is put together from the parts that are known to be no
secret.

`from None` hides an error, but keeps it as the context of ours, where a reporter of errors finds it. So one that
repeats a value, as that of int() does, is over before ours is raised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote

from ..errors import ConfigError

SPECIAL = "In a user or password, : / ? # @ and % are written %3A %2F %3F %23 %40 %25."
SECRETS = ("password", "passwd", "ssl_password", "sslpassword")


class Parts(NamedTuple):
    scheme: str
    user: str | None
    password: str | None
    place: str
    """Host and port, or several of them."""
    path: str
    """As it is written, with its first `/`."""
    query: list[tuple[str, str]]
    tail: str
    """Path and query, as they are written."""

    def quoted(self, scheme: str) -> str:
        """Return the same URL for a driver that reads it by itself: with everything special in the credentials
        quoted."""
        login = quote(self.user or "", safe="")
        if self.password is not None:
            login += ":" + quote(self.password, safe="")
        return f"{scheme}://{login}{'@' if self.user is not None else ''}{self.place}{self.tail}"


def split(url: str, form: str) -> Parts:
    """ConfigError, with this form of URL in it, for one that cannot be read."""
    scheme, _, rest = url.partition("://")
    if not is_text(url):
        bad = f"This {scheme}:// URL cannot be read: it is not text in UTF-8"
        raise ConfigError(f"{bad}. Its form is {form}. {SPECIAL}")
    end = next((match.start() for match in re.finditer(r"[/?#]", rest)), len(rest))
    authority, tail = rest[:end], rest[end:]
    login, at, place = authority.rpartition("@")
    path, _, text = tail.partition("?")
    if "#" in tail or _has_login(tail, is_file=scheme == "unix"):
        bad = f"This {scheme}:// URL cannot be read: there is something behind its end"
        raise ConfigError(f"{bad}. Its form is {form}. {SPECIAL}")
    query = None
    with suppress(ValueError):
        query = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text))
    if query is None:
        raise ConfigError(f"This {scheme}:// URL cannot be read. Its form is {form}. {SPECIAL}")
    user, colon, password = login.partition(":")
    return Parts(scheme, unquote(user) if at else None, unquote(password) if colon else None, place, path, query, tail)


def is_text(value: str) -> bool:
    """Return False if UTF-8 cannot write it. The error of the codec would repeat the value, even when hidden."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def cannot_send(where: str, error: UnicodeError) -> ConfigError:
    """Return the sentence for a driver that cannot encode a host, user or password. Its error repeats the value, and
    stays with ours as a hidden context: so the value is taken out of it."""
    error.args, encoding = (), "idna"
    if isinstance(error, UnicodeEncodeError):
        error.object, encoding = "", error.encoding
    if encoding == "idna":
        return ConfigError(f"{where} names a host that no network can have. Check the URL.")
    knows = "Latin-1 letters" if encoding.startswith("latin") else "text in UTF-8"
    return ConfigError(f"The driver of {where} cannot send this user or password: it knows only {knows}.")


def _has_login(tail: str, is_file: bool) -> bool:
    """Return True if a password may be in it, or end in it. The URL of a listener may have one."""
    path, _, query = tail.partition("?")
    listens = re.sub(r"(^|&)listen=[^&]*", "", query)
    if is_file:  # its path is rather user:password@host behind a slash too many
        return "@" in listens or ":" in unquote(path).rpartition("@")[0]
    return "@" in listens or ":" in path or "@" in path


def options(
    given: Iterable[tuple[str, Any]], known: Iterable[str], scheme: str, cure: Callable[[str], str] = lambda name: ""
) -> dict[str, Any]:
    """Return the options of a URL, or keywords of connect(), by name. ConfigError for one that is not known.

    Its name is shown, unless it may be a piece of a password.
    """
    found = dict(given)
    for name in found:
        if name not in known:
            plain = name.isidentifier() and len(name) < 40 and not any(secret in found for secret in SECRETS)
            sentence = f"{repr(name) if plain else 'This'} is not an option of {scheme}://"
            raise ConfigError(f"{sentence}. {cure(name) or 'Known: ' + ', '.join(sorted(known)) + '.'}")
    return found


def seconds(given: Mapping[str, Any], name: str, default: float, most: float = 60, zero: bool = False) -> float:
    """Return an option that is a number of seconds. What it is instead is not repeated."""
    try:
        found = float(str(given.get(name, default)))
    except ValueError:
        found = -1.0
    if not 0 <= found <= most or not (found or zero):
        raise ConfigError(f"{name} is a number of seconds{'' if zero else ' above 0'}, at most {most:g}.")
    return found
