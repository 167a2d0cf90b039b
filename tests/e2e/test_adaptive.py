# SPDX-License-Identifier: BSD-2-Clause
"""Limits that find their number: concurrency = adaptive."""

import threading
import time

import pytest

from penstock import Client, answering, wait_for
from test_limits import limited

# However slow the machine is.
LONG = 120

# What a response of these servers takes, in s.
SERVICE = 0.02


class Slots:
    """A behaviour: works on so many requests at once, the others wait."""

    def __init__(self, count):
        self.free = threading.Semaphore(count)
        self.lock = threading.Lock()
        self.status = 200
        self.here = self.most = 0

    def _count(self, n):
        with self.lock:
            self.here += n
            self.most = max(self.most, self.here)

    def __call__(self, wire):
        while wire.read_message() is not None:
            self._count(1)
            with self.free:
                time.sleep(SERVICE)
            self._count(-1)
            wire.send(b"HTTP/1.1 %d Said\r\nContent-Length: 0\r\n\r\n"
                      % self.status)


class Crowd:
    """Clients that ask again as soon as they are answered."""

    def __init__(self, port, count, method="GET"):
        self.over = threading.Event()
        self.statuses = set()
        self.threads = [
            threading.Thread(target=self._ask, args=(port, method),
                             daemon=True)
            for _ in range(count)]

    def _ask(self, port, method):
        with Client(port) as c:
            while not self.over.is_set():
                self.statuses.add(c.request("/", method).status)

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for t in self.threads:
            t.join(LONG)
            assert not t.is_alive()


def adaptive(gateway, server, bounds="", up="", **more):
    """A gateway in front of the server, with a limit that adapts."""
    return gateway(server.port, up=f"limits = l\n{up}", rest=f"""
        [limit l]
        concurrency = adaptive
        {bounds}
        queue = 1000
        queue_timeout = 60s
        """, **more)


def permits(daemon):
    return daemon.metric("penstock_limit_permits", limit="l")


def base(daemon):
    return daemon.metric("penstock_limit_base_seconds", limit="l")


def stays(daemon, low, high):
    """Is the limit between these, nearly always for a while?"""
    seen = []
    for _ in range(40):
        seen.append(permits(daemon))
        time.sleep(0.05)
    return low <= sorted(seen)[len(seen) // 2] <= high


def test_the_limit_comes_to_what_the_upstream_works_on_at_once(
        gateway, upstream):
    slots = 12
    server = upstream(Slots(slots))
    daemon = adaptive(gateway, server, "concurrency_min = 1")
    assert permits(daemon) == 5
    with Crowd(daemon.port, 4 * slots) as crowd:
        wait_for(lambda: permits(daemon) > 5, LONG)
        wait_for(lambda: stays(daemon, 0.75 * slots, 1.35 * slots), LONG,
                 what=lambda: permits(daemon))
        assert base(daemon) >= SERVICE
    assert crowd.statuses == {200}
    daemon.wait_metric("penstock_limit_in_use", 0)


def test_it_keeps_to_its_bounds(gateway, upstream):
    server = upstream(Slots(12))
    daemon = adaptive(gateway, server,
                      "concurrency_min = 7\nconcurrency_max = 8")
    assert permits(daemon) == 7
    with Crowd(daemon.port, 20):
        wait_for(lambda: permits(daemon) == 8, LONG)
        wait_for(lambda: base(daemon) > 0, LONG)
    assert server.behaviour.most == 8


@pytest.mark.parametrize("status", [500, 503])
def test_errors_of_the_server_tell_nothing(gateway, upstream, status):
    server = upstream(Slots(100))
    server.behaviour.status = status
    daemon = adaptive(gateway, server)
    with Crowd(daemon.port, 20) as crowd:
        wait_for(lambda: daemon.count("requests", code=str(status)) > 500,
                 LONG)
    assert crowd.statuses == {status}
    assert permits(daemon) == 5
    assert base(daemon) == 0


class Bouncer(Slots):
    """Works on so many, and turns the others away at once."""

    def __call__(self, wire):
        while wire.read_message() is not None:
            status = 200
            if self.free.acquire(blocking=False):
                time.sleep(SERVICE)
                self.free.release()
            else:
                status = self.status
            wire.send(b"HTTP/1.1 %d Said\r\nContent-Length: 0\r\n\r\n"
                      % status)


@pytest.mark.parametrize("status", [429, 503])
def test_it_does_not_grow_into_what_is_turned_away(gateway, upstream, status):
    slots = 12
    server = upstream(Bouncer(slots))
    server.behaviour.status = status
    daemon = adaptive(gateway, server, "concurrency_min = 1")
    with Crowd(daemon.port, 5 * slots):
        wait_for(lambda: daemon.count("requests", code="200") > 3000, LONG)
        wait_for(lambda: stays(daemon, slots / 2, 1.5 * slots), LONG,
                 what=lambda: permits(daemon))


def test_what_is_held_for_bandwidth_tells_nothing(gateway, upstream):
    def behave(wire):
        while (m := wire.read_message()) is not None:
            body = bytes(65536)
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 65536\r\n\r\n" +
                      (b"" if m.method == "HEAD" else body))

    daemon = gateway(upstream(behave).port, up="limits = l b", rest="""
        [limit l]
        concurrency = adaptive
        queue = 1000
        queue_timeout = 60s
        [limit b]
        bandwidth_out = 3m
        bandwidth_burst = 64k
        """)
    # One of them passes in the burst, and is not enough for a step.
    with Crowd(daemon.port, 20) as crowd:
        wait_for(lambda: daemon.count("requests", code="200") > 300, LONG)
    assert crowd.statuses == {200}
    assert permits(daemon) == 5
    assert base(daemon) == 0
    with Crowd(daemon.port, 20, "HEAD"):
        wait_for(lambda: base(daemon) > 0, LONG)


