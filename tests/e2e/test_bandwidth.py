# SPDX-License-Identifier: BSD-2-Clause
"""Bandwidth: what is received, by the receiver's own clock.

The bound is no matter of timing: at no moment may more have come than burst +
rate x the time since before it was asked for, however slow the machine is.
"""

import contextlib
import json
import threading
import time

import pytest

from penstock import DEADLINE, Client, answering, wait_for

KIB, MIB = 1 << 10, 1 << 20
BURST = 64 * KIB
LIMIT = """
    [penstock]
    workers = 2
    [limit l]
    {lines}
    """


class Meter:
    """What receivers got, since just before it was asked for."""

    def __init__(self, rate, burst=BURST):
        self.rate, self.burst = rate, burst
        self.received = 0
        self.lock = threading.Lock()
        self.start()

    def start(self):
        self.began = time.monotonic()

    def note(self, n):
        with self.lock:
            self.received += n
            span = time.monotonic() - self.began
            most = self.burst + self.rate * span
            assert self.received <= most, (self.received, most, span)

    def read(self, wire, n=None):
        """Read n bytes, or all; how many."""
        got = len(wire.ahead)
        wire.ahead = b""
        self.note(got)
        while n is None or got < n:
            most = MIB if n is None else min(n - got, MIB)
            data = wire.socket.recv(most)
            if not data:
                assert n is None, f"{n - got} of {n} bytes are missing"
                break
            got += len(data)
            self.note(len(data))
        return got


def receiving(meter, body_of=None):
    """A behaviour: the body of each request is metered, then answered."""
    def behave(wire):
        while (head := wire.read_head()) is not None:
            n = int(head.get("Content-Length", "0"))
            if head.get("Transfer-Encoding") == "chunked":
                while size := int(wire.read_until(b"\r\n"), 16):
                    meter.note(len(wire.read_exactly(size + 2)) - 2)
                wire.read_exactly(2)
            else:
                meter.read(wire, n)
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    return behave


def sending(head, chunk, times, tail=b""):
    """A behaviour: this to every request, or to one if head says close."""
    def behave(wire):
        while wire.read_head() is not None:
            wire.send(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode())
            for _ in range(times):
                wire.send(chunk)
            wire.send(tail)
            if "close" in head:
                return
    return behave


PIECE = bytes(16 * KIB)
TIMES = 20
TOTAL = len(PIECE) * TIMES
AS_CHUNK = b"4000\r\n" + PIECE + b"\r\n"
RESPONSES = {
    "length": (f"Content-Length: {TOTAL}", PIECE, b""),
    "chunked": ("Transfer-Encoding: chunked", AS_CHUNK, b"0\r\n\r\n"),
    "close": ("Connection: close", PIECE, b""),
}


@pytest.mark.parametrize("framing", RESPONSES)
@pytest.mark.parametrize("key", ["none", "client_address"])
def test_a_response_comes_no_faster(gateway, upstream, framing, key):
    head, piece, tail = RESPONSES[framing]
    server = upstream(sending(head, piece, TIMES, tail))
    daemon = gateway(server.port, up="limits = l", rest=LIMIT.format(lines=f"""
        key = {key}
        bandwidth_out = 600k
        bandwidth_burst = 64k
        """))
    with Client(daemon.port) as c:
        meter = Meter(600 * KIB)
        c.ask("/")
        answer = c.read_head()
        if answer.get("Content-Length") is not None:
            meter.read(c, TOTAL)
        else:
            while size := int(c.read_until(b"\r\n"), 16):
                meter.note(len(c.read_exactly(size + 2)) - 2)
    assert meter.received == TOTAL
    # Chunks are framed anew; their framing counts as it came.
    daemon.wait_count("limit_bandwidth_bytes", TIMES * len(piece) + len(tail),
                      limit="l", direction="out")
    assert daemon.count("limit_throttled", limit="l", direction="out") == 1
    assert daemon.count("limit_bandwidth_bytes", direction="in") == 0


