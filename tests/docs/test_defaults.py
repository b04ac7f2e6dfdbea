"""The defaults that the pages name are those of the code: options of stores, recipes, and the stores of connect()."""

import inspect
import re
from importlib import import_module

import pytest

from fairlock import Locks, recipes
from fairlock.cli import command_table, parse_arguments, pool_run, prune, run, serve_web_page, show_events, top
from fairlock.engine import validate
from fairlock.recipes import aio as aio_recipes
from fairlock.stores.sqlite.store import BUSY_TIMEOUT
from tests.docs.test_cli_page import SECTIONS
from tests.project_rules.snippets import ROOT
from tests.recipes.test_shape import ON_EVERY_STORE as METHODS

connect = import_module("fairlock.connect")  # the name leads to the function


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text()


def documented(name: str, option: str) -> str:
    """The last cell of the row of an option: what holds without it."""
    (row,) = re.findall(rf"(?m)^\| [^|]*`{option}`[^|]*\|.*\|$", page(name))
    return str(row).rstrip("| ").rpartition("|")[2].strip()


def test_options_of_redis() -> None:
    url = pytest.importorskip("fairlock.stores.redis.url")
    assert float(documented("redis", "socket_timeout")) == url.TIMEOUT
    assert float(documented("redis", "socket_connect_timeout")) == url.TIMEOUT
    assert [option for option in (*url.OWN, *url.DRIVER, *url.TLS) if f"`{option}`" not in page("redis")] == []


def test_options_of_sql() -> None:
    url = pytest.importorskip("fairlock.stores.sql.url")
    assert float(documented("sql", "timeout")) == url.TIMEOUT
    assert float(documented("sql", "skew")) == 0
    assert set(re.findall(r"(?m)^\| `(\w+)` \| ", page("sql"))) == set(url.OWN)


def test_options_of_cassandra() -> None:
    url = pytest.importorskip("fairlock.stores.cassandra.url")
    assert float(documented("cassandra", "timeout")) == url.ANSWER
    assert float(documented("cassandra", "skew")) == url.SKEW
    assert int(documented("cassandra", "port")) == url.PORT
    assert documented("cassandra", "replication") == url.COPIES
    assert documented("cassandra", "consistency").strip("`") in url.CONSISTENCIES
    assert set(re.findall(r"(?m)^\| `(\w+)` \| ", page("cassandra"))) == set(url.OPTIONS)


def test_options_of_oci_nosql() -> None:
    url = pytest.importorskip("fairlock.stores.oci_nosql.url")
    assert float(documented("oci-nosql", "timeout")) == url.ANSWER
    assert float(documented("oci-nosql", "skew")) == url.SKEW
    assert [option for option in url.OPTIONS if f"`{option}`" not in page("oci-nosql")] == []


def test_options_of_sqlite_and_of_a_client() -> None:
    assert f"while others are writing ({BUSY_TIMEOUT:g})" in page("api")
    assert f"else {connect.LEASE:g} s; at least {validate.SMALLEST_LEASE:g}" in page("api")
    settle = inspect.getsource(connect.settle)
    assert [name for name in re.findall(r'"(FAIRLOCK_\w+)"', settle) if f"`{name}`" not in page("api")] == []


# The defaults of the options whose help has one in parentheses.
OF_THE_COMMAND = {
    ("run", "--lease"): connect.LEASE, ("lead", "--lease"): connect.LEASE, ("acquire", "--lease"): connect.LEASE,
    ("mcp", "--lease"): connect.LEASE, ("pool run", "--lease"): pool_run.LEASE,
    ("pool run", "--back-off"): pool_run.BACK_OFF, ("pool run", "--grace"): run.GRACE, ("run", "--grace"): run.GRACE,
    ("lead", "--grace"): run.GRACE, ("top", "--every"): top.EVERY,
    ("events", "--every"): show_events.EVERY, ("prune", "--older-than"): prune.DAY,
    ("run", "--tries"): inspect.signature(Locks.once).parameters["tries"].default,
    ("ui", "--port"): serve_web_page.PORT, ("demo", "--port"): serve_web_page.PORT,
}  # fmt: skip
SHOWN = [
    (name, option.names[-1], found[1])
    for name, command in command_table.COMMANDS.items()
    for option in command.options
    if (found := re.search(r"\((\d+[a-z]*)\)", option.help))
]


def test_every_number_in_the_help_of_an_option_is_compared() -> None:
    assert {(name, option) for name, option, _ in SHOWN} == set(OF_THE_COMMAND)


@pytest.mark.parametrize("name, option, shown", SHOWN)
def test_a_default_of_the_command_is_the_same_in_the_code_its_help_and_its_page(
    name: str, option: str, shown: str
) -> None:
    assert parse_arguments.duration(shown) == OF_THE_COMMAND[name, option]
    for row in re.findall(rf"(?m)^\| (?:`[^`]+`, )*`{option}[ `].*$", SECTIONS[name]):
        assert re.search(rf"\({shown}\b", row), row


def test_every_store_that_connect_knows_is_on_the_page() -> None:
    schemes = connect.SCHEMES
    shown = set(re.findall(r"`([a-z+-]+)://", page("api")))
    assert set(schemes) <= shown
    assert shown - set(schemes) == {"valkey", "valkeys", "postgres"}  # other names of the same


@pytest.mark.parametrize(
    "text, name",
    [
        ("recipes-redis-locks", "ExpLock"),
        ("recipes-mutex-sets", "ZMutexSet"),
        ("recipes-mutex-sets", "NoSQLTasks"),
        ("recipes-fair-mutex", "FairMutex"),
    ],
)
def test_a_recipe_is_described_with_its_defaults(text: str, name: str) -> None:
    (shown,) = re.findall(rf"(?m)^- `{name}\(([^)]*)\)`", page(text))
    real = inspect.signature(getattr(recipes, name)).parameters.values()
    defaults = {p.name: p.default for p in real if p.default is not p.empty}
    found = dict(re.findall(r"(\w+)=([^,]+)", str(shown)))
    assert {key: eval(value) for key, value in found.items()} == defaults


def test_every_recipe_is_on_the_page() -> None:
    overview = page("recipes")
    locks = [name for name in recipes.__all__ if not name.endswith("Error") and name not in {"StaleLock", *METHODS}]
    assert [name for name in locks if f"[{name}](" not in overview] == []
    others = [name for name in aio_recipes.__all__ if name not in METHODS]
    assert [name for name in others if f"`{name}`" not in overview.partition("asyncio, with clients")[0]] == []


def test_every_recipe_that_is_a_method_has_a_page() -> None:
    overview = page("recipes")
    pages = "".join(path.read_text() for path in (ROOT / "docs").glob("recipes-*.md"))
    functions = [name for name in METHODS if name.islower() and name != "leader"]
    assert [name for name in functions if f"[locks.{name}(" not in overview] == []
    assert [name for name in METHODS if not name.islower() and f"`{name}`" not in pages] == []

