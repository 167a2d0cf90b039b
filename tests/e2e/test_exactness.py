# SPDX-License-Identifier: BSD-2-Clause
"""HTTP/1.1 to the letter: where a message ends, and whose it is.

What comes from servers is raw here, and mostly wrong.
"""

import threading

import pytest

from penstock import Client, answering, free_port, wait_for

ONE_WORKER = "[penstock]\nworkers = 1\n"
GET = b"GET / HTTP/1.1\r\nHost: a\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
FINE = OK + b"Content-Length: 4\r\n\r\nfine"
UPGRADE = ["Upgrade: websocket", "Connection: Upgrade"]


def noting(requests, **more):
    return answering(think=requests.append, **more)


def saying(raw, close=False):
    """A behaviour: these bytes to every request."""
    def behave(wire):
        while wire.read_message() is not None:
            wire.send(raw)
            if close:
                return
    return behave


def raw_of(daemon, request):
    """Everything that is sent for these bytes, up to the end."""
    with Client(daemon.port) as c:
        c.send(request)
        return c.read_all()


# --- responses: where they end ---

BODILESS = {
    "304 with a length": (b"HTTP/1.1 304 N\r\nContent-Length: 5\r\n\r\n", "5"),
    "304 with chunks": (
        b"HTTP/1.1 304 N\r\nTransfer-Encoding: chunked\r\n\r\n", None),
    "204": (b"HTTP/1.1 204 N\r\n\r\n", None),
    "204 with chunks": (
        b"HTTP/1.1 204 N\r\nTransfer-Encoding: chunked\r\n\r\n", None),
    "205 with a length": (
        b"HTTP/1.1 205 R\r\nContent-Length: 0\r\n\r\n", "0"),
    # RFC 9112, 6.3: without one, a client would read on for ever.
    "205 without": (b"HTTP/1.1 205 R\r\n\r\n", "0"),
}


@pytest.mark.parametrize("raw, length", BODILESS.values(), ids=BODILESS)
def test_a_response_without_content_ends_with_its_head(
        gateway, upstream, raw, length):
    daemon = gateway(upstream(saying(raw)).port)
    with Client(daemon.port) as c:
        for _ in range(2):
            c.ask("/")
            m = c.read_head()
            assert m.status == int(raw.split()[1])
            assert m.get("Content-Length") == length
            assert m.get("Transfer-Encoding") is None
            assert m.get("Connection") is None
        assert c.is_silent()


def test_a_205_with_content_ends_where_it_says(gateway, upstream):
    server = upstream(saying(
        b"HTTP/1.1 205 R\r\nContent-Length: 3\r\n\r\nabc"))
    with Client(gateway(server.port).port) as c:
        for _ in range(2):
            m = c.request("/")
            assert (m.status, m.body) == (205, b"abc")


def test_a_head_has_the_length_that_a_get_would_have(gateway, upstream):
    server = upstream(saying(OK + b"Content-Length: 5\r\n\r\n"))
    daemon = gateway(server.port, rest=ONE_WORKER)
    with Client(daemon.port) as c:
        for _ in range(3):
            m = c.request("/", method="HEAD")
            assert m.get("Content-Length") == "5"
    daemon.wait_count("pool_dialled", 1)


@pytest.mark.parametrize("raw", [
    b"HTTP/1.1 204 N\r\nContent-Length: 31\r\n\r\n" + FINE,
    b"HTTP/1.1 304 N\r\nContent-Length: 31\r\n\r\n" + FINE,
    FINE + FINE,
    OK + b"Connection: close\r\nContent-Length: 4\r\n\r\nfine" + FINE,
    b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nfine",
])
def test_a_server_that_may_say_more_is_not_asked_again(
        gateway, upstream, raw):
    server = upstream(saying(raw))
    daemon = gateway(server.port, rest=ONE_WORKER)
    with Client(daemon.port) as c:
        for _ in range(3):
            m = c.request("/")
            assert m.status == int(raw.split()[1])
            assert m.body == (b"fine" if m.status == 200 else b"")
        assert c.is_silent()
    assert server.accepted == 3


def test_a_server_of_http_1_0_may_keep_its_connection(gateway, upstream):
    server = upstream(saying(
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n"
        b"Content-Length: 2\r\n\r\nok"))
    daemon = gateway(server.port, rest=ONE_WORKER)
    with Client(daemon.port) as c:
        for _ in range(3):
            assert c.request("/").body == b"ok"
    assert server.accepted == 1


@pytest.mark.parametrize("line, sent", [
    (b"HTTP/1.1 200", b"HTTP/1.1 200 "),
    (b"HTTP/1.1 200 ", b"HTTP/1.1 200 "),
    (b"HTTP/1.0 200 Yes", b"HTTP/1.1 200 Yes"),
    (b"HTTP/1.1 299 X", b"HTTP/1.1 299 X"),
    (b"HTTP/1.1 418 T", b"HTTP/1.1 418 T"),
    (b"HTTP/1.1 599 Y", b"HTTP/1.1 599 Y"),
])
def test_a_status_passes_as_it_is(gateway, upstream, line, sent):
    server = upstream(saying(line + b"\r\nContent-Length: 0\r\n\r\n"))
    with Client(gateway(server.port).port) as c:
        c.ask("/")
        assert c.read_until(b"\r\n") == sent + b"\r\n"


