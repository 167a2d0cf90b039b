# SPDX-License-Identifier: BSD-2-Clause
"""Gates, buckets, and how many clients there may be."""

import threading
import time

import pytest

from penstock import Client, answering, free_port, wait_for


class Slow:
    """A behaviour that answers when it is told to, and counts on the way."""

    def __init__(self, seconds=None):
        self.seconds = seconds
        self.go = threading.Event()
        self.lock = threading.Lock()
        self.now = self.most = self.total = 0

    def __call__(self, wire):
        while wire.read_message() is not None:
            with self.lock:
                self.total += 1
                self.now += 1
                self.most = max(self.most, self.now)
            if self.seconds is None:
                self.go.wait(20)
            else:
                time.sleep(self.seconds)
            with self.lock:
                self.now -= 1
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def limited(gateway, server, lines, where="upstream", rest=""):
    """A gateway with limit `l` on its upstream, its route or its listener."""
    return gateway(
        server.port, "limits = l" if where == "listener" else "",
        up="limits = l" if where == "upstream" else "",
        rest=f"[limit l]\n{lines}\n{rest}")


def is_refusal(message, status, token):
    message.is_failure(status, token)
    assert int(message.get("Retry-After")) >= 1
    assert message.get("Connection") is None
    return True


# --- gates ---

def test_two_are_served_one_waits_and_the_fourth_is_refused(
        gateway, upstream):
    server = upstream(Slow(seconds=3))
    daemon = limited(gateway, server, """
        concurrency = 2
        queue = 1
        queue_timeout = 1s
        """)
    with Client(daemon.port) as a, Client(daemon.port) as b, \
            Client(daemon.port) as c, Client(daemon.port) as d:
        a.ask("/")
        b.ask("/")
        daemon.wait_metric("penstock_limit_in_use", 2, limit="l")
        began = time.monotonic()
        c.ask("/")
        daemon.wait_metric("penstock_limit_waiting", 1, limit="l")
        assert is_refusal(d.request("/"), 503, "queue_full")
        assert c.is_silent()            # so the fourth did not wait
        assert is_refusal(c.read_message(), 503, "queue_timeout")
        assert 1 <= time.monotonic() - began < 2.5
        assert a.is_silent() and b.is_silent()
        assert a.read_message().status == b.read_message().status == 200
        daemon.wait_metric("penstock_limit_in_use", 0, limit="l")
        # Who was refused may ask again, on the same connection.
        server.behaviour.seconds = 0
        for client in c, d:
            assert client.request("/healthy").status == 200
    assert server.behaviour.most == 2
    daemon.wait_metric("penstock_limit_in_use", 0, limit="l")
    assert daemon.metric("penstock_limit_permits", limit="l") == 2
    for reason in "queue_full", "queue_timeout":
        daemon.wait_count("limit_refused", 1, limit="l", reason=reason)
        daemon.wait_count("failures", 1, reason=reason)


def closed_loop(port, seconds, requests=None):
    """Ask again and again; (sent, received, status) of each response."""
    seen = []
    end = time.monotonic() + seconds
    with Client(port) as c:
        while time.monotonic() < end and len(seen) != requests:
            sent = time.monotonic()
            m = c.request("/")
            seen.append((sent, time.monotonic(), m.status))
    return seen


