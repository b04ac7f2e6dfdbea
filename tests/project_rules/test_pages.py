"""The pages are true: what they show runs, their links lead somewhere, and the tests that they name exist."""

import re
from functools import cache
from pathlib import Path

import pytest

from tests.project_rules import snippets
from tests.project_rules.tree import ROOT, files

PAGES = [path for path in files() if path.suffix == ".md"]
SHOWING = [page for page in PAGES if page.name == "README.md" or page.parent.name == "docs"]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def heading_anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", re.sub(r"(?ms)^```.*?^```", "", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    found = []
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"(?ms)^```.*?^```", "", page.read_text())):
        path, _, anchor = target.partition("#")
        if ":" in path:
            continue
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in heading_anchors(there.read_text())):
            found.append(target)
    return found


def missing_tests(page: Path, tests: str) -> list[str]:
    return [name for name in re.findall(r"`(?:[\w/.]+::)?(test_\w+)`", page.read_text()) if f"def {name}(" not in tests]


def unrunnable(page: Path) -> list[str]:
    """Return the blocks whose language does not show whether they are meant to run."""
    known = snippets.RUN | snippets.SHOWN
    shown = snippets.blocks(page.read_text())
    return [f"line {block.line}: {block.language or 'no language'}" for block in shown if block.language not in known]


