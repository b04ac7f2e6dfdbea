"""Draws docs/terminals.svg from a real run: two terminals, of which the second waits for the first.

    PYTHONPATH=src python3 docs/make_terminals_svg.py docs/terminals.svg

Both terminals are shells that run `fairlock` on one SQLite file. Each line is drawn at the time at which it appeared.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from html import escape
from pathlib import Path
from typing import NamedTuple

FIRST = ["fairlock run nightly -- sh -c 'echo report begins; sleep 4; echo report ends'"]
SECOND = [
    "fairlock run -n nightly -- echo never",
    "fairlock run nightly -- sh -c 'echo backup begins; sleep 1; echo backup ends'",
]
LINE, WIDTH = 18, 780


class Line(NamedTuple):
    seconds: float
    text: str


def play(commands: list[str], folder: Path, start: float, delay: float, shown: list[Line]) -> None:
    """Run the commands one after another, and note each line with its time."""
    time.sleep(max(0.0, start + delay - time.monotonic()))
    program = f'fairlock() {{ "{sys.executable}" -m fairlock "$@"; }}\n'
    env = {**os.environ, "HOME": str(folder), "FAIRLOCK_URL": f"sqlite:///{folder}/locks.db", "FAIRLOCK_OWNER": "web-1"}
    for command in commands:
        shown.append(Line(time.monotonic() - start, f"$ {command}"))
        shell = subprocess.Popen(
            ["bash", "-c", program + command], cwd=folder, env=env, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        with shell:
            assert shell.stdout is not None
            for line in shell.stdout:
                shown.append(Line(time.monotonic() - start, line.rstrip().replace(f"{folder}/", "")))


def record() -> tuple[list[Line], list[Line]]:
    first: list[Line] = []
    second: list[Line] = []
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        other = threading.Thread(target=play, args=(SECOND, Path(folder), start, 0.7, second))
        other.start()
        play(FIRST, Path(folder), start, 0.0, first)
        other.join(timeout=60)
    return first, second


def draw(first: list[Line], second: list[Line]) -> str:
    """One picture: terminal above terminal, the seconds at the left of each line."""
    out, top = [], 10
    for title, lines in (("terminal 1", first), ("terminal 2", second)):
        height = (len(lines) + 1) * LINE + 16
        out.append(f'<rect x="10" y="{top}" width="{WIDTH - 20}" height="{height}" rx="8" fill="#1e1e2e"/>')
        out.append(f'<text x="24" y="{top + LINE}" fill="#89b4fa">{title}</text>')
        for number, line in enumerate(lines, 2):
            y = top + number * LINE
            fill = "#a6e3a1" if line.text.startswith("$ ") else "#cdd6f4"
            out.append(f'<text x="24" y="{y}" fill="#7f849c">{line.seconds:4.1f} s</text>')
            out.append(f'<text x="90" y="{y}" fill="{fill}" xml:space="preserve">{escape(line.text)}</text>')
        top += height + 12
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" height="{top}"'
        ' font-family="monospace" font-size="13" role="img"'
        ' aria-label="Two terminals: the second command waits for the first">',
        *out, "</svg>", "",
    ])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw(*record()))