def all_at_once(n, function, *arguments):
    """What n threads that run the function return, one after another."""
    results = []
    threads = [threading.Thread(
        target=lambda: results.append(function(*arguments)))
        for _ in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert len(results) == n
    return sum(results, [])


def test_an_upstream_never_sees_more_than_its_limit(gateway, upstream):
    server = upstream(Slow(seconds=0.002))
    daemon = limited(gateway, server, """
        concurrency = 3
        queue = 100
        queue_timeout = 30s
        """, rest="[penstock]\nworkers = 2")
    seen = all_at_once(16, closed_loop, daemon.port, 1.5)
    assert {status for _, _, status in seen} == {200}
    assert server.behaviour.most == 3
    for worker in "01":
        assert daemon.count("loop_callbacks", worker=worker,
                            kind="readers") > 0
    daemon.wait_metric("penstock_limit_in_use", 0)


@pytest.mark.parametrize("where", ["upstream", "listener"])
def test_a_place_is_given_on_as_soon_as_it_is_free(gateway, upstream, where):
    server = upstream(Slow())
    daemon = limited(gateway, server, """
        concurrency = 1
        queue = 10
        queue_timeout = 10s
        """, where)
    with Client(daemon.port) as a, Client(daemon.port) as b:
        a.ask("/")
        daemon.wait_metric("penstock_limit_in_use", 1)
        b.ask("/")
        daemon.wait_metric("penstock_limit_waiting", 1)
        server.behaviour.go.set()
        assert a.read_message().status == 200
        assert b.read_message().status == 200
    assert server.behaviour.most == 1


@pytest.mark.parametrize("how", ["end", "reset"])
def test_a_client_that_goes_while_waiting_gives_its_place_back(
        gateway, upstream, how):
    server = upstream(Slow())
    daemon = limited(gateway, server, """
        concurrency = 1
        queue = 1
        queue_timeout = 20s
        """)
    with Client(daemon.port) as a, Client(daemon.port) as c:
        a.ask("/")
        daemon.wait_metric("penstock_limit_in_use", 1)
        b = Client(daemon.port)
        b.ask("/")
        daemon.wait_metric("penstock_limit_waiting", 1)
        if how == "reset":
            b.abort()
        else:
            # An end that comes with the request would be no farewell.
            time.sleep(0.2)
            b.close()
        daemon.wait_metric("penstock_limit_waiting", 0)
        daemon.wait_metric("penstock_failures_total", 1,
                           reason="client_closed")
        c.ask("/")
        daemon.wait_metric("penstock_limit_waiting", 1)
        server.behaviour.go.set()
        assert a.read_message().status == c.read_message().status == 200
    assert server.behaviour.total == 2


def test_a_client_that_ends_with_its_request_is_served_from_the_queue(
        gateway, upstream):
    server = upstream(Slow())
    daemon = limited(gateway, server, """
        concurrency = 1
        queue = 1
        queue_timeout = 20s
        """)
    with Client(daemon.port) as a, Client(daemon.port) as b:
        a.ask("/")
        daemon.wait_metric("penstock_limit_in_use", 1)
        b.ask("/")
        b.end()
        daemon.wait_metric("penstock_limit_waiting", 1)
        server.behaviour.go.set()
        assert a.read_message().status == b.read_message().status == 200
        assert b.at_end()


def test_a_slow_reader_keeps_no_place_upstream(gateway, upstream):
    # As much as the buffers on the way take, and less than that.
    server = upstream(answering(body=bytes(100_000)))
    daemon = limited(gateway, server, "concurrency = 1",
                     rest="[penstock]\nworkers = 1")
    with Client(daemon.port, buffer=4096) as slow, Client(daemon.port) as c:
        slow.ask("/")
        daemon.wait_metric("penstock_server_requests_total", 1)
        daemon.wait_metric("penstock_limit_in_use", 0)
        assert c.request("/").status == 200
        assert len(slow.read_message().body) == 100_000


def test_places_are_counted_for_each_client(gateway, upstream):
    server = upstream(Slow())
    daemon = limited(gateway, server, """
        key = client_address
        concurrency = 1
        """)
    with Client(daemon.port, source="127.0.0.2") as a, \
            Client(daemon.port, source="127.0.0.2") as again, \
            Client(daemon.port, source="127.0.0.3") as b:
        a.ask("/")
        daemon.wait_metric("penstock_limit_in_use", 1)
        assert is_refusal(again.request("/"), 503, "queue_full")
        b.ask("/")
        daemon.wait_metric("penstock_limit_in_use", 2)
        server.behaviour.go.set()
        assert a.read_message().status == b.read_message().status == 200
        assert again.request("/").status == 200


def test_each_client_has_its_own_queue(gateway, upstream):
    server = upstream(Slow())
    daemon = limited(gateway, server, """
        key = client_address
        concurrency = 1
        queue = 1
        queue_timeout = 20s
        """)
    clients = [Client(daemon.port, source=f"127.0.0.{n}")
               for n in (2, 2, 3, 3)]
    for c in clients:
        c.ask("/")
    daemon.wait_metric("penstock_limit_in_use", 2)
    daemon.wait_metric("penstock_limit_waiting", 2)
    for n in 2, 3:
        with Client(daemon.port, source=f"127.0.0.{n}") as c:
            assert is_refusal(c.request("/"), 503, "queue_full")
    wait_for(lambda: server.behaviour.most == 2)
    server.behaviour.go.set()
    for c in clients:
        assert c.read_message().status == 200
        c.close()
    assert server.behaviour.most == 2


def test_limits_of_listener_route_and_upstream_all_hold(gateway, upstream):
    server = upstream(Slow())
    daemon = gateway(server.port, "limits = wide", up="limits = narrow",
                     rest="""
        [route r]
        listener = gateway
        path = /r/
        upstream = up
        limits = middle wide
        [limit wide]
        concurrency = 3
        [limit middle]
        concurrency = 2
        [limit narrow]
        concurrency = 1
        queue = 5
        queue_timeout = 20s
        """)
    with Client(daemon.port) as a, Client(daemon.port) as b, \
            Client(daemon.port) as c, Client(daemon.port) as d:
        a.ask("/r/")
        daemon.wait_metric("penstock_limit_in_use", 1, limit="narrow")
        b.ask("/r/")
        daemon.wait_metric("penstock_limit_waiting", 1, limit="narrow")
        # Each name is taken once, and the narrow one last or first: what
        # holds is that no limit is exceeded, and that none is leaked.
        assert daemon.metric("penstock_limit_in_use", limit="wide") <= 3
        assert daemon.metric("penstock_limit_in_use", limit="middle") <= 2
        c.ask("/")
        daemon.wait_metric("penstock_limit_waiting", 2, limit="narrow")
        d.ask("/")
        server.behaviour.go.set()
        for client in a, b, c:
            assert client.read_message().status == 200
        assert d.read_message().status in (200, 503)
    for name in "wide", "middle", "narrow":
        daemon.wait_metric("penstock_limit_in_use", 0, limit=name)
    assert server.behaviour.most == 1


def test_a_forward_listener_and_its_tunnels_are_limited_too(
        forward, upstream):
    server = upstream(lambda wire: wire.read_all())
    daemon = forward("limits = l", "[limit l]\nconcurrency = 1")
    connect = f"CONNECT {server.server} HTTP/1.1\r\nHost: x:1\r\n\r\n".encode()
    with Client(daemon.port) as a, Client(daemon.port) as b:
        a.send(connect)
        assert a.read_head().status == 200
        daemon.wait_metric("penstock_limit_in_use", 1, limit="l")
        b.send(connect)
        m = b.read_message()
        assert m.is_failure(503, "queue_full")
        assert m.get("Connection") == "close"
        assert b.at_end()
    daemon.wait_metric("penstock_limit_in_use", 0)


# --- buckets ---

def test_a_burst_passes_and_the_next_is_told_when_to_come(gateway, upstream):
    server = upstream(answering())
    for _ in range(10):
        daemon = limited(gateway, server, "rate = 10/s\nburst = 5")
        with Client(daemon.port) as c:
            began = time.monotonic()
            c.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 6)
            seen = [c.read_message() for _ in range(6)]
            span = time.monotonic() - began
        if span < 0.1:
            break       # before the next token, by the client's clock too
    assert span < 0.1
    assert [m.status for m in seen] == [200] * 5 + [429]
    assert is_refusal(seen[5], 429, "rate_limited")
    # A tenth of a second, in whole seconds, never less.
    assert seen[5].get("Retry-After") == "1"
    daemon.wait_count("limit_refused", 1, limit="l", reason="rate_limited")


