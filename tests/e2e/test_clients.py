# SPDX-License-Identifier: BSD-2-Clause
"""Programs that people use, as clients of penstock: each works.

Each goes one of three roads: through a gateway, through a forward proxy, or
through a tunnel that CONNECT has opened in one.  Bodies are compared byte by
byte, and what penstock has counted and logged must be what the client did.
"""

import http.client
import random
import re

import pytest

from penstock import Nginx
from servers import Apache, Book, Node, echo, run, run_node, said_of

ROADS = ("gateway", "forward", "connect")
BIG = random.Random(1).randbytes(3 << 20)


class Road:
    """A daemon between a client and the server on a port.

    `url` is the server's as the client is to ask for it; `proxy` is the
    proxy it has to use, or None.
    """

    def __init__(self, kind, daemon, book, origin):
        self.kind, self.daemon, self.book = kind, daemon, book
        self.origin, self.port = origin, daemon.port
        direct = kind == "gateway"
        self.url = f"http://127.0.0.1:{daemon.port if direct else origin}"
        self.proxy = None if direct else f"http://127.0.0.1:{daemon.port}"

    def curl(self, *arguments, given=b""):
        """What curl writes."""
        way = {"gateway": ["--noproxy", "*"],
               "forward": ["-x", self.proxy, "--noproxy", ""],
               "connect": ["-p", "-x", self.proxy, "--noproxy", "",
                           "--suppress-connect-headers"]}[self.kind]
        return run("curl", "-q", "-sS", "-m", 20, *way, *arguments,
                   given=given)

    def agrees(self, connections, **codes):
        """The daemon has counted this, which is what the client did.

        Through a tunnel it has only seen the connections.
        """
        if self.kind == "connect":
            codes = {"s200": connections}
            self.daemon.wait_count("tunnels", connections)
        self.book.agrees(self.daemon, **codes)


@pytest.fixture
def road(gateway, forward, tmp_path):
    """road(kind, origin): see Road."""
    def start(kind, origin):
        book = Book(tmp_path)
        if kind == "gateway":
            daemon = gateway(origin, rest=book.lines)
        else:
            daemon = forward("access = own", f"""
                [access own]
                allow = loopback
                allow_destination = loopback
                connect_ports = all
                {book.lines}
                """)
        return Road(kind, daemon, book, origin)
    return start


@pytest.fixture
def echoing(upstream):
    """A server that echoes, and notes in `.seen` what it was asked."""
    seen = []
    server = upstream(echo(seen))
    server.seen = seen
    return server


@pytest.fixture
def program():
    """program(server) starts one, which ends after the test."""
    servers = []

    def start(server):
        servers.append(server.start())
        return server
    yield start
    for server in servers:
        server.stop()


# --- curl ---

@pytest.mark.parametrize("kind", ROADS)
@pytest.mark.parametrize("option, version", [
    ("--http1.0", "1.0"), ("--http1.1", "1.1"), ("--http2", "1.1")])
def test_curl_of_each_version(road, echoing, kind, option, version):
    r = road(kind, echoing.port)
    out = r.curl(option, "-w", "<%{http_version} %{num_connects}>\n",
                 "-H", "X-Token: t", *[f"{r.url}/{i}" for i in range(3)])
    # The second and third use the connection of the first, unless they are
    # of 1.0; the version is that of the response.
    connections = [int(n) for n in re.findall(rb" (\d)>", out)]
    assert connections == ([1, 1, 1] if version == "1.0" else [1, 0, 0])
    assert re.sub(rb"<.*>\n", b"", out) == said_of("GET", "t", b"") * 3
    assert re.findall(rb"<(\S+)", out) == [b"1.1"] * 3
    assert [s.target for s in echoing.seen] == ["/0", "/1", "/2"]
    if kind != "connect":
        for s in echoing.seen:
            assert s.start.endswith("HTTP/1.1")
            assert s.get("Upgrade") is None
            assert s.get("HTTP2-Settings") is None
            assert s.all("Via") == [s.get("Via")]
            assert s.get("Via").startswith(f"{version} ")
    r.agrees(sum(connections), s200=3)


