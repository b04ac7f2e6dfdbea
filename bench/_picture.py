"""Bars as SVG: each figure in a panel of its own, logarithmic, because the contenders lie far apart."""

import math
from collections.abc import Mapping, Sequence

COLOURS = {"holdfast": "#2b6cb0", "filelock": "#a0aec0", "portalocker": "#cbd5e0", "flock(2)": "#718096"}
WIDTH, ROW, NAME, HEAD = 760, 20, 110, 46


def picture(title: str, panels: Sequence[tuple[str, str, Mapping[str, float]]]) -> str:
    """`panels`: heading, unit, and a number for each contender."""
    parts: list[str] = []
    y = HEAD
    for heading, unit, values in panels:
        known = {name: value for name, value in values.items() if value > 0}
        low = math.log10(min(known.values())) - 0.3
        high = math.log10(max(known.values()))
        parts.append(f'<text x="16" y="{y}" font-weight="600">{heading}</text>')
        for name, value in known.items():
            y += ROW
            length = (math.log10(value) - low) / max(high - low, 0.1) * (WIDTH - NAME - 140)
            colour = COLOURS.get(name, "#a0aec0")
            parts.append(f'<text x="16" y="{y}">{name}</text>')
            parts.append(f'<rect x="{NAME}" y="{y - 12}" width="{length:.0f}" height="14" rx="2" fill="{colour}"/>')
            parts.append(f'<text x="{NAME + length + 6:.0f}" y="{y}">{number(value)} {unit}</text>')
        y += ROW * 2
    head = f'<text x="16" y="22" font-size="15" font-weight="600">{title}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y - ROW}" font-family="sans-serif" '
        f'font-size="12" fill="#1a202c"><rect width="100%" height="100%" fill="#fff"/>{head}{"".join(parts)}</svg>\n'
    )


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