def test_no_more_than_burst_and_rate_allow_pass_in_any_span(
        gateway, upstream):
    rate, burst = 50, 5
    server = upstream(answering())
    daemon = limited(gateway, server, f"rate = {rate}/s\nburst = {burst}",
                     rest="[penstock]\nworkers = 2")
    passed = sorted(
        (sent, received) for sent, received, status in
        all_at_once(4, closed_loop, daemon.port, 2) if status == 200)
    assert len(passed) >= burst + rate      # it is not stricter either
    for begin, _ in passed:
        # Those that began and ended within a span surely were in it.
        ends = sorted(received for sent, received in passed if sent >= begin)
        for inside, end in enumerate(ends, 1):
            assert inside <= burst + rate * (end - begin) + 1e-6
    daemon.wait_count("requests", len(passed), code="200")


def test_a_long_wait_is_told_as_it_is(gateway, upstream):
    server = upstream(answering())
    daemon = limited(gateway, server, "rate = 6/m\nburst = 1")
    with Client(daemon.port) as c:
        began = time.monotonic()
        assert c.request("/").status == 200
        m = c.request("/")
        passed = time.monotonic() - began
        assert is_refusal(m, 429, "rate_limited")
        assert 10 - passed <= int(m.get("Retry-After")) <= 10 * 1.25


