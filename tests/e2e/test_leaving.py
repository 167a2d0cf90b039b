# SPDX-License-Identifier: BSD-2-Clause
"""Clients that go while they wait, whatever they have sent before.

More than a block of it is not read ahead: the rest lies in the kernel, in front
of the end or the reset.
"""

import contextlib
import time

import pytest

from penstock import Client, answering, wait_for
from test_bandwidth import KIB, LIMIT
from test_limits import Slow
from test_resets import deaf_server

# Read ahead, and in the kernel.
MUCH = bytes(40 * KIB)
WAITS = {
    "queue": "concurrency = 1\nqueue = 5\nqueue_timeout = 5m",
    "token": "rate = 1/m\nburst = 1\nwait = 5m",
    "bandwidth": "bandwidth_in = 1k\nbandwidth_burst = 64k",
    "connect": "concurrency = 9",
}


def post(body, length=None, fields=b""):
    return (b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n"
            % (len(body) if length is None else length, fields) + body)


CHUNKED = b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(params=WAITS)
def waiting(request, gateway, upstream):
    """waiting(data): a daemon, and a client that sent data and waits."""
    kind = request.param

    with contextlib.ExitStack() as stack:
        server = upstream(Slow())
        stack.callback(server.behaviour.go.set)
        port = server.port
        if kind == "connect":
            port = stack.enter_context(deaf_server())
        daemon = gateway(port, "timeout_connect = 5m\n"
                         "timeout_request_body = 5m\nlimits = l",
                         rest=LIMIT.format(lines=WAITS[kind]))

        def occupy():
            first = stack.enter_context(Client(daemon.port))
            first.send(post(bytes(63 * KIB)) if kind == "bandwidth" else
                       post(b""))
            daemon.wait_metric("penstock_exchanges", 1)
            if kind == "queue":
                daemon.wait_metric("penstock_limit_in_use", 1)

        def wait(data):
            before = 0
            if kind != "connect":
                occupy()
                before = 1
            c = stack.enter_context(Client(daemon.port))
            c.send(data)
            daemon.wait_metric("penstock_exchanges", before + 1)
            return daemon, c, before

        yield wait


def goes(daemon, c, how, before):
    # An end that comes with the request would be no farewell.
    time.sleep(0.3)
    if how == "reset":
        c.abort()
    else:
        c.close()
    daemon.wait_count("failures", 1, reason="client_closed")
    daemon.wait_metric("penstock_exchanges", before)


@pytest.mark.parametrize("how", ["reset", "close"])
@pytest.mark.parametrize("data", [
    post(MUCH), post(MUCH[:9000], length=1 << 30), CHUNKED + b"a000\r\n" + MUCH,
], ids=["whole", "part", "chunked"])
def test_who_goes_while_it_waits_leaves_at_once(waiting, data, how):
    daemon, c, before = waiting(data)
    goes(daemon, c, how, before)


@pytest.mark.parametrize("data", [post(b""), post(MUCH), post(b"") * 1000],
                         ids=["short", "long", "pipelined"])
def test_who_ends_and_then_resets_leaves_at_once(waiting, data):
    """The end came with the request, and so was no farewell."""
    daemon, c, before = waiting(data)
    c.end()
    time.sleep(0.05)
    c.abort()
    daemon.wait_count("failures", 1, reason="client_closed")
    daemon.wait_metric("penstock_exchanges", before)


def test_who_ends_with_much_is_served_from_the_queue(gateway, upstream):
    server = upstream(Slow())
    daemon = gateway(server.port, "limits = l",
                     rest=LIMIT.format(lines=WAITS["queue"]))
    with Client(daemon.port) as a, Client(daemon.port) as b:
        a.ask("/")
        daemon.wait_metric("penstock_limit_in_use", 1)
        b.send(post(MUCH) + post(MUCH))
        b.end()
        daemon.wait_metric("penstock_limit_waiting", 1)
        # As long as a later end would have to wait to be a farewell.
        time.sleep(0.3)
        server.behaviour.go.set()
        assert a.read_message().status == 200
        assert [b.read_message().status for _ in range(2)] == [200] * 2
        assert b.at_end()


