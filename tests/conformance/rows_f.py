# SPDX-License-Identifier: BSD-2-Clause
"""Rows 168 to 193: connections, and what is about them only."""

from steps import (Await, CLOSE, EOF, FIN, Fill, HEAD, Mark, Quiet, REQUEST,
                   RST, Until)
from table import E, G, HIDDEN, K, OK, P, T, case, refused

FORWARD = b"GET http://a/ HTTP/1.1\r\nHost: a\r\n"
OLD = b"GET / HTTP/1.0\r\nHost: a\r\n"


def get(n):
    return b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % n


def length(n):
    return b"Content-Length: %d\r\n" % n


def both(row, name, fields, **more):
    """Fields of a GET through a gateway and a forward proxy."""
    case(row, f"{name}, gateway", client=G + fields + E, **more)
    case(row, f"{name}, forward", to="forward", client=FORWARD + fields + E,
         **more)


# --- fields that Connection names, or that are about the connection ---

both(168, "and close", b"Connection: X-Foo, close\r\nX-Foo: 1\r\nX-Bar: 2\r\n",
     ends="close", has=rb"(?im)^x-bar: 2\r$", lacks=rb"(?i)x-foo|connection:",
     got=rb"(?im)^connection: close\r$")
both(168, "in a response", b"", upstream=[
     K + b"Connection: X-Foo\r\nX-Foo: 1\r\nX-Bar: 2\r\nContent-Length: 2\r\n"
     b"\r\nok"],
     got=rb"(?im)^x-bar: 2\r$", got_not=rb"(?i)x-foo|connection:",
     connections=1)

both(169, "two lines, any case, before and after",
     b"X-A: 1\r\nConnection: x-a ,\tX-B\r\nx-B: 2\r\nX-C: 3\r\n"
     b"CONNECTION: x-c\r\nX-a: 4\r\nX-D: 5\r\n",
     has=rb"(?im)^x-d: 5\r$", lacks=rb"(?i)x-[abc]:|connection:")
both(169, "a list with holes",
     b"Connection: ,, x-a,, ,\r\nX-A: 1\r\n", lacks=rb"(?i)x-a:|connection:")
case(169, "three of one name", client=G + b"X-A: 1\r\nX-A: 2\r\n"
     b"Connection: x-a\r\nX-A: 3\r\n\r\n", lacks=rb"(?i)x-a:")
case(169, "a name that is part of others", client=G +
     b"Connection: x-a\r\nX-A: 1\r\nX-AA: 2\r\nX: 3\r\n\r\n",
     has=rb"(?im)^x-aa: 2\r\nx: 3\r$", lacks=rb"(?i)x-a:")
case(169, "what isn't there", client=G + b"Connection: x-a\r\n\r\n",
     lacks=rb"(?i)x-a|connection:")
case(169, "itself", client=G + b"Connection: connection\r\n\r\n",
     lacks=rb"(?i)connection")

for field in (b"Proxy-Connection: keep-alive", b"Keep-Alive: timeout=5, max=9",
              b"TE: gzip", b"Upgrade: websocket", b"Trailer: X-T",
              b"HTTP2-Settings: AAMAAABkAAQAAP__", b"Proxy-Authorization: x"):
    name = field.partition(b":")[0]
    both(170, name.decode(), field + E,
         lacks=rb"(?im)^" + name.lower() + b":")
for field in (b"Proxy-Connection: keep-alive", b"Keep-Alive: timeout=9",
              b"Upgrade: websocket"):
    name = field.partition(b":")[0]
    both(170, f"{name.decode()} in a response", b"",
         upstream=[K + field + b"\r\nContent-Length: 2\r\n\r\nok"],
         got_not=rb"(?im)^" + name.lower() + b":", connections=1)
case(170, "Transfer-Encoding", client=T + b"2\r\nok\r\n0\r\n\r\n",
     has=rb"(?im)^transfer-encoding: chunked\r$", body=b"ok",
     lacks=rb"(?i)(transfer-encoding.*){2}")

