"""The SQL that the fake of OCI's NoSQL service understands: what the tests need, and nothing that was not observed.

    DECLARE $a STRING; $b LONG; SELECT t.key, t.score FROM locks t WHERE t.key >= $a AND t.score < $b
    SELECT current_time() AS now FROM locks t
    CREATE TABLE IF NOT EXISTS locks (key STRING, score NUMBER NOT NULL DEFAULT 0, …, PRIMARY KEY (SHARD (key)))

Everything else is refused, as the service refuses it, or because nobody has seen what it does with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Refused(Exception):
    """The service replies with an error: its status, its code and its message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(status, code, message)
        self.status, self.code, self.message = status, code, message


def invalid(message: str) -> Refused:
    return Refused(400, "InvalidParameter", message)


# The parser makes variables of its own with these names.
RESERVED = {"$key", "$value", "$element", "$pos"}
COMPLEX = re.compile(r"\b(ORDER\s+BY|GROUP\s+BY|LIMIT|OFFSET)\b|\b(count|sum|min|max|avg)\s*\(", re.I)
NAME = r"[A-Za-z][A-Za-z0-9_]*"
COMMENT = re.compile(r"(#|//)[^\n]*")

SELECT = re.compile(
    rf"(DECLARE (?P<declared>(\${NAME} [A-Z]+; ?)+))?"
    rf"SELECT (?P<what>current_time\(\) AS {NAME}|t\.{NAME}(, t\.{NAME})*) "
    rf"FROM (?P<table>{NAME}) t( WHERE (?P<where>.+))?"
)
CONDITION = re.compile(rf"t\.(?P<column>{NAME}) (?P<operator><=|>=|<|>|=) (?P<operand>\${NAME}|\d+)")
CREATE = re.compile(
    rf"CREATE TABLE (?P<gently>IF NOT EXISTS )?(?P<table>{NAME}) ?\((?P<columns>.+), PRIMARY KEY ?\((?P<key>.+)\) ?\)"
)
KEY = re.compile(rf"(SHARD ?\( ?)?(?P<name>{NAME})( ?\))?")
COLUMN = re.compile(rf"(?P<name>{NAME}) (?P<type>STRING|NUMBER|JSON|LONG|INTEGER)(?P<rest>.*)")
DEFAULT = re.compile(r"( NOT NULL)? DEFAULT (\d+|'[^']*')( NOT NULL)?")

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b, ">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b,
    "<": lambda a, b: a < b, ">": lambda a, b: a > b,
}  # fmt: skip
OF_TYPE: dict[str, Callable[[Any], bool]] = {
    "STRING": lambda value: isinstance(value, str),
    "LONG": lambda value: type(value) is int and -(2**63) <= value < 2**63,
    "INTEGER": lambda value: type(value) is int and -(2**31) <= value < 2**31,
    "NUMBER": lambda value: type(value) in (int, float),
    "JSON": lambda value: True,
}


class Column(NamedTuple):
    name: str
    type: str
    default: Any = None
    nullable: bool = True

    def check(self, value: Any) -> Any:
        """This value, as the table keeps it."""
        if value is None and self.type != "JSON":
            if self.nullable:
                return None
            raise invalid(f"Field {self.name} is not nullable")
        if not OF_TYPE[self.type](value):
            raise invalid(f"Illegal value for field {self.name} of type {self.type}: {value!r}")
        return value


class Query(NamedTuple):
    table: str
    columns: tuple[str, ...]
    """() for the time, by the name `clock`."""
    clock: str
    conditions: tuple[tuple[str, str, Any], ...]

    def finds(self, row: Mapping[str, Any]) -> bool:
        return all(
            row[column] is not None and COMPARE[operator](_order(row[column]), _order(value))
            for column, operator, value in self.conditions
        )


def _order(value: Any) -> Any:
    """Java compares texts by the halves of their UTF-16, and not by the numbers of their characters."""
    return value.encode("utf-16-be", "surrogatepass") if isinstance(value, str) else value


def query(statement: str, variables: Mapping[str, Any]) -> Query:
    text = _plain(statement)
    if COMPLEX.search(text):
        raise invalid("The driver or SDK being used does not support complex query.")
    parsed = SELECT.fullmatch(text)
    if parsed is None:
        raise invalid(f"Error: this statement cannot be parsed: {text}")
    declared = dict(each.split() for each in (parsed["declared"] or "").replace(";", " ;").split(" ;") if each.strip())
    for name, kind in declared.items():
        if name in RESERVED:
            raise invalid(f"{name} is a reserved name, and no name of an external variable")
        if kind not in OF_TYPE:
            raise invalid(f"{kind} is no type")
        if name not in variables:
            raise invalid(f"Variable {name} has not been set")
    for name, value in variables.items():
        if name not in declared:
            raise invalid(f"The query doesn't contain the variable: {name}")
        if not OF_TYPE[declared[name]](value):
            raise invalid(f"Failed to create Field Value for variable '{name}': {value!r}")
    where = [_condition(each, declared, variables) for each in (parsed["where"] or "").split(" AND ") if each]
    what = parsed["what"]
    if what.startswith("current_time"):
        return Query(parsed["table"], (), what.rpartition(" ")[2], tuple(where))
    return Query(parsed["table"], tuple(each.removeprefix("t.") for each in what.split(", ")), "", tuple(where))


def _condition(text: str, declared: Mapping[str, str], variables: Mapping[str, Any]) -> tuple[str, str, Any]:
    parsed = CONDITION.fullmatch(text)
    if parsed is None:
        raise invalid(f"Error: this condition cannot be parsed: {text}")
    operand = parsed["operand"]
    if operand.startswith("$") and operand not in declared:
        raise invalid(f"Variable {operand} has not been declared")
    return parsed["column"], parsed["operator"], variables[operand] if operand.startswith("$") else int(operand)


def create(statement: str) -> tuple[str, tuple[Column, ...], bool]:
    """The table's name, its columns, the key first, and whether one that exists is no error."""
    parsed = CREATE.fullmatch(_plain(statement))
    key = KEY.fullmatch(parsed["key"]) if parsed is not None else None
    if parsed is None or key is None:
        raise invalid(f"Error: this statement cannot be parsed: {statement}")
    columns = [_column(text.strip()) for text in parsed["columns"].split(",")]
    keys = [column._replace(nullable=False) for column in columns if column.name == key["name"]]
    if len(keys) != 1:
        raise invalid(f"The primary key {key['name']} is no column")
    return parsed["table"], (*keys, *(each for each in columns if each.name != key["name"])), bool(parsed["gently"])


def _column(text: str) -> Column:
    parsed = COLUMN.fullmatch(text)
    if parsed is None:
        raise invalid(f"Error: this column cannot be parsed: {text}")
    if not parsed["rest"]:
        return Column(parsed["name"], parsed["type"])
    default = DEFAULT.fullmatch(parsed["rest"])
    if default is None:
        raise invalid(f"Field {parsed['name']}: a column that is NOT NULL needs a DEFAULT value")
    value = default[2].strip("'") if default[2].startswith("'") else int(default[2])
    return Column(parsed["name"], parsed["type"], value, "NOT NULL" not in parsed["rest"])


def _plain(statement: str) -> str:
    return " ".join(COMMENT.sub(" ", statement).split()).replace("( ", "(").replace(" )", ")")
