"""Groups names: 'order:17' and 'order:18' belong to one time series, 'order:{n}'.

A metrics server keeps each combination of labels forever. Names often contain numbers and ids, so a label with the full
name would grow without a limit. The number of groups is limited, too: names are often the text of a user.
"""

import re
from collections.abc import Callable

from ..engine.events import log_exception

MOST = 1000
OTHER = "(other)"
"""The group of all names for which there is no group any more."""

_IDS = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?<![0-9a-z])(?=[a-f]*[0-9])[0-9a-f]{8,}(?![0-9a-z])"
    r"|[0-9]+",
    re.IGNORECASE,
)


def group_name(name: str) -> str:
    """Return the name with its UUIDs, hexadecimal ids and numbers replaced by {uuid}, {hex} and {n}."""
    return _IDS.sub(_placeholder, name)


def _placeholder(found: re.Match[str]) -> str:
    text = found.group()
    return "{n}" if text.isdecimal() else "{uuid}" if "-" in text else "{hex}"


class Groups:
    """The groups of a program: at most `most`, the rest is OTHER."""

    def __init__(self, group: Callable[[str], str] | None = None, most: int = MOST) -> None:
        self._group = group or group_name
        self._most = most
        self._groups: set[str] = set()
        self._known: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        found = self._known.get(name)
        if found is None:
            if len(self._known) >= 10_000:
                self._known.clear()
            found = self._known[name] = self._find(name)
        return found

    def _find(self, name: str) -> str:
        try:
            group = str(self._group(name))
        except Exception:
            log_exception(f"group= raised for {name!r}; it counts as {OTHER!r}")
            return OTHER
        if group not in self._groups:
            if len(self._groups) >= self._most:
                return OTHER
            self._groups.add(group)
        return group