UNREADABLE = {
    "length and chunks": OK + b"Content-Length: 5\r\n"
                              b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "both without a body": b"HTTP/1.1 304 N\r\nContent-Length: 5\r\n"
                           b"Transfer-Encoding: chunked\r\n\r\n",
    "gzip": OK + b"Transfer-Encoding: gzip\r\n\r\nabc",
    "gzip, chunked": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n"
                          b"0\r\n\r\n",
    "chunks in 1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                     b"0\r\n\r\n",
    "two lengths": OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
    "a list of lengths": OK + b"Content-Length: 5, 6\r\n\r\nabcde",
    "negative length": OK + b"Content-Length: -1\r\n\r\nabcde",
    "length in letters": OK + b"Content-Length: abc\r\n\r\nabcde",
    "huge length": OK + b"Content-Length: 18446744073709551615\r\n\r\n",
    "status 600": b"HTTP/1.1 600 X\r\nContent-Length: 0\r\n\r\n",
    "status 000": b"HTTP/1.1 000 X\r\nContent-Length: 0\r\n\r\n",
    "status 99": b"HTTP/1.1 99 X\r\nContent-Length: 0\r\n\r\n",
    "status 0200": b"HTTP/1.1 0200 X\r\nContent-Length: 0\r\n\r\n",
    "status 1000": b"HTTP/1.1 1000 X\r\nContent-Length: 0\r\n\r\n",
    "status 2x0": b"HTTP/1.1 2x0 X\r\nContent-Length: 0\r\n\r\n",
    "status +200": b"HTTP/1.1 +200 X\r\nContent-Length: 0\r\n\r\n",
    "two blanks": b"HTTP/1.1  200 OK\r\nContent-Length: 0\r\n\r\n",
    "NUL in the reason": b"HTTP/1.1 200 O\0K\r\nContent-Length: 0\r\n\r\n",
    "CR in the reason": b"HTTP/1.1 200 O\rK\r\nContent-Length: 0\r\n\r\n",
    "status line with bare LF": b"HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
    "HTTP/2.0": b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/0.9": b"HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n",
    "ICY": b"ICY 200 OK\r\nContent-Length: 0\r\n\r\n",
    "no head": b"<html>hello</html>\r\n\r\n",
    "101 to nothing": b"HTTP/1.1 101 S\r\nConnection: Upgrade\r\n\r\nraw",
    "chunk size -1": OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\nab",
    "chunk size -80000000": OK + b"Transfer-Encoding: chunked\r\n\r\n"
                                 b"-80000000\r\nab",
    "chunk size too large": OK + b"Transfer-Encoding: chunked\r\n\r\n"
                                 b"FFFFFFFFFFFFFFFFF\r\nab",
    "endless extension": OK + b"Transfer-Encoding: chunked\r\n\r\n2;"
                         + b"x" * 65536,
}


@pytest.mark.parametrize("raw", UNREADABLE.values(), ids=UNREADABLE)
def test_a_response_that_is_wrong_is_not_passed_on(gateway, upstream, raw):
    server = upstream(saying(raw))
    daemon = gateway(server.port, rest=ONE_WORKER)
    with Client(daemon.port) as c:
        for _ in range(2):
            m = c.request("/")
            assert m.is_failure(502, "response_invalid")
            assert "error=http_protocol_error" in m.get("Proxy-Status")
    assert server.accepted == 2


def test_a_reason_without_end_gets_502(gateway, upstream):
    server = upstream(saying(b"HTTP/1.1 200 " + b"y" * 65536 + b"\r\n\r\n"))
    with Client(gateway(server.port).port) as c:
        m = c.request("/")
        assert m.is_failure(502, "response_too_large")
        assert "error=http_response_header_section_size" in m.get(
            "Proxy-Status")


def test_interim_responses_are_bounded_and_have_no_body(gateway, upstream):
    server = upstream(saying(
        b"HTTP/1.1 150 X\r\nContent-Length: 5\r\n\r\n"
        b"HTTP/1.1 100 C\r\nTransfer-Encoding: chunked\r\n\r\n" + FINE))
    flood = upstream(saying(b"HTTP/1.1 100 C\r\n\r\n" * 10000))
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.ask("/")
        for status in 150, 100:
            m = c.read_message(interim=True)
            assert m.status == status and not m.get("Content-Length")
            assert not m.get("Transfer-Encoding") and not m.get("Date")
            assert not m.get("Connection")
        assert c.read_message(interim=True).body == b"fine"
    with Client(gateway(flood.port).port) as c:
        c.ask("/")
        seen = 0
        while (m := c.read_message(interim=True)).status == 100:
            seen += 1
        assert m.is_failure(502, "response_invalid") and seen == 32


def test_a_client_of_http_1_0_gets_no_interim_response(gateway, upstream):
    server = upstream(saying(b"HTTP/1.1 103 E\r\n\r\n" + FINE))
    daemon = gateway(server.port)
    assert raw_of(daemon, b"GET / HTTP/1.0\r\n\r\n").startswith(
        b"HTTP/1.1 200")


