"""./dev test --oldest runs the tests of the drivers with the oldest versions that are declared, made once."""

import subprocess
import sys
from pathlib import Path

from tests.project_rules.test_dev import CLEAN, script
from tests.project_rules.test_dev import checkout as checkout
from tests.project_rules.test_dev import made as made
from tests.project_rules.test_dev_signals import furnished as furnished

PYTHON = """
case "$*" in
  *"-m pip"*) echo "$*" >> {home}/installed ;;
  *"-m pytest"*) echo "$PYTHONPATH|$*" ;;
esac
"""


def test_the_oldest_drivers_come_first_on_the_path_and_are_fetched_once(furnished: Path) -> None:
    script(furnished / ".venv" / "bin", "python", PYTHON.format(home=f"'{furnished}'"))
    command = [sys.executable, str(furnished / "dev"), "test", "--oldest"]
    env = {**CLEAN, "PATH": f"{furnished}/bin:/usr/bin:/bin"}
    for args in ([], ["tests/redis", "-q"]):
        done = subprocess.run([*command, *args], env=env, capture_output=True, text=True, timeout=60)
        ((path, _, words),) = [line.partition("|") for line in done.stdout.splitlines()]
        assert path.split(":")[0] == f"{furnished}/.dev/oldest", done
        assert words.endswith(" ".join(args) or "tests/oci_nosql")
    (installed,) = (furnished / "installed").read_text().splitlines()
    wanted = installed.partition(" --target ")[2].split()[1:]
    assert {"psycopg[binary]==3.3.6", "sqlalchemy[asyncio]==2.0.25"} <= set(wanted)
    assert not [each for each in wanted if ">" in each or "<" in each], "a range is no version"
    assert not [each for each in wanted if each.startswith(("pytest", "starlette"))]
    names = [each.partition("==")[0] for each in wanted]
    assert len(names) == len(set(names)), "one package has two lower bounds"