for name in (b"authorization", b"cookie", b"Content-Length",
             b"Transfer-Encoding", b"x-forwarded-for", b"X-Forwarded-Proto",
             b"x-forwarded-host", b"X-Forwarded-Port",
             b"x-forwarded-anything", b"Forwarded"):
    refused(171, name.decode(),
            client=G + b"Connection: cache-control, " + name + b"\r\n\r\n")
    refused(171, f"{name.decode()}, forward", to="forward",
            client=FORWARD + b"Connection: " + name + b", close\r\n\r\n")
    refused(171, f"{name.decode()} in a second line",
            client=G + b"Connection: keep-alive\r\nX: y\r\nConnection: x,," +
            name + b"\r\nCookie: a=b\r\n\r\n")
both(171, "Host stays", b"Connection: host\r\n",
     has=rb"(?i)\AGET / HTTP/1\.1\r\nhost: a\r\n")
both(171, "cache-control is removed",
     b"Connection: cache-control\r\nCache-Control: no-cache\r\n",
     lacks=rb"(?i)cache-control")

# --- who closes ---

for value in (b"close", b"Close", b"CLOSE", b"close, keep-alive",
              b"keep-alive, close", b"x, close, y", b"close,close"):
    both(172, value.decode(), b"Connection: " + value + E, ends="close",
         got=rb"(?im)^connection: close\r$", lacks=rb"(?i)connection:")
case(172, "two lines", client=G + b"Connection: keep-alive\r\n"
     b"Connection: close\r\n\r\n", ends="close")
case(172, "two lines, close first", client=G + b"Connection: close\r\n"
     b"Connection: keep-alive\r\n\r\n", ends="close")

for value in (b"close\t", b"\tclose", b"close\t,x", b"x,\tclose", b" close ",
              b",close,", b"keep-alive\t,\tclose"):
    both(173, repr(value)[2:-1], b"Connection:" + value + E, ends="close",
         got=rb"(?im)^connection: close\r$")

for value in (b'"close"', b"closed", b"xclose", b"close;x", b"clos",
              b"close x", b"close=1", b"close/1", b"c lose", b""):
    both(174, repr(value)[2:-1], b"Connection: " + value + E,
         got_not=rb"(?i)connection:", lacks=rb"(?i)connection:")

for value in (b"close", b"keep-alive", b"keep-alive, close"):
    both(175, value.decode(), b"Proxy-Connection: " + value + E,
         lacks=rb"(?i)connection:", got_not=rb"(?i)connection:")
case(175, "keep-alive and Connection: close", ends="close",
     client=G + b"Proxy-Connection: keep-alive\r\nConnection: close\r\n\r\n")

for value in (b"keep-alive", b"Keep-Alive", b"keep-alive, x"):
    case(176, value.decode(), to="forward", ends="close",
         client=b"GET http://a/ HTTP/1.0\r\nConnection: " + value +
         b"\r\n\r\n" + HIDDEN, seen=b"GET /", text=b"<GET />",
         got=rb"(?im)^connection: close\r$")
case(176, "Proxy-Connection", to="forward", ends="close",
     client=b"GET http://a/ HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\r\n",
     got=rb"(?im)^connection: close\r$", lacks=rb"(?i)connection:")

case(177, client=OLD + b"Connection: keep-alive\r\n\r\n",
     got=[rb"(?im)^connection: keep-alive\r$", rb"(?im)^content-length: 7\r$"])
case(177, "without", client=OLD + E + HIDDEN, ends="close", seen=b"GET /",
     got=rb"(?im)^connection: close\r$")
case(177, "close", client=OLD + b"Connection: keep-alive, close\r\n\r\n",
     ends="close", got=rb"(?im)^connection: close\r$")
case(177, "two", client=(OLD + b"Connection: Keep-Alive\r\n\r\n") * 2,
     status=[200, 200])
