# SPDX-License-Identifier: BSD-2-Clause
"""Rows 86 to 109 and 128 to 132: how long a request is, and who says so.

Wherever two readers could disagree, the bytes after the head hold a request
that only a reader of the other opinion would see.
"""

from steps import Await, CLOSE, Content, EOF, FIN, HEAD, Mark, RST, Until
from table import E, G, HIDDEN, P, T, case, refused

CHUNKED = b"Transfer-Encoding: chunked\r\n"
LAST = b"0\r\n\r\n"
# What is asked for on a listener, and what hides there.
SITES = {"gateway": b"", "forward": b"http://a"}


def ask(to, fields, method=b"POST", target=b"/"):
    """A request's head, in the form that the listener takes."""
    return (method + b" " + SITES[to] + target + b" HTTP/1.1\r\nHost: a\r\n" +
            fields + E)


def hidden(to):
    return ask(to, b"", b"GET", b"/hidden")


def length(n):
    return b"Content-Length: %d\r\n" % n


def refused_fields(row, name, fields, body=LAST, **more):
    """These fields frame nothing, whoever is asked."""
    for to in SITES:
        refused(row, f"{name}, {to}", to=to,
                client=ask(to, fields) + body + hidden(to), **more)


# --- both of them, and the ways to write them ---

MANY = b"".join(b"X-%d: 1\r\n" % i for i in range(20))
refused_fields(86, "length 5", length(5) + CHUNKED)
refused_fields(86, "length 0", length(0) + CHUNKED)
refused_fields(86, "the length of the chunks", length(10) + CHUNKED,
               b"5\r\nhello\r\n0\r\n\r\n")
for name, fields in (
        ("reverse order", CHUNKED + length(5)),
        ("mixed case", CHUNKED + b"cONTENT-lENGTH: 5\r\n"),
        ("mixed case of both", b"tRANSFER-eNCODING: cHUNKED\r\n"
         b"CONTENT-LENGTH: 5\r\n"),
        ("20 fields between", CHUNKED + MANY + length(5)),
        ("20 fields between, reverse", length(5) + MANY + CHUNKED),
        ("length between two codings", CHUNKED + length(5) + CHUNKED),
        ("coding between two lengths", length(5) + CHUNKED + length(5)),
        ("length is named by Connection",
         CHUNKED + b"Connection: content-length\r\n" + length(5)),
        ("coding is named by Connection",
         CHUNKED + b"Connection: transfer-encoding\r\n" + length(5)),
        ("no number", CHUNKED + b"Content-Length: x\r\n"),
        ("empty length", CHUNKED + b"Content-Length:\r\n"),
        ("unknown coding", b"Transfer-Encoding: x\r\n" + length(5)),
        ("coding before chunked",
         b"Transfer-Encoding: gzip, chunked\r\n" + length(5)),
        ("empty coding", b"Transfer-Encoding:\r\n" + length(5))):
    refused_fields(87, name, fields)

# --- codings ---

for value in (b"chunked, identity", b"gzip", b"identity", b"xchunked",
              b"chunkedx", b'"chunked"', b"chunked;q=1", b"x chunked",
              b"chunked x", b"chunked, gzip", b"gzip;chunked", b"chunke",
              b"'chunked'", b"chunked,chunkedx", b"deflate", b"trailers"):
    refused_fields(88, value.decode(), b"Transfer-Encoding: " + value + E)
for value in (b"gzip, chunked", b"identity, chunked", b"x,chunked",
              b"gzip, deflate, chunked", b"gzip \t, chunked"):
    refused_fields(89, repr(value), b"Transfer-Encoding: " + value + E,
                   status=501, reason="method_unsupported")
refused_fields(90, "in one line", b"Transfer-Encoding: chunked, chunked\r\n")
refused_fields(90, "in two lines", CHUNKED + CHUNKED)
refused_fields(90, "in two lines, apart", CHUNKED + MANY + CHUNKED)
refused_fields(90, "between", b"Transfer-Encoding: chunked, gzip, chunked\r\n")
refused_fields(91, "identity, then chunked",
               b"Transfer-Encoding: identity\r\n" + CHUNKED)
refused_fields(91, "chunked, then identity",
               CHUNKED + b"Transfer-Encoding: identity\r\n")