@pytest.mark.parametrize("kind", ROADS)
def test_curl_offers_h2c_and_is_not_taken_at_its_word(
        road, echoing, kind):
    """That curl does offer it shows where nobody but a tunnel is between."""
    r = road(kind, echoing.port)
    out = r.curl("-v", "--stderr", "-", "--http2", f"{r.url}/")
    offers = b"> Upgrade: h2c\r\n" in out
    assert offers or kind == "forward"
    assert (echoing.seen[0].get("Upgrade") == "h2c") == (kind == "connect")
    assert b"101 Switching" not in out
    r.agrees(1, s200=1)


@pytest.mark.parametrize("kind", ROADS)
def test_curl_waits_for_100_with_its_upload(road, echoing, kind, tmp_path):
    (tmp_path / "big").write_bytes(BIG)
    r = road(kind, echoing.port)
    # It would wait longer than it has time: so it was told to go on.
    out = r.curl("-i", "--expect100-timeout", 60, "-H",
                 "Expect: 100-continue", "-T", tmp_path / "big",
                 f"{r.url}/up")
    assert out.startswith(b"HTTP/1.1 100 Continue\r\n")
    assert out.split(b"\r\n\r\n", 2)[2] == said_of("PUT", "-", BIG)
    assert echoing.seen[0].get("Content-Length") == str(len(BIG))
    r.agrees(1, s200=1)


@pytest.mark.parametrize("kind", ROADS)
def test_curl_uploads_what_has_no_length(road, echoing, kind):
    r = road(kind, echoing.port)
    out = r.curl("-T", "-", f"{r.url}/up", given=BIG)
    assert out == said_of("PUT", "-", BIG)
    out = r.curl("-H", "Transfer-Encoding: chunked", "--data-binary", "@-",
                 f"{r.url}/post", given=BIG[:100001])
    assert out == said_of("POST", "-", BIG[:100001])
    for s in echoing.seen:
        assert s.get("Transfer-Encoding") == "chunked"
        assert s.get("Content-Length") is None
    r.agrees(2, s200=2)


@pytest.mark.parametrize("kind", ROADS)
def test_curl_asks_for_heads_and_ranges(road, nginx, kind):
    path = nginx.file("ranges", BIG)
    r = road(kind, nginx.port)
    head = r.curl("-I", r.url + path, r.url + path)
    assert head.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert head.count(b"Content-Length: %d\r\n" % len(BIG)) == 2
    assert r.curl("-r", "1000000-2999999", r.url + path) == \
        BIG[1000000:3000000]
    parts = r.curl("-r", "0-9,100-199", r.url + path)
    assert BIG[:10] in parts and BIG[100:200] in parts
    assert b"Content-Range: bytes 100-199/" in parts
    assert r.curl(r.url + path) == BIG
    r.agrees(4, s200=3, s206=2)


def trailing(wire):
    """A behaviour: two chunks and trailers to every request."""
    while wire.read_message() is not None:
        wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                  b"Trailer: X-Sum\r\n\r\n3\r\nabc\r\n2\r\nde\r\n"
                  b"0\r\nX-Sum: 5\r\nContent-Length: 9\r\n\r\n")


@pytest.mark.parametrize("kind", ROADS)
def test_curl_gets_the_trailers_that_it_asks_for(
        road, upstream, kind, tmp_path):
    r = road(kind, upstream(trailing).port)
    heads = []
    for asking in ([], ["-H", "TE: trailers", "-H", "Connection: TE"]):
        # What follows the content comes last among the fields.
        head = tmp_path / "head"
        assert r.curl("-D", head, *asking, f"{r.url}/") == b"abcde"
        heads.append(head.read_bytes())
    without, trailed = heads
    assert trailed.endswith(b"\r\n\r\nX-Sum: 5\r\n" + (
        b"Content-Length: 9\r\n" if kind == "connect" else b""))
    assert b"Trailer: X-Sum\r\n" in trailed
    if kind == "connect":
        assert without == trailed
    else:
        assert b"X-Sum" not in without and without.endswith(b"\r\n\r\n")
    r.agrees(2, s200=2)


# --- wget ---

def wget(road, *arguments):
    if road.proxy is None:
        how = ["--no-proxy"]
    else:
        how = ["-e", "use_proxy=yes", "-e", f"http_proxy={road.proxy}"]
    return run("wget", "--no-config", "-q", "-t", 1, "-T", 20, *how,
               *arguments, environment={"no_proxy": ""})


