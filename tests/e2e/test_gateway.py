# SPDX-License-Identifier: BSD-2-Clause
"""The gateway: routes, servers, what is changed on the way, what isn't."""

import hashlib
import socket
import threading

import pytest

from penstock import (Client, Wire, answering, answering_with, curl, free_port,
                      most_under_way, noting, wait_for)

BIG = bytes(range(256)) * 4096          # 1 MiB


def saying(name):
    return answering(body=name.encode())


# --- where requests go ---

def test_curl_gets_a_page_of_nginx(gateway, nginx):
    daemon = gateway(nginx.port)
    url = f"http://127.0.0.1:{daemon.port}"
    assert curl(f"{url}/") == b"hello from nginx\n"
    assert curl(url + nginx.file("big", BIG)) == BIG
    assert b"404 Not Found" in curl(f"{url}/missing")
    assert curl("-I", f"{url}/big").startswith(b"HTTP/1.1 200 OK\r\n")
    assert curl("-H", "Range: bytes=1-3", f"{url}/big") == bytes([1, 2, 3])
    daemon.wait_count("requests", 3, code="200")
    daemon.wait_count("requests", 1, code="404")
    daemon.wait_count("requests", 1, code="206")


def test_routes_go_by_host_and_longest_path(gateway, upstream):
    servers = {name: upstream(saying(name)) for name in (
        "up", "exact", "suffix", "longer", "v1", "v1beta")}
    upstreams = "\n".join(
        f"[upstream {name}]\nserver = {s.server}\npool_idle = 200ms"
        for name, s in servers.items() if name != "up")

    def route(name, **keys):
        lines = "\n".join(f"{k} = {v}" for k, v in keys.items())
        return f"[route {name}]\nlistener = gateway\n{lines}\n" \
               f"upstream = {name}\n"
    daemon = gateway(servers["up"].port, rest="".join([
        route("exact", host="a.test"),
        route("suffix", host="*.b.test"),
        route("longer", host="*.c.b.test"),
        route("v1", host="a.test", path="/v1/"),
        route("v1beta", host="a.test", path="/v1/beta"),
        upstreams]))
    with Client(daemon.port) as c:
        for host, path, name in (
                ("a.test", "/", "exact"), ("A.TEST", "/", "exact"),
                ("a.test:80", "/", "exact"), ("a.test.", "/", "exact"),
                ("x.b.test", "/", "suffix"), ("x.y.b.test", "/", "suffix"),
                ("b.test", "/", "up"), ("xb.test", "/", "up"),
                ("x.c.b.test", "/", "longer"), ("c.b.test", "/", "suffix"),
                ("a.test", "/v1/x", "v1"), ("a.test", "/v1", "exact"),
                ("a.test", "/v1/beta/x", "v1beta"),
                ("a.test", "/v1/alpha?/v1/beta", "v1"),
                ("a.test", "/V1/x", "exact"), ("z.test", "/v1/x", "up")):
            assert c.request(path, host=host).body.decode() == name, (
                host, path)
        # The target's host counts, not the field's.
        m = c.request("http://a.test/v1/x", host="x.b.test")
        assert m.body == b"v1"


def test_a_request_that_no_route_takes_gets_404(penstock, upstream):
    server = upstream(answering())
    port = free_port()
    penstock(f"""
        [listener g]
        mode = gateway
        bind = 127.0.0.1:{port}
        [route r]
        listener = g
        host = a.test
        path = /in/
        upstream = u
        [upstream u]
        server = {server.server}
        pool_idle = 200ms
        """)
    with Client(port) as c:
        assert c.request("/in/", host="a.test").status == 200
        assert c.request("/out/", host="a.test").is_failure(404, "no_route")
        assert c.request("/in/", host="b.test").is_failure(404, "no_route")
        assert c.request("/in/", host="a.test").status == 200


def test_servers_take_turns_by_weight(gateway, upstream):
    a, b = (upstream(saying(name)) for name in "ab")
    daemon = gateway([f"{a.server} weight=2", b.server],
                     rest="[penstock]\nworkers = 1")
    with Client(daemon.port) as c:
        seen = b"".join(c.request("/").body for _ in range(12))
    assert seen.count(b"a") == 8 and seen.count(b"b") == 4
    assert b"bb" not in seen and b"aaa" not in seen
    assert a.accepted == b.accepted == 1
    daemon.wait_count("server_requests", 8, server=a.server)


def test_a_server_that_is_down_is_passed_over(gateway, upstream):
    server = upstream(saying("up"))
    daemon = gateway([free_port(), server.port])
    with Client(daemon.port) as c:
        for _ in range(4):
            assert c.request("/").body == b"up"
    assert daemon.count("retries", reason="connect") > 0


def test_backups_serve_only_when_nobody_else_can(gateway, upstream):
    first, backup = (upstream(saying(name)) for name in ("first", "backup"))
    daemon = gateway([f"{backup.server} backup", first.server],
                     up="pool_max = 0")
    with Client(daemon.port) as c:
        assert [c.request("/").body for _ in range(3)] == [b"first"] * 3
    down = gateway([f"{backup.server} backup", free_port()])
    with Client(down.port) as c:
        assert c.request("/").body == b"backup"


def test_an_upstream_that_is_down_gets_502(gateway):
    daemon = gateway(free_port())
    with Client(daemon.port) as c:
        assert c.request("/").is_failure(502, "connect_refused")
        assert c.request("/", method="POST", body=b"small").is_failure(
            502, "connect_refused")
        assert c.request("/").is_failure(502, "connect_refused")