refused_fields(91, "chunked, then empty", CHUNKED + b"Transfer-Encoding:\r\n")
refused_fields(91, "empty, then chunked", b"Transfer-Encoding:\r\n" + CHUNKED)
refused_fields(92, "alone", b"Transfer-Encoding:\r\n")
refused_fields(92, "a space", b"Transfer-Encoding: \r\n")
refused_fields(92, "with a length", b"Transfer-Encoding:\r\n" + length(5),
               b"hello")
for value in (b",chunked", b"chunked,", b",", b", chunked", b"chunked ,",
              b",,chunked", b"gzip,,chunked"):
    refused_fields(93, value.decode(), b"Transfer-Encoding: " + value + E)


def taken(row, name, fields, body, content, **more):
    """A request whose body is this content, and one behind it."""
    for to in SITES:
        case(row, f"{name}, {to}", to=to, status=[200, 200],
             client=ask(to, fields) + body + ask(to, b"", b"GET", b"/2"),
             seen=[b"POST /", b"GET /2"], body=content, **more)


for value in (b"ChUnKeD", b"CHUNKED", b"Chunked"):
    taken(94, value.decode(), b"Transfer-Encoding: " + value + E,
          b"2\r\nab\r\n" + LAST, b"ab",
          has=rb"\r\nTransfer-Encoding: chunked\r\n",
          lacks=rb"(?i)\r\ncontent-length:")
for name, value in (("tab before", b"\tchunked"), ("tab after", b" chunked\t"),
                    ("nothing before", b"chunked"),
                    ("spaces around", b"  chunked  ")):
    taken(95, name, b"Transfer-Encoding:" + value + E,
          b"2\r\nab\r\n" + LAST, b"ab",
          has=rb"\r\nTransfer-Encoding: chunked\r\n")
for value in (b"\x0bchunked", b"\x0cchunked", b"\xa0chunked", b"chunked\x00",
              b"\x00chunked", b"chunked\xa0", b"chunked\x0b", b"chunked\x7f",
              b"\xc2\x85chunked", b"chun\x00ked", b"chunked\xc4\xb1"):
    refused_fields(95, repr(value), b"Transfer-Encoding: " + value + E)
for to, site in SITES.items():
    refused(96, f"chunked, {to}", to=to,
            client=b"POST " + site + b"/ HTTP/1.0\r\nHost: a\r\n" + CHUNKED +
            E + LAST + hidden(to))
    refused(96, f"chunked and kept alive, {to}", to=to,
            client=b"POST " + site + b"/ HTTP/1.0\r\nHost: a\r\n" + CHUNKED +
            b"Connection: keep-alive\r\n\r\n" + LAST + hidden(to))

# --- lengths ---

for value in (b"-1", b"+2", b"0x2", b"2 3", b"2,3", b"1_0", b"", b"2;x",
              "٢".encode(), b"1e3", b"2.0", b"-0", b"+0", b"2-", b"\x0b2",
              b"2\x00", b'"2"', b"2\xa0", b"x", b"2h", b"2\x0c", b" ", b"1'0",
              "２".encode(), b"(2)", b"2\xb2", b"/", b":"):
    refused_fields(97, repr(value), b"Content-Length: " + value + E, b"ab")
refused_fields(98, "a list of 42", b"Content-Length: 42, 42\r\n", b"x" * 42)
refused_fields(98, "a list without a space", b"Content-Length: 42,42\r\n",
               b"x" * 42)
refused_fields(98, "a list with an empty one", b"Content-Length: 42,\r\n",
               b"x" * 42)
refused_fields(98, "two equal lines", length(42) * 2, b"x" * 42)
refused_fields(98, "two lines, one with zeros",
               length(42) + b"Content-Length: 042\r\n", b"x" * 42)
refused_fields(99, "42 and 43", length(42) + length(43), b"x" * 42)
refused_fields(99, "43 and 42", length(43) + length(42), b"x" * 42)
refused_fields(99, "0 and 5", length(0) + length(5), b"")
refused_fields(99, "in two cases", b"content-length: 0\r\n" + length(5), b"")
refused_fields(99, "20 fields between", length(0) + MANY + length(5), b"")
refused_fields(99, "empty, then 43", b"Content-Length: \r\n" + length(43),
               b"x" * 43)
refused_fields(99, "43, then empty", length(43) + b"Content-Length:\r\n",
               b"x" * 43)
refused_fields(99, "named by Connection",
               length(0) + b"Connection: content-length\r\n" + length(5), b"")