# What a slow client takes, in s.
PAUSE = 1


def send_slowly(c):
    c.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\n1")
    time.sleep(PAUSE)
    c.send(b"2")


def read_slowly(c):
    c.ask("/")
    time.sleep(PAUSE)


@pytest.mark.parametrize("size, ask", [(0, send_slowly),
                                       (8 << 20, read_slowly)])
@pytest.mark.parametrize("where", ["upstream", "listener"])
def test_a_slow_client_is_no_slow_server(gateway, upstream, size, ask, where):
    """Nobody waits for the server, so its time isn't the client's."""
    server = upstream(answering(body=bytes(size)))
    daemon = limited(gateway, server, "concurrency = adaptive", where)

    def come_again(over):
        while not over.is_set():
            with Client(daemon.port, buffer=65536) as c:
                ask(c)
                assert c.read_message().status == 200

    over = threading.Event()
    clients = [threading.Thread(target=come_again, args=[over], daemon=True)
               for _ in range(4)]
    for c in clients:
        c.start()
    wait_for(lambda: base(daemon) > 0, LONG)
    over.set()
    for c in clients:
        c.join(LONG)
    assert base(daemon) < PAUSE / 2


@pytest.mark.parametrize("how", ["end", "reset"])
def test_tunnels_tell_nothing(gateway, upstream, how):
    def switch(wire):
        wire.read_head()
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\n"
                  b"Connection: upgrade\r\nUpgrade: x\r\n\r\n")

    server = upstream(switch)
    daemon = adaptive(gateway, server, "concurrency_min = 1")
    for _ in range(200):
        with Client(daemon.port) as c:
            m = c.request("/", fields=["Connection: upgrade", "Upgrade: x"])
            assert m.status == 101
            if how == "reset":
                c.abort()
    daemon.wait_metric("penstock_limit_in_use", 0)
    assert permits(daemon) == 5
    assert base(daemon) == 0


def test_what_is_never_answered_lowers_it(gateway, upstream):
    def say_nothing(wire):
        while wire.read_message() is not None:
            pass

    server = upstream(say_nothing)
    daemon = adaptive(gateway, server, "concurrency_min = 1",
                      up="timeout_response = 50ms")
    assert permits(daemon) == 5
    with Crowd(daemon.port, 20) as crowd:
        wait_for(lambda: permits(daemon) == 1, LONG,
                 what=lambda: permits(daemon))
    assert crowd.statuses <= {503, 504}