def test_a_server_may_be_given_by_name(gateway, upstream, names):
    server = upstream(saying("named"))
    dns = names({"one.test": ["127.0.0.1"]})
    daemon = gateway([f"one.test:{server.port}", "none.test:1 backup"],
                     rest=f"[penstock]\nnameservers = {dns.address}")
    with Client(daemon.port) as c:
        daemon_says = c.request("/")
        while daemon_says.status == 503:        # not yet resolved
            daemon_says = c.request("/")
        assert daemon_says.body == b"named"


def test_unix_sockets_serve_on_both_sides(penstock, upstream, short_path):
    server = upstream(saying("through files"), path=short_path / "up")
    penstock(f"""
        [listener g]
        mode = gateway
        bind = unix:{short_path}/in
        upstream = u
        [upstream u]
        server = {server.server}
        pool_idle = 200ms
        """)
    page = curl("--unix-socket", short_path / "in", "http://a.test/")
    assert page == b"through files"
    page = curl("--unix-socket", short_path / "in", "http://a.test/",
                "http://a.test/")
    assert page == b"through files" * 2


# --- what is changed on the way ---

def test_requests_tell_where_they_came_from(gateway, upstream):
    requests = []
    server = upstream(noting(requests))
    daemon = gateway(server.port, rest="[penstock]\nname = gate")
    with Client(daemon.port) as c:
        m = c.request("/", host="A.test:81", fields=[
            "X-Forwarded-For: 192.0.2.9", "x-forwarded-host: evil",
            "X-Forwarded-Proto: https", "Forwarded: for=192.0.2.9",
            "Via: 1.0 first", "Custom: kept"])
    seen = requests[0]
    assert seen.all("Host") == ["A.test:81"]
    assert seen.all("X-Forwarded-For") == ["127.0.0.1"]
    assert seen.all("X-Forwarded-Host") == ["A.test:81"]
    assert seen.all("X-Forwarded-Proto") == ["http"]
    assert seen.get("Forwarded") is None
    assert seen.all("Via") == ["1.0 first", "1.1 gate"]
    assert seen.get("Custom") == "kept"
    assert m.all("Via") == ["1.1 gate"]
    assert m.get("Date") is not None


def test_a_trusted_client_is_believed(gateway, upstream):
    requests = []
    server = upstream(noting(requests))
    daemon = gateway(server.port, "trusted = 127.0.0.2")
    fields = ["X-Forwarded-For: 192.0.2.9", "X-Forwarded-Host: out.test",
              "X-Forwarded-Proto: https"]
    for source in "127.0.0.2", "127.0.0.3":
        with Client(daemon.port, source=source) as c:
            c.request("/", fields=fields)
    trusted, other = requests
    assert trusted.all("X-Forwarded-For") == ["192.0.2.9, 127.0.0.2"]
    assert trusted.all("X-Forwarded-Host") == ["out.test"]
    assert trusted.all("X-Forwarded-Proto") == ["https"]
    assert other.all("X-Forwarded-For") == ["127.0.0.3"]
    assert other.all("X-Forwarded-Host") == ["test"]
    assert other.all("X-Forwarded-Proto") == ["http"]


def test_a_route_may_name_another_host(gateway, upstream):
    requests = []
    server = upstream(noting(requests))
    daemon = gateway(server.port, rest="""
        [route r]
        listener = gateway
        host_header = inner.test
        upstream = up
        """)
    with Client(daemon.port) as c:
        c.request("/", host="outer.test")
    assert requests[0].all("Host") == ["inner.test"]
    assert requests[0].all("X-Forwarded-Host") == ["outer.test"]


def test_hop_by_hop_fields_end_here(gateway, upstream):
    requests = []
    server = upstream(noting(requests, fields=[
        "Connection: X-Back", "X-Back: 1", "Keep-Alive: timeout=5",
        "Proxy-Authenticate: Basic", "X-Stays: 2"]))
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        m = c.request("/", fields=[
            "Connection: X-Hop, host, Connection", "X-Hop: 1", "TE: gzip",
            "Keep-Alive: 1", "Proxy-Connection: keep-alive",
            "Trailer: X-T", "X-Stays: 1", "Upgrade: h2c"])
    seen = requests[0]
    for name in ("Connection", "X-Hop", "TE", "Keep-Alive", "Trailer",
                 "Proxy-Connection", "Upgrade"):
        assert seen.get(name) is None, name
    assert seen.all("Host") == ["test"]
    assert seen.get("X-Stays") == "1"
    for name in "Connection", "X-Back", "Keep-Alive":
        assert m.get(name) is None, name
    assert m.get("X-Stays") == "2"


def test_other_fields_pass_as_they_are_and_in_order(gateway, upstream):
    requests = []
    server = upstream(noting(requests, fields=[
        "Set-Cookie: a=1", "X-Odd:\xff\xfe", "Set-Cookie: b=2; x"]))
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        m = c.request("/%00?q=%0d%0a", fields=[
            "a: 1", "B:x", "a:  2 \t", "Cookie: ;a=b", "X-\xe9: no"[:2] +
            "Odd: \xc3\xa9"])
    seen = requests[0]
    assert seen.target == "/%00?q=%0d%0a"
    assert seen.all("a") == ["1", "2"]
    assert b"\r\nX-Odd: \xc3\xa9\r\n" in seen.raw
    assert b"2 \t\r\n" not in seen.raw
    assert m.all("Set-Cookie") == ["a=1", "b=2; x"]
    assert b"\xff\xfe\r\n" in m.raw


