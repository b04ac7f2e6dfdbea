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
    """Oracle needs a newer SQLAlchemy than the other databases, and so it has a round of its own."""
    script(furnished / ".venv" / "bin", "python", PYTHON.format(home=f"'{furnished}'"))
    command = [sys.executable, str(furnished / "dev"), "test", "--oldest"]
    env = {**CLEAN, "PATH": f"{furnished}/bin:/usr/bin:/bin"}
    folders = [f"{furnished}/.dev/{name}" for name in ("oldest", "oldest-oracle")]
    for args in ([], ["tests/redis", "-q"]):
        done = subprocess.run([*command, *args], env=env, capture_output=True, text=True, timeout=60)
        lines = [line.partition("|") for line in done.stdout.splitlines()]
        assert [path.split(":")[0] for path, _, _ in lines] == folders, done
        for _, _, words in lines:
            assert words.endswith(" ".join(args) or "tests/oci_nosql")
        assert "oracle)" in lines[0][2], "not in the first round"
        assert " -k oracle and not (" in lines[1][2]
    installed = (furnished / "installed").read_text().splitlines()
    assert len(installed) == len(folders)
    all_of_them, oracles = (line.partition(" --target ")[2].split()[1:] for line in installed)
    assert {"psycopg[binary]==3.3.6", "sqlalchemy[asyncio]==2.0"} <= set(all_of_them)
    assert "sqlalchemy[asyncio]==2.0.25" in oracles
    for wanted in (all_of_them, oracles):
        assert not [each for each in wanted if ">" in each or "<" in each], "a range is no version"
        assert not [each for each in wanted if each.startswith(("pytest", "starlette"))]