@pytest.fixture
def shown(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the page. If it names a Redis server on the usual port, start one and put in its real address."""
    page: Path = request.param
    text = page.read_text()
    if "<!-- needs: frameworks -->" in text:
        monkeypatch.setenv("FAIRLOCK_FRAMEWORKS", str(request.getfixturevalue("frameworks")))
    if "localhost:6379" not in text:
        return page
    server = request.getfixturevalue("redis_alone")
    return _written(tmp_path / page.name, text.replace("localhost:6379", server.address))


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize("shown", SHOWING, ids=named, indirect=True)
def test_the_python_of_a_page_runs(shown: Path, tmp_path: Path) -> None:
    assert snippets.run_python(shown, tmp_path) == []


LEAVES_FILES = [ROOT / "README.md", ROOT / "docs" / "how-to.md", ROOT / "docs" / "pools.md"]


@pytest.mark.parametrize("shown", LEAVES_FILES, ids=named, indirect=True)
def test_the_python_of_a_page_runs_again_over_its_own_files(shown: Path, tmp_path: Path) -> None:
    for _ in range(3):
        assert snippets.run_python(shown, tmp_path, timeout=20, again=True) == []


@pytest.mark.parametrize("shown", SHOWING, ids=named, indirect=True)
def test_the_console_of_a_page_shows_the_real_output(shown: Path, tmp_path: Path) -> None:
    assert snippets.run_console(shown, tmp_path) == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_page_is_in_order(page: Path) -> None:
    assert unrunnable(page) == []
    assert broken_links(page) == []
    assert missing_tests(page, all_tests()) == []


@cache
def all_tests() -> str:
    ours = [path for path in files() if path.suffix == ".py" and {"tests", "testing"} & set(path.parts)]
    return "".join(path.read_text() for path in ours)


def test_mypy_gets_the_python_of_the_pages_with_its_line_numbers(tmp_path: Path) -> None:
    snippets.write_types(tmp_path)
    page, module = ((ROOT / "docs" / "how-to.md").read_text(), (tmp_path / "how_to.py").read_text())
    number, line = next((n, each) for n, each in enumerate(page.splitlines()) if "jobs.acquire(" in each)
    assert module.splitlines()[number] == f"    {line}"
    assert {path.stem for path in tmp_path.glob("*.py")} >= {"__init__", "readme", "api", "pools", "recipes"}


# The runner itself


def page(tmp_path: Path, text: str) -> Path:
    return _written(tmp_path / "page.md", text.replace("~~~", "```"))


GOOD_PYTHON = """
<!-- python
def ship(order):
    return order + 1
-->
~~~python
import asyncio
shipped = ship(41)
print("shipped", shipped)
~~~
<!-- prints -->
~~~text
shipped …2
~~~
~~~python
await asyncio.sleep(0)
task = asyncio.create_task(asyncio.sleep(0, shipped))
assert await task == 42
~~~
<!-- raises: ZeroDivisionError -->
~~~python
1 / 0
~~~
<!-- not run: needs a server -->
~~~python
import no_such_module
~~~
~~~pycon
>>> shipped
42
~~~
"""


def test_a_page_may_await_hide_raise_and_leave_out(tmp_path: Path) -> None:
    assert snippets.run_python(page(tmp_path, GOOD_PYTHON), tmp_path) == []


@pytest.mark.parametrize(
    "text, message",
    [
        ("# Title\n\n~~~python\nx = 1\nboom(x)\n~~~\n", 'page.md", line 5'),
        ("~~~python\nprint(1)\n~~~\n<!-- prints -->\n~~~text\n2\n~~~\n", "it printed\n1"),
        ("<!-- raises: ValueError -->\n~~~python\nx = 1\n~~~\n", "did not raise ValueError"),
        ("<!-- raises: ValueError -->\n~~~python\n{}[1]\n~~~\n", "KeyError"),
        ("~~~python\nimport asyncio\nawait asyncio.wait_for(asyncio.sleep(9), 0)\n~~~\n", "TimeoutError"),
        ("~~~pycon\n>>> 1 + 1\n3\n~~~\n", "Expected"),
        ("~~~python\nimport sys; sys.exit(0)\n~~~\n", "SystemExit"),
        ("~~~python\nimport warnings; warnings.warn('old')\n~~~\n", "old"),
    ],
)
def test_python_that_does_not_hold_is_noticed(tmp_path: Path, text: str, message: str) -> None:
    (problem,) = snippets.run_python(page(tmp_path, text), tmp_path)
    assert message in problem


def test_a_page_that_does_not_end_is_noticed(tmp_path: Path) -> None:
    endless = page(tmp_path, "~~~python\nimport time; time.sleep(60)\n~~~\n~~~console\n$ sleep 60\n~~~\n")
    assert "still running" in snippets.run_python(endless, tmp_path, timeout=0.5)[0]
    assert "still running" in snippets.run_console(endless, tmp_path, timeout=0.5)[0]


def test_a_block_without_an_end_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line 1: this block has no end"):
        snippets.run_python(page(tmp_path, "~~~python\nx = 1\n"), tmp_path)


def test_what_a_page_leaves_in_the_background_is_ended(tmp_path: Path) -> None:
    assert snippets.run_console(page(tmp_path, "~~~console\n$ sleep 60 &\n~~~\n"), tmp_path, timeout=10) == []


GOOD_CONSOLE = """
~~~console
$ echo one two
one …
$ cd /; x=5
$ false
$ echo $? $x
1 5
$ printf '%s\\n' \\
    a b
a
b
~~~
<!-- not run: it is this very run -->
~~~console
$ ./dev test
~~~
~~~console
$ echo $x
5
$ seq 9
1
…
9
~~~
"""


def test_a_console_is_one_shell_with_output(tmp_path: Path) -> None:
    assert snippets.run_console(page(tmp_path, GOOD_CONSOLE), tmp_path) == []


@pytest.mark.parametrize(
    "text, message",
    [
        ("~~~console\n$ echo one\ntwo\n~~~\n", "printed\none"),
        ("~~~console\n$ echo one\n~~~\n", "printed\none"),
        ("~~~console\n$ true\nshown\n~~~\n", "shows\nshown"),
        ("~~~console\n$ no-such-program\n…\n~~~\n", "ended with 127"),
        ("~~~console\n$ exit 3\n$ echo never\nnever\n~~~\n", "did not end"),
    ],
)
def test_a_console_that_does_not_hold_is_noticed(tmp_path: Path, text: str, message: str) -> None:
    (problem,) = snippets.run_console(page(tmp_path, text), tmp_path)
    assert message in problem


def test_a_page_is_read_by_a_newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLOCK_URL", "memory://")
    text = "~~~console\n$ echo $HOME ${FAIRLOCK_URL-unset}\n" + f"{tmp_path}/home unset\n~~~\n"
    assert snippets.run_console(page(tmp_path, text), tmp_path) == []


@pytest.mark.parametrize(
    "text, look",
    [
        ("~~~\nwhat is this?\n~~~\n", unrunnable),
        ("~~~bash\nrm -rf x\n~~~\n", unrunnable),
        ("[there](nowhere.md)\n", broken_links),
        ("[there](#nowhere)\n# Somewhere\n", broken_links),
        ("by `tests/x.py::test_nobody_wrote`\n", lambda page: missing_tests(page, "def test_one(")),
    ],
)
def test_a_page_that_is_not_in_order_is_noticed(tmp_path: Path, text: str, look) -> None:  # type: ignore[no-untyped-def]
    assert len(look(page(tmp_path, text))) == 1
    assert look(page(tmp_path, "# Some: where\n[there](#some-where)\n~~~text\n`x`\n~~~\n")) == []
