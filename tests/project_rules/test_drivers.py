"""The driver of a store is an extra: declared, imported only for that store, and named with the cure if missing."""

import re
import subprocess
import sys
import tomllib

import pytest

from fairlock.connect import SCHEMES
from tests.project_rules.test_import_law import DRIVERS
from tests.project_rules.tree import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WITHOUT_ONE = {"memory", "sqlite"}
EXTRAS = {  # where it is another word
    "oci_nosql": "oci", "oci-nosql": "oci", "unix": "redis", "rediss": "redis", "mysql": "mariadb",
}  # fmt: skip
SEVERAL = {"stores.sql": ["postgresql", "mariadb", "oracle"]}

BLOCKED = """
import sys
for driver in {drivers!r}:
    sys.modules[driver] = None  # as if it were not installed
{code}
"""


def without_drivers(code: str) -> "subprocess.CompletedProcess[str]":
    drivers = sorted(set().union(*(DRIVERS[part] for part in DRIVERS if part.startswith("stores."))))
    program = BLOCKED.format(drivers=drivers, code=code)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)


def extra_of(scheme: str) -> str:
    store = scheme.partition("+")[0]
    return EXTRAS.get(store, store)


def names(wanted: list[str]) -> set[str]:
    return {re.split(r"[\[<>=~ ]", each)[0].replace("cassandra-driver", "cassandra") for each in wanted}


def test_every_driver_is_an_extra_and_at_hand_for_the_tests() -> None:
    for part, drivers in DRIVERS.items():
        if part.startswith("stores."):
            extras = SEVERAL.get(part, [extra_of(part.removeprefix("stores."))])
            extra = names([each for one in extras for each in PROJECT["project"]["optional-dependencies"][one]])
            assert drivers == extra, part
            assert drivers <= names(PROJECT["dependency-groups"]["dev"]), part


@pytest.mark.parametrize("scheme", sorted(set(SCHEMES) - WITHOUT_ONE))
@pytest.mark.parametrize("face", ["fairlock", "fairlock.aio"])
def test_a_missing_driver_is_a_sentence_with_the_cure(scheme: str, face: str) -> None:
    url = f"{scheme}://user:open-sesame@h1:1/service"
    code = f"import {face} as face\ntry:\n face.connect({url!r})\nexcept face.ConfigError as error:\n print(error)"
    done = without_drivers(code)
    needs = re.fullmatch(rf"{re.escape(scheme)}:// needs (\w+): pip install 'fairlock\[(.*)\]'\.\n", done.stdout)
    assert needs is not None, done
    assert needs[2] == extra_of(scheme)
    assert needs[1] in names(PROJECT["project"]["optional-dependencies"][needs[2]])
    assert "sesame" not in done.stderr


@pytest.mark.parametrize("module, url, extra", [
    ("hiredis", "redis://h1", "redis"), ("psycopg", "postgresql://h1/db", "postgresql"),
    ("pymysql", "mariadb://h1/db", "mariadb"),
])
def test_a_driver_without_its_other_half_names_what_is_missing(module: str, url: str, extra: str) -> None:
    code = f"import fairlock\ntry:\n fairlock.connect({url!r})\nexcept fairlock.ConfigError as error:\n print(error)"
    program = BLOCKED.format(drivers=[module], code=code)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{url.partition('/')[0]}// needs {module}: pip install 'fairlock[{extra}]'.\n", done.stderr


def test_a_psycopg_that_is_too_old_is_a_sentence_with_the_cure() -> None:
    code = """
import sqlalchemy.dialects.postgresql.psycopg as dialect
dialect.PGDialect_psycopg.psycopg_version = (3, 3, 5)
import fairlock
try:
    fairlock.connect("postgresql://user:open-sesame@h1/db")
except fairlock.ConfigError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "too old (psycopg is 3.3.5, and at least 3.3.6 is needed): pip install 'fairlock[postgresql]'" in done.stdout
    assert "psycopg[binary]>=3.3.6" in PROJECT["project"]["optional-dependencies"]["postgresql"]


@pytest.mark.parametrize("url", ["oracle://user:open-sesame@h1/?service_name=x", "postgresql://h1/x", "mariadb://h1/x"])
def test_asyncio_names_the_sqlalchemy_that_it_needs(url: str) -> None:
    """An older one can block the loop forever, as `./dev test --oldest` did. Threads work with any 2.0."""
    code = f"""
import sqlalchemy
sqlalchemy.__version__ = "2.0.24"
import fairlock.aio
fairlock.connect({url!r})
try:
    fairlock.aio.connect({url!r})
except fairlock.ConfigError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    extra = url.partition(":")[0]
    needed = f"(SQLAlchemy is 2.0.24, and at least 2.0.25 is needed in asyncio): pip install 'fairlock[{extra}]'"
    assert needed in done.stdout, done
    assert "sqlalchemy[asyncio]>=2.0.25" in PROJECT["project"]["optional-dependencies"][extra]


def test_the_tool_says_it_too() -> None:
    done = without_drivers("from fairlock.cli import main\nsys.exit(main(['-u', 'redis://h1:1', 'run', 'x', 'true']))")
    assert done.stderr == "fairlock: redis:// needs redis: pip install 'fairlock[redis]'.\n"
    assert done.returncode == 78


def test_who_uses_another_store_needs_no_driver() -> None:
    done = without_drivers("import fairlock\nwith fairlock.connect('memory://').lock('x'): print('in')")
    assert done.stdout == "in\n", done.stderr


def test_a_driver_that_is_there_and_broken_is_told_as_it_is() -> None:
    done = without_drivers(
        "import types; sys.modules['sqlalchemy'] = types.ModuleType('sqlalchemy')\n"
        "import fairlock\ntry:\n fairlock.connect('mysql://h1/a')\nexcept fairlock.ConfigError as error:\n print(error)"
    )
    assert done.stdout.startswith("mysql:// needs the driver, and the one that is here is broken or too old (")
    assert done.stdout.endswith("): pip install 'fairlock[mariadb]'.\n")
