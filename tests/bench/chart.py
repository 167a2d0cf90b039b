# SPDX-License-Identifier: BSD-2-Clause
"""The first number of each scenario as a chart: SVG, written by hand.

One panel for each scenario that several took part in, with a scale of its
own, since they are of several units; shorter is better in all of them.  The
colours follow the reader's preference for light or dark.
"""

import html

from report import first_column
from rounds import median

WIDTH, COLUMNS = 880, 2
GAP = 24
PANEL = (WIDTH - GAP * (COLUMNS + 1)) // COLUMNS
LABEL, VALUE = 104, 60          # beside the bars
TITLE, BAR, STEP = 34, 14, 21

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f; }
.title { font-weight: 600; }
.unit, .value { fill: #57606a; }
.bar { fill: #afb8c1; }
.penstock { fill: #0969da; }
.relay { fill: none; stroke: #8c959f; stroke-dasharray: 3 2; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.unit, .value { fill: #9198a1; }
.bar { fill: #565e68; }
.penstock { fill: #4493f8; }
.relay { fill: none; stroke: #9198a1; }
}
"""


def bars(found, key):
    """Names and medians, without those that failed."""
    every = [(name, median(rounds, key)) for name, rounds in found.items()]
    return [(name, n) for name, n in every if n is not None]


def height(panel):
    return TITLE + STEP * len(panel[3]) + GAP


def text(x, y, words, kind="", anchor="start"):
    return (f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">'
            f"{html.escape(words)}</text>")


def draw(panel, x, y):
    title, unit, form, rows = panel
    most = max(n for _, n in rows) or 1
    room = PANEL - LABEL - VALUE
    lines = [text(x, y + 12, title, "title"),
             text(x + PANEL, y + 12, unit, "unit", "end")]
    for i, (name, n) in enumerate(rows):
        top = y + TITLE - 10 + i * STEP
        kind = name.split(",")[0]
        long = max(round(n / most * room, 1), 1)
        lines += [
            text(x + LABEL - 8, top + 11, name, anchor="end"),
            f'<rect x="{x + LABEL}" y="{top}" width="{long}" '
            f'height="{BAR}" rx="2" class="bar {kind}"/>',
            text(x + LABEL + long + 6, top + 11, format(n, form), "value")]
    return lines


def svg(results):
    panels = []
    for scenario, found in results.items():
        key, unit, form = first_column(scenario)
        rows = bars(found, key)
        if len(rows) > 1:
            panels.append((scenario.title, unit, form, rows))
    lines, y = [], GAP
    for i in range(0, len(panels), COLUMNS):
        row = panels[i:i + COLUMNS]
        for column, panel in enumerate(row):
            lines += draw(panel, GAP + column * (PANEL + GAP), y)
        y += max(map(height, row))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
        f'height="{y}" viewBox="0 0 {WIDTH} {y}" role="img" '
        'aria-label="penstock beside other proxies; shorter is better">',
        f"<style>{STYLE}</style>", *lines, "</svg>", ""])
