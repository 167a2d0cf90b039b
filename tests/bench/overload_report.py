# SPDX-License-Identifier: BSD-2-Clause
"""What was measured under overload, as Markdown: see overloads.py."""

import datetime

import report
from overloads import AIMS, COLUMNS, LOADS, NOISY, REFUSED, SERVED
from products import PRODUCTS
from report import table, written
from rounds import median, ratio


def names():
    """Who takes part; known when all are built."""
    return tuple(LOADS[0].entrants())


def where_it_ran(rounds):
    versions = ", ".join(f"{name} {PRODUCTS[name].version()}"
                         for name in names())
    return (f"{datetime.date.today()}, {report.machine()}; {versions}. "
            f"Medians of {rounds} rounds, in which the programs took turns in "
            "changing order, each on one core with one worker; origin and "
            "clients had the other core, and both had time to spare. The "
            f"origin works on {LOADS[0].slots} requests at a time, on each "
            f"for {LOADS[0].service_usec // 1000} ms, and so does the gate. "
            "Requests come at random, independently of each other; the time "
            "of each counts from when it was to come. penstock: queue_order "
            "= adaptive with a queue_target of 20 ms, and like HAProxy "
            f"(maxconn) a queue_timeout of {LOADS[0].queue.timeout_msec} ms. "
            "nginx (limit_conn) has no queue.")


def trial_part(trial, found):
    columns = COLUMNS[trial.kind]
    rows = [[name, *(written(median(rounds, key), form)
                     for key, (_, form) in columns.items())]
            for name, rounds in found.items()]
    offered = (f" {trial.rate:,} requests a second, of "
               f"{trial.capacity:,.0f} that can be served."
               if trial.kind == "load" else "")
    return [f"## {trial.title[0].upper()}{trial.title[1:]} (`{trial.name}`)",
            "", trial.about + offered, "",
            *table(["", *(words for words, _ in columns.values())], rows), ""]


def markdown(results, rounds, errors):
    lines = ["# Under overload", "", where_it_ran(rounds), "A half of the "
             "rounds was within the span beside a number. Made by "
             "`tests/bench/overload`.", ""]
    rows = report.aims(results, AIMS)
    if rows:
        lines += ["## Aims", "", *table(
            ["", "is", "half of the rounds", "aim", "reached"], rows), ""]
    for trial, found in results.items():
        lines += trial_part(trial, found)
    if errors:
        lines += ["## What failed", "", *(f"- {e}" for e in errors), ""]
    return "\n".join(lines)


def summary_rows(by_name):
    """A title, how it is written, and the number of a program by its name."""
    def of(trial, key):
        return lambda name: median(by_name[trial].get(name, []), key)
    for trial in LOADS:
        if trial.name in by_name:
            yield (f"{trial.title}: goodput / possible", ".3f",
                   of(trial.name, "goodput"))
            yield (f"{trial.title}: p99 of the served, ms", ",.0f",
                   of(trial.name, "p99"))
    if {SERVED, REFUSED} <= by_name.keys():
        yield ("CPU of a refusal / of a served request", ".2f",
               lambda name: ratio(by_name[REFUSED].get(name, []),
                                  by_name[SERVED].get(name, []), "cpu"))
    if NOISY in by_name:
        yield ("p99 of ten beside a noisy one / alone", ".1f",
               of(NOISY, "times"))


def summary(results):
    by_name = {trial.name: found for trial, found in results.items()}
    rows = [[title, *(written(number(name), form) for name in names())]
            for title, form, number in summary_rows(by_name)]
    return table(["", *names()], rows)


def readme(results, rounds):
    """The README's part."""
    return "\n".join([where_it_ran(rounds), "", *summary(results)])
