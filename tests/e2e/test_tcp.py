# SPDX-License-Identifier: BSD-2-Clause
"""The relay: a connection for a connection, bytes as they are."""

import threading

from penstock import Client, free_port, wait_for

BIG = bytes(range(256)) * 16384         # 4 MiB


def echo(wire):
    while data := wire.socket.recv(65536):
        wire.send(data)


def test_bytes_pass_both_ways_as_they_are(relay, upstream):
    server = upstream(echo)
    daemon = relay(server.port)
    with Client(daemon.port) as c:
        sending = threading.Thread(target=lambda: (c.send(BIG), c.end()))
        sending.start()
        assert c.read_all() == BIG
        sending.join(10)
    daemon.wait_count("tunnels", 1, listener="tcp")


def test_a_server_that_speaks_first_is_heard(relay, upstream):
    server = upstream(lambda wire: wire.send(b"220 hello\r\n"))
    with Client(relay(server.port).port) as c:
        assert c.read_all() == b"220 hello\r\n"


def test_connections_are_never_shared(relay, upstream):
    server = upstream(echo)
    daemon = relay(server.port)
    for i in range(3):
        with Client(daemon.port) as c:
            c.send(b"%d" % i)
            assert c.read_exactly(1) == b"%d" % i
    assert server.accepted == 3


def test_a_client_may_end_its_half_first(relay, upstream):
    server = upstream(lambda wire: wire.send(b"got " + wire.read_all()))
    with Client(relay(server.port).port) as c:
        c.send(b"all of it")
        c.end()
        assert c.read_all() == b"got all of it"


def test_a_client_may_end_before_it_is_connected(relay, upstream):
    server = upstream(lambda wire: wire.send(b"got " + wire.read_all()))
    daemon = relay(server.port)
    for _ in range(20):
        with Client(daemon.port) as c:
            c.end()
            assert c.read_all() == b"got "


def test_a_server_may_end_its_half_first(relay, upstream):
    got = []

    def behave(wire):
        wire.send(b"banner")
        wire.end()
        got.append(wire.read_all())
    server = upstream(behave)
    daemon = relay(server.port)
    with Client(daemon.port) as c:
        assert c.read_all() == b"banner"
        c.send(b"still here")
    daemon.wait_metric("penstock_tunnels", 0)
    wait_for(lambda: got == [b"still here"])


def test_a_reset_by_the_client_reaches_the_server(relay, upstream):
    reset = threading.Event()

    def behave(wire):
        wire.read_exactly(1)
        if wire.is_reset():
            reset.set()
    server = upstream(behave)
    daemon = relay(server.port)
    c = Client(daemon.port)
    c.send(b"x")
    c.abort()
    assert reset.wait(10)
    daemon.wait_metric("penstock_failures_total", 1, reason="client_closed")


def test_a_reset_by_the_server_reaches_the_client(relay, upstream):
    def behave(wire):
        wire.read_exactly(1)
        wire.abort()
    server = upstream(behave)
    daemon = relay(server.port)
    with Client(daemon.port) as c:
        c.send(b"x")
        assert c.is_reset()
    daemon.wait_metric("penstock_failures_total", 1,
                       reason="upstream_closed")


def test_a_client_of_a_server_that_is_down_is_closed_without_a_byte(relay):
    daemon = relay(free_port())
    with Client(daemon.port) as c:
        try:
            assert c.read_all() == b""
        except ConnectionResetError:
            pass
    daemon.wait_metric("penstock_failures_total", 1,
                       reason="connect_refused")


def test_a_server_that_is_down_is_passed_over(relay, upstream):
    server = upstream(echo)
    daemon = relay([free_port(), server.port])
    for _ in range(4):
        with Client(daemon.port) as c:
            c.send(b"x")
            assert c.read_exactly(1) == b"x"


def test_a_side_that_is_slow_holds_the_other_back(relay, upstream):
    go = threading.Event()
    got = []

    def behave(wire):
        go.wait(10)
        got.append(len(wire.read_all()))
    server = upstream(behave)
    daemon = relay(server.port)
    with Client(daemon.port) as c:
        sending = threading.Thread(
            target=lambda: [c.send(BIG) for _ in range(8)])
        sending.start()
        daemon.wait_metric("penstock_flows_paused", 1, side="upstream")
        # What waits does so in blocks, or in a pipe of the kernel's.
        in_blocks = daemon.metric("penstock_buffer_bytes")
        pipes = daemon.metric("penstock_splice_pipes")
        assert in_blocks <= 256 * 1024 and pipes <= 1
        assert in_blocks > 0 or pipes == 1
        go.set()
        sending.join(10)
    daemon.wait_metric("penstock_tunnels", 0)
    wait_for(lambda: got == [8 * len(BIG)])


def test_limits_count_connections(relay, upstream):
    server = upstream(echo)
    daemon = relay(server.port, "limits = two", rest="""
        [limit two]
        concurrency = 2
        queue = 1
        queue_timeout = 10s
        """)
    with Client(daemon.port) as a, Client(daemon.port) as b:
        for c in a, b:
            c.send(b"x")
            assert c.read_exactly(1) == b"x"
        with Client(daemon.port) as waiting:
            waiting.send(b"y")
            daemon.wait_metric("penstock_limit_waiting", 1, limit="two")
            with Client(daemon.port) as refused:
                try:
                    assert refused.read_all() == b""
                except ConnectionResetError:
                    pass
            assert waiting.is_silent()
            a.close()
            assert waiting.read_exactly(1) == b"y"
    daemon.wait_metric("penstock_limit_in_use", 0, limit="two")
    daemon.wait_count("failures", 1, reason="queue_full")


def test_a_rate_holds_for_connections_too(relay, upstream):
    server = upstream(echo)
    daemon = relay(server.port, "limits = slow", rest="""
        [limit slow]
        rate = 1/h
        burst = 2
        """)
    for i in range(4):
        with Client(daemon.port) as c:
            try:
                c.send(b"x")
                c.end()
                assert c.read_all() == (b"x" if i < 2 else b"")
            except OSError:
                assert i >= 2
    daemon.wait_count("failures", 2, reason="rate_limited")
