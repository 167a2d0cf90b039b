# SPDX-License-Identifier: BSD-2-Clause
"""A worker that is late refuses what is new, and recovers by itself."""

import signal
import time

import pytest

from penstock import Client, answering, free_port, wait_for

# Later than a worker ever is here by itself, sanitizers or not.
MAX_LAG = "1s"

# How long the process stands still; at least so late it is, less KEEPALIVE.
STOPPED = 1.6
KEEPALIVE = "300ms"


@pytest.fixture
def daemon(penstock, upstream):
    """daemon(lag, more): one worker, of which both listeners are.

    `more` is for the gateway, on .port; .relay is the port of the other.
    """
    server = upstream(answering())

    def start(lag=MAX_LAG, more=""):
        gateway, relay = free_port(), free_port()
        started = penstock(f"""
            [penstock]
            workers = 1
            max_loop_lag = {lag}
            [timeouts]
            keepalive = {KEEPALIVE}
            [listener gateway]
            mode = gateway
            bind = 127.0.0.1:{gateway}
            upstream = up
            [listener relay]
            mode = tcp
            bind = 127.0.0.1:{relay}
            upstream = up
            [upstream up]
            server = {server.server}
            pool_idle = 200ms
            {more}
            """)
        started.port, started.relay = gateway, relay
        return started
    return start


def stand_still(daemon, meanwhile):
    """Stop the process, call meanwhile(client), and go on after STOPPED.

    A loop only knows that it is late if something was due meanwhile: here,
    an idle client's keepalive, and that client is given.  On a busy machine
    that may be over before; so whoever calls this does so until it works.
    """
    c = Client(daemon.port)
    c.request("/")
    daemon.signal(signal.SIGSTOP)
    try:
        meanwhile(c)
        time.sleep(STOPPED)
    finally:
        daemon.signal(signal.SIGCONT)
    return c


def answer_after_standing_still(daemon):
    """The answer to what came while it stood still; None if it was closed."""
    with stand_still(daemon, lambda c: c.ask("/")) as c:
        return c.read_message()


def is_refused(daemon):
    m = answer_after_standing_still(daemon)
    return m and m.status != 200 and m.is_failure(503, "overload")


def is_served(daemon):
    with Client(daemon.port) as c:
        return c.request("/").status == 200


def test_what_is_new_is_refused_while_late_and_then_served(daemon):
    d = daemon()
    assert is_served(d)
    wait_for(lambda: is_refused(d), 30)
    wait_for(lambda: is_served(d))
    assert d.count("failures", reason="overload") >= 1
    assert d.count("loop_late_turns", worker="0") >= 1


def test_without_the_keyword_no_lag_matters(daemon):
    d = daemon(lag="0")
    m = wait_for(lambda: answer_after_standing_still(d), 30)
    assert m.status == 200
    assert d.count("loop_late_turns") == 0


def test_no_limit_is_charged_for_what_is_refused(daemon):
    tokens = 30
    d = daemon(more=f"""
        limits = few
        [limit few]
        rate = 1/h
        burst = {tokens}
        """)
    wait_for(lambda: is_refused(d), 30)
    wait_for(lambda: is_served(d))
    with Client(d.port) as c:
        while (m := c.request("/")).status == 200:
            pass
    assert m.is_failure(429, "rate_limited")
    d.wait_count("requests", tokens, listener="gateway", code="200")


def test_of_relayed_connections_new_ones_are_closed_and_others_go_on(daemon):
    d = daemon()

    def new_one_is_closed():
        clients = []
        stand_still(d, lambda _: clients.append(Client(d.relay))).close()
        with clients[0] as new:
            try:
                return new.request("/") is None
            except ConnectionError:
                return True

    with Client(d.relay) as c:
        assert c.request("/").status == 200
        wait_for(new_one_is_closed, 30)
        assert c.request("/").status == 200
