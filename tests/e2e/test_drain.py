# SPDX-License-Identifier: BSD-2-Clause
"""The end of the process: what is begun is ended, and nothing is lost."""

import signal
import time

import pytest

import load
from load import BATCH, Load
from penstock import Client, answering, wait_for


def is_draining(daemon):
    return daemon.admin("/readyz") == (503, "draining\n")


def test_for_drain_delay_clients_are_accepted_and_readyz_says_503(
        gateway, upstream):
    server = upstream(answering(body=b"fine"))
    daemon = gateway(server.port, rest="[penstock]\ndrain_delay = 1h")
    with Client(daemon.port) as idle:
        daemon.signal(signal.SIGTERM)
        wait_for(lambda: is_draining(daemon))
        for _ in range(3):
            with Client(daemon.port) as c:
                m = c.request("/")
                assert (m.status, m.get("Connection")) == (200, None)
        assert idle.is_silent()
        daemon.signal(signal.SIGTERM)
        assert daemon.wait() == 0


def test_after_drain_delay_it_drains(gateway, upstream):
    daemon = gateway(upstream(answering()).port,
                     rest="[penstock]\ndrain_delay = 200ms")
    with Client(daemon.port) as idle:
        daemon.signal(signal.SIGTERM)
        assert idle.at_end()
        assert daemon.wait() == 0


def test_idle_clients_are_closed_one_after_another(gateway, upstream):
    daemon = gateway(upstream(answering()).port,
                     rest="[penstock]\nworkers = 1")
    idle = [Client(daemon.port) for _ in range(20)]
    for c in idle[:10]:
        assert c.request("/").status == 200
    daemon.wait_metric("penstock_sessions", 20)
    began = time.monotonic()
    daemon.signal(signal.SIGTERM)
    ends = []
    for c in idle:
        assert c.at_end()
        ends.append(time.monotonic() - began)
        c.close()
    # Each had a second to ask for something, and they had one together.
    assert ends == sorted(ends) and ends[0] >= 1
    assert ends[-1] >= 1.8
    assert daemon.wait() == 0


def test_who_is_idle_may_still_ask(gateway, upstream):
    daemon = gateway(upstream(answering()).port)
    with Client(daemon.port) as old, Client(daemon.port) as new:
        assert old.request("/").get("Connection") is None
        daemon.wait_metric("penstock_sessions", 2)
        daemon.signal(signal.SIGTERM)
        wait_for(lambda: is_draining(daemon))
        for c in old, new:
            m = c.request("/")
            assert (m.status, m.get("Connection")) == (200, "close")
    assert daemon.wait() == 0


def test_what_was_asked_ahead_is_answered_before_the_end(gateway, upstream):
    asked = []

    def think(request):
        asked.append(request)
        if len(asked) == 1:
            wait_for(lambda: is_draining(daemon))
    # 20 kB each: more than is read ahead, so most waits in the kernel.
    fields = "X: " + "x" * 20000
    daemon = gateway(upstream(answering(think=think)).port)
    with Client(daemon.port) as c:
        for i in range(BATCH):
            c.ask(f"/{i}", fields=[fields])
        wait_for(lambda: asked)
        daemon.signal(signal.SIGTERM)
        closes = [c.read_message().get("Connection") for _ in range(BATCH)]
        assert closes == [None] * (BATCH - 1) + ["close"]
        assert c.at_end()
    assert [r.target for r in asked] == [f"/{i}" for i in range(BATCH)]
    assert daemon.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_nothing_that_was_accepted_is_lost(gateway, upstream, number):
    server = upstream(load.serve)
    # Few may be in, so that there are always some in the kernel's queue.
    daemon = gateway(server.port, rest="""
        [penstock]
        workers = 2
        max_connections = 8
        [timeouts]
        drain = 20s
        """)
    clients = Load(may_end=True)
    clients.add(load.keep_alive, daemon.port, count=16)
    clients.add(load.pipelined, daemon.port, count=4)
    clients.add(load.download, daemon.port, count=4)
    wait_for(lambda: clients.count() > 500, 30)
    assert daemon.count("accept_paused") > 0
    daemon.signal(number)
    assert daemon.wait(20) == 0
    clients.wait()
    clients.stop()
