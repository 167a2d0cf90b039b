# SPDX-License-Identifier: BSD-2-Clause
"""What real servers saw of a stream of requests, beside what we say.

The same stream goes through a gateway to nginx, Apache httpd, lighttpd and
Node's http server.  Where a message ends must be the same for all: each
server has logged exactly the requests that penstock has logged as sent to
it, which are those of the stream, and each request got its own answer.
"""

import collections
import dataclasses
import itertools
import pathlib
import random
import re

import pytest

from penstock import Client, Pieces, PROGRAM
from servers import (Apache, Book, Lighttpd, LoggingNginx, Node, echo,
                     said_of)

TRICKLE = pathlib.Path(PROGRAM).parent / "tests" / "conformance" / "trickle.so"

# How many bytes the daemon gets of what has come, each time that it reads,
# from clients and from servers: all, that many, or a line (see trickle.c).
CUTS = (0, 1, -1, 7, 0, 100)

CONNECTIONS = 72
SEED = "opinions"


@dataclasses.dataclass
class Asked:
    """A request as it is sent, and what has to come of it.

    status: 200, or that of its refusal, after which the connection ends;
    waits: the body is sent when the server wants it; sent_on: the target
    that the server has to see; ends: the connection ends after it.
    """
    method: str
    token: str
    head: bytes
    raw_body: bytes = b""
    body: bytes = b""
    sent_on: str = ""
    status: int = 200
    waits: bool = False
    ends: bool = False


# --- the stream ---

# With {} for what makes it unlike all others; what the server has to see.
TARGETS = (
    ("/{}", "/{}"), ("/{}?x=%20&y=[]", "/{}?x=%20&y=[]"), ("//{}", "//{}"),
    ("/a/../{}", "/a/../{}"), ("/{}/.", "/{}/."), ("/{}?", "/{}?"),
    ("/?{}?/?", "/?{}?/?"), ("/{};p=1/~!$&'()*+,:@", "/{};p=1/~!$&'()*+,:@"),
    ("/%7e{}%2f%2E", "/%7e{}%2f%2E"), ("http://b.test/{}", "/{}"),
    ("http://b.test:80/{}?http://c/", "/{}?http://c/"),
    ("http://b.test?{}", "/?{}"), ("/http://c/{}", "/http://c/{}"),
)

# Legal, and of no meaning to anybody between client and server.
FIELDS = (
    b"X-Empty:", b"X-Blank: \t ", b"X-Tab: a\tb", b"X-Obs: \x80\xff\xc3\xa9",
    b'X-Quote: "a\\"b, c"; q', b"X-Long: " + b"v" * 4000, b"x-CaSe:y",
    b"X-Twice: 1\r\nX-Other: 2\r\nX-Twice: 3", b"X-Colon: GET / HTTP/1.1",
    b"X-Length: Content-Length: 5", b"X_Under: 5", b"Content_Length: 5",
    b"Via: 1.0 fred, 1.1 b (Content-Length: 3)", b"TE: trailers",
    b"Connection: TE, X-Mine\r\nX-Mine: gone", b"Connection: ,,keep-alive,",
    b"Keep-Alive: timeout=5", b"Proxy-Connection: close", b"Accept: */*",
    b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c",
    b"X-!#$%&'*+.^`|~: a", b"Cookie: a=b; c=d", b"Max-Forwards: 5",
    b"\r\n".join(b"X-Many-%d: %d" % (i, i) for i in range(70)),
)