def test_a_chunk_of_more_than_4_gib_is_passed_in_parts(gateway, upstream):
    def behave(wire):
        wire.read_message()
        wire.send(OK + b"Transfer-Encoding: chunked\r\n\r\n100000001\r\n")
        for _ in range(16):
            wire.send(b"x" * 65536)
    daemon = gateway(upstream(behave).port)
    with Client(daemon.port) as c:
        c.ask("/")
        assert c.read_head().get("Transfer-Encoding") == "chunked"
        got = 0
        while got < 16 * 65536:
            size = int(c.read_until(b"\r\n"), 16)
            assert 0 < size <= 65536
            got += len(c.read_exactly(size + 2)) - 2
        assert c.at_end()       # and no last chunk


def test_a_status_line_in_two_pieces_on_a_used_connection(gateway, upstream):
    def behave(wire):
        while wire.read_message() is not None:
            wire.send(b"HT")
            wait_for(lambda: daemon.metric("penstock_buffer_bytes") > 0)
            wire.send(b"TP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine")
    server = upstream(behave)
    daemon = gateway(server.port, rest=ONE_WORKER)
    with Client(daemon.port) as c:
        for _ in range(3):
            assert c.request("/").body == b"fine"
    assert server.accepted == 1


# --- connections that are somebody's ---

@pytest.mark.parametrize("asked, answered", [
    ([], ["WWW-Authenticate: NTLM"]),
    ([], ["WWW-Authenticate: Basic realm=\"a, b\"", "WWW-Authenticate: "
          "Digest realm=x, negotiate"]),
    ([], ["WWW-Authenticate: Negotiate oYGeMIGboAMKAQ=="]),
    (["Authorization: NTLM TlRMTVNTUAAB"], []),
    (["Authorization: negotiate YII="], []),
])
def test_a_connection_that_knows_its_user_serves_no_other(
        gateway, upstream, asked, answered):
    server = upstream(answering(
        401 if answered else 200, fields=answered, body=b"who?"))
    daemon = gateway(server.port, rest=ONE_WORKER)
    for _ in range(2):
        with Client(daemon.port) as c:
            m = c.request("/", fields=asked)
            assert m.body == b"who?" and len(m.all("WWW-Authenticate")) == \
                len(answered)
    assert server.accepted == 2


@pytest.mark.parametrize("fields", [
    ["WWW-Authenticate: Basic realm=\"NTLM, Negotiate\""],
    ["WWW-Authenticate: Digest realm=\"a\", opaque=NTLM"],
])
def test_others_may_use_a_connection_after_any_other_401(
        gateway, upstream, fields):
    server = upstream(answering(401, fields=fields))
    daemon = gateway(server.port, rest=ONE_WORKER)
    for _ in range(2):
        with Client(daemon.port) as c:
            assert c.request("/", fields=["Authorization: Basic TlRMTQ=="]
                             ).status == 401
    assert server.accepted == 1


def test_a_connection_that_was_to_be_upgraded_is_not_used_again(
        gateway, upstream):
    server = upstream(answering(body=b"plain"))
    daemon = gateway(server.port, rest=ONE_WORKER)
    with Client(daemon.port) as c:
        assert c.request("/", fields=UPGRADE).body == b"plain"
        assert c.request("/").body == b"plain"
        assert c.request("/").body == b"plain"
    assert server.accepted == 2


def test_a_server_is_told_when_its_connection_is_not_kept(
        gateway, upstream):
    requests = []
    server = upstream(noting(requests))
    daemon = gateway(server.port, up="pool_max = 0")
    with Client(daemon.port) as c:
        for _ in range(2):
            assert c.request("/").get("Connection") is None
    assert [r.all("Connection") for r in requests] == [["close"]] * 2
    assert server.accepted == 2


def test_a_request_has_nothing_after_its_body(gateway, upstream):
    raw = []

    def behave(wire):
        wire.read_head()
        raw.append(wire.read_exactly(2))
        wire.send(FINE)
        raw.append(wire.read_all())
    daemon = gateway(upstream(behave).port, rest=ONE_WORKER)
    with Client(daemon.port) as c:
        m = c.request("/", method="POST", body=b"ab")
        assert m.body == b"fine"
    wait_for(lambda: len(raw) == 2)
    assert raw == [b"ab", b""]


# --- requests ---

@pytest.mark.parametrize("name", [
    "Cookie", "Authorization", "Content-Length", "transfer-encoding",
    "Forwarded", "X-Forwarded-For", "x-forwarded-anything"])
def test_what_a_server_relies_on_cannot_be_named_away(
        gateway, upstream, name):
    server = upstream(answering())
    with Client(gateway(server.port).port) as c:
        m = c.request("/", fields=[f"Connection: {name}"])
        assert m.is_failure(400, "bad_request")
        assert c.at_end()
    assert server.accepted == 0


@pytest.mark.parametrize("fields", [
    ["Connection: Connection", "Connection: x"],
    ["Connection: proxy-connection"],
    ["Connection: TE,,Keep-Alive"],
    ["Connection: " + "," * 25000],
    ["Connection: , ,\t, ,", "Via: ,"],
    ["Cookie: ;a=b"],
    ["X-Forwarded-For: " + "1.2.3.4, " * 3000],
    ["Connection: host"],
    ["CDN-Loop: foo", "Range: banana=1-2"],
])
def test_odd_fields_do_no_harm(gateway, upstream, fields):
    requests = []
    server = upstream(noting(requests, fields=["Set-Cookie: ;a=b"]))
    daemon = gateway(server.port, "trusted = all")
    with Client(daemon.port) as c:
        for _ in range(2):
            m = c.request("/", fields=fields)
            assert m.get("Set-Cookie") == ";a=b"
    for r in requests:
        assert r.all("Host") == ["test"]
        assert not r.all("Connection")
        for f in fields:
            name, value = f.split(": ")
            if name not in ("Connection", "Via", "X-Forwarded-For"):
                assert r.get(name) == value


