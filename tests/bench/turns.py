# SPDX-License-Identifier: BSD-2-Clause
"""Plays rounds: everybody who takes part is started, and all take turns.

A scenario says who takes part, entrants(); how one of them is started,
start(), which is a context with whatever a turn needs; and what a turn is,
measure(), which returns a dict of numbers.  If it is `fresh`, each turn has
a start of its own.
"""

import argparse
import contextlib
import sys
import tempfile

from rounds import orders

# Fewer rounds prove nothing, and are not written down.
LEAST_ROUNDS = 5


def say(text):
    print(text, file=sys.stderr, flush=True)


def attempt(what, name, errors):
    """What it returns; or None, and why not is noted."""
    try:
        return what()
    except (AssertionError, OSError) as why:
        errors.append(f"{name}: {why}")
        say(errors[-1])
        return None


def one_turn(scenario, turn):
    found = scenario.measure(turn)
    say("    " + ", ".join(f"{k} {v:.2f}" for k, v in found.items()))
    return found


def fresh_turn(scenario, start):
    with start() as turn:
        return one_turn(scenario, turn)


def enter(scenario, stack, folder, errors):
    """What a turn of each entrant is; those that end with the stack run."""
    turns = {}
    for name, entrant in scenario.entrants().items():
        def start(entrant=entrant):
            return scenario.start(entrant, folder)
        if scenario.fresh:
            turns[name] = lambda start=start: fresh_turn(scenario, start)
            continue
        turn = attempt(lambda: stack.enter_context(start()),
                       f"{scenario.name}: {name}", errors)
        if turn is not None:
            turns[name] = lambda turn=turn: one_turn(scenario, turn)
    return turns


def run_group(scenarios, rounds, errors):
    """For each scenario and entrant its rounds; None is one that failed."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="penstock-bench-"))
        turns = {(s, name): turn for s in scenarios for name, turn
                 in enter(s, stack, folder, errors).items()}
        results = {s: {} for s in scenarios}
        for scenario, name in turns:
            results[scenario][name] = []
        for n, order in enumerate(orders(turns, rounds)):
            for scenario, name in order:
                what = f"{scenario.name}: {name}"
                say(f"{what}: round {n + 1} of {rounds}")
                results[scenario][name].append(
                    attempt(turns[scenario, name], what, errors))
    return results


def options(doc, names, rounds):
    """Those of a program that plays rounds of whatever has these names."""
    parser = argparse.ArgumentParser(
        description=doc.split("\n")[0], epilog="names: " + " ".join(names))
    parser.add_argument("--only", action="append", metavar="NAME",
                        choices=names, help="this one alone; may be given "
                        "more than once")
    parser.add_argument("--rounds", type=int,
                        help=f"default: {rounds}, or 1 with --quick")
    parser.add_argument("--quick", action="store_true",
                        help="a part of the requests: does it all work?")
    parser.add_argument("--write", action="store_true",
                        help="into doc/ and the README as well")
    given = parser.parse_args()
    if given.rounds is None:
        given.rounds = 1 if given.quick else rounds
    if given.write and (given.quick or given.only or
                        given.rounds < LEAST_ROUNDS):
        parser.error(f"--write takes all, {LEAST_ROUNDS} rounds at least")
    return given
