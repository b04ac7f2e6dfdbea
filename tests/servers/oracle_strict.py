"""What Oracle Database and python-oracledb refuse and H2 does not, for the stand-in: each is documented by them.

- A text that is '' is NULL, in a value and in a condition, and a column that is NOT NULL refuses it (ORA-01400).
- A value for each placeholder and a placeholder for each value (DPY-4010, DPY-4008), whose name is no reserved word
  (ORA-01745).
- A VARCHAR2 ends at its length and at 4000 bytes, whichever comes first (ORA-12899).
- No LIMIT, no IF NOT EXISTS, no AS before the name of a subquery, no semicolon (ORA-00933); no SELECT without FROM
  (ORA-00923); no FETCH FIRST with FOR UPDATE (ORA-02014); no CLOB in a condition (ORA-00932).
- ORDER BY follows NLS_SORT, which is GERMAN here until a session says BINARY, while conditions compare bytes.
"""

from __future__ import annotations

import re
from typing import Any

import psycopg
from oracledb import errors

from fairlock.stores.sql.oracle import Oracle


def error_of(number: int, **details: Any) -> Exception:
    """python-oracledb's own exception of this number, by whichever way this version of it has."""
    if hasattr(errors, "_create_exception"):
        return errors._create_exception(number, **details)  # type: ignore[no-any-return]
    error = errors._create_err(number, **details)
    return error.exc_type(error)  # type: ignore[no-any-return]


H2_CLOCK = "DATEDIFF(MICROSECOND, TIMESTAMP WITH TIME ZONE '1970-01-01 00:00:00+00:00', CURRENT_TIMESTAMP)"
BYTES = 4000  # of a VARCHAR2, whatever its length in characters
PLACEHOLDER = re.compile(r"('(?:[^']|'')*')|:(\w+)")
ASSIGNED = re.compile(r"\b(\w+)=:(\w+)")
INSERTED = re.compile(r"INSERT INTO \w+ \((.*?)\) VALUES \((.*)\)", re.DOTALL)
NOT_ORACLE = {
    933: r";\s*$|\b(?:LIMIT|IF NOT EXISTS|ON CONFLICT|RETURNING|ILIKE)\b|\) AS \w+\s+(?:LEFT|INNER|JOIN|WHERE|ON)\b",
    923: r"^\s*SELECT\b(?!.*\bFROM\b)",
    2014: r"\bFETCH FIRST\b.*\bFOR UPDATE\b",
    932: r"\bWHERE\b.*\bbody\b",
}
WORDS = """
    access add all alter and any as asc audit between by char check cluster column comment compress connect create
    current date decimal default delete desc distinct drop else exclusive exists file float for from grant group
    having identified immediate in increment index initial insert integer intersect into is level like lock long
    maxextents minus mlslabel mode modify noaudit nocompress not nowait null number of offline on online option or
    order pctfree prior public raw rename resource row rowid rownum rows select session set share size smallint
    start successful synonym sysdate table then to trigger uid union unique update user validate values varchar
    varchar2 view whenever where with
"""
RESERVED = frozenset(WORDS.split())
# What H2 says, by its SQLSTATE, and what Oracle would.
CODES = {
    "23505": (1, "unique constraint violated"), "23502": (1400, "cannot insert NULL"),
    "22001": (12899, "value too large for column"), "42S02": (942, "table or view does not exist"),
    "42S01": (955, "name is already used by an existing object"),
    "42S11": (955, "name is already used by an existing object"), "40001": (60, "deadlock detected"),
    "HYT00": (30006, "resource busy"), "28000": (1017, "logon denied"), "42S22": (904, "invalid identifier"),
    "22018": (1722, "invalid number"), "22003": (1426, "numeric overflow"), "42000": (900, "invalid SQL statement"),
    "42001": (900, "invalid SQL statement"),
}  # fmt: skip


def oracle_error(code: int, text: str) -> Exception:
    """As python-oracledb raises what the server answers."""
    error = errors._Error(f"ORA-{code:05}: {text}", code=code)
    made: Exception = error.exc_type(error)
    return made


class Session:
    """One session: its NLS settings, and what a statement becomes before H2 sees it."""

    def __init__(self, wire: Any) -> None:
        self._wire = wire
        self.sort = "GERMAN"

    def answer(self, text: str) -> list[Any] | None:
        """Answer what needs no H2."""
        if "sys_context" in text.lower():
            return [("APP",)]
        if not text.upper().startswith("ALTER SESSION SET "):
            return None
        settings = dict(re.findall(r"(NLS_\w+)\s*=\s*'?(\w+)'?", text.upper()))
        assert settings, f"the stand-in does not know {text}"
        self.sort = settings.get("NLS_SORT", self.sort)
        return []

    def strict(self, text: str, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """For H2, or what Oracle says against it."""
        bare = PLACEHOLDER.sub(lambda found: "''" if found[1] else f":{found[2]}", text)
        for code, sign in NOT_ORACLE.items():
            if re.search(sign, bare, re.DOTALL | re.IGNORECASE):
                raise oracle_error(code, "the stand-in holds this for a mistake: " + text)
        names = set(re.findall(r":(\w+)", bare))
        for name in names:
            if name.lower() in RESERVED or not name[0].isalpha() or len(name) > 128:
                raise oracle_error(1745, "invalid host/bind variable name")
        for name in names - set(values):
            raise error_of(errors.ERR_MISSING_BIND_VALUE, name=name)
        for name in set(values) - names:
            raise error_of(errors.ERR_INVALID_BIND_NAME, name=name)
        self._fit(bare, values)
        if self.sort != "BINARY":
            text = re.sub(r"ORDER BY (\w+\.)?key\b", r"ORDER BY LOWER(\1key)", text)
        said = PLACEHOLDER.sub(lambda found: found[1] or self._typed(found[2], values), text.replace("%", "%%"))
        said = said.replace(Oracle.now, H2_CLOCK)
        return said, {name: None if value == "" else value for name, value in values.items()}

    @staticmethod
    def _typed(name: str, values: dict[str, Any]) -> str:
        """H2 takes the type of a placeholder from its surroundings, where a small number makes all small."""
        return f"CAST(%({name})s AS NUMERIC(38))" if isinstance(values[name], int) else f"%({name})s"

    def _fit(self, text: str, values: dict[str, Any]) -> None:
        """Check that each value fits: a VARCHAR2 has room for 4000 bytes, however many characters it allows."""
        assigned = dict(ASSIGNED.findall(text.partition(" WHERE ")[0]))
        if found := INSERTED.search(text):
            given = [word.strip().lstrip(":") for word in found[2].split(",")]
            assigned |= dict(zip([word.strip() for word in found[1].split(",")], given, strict=False))
        for column, name in assigned.items():
            value = values.get(name)
            if column != "body" and isinstance(value, str) and len(value.encode()) > BYTES:
                raise oracle_error(12899, f'value too large for column "{column.upper()}"')

    def translated(self, error: psycopg.Error) -> Exception:
        if error.sqlstate is None or error.sqlstate in ("90067", "08000", "57P01", "90098", "90121"):
            self._wire.close()
            return error_of(errors.ERR_CONNECTION_CLOSED, cause=error)
        known = CODES.get(error.sqlstate)
        assert known is not None, f"the stand-in does not know what Oracle says in place of {error.sqlstate}: {error}"
        return oracle_error(known[0], f"{known[1]} ({error})")