def test_an_end_inside_a_body_is_none_that_came_with_the_request(
        gateway, upstream):
    """The rest never comes: nobody waits for its turn with it."""
    server = upstream(Slow())
    daemon = gateway(server.port, "limits = l",
                     rest=LIMIT.format(lines=WAITS["queue"]))
    with Client(daemon.port) as a:
        a.ask("/")
        daemon.wait_metric("penstock_limit_in_use", 1)
        for n in (10, 9000):
            with Client(daemon.port) as b:
                b.send(post(MUCH[:n], length=n + 1))
                b.end()
                assert b.at_end()
        daemon.wait_count("failures", 2, reason="client_closed")
        server.behaviour.go.set()
        assert a.read_message().status == 200
    assert server.behaviour.total == 1


# --- held while they send ---

HELD = LIMIT.format(lines="""
    concurrency = 5
    bandwidth_in = 1k
    bandwidth_burst = 64k
    """)
# More than the burst, by what the kernel takes besides: so the end comes, too.
LARGE = bytes((64 + 40) * KIB)


def is_told(daemon):
    """At a KiB a second, what was sent would take longer than is waited."""
    daemon.wait_count("failures", 1, reason="client_closed")
    daemon.wait_metric("penstock_limit_in_use", 0)
    daemon.wait_metric("penstock_flows_throttled", 0)


def test_an_end_inside_a_body_is_noticed_though_it_is_held(gateway, upstream):
    server = upstream(lambda wire: wire.read_all())
    daemon = gateway(server.port, up="limits = l", rest=HELD)
    with Client(daemon.port) as c:
        c.send(post(LARGE, length=len(LARGE) + 1))
        daemon.wait_metric("penstock_flows_throttled", 1, side="client")
        c.end()
        is_told(daemon)


def test_an_end_behind_a_whole_body_that_is_held_is_fine(gateway, upstream):
    n = 66 * KIB
    server = upstream(answering())
    daemon = gateway(server.port, up="limits = l", rest=HELD)
    with Client(daemon.port) as c:
        c.send(post(bytes(n)))
        daemon.wait_metric("penstock_flows_throttled", 1, side="client")
        c.end()
        assert c.read_message().status == 200
        assert c.at_end()


@pytest.mark.parametrize("kind", ["gateway", "relay"])
def test_an_end_and_a_reset_are_noticed_though_it_is_held(
        request, upstream, kind):
    """The kernel has another error for that: EPIPE."""
    server = upstream(lambda wire: wire.read_all())
    start = request.getfixturevalue(kind)
    daemon = start(server.port, "limits = l", rest=HELD)
    with Client(daemon.port) as c:
        c.send(post(LARGE) if kind == "gateway" else LARGE)
        daemon.wait_metric("penstock_flows_throttled", 1, side="client")
        c.end()
        time.sleep(0.1)
        c.abort()
        is_told(daemon)


def test_a_write_may_be_told_of_what_comes_after_an_end(relay, upstream):
    def behave(wire):
        while True:
            wire.send(b"hello")
            time.sleep(0.01)

    server = upstream(behave)
    daemon = relay(server.port, "limits = l", rest=HELD)
    with Client(daemon.port) as c:
        c.send(LARGE)
        daemon.wait_metric("penstock_flows_throttled", 1, side="client")
        c.end()
        time.sleep(0.1)
        c.abort()
        is_told(daemon)


def test_a_reset_behind_an_end_is_noticed_while_a_response_is_awaited(
        gateway, upstream):
    server = upstream(Slow())
    daemon = gateway(server.port, "limits = l", rest=HELD)
    with Client(daemon.port) as c:
        c.ask("/")
        c.end()
        wait_for(lambda: server.behaviour.total == 1)
        time.sleep(0.1)
        c.abort()
        is_told(daemon)
    server.behaviour.go.set()
