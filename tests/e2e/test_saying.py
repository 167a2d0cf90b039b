# SPDX-License-Identifier: BSD-2-Clause
"""What limits say: to clients, to the log, to who looks at the metrics."""

import json

import pytest

from penstock import Client, answering, wait_for
from test_limits import Slow, limited

def logged(daemon, n):
    """The first n lines of the access log, which is on stderr."""
    def lines():
        return [json.loads(line) for line in daemon.said().splitlines()
                if line.startswith("{")]
    wait_for(lambda: len(lines()) >= n)
    return lines()


LOG = "[log]\naccess = stderr\n"


# --- dry run ---

@pytest.mark.parametrize("key", ["none", "client_address"])
def test_a_dry_run_refuses_nothing_and_says_what_it_would(
        gateway, upstream, key):
    server = upstream(Slow())
    daemon = limited(gateway, server, f"""
        key = {key}
        concurrency = 1
        queue = 1
        dry_run = on
        """, rest=LOG)
    clients = [Client(daemon.port) for _ in range(4)]
    for i, c in enumerate(clients):
        c.ask(f"/{i}")
        wait_for(lambda: server.behaviour.now == i + 1)
    assert daemon.metric("penstock_limit_in_use", limit="l") == 2
    assert daemon.metric("penstock_limit_waiting", limit="l") == 0
    server.behaviour.go.set()
    for c in clients:
        assert c.read_message().status == 200
        c.close()
    daemon.wait_metric("penstock_limit_in_use", 0)
    assert daemon.count("limit_would_wait", limit="l") == 1
    assert daemon.count("limit_would_refuse", limit="l",
                        reason="queue_full") == 2
    assert daemon.count("limit_refused") == 0
    for line in logged(daemon, 4):
        said = line.get("would_refuse"), line.get("would_refuse_limit")
        assert said == (("queue_full", "l") if line["target"] in ("/2", "/3")
                        else (None, None))
        assert line["status"] == 200 and "reason" not in line


def test_a_dry_run_counts_tokens_as_if_it_were_none(gateway, upstream):
    server = upstream(answering())
    daemon = limited(gateway, server, """
        rate = 1/h
        burst = 2
        dry_run = on
        """, rest=LOG)
    with Client(daemon.port) as c:
        for _ in range(5):
            assert c.request("/").status == 200
    daemon.wait_count("limit_would_refuse", 3, limit="l",
                      reason="rate_limited")
    assert [line.get("would_refuse") for line in logged(daemon, 5)] == [
        None, None, *["rate_limited"] * 3]


def test_a_dry_run_of_connections(gateway, upstream):
    server = upstream(answering())
    daemon = limited(gateway, server, "connections = 1\ndry_run = on",
                     "listener", rest=LOG)
    with Client(daemon.port) as a, Client(daemon.port) as b:
        assert a.request("/a").status == 200
        for _ in range(2):
            assert b.request("/b").status == 200
    for line in logged(daemon, 3):
        assert line.get("would_refuse") == (
            "connection_limit" if line["target"] == "/b" else None)
    daemon.wait_count("limit_would_refuse", 1, reason="connection_limit")


def test_what_a_live_limit_refuses_is_refused_beside_a_dry_one(
        gateway, upstream):
    server = upstream(answering())
    daemon = gateway(server.port, "limits = dry", up="limits = live", rest="""
        [limit dry]
        rate = 1/h
        burst = 1
        dry_run = on
        [limit live]
        rate = 1/h
        burst = 2
        """)
    with Client(daemon.port) as c:
        assert [c.request("/").status for _ in range(3)] == [200, 200, 429]
    # The upstream's comes first, so the third never came to the other.
    daemon.wait_count("limit_refused", 1, limit="live")
    daemon.wait_count("limit_would_refuse", 1, limit="dry")