def test_rates_are_counted_for_each_client(gateway, upstream):
    server = upstream(answering())
    daemon = limited(gateway, server, """
        key = client_address
        rate = 1/h
        burst = 1
        """, "listener")
    for n in 2, 3:
        with Client(daemon.port, source=f"127.0.0.{n}") as c:
            assert c.request("/").status == 200
            assert is_refusal(c.request("/"), 429, "rate_limited")
        with Client(daemon.port, source=f"127.0.0.{n}") as c:
            assert is_refusal(c.request("/"), 429, "rate_limited")


def test_a_request_may_be_held_until_its_turn(gateway, upstream):
    server = upstream(answering())
    daemon = limited(gateway, server, """
        rate = 5/s
        burst = 1
        wait = 10s
        """)
    with Client(daemon.port) as c:
        began = time.monotonic()
        assert [c.request("/").status for _ in range(4)] == [200] * 4
        assert time.monotonic() - began >= 3 * 0.2


def test_a_wait_that_would_be_too_long_is_refused_at_once(gateway, upstream):
    server = upstream(answering())
    daemon = limited(gateway, server, """
        rate = 1/h
        burst = 1
        wait = 1m
        """)
    with Client(daemon.port) as c:
        assert c.request("/").status == 200
        assert is_refusal(c.request("/"), 429, "rate_limited")


def test_a_client_that_goes_while_held_gives_its_turn_back(gateway, upstream):
    server = upstream(answering())
    daemon = limited(gateway, server, """
        rate = 1/s
        burst = 1
        wait = 1500ms
        """)
    with Client(daemon.port) as c, Client(daemon.port) as d:
        assert c.request("/").status == 200
        held = Client(daemon.port)
        held.ask("/")
        daemon.wait_metric("penstock_exchanges", 1)
        # Its turn is the only one within `wait`.
        assert is_refusal(d.request("/"), 429, "rate_limited")
        held.abort()
        daemon.wait_metric("penstock_exchanges", 0)
        assert c.request("/").status == 200


def test_a_token_comes_back_when_a_later_gate_refuses(gateway, upstream):
    server = upstream(Slow())
    daemon = gateway(server.port, "limits = bucket", up="limits = gate",
                     rest="""
        [limit bucket]
        rate = 1/h
        burst = 2
        [limit gate]
        concurrency = 1
        """)
    with Client(daemon.port) as a, Client(daemon.port) as b:
        a.ask("/")
        daemon.wait_metric("penstock_limit_in_use", 1, limit="gate")
        for _ in range(5):
            assert is_refusal(b.request("/"), 503, "queue_full")
        server.behaviour.go.set()
        assert a.read_message().status == 200
        daemon.wait_metric("penstock_limit_in_use", 0, limit="gate")
        assert b.request("/").status == 200
        assert is_refusal(b.request("/"), 429, "rate_limited")


