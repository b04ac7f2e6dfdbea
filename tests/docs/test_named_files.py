"""The files and folders that the pages name exist, and tests/README.md has every folder of tests."""

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.project_rules.tree import ROOT, files

PAGES = [ROOT / name for name in ("CONTRIBUTING.md", "README.md", "tests/README.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
OURS = [path.relative_to(ROOT).as_posix() for path in files()]
BASES = ["", "src/", "src/fairlock/"]
# Files that a page names although the project does not have them: a reader's own.
OF_THE_READER = {"conftest.py", "env.py", "locks.db", "report.py"}


def missing_files(text: str) -> list[str]:
    """Return the names of Python and Lua files, in backticks, that do not exist; * may stand for a part of a name.

    test_guarantees.py reads the notes, which name tests.
    """
    named = re.findall(r"`([\w*./-]+\.(?:py|lua))(?:::\w+)*`", text.partition("\n## Notes\n")[0])
    found = []
    for name in named:
        wanted = [f"{base}{name}" for base in BASES] if "/" in name else [name, f"*/{name}"]
        if name not in OF_THE_READER and not any(fnmatchcase(path, each) for each in wanted for path in OURS):
            found.append(name)
    return found


def missing_paths(text: str) -> list[str]:
    """Return the paths in commands of `./dev test` and `./dev soak` that do not exist."""
    commands = re.findall(r"\./dev (?:test|soak)((?: [^`|\n]+)?)", text)
    words = [word for command in commands for word in command.split() if word.startswith("tests/")]
    return [word for word in words if not (ROOT / word.rstrip(".,;")).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    assert missing_files(text) == []
    assert missing_paths(text) == []


def test_the_readme_of_the_tests_has_every_folder_and_fits_on_a_screen() -> None:
    text = (ROOT / "tests" / "README.md").read_text()
    table = text.partition("| folder |")[2].partition("\n\n")[0]
    folders = {name for line in table.splitlines() for name in re.findall(r"`(\w+)`", line.partition(" | ")[0])}
    real = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == real
    assert text.count("\n") <= 40


def test_what_does_not_exist_is_noticed() -> None:
    assert missing_files("`engine/gone.py` and `engine/grant.py`, `gone.lua`, `stores/redis/step_*.lua`") == [
        "engine/gone.py", "gone.lua",
    ]  # fmt: skip
    assert missing_paths("`./dev test tests/gone -k x` and `./dev test tests/cli`") == ["tests/gone"]