for name, value in (("2^64", 1 << 64), ("2^64 + 5", (1 << 64) + 5),
                    ("2^65 + 5", (1 << 65) + 5), ("10^20", 10 ** 20),
                    ("10^200 + 5", 10 ** 200 + 5)):
    refused_fields(100, name, length(value), b"hello")
for value in ((1 << 64) - 1, 1 << 63, (1 << 63) + 5, (1 << 64) - 5):
    refused_fields(101, str(value), length(value), b"hello", status=413,
                   reason="body_too_large")
for value in (b"0010", b"010", b"0" * 30 + b"10", b"0" * 1000 + b"10",
              b" \t0010 "):
    name = repr(value) if len(value) < 40 else "1000 zeros"
    taken(102, name, b"Content-Length:" + value + E, b"0123456789",
          b"0123456789", has=rb"\r\nContent-Length: 10\r\n")
# llhttp takes no tab behind a length; a sender that has one is odd enough.
refused_fields(102, "a tab behind", b"Content-Length: 10\t\r\n", b"0123456789")
for value in (b"0", b"000"):
    taken(102, value.decode(), b"Content-Length: " + value + E, b"", b"",
          has=rb"\r\nContent-Length: 0\r\n")
taken(103, "nothing", b"", b"", b"")
case(103, "nothing, HTTP/1.0", ends="close", status=200, seen=b"POST /",
     client=b"POST / HTTP/1.0\r\nHost: a\r\n\r\n" + HIDDEN)

# --- bodies that end too early ---

# The upstream has an end before anybody else has; what it got stays a part.
PART = [(HEAD, Content(b"12345"), Mark("part"), EOF, Mark("ended"))]
AFTER = [Await("ended"), G + E, Until(b"<GET />")]
NO = b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"
KNOWN = P + length(10) + E + b"12345"
IN_CHUNK = T + b"A\r\n12345"
BETWEEN = T + b"5\r\n12345\r\n"
BEFORE_END = BETWEEN + b"0\r\n"
NO_END = rb"\r\n0\r\n"

for name, start in (("a body of known length", KNOWN), ("a chunk", IN_CHUNK),
                    ("between chunks", BETWEEN),
                    ("the last line", BEFORE_END)):
    case(104, f"FIN in {name}", upstream=PART, status=200, ends="close",
         clients=[[start, Await("part"), FIN, Await("ended")], AFTER],
         seen=[b"POST /", b"GET /"], lacks=NO_END)
    case(130, f"reset in {name}", upstream=PART, status=200, ends="gone",
         clients=[[start, Await("part"), RST], AFTER],
         seen=[b"POST /", b"GET /"], lacks=NO_END)
case(104, "FIN in a body that lacks one byte", ends="close", status=[],
     seen=b"POST /", client=[P + length(6) + E + b"12345", Await("part"), FIN],
     reason="client_closed", upstream=PART, has=rb"\r\n\r\n12345$")
case(104, "FIN before the body", ends="close", status=[], seen=b"POST /",
     client=[P + length(10) + E, Await("head"), FIN], reason="client_closed",
     upstream=[(HEAD, Mark("head"), EOF)], has=rb"\r\n\r\n$")
case(104, "FIN after an early answer", ends="close", status=403,
     client=[KNOWN, Until(b"no"), FIN], text=b"no", seen=b"POST /",
     upstream=[(HEAD, Content(b"12345"), NO, EOF)])
case(105, "a part", to="gateway_short", status=408, ends="close",
     reason="request_timeout", client=P + length(10) + E + b"12345",
     upstream=[(HEAD, Content(b"12345"), EOF)], seen=b"POST /")
case(105, "a part of a chunk", to="gateway_short", status=408, ends="close",
     reason="request_timeout", client=T + b"A\r\n12345",
     upstream=[(HEAD, Content(b"12345"), EOF)], seen=b"POST /",
     lacks=rb"\r\n0\r\n")
case(105, "nothing", to="gateway_short", status=408, ends="close",
     reason="request_timeout", client=P + length(10) + E,
     upstream=[(HEAD, EOF)], seen=b"POST /")
case(105, "a request for the rest", to="gateway_short", status=408,
     ends="close", reason="request_timeout",
     client=P + length(len(HIDDEN) + 1) + E + HIDDEN,
     upstream=[(HEAD, Content(HIDDEN), EOF)], seen=b"POST /")

# --- methods ---

