# SPDX-License-Identifier: BSD-2-Clause
"""Trailers: for whom they go on, which of them, and what bad ones do."""

import pytest

from penstock import Client, answering_with, curl

ASKS = ["TE: trailers", "Connection: TE"]
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
BODY = b"5\r\nhello\r\n0\r\n"


@pytest.fixture(params=["gateway", "forward"])
def through(request, gateway, forward):
    """through(server): a daemon to that server, and the target to ask for."""
    def start(server):
        if request.param == "gateway":
            return gateway(server.port), "/"
        return forward(), f"http://{server.server}/"
    return start


def ask(daemon, target, fields, **more):
    with Client(daemon.port) as c:
        return c.request(target, fields=fields, **more)


def in_head(m, name):
    return m.get(name) is not None


# --- who gets them ---

@pytest.mark.parametrize("fields, told", [
    (ASKS, True),
    (["TE: gzip;q=0.5, Trailers", "Connection: close, te"], True),
    # Not named in Connection: believed of the client, not of who's behind.
    (["TE: trailers"], False),
])
def test_trailers_go_to_a_client_that_asks(through, upstream, fields, told):
    requests = []
    server = upstream(answering_with(
        CHUNKED + b"Trailer: X-T, X-U\r\n\r\n" + BODY +
        b"X-T: 1\r\nX-U:  a b \r\nX-T:\r\n\r\n", requests=requests))
    daemon, target = through(server)
    m = ask(daemon, target, fields)
    assert m.body == b"hello"
    assert m.trailers == [("X-T", "1"), ("X-U", "a b"), ("X-T", "")]
    assert m.all("Trailer") == ["X-T, X-U"]
    assert not in_head(m, "X-T") and not in_head(m, "X-U")
    seen = requests[0]
    assert seen.all("TE") == (["trailers"] if told else [])
    assert seen.all("Connection") == (["TE"] if told else [])


@pytest.mark.parametrize("fields", [
    [],
    ["TE: gzip", "Connection: TE"],
    ["TE: chunked, trailers;q=0.5", "Connection: TE"],
    ["Connection: TE"],
    ["Trailer: trailers"],
])
def test_trailers_end_here_for_others(through, upstream, fields):
    requests = []
    server = upstream(answering_with(
        CHUNKED + b"Trailer: X-T\r\n\r\n" + BODY + b"X-T: 1\r\n\r\n",
        requests=requests))
    daemon, target = through(server)
    with Client(daemon.port) as c:
        for _ in range(2):
            m = c.request(target, fields=fields)
            assert (m.status, m.body, m.trailers) == (200, b"hello", [])
            assert not in_head(m, "Trailer") and not in_head(m, "X-T")
    assert not in_head(requests[0], "TE")
    assert server.accepted == 1


def test_a_client_of_http_1_0_gets_none(through, upstream):
    requests = []
    server = upstream(answering_with(
        CHUNKED + b"Trailer: X-T\r\n\r\n" + BODY + b"X-T: 1\r\n\r\n",
        requests=requests))
    daemon, target = through(server)
    with Client(daemon.port) as c:
        c.send(f"GET {target} HTTP/1.0\r\nHost: test\r\nTE: trailers\r\n"
               "Connection: TE\r\n\r\n".encode())
        m = c.read_head()
        assert not in_head(m, "Trailer")
        assert c.read_all() == b"hello"
    assert not in_head(requests[0], "TE")


@pytest.mark.parametrize("method, raw, body", [
    ("HEAD", CHUNKED + b"Trailer: X-T\r\n\r\n", b""),
    ("GET", b"HTTP/1.1 304 So\r\nTransfer-Encoding: chunked\r\n"
            b"Trailer: X-T\r\n\r\n", b""),
    ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTrailer: X-T\r\n\r\nok",
     b"ok"),
])
def test_where_there_are_no_chunks_none_are_announced(
        through, upstream, method, raw, body):
    server = upstream(answering_with(raw))
    daemon, target = through(server)
    with Client(daemon.port) as c:
        for _ in range(2):
            m = c.request(target, method=method, fields=ASKS)
            assert (m.body, m.trailers) == (body, [])
            assert not in_head(m, "Trailer")
    assert server.accepted == 1