@pytest.mark.parametrize("splice", ["auto", "off"])
def test_much_comes_no_faster_either(gateway, upstream, splice):
    total = 24 * MIB
    server = upstream(sending(f"Content-Length: {total}", bytes(MIB), 24))
    daemon = gateway(server.port, f"splice = {splice}", "limits = l",
                     LIMIT.format(lines="""
        bandwidth_out = 20m
        bandwidth_burst = 512k
        """))
    with Client(daemon.port) as c:
        meter = Meter(20 * MIB, 512 * KIB)
        c.ask("/")
        c.read_head()
        assert meter.read(c, total) == total
    spliced = daemon.count("spliced_bytes")
    assert (spliced > total // 2) == (splice == "auto"), spliced


@pytest.mark.parametrize("fields", [
    f"Content-Length: {TOTAL}", "Transfer-Encoding: chunked"])
def test_a_request_goes_up_no_faster(gateway, upstream, fields):
    meter = Meter(600 * KIB)
    server = upstream(receiving(meter))
    daemon = gateway(server.port, up="limits = l", rest=LIMIT.format(lines="""
        bandwidth_in = 600k
        bandwidth_burst = 64k
        """))
    chunked = "chunked" in fields
    piece = AS_CHUNK if chunked else PIECE
    with Client(daemon.port) as c:
        meter.start()
        c.send(f"POST / HTTP/1.1\r\nHost: x\r\n{fields}\r\n\r\n".encode() +
               piece * TIMES + (b"0\r\n\r\n" if chunked else b""))
        assert c.read_message().status == 200
    assert meter.received == TOTAL
    wait_for(lambda: daemon.count("limit_bandwidth_bytes",
                                  direction="in") >= TOTAL)
    assert daemon.count("limit_bandwidth_bytes", direction="out") == 0


@pytest.mark.parametrize("key", ["none", "client_address"])
def test_what_comes_with_heads_counts_too(gateway, upstream, key):
    meter = Meter(100 * KIB)
    server = upstream(receiving(meter))
    daemon = gateway(server.port, up="limits = l", rest=LIMIT.format(lines=f"""
        key = {key}
        bandwidth_in = 100k
        bandwidth_burst = 64k
        """))
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(daemon.port)) for _ in range(8)]
        meter.start()
        for c in clients:
            c.ask("/", "POST", body=bytes(20 * KIB))
        for c in clients:
            assert c.read_message().status == 200
    assert meter.received == 8 * 20 * KIB
    daemon.wait_count("limit_bandwidth_bytes", meter.received,
                      direction="in")


def test_what_would_take_too_long_is_refused(gateway, upstream):
    server = upstream(receiving(Meter(1, 10 * MIB)))
    daemon = gateway(server.port, "timeout_request_body = 1s", "limits = l",
                     LIMIT.format(lines="""
        bandwidth_in = 1k
        bandwidth_burst = 64k
        """))
    with Client(daemon.port) as c, Client(daemon.port) as late:
        c.ask("/", "POST", body=bytes(60 * KIB))
        assert c.read_message().status == 200
        late.ask("/", "POST", body=bytes(50 * KIB))
        answer = late.read_message()
        answer.is_failure(429, "rate_limited")
        assert int(answer.get("Retry-After")) > 10


