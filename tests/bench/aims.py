# SPDX-License-Identifier: BSD-2-Clause
"""What the numbers are to show: the table of aims, and how they are judged.

Scenarios that an aim compares run together, and take turns in the same
rounds.
"""

import dataclasses

from rounds import median, middle_half, ratio, ratios, values
from scenarios import SCENARIOS

PENSTOCK, GATED = "penstock", "penstock, gate"


@dataclasses.dataclass(frozen=True)
class Aim:
    """A number of an entrant, or its ratio to that of another."""

    of: tuple               # scenario, entrant
    to: tuple = ()          # the same of the other
    key: str = "cpu"
    most: float = None
    least: float = None

    def scenarios(self):
        return {end[0] for end in (self.of, self.to) if end}

    def title(self):
        scenario, name = self.of
        if not self.to:
            return f"{self.key}: {scenario} {name}"
        other, its_name = self.to
        return (f"{self.key}: {scenario} {name} / "
                f"{'' if other == scenario else other + ' '}{its_name}")

    def words(self):
        """What is aimed at; an aim without a bound is to be compared with."""
        if self.most is not None:
            return f"≤ {self.most:g}"
        return f"≥ {self.least:g}" if self.least is not None else ""

    def is_reached(self, number):
        if self.most is not None:
            return number <= self.most
        return self.least is None or number >= self.least

    def measured(self, by_name):
        """The number, and its middle half; None if there is none."""
        ends = [by_name.get(scenario, {}).get(name)
                for scenario, name in (self.of, self.to or self.of)]
        if None in ends:
            return None
        if self.to:
            return ratio(*ends, self.key), middle_half(ratios(*ends, self.key))
        return (median(ends[0], self.key),
                middle_half(values(ends[0], self.key)))


def within(scenario, other, most, of=PENSTOCK, key="cpu"):
    """In one scenario, beside another program."""
    return Aim((scenario, of), (scenario, other), key, most)


AIMS = (
    within("gateway-small", "relay", 1.2),
    within("forward-small", "relay", 1.2),
    within("forward-small", "squid", 0.2),
    *(within(s.name, other, 1) for s in SCENARIOS.values()
      if s.kind in ("requests", "bulk") for other in ("nginx", "haproxy")),
    *(Aim((s, PENSTOCK), ("tcp-64m", "haproxy"), most=1)
      for s in ("gateway-64m", "connect-64m")),
    Aim(("gateway-1m", PENSTOCK), ("tcp-1m", "haproxy"), most=1),
    # With the gate, and the same without it.
    Aim(("active-9000", GATED), ("active-1000", GATED), "rate", least=0.94),
    Aim(("active-9000", PENSTOCK), ("active-1000", PENSTOCK), "rate"),
    within("active-9000", "nginx", 0.6, GATED),
    within("active-9000", "relay", None, GATED),
    within("active-9000", "nginx", 1, GATED, "p99"),
    within("active-9000", "nginx", None, key="p99"),
    Aim(("idle-9000", PENSTOCK), key="bytes", most=320),
    *(within("idle-9000", other, 1, key="bytes")
      for other in ("nginx", "haproxy")),
    Aim(("lag", PENSTOCK), key="lag99", most=2),
    Aim(("mixed", PENSTOCK), key="times", most=2),
)


def groups(names, aims=AIMS):
    """Lists of those names: each with all that it is compared to."""
    found = [[name] for name in names]
    for aim in aims:
        joined = [g for g in found if aim.scenarios() & set(g)]
        if len(joined) > 1:
            at = found.index(joined[0])
            found = [g for g in found if g not in joined]
            found.insert(at, [name for g in joined for name in g])
    return found
