# SPDX-License-Identifier: BSD-2-Clause
"""Clients that break off, or stop reading, give back what they held."""

import contextlib
import random
import socket

import pytest

from penstock import Client, wait_for

# More than the kernel keeps of what nobody reads.
BIG = bytes(4 << 20)
PIECE = 1 << 16
CLIENTS, AT_ONCE = 200, 16

GATES = {
    "plain": "",
    "keyed": "key = client_address",
    "adaptive": "queue_order = adaptive\nqueue_target = 5ms",
    "fair": "queue_fair_by = client_address",
}


def serve(wire):
    """Answer what is small, what is large, and what has a body."""
    while (request := wire.read_message()) is not None:
        body = BIG if request.target.endswith("/big") else b"fine"
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
                  % len(body) + body)


@contextlib.contextmanager
def deaf_server():
    """A port that a connection is never made to: its queue is full."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(server.getsockname())
        yield server.getsockname()[1]


# --- how a request gets to its server ---

class Gateway:
    """Routes; /deaf leads to the server that takes no connection."""

    def __init__(self, gateway, server, deaf, lines):
        self.daemon = gateway(
            server.port, "limits = l\ntimeout_connect = 30s", rest=f"""
            [route deaf]
            listener = gateway
            upstream = deaf
            path = /deaf
            [upstream deaf]
            server = 127.0.0.1:{deaf}
            [limit l]
            {lines}
            """)

    def head_first(self, is_deaf):
        """What is sent, and answered, before anything else."""
        return b""

    def target(self, name, is_deaf):
        return f"/deaf/{name}" if is_deaf else f"/{name}"


class Tunnel:
    """A forward proxy, that is asked for a tunnel first."""

    def __init__(self, forward, server, deaf, lines):
        self.ports = server.port, deaf
        self.daemon = forward("limits = l\ntimeout_connect = 30s",
                              f"[limit l]\n{lines}")

    def head_first(self, is_deaf):
        to = b"127.0.0.1:%d" % self.ports[is_deaf]
        return b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (to, to)

    def target(self, name, is_deaf):
        return f"/{name}"


@pytest.fixture(params=["gateway", "tunnel"])
def way(request, upstream):
    """way(lines): a Gateway or a Tunnel with a limit of these lines."""
    with deaf_server() as deaf:
        kind = {"gateway": Gateway, "tunnel": Tunnel}[request.param]
        start = request.getfixturevalue(
            "gateway" if kind is Gateway else "forward")
        yield lambda lines: kind(start, upstream(serve), deaf, lines)


# --- clients that break off ---

class Guest:
    """One of the clients: steps() takes it further, a bit at a time."""

    def __init__(self, way, dice, kind, source=None):
        self.way, self.dice, self.kind = way, dice, kind
        self.seen = b""
        self.phase = "silent"
        self.client = Client(
            way.daemon.port,
            source=source or f"127.0.0.{dice.randint(2, 4)}")
        self.client.socket.setblocking(False)
        self.next = self.steps()

    def step(self):
        """What can be done without waiting; nothing if it is over."""
        with contextlib.suppress(StopIteration, BlockingIOError, OSError):
            next(self.next)

    def put(self, data):
        """Send all of it, in pieces of any size."""
        at = 0
        while at < len(data):
            piece = data[at:at + self.dice.randint(1, PIECE)]
            try:
                at += self.client.socket.send(piece)
            except BlockingIOError:
                pass
            yield

    def see(self, count):
        """Take so many bytes, if as many come."""
        while len(self.seen) < count:
            try:
                data = self.client.socket.recv(self.dice.randint(1, PIECE))
            except BlockingIOError:
                data = None
            if data == b"":
                return
            self.seen += data or b""
            yield

    def steps(self):
        is_deaf = self.kind == "deaf"
        first = self.way.head_first(is_deaf)
        if first:
            yield from self.put(first)
            self.phase = "asked"
            yield from self.see(13)
            if not self.seen.startswith(b"HTTP/1.1 200"):
                return
            self.seen = b""
        target = self.way.target(
            "big" if self.kind == "download" else "small", is_deaf)
        length = len(BIG) if self.kind == "upload" else 0
        yield from self.put((
            f"POST {target} HTTP/1.1\r\nHost: test\r\n"
            f"Content-Length: {length}\r\n\r\n").encode())
        self.phase = "asked"
        if length:
            self.phase = "sends"
            yield from self.put(BIG)
            self.phase = "asked"
        yield from self.see(13)
        if not self.seen.startswith(b"HTTP/1.1 200"):
            return
        self.phase = "reads"
        yield from self.see(1 << 30)
        self.phase = "done"


def fill(way, dice):
    """Four that never connect hold all permits, and ten wait behind them.

    All of one address, so that a limit by key is as full.
    """
    guests = []
    for n in range(14):
        guest = Guest(way, dice, "deaf" if n < 4 else "download",
                      "127.0.0.2")
        wait_for(lambda: guest.step() or guest.phase == "asked")
        guests.append(guest)
        way.daemon.wait_metric("penstock_limit_in_use", min(n + 1, 4))
        way.daemon.wait_metric("penstock_limit_waiting", max(n - 3, 0))
    return guests


# Besides those that are somewhere by chance.
ONCE = ("deaf", "asked"), ("upload", "sends"), ("download", "reads")


def break_off(guest, phases):
    phases[guest.phase] = phases.get(guest.phase, 0) + 1
    guest.client.abort()


@pytest.mark.parametrize("gate", GATES)
def test_every_permit_is_back_after_resets_at_any_time(way, gate):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    way = way(f"""
        concurrency = 4
        queue = 20
        queue_timeout = 20s
        {GATES[gate]}
        """)
    daemon = way.daemon
    phases = {}
    guests = fill(way, dice)
    made = len(guests)
    while guests:
        if made < CLIENTS and (len(guests) < AT_ONCE or not dice.randrange(9)):
            kind = dice.choices(["deaf", "upload", "download"], [1, 4, 4])[0]
            guests.append(Guest(way, dice, kind))
            made += 1
        guest = dice.choice(guests)
        for _ in range(dice.randrange(60)):
            guest.step()
        if not dice.randrange(8):
            guests.remove(guest)
            break_off(guest, phases)
    for kind, phase in ONCE:
        guest = Guest(way, dice, kind)
        wait_for(lambda: guest.step() or guest.phase == phase)
        break_off(guest, phases)
    print(phases)
    assert sum(phases.values()) == CLIENTS + len(ONCE)
    daemon.wait_metric("penstock_limit_in_use", 0)
    daemon.wait_metric("penstock_limit_waiting", 0)
    last = Guest(way, dice, "small")
    wait_for(lambda: last.step() or last.seen.endswith(b"fine"),
             what=lambda: f"{last.phase}: {last.seen}")
    last.client.close()


# --- a client that stops reading ---

def endless(wire):
    """Answer what is small; what else is asked for has no end."""
    while (request := wire.read_message()) is not None:
        if request.target == "/":
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            continue
        wire.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            wire.send(BIG)


@pytest.mark.parametrize("gate", GATES)
def test_who_stops_reading_loses_the_only_permit(gateway, upstream, gate):
    daemon = gateway(upstream(endless).port, "timeout_send = 300ms",
                     up="limits = l", rest=f"""
        [limit l]
        concurrency = 1
        queue = 1
        queue_timeout = 20s
        {GATES[gate].replace("5ms", "10s")}
        """)
    with Client(daemon.port, buffer=4096) as a, Client(daemon.port) as b:
        a.ask("/endless")
        daemon.wait_metric("penstock_limit_in_use", 1)
        b.ask("/")
        daemon.wait_metric("penstock_limit_waiting", 1)
        assert b.read_message().status == 200
        daemon.wait_count("failures", 1, reason="client_timeout")
    daemon.wait_metric("penstock_limit_in_use", 0)


@pytest.mark.parametrize("gate", GATES)
def test_who_stops_reading_a_tunnel_loses_the_only_permit(
        forward, upstream, gate):
    server = upstream(endless)
    daemon = forward("limits = l\ntimeout_tunnel = 300ms", rest=f"""
        [limit l]
        concurrency = 1
        queue = 1
        queue_timeout = 20s
        {GATES[gate].replace("5ms", "10s")}
        """)
    connect = f"CONNECT {server.server} HTTP/1.1\r\nHost: x:1\r\n\r\n".encode()
    with Client(daemon.port, buffer=4096) as a, Client(daemon.port) as b:
        a.send(connect)
        assert a.read_head().status == 200
        a.ask("/endless")
        b.send(connect)
        daemon.wait_metric("penstock_limit_waiting", 1)
        assert b.read_head().status == 200
        daemon.wait_count("failures", 1, reason="tunnel_idle")
    daemon.wait_metric("penstock_limit_in_use", 0)
