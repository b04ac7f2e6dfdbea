"""What a run has found and what it was made with: printed, and with --into written down."""

import importlib
import importlib.metadata
import json
import os
import platform
import re
import time
from pathlib import Path
from typing import Any

Table = list[list[str]]


def about(rounds: int, begun: float, packages: tuple[str, ...]) -> dict[str, Any]:
    return {
        "rounds": rounds, "seconds": round(time.monotonic() - begun), "cpus": os.cpu_count(),
        "load at the end": round(os.getloadavg()[0], 1), "python": platform.python_version(), **_versions(packages),
    }  # fmt: skip


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
            if name == "redis":  # contenders bring papers of another version, but not the code
                found[name] = importlib.import_module("redis").__version__
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def publish(
    name: str, called: str, tables: list[Table], run_by: dict[str, Any], missing: dict[str, str], rounds: Any,
    into: Path | None,
) -> None:  # fmt: skip
    """Print the tables; write NAME.json, and the tables into bench-NAME.md if that has a place for them."""
    said = ", ".join(f"{word}: {value}" for word, value in run_by.items())
    print("\n\n".join(map(show, tables)))
    for one, why in missing.items():
        print(f"not measured: {one}: {why}")
    print("\n" + said)
    if into is None:
        return
    into.mkdir(parents=True, exist_ok=True)
    data = {"about": run_by, "not measured": missing, "rounds": rounds}
    (into / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n")
    page = into / f"bench-{name}.md"
    if page.exists():
        text = "\n\n".join([*map(markdown, tables), f"Median (lowest to highest) of the rounds. {said}."])
        between = rf"(<!-- figures of {called} -->\n).*?(\n<!-- end of figures of {called} -->)"
        page.write_text(re.sub(between, lambda m: f"{m[1]}\n{text}\n{m[2]}", page.read_text(), flags=re.S))


def markdown(rows: Table) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def show(rows: Table) -> str:
    width = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, width, strict=True)).rstrip() for row in rows)