def test_a_refusal_says_which_limit_it_was(gateway, upstream):
    server = upstream(receiving(Meter(1, 10 * MIB)))
    daemon = gateway(server.port, "timeout_request_body = 5s",
                     "limits = wide first slow tokens",
                     LIMIT.format(lines="") + """
        [limit wide]
        bandwidth_in = 900k
        bandwidth_out = 900k
        bandwidth_burst = 64k
        [limit first]
        bandwidth_in = 2k
        bandwidth_burst = 64k
        [limit slow]
        bandwidth_in = 1k
        bandwidth_burst = 64k
        [limit tokens]
        rate = 3/h
        burst = 3
        """)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(daemon.port)) for _ in range(3)]
        for c in clients:
            c.ask("/", "POST", body=bytes(30 * KIB))
            answer = c.read_message()
            if c is not clients[2]:
                assert answer.status == 200
        answer.is_failure(429, "rate_limited")
        # 26 KiB are owed, which the other of the two has in half the time.
        assert int(answer.get("Retry-After")) > 20
    daemon.wait_count("limit_refused", 1, limit="first",
                      reason="rate_limited")
    assert daemon.count("limit_refused") == 1
    assert daemon.count("failures", reason="rate_limited") == 1
    daemon.wait_count("limit_bandwidth_bytes", 60 * KIB, limit="wide",
                      direction="in")


def test_a_hold_is_a_wait_for_the_limit(gateway, upstream):
    server = upstream(receiving(Meter(1, 10 * MIB)))
    daemon = gateway(server.port, up="limits = l", rest=LIMIT.format(lines="""
        bandwidth_in = 40k
        bandwidth_burst = 64k
        """))
    with Client(daemon.port) as c:
        for _ in range(3):
            assert c.request("/", "POST",
                             body=bytes(30 * KIB)).status == 200
    assert daemon.metric("penstock_limit_wait_seconds_count", limit="l") == 1


def test_who_is_refused_uses_up_nothing(gateway, upstream):
    n = 20 * KIB
    server = upstream(receiving(Meter(1, 10 * MIB)))
    daemon = gateway(server.port, "timeout_request_body = 1s", "limits = l",
                     LIMIT.format(lines="""
        concurrency = 1
        bandwidth_in = 1k
        bandwidth_burst = 64k
        """))
    with Client(daemon.port) as c, Client(daemon.port) as other:
        c.send(f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {n}\r\n\r\n"
               .encode())
        daemon.wait_metric("penstock_limit_in_use", 1)
        # Four of these would be more than there is.
        for _ in range(8):
            other.ask("/", "POST", body=bytes(n))
            other.read_message().is_failure(503, "queue_full")
        c.send(bytes(n))
        assert c.read_message().status == 200
    daemon.wait_count("limit_bandwidth_bytes", n, direction="in")


def test_what_is_of_the_next_request_is_not_of_a_body(gateway, upstream):
    server = upstream(receiving(Meter(1, 10 * MIB)))
    daemon = gateway(server.port, "timeout_total = 5s", "limits = l",
                     LIMIT.format(lines="""
        concurrency = 1
        bandwidth_in = 1k
        bandwidth_burst = 64k
        """))
    get = f"GET / HTTP/1.1\r\nHost: x\r\nX-Pad: {'x' * 3000}\r\n\r\n"
    with Client(daemon.port) as c:
        for _ in range(6):
            c.send(b"POST / HTTP/1.1\r\nHost: x\r\n"
                   b"Transfer-Encoding: chunked\r\n\r\n")
            daemon.wait_metric("penstock_limit_in_use", 1)
            c.send(b"1\r\nx\r\n0\r\n\r\n" + 3 * get.encode())
            for _ in range(4):
                assert c.read_message().status == 200
        # Together with those GETs that would be more than there is.
        assert c.request("/", "POST", body=bytes(60 * KIB)).status == 200
    daemon.wait_count("limit_bandwidth_bytes", direction="in",
                      value=6 * len("1\r\nx\r\n0\r\n\r\n") + 60 * KIB)