# --- bodies ---

@pytest.mark.parametrize("size", [0, 1, 5000, 65536, len(BIG)])
def test_a_body_with_a_length_arrives_as_it_is(gateway, upstream, size):
    requests = []
    body = BIG[:size]
    server = upstream(noting(requests, body=body))
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        for _ in range(2):
            m = c.request("/", method="POST", body=body)
            assert m.body == body
            assert m.all("Content-Length") == [str(size)]
    assert [r.body for r in requests] == [body] * 2
    assert server.accepted == 1


def chunks(*sizes, extension=b"", trailer=b""):
    at, parts = 0, []
    for size in sizes:
        parts.append(b"%x%s\r\n%s\r\n" % (size, extension, BIG[at:at + size]))
        at += size
    return b"".join(parts) + b"0\r\n" + trailer + b"\r\n", BIG[:at]


def test_chunks_pass_both_ways(gateway, upstream):
    requests = []
    raw, body = chunks(1, 10, 70000, 3, extension=b";a=b",
                       trailer=b"X-Trailer: t\r\nHost: evil\r\n")

    def behave(wire):
        while (request := wire.read_message()) is not None:
            requests.append(request)
            wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                      b"\r\n" + raw)
    server = upstream(behave)
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        for _ in range(2):
            c.send(b"POST / HTTP/1.1\r\nHost: a\r\n"
                   b"Transfer-Encoding: chunked\r\n\r\n" + raw)
            m = c.read_message()
            assert m.body == body
            assert m.all("Transfer-Encoding") == ["chunked"]
            assert m.get("Content-Length") is None
    for r in requests:
        assert r.body == body and r.get("Content-Length") is None
        assert "Host" not in [name for name, _ in r.trailers]
    assert server.accepted == 1


def test_a_body_in_single_bytes_arrives_as_it_is(gateway, upstream):
    requests = []
    server = upstream(noting(requests))
    daemon = gateway(server.port)
    raw, body = chunks(3, 5)
    with Client(daemon.port) as c:
        for byte in (b"POST / HTTP/1.1\r\nHost: a\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n" + raw):
            c.send(bytes([byte]))
        assert c.read_message().status == 200
    assert requests[0].body == body


def test_a_response_that_ends_with_its_connection_is_chunked(
        gateway, upstream):
    server = upstream(answering_with(
        b"HTTP/1.1 200 OK\r\n\r\n" + BIG, close=True))
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        for _ in range(2):
            m = c.request("/")
            assert m.get("Transfer-Encoding") == "chunked"
            assert m.body == BIG
    assert server.accepted == 2


def test_a_client_of_http_1_0_gets_what_it_understands(gateway, upstream):
    requests = []
    raw, body = chunks(10, 20)

    def behave(wire):
        while (request := wire.read_message()) is not None:
            requests.append(request)
            wire.send(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n"
                      b"Transfer-Encoding: chunked\r\n\r\n" + raw)
    server = upstream(behave)
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.send(b"GET / HTTP/1.0\r\n\r\n")
        m = c.read_head()
        assert m.start == "HTTP/1.1 200 OK"
        assert m.get("Transfer-Encoding") is None
        assert c.read_all() == body
    assert requests[0].start == "GET / HTTP/1.1"
    assert len(requests[0].all("Host")) == 1


def test_a_client_of_http_1_0_may_keep_its_connection(gateway, upstream):
    server = upstream(answering(body=b"fine"))
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        for _ in range(2):
            c.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            m = c.read_message()
            assert m.body == b"fine"
            assert m.get("Connection").lower() == "keep-alive"