# What is refused before anything is sent on, with {} for a target.
REFUSED = (
    (400, "POST", b"POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
                  b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    (400, "POST", b"POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
                  b"Content-Length: 2\r\n\r\nxx"),
    (400, "POST", b"POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n"
                  b"\r\n"),
    (400, "POST", b"POST {} HTTP/1.0\r\nHost: a\r\n"
                  b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    (400, "POST", b"POST {} HTTP/1.1\r\nHost: a\r\n"
                  b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    (400, "GET", b"GET {} HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n"),
    (400, "GET", b"GET {} HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n"),
    (400, "GET", b"GET {} HTTP/1.1\r\nHost: a\r\n: a\r\n\r\n"),
    (400, "GET", b"GET {} HTTP/1.1\nHost: a\n\n"),
    (400, "GET", b"GET {} HTTP/1.1\r\nHost: a\r\n\n"),
    (400, "GET", b"GET {} HTTP/1.1\r\n\r\n"),
    (400, "GET", b"GET {} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    (400, "GET", b"GET {}#f HTTP/1.1\r\nHost: a\r\n\r\n"),
    (400, "GET", b"GET {} b HTTP/1.1\r\nHost: a\r\n\r\n"),
    (501, "FOO", b"FOO {} HTTP/1.1\r\nHost: a\r\n\r\n"),
    (505, "GET", b"GET {} HTTP/2.0\r\nHost: a\r\n\r\n"),
)


# What is no chunk, after one that is.
BROKEN = (b"x\r\n", b"3\r\nabcd\r\n", b"1\nx\n", b"-1\r\nx\r\n",
          b"2\r\nabXX0\r\n\r\n", b"0\r\n\n")


def chunks_of(r, body):
    """The body as chunks of odd sizes, in odd spellings; with a trailer."""
    out = b""
    while body:
        n = min(r.choice((1, 2, 7, 255, 256, 4097)), len(body))
        size = b"%x" % n
        size = r.choice((size, size.upper(), b"000" + size))
        out += size + r.choice((b"", b"", b";a", b";a=b", b';a="b;c"')) + \
            b"\r\n" + body[:n] + b"\r\n"
        body = body[n:]
    return out + r.choice((b"0", b"000", b"0;last=1")) + b"\r\n" + \
        r.choice((b"", b"", b"X-T: 1\r\n", b"Content-Length: 3\r\n")) + b"\r\n"


def a_request(r, n):
    """A request that is to be answered."""
    method = r.choice(("GET", "GET", "HEAD", "POST", "POST", "PUT", "PATCH",
                       "DELETE", "OPTIONS", "PROPFIND"))
    token = f"t{n}"
    target, seen = (t.format(f"r{n}") for t in r.choice(TARGETS))
    lines = [f"Host: a{n}.test".encode(), r.choice(
        (b"X-Token: ", b"x-token:", b"X-TOKEN:\t ")) + token.encode()]
    lines += r.sample(FIELDS, r.choice((0, 1, 3)))
    a = Asked(method, token, b"", sent_on=seen)
    old = r.random() < 0.1
    if method in ("POST", "PUT", "PATCH") or (
            method != "HEAD" and r.random() < 0.3):
        a.body = r.randbytes(r.choice((0, 1, 5, 100, 2000, 9000)))
        # What looks like a request is none where it is content.
        if r.random() < 0.3:
            a.body += b"\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
        if not old and r.random() < 0.5:
            lines.append(r.choice((b"Transfer-Encoding: chunked",
                                   b"transfer-encoding:  ChUnKeD")))
            a.raw_body = chunks_of(r, a.body)
        else:
            lines.append(r.choice((b"Content-Length: %d",
                                   b"content-length:00%d")) % len(a.body))
            a.raw_body = a.body
        if r.random() < 0.2:
            lines.append(b"Expect: 100-continue")
            a.waits = not old and bool(a.body) and r.random() < 0.7
    if old:
        a.ends = r.random() < 0.5
        lines = [x for x in lines if b"Connection:" not in x]
        if not a.ends:
            lines.append(b"Connection: keep-alive")
    elif r.random() < 0.05:
        lines.append(b"Connection: close")
        a.ends = True
    r.shuffle(lines)
    start = f"{method} {target} HTTP/1.{0 if old else 1}".encode()
    a.head = r.choice((b"", b"", b"\r\n")) + b"\r\n".join(
        [start, *lines, b"", b""])
    return a


def a_refused_one(n, row):
    status, method, raw = row
    return Asked(method, "", raw.replace(b"{}", b"/refused%d" % n) +
                 b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
                 status=status, ends=True)


def a_broken_one(n, bad):
    """A request whose body turns out to be none, perhaps after it was sent.

    A server may have logged its head: nobody may have got it whole.
    """
    return Asked("POST", "broken", b"POST /broken%d HTTP/1.1\r\nHost: a\r\n"
                 b"X-Token: broken\r\nTransfer-Encoding: chunked\r\n\r\n" % n,
                 b"1\r\ny\r\n" + bad +
                 b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
                 status=400, ends=True)


def stream(seed):
    """Connections, each a list of requests that are sent on it."""
    r = random.Random(seed)
    refused, broken = itertools.cycle(REFUSED), itertools.cycle(BROKEN)
    n = 0
    for i in range(CONNECTIONS):
        asked = []
        for _ in range(r.choice((1, 2, 3, 5, 8))):
            asked.append(a_request(r, n))
            n += 1
            if asked[-1].ends:
                break
        else:
            if i % 9 == 1:
                asked.append(a_broken_one(i, next(broken)))
            elif i % 3:
                asked.append(a_refused_one(i, next(refused)))
        yield asked


# --- the conversation ---

def take(c, asked):
    """Read the answer to a request, and see that it is its own."""
    m = c.read_message(to_head=asked.method == "HEAD")
    assert m is not None and m.status == asked.status, (asked, m)
    if asked.status == 200:
        assert m.get("X-Token") == asked.token, (asked, m)
        assert m.body == (b"" if asked.method == "HEAD" else said_of(
            asked.method, asked.token, asked.body)), (asked, m)
    else:
        assert m.get("Connection") == "close"


def converse(c, asked):
    """Send requests, as many ahead as can be, and take their answers."""
    pending, owed = b"", []
    for a in asked:
        pending += a.head
        if a.waits:
            c.send(pending)
            for before in owed:
                take(c, before)
            pending, owed = b"", []
            assert c.read_message(interim=True).status == 100, a
        pending += a.raw_body
        owed.append(a)
    c.send(pending)
    for a in owed:
        take(c, a)
    if asked[-1].ends:
        assert c.at_end(), asked[-1]


# --- the servers ---

SERVERS = {
    # The first three ask another server for their answers.
    "nginx": lambda folder, behind: LoggingNginx(folder, f"""
        location / {{ proxy_pass http://127.0.0.1:{behind.port}; }}
        """),
    "apache": lambda folder, behind: Apache(folder, f"""
        ProxyPass / http://127.0.0.1:{behind.port}/ nocanon
        """),
    "lighttpd": lambda folder, behind: Lighttpd(folder, behind.port),
    "node": lambda folder, behind: Node(folder, "origin.js"),
}


@pytest.fixture(params=SERVERS)
def server(request, upstream, tmp_path):
    """A real server; what is behind it notes in `.whole` what it got."""
    whole = []
    s = SERVERS[request.param](tmp_path / request.param,
                               upstream(echo(whole))).start()
    s.whole, s.is_before_another = whole, request.param != "node"
    yield s
    if s.process.poll() is None:
        s.stop()


def differences(ours, theirs):
    """What one list of requests has that the other has not."""
    ours, theirs = collections.Counter(ours), collections.Counter(theirs)
    return list((ours - theirs).elements()), list((theirs - ours).elements())


def path_of(entry):
    """The target of an entry of the log, as it was sent on."""
    target = re.sub(r"^http://[^/?]*", "", entry["target"])
    return target if target.startswith("/") else "/" + target


def test_a_server_sees_the_requests_that_penstock_says_it_sent(
        gateway, server, tmp_path):
    assert TRICKLE.exists(), f"{TRICKLE} is missing; make check makes it"
    book, pieces = Book(tmp_path), Pieces(TRICKLE, tmp_path)
    daemon = gateway(server.port, rest=book.lines,
                     environment=pieces.environment)
    connections = list(stream(SEED))
    for n, asked in enumerate(connections):
        pieces.set(CUTS[n % len(CUTS)])
        with Client(daemon.port) as c:
            converse(c, asked)
    everything = [a for asked in connections for a in asked]
    entries = book.wait(len(everything))
    daemon.settled()
    server.stop()
    assert pieces.cuts() > 0

    # One line for each request, and none for what was inside of others.
    assert differences([a.status for a in everything],
                       [e["status"] for e in entries]) == ([], [])
    expected = [(a.method, a.sent_on) for a in everything if a.status == 200]
    assert len(expected) >= 200
    # A head whose body was broken may have been sent on before it broke.
    said = [(e["method"], path_of(e)) for e in entries if "server" in e]
    said = [x for x in said if not x[1].startswith("/broken")]
    seen = [x for x in server.asked() if not x[1].startswith("/broken")]
    assert differences(expected, said) == ([], [])
    assert differences(said, seen) == ([], [])
    # What stands behind the server has seen them whole, and no broken one.
    if server.is_before_another:
        assert len(server.whole) == len(expected)
        assert differences([a.token for a in everything if a.status == 200],
                           [m.get("X-Token") for m in server.whole]) == (
                               [], [])