@pytest.mark.parametrize("size", [1000, 50000])
@pytest.mark.parametrize("splice", ["auto", "off"])
def test_each_of_many_bodies_counts_once(gateway, upstream, size, splice):
    times = 40
    server = upstream(receiving(Meter(1, 10 * MIB)))
    daemon = gateway(server.port, f"splice = {splice}", "limits = l",
                     LIMIT.format(lines="bandwidth_in = 100m"))
    asked = (f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n"
             .encode() + bytes(size)) * times
    with Client(daemon.port) as c:
        sender = threading.Thread(target=c.send, args=(asked,), daemon=True)
        sender.start()
        for _ in range(times):
            assert c.read_message().status == 200
        sender.join(DEADLINE)
    daemon.wait_count("limit_bandwidth_bytes", size * times,
                      direction="in")


def test_who_never_goes_on_gives_it_back(gateway, upstream):
    server = upstream(receiving(Meter(1, 10 * MIB)))
    daemon = gateway(server.port, "timeout_total = 3s", "limits = l",
                     LIMIT.format(lines="""
        bandwidth_in = 1k
        bandwidth_burst = 64k
        """))
    with Client(daemon.port) as c, Client(daemon.port) as held:
        assert c.request("/", "POST", body=bytes(60 * KIB)).status == 200
        m = held.request("/", "POST", body=bytes(30 * KIB))
        m.is_failure(504, "total_timeout")
        # Else it would be held for half a minute, too.
        assert c.request("/", "POST", body=bytes(4 * KIB)).status == 200
    daemon.wait_count("limit_bandwidth_bytes", 64 * KIB, direction="in")


def test_a_dry_run_counts_and_holds_nobody(gateway, upstream):
    server = upstream(answering(body=bytes(TOTAL)))
    daemon = gateway(server.port, up="limits = l none",
                     rest=LIMIT.format(lines="""
        bandwidth_out = 1k
        bandwidth_in = 1k
        bandwidth_burst = 64k
        dry_run = on
        [limit none]
        concurrency = 10
        """))
    # Live, it would be ten minutes.
    with Client(daemon.port) as c:
        for n in (1, TOTAL):
            m = c.request("/", "POST", body=bytes(n))
            assert len(m.body) == TOTAL
    daemon.wait_count("limit_bandwidth_bytes", TOTAL + 1, limit="l",
                      direction="in")
    daemon.wait_count("limit_bandwidth_bytes", 2 * TOTAL, limit="l",
                      direction="out")
    daemon.wait_count("limit_would_wait", 3, limit="l")
    text = daemon.metrics_text()
    # A limit that counts no bytes has no such line.
    assert text.count("penstock_limit_bandwidth_bytes_total{") == 2


def test_two_clients_share_it(gateway, upstream):
    server = upstream(sending(f"Content-Length: {TOTAL}", PIECE, TIMES))
    daemon = gateway(server.port, up="limits = l", rest=LIMIT.format(lines="""
        bandwidth_out = 400k
        bandwidth_burst = 64k
        """))
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(daemon.port)) for _ in range(4)]
        meter = Meter(400 * KIB)
        errors = []

        def read(c):
            try:
                c.ask("/")
                c.read_head()
                meter.read(c, TOTAL)
            except BaseException as e:
                errors.append(e)

        threads = [threading.Thread(target=read, args=(c,)) for c in clients]
        for t in threads:
            t.start()
        for t in threads:
            t.join(2 * DEADLINE)
        assert not errors, errors
    assert meter.received == 4 * TOTAL


def test_each_client_has_its_own_and_keeps_it(gateway, upstream):
    n = 60 * KIB
    server = upstream(sending(f"Content-Length: {n}", bytes(n), 1))
    daemon = gateway(server.port, up="limits = l", rest=LIMIT.format(lines="""
        key = client_address
        bandwidth_out = 20k
        bandwidth_burst = 64k
        """))
    meters = [Meter(20 * KIB) for _ in range(5)]
    # Together, these would take ten seconds more than they may.
    for i, meter in enumerate(meters):
        with Client(daemon.port, source=f"127.0.0.{i + 2}") as c:
            c.ask("/")
            c.read_head()
            meter.read(c, n)
    # Whoever comes again finds what it has left.
    with Client(daemon.port, source="127.0.0.2") as c:
        c.ask("/")
        c.read_head()
        meters[0].read(c, n)
    assert meters[0].received == 2 * n


