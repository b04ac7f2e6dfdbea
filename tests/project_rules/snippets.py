"""Runs what the pages show: every Python and console block of a Markdown page, in a folder and a HOME of its own.

    ```python    the blocks of a page run in order in one process and share their names; `await` may stand on its own
    ```pycon     the same, with the answers compared
    ```console   lines after `$ ` are commands of one bash; the lines below one must be all of its output. A command
                 that fails is a failure unless `echo $?` follows it. `fairlock`, `python3` and `./dev` are there.

In a page, … matches anything. Comments in the Markdown hide what a reader need not see:

    <!-- python            code that runs and is not shown, up to a line with only -->
    <!-- raises: NAME -->  the next block must end with that exception
    <!-- prints -->        the next block (text) is what the Python block before it printed
    <!-- not run: WHY -->  the next block is not run
    <!-- continues: PAGE -->  the Python of that page, beside this one, comes first
    <!-- needs: frameworks -->  the page imports Django, Celery or others, from the folder of ./dev

A page that names localhost:6379 gets a Redis server, and its address in that place (test_pages.py).

Started as a program with the name of a page, this file runs the Python blocks of that page; with --types FOLDER it
writes those of all pages into a package, which `./dev check` gives to mypy.
"""

import ast
import asyncio
import contextlib
import doctest
import inspect
import io
import os
import re
import signal
import subprocess
import sys
import textwrap
import traceback
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RUN = {"python", "pycon", "console"}
SHOWN = {"text", "sql", "cql", "lua", "toml", "ini", "json", "crontab", "yaml", "diff", "mermaid"}


class Block(NamedTuple):
    language: str
    line: int  # of its first line of text, counted from 1
    text: str
    request: str = ""  # the comment before it


class Command(NamedTuple):
    line: int
    text: str
    prints: str


def blocks(text: str) -> list[Block]:
    """Return the fenced and the hidden blocks of a page, in order."""
    found: list[Block] = []
    request, language, start, end = "", "", 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if end:
            if line.strip() == end:
                body = "\n".join(text.splitlines()[start:number - 1])
                found.append(Block(language, start + 1, body, request))
                request = end = ""
        elif fence := re.match(r"\s*(```+|~~~+)\s*(\S*)", line):
            end, language, start = fence[1], fence[2], number
        elif line.strip() == "<!-- python":
            end, language, start = "-->", "python", number
        elif comment := re.match(r"<!-- ((?:raises|prints|not run)\b.*?) -->", line.strip()):
            request = comment[1]
    if end:
        raise ValueError(f"line {start}: this block has no end")
    return found


def python_blocks(page: Path) -> list[tuple[Path, Block]]:
    """Return the blocks of a page, after those of the page that it continues."""
    text = page.read_text()
    before = re.search(r"(?m)^<!-- continues: (\S+) -->$", text)
    earlier = python_blocks(ROOT / "docs" / before[1]) if before else []
    return [*earlier, *((page, block) for block in blocks(text))]


def commands(block: Block) -> list[Command]:
    """Return the commands of a console block, each with the output that the page shows."""
    found: list[Command] = []
    for number, line in enumerate(block.text.splitlines(), block.line):
        if line.startswith("$ "):
            found.append(Command(number, line[2:], ""))
        elif not found:
            raise ValueError(f"line {number}: a console block begins with a line after `$ `")
        elif not found[-1].prints and (found[-1].text.endswith("\\") or line.startswith("> ")):
            more = line[2:] if line.startswith("> ") else line
            found[-1] = found[-1]._replace(text=f"{found[-1].text}\n{more}")
        else:
            found[-1] = found[-1]._replace(prints=f"{found[-1].prints}{line}\n")
    return found