def test_curl_sees_them(gateway, upstream):
    server = upstream(answering_with(
        CHUNKED + b"Trailer: X-T\r\n\r\n" + BODY + b"X-T: 1\r\n\r\n"))
    daemon = gateway(server.port)
    out = curl("-i", "-H", "TE: trailers", "-H", "Connection: TE",
               f"http://127.0.0.1:{daemon.port}/")
    assert out.endswith(b"\r\n\r\nhelloX-T: 1\r\n")


# --- which of them ---

def test_what_may_not_be_a_trailer_is_taken_out(through, upstream):
    server = upstream(answering_with(
        CHUNKED + b"Connection: X-Named, keep-alive\r\n"
        b"Connection: x-other\r\n\r\n" + BODY +
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\nHost: evil\r\n"
        b"X-Named: 1\r\nAuthorization: x\r\nSet-Cookie: a=b\r\nX-Ok: y\r\n"
        b"X-OTHER: 2\r\nConnection: close\r\nVia: 1.1 evil\r\n"
        b"Forwarded: for=evil\r\nX-Forwarded-For: evil\r\n"
        b"Cache-Control: max-age=9\r\nContent-Encoding: gzip\r\n"
        b"Trailer: X\r\nETag: \"z\"\r\n\r\n"))
    daemon, target = through(server)
    with Client(daemon.port) as c:
        for _ in range(2):
            m = c.request(target, fields=ASKS)
            assert m.body == b"hello"
            assert m.trailers == [("X-Ok", "y"), ("ETag", '"z"')]
            for name in "X-Ok", "Set-Cookie", "ETag", "Cache-Control":
                assert not in_head(m, name), name
    assert server.accepted == 1


@pytest.mark.parametrize("lines", [
    b"", b"Host: evil\r\n", b"X-Named: 1\r\n",
])
def test_nothing_may_remain(gateway, upstream, lines):
    server = upstream(answering_with(
        CHUNKED + b"Connection: X-Named\r\n\r\n" + BODY + lines + b"\r\n"))
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        for _ in range(2):
            c.ask("/", fields=ASKS)
            c.read_head()
            assert c.read_exactly(len(BODY) + 2) == BODY + b"\r\n"


# --- in pieces ---

def received(daemon):
    return daemon.metric("penstock_received_bytes_total", side="upstream")


def piecewise(daemon, pieces):
    """A behaviour: each piece is read by the daemon before the next comes."""
    def behave(wire):
        while wire.read_message() is not None:
            for piece in pieces:
                goal = received(daemon[0]) + len(piece)
                wire.send(piece)
                daemon[0].wait_metric(
                    "penstock_received_bytes_total", goal, side="upstream")
    return behave


TRAILERS = b"X-T: 1\r\nHost: evil\r\nX-N: 2\r\nX-U: 3\r\n\r\n"


@pytest.mark.parametrize("pieces", [
    [TRAILERS[i:i + 1] for i in range(len(TRAILERS))],
    [line + b"\r\n" for line in TRAILERS.split(b"\r\n")[:-1]],
    [TRAILERS[:-1], TRAILERS[-1:]],
    [TRAILERS],
], ids=["bytes", "lines", "last", "whole"])
def test_trailers_may_come_in_pieces(gateway, upstream, pieces):
    daemon = []
    server = upstream(piecewise(daemon, [
        CHUNKED + b"Connection: X-N\r\n\r\n", BODY, *pieces]))
    daemon.append(gateway(server.port))
    with Client(daemon[0].port) as c:
        for _ in range(2):
            m = c.request("/", fields=ASKS)
            assert m.body == b"hello"
            assert m.trailers == [("X-T", "1"), ("X-U", "3")]
    assert server.accepted == 1


def test_the_head_may_come_in_pieces_too(gateway, upstream):
    daemon = []
    head = CHUNKED + b"Connection: X-N\r\n\r\n"
    server = upstream(piecewise(daemon, [
        head[:20], head[20:] + BODY + TRAILERS[:9], TRAILERS[9:]]))
    daemon.append(gateway(server.port))
    m = ask(daemon[0], "/", ASKS)
    assert m.trailers == [("X-T", "1"), ("X-U", "3")]