for method in (b"GET", b"HEAD", b"DELETE", b"OPTIONS", b"PUT", b"PATCH",
               b"PROPFIND", b"SEARCH", b"PURGE"):
    for to in SITES:
        case(106, f"{method.decode()}, {to}", to=to, status=[200, 200],
             client=ask(to, length(5), method) + b"abcde" +
             ask(to, b"", b"GET", b"/2"), body=b"abcde",
             seen=[method + b" /", b"GET /2"],
             has=rb"\r\nContent-Length: 5\r\n")
        case(106, f"{method.decode()} of a request, {to}", to=to,
             client=ask(to, length(len(hidden(to))), method) + hidden(to),
             seen=method + b" /", body=hidden(to))
    case(106, f"{method.decode()} in chunks", status=[200, 200],
         client=method + b" / HTTP/1.1\r\nHost: a\r\n" + CHUNKED + E +
         b"5\r\nabcde\r\n" + LAST + G + E, body=b"abcde",
         seen=[method + b" /", b"GET /"], has=rb"\r\n" + CHUNKED)
for to in SITES:
    refused(107, f"a length, {to}", to=to,
            client=ask(to, length(5), b"TRACE") + b"abcde" + hidden(to))
    refused(107, f"chunks, {to}", to=to,
            client=ask(to, CHUNKED, b"TRACE") + LAST + hidden(to))
    refused(107, f"the length of a request, {to}", to=to,
            client=ask(to, length(len(hidden(to))), b"TRACE") + hidden(to))
    case(107, f"length 0, {to}", to=to,
         client=ask(to, length(0), b"TRACE"), seen=b"TRACE /", body=b"")

# --- bodies that are too large; gateway_limited takes 1000 bytes ---

TOO_LARGE = {"to": "gateway_limited", "status": 413,
             "reason": "body_too_large"}
case(108, "at the limit", to="gateway_limited", body=b"x" * 1000,
     client=P + length(1000) + E + b"x" * 1000, seen=b"POST /")
case(108, "one more, and it is withheld", seen=(), got=rb"\r\n\r\n",
     client=[P + length(1001) + E, Until(b"413 "), b"x" * 1001], **TOO_LARGE)
case(108, "one more, a request is in it", seen=(),
     client=P + length(1001) + E + HIDDEN + b"x" * (1001 - len(HIDDEN)),
     **TOO_LARGE)
case(108, "as much as is dropped", seen=(),
     client=P + length(65536) + E + HIDDEN + b"x" * (65536 - len(HIDDEN)),
     **TOO_LARGE)
refused(108, "more than is dropped",
        client=P + length(65537) + E + HIDDEN + b"x" * (65537 - len(HIDDEN)),
        got=rb"(?i)\r\nconnection: close\r\n", **TOO_LARGE)
refused(108, "half a mebibyte", client=P + length(1 << 19) + E +
        b"x" * (1 << 19), got=rb"larger than allowed", **TOO_LARGE)
refused(108, "more than there is", client=P + length(1 << 62) + E + HIDDEN,
        **TOO_LARGE)
refused(108, "HTTP/1.0", client=b"POST / HTTP/1.0\r\nHost: a\r\n" +
        length(1001) + E + b"x" * 1001, **TOO_LARGE)
# Whoever expects something may hold the body back: HIDDEN is in neither.
refused(108, "and it asks whether to send it",
        client=P + length(1001) + b"Expect: 100-continue\r\n\r\n" + HIDDEN,
        got_not=rb" 100 ", **TOO_LARGE)
refused(207, "what is not known, and its body is held back", status=417,
        client=P + length(5) + b"Expect: banana\r\n\r\n" + HIDDEN)
case(109, "at the limit", to="gateway_limited", body=b"x" * 1000,
     client=T + b"3E8\r\n" + b"x" * 1000 + E + LAST, seen=b"POST /")
FULL = T + b"3E8\r\n" + b"x" * 999 + b"y" + E
for name, rest in (("one byte more", b"1\r\nx\r\n" + LAST),
                   ("a chunk without an end", b"fffff\r\nx")):
    case(109, name, ends="close", seen=[b"POST /", b"GET /"],
         upstream=[(HEAD, Content(b"y"), Mark("full"), EOF, Mark("ended"))],
         clients=[[FULL, Await("full"), rest + HIDDEN, Await("ended")],
                  AFTER], lacks=rb"\r\n0\r\n\r\n", to="gateway_limited",
         status=[413, 200], got=b"body_too_large")