def same(shown: str, printed: str) -> bool:
    """Return whether this was printed; … in what is shown matches anything."""
    def tidy(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
    pattern = ".*?".join(re.escape(each) for each in tidy(shown).split("…"))
    return re.fullmatch(pattern, tidy(printed), re.DOTALL) is not None


def variables(folder: Path) -> dict[str, str]:
    """Make the environment of a newcomer: an empty HOME, no settings, the tool on PATH, ./dev in the current folder."""
    programs = {
        "bin/fairlock": f'exec "{sys.executable}" -m fairlock "$@"',
        "bin/python": f'exec "{sys.executable}" "$@"',
        "bin/python3": f'exec "{sys.executable}" "$@"',
        "work/dev": f'exec "{sys.executable}" "{ROOT}/dev" "$@"',
    }
    for name, text in programs.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    (folder / "home").mkdir(exist_ok=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRLOCK_", "XDG_", "PYTEST_"))}
    path = f"{folder}/bin{os.pathsep}{env.get('PATH', os.defpath)}"
    frameworks = os.environ.get("FAIRLOCK_FRAMEWORKS", "")  # set by test_pages.py if the page needs them
    source = os.pathsep.join(filter(None, [f"{ROOT}/src", str(ROOT), frameworks]))
    return {**env, "PATH": path, "HOME": f"{folder}/home", "PYTHONPATH": source, "COLUMNS": "100"}


def call(arguments: list[str], folder: Path, timeout: float) -> tuple[int, str]:
    """Run a program to its end, with everything that it started. Return its exit code and its output."""
    env = variables(folder)
    process = subprocess.Popen(
        arguments, cwd=folder / "work", env=env, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    try:
        printed, _ = process.communicate(timeout=timeout)
        return process.returncode, printed
    except subprocess.TimeoutExpired:
        return 124, f"still running after {timeout} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def run_python(page: Path, folder: Path, timeout: float = 60, again: bool = False) -> list[str]:
    """Return what is wrong with the Python blocks of a page.

    With `again` they run over the files of an earlier run: they may print other things, and may raise LockTimeout.
    """
    if not any(block.language in ("python", "pycon") for block in blocks(page.read_text())):
        return []
    words = [__file__, str(page), *(["again"] if again else [])]
    code, printed = call([sys.executable, "-W", "error", *words], folder, timeout)
    return [] if code == 0 else [f"{page.name}: {printed.strip()}"]


def run_console(page: Path, folder: Path, timeout: float = 60) -> list[str]:
    """Return what is wrong with the console blocks of a page."""
    shown = [block for block in blocks(page.read_text()) if block.language == "console"]
    steps = [step for block in shown if not block.request.startswith("not run") for step in commands(block)]
    mark = "a command has ended with"
    script = ["exec 2>&1", "last=0"]
    for step in steps:  # $? is what the command before it left, as on a terminal
        script += ["(exit $last)", step.text, "last=$?", f'printf "\\n%s %s\\n" "{mark}" $last']
    script.append('[ -z "$(jobs -p)" ] || kill -KILL 0')  # what a page leaves in the background
    code, printed = call(["bash", "-c", "\n".join(script)], folder, timeout)
    answers = re.split(rf"\n{mark} (\d+)\n", printed)
    results = list(zip(answers[::2], answers[1::2], strict=False))
    found = []
    for number, step in enumerate(steps):
        where = f"{page.name}:{step.line}: $ {step.text}\n"
        if number >= len(results):
            return [*found, f"{where}did not end: {answers[-1].strip()} ({code})"]
        out, status = results[number]
        follower = steps[number + 1].text if number + 1 < len(steps) else ""
        if status != "0" and not follower.startswith("echo $?"):
            found.append(f"{where}ended with {status}:\n{out}")
        elif not same(step.prints, out):
            found.append(f"{where}the page shows\n{step.prints}but it printed\n{out}")
    return found


def main(page: Path, again: bool = False) -> None:
    """Run the Python blocks of a page in this process, and stop at the first that does not match the page."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    with asyncio.Runner() as runner:
        for source, block in python_blocks(page):
            if block.request.startswith("not run"):
                continue
            if block.request == "prints":
                assert again or same(block.text, printed), f"line {block.line}: it printed\n{printed}"
            elif block.language == "pycon":
                answers(block, source, names)
            elif block.language == "python":
                printed = execute(block, source, names, runner, "LockTimeout" if again else "")


def write_types(folder: Path) -> None:
    """Write a module for each page, in which its Python blocks are one coroutine.

    They are on the same lines as in the page, unless the page continues another: then they come after its blocks.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.py"):
        old.unlink()
    (folder / "__init__.py").touch()
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        lines = ["async def page() -> None:"]
        for _, block in python_blocks(page):
            if block.language == "python" and not block.request.startswith("not run"):
                lines += [""] * (block.line - 1 - len(lines)) + textwrap.indent(block.text, "    ").splitlines()
        if len(lines) > 1:
            (folder / f"{page.stem.lower().replace('-', '_')}.py").write_text("\n".join(lines) + "\n")


def execute(block: Block, page: Path, names: dict[str, Any], runner: asyncio.Runner, may: str) -> str:
    expected = block.request.removeprefix("raises:").strip()
    # Blank lines before it, so that a traceback names the line of the page.
    text = "\n" * (block.line - 1) + block.text
    code = compile(text, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            result = eval(code, names)
            if code.co_flags & inspect.CO_COROUTINE:
                async def awaited() -> None:
                    await result
                runner.run(awaited())
    except BaseException as error:
        if type(error).__name__ not in filter(None, (expected, may)):
            raise
        return out.getvalue()
    assert not expected, f"line {block.line}: this did not raise {expected}"
    return out.getvalue()


def answers(block: Block, page: Path, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(block.text + "\n", names, page.name, str(page), block.line - 1)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed = doctest.DocTestRunner(optionflags=flags, verbose=False).run(test, clear_globs=False).failed
    names.update(test.globs)
    assert not failed, "the answers differ"


if __name__ == "__main__":
    try:
        if sys.argv[1] == "--types":
            write_types(Path(sys.argv[2]))
        else:
            main(Path(sys.argv[1]), again="again" in sys.argv)
    except BaseException:
        traceback.print_exc()
        sys.exit(1)
