"""The comparison as a picture: one panel for each figure, one bar for each contender, on a logarithmic scale.

Plain SVG, written by hand: no library to install for it, it can be read as text and compared by git. A thin line over
the end of a bar spans the lowest to the highest round.
"""

import math
import statistics
from html import escape

PALETTE = {"fairlock": "#2f6fb3", "filelock": "#b9770e", "portalocker": "#8e5ea2", "flock(2)": "#7f8c8d"}
PANELS = [  # figure, title, whether less is better, digits
    ("cycles_fresh", "cycles/s, nobody else, a new object each time", False, 0),
    ("cycles_same", "cycles/s, nobody else, one object used again", False, 0),
    ("idle_50", "ms the lock lies idle while one waits, 50 ms holds", True, 2),
    ("idle_2", "ms the lock lies idle while one waits, 2 ms holds", True, 2),
    ("handoffs_8", "hand-offs/s to another process, 8 processes", False, 0),
    ("handoffs_32", "hand-offs/s to another process, 32 processes", False, 0),
    ("longest_32", "ms that somebody waited, 32 processes, longest", True, 0),
    ("jain_32", "fairness among 32 processes (Jain; 1 = equal)", False, 3),
    ("kill", "ms from kill -9 of the holder to next inside", True, 1),
]
WIDTH, MARGIN, LABEL, PANEL, BAR, GAP = 920, 20, 98, 430, 15, 34


def draw(results: list[dict[str, dict[str, float]]], starts: list[dict[str, float]]) -> str:
    panels = [p for p in PANELS if any(p[0] in one for one in results[0].values())]
    height_of_one = GAP + BAR * len(PALETTE) + 14
    rows = math.ceil((len(panels) + bool(starts)) / 2)
    height = MARGIN * 2 + rows * height_of_one + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for number, (figure, title, less, digits) in enumerate(panels):
        values = {name: [r[name][figure] for r in results if figure in r.get(name, {})] for name in PALETTE}
        x, y = _place(number, height_of_one)
        parts += _panel(x, y, title + (", less is better" if less else ""), values, PALETTE, digits)
    if starts:
        palette = {"fairlock run": PALETTE["fairlock"], "python3": "#95a5a6", "flock(1)": PALETTE["flock(2)"]}
        keys = {"fairlock run": "fairlock_run", "python3": "python", "flock(1)": "flock_1"}
        values = {name: [s[key] for s in starts if key in s] for name, key in keys.items()}
        x, y = _place(len(panels), height_of_one)
        parts += _panel(x, y, "ms to start and end, `run x -- true` and `-c pass`, less is better", values, palette, 1)
    note = "Bars: median of the rounds; line: lowest to highest. Logarithmic where they differ more than fourfold."
    parts.append(f'<text x="{MARGIN}" y="{height - 8}" fill="#666666">{note}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _place(number: int, height: int) -> tuple[int, int]:
    return MARGIN + number % 2 * (PANEL + 2 * MARGIN), MARGIN + number // 2 * height


def draw_panels(panels: list[tuple[str, dict[str, list[float]], int]], palette: dict[str, str]) -> str:
    """The same for any panels: title, values of each contender, digits."""
    height_of_one = GAP + BAR * max(len(values) for _, values, _ in panels) + 14
    height = MARGIN * 2 + math.ceil(len(panels) / 2) * height_of_one + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for number, (title, values, digits) in enumerate(panels):
        x, y = _place(number, height_of_one)
        parts += _panel(x, y, title, values, palette, digits)
    note = "Bars: median of the rounds; line: lowest to highest. Logarithmic where they differ more than fourfold."
    parts.append(f'<text x="{MARGIN}" y="{height - 8}" fill="#666666">{note}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(
    x: int, y: int, title: str, values: dict[str, list[float]], palette: dict[str, str], digits: int
) -> list[str]:
    parts = [f'<text x="{x}" y="{y + 14}" font-weight="bold" fill="#222222">{escape(title)}</text>']
    known = [v for several in values.values() for v in several if v > 0]
    if not known:
        return parts
    low, high = min(known), max(known)
    linear = high < 4 * low
    floor = 0.0 if linear else low / 3
    room = PANEL - LABEL - 60

    def length(value: float) -> float:
        if linear:
            return room * value / high
        return room * math.log(max(value, floor) / floor) / math.log(high / floor)

    top = y + 22
    for name, several in values.items():
        if several:
            middle = statistics.median(several)
            end = x + LABEL + length(middle)
            line = top + BAR / 2 - 1
            parts += [
                f'<text x="{x + LABEL - 6}" y="{top + 10}" text-anchor="end" fill="#444444">{escape(name)}</text>',
                f'<rect x="{x + LABEL}" y="{top}" width="{max(end - x - LABEL, 1):.1f}" height="{BAR - 3}" '
                f'fill="{palette[name]}"/>',
                f'<line x1="{x + LABEL + length(min(several)):.1f}" x2="{x + LABEL + length(max(several)):.1f}" '
                f'y1="{line}" y2="{line}" stroke="#222222" stroke-width="1"/>',
                f'<text x="{max(end, x + LABEL + length(max(several))) + 5:.1f}" y="{top + 10}" fill="#222222">'
                f"{middle:,.{digits}f}</text>",
            ]
        top += BAR
    return parts