case(109, "after a response has begun", to="gateway_limited", ends="close",
     status=403, upstream=[(HEAD, Content(b"y"), NO, EOF)], text=b"no",
     client=[FULL, Until(b"no"), b"1\r\nx\r\n" + LAST + HIDDEN],
     seen=b"POST /")

# --- what upstreams get ---

BOTH = (rb"(?is)content-length:.*transfer-encoding:|"
        rb"transfer-encoding:.*content-length:")
for to in SITES:
    case(128, f"a length, {to}", to=to, body=b"hello", lacks=BOTH,
         client=ask(to, length(5)) + b"hello",
         has=rb"\r\nContent-Length: 5\r\n")
    case(128, f"chunks, {to}", to=to, body=b"hello", lacks=BOTH,
         client=ask(to, CHUNKED) + b"5\r\nhello\r\n" + LAST,
         has=rb"\r\n" + CHUNKED)
    case(128, f"chunks with a length as trailer, {to}", to=to, body=b"hello",
         client=ask(to, CHUNKED) + b"5\r\nhello\r\n0\r\n" + length(5) + E,
         lacks=BOTH, has=rb"\r\n" + CHUNKED)
    case(128, f"nothing, {to}", to=to, client=ask(to, b""), body=b"",
         lacks=[BOTH, rb"(?i)transfer-encoding:"])
    refused(128, f"a length that Connection names, {to}", to=to,
            client=ask(to, length(5) + b"Connection: content-length\r\n") +
            b"hello" + hidden(to))
    refused(128, f"chunks that Connection names, {to}", to=to,
            client=ask(to, CHUNKED + b"Connection: transfer-encoding\r\n") +
            LAST + hidden(to))
    case(128, f"what looks like framing, {to}", to=to, body=b"hello",
         client=ask(to, length(5) + b"Content_Length: 3\r\n"
                    b"X-Transfer-Encoding: chunked\r\n") + b"hello",
         has=rb"\r\nContent-Length: 5\r\n", lacks=rb"\r\nTransfer-E")

OLD = b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold"
case(129, "chunked, after a response of HTTP/1.0", to="gateway_old",
     upstream=[OLD], status=[200, 411], ends="close", seen=b"GET /",
     reason="length_required",
     client=[G + E, Until(b"old"), T + b"5\r\nhello\r\n" + LAST + HIDDEN])
case(129, "a length, after a response of HTTP/1.0", to="gateway_old",
     upstream=[OLD], status=[200, 200], seen=[b"GET /", b"POST /"],
     client=[G + E, Until(b"old"), P + length(5) + E + b"hello"],
     has=rb"\r\n\r\nhello")
case(129, "chunked, after one of HTTP/1.1 too", to="gateway_old",
     upstream=[OLD], status=[200, 200, 200],
     seen=[b"GET /", b"GET /", b"POST /"],
     client=[G + E, Until(b"old"), G + E, Until(b"<GET />"),
             T + b"5\r\nhello\r\n" + LAST], has=rb"\r\n" + CHUNKED)

case(130, "exactly as many", body=b"12345", status=[200, 200],
     client=P + length(5) + E + b"12345" + G + E, seen=[b"POST /", b"GET /"],
     has=rb"\r\n\r\n12345(GET|$)")
BIG = b"HTTP/1.1 413 Large\r\nContent-Length: 3\r\n\r\nbig"
for name, head, part in (
        ("a length", length(1 << 20), b"12345"),
        ("chunks", CHUNKED, b"A\r\n12345")):
    case(131, name, status=413, ends="close", text=b"big", seen=b"POST /",
         upstream=[(HEAD, Content(b"12345"), BIG, EOF)],
         client=[P + head + E + part, Until(b"big"), b"67890" + HIDDEN],
         got=rb"(?i)\r\nconnection: close\r\n")
    case(131, f"{name}, and a close", status=413, ends="close", text=b"big",
         upstream=[(HEAD, Content(b"12345"), BIG, CLOSE)], seen=b"POST /",
         client=[P + head + E + part, Until(b"big"), b"67890" + HIDDEN])
case(131, "half a mebibyte comes later", status=413, ends="close",
     text=b"big", seen=b"POST /",
     upstream=[(HEAD, Content(b"12345"), BIG, EOF)],
     client=[P + length(1 << 20) + E + b"12345", Until(b"big"),
             b"x" * (1 << 19)])

# The option that row 132 allows does not exist.
case(132, "chunks are taken", client=T + b"5\r\nhello\r\n" + LAST,
     body=b"hello", seen=b"POST /")