def test_a_response_of_http_1_0_goes_on_as_1_1(gateway, upstream):
    server = upstream(answering_with(
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", close=True))
    daemon = gateway(server.port, rest="[penstock]\nname = gate")
    with Client(daemon.port) as c:
        m = c.request("/")
        assert (m.start, m.body) == ("HTTP/1.1 200 OK", b"ok")
        assert m.get("Via") == "1.0 gate"


@pytest.mark.parametrize("method, status, fields", [
    ("HEAD", 200, ["Content-Length: 12345"]),
    ("HEAD", 200, ["Transfer-Encoding: chunked"]),
    ("HEAD", 404, ["Content-Length: 7"]),
    ("GET", 204, []),
    ("GET", 304, ["Content-Length: 12345", 'ETag: "x"']),
])
def test_a_response_without_a_body_has_none(
        gateway, upstream, method, status, fields):
    head = "\r\n".join([f"HTTP/1.1 {status} So", *fields, "", ""])
    server = upstream(answering_with(head.encode()))
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        for _ in range(3):
            m = c.request("/", method=method)
            assert m.status == status
            length = [f[16:] for f in fields if f.startswith("Content-")]
            assert m.all("Content-Length") == length
    assert server.accepted == 1


def test_pipelined_requests_are_answered_in_order(gateway, upstream):
    def behave(wire):
        while (request := wire.read_message()) is not None:
            body = request.target.encode() + request.body
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"
                      % (len(body), body))
    server = upstream(behave)
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.send(b"".join(
            b"POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
            b"GET /%d/ HTTP/1.1\r\nHost: a\r\n\r\n" % (i, i)
            for i in range(50)))
        for i in range(50):
            assert c.read_message().body == b"/%dabc" % i
            assert c.read_message().body == b"/%d/" % i
    assert server.accepted == 1


def test_a_client_that_ends_after_its_requests_is_answered(gateway, upstream):
    server = upstream(answering(body=b"fine"))
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.send(b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n"
               b"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
        c.end()
        assert c.read_message().body == b"fine"
        assert c.read_message().body == b"fine"
        assert c.at_end()


# --- more than one response ---

def test_early_hints_pass(gateway, upstream):
    server = upstream(answering_with(
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        b"HTTP/1.1 103 Early Hints\r\nLink: </b>\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        for _ in range(2):
            c.ask("/")
            first, second, final = (
                c.read_message(interim=True) for _ in range(3))
            assert (first.status, first.get("Link")) == (103, "</a>")
            assert (second.status, second.get("Link")) == (103, "</b>")
            assert first.get("Content-Length") is None
            assert (final.status, final.body) == (200, b"ok")
    assert server.accepted == 1


def expecting(c, length=5):
    c.ask("/", method="POST",
          fields=["Expect: 100-continue", f"Content-Length: {length}"])


def test_a_client_that_expects_100_is_told_by_the_server(gateway, upstream):
    def behave(wire):
        assert wire.read_head().get("Expect") == "100-continue"
        wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = wire.read_exactly(5)
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + body)
    server = upstream(behave)
    with Client(gateway(server.port).port) as c:
        expecting(c)
        assert c.read_message(interim=True).status == 100
        c.send(b"hello")
        assert c.read_message().body == b"hello"


def test_a_client_that_does_not_wait_for_100_is_served(gateway, upstream):
    server = upstream(answering(body=b"fine"))
    with Client(gateway(server.port).port) as c:
        expecting(c)
        c.send(b"hello")
        assert c.read_message().body == b"fine"
        assert c.request("/").body == b"fine"


def test_an_expected_100_that_is_refused_ends_the_connection(
        gateway, upstream):
    def behave(wire):
        wire.read_head()
        wire.send(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
        assert wire.at_end()
    server = upstream(behave)
    with Client(gateway(server.port).port) as c:
        expecting(c)
        m = c.read_message(interim=True)
        assert m.status == 403
        assert m.get("Connection") == "close"
        assert c.at_end()


def test_an_unknown_expectation_gets_417(gateway, upstream):
    server = upstream(answering())
    with Client(gateway(server.port).port) as c:
        assert c.request("/", fields=["Expect: tea"]).is_failure(
            417, "expectation_failed")
    assert server.accepted == 0


def test_a_websocket_becomes_a_tunnel(gateway, upstream):
    def behave(wire):
        head = wire.read_head()
        assert head.get("Upgrade") == "websocket"
        assert head.get("Connection") == "Upgrade"
        assert head.get("Sec-WebSocket-Key") == "abc"
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket"
                  b"\r\nConnection: Upgrade\r\n\r\nearly")
        wire.send(wire.read_exactly(5)[::-1])
        wire.send(b"rest:" + wire.read_all())
    server = upstream(behave)
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.ask("/", fields=["Upgrade: websocket", "Connection: Upgrade",
                           "Sec-WebSocket-Key: abc"])
        m = c.read_message()
        assert m.status == 101
        assert m.get("Upgrade") == "websocket"
        assert m.get("Connection") == "Upgrade"
        assert c.read_exactly(5) == b"early"
        daemon.wait_metric("penstock_tunnels", 1, listener="gateway")
        c.send(b"hello")
        assert c.read_exactly(5) == b"olleh"
        c.send(b"\x00\xff")
        c.end()
        assert c.read_all() == b"rest:\x00\xff"
    daemon.wait_count("requests", 1, code="101")


def test_a_refused_upgrade_is_an_ordinary_response(gateway, upstream):
    server = upstream(answering(body=b"plain"))
    with Client(gateway(server.port).port) as c:
        for _ in range(2):
            m = c.request("/", fields=["Upgrade: websocket",
                                       "Connection: Upgrade"])
            assert (m.status, m.body) == (200, b"plain")


def test_an_upgrade_that_nobody_asked_for_gets_502(gateway, upstream):
    server = upstream(answering_with(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n"
        b"Connection: Upgrade\r\n\r\nbytes", close=True))
    with Client(gateway(server.port).port) as c:
        assert c.request("/").is_failure(502, "upgrade_failed")


# --- connections that had been used before ---

def dying_on_second(name, requests):
    """Its first connection ends at the second request; the others last."""
    first = threading.Event()

    def behave(wire):
        fails = not first.is_set()
        first.set()
        while (request := wire.read_message()) is not None:
            requests.append(request)
            if fails and len(requests) == 2:
                return
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (
                len(name), name))
    return behave


def test_a_get_that_finds_a_dead_connection_is_sent_again(gateway, upstream):
    requests = []
    server = upstream(dying_on_second(b"fine", requests))
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        assert c.request("/1").body == b"fine"
        assert c.request("/2").body == b"fine"
        assert c.request("/3").body == b"fine"
    assert [r.target for r in requests] == ["/1", "/2", "/2", "/3"]
    daemon.wait_count("retries", 1, reason="stale")
    daemon.wait_count("pool_stale", 1, how="used")


def test_a_put_is_sent_again_with_its_body(gateway, upstream):
    requests = []
    server = upstream(dying_on_second(b"fine", requests))
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        assert c.request("/1").body == b"fine"
        m = c.request("/2", method="PUT", body=BIG[:5000])
        assert m.body == b"fine"
    assert [r.body for r in requests[1:]] == [BIG[:5000]] * 2


def test_what_follows_a_put_that_is_sent_again_stays(gateway):
    """Its rest and another request come while the new connection is made."""
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    server = socket.create_server(("127.0.0.1", free_port()), backlog=0)
    address = server.getsockname()
    daemon = gateway(address[1])
    with server, Client(daemon.port) as c:
        c.ask("/1")
        with Wire(server.accept()[0]) as first:
            first.read_head()
            first.send(ok)
            assert c.read_message().status == 200
            c.ask("/2", "PUT", fields=["Content-Length: 3000"])
            c.send(BIG[:2000])
            first.read_head()
            first.read_exactly(2000)
            # Nobody else gets in, until this one is accepted.
            filler = socket.create_connection(address)
            first.abort()
        daemon.wait_count("retries", 1, reason="stale")
        before = daemon.metric("penstock_buffer_bytes")
        c.send(BIG[2000:3000] + b"POST /3 HTTP/1.1\r\nHost: test\r\n"
               b"Content-Length: 9000\r\n\r\n" + BIG[:9000])
        wait_for(lambda: daemon.metric("penstock_buffer_bytes") > before)
        server.accept()[0].close()
        filler.close()
        with Wire(server.accept()[0]) as second:
            for target, body in (("/2", BIG[:3000]), ("/3", BIG[:9000])):
                m = second.read_message()
                assert (m.target, m.body) == (target, body)
                second.send(ok)
                assert c.read_message().status == 200


def test_a_post_is_never_sent_twice(gateway, upstream):
    requests = []
    server = upstream(dying_on_second(b"fine", requests))
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        assert c.request("/1").body == b"fine"
        m = c.request("/2", method="POST", body=b"x")
        assert m.is_failure(502, "upstream_closed")
        assert c.request("/3").body == b"fine"
    assert [r.target for r in requests] == ["/1", "/2", "/3"]
    assert daemon.count("retries") == 0


def test_a_request_is_sent_again_only_once(gateway, upstream):
    requests = []

    def behave(wire):
        requests.append(wire.read_message())
        if len(requests) == 1:
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            requests.append(wire.read_message())
    server = upstream(behave)
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        assert c.request("/1").status == 200
        assert c.request("/2").is_failure(502, "upstream_closed")
    assert [r.target for r in requests] == ["/1", "/2", "/2"]


def test_an_idle_connection_that_was_closed_is_not_used(gateway, upstream):
    def behave(wire):
        wire.read_message()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    server = upstream(behave)
    daemon = gateway(server.port, up="pool_idle = 1h")
    with Client(daemon.port) as c:
        for n in range(1, 4):
            assert c.request("/", method="POST", body=b"x").status == 200
            daemon.wait_metric("penstock_pool_stale_total", n, how="closed")
    assert server.accepted == 3


def test_bytes_without_a_request_are_nobodys_response(gateway, upstream):
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"

    def behave(wire):
        wire.read_message()
        wire.send(answer + b"good" + answer + b"evil")
        wire.read_all()
    server = upstream(behave)
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        for _ in range(3):
            assert c.request("/").body == b"good"
    assert server.accepted == 3


def test_a_server_that_wants_to_close_is_not_asked_again(gateway, upstream):
    server = upstream(answering(fields=["Connection: close"]))
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        for _ in range(3):
            m = c.request("/", method="POST", body=b"x")
            assert m.status == 200
            assert m.get("Connection") is None
    assert server.accepted == 3


# --- what is refused ---

GET = b"GET / HTTP/1.1\r\nHost: a\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
BAD = {
    "bare LF": b"GET / HTTP/1.1\nHost: a\n\n",
    "bare CR in a value": GET + b"X: a\rb\r\n\r\n",
    "NUL in a value": GET + b"X: a\0b\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": GET + b"Host: a\r\n\r\n",
    "odd host": b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "space before the colon": GET + b"X : a\r\n\r\n",
    "no colon": GET + b"foo\r\n\r\n",
    "empty name": GET + b": v\r\n\r\n",
    "folded line": GET + b"X: a\r\n b\r\n\r\n",
    "length and chunks": POST + b"Content-Length: 5\r\n"
                                b"Transfer-Encoding: chunked\r\n\r\n"
                                b"0\r\n\r\nGET /s HTTP/1.1\r\nHost: a\r\n\r\n",
    "two lengths": POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    "signed length": POST + b"Content-Length: +2\r\n\r\nxx",
    "endless length": POST + b"Content-Length: 99999999999999999999\r\n\r\n",
    "chunked is not last": POST + b"Transfer-Encoding: chunked, x\r\n\r\n",
    "chunked in 1.0": b"POST / HTTP/1.0\r\nHost: a\r\n"
                      b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "target with a blank": b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
    "fragment": b"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
    "version": b"GET / HTTP/1.x\r\nHost: a\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    "SSH": b"SSH-2.0-OpenSSH\r\n",
    "noise": hashlib.sha512(b"noise").digest() * 8,
}


@pytest.mark.parametrize("raw", BAD.values(), ids=BAD)
def test_what_cannot_be_read_gets_400_and_the_connection_ends(
        gateway, upstream, raw):
    server = upstream(answering())
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.send(raw)
        m = c.read_message()
        assert m.status == 400
        assert m.get("Connection") == "close"
        assert c.at_end()
    assert server.accepted == 0
    daemon.wait_metric("penstock_failures_total", 1, reason="bad_request")


@pytest.mark.parametrize("raw", [b"x\r\n", b"-1\r\nx", b"3\r\nabcd\r\n",
                                 b"ffffffffffffffffff\r\n", b"1\nx\n0\n\n",
                                 b"1\r\nx\r\n\r\n0\r\n\r\n"])
def test_a_bad_chunk_gets_400_and_the_server_no_whole_request(
        gateway, upstream, raw):
    ends = []

    def behave(wire):
        with pytest.raises((EOFError, ConnectionResetError)):
            wire.read_message()
        ends.append(1)
    server = upstream(behave)
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.send(POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
        daemon.wait_metric("penstock_pool_dialled_total", 1)
        c.send(raw + b"GET /s HTTP/1.1\r\nHost: a\r\n\r\n")
        m = c.read_message()
        assert m.is_failure(400, "bad_request")
        assert c.at_end()
    daemon.wait_metric("penstock_pool_connections", 0)
    wait_for(lambda: ends == [1])
    assert server.accepted == 1


@pytest.mark.parametrize("request_, status, token", [
    (b"GET /" + b"x" * 300 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414,
     "uri_too_long"),
    (b"GET /" + b"x" * 300, 414, "uri_too_long"),
    (GET + b"X: " + b"y" * 2000 + b"\r\n\r\n", 431, "head_too_large"),
    (GET + b"X: " + b"y" * 2000, 431, "head_too_large"),
    (GET + b"X: y\r\n" * 20 + b"\r\n", 431, "head_too_large"),
    (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505, "version_unsupported"),
    (b"FOO / HTTP/1.1\r\nHost: a\r\n\r\n", 501, "method_unsupported"),
])
def test_what_is_too_much_gets_its_status_and_the_connection_ends(
        gateway, upstream, request_, status, token):
    server = upstream(answering())
    daemon = gateway(server.port, """
        request_line = 256
        head_size = 1k
        head_fields = 10
        """)
    with Client(daemon.port) as c:
        c.send(request_)
        m = c.read_message()
        assert m.is_failure(status, token)
        assert m.get("Connection") == "close"
        assert c.at_end()
    assert server.accepted == 0


def test_heads_up_to_the_limits_pass(gateway, upstream):
    server = upstream(answering())
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        assert c.request("/" + "x" * 8000).status == 200
        assert c.request("/", fields=["X: " + "y" * 30000]).status == 200
        assert c.request("/", fields=["X: y"] * 90).status == 200


def test_connect_and_trace_are_not_for_gateways(gateway, upstream):
    server = upstream(answering())
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        m = c.request("a:443", method="CONNECT", host="a:443")
        assert m.is_failure(405, "method_not_allowed")
        assert "GET" in m.get("Allow")
    assert server.accepted == 0


def test_a_body_over_the_limit_is_refused_before_it_is_sent(
        gateway, upstream):
    server = upstream(answering())
    daemon = gateway(server.port, "body_size = 100")
    with Client(daemon.port) as c:
        assert c.request("/", method="POST", body=b"x" * 100).status == 200
        # As it is short, it is read, and the connection goes on.
        m = c.request("/", method="POST", body=b"x" * 101)
        assert m.is_failure(413, "body_too_large")
        assert c.request("/").status == 200
        c.ask("/", method="POST", fields=["Content-Length: 100000000"])
        m = c.read_message()
        assert m.is_failure(413, "body_too_large")
        assert m.get("Connection") == "close"
        assert c.at_end()
    assert server.accepted == 1


def test_chunks_over_the_limit_end_the_exchange(gateway, upstream):
    server = upstream(answering())
    daemon = gateway(server.port, "body_size = 100")
    raw, _ = chunks(60, 60)
    with Client(daemon.port) as c:
        c.send(POST + b"Transfer-Encoding: chunked\r\n\r\n" + raw)
        m = c.read_message()
        assert m.is_failure(413, "body_too_large")
        assert c.at_end()
    daemon.wait_count("requests", 1, code="413")


def test_an_answer_before_the_end_of_an_upload_arrives(gateway, upstream):
    refusal = (b"HTTP/1.1 413 Too much\r\nContent-Length: 4\r\n"
               b"Connection: close\r\n\r\nmuch")

    def behave(wire):
        wire.read_head()
        wire.send(refusal)
        wire.end()
        wire.socket.recv(1)
    server = upstream(behave)
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.ask("/", method="POST", fields=["Content-Length: 100000000"])
        sending = threading.Thread(target=_send_until_it_breaks, args=(c,))
        sending.start()
        m = c.read_message()
        assert (m.status, m.body) == (413, b"much")
        assert m.get("Connection") == "close"
        sending.join(10)
        assert not sending.is_alive()


def _send_until_it_breaks(c):
    try:
        for _ in range(100):
            c.send(BIG)
    except OSError:
        pass


# --- servers that fail ---

@pytest.mark.parametrize("raw", [
    b"what?\r\n\r\n", b"HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    b"HTTP/1.1 200 OK\r\n: v\r\n\r\n", b"HTTP/1.1 200 OK\nA: b\n\n",
    b"\x00\x01\x02"])
def test_a_response_that_cannot_be_read_gets_502(gateway, upstream, raw):
    server = upstream(answering_with(raw, close=True))
    with Client(gateway(server.port).port) as c:
        m = c.request("/")
        assert m.status == 502
        assert c.request("/").status == 502


def test_a_response_with_too_large_a_head_gets_502(gateway, upstream):
    server = upstream(answering(fields=["X: " + "y" * 40000]))
    with Client(gateway(server.port).port) as c:
        assert c.request("/").is_failure(502, "response_too_large")


@pytest.mark.parametrize("raw", [
    b"", b"HTTP/1.1 200 OK\r\nContent-Le", b"HTTP/1.1 103 Hm\r\n\r\n"])
def test_a_server_that_ends_before_its_response_gets_502(
        gateway, upstream, raw):
    server = upstream(answering_with(raw, close=True))
    with Client(gateway(server.port).port) as c:
        assert c.request("/").is_failure(502, "upstream_closed")
        assert c.request("/").is_failure(502, "upstream_closed")


def test_a_server_that_stops_in_its_head_gets_504(gateway, upstream):
    over = threading.Event()

    def behave(wire):
        wire.read_message()
        wire.send(b"HTTP/1.1 200 OK\r\n")
        over.wait(10)
    server = upstream(behave)
    with Client(gateway(server.port, up="""
            timeout_response = 200ms
            timeout_idle = 200ms
            """).port) as c:
        assert c.request("/").status == 504
    over.set()


CUT = {
    "length": b"Content-Length: 10\r\n\r\nhello",
    "chunks": b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "in a chunk": b"Transfer-Encoding: chunked\r\n\r\na\r\nhello",
}


@pytest.mark.parametrize("reset", [False, True], ids=["end", "reset"])
@pytest.mark.parametrize("rest", CUT.values(), ids=CUT)
def test_a_response_that_is_cut_is_seen_to_be_cut(
        gateway, upstream, rest, reset):
    received = threading.Event()

    def behave(wire):
        wire.read_message()
        wire.send(b"HTTP/1.1 200 OK\r\n" + rest)
        received.wait(10)
        if reset:
            wire.abort()
    server = upstream(behave)
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.ask("/")
        assert c.read_head().status == 200
        data = c.read_until(b"hello")
        received.set()
        try:
            data += c.read_all()
        except ConnectionResetError:
            pass
        assert b"\r\n0\r\n" not in data and data.endswith(
            (b"hello", b"hello\r\n"))
    daemon.wait_metric("penstock_failures_total", 1, reason="upstream_closed")


def test_a_reset_before_the_end_is_no_end(gateway, upstream):
    received = threading.Event()

    def behave(wire):
        wire.read_message()
        wire.send(b"HTTP/1.1 200 OK\r\n\r\nhello")
        received.wait(10)
        wire.abort()
    server = upstream(behave)
    with Client(gateway(server.port).port) as c:
        c.ask("/")
        c.read_until(b"hello")
        received.set()
        try:
            assert b"0\r\n\r\n" not in c.read_all()
        except ConnectionResetError:
            pass


def test_a_server_that_stops_in_a_body_is_cut_off(gateway, upstream):
    def behave(wire):
        wire.read_message()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        wire.read_all()
    server = upstream(behave)
    daemon = gateway(server.port, up="timeout_idle = 200ms")
    with Client(daemon.port) as c:
        with pytest.raises((EOFError, ConnectionResetError)):
            c.request("/")
    daemon.wait_metric("penstock_failures_total", 1,
                       reason="upstream_stalled")


# --- clients that are slow, or go ---

def test_a_slow_client_holds_the_server_back(gateway, upstream):
    block = BIG[:65536]
    many = most_under_way() // len(block) + 1
    sent = []

    def behave(wire):
        wire.read_message()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" %
                  (many * len(block)))
        for _ in range(many):
            wire.send(block)
            sent.append(block)
    server = upstream(behave)
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.ask("/")
        daemon.wait_metric("penstock_flows_paused", 1, side="client")
        assert daemon.metric("penstock_buffer_bytes") <= 256 * 1024
        assert len(sent) < many
        c.read_head()
        for _ in range(many):
            assert c.read_exactly(len(block)) == block
        daemon.wait_metric("penstock_flows_paused", 0)


def test_a_slow_server_holds_the_client_back(gateway, upstream):
    go = threading.Event()
    many = most_under_way() // len(BIG) + 1
    size = many * len(BIG)

    def behave(wire):
        wire.read_head()
        go.wait(10)
        got = sum(len(wire.read_exactly(len(BIG))) for _ in range(many))
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n%08x" % got)
    server = upstream(behave)
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.ask("/", method="POST", fields=[f"Content-Length: {size}"])
        sending = threading.Thread(
            target=lambda: [c.send(BIG) for _ in range(many)])
        sending.start()
        daemon.wait_metric("penstock_flows_paused", 1, side="upstream")
        assert daemon.metric("penstock_buffer_bytes") <= 256 * 1024
        assert sending.is_alive()
        go.set()
        assert c.read_message().body == b"%08x" % size
        sending.join(10)


def test_a_client_that_does_not_read_is_cut_off(gateway, upstream):
    def behave(wire):
        wire.read_message()
        wire.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            wire.send(BIG)
    server = upstream(behave)
    daemon = gateway(server.port, "timeout_send = 300ms")
    with Client(daemon.port, buffer=4096) as c:
        c.ask("/")
        daemon.wait_metric("penstock_failures_total", 1,
                           reason="client_timeout")


def test_a_client_that_resets_takes_its_exchange_along(gateway, upstream):
    seen_end = threading.Event()

    def behave(wire):
        wire.read_message()
        try:
            wire.read_all()
        except ConnectionResetError:
            pass
        seen_end.set()
    server = upstream(behave)
    daemon = gateway(server.port, rest="[limit one]\nconcurrency = 1",
                     up="limits = one")
    c = Client(daemon.port)
    c.ask("/")
    daemon.wait_metric("penstock_limit_in_use", 1, limit="one")
    c.abort()
    assert seen_end.wait(10)
    daemon.wait_metric("penstock_limit_in_use", 0, limit="one")
    daemon.wait_metric("penstock_failures_total", 1, reason="client_closed")


def test_a_client_that_goes_before_its_answer_leaves_nothing(
        gateway, upstream):
    go = threading.Event()
    server = upstream(answering(body=BIG, think=lambda r: go.wait(10)))
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.ask("/")
        daemon.wait_metric("penstock_pool_dialled_total", 1)
    go.set()
    daemon.wait_metric("penstock_exchanges", 0)


@pytest.mark.parametrize("leave", [Client.close, Client.abort],
                         ids=["end", "reset"])
def test_a_client_that_goes_in_its_body_leaves_no_whole_request(
        gateway, upstream, leave):
    ends = []

    def behave(wire):
        try:
            ends.append(wire.read_message())
        except (EOFError, ConnectionResetError):
            ends.append("cut")
    server = upstream(behave)
    daemon = gateway(server.port)
    for _ in range(3):
        c = Client(daemon.port)
        c.send(POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab")
        leave(c)
    daemon.wait_metric("penstock_failures_total", 3, reason="client_closed")
    daemon.wait_metric("penstock_pool_connections", 0)
    wait_for(lambda: server.open == 0)
    assert set(ends) <= {"cut"}


def test_a_head_that_comes_in_pieces_is_one(gateway, upstream):
    requests = []
    server = upstream(noting(requests, body=b"fine"))
    daemon = gateway(server.port)
    head = GET + b"X: " + b"y" * 300 + b"\r\n\r\n"
    with Client(daemon.port) as c:
        for byte in head + head[:100]:
            c.send(bytes([byte]))
        assert c.read_message().body == b"fine"
        c.send(head[100:])
        assert c.read_message().body == b"fine"
    assert len(requests) == 2


# --- what is left of a response never reaches another ---

def interrupted(wire):
    """The first two bytes of a body, whose rest comes after a next request."""
    while (m := wire.read_message()) is not None:
        if m.target != "/cut":
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine")
            continue
        rest = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\nab"
                  % (2 + len(rest)))
        if wire.read_message() is not None:
            wire.send(rest)
        return


def cut_by_reset(client):
    client.abort()


def cut_by_time(client):
    assert client.read_all() == b"ab"


@pytest.mark.parametrize("cut, times", [
    (cut_by_reset, ""),
    (cut_by_time, "timeout_idle = 50ms"),
    (cut_by_time, "timeout_total = 50ms"),
])
def test_a_connection_whose_response_was_cut_is_not_used_again(
        gateway, upstream, cut, times):
    server = upstream(interrupted)
    daemon = gateway(server.port, times, rest="[penstock]\nworkers = 1\n")
    a = Client(daemon.port)
    a.ask("/cut")
    a.read_until(b"\r\n\r\n")
    cut(a)
    a.close()
    daemon.wait_metric("penstock_exchanges", 0)
    with Client(daemon.port) as b:
        assert b.request("/b").body == b"mine"
    assert daemon.metric("penstock_pool_dialled_total") == 2


@pytest.mark.parametrize("raw", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nx\r\n",
    b"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n",
    b"HTTP/1.1 205 Reset Content\r\n\r\n",
])
def test_a_connection_in_doubt_is_not_used_again(gateway, upstream, raw):
    server = upstream(answering_with(raw, close=b"ab" in raw))
    daemon = gateway(server.port, rest="[penstock]\nworkers = 1\n")
    for n in 1, 2:
        with Client(daemon.port) as c:
            c.ask("/")
            c.read_until(b"\r\n\r\n")
        daemon.wait_metric("penstock_exchanges", 0)
        assert daemon.metric("penstock_pool_dialled_total") == n


def test_chunks_are_not_sent_to_a_server_of_http_1_0(gateway, upstream):
    server = upstream(answering_with(
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", close=True))
    daemon = gateway(server.port, rest="[penstock]\nworkers = 1\n")
    chunked = b"POST / HTTP/1.1\r\nHost: a\r\n" \
              b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
    with Client(daemon.port) as c:
        assert c.request("/").status == 200
    with Client(daemon.port) as c:
        c.send(chunked)
        assert c.read_message().is_failure(411, "length_required")


def test_what_comes_before_a_refused_upgrade_is_no_request(gateway, upstream):
    requests = []
    server = upstream(noting(requests))
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.send(b"GET /up HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n"
               b"Upgrade: websocket\r\n\r\nGET /early HTTP/1.1\r\n"
               b"Host: a\r\n\r\n")
        m = c.read_message()
        assert m.status == 200 and m.get("Connection") == "close"
        assert c.read_all() == b""
    assert [m.target for m in requests] == ["/up"]


def test_a_client_of_http_1_0_expects_nothing(gateway, upstream):
    requests = []
    server = upstream(noting(requests))
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.send(b"POST / HTTP/1.0\r\nContent-Length: 2\r\n"
               b"Expect: 100-continue\r\n\r\nab")
        assert c.read_message().status == 200
    assert requests[0].get("Expect") is None


@pytest.mark.parametrize("raw, reason", [
    (b"HTTP/1.1 20x OK\r\n\r\n", "response_invalid"),
    (b"", "upstream_closed"),
])
def test_what_a_server_does_wrong_is_counted_as_its(
        gateway, upstream, raw, reason):
    daemon = gateway(upstream(answering_with(raw, close=True)).port)
    with Client(daemon.port) as c:
        assert c.request("/").is_failure(502, reason)
    daemon.wait_metric("penstock_server_failures_total", 1)
