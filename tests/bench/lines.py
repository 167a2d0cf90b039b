# SPDX-License-Identifier: BSD-2-Clause
"""Charts of what changes over time: SVG, panels one below the other.

Each panel has a scale of its own from 0 and a line for each series; the time
is the same in all of them.  The colours follow the reader's preference for
light or dark.
"""

import html
import math

from chart import text

WIDTH, LEFT, RIGHT = 880, 64, 24
PANEL, TITLE, GAP, LEGEND = 130, 26, 18, 34

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f; }
.title { font-weight: 600; }
.unit, .tick { fill: #57606a; }
.grid { stroke: #d0d7de; stroke-width: 1; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.s0 { stroke: #0969da; } .s1 { stroke: #bc4c00; } .s2 { stroke: #1a7f37; }
.ideal { stroke: #6e7781; stroke-dasharray: 4 3; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.unit, .tick { fill: #9198a1; }
.grid { stroke: #3d444d; }
.s0 { stroke: #4493f8; } .s1 { stroke: #f0883e; } .s2 { stroke: #3fb950; }
.ideal { stroke: #9198a1; }
}
"""


def steps(most):
    """About four round numbers from 0 to the first that is not below most."""
    rough = (most or 1) / 4
    size = 10 ** math.floor(math.log10(rough))
    size *= next(n for n in (1, 2, 2.5, 5, 10) if n * size >= rough)
    return [size * i for i in range(math.ceil(most / size) + 1)]


def path(points, kind):
    """One line through the points."""
    there = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="line {kind}" points="{there}"/>'


def legend(names, y):
    """The names of the series, each with a piece of its line."""
    parts, x = [], LEFT
    for name, kind in names:
        parts += [path([(x, y - 4), (x + 24, y - 4)], kind),
                  text(x + 30, y, name)]
        x += 60 + 7 * len(name)
    return parts


def panel(title, unit, series, top, last):
    """One panel; series: [(kind, [(second, value)])]."""
    ticks = steps(max(v for _, points in series for _, v in points))
    room, bottom = WIDTH - LEFT - RIGHT, top + TITLE + PANEL

    def place(second, value):
        return (LEFT + room * second / last,
                bottom - PANEL * value / ticks[-1])
    parts = [text(LEFT, top + 14, title, "title"),
             text(WIDTH - RIGHT, top + 14, unit, "unit", "end")]
    for tick in ticks:
        y = place(0, tick)[1]
        parts += [f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" '
                  f'y1="{y:.1f}" y2="{y:.1f}"/>',
                  text(LEFT - 8, f"{y + 4:.1f}", f"{tick:g}", "tick", "end")]
    for kind, points in series:
        parts.append(path([place(*p) for p in points], kind))
    return parts


def svg(label, names, panels, last):
    """All panels; panels: [(title, unit, series)], names: [(name, kind)]."""
    parts, y = legend(names, GAP + 8), LEGEND
    for title, unit, series in panels:
        parts += panel(title, unit, series, y, last)
        y += TITLE + PANEL + GAP
    for second in steps(last):
        if second <= last:
            x = LEFT + (WIDTH - LEFT - RIGHT) * second / last
            parts.append(text(f"{x:.1f}", y, f"{second:g} s", "tick",
                              "middle"))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
        f'height="{y + GAP}" viewBox="0 0 {WIDTH} {y + GAP}" role="img" '
        f'aria-label="{html.escape(label)}">',
        f"<style>{STYLE}</style>", *parts, "</svg>", ""])