@pytest.mark.parametrize("expect, status", [
    ("banana", 417), ("100-continue, x", 417), ("100-Continue", 200)])
def test_expectations(gateway, upstream, expect, status):
    server = upstream(answering())
    with Client(gateway(server.port).port) as c:
        for _ in range(2):      # without a body there is nothing to wait for
            m = c.request("/", fields=[f"Expect: {expect}"])
            assert m.status == status
    assert server.accepted == (1 if status == 200 else 0)


def test_each_request_of_a_pipeline_may_expect(gateway, upstream):
    requests = []
    server = upstream(noting(requests))
    one = POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\nab"
    with Client(gateway(server.port).port) as c:
        c.send(one * 20)
        for _ in range(20):
            assert c.read_message().status == 200
    assert [r.body for r in requests] == [b"ab"] * 20


def test_a_client_that_is_told_to_go_on_and_does_not_gets_408(
        gateway, upstream):
    def behave(wire):
        wire.read_head()
        wire.send(b"HTTP/1.1 100 C\r\n\r\n")
        wire.read_all()
    daemon = gateway(upstream(behave).port, "timeout_request_body = 150ms",
                     up="limits = one", rest="[limit one]\nconcurrency = 1")
    with Client(daemon.port) as c:
        c.send(POST + b"Expect: 100-continue\r\n"
               b"Content-Length: 2\r\n\r\n")
        assert c.read_message(interim=True).status == 100
        assert c.read_message().is_failure(408, "request_timeout")
        assert c.at_end()
    daemon.wait_metric("penstock_limit_in_use", 0, limit="one")


# --- how far a request goes ---

def test_who_may_go_no_further_is_answered_here(forward, gateway, upstream):
    server = upstream(answering())
    absolute = f"http://{server.server}/"
    for daemon, target in (forward(), absolute), (gateway(server.port), "/"):
        with Client(daemon.port) as c:
            m = c.request(target, method="OPTIONS",
                          fields=["Max-Forwards: 0"])
            assert (m.status, m.body) == (200, b"") and m.get("Allow")
            m = c.request(target, method="TRACE",
                          fields=["Max-Forwards: 0", "Cookie: secret"])
            assert m.is_failure(405, "method_not_allowed")
            assert "GET" in m.get("Allow") and "TRACE" not in m.get("Allow")
            assert b"secret" not in m.body
    assert server.accepted == 0


def test_forwards_are_counted_only_where_they_count(gateway, upstream):
    requests = []
    server = upstream(noting(requests))
    with Client(gateway(server.port).port) as c:
        for method in "OPTIONS", "TRACE", "GET":
            for fields in [], ["Max-Forwards: 5"]:
                assert c.request("/", method=method,
                                 fields=fields).status == 200
        assert c.request("/", fields=["Max-Forwards: 0"]).status == 200
        assert c.request("/", fields=["Max-Forwards: x"]).status == 200
    assert [r.all("Max-Forwards") for r in requests] == [
        [], ["4"], [], ["4"], [], ["5"], ["0"], ["x"]]


@pytest.mark.parametrize("fields", [
    ["Max-Forwards: -1"], ["Max-Forwards: x"],
    ["Max-Forwards: 99999999999999999999"],
    ["Max-Forwards: 1", "Max-Forwards: 1"]])
def test_forwards_that_cannot_be_counted_get_400(gateway, upstream, fields):
    server = upstream(answering())
    with Client(gateway(server.port).port) as c:
        assert c.request("/", method="OPTIONS", fields=fields).is_failure(
            400, "bad_request")
        assert c.at_end()
    assert server.accepted == 0


# --- CONNECT ---

@pytest.mark.parametrize("access, target, status", [
    ("", "127.0.0.1:{}", 502),
    ("access = a", "127.0.0.1:{}", 403),
    ("access = a", "127.0.0.1:443", 403),
    ("access = a", "[::ffff:127.0.0.1]:443", 403),
    ("access = a", "0.0.0.0:443", 403),
    ("access = a", "localhost:443", 403),
    ("access = a", "169.254.169.254:443", 403),
    ("access = a", "93.184.216.34:25", 403),
    ("access = a", "93.184.216.34:22", 403),
])
def test_nothing_behind_a_refused_connect_is_a_request(
        forward, upstream, access, target, status):
    server = upstream(answering())
    daemon = forward(access, "[access a]\nallow = loopback\n"
                     if access else "")
    target = target.format(free_port())
    with Client(daemon.port) as c:
        c.send(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"
               f"GET http://{server.server}/ HTTP/1.1\r\n"
               f"Host: {server.server}\r\n\r\n".encode())
        m = c.read_message()
        assert m.status == status and m.get("Connection") == "close"
        if status == 403:
            assert "error=destination_ip_prohibited" in m.get("Proxy-Status")
        assert c.at_end()
    assert server.accepted == 0