# --- connections ---

def is_told_to_go(c):
    m = c.read_message()
    m.is_failure(503, "connection_limit")
    assert m.get("Connection") == "close"
    return c.at_end()


def test_a_client_has_only_so_many_connections(gateway, upstream):
    server = upstream(answering())
    daemon = limited(gateway, server, """
        key = client_address
        connections = 2
        """, "listener")
    with Client(daemon.port, source="127.0.0.2") as a, \
            Client(daemon.port, source="127.0.0.2") as b, \
            Client(daemon.port, source="127.0.0.3") as other:
        for c in a, b, other:
            assert c.request("/").status == 200
        with Client(daemon.port, source="127.0.0.2") as c:
            assert is_told_to_go(c)
        a.close()
        daemon.wait_metric("penstock_sessions", 2)
        with Client(daemon.port, source="127.0.0.2") as c:
            assert c.request("/").status == 200
    daemon.wait_count("sessions_refused", 1)


def test_a_listener_has_only_so_many_connections(gateway, upstream):
    server = upstream(answering())
    daemon = gateway(server.port, "max_connections = 2")
    with Client(daemon.port) as a, Client(daemon.port) as b:
        assert a.request("/").status == b.request("/").status == 200
        with Client(daemon.port) as c:
            assert is_told_to_go(c)
        assert a.request("/").status == 200
    daemon.wait_metric("penstock_sessions", 0)
    with Client(daemon.port) as c:
        assert c.request("/").status == 200


def test_more_connections_than_fit_wait_in_the_kernel(gateway, upstream):
    server = upstream(answering())
    daemon = gateway(server.port, rest="""
        [penstock]
        workers = 2
        max_connections = 3
        """)
    clients = [Client(daemon.port) for _ in range(8)]
    for c in clients:
        c.ask("/")
    daemon.wait_metric("penstock_requests_total", 3, code="200")
    assert daemon.metric("penstock_sessions") == 3
    assert daemon.count("accept_paused") > 0
    # Who is served goes, and makes room: all are served in the end.
    waiting = list(clients)
    while waiting:
        served = wait_for(lambda: [c for c in waiting if not c.is_silent()])
        assert len(served) <= 3
        for c in served:
            assert c.read_message().status == 200
            waiting.remove(c)
            c.close()
    daemon.wait_count("requests", 8, code="200")
    assert daemon.count("sessions_refused") == 0


def test_admin_is_never_behind_a_limit(gateway, upstream):
    server = upstream(Slow())
    daemon = limited(gateway, server, "concurrency = 1", rest="""
        [penstock]
        workers = 1
        max_connections = 1
        """)
    with Client(daemon.port) as c:
        c.ask("/")
        daemon.wait_metric("penstock_limit_in_use", 1)
        assert daemon.admin("/readyz")[0] == 200
        server.behaviour.go.set()
        assert c.read_message().status == 200


def test_waiting_is_measured(gateway, upstream):
    server = upstream(Slow())
    daemon = limited(gateway, server, """
        concurrency = 1
        queue = 1
        queue_timeout = 20s
        """)
    with Client(daemon.port) as a, Client(daemon.port) as b:
        a.ask("/")
        daemon.wait_metric("penstock_limit_in_use", 1)
        b.ask("/")
        daemon.wait_metric("penstock_limit_waiting", 1)
        server.behaviour.go.set()
        a.read_message(), b.read_message()
    assert daemon.metric("penstock_limit_wait_seconds_count", limit="l") >= 1
    assert daemon.metric("penstock_limit_wait_seconds_sum", limit="l") > 0


def test_an_upstream_that_is_down_leaks_no_places(gateway):
    daemon = gateway(free_port(), up="limits = l",
                     rest="[limit l]\nconcurrency = 1")
    with Client(daemon.port) as c:
        for _ in range(5):
            assert c.request("/").is_failure(502, "connect_refused")
    daemon.wait_metric("penstock_limit_in_use", 0, limit="l")
