# SPDX-License-Identifier: BSD-2-Clause
"""What was measured, as Markdown: aims, a summary, and each scenario whole."""

import datetime
import os
import pathlib
import re

import products
import rig
from aims import AIMS
from rounds import median, middle_half, ratio, ratios, values

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


def written(number, form):
    return "–" if number is None else format(number, form)


def written_span(span):
    """Of two numbers, or nothing."""
    return "–" if span is None else "{:.2f}–{:.2f}".format(*span)


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
        ours = found.get("penstock", [])
        rows.append([name, *cells, written(least, columns[key][1]),
                     written(ratio(ours, rounds, key), ".2f"),
                     written_span(middle_half(ratios(ours, rounds, key)))])
    body = f", {scenario.body:,} bytes of body" if scenario.body else ""
    return [f"### {scenario.title} (`{scenario.name}`)", "",
            f"{scenario.clients:,} clients, {scenario.requests:,} requests "
            f"a round{body}.", "",
            *table(["", *(words for words, _ in columns.values()),
                    f"least {columns[key][0]}", "penstock / it",
                    "half of the rounds"], rows), ""]


# --- the aims ---


def aims(results, every=AIMS):
    """Rows of a table, of those that were measured."""
    by_name = {s.name: found for s, found in results.items()}
    rows = []
    for aim in every:
        number, half = aim.measured(by_name) or (None, None)
        if number is None:
            continue
        verdict = "yes" if aim.is_reached(number) else "**no**"
        rows.append([aim.title(), f"{number:.2f}", written_span(half),
                     aim.words(), verdict if aim.words() else ""])
    return rows


# --- what is written ---


def where_it_ran(rounds):
    return (f"{datetime.date.today()}, {machine()}; {products.described()}. "
            f"Medians of {rounds} rounds, in which the programs took turns in "
            "changing order, each on one core with one worker, without a "
            "log, on 127.0.0.1; origin and clients had the other core. "
            "Ratios were taken within each round before their median was, "
            "those of two scenarios as well. The relay parses nothing, "
            "reads and writes with a system call each, and opens a connection "
            "upstream for each of its clients; penstock reads from and writes "
            "to many connections in one call (io_uring). "
            "tinyproxy keeps no connections; squid and it were asked a sixth "
            "of the requests. HAProxy splices large bodies, through pipes as "
            "large as penstock's. TCP's congestion control was "
            f"{rig.congestion()}.")


def markdown(results, rounds, errors):
    lines = [
        "# Benchmarks", "",
        where_it_ran(rounds), "A half of the rounds was within the span "
        "beside a number. Made by `tests/bench/run`.", ""]
    rows = aims(results)
    if rows:
        lines += ["## Aims", "", *table(
            ["", "is", "half of the rounds", "aim", "reached"], rows), ""]
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


def write_readme(text, name="measured"):
    """Put it between two marks of the README; the first has that name."""
    file = rig.TOP / "README.md"
    begin, end = f"<!-- {name} -->\n", "<!-- end -->\n"
    before, rest = file.read_text().split(begin)
    after = rest.split(end, 1)[1]
    file.write_text(before + begin + text + "\n" + end + after)
