"""Reading the tree: its files, and what each module imports, from the syntax alone. No module is run for that."""

import ast
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
UNSEEN = {".git", ".venv", ".dev", "__pycache__", ".hypothesis", ".mypy_cache", ".ruff_cache", ".pytest_cache", "dist"}


def files(root: Path = ROOT) -> list[Path]:
    """Every file that belongs to the project: all that git does not ignore, or, without git, all that we know it would
    not."""
    try:
        command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True).stdout.decode()
    except FileNotFoundError:
        listed = ""
    if listed:
        found = [root / name for name in listed.split("\0") if name]
    else:
        found = [folder / name for folder, names in _walk_folders(root) for name in names]
    return sorted(path for path in found if path.is_file() and not UNSEEN & set(path.relative_to(root).parts))


def _walk_folders(root: Path) -> Iterator[tuple[Path, list[str]]]:
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if name not in UNSEEN]
        yield Path(folder), [name for name in names if not name.endswith(".pyc")]


def python_files(root: Path = ROOT) -> list[Path]:
    return [path for path in files(root) if path.suffix == ".py" or path.name == "dev"]


class Import(NamedTuple):
    """One imported module, absolute, and where. `eager`: it happens when the importing module is imported."""

    module: str
    line: int
    eager: bool


def name_of(path: Path, src: Path = SRC) -> str:
    """fairlock.rules.locks.step for src/fairlock/rules/locks/step.py."""
    parts = path.relative_to(src).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, src: Path = SRC) -> list[Import]:
    """Return what a module of src imports, also inside functions and under TYPE_CHECKING.

    `from x import y` counts as x.y if that is a module of ours, so that `from ..stores import sqlite` is seen for
    what it is.
    """
    own = name_of(path, src)
    package = own if path.name == "__init__.py" else own.rpartition(".")[0]
    return list(_walk(ast.parse(path.read_text()), package, src, eager=True))


def _walk(node: ast.AST, package: str, src: Path, eager: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, child.lineno, eager)
        elif isinstance(child, ast.ImportFrom):
            base = child.module or ""
            if child.level:
                above = package.split(".")[: len(package.split(".")) - child.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            for alias in child.names:
                inner = f"{base}.{alias.name}"
                yield Import(inner if is_module(inner, src) else base, child.lineno, eager)
        else:
            inside_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            yield from _walk(child, package, src, eager and not inside_function and not for_types)


def is_module(name: str, src: Path = SRC) -> bool:
    path = src.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def modules(src: Path = SRC) -> list[Path]:
    return sorted(path for path in (src / "fairlock").rglob("*.py") if "__pycache__" not in path.parts)