@pytest.mark.parametrize("most", [True, False])
def test_the_largest_trailers_pass(gateway, upstream, most):
    """Exactly as many bytes, and as many fields, as are held at most."""
    value = "v" * (16384 - len("X: \r\n\r\n"))
    lines = [f"X: {value}"] if most else [f"X-{i}: y" for i in range(100)]
    raw = "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"
    server = upstream(answering_with(CHUNKED + b"\r\n" + BODY + raw))
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        for _ in range(2):
            m = c.request("/", fields=ASKS)
            assert m.trailers == [tuple(x.split(": ")) for x in lines]
    assert server.accepted == 1


# --- bad ones ---

BAD = [
    b"X y\r\n\r\n",
    b"X: a\r\n folded\r\n\r\n",
    b"X: \x00\r\n\r\n",
    b": y\r\n\r\n",
    b"X : y\r\n\r\n",
    b"X: a\nY: b\r\n\r\n",
    b"\n",
    b"X: " + b"v" * 16384 + b"\r\n\r\n",
    b"a:\r\n" * 101 + b"\r\n",
]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("fields", [ASKS, []], ids=["asks", "doesn't"])
@pytest.mark.parametrize("good", [b"", b"X-T: 1\r\n"])
def test_bad_trailers_cut_the_response(gateway, upstream, fields, good, bad):
    begun = []

    def behave(wire):
        wire.read_message()
        wire.send(CHUNKED + b"\r\n" + BODY[:-3])
        begun[0].read_until(b"hello\r\n")
        wire.send(b"0\r\n" + good + bad)
        # It is closed, and not used again.
        assert wire.at_end()
    server = upstream(behave)
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        begun.append(c)
        c.ask("/", fields=fields)
        daemon.wait_metric("penstock_failures_total", 1,
                           reason="response_invalid")
        try:
            assert c.read_all() == b""      # no last chunk, no trailer
        except ConnectionResetError:
            pass
    daemon.wait_count("requests", 1, code="200")


def test_trailers_that_do_not_end_cut_the_response(gateway, upstream):
    def behave(wire):
        wire.read_message()
        wire.send(CHUNKED + b"\r\n" + BODY + b"X-T: 1\r\n")
    server = upstream(behave)
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.ask("/", fields=ASKS)
        data = b""
        try:
            data += c.read_until(b"hello\r\n")
            data += c.read_all()
        except ConnectionResetError:
            pass
        assert b"\r\n0\r\n" not in data
    daemon.wait_metric("penstock_failures_total", 1, reason="upstream_closed")


# --- of requests ---

def test_trailers_of_requests_end_here(through, upstream):
    """Whoever asks for trailers in the response takes them; who else does?"""
    requests = []
    server = upstream(answering_with(
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        requests=requests))
    daemon, target = through(server)
    with Client(daemon.port) as c:
        for _ in range(2):
            c.send(f"POST {target} HTTP/1.1\r\nHost: test\r\nTE: trailers\r\n"
                   "Connection: TE, X-T\r\nTransfer-Encoding: chunked\r\n"
                   "Trailer: X-T, X-U\r\n\r\n".encode() + BODY +
                   b"X-T: 1\r\nX-U: 2\r\nHost: evil\r\n\r\n")
            assert c.read_message().status == 200
    for seen in requests:
        assert (seen.body, seen.trailers) == (b"hello", [])
        for name in "Trailer", "X-T", "X-U":
            assert not in_head(seen, name), name
        assert seen.get("Host") != "evil"
    assert server.accepted == 1


@pytest.mark.parametrize("bad", BAD)
def test_bad_trailers_of_requests_are_refused(gateway, upstream, bad):
    def behave(wire):
        request = wire.read_head()
        assert request is None or request.method == "POST"
        data = wire.read_all()
        assert b"0\r\n\r\n" not in data
    server = upstream(behave)
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.send(b"POST / HTTP/1.1\r\nHost: test\r\n"
               b"Transfer-Encoding: chunked\r\n\r\n" + BODY + bad +
               b"GET /smuggled HTTP/1.1\r\nHost: test\r\n\r\n")
        m = c.read_message()
        assert m.is_failure(400, "bad_request")
        assert m.get("Connection") == "close"
        assert c.at_end()
    daemon.wait_count("requests", 1, code="400")
