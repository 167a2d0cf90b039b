# SPDX-License-Identifier: BSD-2-Clause
"""What is measured of proxies that are asked more than their origin can do.

The origin works on so many requests at a time, on each for as long; so its
capacity is known, and far below what the machine could do: what is measured
is how the proxy queues.  What a Trial returns from a turn is a dict of
numbers, by the names in COLUMNS.
"""

import contextlib
import dataclasses
import typing

import rig
from aims import PENSTOCK, Aim
from products import PRODUCTS, Queue, Task

WARM_UP = 1                     # seconds of each run that don't count
TARGET_MSEC = 20                # queue_target of penstock
UNLOADED = 0.1                  # of capacity


@dataclasses.dataclass(frozen=True)
class Trial:
    """One table of the report."""

    name: str
    title: str
    kind: str                   # of MEASURES and COLUMNS
    about: str
    slots: int                  # of the origin; 0: as many as it gets
    service_usec: int           # that a request has one of them
    seconds: int                # of each run
    gate: int                   # most that the proxy lets in at once
    queue: Queue
    rate: int = 0               # requests a second that come
    spread: int = 0             # by which that differs, in per cent
    without_gate: tuple = ()    # programs that are not to refuse
    programs: tuple = ("penstock", "haproxy", "nginx")
    fresh = False

    @property
    def capacity(self):
        """Requests a second."""
        return self.slots * 1e6 / self.service_usec

    def entrants(self):
        """Who takes part, by name: a product and the gate it gets."""
        return {name: (PRODUCTS[name],
                       0 if name in self.without_gate else self.gate)
                for name in self.programs
                if PRODUCTS[name].is_there()}

    @contextlib.contextmanager
    def start(self, entrant, folder):
        """One of them, in front of an origin of its own."""
        product, gate = entrant
        with contextlib.ExitStack() as stack:
            origin = stack.enter_context(rig.origin(
                slots=self.slots, service=self.service_usec,
                spread=self.spread))
            task = Task("gateway", origin, gate=gate, queue=self.queue)
            yield Turn(self, stack.enter_context(product.start(folder, task)))

    def measure(self, turn):
        return MEASURES[self.kind](turn)

    def quick(self):
        """The same for a shorter time, to see that it works."""
        return dataclasses.replace(self, seconds=max(self.seconds // 5, 1))


class Turn(typing.NamedTuple):
    """A program that runs, and what it is asked."""

    trial: Trial
    running: typing.Any         # pid, port

    def come(self, rate, seconds, *options, **more):
        """Arrivals of an open loop, and what each cost in microseconds."""
        before = rig.cpu_seconds(self.running.pid)
        came = rig.open_loop(self.running.port, round(rate), WARM_UP, seconds,
                             options=options, **more)
        used = rig.cpu_seconds(self.running.pid) - before
        return came, used / came.asked * 1e6

    def clients(self, count, *options):
        return rig.Clients(self.running.port, count, options=options)


# --- how each kind is measured ---


def measure_load(turn):
    """How much is served, how soon, and what becomes of the rest."""
    t = turn.trial
    alone, _ = turn.come(t.capacity * UNLOADED, t.seconds // 2 or 1)
    came, cpu = turn.come(t.rate, t.seconds)
    possible = min(came.offered / t.seconds, t.capacity)
    bound = 2 * alone.p99 + 2 * TARGET_MSEC * 1e3
    return {"goodput": came.done / t.seconds / possible,
            "rate": came.done / t.seconds,
            "p50": came.p50 / 1e3, "p99": came.p99 / 1e3,
            "alone": alone.p99 / 1e3, "late": came.p99 / bound,
            "refused": 100 * came.refused / came.offered,
            "failed": came.failed, "cpu": cpu}


# More than can be answered, so that each connection always has one.
ENDLESS, IN_FLIGHT = 1_000_000, 64


def measure_cost(turn):
    """CPU of a request, where all come to the same end, one after another."""
    t = turn.trial
    came, cpu = turn.come(ENDLESS, t.seconds, "-e", connections=IN_FLIGHT)
    others = came.served if t.name == REFUSED else came.refused
    assert others == 0, came
    return {"cpu": cpu}


FEW, MANY = 10, 1000


def measure_neighbour(turn):
    """What one client that asks much does to others that don't."""
    t = turn.trial
    with turn.clients(FEW, "-a", str(FEW)) as few:
        n = FEW * t.seconds * 10
        few.ask(FEW)
        alone = few.ask(n)
        noisy = turn.clients(MANY)
        try:
            noisy.ask(MANY)
            noisy.begin(1 << 30)
            few.ask(FEW)
            beside = few.ask(n)
        finally:
            noisy.abandon()
    return {"times": beside.p99 / alone.p99, "alone": alone.p99 / 1e3,
            "beside": beside.p99 / 1e3, "usual": beside.p50 / 1e3}


MEASURES = {"load": measure_load, "cost": measure_cost,
            "neighbour": measure_neighbour}

# The words above a number, and how it is written.
COLUMNS = {
    "load": {"goodput": ("goodput / possible", ".3f"),
             "rate": ("served/s", ",.0f"),
             "p50": ("p50 ms", ",.1f"), "p99": ("p99 ms", ",.1f"),
             "alone": ("unloaded p99 ms", ",.1f"),
             "late": ("p99 / bound", ".2f"),
             "refused": ("refused %", ".1f"), "failed": ("failed", ",.0f"),
             "cpu": ("CPU us/request", ".1f")},
    "cost": {"cpu": ("CPU us/request", ".2f")},
    "neighbour": {"times": ("p99 beside / alone", ".2f"),
                  "alone": ("p99 alone ms", ",.1f"),
                  "beside": ("p99 beside ms", ",.1f"),
                  "usual": ("p50 beside ms", ",.1f")},
}


# --- the table ---


def load(times, words):
    """Some times the capacity."""
    slots, service_usec = 50, 50_000
    rate = round(times * slots * 1e6 / service_usec)
    return Trial(
        f"load-{times:g}", f"{words} capacity", "load",
        "Goodput is what was served within the time, of what came or could "
        "be done, whichever is less; the bound of p99, which is that of what "
        f"was served, is twice the unloaded one plus {2 * TARGET_MSEC} ms. "
        "CPU is the proxy's, of all requests, the refused ones too.",
        slots, service_usec, seconds=10, gate=slots, rate=rate,
        queue=Queue(1000, timeout_msec=500, target_msec=TARGET_MSEC))


def noisy(name, title, about, **more):
    """One that asks much, beside others."""
    return Trial(
        name, title, "neighbour", about,
        slots=20, service_usec=10_000, seconds=4, gate=20,
        queue=Queue(2000, timeout_msec=10_000, is_fair=True), **more)


SERVED, REFUSED = "served", "refused"
NOISY, LOCKSTEP = "noisy", "lockstep"
LOADS = (load(0.5, "half of"), load(1, "all of"), load(3, "three times"))

TRIALS = {t.name: t for t in (
    *LOADS,
    Trial(SERVED, "all are served", "cost",
          f"{IN_FLIGHT} clients that ask as fast as they are answered, by an "
          "origin that takes no time, with a gate that always has a permit.",
          slots=0, service_usec=0, seconds=3, gate=IN_FLIGHT, queue=Queue()),
    Trial(REFUSED, "all are refused", "cost",
          "The same, with a gate whose only permit is held by the first of "
          "them. HAProxy, which can't do without a queue, has one of 1 ms.",
          slots=1, service_usec=1_000_000_000, seconds=3, gate=1,
          queue=Queue(length=0)),
    noisy(NOISY, "a noisy neighbour",
          f"{FEW} clients with an address each, of which each asks again as "
          "soon as it has its answer; alone, and then beside one address "
          f"that does so with {MANY:,} connections. The origin takes 5 to 15 "
          "ms for each request, 20 at a time. penstock's gate has "
          "queue_fair_by = client_address; HAProxy's queue has no such "
          "thing; nginx, which has no queue, lets all of them wait in the "
          "origin's.", spread=50, without_gate=("nginx",)),
    noisy(LOCKSTEP, "a noisy neighbour, in lockstep",
          "The same with an origin that takes 10 ms for each, to the "
          "microsecond. All permits come free together then, once in 10 ms, "
          "and who has just missed them waits for as long as a request takes: "
          "about twice alone is the best that any order could give.",
          programs=(PENSTOCK,)),
)}

AIMS = (
    *(Aim((t.name, PENSTOCK), key="goodput", least=0.95) for t in LOADS),
    *(Aim((t.name, PENSTOCK), key="late", most=1) for t in LOADS),
    *(Aim((t.name, PENSTOCK), key="failed", most=0) for t in LOADS),
    Aim((REFUSED, PENSTOCK), (SERVED, PENSTOCK), "cpu", most=0.5),
    Aim((NOISY, PENSTOCK), key="times", most=2),
)