def test_a_server_that_ends_first_is_heard_to_its_end(forward, upstream):
    got = []

    def behave(wire):
        wire.send(b"x" * (16 << 20))
        wire.end()
        got.append(wire.read_all())
    server = upstream(behave)
    daemon = forward()
    with Client(daemon.port, buffer=4096) as c:
        c.send(f"CONNECT {server.server} HTTP/1.1\r\n"
               f"Host: {server.server}\r\n\r\nearly ".encode())
        assert c.read_head().status == 200
        daemon.wait_metric("penstock_flows_paused", 1)
        c.send(b"late")
        assert len(c.read_all()) == 16 << 20
        c.send(b" and later")
        c.end()
        wait_for(lambda: got)
    assert got == [b"early late and later"]


def test_a_tunnel_in_which_nobody_reads_is_ended(forward, upstream):
    over = threading.Event()

    def fill(wire):
        try:
            while True:
                wire.send(b"x" * 65536)
        except OSError:
            pass

    def behave(wire):
        fill(wire)
        over.wait(10)
    server = upstream(behave)
    daemon = forward("timeout_tunnel = 300ms\ntimeout_send = 300ms")
    with Client(daemon.port, buffer=4096) as c:
        c.send(f"CONNECT {server.server} HTTP/1.1\r\n"
               f"Host: {server.server}\r\n\r\n".encode())
        c.read_head()
        fill(c)
    over.set()
    daemon.wait_metric("penstock_tunnels", 0)
    assert daemon.metric("penstock_buffer_bytes") < 1 << 20


# --- other protocols ---

def test_the_body_of_an_upgrade_comes_before_the_tunnel(gateway, upstream):
    bodies = []

    def behave(wire):
        bodies.append(wire.read_message().body)
        wire.send(b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\n"
                  b"Connection: Upgrade\r\n\r\n")
        wire.send(wire.read_all())
    server = upstream(behave)
    with Client(gateway(server.port).port) as c:
        c.send(POST + b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
               b"Content-Length: 4\r\n\r\nbodyframe")
        assert c.read_message().status == 101
        c.end()
        assert c.read_all() == b"frame"
    assert bodies == [b"body"]