@pytest.mark.parametrize("kind", ["gateway", "forward"])
def test_wget_gets_and_sends_and_goes_on(road, nginx, tmp_path, kind):
    path = nginx.file("wget", BIG)
    r = road(kind, nginx.port)
    assert wget(r, "-O", "-", *[r.url + path] * 5) == BIG * 5
    wget(r, "--spider", r.url + path)
    part = tmp_path / "part"
    part.write_bytes(BIG[:1234567])
    wget(r, "-c", "-O", part, r.url + path)
    assert part.read_bytes() == BIG
    r.agrees(0, s200=6, s206=1)


@pytest.mark.parametrize("kind", ["gateway", "forward"])
def test_wget_posts_a_file(road, echoing, tmp_path, kind):
    (tmp_path / "body").write_bytes(BIG)
    r = road(kind, echoing.port)
    out = wget(r, "-O", "-", "--header=X-Token: t", "--method=PUT",
               f"--body-file={tmp_path}/body", f"{r.url}/x")
    assert out == said_of("PUT", "t", BIG)
    r.agrees(0, s200=1)


# --- ab ---

@pytest.mark.parametrize("kind", ["gateway", "forward"])
@pytest.mark.parametrize("body", [b"", BIG[:5000]], ids=["get", "post"])
def test_ab_keeps_eight_connections_busy(road, echoing, tmp_path, kind, body):
    r = road(kind, echoing.port)
    how = ["-X", f"127.0.0.1:{r.port}"] if r.proxy else []
    if body:
        (tmp_path / "body").write_bytes(body)
        how += ["-p", tmp_path / "body"]
    out = run("ab", "-q", "-k", "-n", 500, "-c", 8, "-H", "X-Token: t", *how,
              f"{r.url}/ab").decode()
    said = dict(re.findall(r"^([A-Z][^:\n]+): +(\d+)", out, re.M))
    assert (said["Complete requests"], said["Failed requests"]) == (
        "500", "0"), out
    assert "Non-2xx" not in out
    expected = said_of("POST" if body else "GET", "t", body)
    assert said["Document Length"] == str(len(expected))
    assert said["HTML transferred"] == str(500 * len(expected))
    # It is a client of HTTP/1.0: only a gateway may keep its connections.
    assert said["Keep-Alive requests"] == ("0" if r.proxy else "500")
    assert [s.body for s in echoing.seen] == [body] * 500
    r.agrees(0, s200=500)


# --- Python ---

@pytest.mark.parametrize("kind", ROADS)
def test_http_client_of_python(road, echoing, kind):
    r = road(kind, echoing.port)
    random_ = random.Random(kind)
    c = http.client.HTTPConnection("127.0.0.1", r.port, timeout=20)
    if kind == "connect":
        c.set_tunnel("127.0.0.1", r.origin)
    before = r.url if kind == "forward" else ""
    for i in range(60):
        method = ("GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS")[i % 6]
        body = b"" if method in ("GET", "HEAD") else \
            random_.randbytes(random_.randrange(100000))
        # Without a length it sends its pieces as chunks.
        cut = random_.randrange(len(body) + 1)
        pieces = iter(p for p in (body[:cut], body[cut:]) if p)
        c.request(method, f"{before}/{i}", pieces if i % 4 == 1 else body,
                  {"X-Token": f"t{i}"}, encode_chunked=True)
        answer = c.getresponse()
        assert answer.status == 200
        assert answer.getheader("X-Token") == f"t{i}"
        assert answer.read() == (
            b"" if method == "HEAD" else said_of(method, f"t{i}", body))
    c.close()
    assert [s.target for s in echoing.seen] == [f"/{i}" for i in range(60)]
    assert "chunked" in {s.get("Transfer-Encoding") for s in echoing.seen}
    r.daemon.wait_count("sessions", 1)
    r.agrees(1, s200=60)


# --- Node ---

