# SPDX-License-Identifier: BSD-2-Clause
"""What is measured: the table of scenarios, and how each kind is measured.

A scenario is asked of each product that can do it, in turns; what comes back
from one turn is a dict of numbers, by the names that report.py prints.
"""

import contextlib
import dataclasses
import typing

import rig
from products import PRODUCTS, Task

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
GATE = 256
# What runs through the proxy before anything is measured.
WARM_UP = 0.1


@dataclasses.dataclass(frozen=True)
class Scenario:
    """One line of the benchmark."""

    name: str
    title: str
    kind: str                   # which of MEASURES, and how it is printed
    mode: str
    clients: int
    requests: int
    body: int = KIB
    bulk: int = 0               # body of /bulk, if that is asked for
    options: tuple = ()         # of clients; {origin} is the upstream's port
    only: tuple = tuple(PRODUCTS)
    gate: int = 0               # products that have gates run with it as well
    fresh: bool = False         # start anew for each turn

    def entrants(self):
        """Who takes part, by the name that is printed: product and task."""
        found = {}
        for name in self.only:
            product = PRODUCTS[name]
            if self.mode in product.modes and product.is_there():
                found[name] = (product, 0)
                if self.gate and name in ("penstock", "haproxy"):
                    found[f"{name}, gate"] = (product, self.gate)
        return found

    @contextlib.contextmanager
    def start(self, entrant, folder):
        """One of them, in front of an origin of its own: its Turn."""
        product, gate = entrant
        with contextlib.ExitStack() as stack:
            origin = stack.enter_context(rig.origin(self.body))
            bulk = self.bulk and stack.enter_context(
                rig.origin(self.bulk, rate=BULK_RATE))
            task = Task(self.mode, origin, bulk, gate,
                        large=self.kind == "bulk")
            running = stack.enter_context(product.start(folder, task))
            yield Turn(self, product, running, origin)

    def measure(self, turn):
        return MEASURES[self.kind](turn)

    def quick(self):
        """The same with a tenth of the requests, to see that it works."""
        few = max(self.requests // 10, min(self.clients, self.requests))
        return dataclasses.replace(self, requests=few)


class Turn(typing.NamedTuple):
    """A product that runs, and what it is asked."""

    scenario: Scenario
    product: typing.Any
    running: typing.Any         # pid, port; of penstock a Daemon
    origin: int

    def clients(self, **changes):
        s = self.scenario
        options = [o.format(origin=self.origin) for o in s.options]
        if not self.product.keeps_connections and "-t" not in options:
            options.append("-c")
        return rig.Clients(**{"port": self.running.port, "count": s.clients,
                              "options": options, **changes})

    @property
    def requests(self):
        s = self.scenario
        return max(int(s.requests * self.product.share),
                   min(s.clients, s.requests))

    def cpu(self):
        return rig.cpu_seconds(self.running.pid)


# --- how each kind is measured ---


def asked(turn):
    """Seconds of CPU that the scenario's requests took, and the Answers."""
    n, count = turn.requests, turn.scenario.clients
    with turn.clients() as clients:
        # Each client has been served before it counts.
        clients.ask(max(int(n * WARM_UP), count))
        before = turn.cpu()
        answers = clients.ask(n)
        return turn.cpu() - before, answers


def measure_requests(turn):
    """CPU of the proxy, rate and latency of so many requests."""
    used, answers = asked(turn)
    return {"cpu": used / turn.requests * 1e6,
            "rate": turn.requests / answers.seconds,
            "p50": answers.p50, "p99": answers.p99}


def measure_bulk(turn):
    """The same, of bodies that are large."""
    used, answers = asked(turn)
    moved = turn.requests * turn.scenario.body
    return {"cpu": used / moved * GIB,
            "rate": moved / MIB / answers.seconds,
            "p50": answers.p50, "p99": answers.p99}


def measure_idle(turn):
    """Memory of kept-alive clients that have asked once, and ask no more."""
    s = turn.scenario
    pid, busy = turn.running.pid, 64
    with turn.clients(count=busy) as few:
        few.ask(s.requests)
        before = rig.anonymous_bytes(pid)
        with turn.clients(in_flight=busy) as many:
            many.ask(s.clients)
            found = {"bytes":
                     (rig.anonymous_bytes(pid) - before) / s.clients}
            if turn.product.name == "penstock":
                turn.running.wait_metric("penstock_buffer_bytes", 0)
    return found


def measure_lag(turn):
    """How late the loop is for few that ask beside many that don't.

    It is late as well whenever something else gets its core; that is counted
    beside it.
    """
    s = turn.scenario
    name = "penstock_loop_lag_seconds_bucket"

    def buckets():
        return {dict(labels)["le"]: n for (key, labels), n
                in turn.running.metrics().items() if key == name}
    with turn.clients(in_flight=64) as many, turn.clients(count=64) as few:
        many.ask(s.clients)
        before = buckets()
        lost = rig.times_preempted(turn.running.pid)
        few.ask(s.requests)
        lost = rig.times_preempted(turn.running.pid) - lost
        after = buckets()
    grown = sorted((float(le), n - before[le]) for le, n in after.items())
    whole = grown[-1][1]
    found = {f"lag{share}": 1e3 * next(le for le, n in grown
                                       if n >= whole * share / 100)
             for share in (50, 99)}
    return {**found, "lost": 100 * lost / whole}


# Of the flow beside small requests, bytes a second: without a bound the one who
# moves most of it would leave least of the other core to those who ask.
BULK_RATE = 500_000_000


def measure_mixed(turn):
    """What one bulk flow does to small requests on the same worker."""
    s = turn.scenario
    bulk = turn.clients(count=1, options=["-u", "/bulk"])
    try:
        with turn.clients() as small:
            small.ask(s.requests // 10)
            alone = small.ask(s.requests)
            bulk.ask(1)
            bulk.begin(1 << 30)
            beside = small.ask(s.requests)
    finally:
        bulk.abandon()
    return {"alone": alone.p99, "beside": beside.p99,
            "times": beside.p99 / alone.p99}


MEASURES = {"requests": measure_requests, "bulk": measure_bulk,
            "idle": measure_idle, "lag": measure_lag, "mixed": measure_mixed}


# --- the table ---

def bulk(name, title, mode, body=64 * MIB, clients=4, **more):
    """How large the pieces are that a proxy finds ready is chance: many short
    turns tell more than few that are long.
    """
    return Scenario(name, title, "bulk", mode, clients, 512 * MIB // body,
                    body=body, **more)


def active(clients):
    return Scenario(
        f"active-{clients}", f"gateway, {clients:,} active clients",
        "requests", "gateway", clients, 30000, gate=GATE,
        only=("penstock", "nginx", "haproxy", "relay"))


SCENARIOS = {s.name: s for s in (
    Scenario("gateway-small", "gateway, kept alive, 1 KiB",
             "requests", "gateway", 64, 30000),
    Scenario("forward-small", "forward, kept alive, 1 KiB",
             "requests", "forward", 64, 30000,
             options=("-u", "http://127.0.0.1:{origin}/small")),
    Scenario("gateway-close", "gateway, a connection per request",
             "requests", "gateway", 64, 15000, options=("-c",),
             only=("penstock", "nginx", "haproxy")),    # a relay never closes
    bulk("gateway-1m", "gateway, 1 MiB bodies", "gateway", MIB, clients=16),
    bulk("gateway-64m", "gateway, 64 MiB bodies", "gateway"),
    Scenario("tcp-small", "tcp, 1 KiB",
             "requests", "tcp", 64, 30000),
    bulk("tcp-1m", "tcp, 1 MiB", "tcp", MIB, clients=16),
    bulk("tcp-64m", "tcp, 64 MiB", "tcp"),
    bulk("connect-64m", "CONNECT, 64 MiB", "forward",
         options=("-t", "127.0.0.1:{origin}"),
         only=("penstock", "squid", "tinyproxy")),
    active(100), active(1000), active(5000), active(9000),
    Scenario("idle-9000", "memory of an idle kept-alive client, of 9,000",
             "idle", "gateway", 9000, 5000, fresh=True,
             only=("penstock", "nginx", "haproxy")),
    Scenario("lag", "loop lag, 9,000 idle and 64 active clients",
             "lag", "gateway", 9000, 30000, only=("penstock",)),
    Scenario("mixed", "100 small clients beside a bulk flow of 500 MB/s",
             "mixed", "gateway", 100, 20000, bulk=64 * MIB,
             only=("penstock", "nginx", "haproxy")),
)}
