"""How files look: what the first lines say, how long they are, which words they use, and what they must not mention."""

import ast
import re
from pathlib import Path

import pytest

from tests.project_rules.tree import ROOT, files, python_files

# One concept a file. Over the limit only with a reason.
LIMIT, LIMIT_OF_TESTS = 300, 400
LONGER = {
    "src/fairlock/sync/locks.py": "three classes that differ in two numbers, and each option once for type checkers",
    "tests/project_rules/test_dev.py": "one test for each thing that ./dev does",
    "tests/sqlite/test_wakeups.py": "one test for each way in which a wake-up can go wrong",
    "src/fairlock/rules/locks/step.py": "the whole algorithm, below the essay that explains it",
    "src/fairlock/stores/redis/step_4_command.lua": "every command, one after the other",
    "src/fairlock/stores/base.py": "all that a store and a client promise each other, to be read in one go",
    "src/fairlock/stores/cas.py": "one engine for every store, and the words on how it does it",
    "src/fairlock/stores/cas_pools.py": "the same for pools: one order of writes, of which each rests on the others",
    "src/fairlock/engine/session.py": "all state of a client: plain data under one mutex, and the steps that change it",
    "src/fairlock/engine/acquire.py": "the path of every acquire: begin, accept, finish, and the one loop that waits",
    "src/fairlock/engine/grant.py": "a grant and what each of its holders sees: one state, and the names of all of it",
    "src/fairlock/aio/client.py": "one class, whose options are named once for readers and again for checkers",
    "src/fairlock/stores/sqlite/store.py": "one class: the statements and the connection that they share",
    "tests/redis/mutants.py": "one table, with an entry for each mistake in the Lua",
    "tests/lock_rules/test_step.py": "one example for each sentence about a step, in their order",
    "tests/lock_rules/test_table.py": "one example for each cell of the table of commands, in its order",
}

TEXT = {".py", ".md", ".toml", ".lua", ".sql", ".cql", ".html", ".css", ".js", ".svg", ".txt", ".yaml", ".yml", ""}
SAYS_NOTHING = {"manager", "helper", "helpers", "util", "utils", "impl"}
SAYS_ENOUGH = {"kill_helpers"}  # for tests that kill a process
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")  # split, or this line would find itself
# Places that a text may point to: this machine, made-up ones, and pages that outlive us.
HOSTS = re.compile(
    r"(localhost|127\.\d+\.\d+\.\d+|\[::1\]|0\.0\.0\.0|([\w-]+\.)*example(\.(com|org|net))?|h\d|host|semver\.org"
    r"|www\.w3\.org|www\.apache\.org)$"
)
LINK = re.compile(r"\bhttps?://(?:[^\s/@'\"`<>]*@)?([^\s/:'\"`<>)\]]+|\[::1\])")


def text_files(root: Path) -> list[tuple[str, str]]:
    return [(str(path.relative_to(root)), path.read_text()) for path in files(root) if path.suffix in TEXT]


def headless(root: Path) -> list[str]:
    """Files whose first lines do not say what lives there."""
    found = []
    for path in files(root):
        text = path.read_text() if path.suffix in {".py", ".lua", ".sql", ".cql", ".sh"} or path.name == "dev" else ""
        if not text.strip():
            continue
        if path.suffix == ".py" or path.name == "dev":
            says = ast.get_docstring(ast.parse(text))
        else:
            says = re.match(r"(?:#!.*\n)?(--|#)\s*\w", text)
        if not says:
            found.append(str(path.relative_to(root)))
    return found


def too_long(root: Path) -> list[str]:
    found = []
    for name, text in text_files(root):
        library = name.startswith("src/") and not name.startswith("src/fairlock/testing/suite/")
        lines, limit = text.count("\n"), LIMIT if library else LIMIT_OF_TESTS
        if name.endswith((".py", ".lua")) and lines > limit and name not in LONGER:
            found.append(f"{name}: {lines} lines; more than {limit} needs a reason in LONGER")
    return found


def empty_names(root: Path) -> list[str]:
    """Definitions and files with a name that says nothing."""
    found = []
    for path in python_files(root):
        names = {path.stem: 1}
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                names.setdefault(node.name, node.lineno)
        for name, line in names.items():
            words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}
            if words & SAYS_NOTHING and name not in SAYS_ENOUGH:
                found.append(f"{path.relative_to(root)}:{line}: {name}")
    return found


def mentions(root: Path) -> list[str]:
    """Unfinished business, machines of ours, and places on the network that a text has no business to point to."""
    found = []
    home = [re.escape(f"{folder}/") for folder in machine_folders(ROOT)]
    machine = re.compile(r"(?<![\w.])(" + "|".join(home) + ")")
    for name, text in text_files(root):
        for number, line in enumerate(text.splitlines(), 1):
            if UNFINISHED.search(line):
                found.append(f"{name}:{number}: unfinished: {line.strip()}")
            if machine.search(line):
                found.append(f"{name}:{number}: a path of one machine: {line.strip()}")
            for host in LINK.findall(line):
                if not HOSTS.match(host.rstrip(".,;")) and "{" not in host:
                    found.append(f"{name}:{number}: points to {host}: {line.strip()}")
    return found


def machine_folders(checkout: Path) -> list[str]:
    """Folders that exist only where this was written: the user's home, and where the checkout lies."""
    shared = {"home", "tmp", "var", "usr", "srv", "opt", "mnt", "Users", "private"}
    top = checkout.parts[1] if checkout.parts[1] not in shared else "/".join(checkout.parts[1:4])
    return [str(Path.home()), f"/{top}"]


def test_the_first_lines_of_a_file_say_what_lives_there() -> None:
    assert headless(ROOT) == []


def test_files_are_short_or_say_why_not() -> None:
    assert too_long(ROOT) == []
    assert [name for name in LONGER if not (ROOT / name).exists()] == []


def test_names_say_something() -> None:
    assert empty_names(ROOT) == []


def test_nothing_unfinished_no_machine_and_no_stray_host_is_mentioned() -> None:
    assert mentions(ROOT) == []


@pytest.mark.parametrize(
    "look, name, text",
    [
        (headless, "a.py", "import os\n"),
        (headless, "a.lua", "local x = 1\n"),
        (too_long, "src/a.py", '"""A."""\n' * 301),
        (too_long, "tests/a.py", '"""A."""\n' * 401),
        (empty_names, "a.py", "class LockManager: ...\n"),
        (empty_names, "a.py", "def lock_helper(): ...\n"),
        (empty_names, "utils.py", '"""All sorts."""\n'),
        (mentions, "a.md", "TO" "DO: later\n"),
        (mentions, "a.md", f"see {Path.home()}/notes\n"),
        (mentions, "a.md", f"cd {ROOT}/src\n"),
        (mentions, "a.md", f"from http{'s'}://packages.somewhere.dev/simple\n"),
    ],
)
def test_a_file_that_looks_otherwise_is_noticed(tmp_path: Path, look, name: str, text: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("-- As it should be.\n" if name.endswith(".lua") else '"""As it should be."""\n')
    assert look(tmp_path) == ([] if name != "utils.py" else ["utils.py:1: utils"])
    path.write_text(text)
    assert len(look(tmp_path)) == 1


def test_the_files_are_the_same_with_and_without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    with_git = files(ROOT)
    monkeypatch.setenv("PATH", "/nowhere")
    assert files(ROOT) == with_git