@pytest.mark.parametrize("kind", ROADS)
def test_http_of_node(road, program, tmp_path, kind):
    node = program(Node(tmp_path / "node", "origin.js"))
    r = road(kind, node.port)

    def client(what):
        return run_node("client.js", what, kind, r.port, node.port)
    done = client("keepalive")
    assert done["requests"] == 100
    # Through https-proxy-agent nothing is kept alive.
    assert done["sockets"] == (100 if kind == "connect" else 4)
    assert client("chunked") == {"requests": 5}
    assert client("expect") == {"requests": 5, "continued": 5}
    assert client("upgrade") == {"requests": 1}
    assert len(node.asked()) == 111
    r.agrees(111, s200=110, s101=1)


@pytest.mark.parametrize("kind", ROADS)
def test_node_gets_the_trailers_that_it_asks_for(
        road, program, tmp_path, kind):
    node = program(Node(tmp_path / "node", "origin.js"))
    r = road(kind, node.port)
    got = run_node("client.js", "trailers", kind, r.port, node.port)["got"]
    if kind == "connect":
        assert got == [{"x-sum": "50000", "x-got": '{"x-mine":"1"}'}] * 2
    else:
        # Its own have not reached the server.
        assert got == [{}, {"x-sum": "50000", "x-got": "{}"}]
    r.agrees(2, s200=2)


@pytest.mark.parametrize("kind", ROADS)
def test_websockets_of_node(road, program, tmp_path, kind):
    node = program(Node(tmp_path / "node", "ws_server.js"))
    r = road(kind, node.port)
    done = run_node("ws_client.js", kind, r.port, node.port)
    assert done == {"sockets": 3, "received": 12}
    r.daemon.wait_metric("penstock_tunnels", 0)
    r.agrees(3, s101=3)


# --- other proxies before this one ---

def converse(port, count=60):
    """Ask the server on a port, which must echo; how often it was asked."""
    random_ = random.Random(port)
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    for i in range(count):
        method = ("GET", "POST", "HEAD", "PUT", "DELETE")[i % 5]
        body = random_.randbytes(i * 1009) if method in (
            "POST", "PUT") else b""
        pieces = iter([body[:999], body[999:]])
        c.request(method, f"/{i}?x=%20", pieces if i % 10 == 3 and
                  len(body) > 999 else body, {"X-Token": f"t{i}"},
                  encode_chunked=True)
        answer = c.getresponse()
        assert answer.status == 200
        assert answer.getheader("X-Token") == f"t{i}"
        assert answer.read() == (
            b"" if method == "HEAD" else said_of(method, f"t{i}", body))
    c.close()
    return count


def check_echoed(seen, count=60):
    """What came through converse() is what it has asked for."""
    assert [s.target for s in seen] == [f"/{i}?x=%20" for i in range(count)]
    assert {s.start.rsplit(" ")[2] for s in seen} == {"HTTP/1.1"}


def test_apache_passes_on_through_a_gateway(road, program, echoing, tmp_path):
    r = road("gateway", echoing.port)
    apache = program(Apache(tmp_path / "apache", f"""
        ProxyPass / {r.url}/ nocanon enablereuse=on keepalive=on
        """))
    n = converse(apache.port)
    check_echoed(echoing.seen)
    # One of its threads serves one client: it keeps its connection to us.
    assert r.daemon.count("sessions") < n
    r.agrees(0, s200=n)


def test_apache_passes_on_through_a_forward_proxy(
        road, program, echoing, tmp_path):
    r = road("forward", echoing.port)
    apache = program(Apache(tmp_path / "apache", f"""
        ProxyRemote http://127.0.0.1:{echoing.port} {r.proxy}
        ProxyPass / http://127.0.0.1:{echoing.port}/ nocanon
        """))
    n = converse(apache.port)
    check_echoed(echoing.seen)
    r.agrees(0, s200=n)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_nginx_passes_on_through_a_gateway(
        road, program, echoing, tmp_path, version):
    r = road("gateway", echoing.port)
    more = """
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_request_buffering off;
        """ if version == "1.1" else ""
    server = program(Nginx(tmp_path / "front", f"""
        location / {{
            proxy_pass http://penstock;
            {more}
        }}
        """, http=f"""
        upstream penstock {{
            server 127.0.0.1:{r.port};
            keepalive 4;
        }}
        """))
    n = converse(server.port)
    check_echoed(echoing.seen)
    assert {s.get("Via")[:3] for s in echoing.seen} == {version}
    assert r.daemon.count("sessions") == (1 if version == "1.1" else n)
    r.agrees(0, s200=n)
