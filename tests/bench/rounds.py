# SPDX-License-Identifier: BSD-2-Clause
"""What takes turns in rounds: in which order, and what the rounds say.

The numbers of an entrant are a list, a dict for each round, or None for one
that failed.  Two entrants of the same rounds had their turns seconds apart:
a ratio is taken within each round, so that a machine which is slow for some
minutes is slow for both.
"""

import random
import statistics


def orders(names, rounds):
    """For each round, the order in which these take their turns.

    It is random, but the same in every run; each second round goes the other
    way round, so that nobody always has the same one before it, and whatever
    changes steadily meets all of them alike.
    """
    shuffler = random.Random(0)
    order = list(names)
    for n in range(rounds):
        if n % 2 == 0:
            shuffler.shuffle(order)
        yield order[:] if n % 2 == 0 else order[::-1]


def values(rows, key):
    return [row[key] for row in rows if row is not None]


def median(rows, key):
    """None if every round failed."""
    found = values(rows, key)
    return statistics.median(found) if found else None


def ratios(rows, others, key):
    """Of one to another, in each round that both have."""
    return [a[key] / b[key] for a, b in zip(rows, others)
            if a is not None and b is not None and b[key] > 0]


def ratio(rows, others, key):
    """The median of those; None if there is no such round."""
    found = ratios(rows, others, key)
    return statistics.median(found) if found else None


def middle_half(numbers):
    """Its least and its most: a quarter is below, a quarter above; or None."""
    if not numbers:
        return None
    if len(numbers) == 1:
        return numbers[0], numbers[0]
    low, _, high = statistics.quantiles(numbers, n=4, method="inclusive")
    return low, high