def test_a_protocol_that_changes_before_the_body_is_refused(
        gateway, upstream):
    def behave(wire):
        wire.read_head()
        wire.send(b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\n"
                  b"Connection: Upgrade\r\n\r\n")
        wire.read_all()
    server = upstream(behave)
    with Client(gateway(server.port).port) as c:
        c.send(POST + b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
               b"Expect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        assert c.read_message(interim=True).is_failure(502, "upgrade_failed")
        assert c.at_end()


def test_a_100_may_come_before_a_101(gateway, upstream):
    def behave(wire):
        wire.read_head()
        wire.send(b"HTTP/1.1 100 C\r\n\r\n")
        wire.read_exactly(4)
        wire.send(b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\n"
                  b"Connection: Upgrade\r\n\r\n")
        wire.send(wire.read_all())
    server = upstream(behave)
    with Client(gateway(server.port).port) as c:
        c.send(POST + b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
               b"Expect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        assert c.read_message(interim=True).status == 100
        c.send(b"body")
        assert c.read_message(interim=True).status == 101
        c.send(b"frame")
        c.end()
        assert c.read_all() == b"frame"


def test_a_200_that_speaks_of_an_upgrade_is_none(gateway, upstream):
    requests = []
    server = upstream(noting(requests, body=b"fine", fields=UPGRADE))
    with Client(gateway(server.port).port) as c:
        m = c.request("/1", fields=UPGRADE)
        assert (m.status, m.body, m.get("Upgrade")) == (200, b"fine", None)
        assert c.request("/2").body == b"fine"
    assert [r.target for r in requests] == ["/1", "/2"]


def test_a_426_says_to_what(gateway, upstream):
    server = upstream(answering(426, fields=[
        "Upgrade: websocket", "Sec-WebSocket-Version: 13"]))
    with Client(gateway(server.port).port) as c:
        m = c.request("/", method="POST", fields=UPGRADE)
        assert m.status == 426 and m.get("Upgrade") == "websocket"
        assert m.get("Connection") == "Upgrade"
        assert m.get("Sec-WebSocket-Version") == "13"


@pytest.mark.parametrize("fields", [
    ["Upgrade: h2c", "HTTP2-Settings: AAMA",
     "Connection: Upgrade, HTTP2-Settings"],
    ["Upgrade: foo", "Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings",
     "HTTP2-Settings: AAMA"],
    ["HTTP2-Settings: AAMA", "Keep-Alive: timeout=5",
     "Proxy-Connection: keep-alive"],
    ["Upgrade: websocket"],
])
def test_no_clear_http_2_is_spoken_of(gateway, upstream, fields):
    requests = []
    server = upstream(noting(requests))
    with Client(gateway(server.port).port) as c:
        assert c.request("/", fields=fields).status == 200
    (r,) = requests
    assert "h2c" not in "".join(r.all("Upgrade"))
    for name in "HTTP2-Settings", "Keep-Alive", "Proxy-Connection":
        assert not r.all(name)
    assert r.all("Upgrade") == (["foo"] if len(fields) == 4 else [])


def test_an_upgrade_of_http_1_0_is_none(gateway, upstream):
    requests = []
    server = upstream(noting(requests, body=b"fine"))
    daemon = gateway(server.port)
    assert raw_of(daemon, b"GET / HTTP/1.0\r\nUpgrade: websocket\r\n"
                  b"Connection: Upgrade\r\n\r\n").endswith(b"\r\n\r\nfine")
    assert requests[0].get("Upgrade") is None


# --- what is said of the road ---

def test_what_a_client_says_of_its_origin_is_not_believed(gateway, upstream):
    requests = []
    server = upstream(noting(requests))
    fields = ['Forwarded: for="a\\", for=evil', "Forwarded: for=\"x",
              "X-Forwarded-For: evil", "X-Forwarded-Host: evil",
              "X-Forwarded-Proto: evil"]
    with Client(gateway(server.port).port) as c:
        assert c.request("/", fields=fields).get("Forwarded") is None
    (r,) = requests
    assert not r.all("Forwarded")
    assert r.all("X-Forwarded-For") == ["127.0.0.1"]
    assert r.all("X-Forwarded-Host") == ["test"]
    assert r.all("X-Forwarded-Proto") == ["http"]


def test_via_names_the_version_that_was_received(gateway, upstream):
    requests = []
    server = upstream(noting(requests))
    daemon = gateway(server.port, rest="[penstock]\nname = gate")
    with Client(daemon.port) as c:
        c.send(b"GET / HTTP/1.0\r\nVia: 1.0 fred\r\nX: y\r\n"
               b"Via: 1.1 a (b, \\) c), 1.1 d\r\n\r\n")
        assert c.read_message().all("Via") == ["1.1 gate"]
    assert requests[0].all("Via") == [
        "1.0 fred", "1.1 a (b, \\) c), 1.1 d", "1.0 gate"]


def test_what_other_proxies_said_is_kept(gateway, upstream):
    said = ["Proxy-Status: a; received-status=200", "CDN-Loop: x",
            "Cache-Control: no-transform", "Server: s", "ETag: \"e\"",
            "Date: Sunday, 06-Nov-94 08:49:37 GMT"]
    server = upstream(answering(fields=said))
    with Client(gateway(server.port).port) as c:
        m = c.request("/")
    for line in said:
        name, value = line.split(": ")
        assert m.all(name) == [value]
    assert m.get("Forwarded") is None


@pytest.mark.parametrize("name, written", [
    ("gate", "gate"), ("gate-1.a", "gate-1.a")])
def test_an_answer_of_our_own_explains_itself(
        gateway, name, written):
    daemon = gateway(free_port(), rest=f"[penstock]\nname = {name}")
    with Client(daemon.port) as c:
        m = c.request("/")
        assert m.get("Proxy-Status") == \
            f'{written}; error=connection_refused; details="connect_refused"'
        assert m.get("Content-Type") == "text/plain; charset=utf-8"
        assert m.get("Content-Length") == str(len(m.body))
        assert m.get("Date").endswith(" GMT")
        assert not m.all("Server") and not m.all("Connection")
        head = c.request("/", method="HEAD")
        assert head.status == 502 and c.is_silent()
        assert head.get("Content-Length") == m.get("Content-Length")


# --- inputs that broke others ---

@pytest.mark.parametrize("size", [255, 256, 257, 32000])
def test_a_long_name_is_not_cut(gateway, upstream, size):
    requests = []
    server = upstream(noting(requests))
    daemon = gateway(server.port, "head_size = 64k")
    with Client(daemon.port) as c:
        assert c.request("/", fields=["n" * size + ": v"]).status == 200
    assert requests[0].get("n" * size) == "v"


@pytest.mark.parametrize("size", [65535, 65536])
def test_a_name_longer_than_a_head_gets_431(gateway, upstream, size):
    server = upstream(answering())
    daemon = gateway(server.port, "head_size = 64k")
    with Client(daemon.port) as c:
        c.send(GET + b"n" * size)
        assert c.read_message().is_failure(431, "head_too_large")
    assert server.accepted == 0


@pytest.mark.parametrize("line", [b"X: %s", b"X:%s", b"Upgrade: %s"])
def test_a_request_that_grows_on_its_way_is_whole_or_refused(
        gateway, upstream, line):
    requests = []
    server = upstream(noting(requests))
    daemon = gateway(server.port, "head_size = 64k")
    name = line[:line.index(b":")].decode()
    head = POST + line + b"\r\nConnection: upgrade\r\n" \
        b"Content-Length: 6\r\n\r\n"
    statuses = []
    for size in 40000, 65100, 65200, 65300, 65400, 65500, 65530, 65536:
        value = b"y," * ((size + 2 - len(head)) // 2)
        requests.clear()
        with Client(daemon.port) as c:
            c.send(head % value + b"body\r\n")
            m = c.read_message()
        statuses.append(m.status)
        assert m.status == 200 or m.is_failure(431, "head_too_large")
        for r in requests:
            assert r.body == b"body\r\n"
            seen = r.get(name).replace(" ", "")
            assert seen.rstrip(",") == value.decode().rstrip(",")
        assert len(requests) == (m.status == 200)
    assert statuses[0] == 200 or name == "Upgrade"
    assert statuses[-1] == 431


@pytest.mark.parametrize("start", [
    b"HTTP/1.1 103 E", b"HTTP/1.1 200 OK",
    b"HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket"])
def test_a_response_that_grows_on_its_way_is_whole_or_refused(
        gateway, upstream, start):
    head = start + b"\r\nX: %s\r\n\r\n"
    value = b"y" * (65538 - len(head))
    server = upstream(saying(head % value + FINE))
    daemon = gateway(server.port, "head_size = 64k")
    with Client(daemon.port) as c:
        c.ask("/", fields=UPGRADE)
        assert c.read_message(interim=True).is_failure(
            502, "response_too_large")


@pytest.mark.parametrize("path", ["/%zz%u0041%0", "/a%00", "/%0d%0aX:y"])
def test_a_path_that_cannot_be_decoded_is_a_path(
        gateway, upstream, path):
    requests = []
    server = upstream(noting(requests))
    daemon = gateway(server.port, rest="""
        [route r]
        listener = gateway
        path = /a
        upstream = up
        """)
    with Client(daemon.port) as c:
        assert c.request(path).status == 200
    assert requests[0].target == path


def test_a_body_that_nobody_wanted_is_no_request(penstock, upstream):
    port = free_port()
    server = upstream(answering())
    penstock(f"""
        [listener g]
        mode = gateway
        bind = 127.0.0.1:{port}
        [route r]
        listener = g
        path = /yes
        upstream = up
        [upstream up]
        server = {server.server}
        pool_idle = 200ms
        """)
    body = b"GET /yes HTTP/1.1\r\nHost: a\r\n\r\n"
    head = POST + b"Content-Length: %d\r\n\r\n" % len(body)
    with Client(port) as c:
        c.send(head + body[:10])
        assert c.read_message().is_failure(404, "no_route")
        c.send(body[10:] + b"GET /\0bad HTTP/1.1\r\n\r\n")
        assert c.read_message().is_failure(400, "bad_request")
        assert c.at_end()
    assert server.accepted == 0


def test_a_client_that_never_reads_our_answers_is_cut_off(penstock):
    port = free_port()
    daemon = penstock(f"""
        [listener g]
        mode = gateway
        bind = 127.0.0.1:{port}
        timeout_send = 200ms
        timeout_request_head = 200ms
        upstream = up
        [upstream up]
        server = 127.0.0.1:{free_port()}
        """)
    with Client(port, buffer=4096) as c:
        with pytest.raises(OSError):
            while True:
                c.send((GET + b"\r\n") * 1000)
    daemon.wait_metric("penstock_sessions", 0, listener="g")


def test_empty_lines_and_resets_leave_nothing(gateway, upstream):
    daemon = gateway(upstream(answering()).port)
    for n in range(200):
        with Client(daemon.port) as c:
            c.send(b"\r\n" * (n % 3))
            c.abort()
    daemon.wait_metric("penstock_sessions", 0)


@pytest.mark.parametrize("more", [b"\0", b"\n", b"\r", b" ", b"\rx"])
def test_a_byte_after_a_chunked_request_is_not_of_it(
        gateway, upstream, more):
    requests = []
    server = upstream(noting(requests))
    daemon = gateway(server.port, "timeout_request_head = 200ms")
    with Client(daemon.port) as c:
        c.send(CHUNKED + b"0\r\n\r\n" + more)
        assert c.read_message().status == 200
        assert c.read_message().status in (400, 408)
        assert c.at_end()
    assert len(requests) == 1


def test_an_empty_line_before_the_last_chunk_gets_400(gateway, upstream):
    requests = []
    server = upstream(noting(requests))
    with Client(gateway(server.port).port) as c:
        c.send(CHUNKED + b"17\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n\r\n\r\n"
               b"0\r\n\r\n")
        assert c.read_message().is_failure(400, "bad_request")
        assert c.at_end()
    assert not requests


def test_a_get_keeps_its_body_and_its_length(gateway, upstream):
    requests = []
    server = upstream(noting(requests))
    with Client(gateway(server.port).port) as c:
        c.send((GET + b"Content-Length: 10\r\n\r\n1234567890") * 2)
        for _ in range(2):
            assert c.read_message().status == 200
    assert [(r.body, r.get("Content-Length")) for r in requests] == [
        (b"1234567890", "10")] * 2


def test_many_pipelined_chunked_requests_are_as_many_answers(
        gateway, upstream):
    def behave(wire):
        while (m := wire.read_message()) is not None:
            wire.send(OK + b"Content-Length: %d\r\n\r\n" % len(m.body)
                      + m.body)
    daemon = gateway(upstream(behave).port)
    with Client(daemon.port) as c:
        for start in range(0, 300, 30):
            bodies = [b"token-%d" % n for n in range(start, start + 30)]
            c.send(b"".join(
                CHUNKED + b"%x\r\n%s\r\n0\r\n\r\n" % (len(b), b)
                for b in bodies))
            assert [c.read_message().body for _ in bodies] == bodies


def test_a_socket_that_is_not_there_refuses(gateway, tmp_path):
    daemon = gateway(f"unix:{tmp_path}/none")
    with Client(daemon.port) as c:
        assert c.request("/").is_failure(502, "connect_refused")


# --- bodies that were never sent ---

@pytest.mark.parametrize("expect, lines, status", [
    ("100-continue", "body_size = 10", 413),
    ("100-continue", "", 404),
    ("100-continue, x", "", 417),
    ("banana", "body_size = 10", 417),
])
def test_a_body_that_was_kept_back_is_not_waited_for(
        penstock, upstream, expect, lines, status):
    port = free_port()
    server = upstream(answering())
    penstock(f"""
        [listener g]
        mode = gateway
        bind = 127.0.0.1:{port}
        {lines}
        [route r]
        listener = g
        path = /yes
        upstream = up
        [upstream up]
        server = {server.server}
        pool_idle = 200ms
        """)
    hidden = b"GET /yes HTTP/1.1\r\nHost: a\r\n\r\n"
    shown = b"GET /none HTTP/1.1\r\nHost: a\r\nX: "
    head = b"Expect: %s\r\nContent-Length: %d\r\n\r\n" % (
        expect.encode(), len(shown))
    with Client(port) as c:
        c.send(POST + head)
        m = c.read_message(interim=True)
        assert m.status == status and m.get("Connection") == "close"
        c.send(shown + hidden)
        assert c.read_all() == b""
    assert server.accepted == 0


@pytest.mark.parametrize("answer", [
    FINE, b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\n\r\n"], ids=["200", "101"])
def test_what_is_sent_before_an_upgrade_waits(gateway, upstream, answer):
    size = 8 << 20
    go = threading.Event()

    def behave(wire):
        wire.read_message()
        go.wait(10)
        wire.send(answer)
        if b"101" in answer:
            wire.send(b"%d" % len(wire.read_all()))
        else:
            assert wire.at_end()
    server = upstream(behave)
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.ask("/", fields=UPGRADE)
        sending = threading.Thread(target=send_and_end, args=(c, size))
        sending.start()
        wait_for(lambda: daemon.metric("penstock_buffer_bytes") > 0)
        assert daemon.metric("penstock_buffer_bytes") <= 128 * 1024
        go.set()
        m = c.read_message()
        if m.status == 101:
            assert c.read_all() == b"%d" % size
        else:
            assert m.body == b"fine" and m.get("Connection") == "close"
        sending.join(10)
        assert not sending.is_alive()


def send_and_end(wire, size):
    try:
        for _ in range(size // 65536):
            wire.send(b"x" * 65536)
        wire.end()
    except OSError:
        pass


def test_a_413_during_an_upload_arrives_though_the_server_resets(
        gateway, upstream):
    def behave(wire):
        wire.read_head()
        wire.send(b"HTTP/1.1 413 Too Much\r\nContent-Length: 3\r\n\r\nbig")
        # Closed with bytes unread: a reset.
    server = upstream(behave)
    daemon = gateway(server.port, rest=ONE_WORKER)
    for _ in range(5):
        with Client(daemon.port) as c:
            c.send(POST + b"Content-Length: %d\r\n\r\n" % (256 << 10))
            c.send(b"x" * (128 << 10))
            m = c.read_message()
            assert (m.status, m.body) == (413, b"big")
            assert m.get("Connection") == "close"
            c.send(b"x" * (128 << 10))
            assert c.at_end()


def test_a_pipeline_that_nobody_reads_is_bounded(gateway, upstream):
    server = upstream(answering(body=b"x" * 1000))
    daemon = gateway(server.port)
    with Client(daemon.port, buffer=4096) as c:
        c.socket.settimeout(1)
        with pytest.raises(TimeoutError):
            while True:
                c.send((GET + b"\r\n") * 1000)
        assert daemon.metric("penstock_buffer_bytes") <= 256 * 1024


def test_a_deep_pipeline_is_answered_whole(gateway, upstream):
    requests = []
    server = upstream(noting(requests))
    daemon = gateway(server.port)
    n = 5000
    with Client(daemon.port) as c:
        sending = threading.Thread(target=c.send, args=(b"".join(
            b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % i
            for i in range(n)),))
        sending.start()
        for _ in range(n):
            assert c.read_message().status == 200
        sending.join(10)
    assert [r.target for r in requests] == [f"/{i}" for i in range(n)]
    assert daemon.count("failures") == 0


def test_a_response_that_is_cut_takes_no_earlier_one_with_it(
        gateway, upstream):
    def behave(wire):
        wire.read_message()
        wire.send(OK + b"Content-Length: 30000\r\n\r\n" + b"x" * 30000)
        wire.read_message()
        wire.send(OK + b"Content-Length: 10\r\n\r\nhello")
    daemon = gateway(upstream(behave).port)
    # The client has more to say than is read ahead: a close would reset.
    with Client(daemon.port, buffer=4096) as c:
        c.send((GET + b"\r\n") * 2 + POST + b"Content-Length: 100000\r\n\r\n"
               + b"y" * 100000)
        daemon.wait_count("failures", 1, reason="upstream_closed")
        assert c.read_message().body == b"x" * 30000
        assert c.read_all().endswith(b"\r\n\r\nhello")


UNREADABLE = {
    "too large": b"Host: a\r\nX: " + b"x" * 40000,
    "malformed": b"Host : a\r\n\r\n",
    "no host": b"\r\n",
}


@pytest.mark.parametrize("pieces", (False, True), ids=("whole", "in pieces"))
@pytest.mark.parametrize("fields", UNREADABLE.values(), ids=UNREADABLE)
def test_a_head_that_cannot_be_read_is_answered_without_content(
        gateway, upstream, fields, pieces):
    daemon = gateway(upstream(answering()).port)
    with Client(daemon.port) as c:
        c.send(b"\r\nHEAD / HTTP/1.1\r\n")
        if pieces:
            wait_for(lambda: daemon.metric("penstock_buffer_bytes") > 0)
        c.send(fields)
        answer = c.read_all()
    assert answer.startswith(b"HTTP/1.1 4") and answer.endswith(b"\r\n\r\n")
    assert answer.count(b"\r\n\r\n") == 1