def test_heads_do_not_count(gateway, upstream):
    field = "X: " + "x" * 4000
    server = upstream(answering(body=b"fine", fields=[field]))
    daemon = gateway(server.port, up="limits = l", rest=LIMIT.format(lines="""
        bandwidth_in = 1k
        bandwidth_out = 1k
        bandwidth_burst = 64k
        """))
    # 400 KiB each way, in much less than the six minutes they would take.
    with Client(daemon.port) as c:
        for _ in range(100):
            m = c.request("/", "POST", fields=[field], body=b"hello")
            assert m.body == b"fine"
    daemon.wait_count("limit_bandwidth_bytes", 500, direction="in")
    daemon.wait_count("limit_bandwidth_bytes", 400, direction="out")


def test_what_passed_a_tunnel_is_counted_while_it_idles(gateway, upstream):
    def behave(wire):
        wire.read_head()
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\n"
                  b"Connection: upgrade\r\nUpgrade: x\r\n\r\n")
        while data := wire.socket.recv(MIB):
            wire.send(data)

    n = 50000
    daemon = gateway(upstream(behave).port, up="limits = l",
                     rest=LIMIT.format(lines="""
        bandwidth_in = 100m
        bandwidth_out = 100m
        """))
    with Client(daemon.port) as c:
        m = c.request("/", fields=["Connection: upgrade", "Upgrade: x"])
        assert m.status == 101
        c.send(bytes(n))
        c.read_exactly(n)
        for way in ("in", "out"):
            assert daemon.count("limit_bandwidth_bytes", direction=way) == n


def test_nobody_waits_with_a_head(gateway, upstream, tmp_path):
    """And what is held up is not said to be the upstream's time."""
    n, large = 4 * KIB, 50

    def behave(wire):
        while (head := wire.read_head()) is not None:
            size = n if head.target == "/large" else 2
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" %
                      size + bytes(0 if head.method == "HEAD" else size))

    daemon = gateway(upstream(behave).port, up="limits = l",
                     rest=LIMIT.format(lines=f"""
        bandwidth_out = 1k
        bandwidth_burst = 64k
        [log]
        access = {tmp_path}/access.log
        """))
    with contextlib.ExitStack() as stack:
        # All of them together take two minutes more than the burst.
        crowd = [stack.enter_context(Client(daemon.port))
                 for _ in range(large)]
        for c in crowd:
            c.ask("/large")
        for c in crowd:
            assert c.read_head().status == 200
        held = (large * n - BURST) // n
        wait_for(lambda: daemon.metric("penstock_flows_throttled",
                                       side="upstream") >= held - 1)
        with Client(daemon.port) as c:
            for _ in range(20):
                c.ask("/", "HEAD")
                assert c.read_head().get("Content-Length") == "2"
            c.ask("/")
            assert c.read_head().get("Content-Length") == "2"
            c.abort()
        for c in crowd:
            c.abort()
    daemon.settled()
    assert daemon.metric(
        "penstock_upstream_response_seconds_count") == large + 21
    log = tmp_path / "access.log"
    wait_for(lambda: log.read_text().count("\n") == large + 21)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert all("throttled" not in line for line in lines
               if line["method"] == "HEAD")
    assert sum("throttled" in line for line in lines) >= held - 1


