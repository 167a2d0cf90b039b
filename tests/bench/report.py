# SPDX-License-Identifier: BSD-2-Clause
"""What was measured, as Markdown: aims, a summary, and each scenario whole."""

import datetime
import os
import pathlib
import re
import statistics

import products
import rig

# Of each kind of scenario: its first number, which the summary shows, then
# the others; each with the words above it and how it is written.
COLUMNS = {
    "requests": {"cpu": ("CPU us/request", ".2f"),
                 "rate": ("requests/s", ",.0f"),
                 "p50": ("p50 us", ",.0f"), "p99": ("p99 us", ",.0f")},
    "bulk": {"cpu": ("CPU s/GiB", ".3f"), "rate": ("MiB/s", ",.0f"),
             "p50": ("p50 us", ",.0f"), "p99": ("p99 us", ",.0f")},
    "idle": {"bytes": ("bytes/client", ",.0f")},
    "lag": {"lag99": ("p99 ms, at most", ".2f"),
            "lag50": ("p50 ms, at most", ".2f"),
            "lost": ("turns that lost the core, %", ".2f")},
    "mixed": {"times": ("p99 beside / alone", ".2f"),
              "alone": ("alone us", ",.0f"),
              "beside": ("beside us", ",.0f")},
}


def first_column(scenario):
    """Key, words and format of what the scenario is about."""
    key, (words, form) = next(iter(COLUMNS[scenario.kind].items()))
    return key, words, form


def values(rows, key):
    return [row[key] for row in rows if row is not None]


def median(rows, key):
    """None if every round failed."""
    found = values(rows, key)
    return statistics.median(found) if found else None


def ratio(rows, others, key):
    """Of one to another, within each round; None if there is no such round."""
    found = [a[key] / b[key] for a, b in zip(rows, others)
             if a is not None and b is not None and b[key] > 0]
    return statistics.median(found) if found else None


def written(number, form):
    return "–" if number is None else format(number, form)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |",
             "|---" + "|--:" * (len(head) - 1) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


# --- where it ran ---


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", text)
    return (f"{model[1] if model else os.uname().machine}, "
            f"{len(os.sched_getaffinity(0))} cores, "
            f"Linux {os.uname().release}")


# --- the summary ---


def summary_rows(results):
    """(title, key, form, {product: rounds}); a gate is a row of its own."""
    for scenario, found in results.items():
        key, words, form = first_column(scenario)
        plain = {n: r for n, r in found.items() if not n.endswith(", gate")}
        yield f"{scenario.title}: {words}", key, form, plain
        gated = {n.removesuffix(", gate"): r for n, r in found.items()
                 if n.endswith(", gate")}
        if gated:
            yield (f"— with a gate of {scenario.gate}", key, form,
                   {**plain, **gated})


def summary(results):
    names = list(products.PRODUCTS)
    rows = []
    for title, key, form, found in summary_rows(results):
        cells = [written(median(found[n], key), form) if n in found else ""
                 for n in names]
        for other in "relay", "nginx", "haproxy":
            both = "penstock" in found and other in found
            cells.append(written(ratio(found["penstock"], found[other], key),
                                 ".2f") if both else "")
        rows.append([title, *cells])
    return table(["", *names, "penstock / relay", "/ nginx", "/ haproxy"],
                 rows)


def details(scenario, found):
    columns = COLUMNS[scenario.kind]
    key, *_ = first_column(scenario)
    rows = []
    for name, rounds in found.items():
        cells = [written(median(rounds, k), form)
                 for k, (_, form) in columns.items()]
        least = min(values(rounds, key), default=None)
        share = None
        if "penstock" in found:
            share = ratio(found["penstock"], rounds, key)
        rows.append([name, *cells, written(least, columns[key][1]),
                     written(share, ".2f")])
    body = f", {scenario.body:,} bytes of body" if scenario.body else ""
    return [f"### {scenario.title} (`{scenario.name}`)", "",
            f"{scenario.clients:,} clients, {scenario.requests:,} requests "
            f"a round{body}.", "",
            *table(["", *(words for words, _ in columns.values()),
                    f"least {columns[key][0]}", "penstock / it"], rows), ""]