case(177, "then without", ends="close", status=[200, 200],
     client=OLD + b"Connection: Keep-Alive\r\n\r\n" + OLD + E)
case(177, "a body without a length", ends="close", text=b"abc",
     client=OLD + b"Connection: keep-alive\r\n\r\n",
     upstream=[(REQUEST, K + E + b"abc", FIN, EOF)],
     got=rb"(?im)^connection: close\r$", got_not=rb"(?i)keep-alive")
case(177, "an answer of our own", ends="close", status=431,
     client=OLD + b"Connection: keep-alive\r\n" + b"a: b\r\n" * 101 + E)

both(178, "GET", b"Connection: close\r\n\r\n" + HIDDEN[:-2], ends="close",
     seen=b"GET /", got=rb"(?im)^connection: close\r$")
case(178, "after a body", client=P + length(2) +
     b"Connection: close\r\n\r\nok" + HIDDEN, ends="close", seen=b"POST /",
     body=b"ok", got=rb"(?im)^connection: close\r$")
case(178, "after chunks", client=P + b"Connection: close\r\n"
     b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n" + HIDDEN,
     ends="close", seen=b"POST /", body=b"ok",
     got=rb"(?im)^connection: close\r$")
case(178, "while the upstream is slow",
     clients=[[G + b"Connection: close\r\n\r\n", Await("got"), HIDDEN,
               Mark("sent")]],
     upstream=[(REQUEST, Mark("got"), Await("sent"), OK)], ends="close",
     seen=b"GET /", text=b"ok")

refused(179, "a request that can't be read",
        client=G + b"Host: b\r\n\r\n" + HIDDEN * 3)
case(179, "the second asks for close", ends="close", status=[200, 200],
     client=G + E + G + b"Connection: close\r\n\r\n" + HIDDEN * 3,
     seen=[b"GET /", b"GET /"], got_not=rb"hidden")
case(179, "a response without a length, to 1.0", ends="close", text=b"abc",
     client=OLD + b"Connection: keep-alive\r\n\r\n" + HIDDEN * 3,
     upstream=[(REQUEST, K + E + b"abc", FIN, EOF)], seen=b"GET /")

# --- early answers to requests with bodies ---

BODY = HIDDEN * 10
MANY = HIDDEN * 3000
DENIED = b"POST http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n"
case(180, "a small body", to="forward", status=403, seen=(),
     client=DENIED + length(len(BODY)) + E + BODY)
case(180, "a small body in two parts", to="forward", status=403, seen=(),
     client=[DENIED + length(len(BODY)) + E + BODY[:50],
             Until(b"\r\n\r\n"), BODY[50:]])