def test_a_response_is_the_same_however_it_comes(gateway, upstream):
    body = bytes(range(256)) * 16
    parts = [b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Enc",
             b"oding: chunked\r\n\r\n1000\r\n" + body + b"\r\n0\r\n\r",
             b"\n"]
    whole = b"".join(parts)
    noted = []

    def behave(wire):
        while (head := wire.read_head()) is not None:
            pieces = {"/parts": parts, "/whole": [whole],
                      "/bytes": [whole[i:i + 1] for i in range(len(whole))],
                      "/none": [b"HTTP/1.1 204 No\r\n\r\nmore"],
                      }[head.target]
            noted.append(wire)
            for piece in pieces:
                wire.send(piece)
                if len(pieces) < 9:
                    time.sleep(0.01)

    daemon = gateway(upstream(behave).port, up="limits = l",
                     rest=LIMIT.format(lines="""
        bandwidth_out = 300k
        bandwidth_burst = 64k
        """))
    with Client(daemon.port) as c:
        for how in ("parts", "whole", "bytes") * 3:
            assert c.request(f"/{how}").body == body
        assert len(set(noted)) == 1
        # What comes behind a response that has no body is no response.
        assert c.request("/none").status == 204
        assert c.request("/whole").body == body
        assert len(set(noted)) == 2


def tunnel_to(meter, n=TOTAL):
    """A behaviour: TOTAL bytes are metered, and n sent."""
    def behave(wire):
        sender = threading.Thread(target=wire.send, args=(bytes(n),))
        sender.start()
        meter.read(wire, TOTAL)
        sender.join(DEADLINE)
    return behave


def use_tunnel(c, down, early=0):
    """The client's side of it."""
    sender = threading.Thread(
        target=c.send, args=(bytes(TOTAL - early),))
    sender.start()
    assert down.read(c) == TOTAL
    sender.join(DEADLINE)


TUNNEL_LIMIT = LIMIT.format(lines="""
    bandwidth_in = 600k
    bandwidth_out = 600k
    bandwidth_burst = 64k
    """)


@pytest.mark.parametrize("early", [0, 40 * KIB])
def test_a_tunnel_is_held_to_it_both_ways(forward, upstream, early):
    up = Meter(600 * KIB)
    server = upstream(tunnel_to(up))
    daemon = forward("limits = l\naccess = a", f"""
        [access a]
        allow = loopback
        allow_destination = loopback
        connect_ports = {server.port}
        {TUNNEL_LIMIT}""")
    down = Meter(600 * KIB)
    up.start()
    with Client(daemon.port) as c:
        c.send(f"CONNECT {server.server} HTTP/1.1\r\nHost: x\r\n\r\n"
               .encode() + bytes(early))
        assert c.read_head().status == 200
        use_tunnel(c, down, early)
    wait_for(lambda: up.received == TOTAL)


def test_a_relayed_connection_is_too(relay, upstream):
    up = Meter(600 * KIB)
    server = upstream(tunnel_to(up))
    daemon = relay(server.port, "limits = l", rest=TUNNEL_LIMIT)
    # The server speaks as soon as it is connected.
    down = Meter(600 * KIB)
    up.start()
    with Client(daemon.port) as c:
        use_tunnel(c, down)
    wait_for(lambda: up.received == TOTAL)
    wait_for(lambda: all(
        daemon.count("limit_bandwidth_bytes", direction=way) == TOTAL
        for way in ("in", "out")))


@pytest.mark.parametrize("ahead", [0, 50 * KIB])
def test_an_upgraded_connection_is_too(gateway, upstream, ahead):
    up = Meter(600 * KIB)

    def behave(wire):
        wire.read_head()
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade"
                  b"\r\nUpgrade: x\r\n\r\n" + bytes(ahead))
        tunnel_to(up, TOTAL - ahead)(wire)

    daemon = gateway(upstream(behave).port, "limits = l", rest=TUNNEL_LIMIT)
    down = Meter(600 * KIB)
    up.start()
    with Client(daemon.port) as c:
        c.ask("/", fields=["Connection: upgrade", "Upgrade: x"])
        assert c.read_head().status == 101
        use_tunnel(c, down)
    wait_for(lambda: up.received == TOTAL)