# --- the aims ---


class Aims:
    """What the numbers are to show, as rows of a table."""

    def __init__(self, results):
        self.by_name = {s.name: found for s, found in results.items()}
        self.rows = []

    def rounds(self, scenario, name):
        return self.by_name.get(scenario, {}).get(name)

    def add(self, what, number, most=None, least=None):
        """A row, if there is such a number."""
        if number is None:
            return
        good = number <= most if most is not None else number >= least
        aim = f"≤ {most:g}" if most is not None else f"≥ {least:g}"
        self.rows.append([what, f"{number:.2f}", aim,
                          "yes" if good else "**no**"])

    def compare(self, a, b, key="cpu", **aim):
        """The ratio of two, each (scenario, name)."""
        rows, others = self.rounds(*a), self.rounds(*b)
        if rows and others:
            self.add(f"{key}: {a[0]} {a[1]} / "
                     f"{'' if a[0] == b[0] else b[0] + ' '}{b[1]}",
                     ratio(rows, others, key), **aim)

    def single(self, what, scenario, key, **aim):
        rows = self.rounds(scenario, "penstock")
        if rows:
            self.add(what, median(rows, key), **aim)


def aims(results):
    a = Aims(results)
    for scenario in "gateway-small", "forward-small":
        a.compare((scenario, "penstock"), (scenario, "relay"), most=1.2)
    a.compare(("forward-small", "penstock"), ("forward-small", "squid"),
              most=0.2)
    for scenario in results:
        for other in "nginx", "haproxy":
            if first_column(scenario)[0] == "cpu":
                a.compare((scenario.name, "penstock"),
                          (scenario.name, other), most=1)
    for scenario in "gateway-1m", "gateway-64m", "connect-64m":
        a.compare((scenario, "penstock"), ("tcp-64m", "haproxy"), most=1)
    gated = "penstock, gate"
    a.compare(("active-9000", gated), ("active-1000", gated), "rate",
              least=0.94)
    a.compare(("active-9000", gated), ("active-9000", "nginx"), most=0.6)
    a.compare(("active-9000", gated), ("active-9000", "nginx"), "p99",
              most=1)
    a.single("idle-9000: bytes per client", "idle-9000", "bytes", most=320)
    a.single("lag: p99 ms", "lag", "lag99", most=2)
    a.single("mixed: p99 beside / alone", "mixed", "times", most=2)
    return a.rows


# --- what is written ---


def where_it_ran(rounds):
    return (f"{datetime.date.today()}, {machine()}; {products.described()}. "
            f"Medians of {rounds} rounds, in which the programs took turns, "
            "each on one core with one worker, without a log, on 127.0.0.1; "
            "origin and clients had the other core. Ratios were taken within "
            "each round before their median was. The relay parses nothing "
            "and opens a connection upstream for each of its clients. "
            "tinyproxy keeps no connections; squid and it were asked a third "
            "of the requests. HAProxy splices large bodies, through pipes as "
            "large as penstock's.")


def markdown(results, rounds, errors):
    lines = [
        "# Benchmarks", "",
        where_it_ran(rounds), "Made by `tests/bench/run --write`.", ""]
    rows = aims(results)
    if rows:
        lines += ["## Aims", "", *table(["", "is", "aim", "reached"], rows),
                  ""]
    lines += ["## Summary", "", *summary(results), "", "## Each", ""]
    for scenario, found in results.items():
        lines += details(scenario, found)
    if errors:
        lines += ["## What failed", "", *(f"- {e}" for e in errors), ""]
    return "\n".join(lines)


def readme(results, rounds):
    """The README's part: the chart, and the summary."""
    picture = "![penstock beside other proxies](doc/benchmarks.svg)"
    return "\n".join([where_it_ran(rounds), "", *summary(results), "",
                      picture])


def write(name, text):
    """A file of doc/."""
    folder = rig.TOP / "doc"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)


def write_readme(text):
    """Put it between the README's two marks."""
    file = rig.TOP / "README.md"
    begin, end = "<!-- measured -->\n", "<!-- end -->\n"
    before, rest = file.read_text().split(begin)
    file.write_text(before + begin + text + "\n" + end + rest.split(end)[1])