refused(180, "chunked", to="forward", status=403,
        client=DENIED + b"Transfer-Encoding: chunked\r\n\r\n" +
        b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n" + HIDDEN)
refused(180, "a large body", to="forward", status=403,
        client=DENIED + length(len(MANY)) + E + MANY + HIDDEN)
refused(180, "a body that may be kept back", status=417,
        client=P + b"Expect: banana\r\n" + length(len(BODY)) + E + BODY)
case(180, "an upstream's 401, the body is dropped",
     client=[P + length(len(BODY)) + E + BODY[:50], Until(b"\r\n\r\n"),
             BODY[50:] + HIDDEN],
     upstream=[(HEAD, b"HTTP/1.1 401 N\r\n" + length(2) + E + b"no",
                EOF)],
     status=401, ends="close", seen=b"POST /", got_not=rb"<GET /hidden>")

MEGABYTE = b"m" * 1_000_000
refused(181, "413 by length", to="gateway_limited", status=413,
        client=P + length(len(MEGABYTE)) + E + MEGABYTE,
        got=[rb"(?im)^connection: close\r$", rb"(?s)\r\n\r\n413 .*\n\Z"])
refused(181, "413 by length, before the body", to="gateway_limited",
        status=413, clients=[[P + length(len(MEGABYTE)) + E,
                              Until(b"\r\n\r\n413 "), MEGABYTE]])
# The daemon has one worker: when it has answered another client, who asked
# after the first one's end, it knows of that.
LATER = [Await("fin"), b"OPTIONS http://a/ HTTP/1.1\r\nHost: a\r\n"
         b"Max-Forwards: 0\r\n\r\n", Until(E + E), Mark("known")]


def after_fin(row, name, requests, answer=OK, to="gateway", **more):
    """A client that ends its side, which is known before the answer."""
    case(row, name, to=to, clients=[[requests, FIN, Mark("fin")], LATER],
         upstream=[(REQUEST, Await("known"), answer)], ends="close",
         status=[200] * (more.pop("answers", 1) + 1), **more)


for name, to, requests in (
        ("GET", "gateway", G + E), ("forward", "forward", FORWARD + E),
        ("a body", "gateway", P + length(2) + E + b"ok"),
        ("chunks", "gateway", T + b"2\r\nok\r\n0\r\n\r\n")):
    after_fin(182, name, requests, to=to, got=rb"\r\n\r\nok\Z")
after_fin(182, "three requests", get(1) + get(2) + get(3), answers=3,
          got=rb"(?s)ok.*2>.*3>\Z", seen=[b"GET /1", b"GET /2", b"GET /3"])
after_fin(182, "a large response", G + E,
          K + length(len(MEGABYTE)) + E + MEGABYTE, text=MEGABYTE)

# --- pipelining ---

case(183, "the first is slow",
     client=[b"".join(get(n) for n in range(1, 6)), Mark("sent")],
     upstream=[(REQUEST, Await("sent"), Quiet(0.05),
                K + length(4) + E + b"slow")], status=[200] * 5,
     seen=[b"GET /%d" % n for n in range(1, 6)],
     got=rb"(?s)slow.*/2>.*/3>.*/4>.*/5>", connections=1)
case(183, "five that end in their own way", client=b"".join(
     get(n) for n in range(1, 6)), status=[200, 204, 200, 304, 404],
     upstream=[(REQUEST, OK, REQUEST, b"HTTP/1.1 204 N\r\n\r\n", REQUEST,
                K + b"Transfer-Encoding: chunked\r\n\r\n1\r\n3\r\n0\r\n\r\n",
                REQUEST, b"HTTP/1.1 304 N\r\n\r\n", REQUEST,
                b"HTTP/1.1 404 N\r\n" + length(1) + E + b"5")],
     connections=1)
case(183, "each on a connection of its own", client=b"".join(
     get(n) for n in range(1, 6)), status=[200] * 5, connections=6,
     upstream=[(REQUEST, K + b"Connection: close\r\nContent-Length: 1\r\n\r\n"
                b"%d" % n, EOF) for n in range(1, 6)],
     got=rb"(?s)\r\n1HTTP.*\r\n2HTTP.*\r\n3HTTP.*\r\n4HTTP.*\r\n5HTTP")
case(183, "two hosts", to="forward", status=[200, 200], connections=2,
     client=[b"GET http://a/1 HTTP/1.1\r\nHost: a\r\n\r\n"
             b"GET http://b:81/2 HTTP/1.1\r\nHost: b:81\r\n\r\n",
             Mark("sent")],
     upstream=[(REQUEST, Await("sent"), Quiet(0.05), OK)],
     seen=[b"GET /1", b"GET /2"], got=rb"(?s)ok.*/2>")

for name, garbage in (("a control", b"\0"), ("a line", b"garbage\r\n\r\n"),
                      ("no Host", b"GET / HTTP/1.1\r\n\r\n"),
                      ("a bare LF", b"GET / HTTP/1.1\nHost: a\n\n"),
                      ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
                      ("CL and TE", P + length(2) +
                       b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")):
    case(184, name, client=G + E + garbage + HIDDEN, status=[200, 400],
         ends="close", seen=b"GET /", reason="bad_request",
         got=rb"(?s)<GET />HTTP/1\.1 400 ")
    case(184, f"{name}, after a body", client=P + length(2) + E + b"ok" +
         garbage + HIDDEN, status=[200, 400], ends="close", seen=b"POST /",
         body=b"ok", reason="bad_request")

# The requests that follow wait with the kernel, and at last with the client.
case(185, "behind a slow upstream",
     clients=[[G + E, Fill(G + E), RST, Mark("gone"), Await("over")]],
     upstream=[(REQUEST, Await("gone"), OK, EOF, Mark("over"))],
     ends="gone", status=(),
     seen=b"GET /", reason="client_closed", connections=1)
case(185, "behind a response that nobody reads",
     clients=[[G + E, Fill(G + E), RST, Await("over")]],
     upstream=[(REQUEST, K + length(1 << 25) + E + b"x" * (1 << 25), EOF,
                Mark("over"))],
     ends="gone", status=(), seen=b"GET /", reason="client_closed",
     connections=1)
case(185, "2000 are answered", client=get(1) * 2000, status=[200] * 2000,
     connections=1)

PAIRS = ((P + length(5) + E + b"hello", b"hello"),
         (T + b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
         (T + b"5;a=b\r\nhello\r\n0\r\nX-T: y\r\n\r\n", b"hello"),
         (P + length(0) + E, b""), (P + E, b""), (T + b"0\r\n\r\n", b""),
         (P + length(len(HIDDEN)) + E + HIDDEN, HIDDEN))
for n, (one, body) in enumerate(PAIRS):
    case(186, f"form {n}", client=one + get(2), status=[200, 200], body=body,
         seen=[b"POST /", b"GET /2"], got=rb"(?s)<POST />.*<GET /2>")
    for cut in (1, 2, 3, 4) if body else ():
        case(186, f"form {n}, {cut} bytes with the next", body=body,
             client=[one[:-cut], Await("head"), one[-cut:] + get(2)],
             upstream=[(HEAD, Mark("head"), REQUEST, OK)],
             status=[200, 200], seen=[b"POST /", b"GET /2"], connections=1)
case(186, "all forms", client=b"".join(one for one, _ in PAIRS) + get(2),
     status=[200] * (len(PAIRS) + 1),
     seen=[b"POST /"] * len(PAIRS) + [b"GET /2"], connections=1)

# --- upstreams that close a connection just when it is used again ---

POST = P + length(5) + E + b"hello"
PUT = POST.replace(b"POST", b"PUT")
AGAIN = [G + E, Until(b"ok")]

for name, end in (("FIN", CLOSE), ("RST", RST)):
    for to in ("gateway", "forward"):
        site = b"http://a/" if to == "forward" else b"/"
        post = POST.replace(b" / ", b" %s2 " % site)
        first = [(G + E).replace(b" / ", b" %s " % site), Until(b"ok")]
        case(187, f"{name}, {to}", to=to, client=first + [post],
             upstream=[(REQUEST, OK, REQUEST, end)], status=[200, 502],
             reason="upstream_closed", seen=[b"GET /", b"POST /2"],
             connections=2)
        case(188, f"{name}, {to}", to=to,
             client=first + [get(2).replace(b"/2", site + b"2")],
             upstream=[(REQUEST, OK, REQUEST, end), OK], status=[200, 200],
             seen=[b"GET /", b"GET /2", b"GET /2"], connections=2)
    case(187, f"{name}, PATCH",
         client=AGAIN + [POST.replace(b"POST", b"PATCH")],
         upstream=[(REQUEST, OK, REQUEST, end)], status=[200, 502],
         reason="upstream_closed", seen=[b"GET /", b"PATCH /"], connections=2)
    case(187, f"{name}, without a body", client=AGAIN + [P + E],
         upstream=[(REQUEST, OK, REQUEST, end)], status=[200, 502],
         reason="upstream_closed", seen=[b"GET /", b"POST /"], connections=2)
    case(187, f"{name}, another client's",
         clients=[[*AGAIN, Mark("idle"), Await("over")],
                  [Await("idle"), POST, Until(b" 502 "), Until(E + E),
                   Mark("over")]],
         upstream=[(REQUEST, OK, REQUEST, end)],
         status=[200, 502], seen=[b"GET /", b"POST /"], connections=2)
    case(188, f"{name}, only once", client=AGAIN + [get(2)],
         upstream=[(REQUEST, OK, REQUEST, end), (REQUEST, end)],
         status=[200, 502], reason="upstream_closed",
         seen=[b"GET /", b"GET /2", b"GET /2"], connections=3)
    case(188, f"{name}, not on a fresh connection", client=get(2),
         upstream=[(REQUEST, end)], status=502, reason="upstream_closed",
         seen=b"GET /2", connections=2)
    case(188, f"{name}, a body is sent again", client=AGAIN + [PUT],
         upstream=[(REQUEST, OK, REQUEST, end), (REQUEST, OK)],
         status=[200, 200], seen=[b"GET /", b"PUT /", b"PUT /"],
         has=rb"\r\n\r\nhello(?s:.*)\r\n\r\nhello", connections=2)
    case(188, f"{name}, a body of 65 KiB is not",
         client=AGAIN + [PUT.replace(b"5\r", b"66565\r") + b"x" * 66560,
                         Until(b" 502 "), Until(E + E)],
         upstream=[(REQUEST, OK, REQUEST, end)], status=[200, 502],
         seen=[b"GET /", b"PUT /"], reason="upstream_closed")
for part in (b"H", b"HTTP/1.1 200", K + b"X: y\r\n",
             b"HTTP/1.1 103 E\r\n\r\n"):
    case(188, f"not after {part!r}", client=AGAIN + [get(2)],
         upstream=[(REQUEST, OK, REQUEST, part, CLOSE)], status=[200, 502],
         reason="upstream_closed", seen=[b"GET /", b"GET /2"], connections=2)

# --- clients that leave, or do nothing ---

case(189, "a reset", clients=[[G + E, Await("got"), RST, Await("over")]],
     upstream=[(REQUEST, Mark("got"), EOF, Mark("over"))],
     ends="gone", status=(),
     reason="client_closed", connections=1)
case(189, "a reset while the body comes",
     clients=[[P + length(9) + E + b"hello", Await("got"), RST,
               Await("over")]],
     upstream=[(HEAD, Mark("got"), EOF, Mark("over"))],
     ends="gone", status=(),
     reason="client_closed", connections=1)
case(189, "an end while the body comes",
     clients=[[P + length(9) + E + b"hello", Await("got"), FIN, EOF,
               Await("over")]],
     upstream=[(HEAD, Mark("got"), EOF, Mark("over"))],
     ends="close", status=(), reason="client_closed", connections=1)
case(189, "an end, which may be half of one", to="gateway_short",
     clients=[[G + E, Await("got"), FIN]], ends="close", status=504,
     upstream=[(REQUEST, Mark("got"), EOF)], reason="response_timeout")
after_fin(189, "an end, and an answer after it", G + E, text=b"ok")

case(190, to="gateway_short", client=G + E, ends="close",
     got=rb"<GET />\Z", got_not=rb"(?i)connection: close")
case(190, "after two", to="gateway_short", client=get(1) + get(2),
     status=[200, 200], ends="close", got=rb"<GET /2>\Z")
case(190, "after a refusal that keeps it", to="gateway_short",
     client=P + b"Expect: banana\r\n\r\n", status=417, ends="close")

case(191, "nothing", to="gateway_short", status=(), seen=(), ends="close",
     got=rb"\A\Z")
for part in (b"G", b"GET / HTTP/1.1\r\n", G, G + b"\r", b"\r\n"):
    refused(191, repr(part)[2:-1], to="gateway_short", client=part,
            status=408, reason="request_timeout")
case(191, "after a request", to="gateway_short", client=G + E + G,
     status=[200, 408], seen=b"GET /", ends="close", reason="request_timeout")