def test_who_is_held_is_not_late(gateway, upstream):
    n = BURST + 3 * KIB
    server = upstream(sending(f"Content-Length: {n}", bytes(n), 1))
    daemon = gateway(server.port, """
        timeout_idle = 100ms
        timeout_tunnel = 100ms
        """, "limits = l", LIMIT.format(lines="""
        bandwidth_out = 2k
        bandwidth_burst = 64k
        """))
    with Client(daemon.port) as c:
        meter = Meter(2 * KIB)
        c.ask("/")
        c.read_head()
        # A KiB comes in half a second, five times what idle allows.
        assert meter.read(c, n) == n


@pytest.mark.parametrize("who", ["client", "server"])
@pytest.mark.parametrize("how", ["close", "abort"])
def test_who_goes_while_it_is_held_leaves_nothing(gateway, upstream, who,
                                                  how):
    wires, gone = [], threading.Event()

    def behave(wire):
        wires.append(wire)
        wire.read_head()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" +
                  bytes(BURST + 2 * KIB))
        gone.wait(DEADLINE)

    server = upstream(behave)
    daemon = gateway(server.port, up="limits = l", rest=LIMIT.format(lines="""
        concurrency = 5
        bandwidth_in = 1k
        bandwidth_out = 1k
        bandwidth_burst = 64k
        """))
    with Client(daemon.port) as c:
        c.ask("/", "POST", fields=["Content-Length: 9999999"])
        c.send(bytes(200 * KIB))
        daemon.wait_metric("penstock_flows_throttled", 1, side="upstream")
        getattr(c if who == "client" else wires[0], how)()
        gone.set()
        daemon.wait_metric("penstock_limit_in_use", 0)
        daemon.wait_metric("penstock_flows_throttled", 0)


def reset_while_held(daemon, head=b""):
    """A client that leaves much in front of its reset."""
    with Client(daemon.port) as c:
        c.send(head + bytes(300 * KIB))
        daemon.wait_metric("penstock_flows_throttled", 1, side="client")
        c.abort()
    # At a KiB a second, all of it would take minutes.
    daemon.wait_metric("penstock_limit_in_use", 0)
    daemon.wait_metric("penstock_flows_throttled", 0)
    daemon.wait_count("failures", 1, reason="client_closed")


RESET_LIMIT = LIMIT.format(lines="""
    concurrency = 5
    bandwidth_in = 1k
    bandwidth_burst = 64k
    """)


def test_a_reset_is_noticed_behind_a_body(gateway, upstream):
    server = upstream(lambda wire: wire.read_all())
    daemon = gateway(server.port, up="limits = l", rest=RESET_LIMIT)
    reset_while_held(daemon, b"POST / HTTP/1.1\r\nHost: x\r\n"
                             b"Content-Length: 9999999\r\n\r\n")


def test_a_reset_is_noticed_behind_the_bytes_of_a_tunnel(relay, upstream):
    server = upstream(lambda wire: wire.read_all())
    daemon = relay(server.port, "limits = l", rest=RESET_LIMIT)
    reset_while_held(daemon)


def test_a_reset_that_a_write_was_told_of_is_noticed_too(relay, upstream):
    def behave(wire):
        while True:
            wire.send(b"hello")
            time.sleep(0.01)

    server = upstream(behave)
    daemon = relay(server.port, "limits = l", rest=RESET_LIMIT)
    reset_while_held(daemon)


def test_a_total_time_ends_what_is_held(gateway, upstream):
    server = upstream(sending("Content-Length: 999999", bytes(999999), 1))
    daemon = gateway(server.port, "timeout_total = 500ms", "limits = l",
                     LIMIT.format(lines="""
        bandwidth_out = 1k
        bandwidth_burst = 64k
        """))
    with Client(daemon.port) as c:
        c.ask("/")
        assert c.read_head().status == 200
        with pytest.raises((ConnectionError, EOFError)):
            c.read_exactly(999999)
    daemon.wait_metric("penstock_flows_throttled", 0)
    daemon.wait_count("failures", 1, reason="total_timeout")
