# SPDX-License-Identifier: BSD-2-Clause
"""Rows 133 to 167: what an upstream answers, and where that ends.

Most cases end with the request that shows that the client's connection was
kept; connections=2 then says that the upstream's was not.
"""

from steps import Await, CLOSE, EOF, FIN, Mark, REQUEST, RST, Until
from table import E, G, K, OK, case

H = b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"
OLD = b"GET / HTTP/1.0\r\nHost: a\r\n\r\n"
FORWARD = b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
EVIL = b"HTTP/1.1 200 OK\r\nX: evil\r\nContent-Length: 4\r\n\r\nevil"


def in_head(name):
    """A field of the first head, as an expression."""
    return rb"(?is)\A(?:(?!\r\n\r\n).)*\n" + name + b":"


def length(n):
    return b"Content-Length: %d\r\n" % n


def invalid(row, name="", response=b"", reason="response_invalid", **more):
    """A response that is refused; its connection isn't used again."""
    more.setdefault("got_not", rb"evil")
    case(row, name, client=more.pop("client", G + E),
         upstream=[response if isinstance(response, tuple) else
                   (REQUEST, response, EOF)],
         status=502, reason=reason, connections=2,
         got=rb"(?im)^proxy-status: pen; error=http_\w+", **more)


def both(row, name="", upstream=(), **more):
    """The same through a gateway and a forward proxy."""
    case(row, f"{name}, gateway" if name else "gateway", client=G + E,
         upstream=upstream, **more)
    case(row, f"{name}, forward" if name else "forward", to="forward",
         client=FORWARD, upstream=upstream, **more)


# --- no body, whatever the fields say ---

case(133, "Content-Length", client=H, upstream=[K + length(5) + E],
     seen=b"HEAD /", got=rb"(?im)^content-length: 5\r$", text=b"",
     connections=1)
case(133, "chunked", client=H, upstream=[K + CHUNKED + E],
     got_not=rb"\r\n\r\n0\r\n", text=b"", connections=1)
case(133, "the next is a GET", client=H + G + E,
     upstream=[(REQUEST, K + length(2) + E, REQUEST, OK)],
     status=[200, 200], seen=[b"HEAD /", b"GET /"], got=rb"\r\n\r\nok",
     connections=1)
case(133, "forward", to="forward",
     client=b"HEAD http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
     upstream=[K + length(5) + E], got=rb"(?im)^content-length: 5\r$",
     text=b"", connections=1)
case(133, "404 with Content-Length", client=H,
     upstream=[b"HTTP/1.1 404 N\r\n" + length(7) + E], status=404,
     got=rb"(?im)^content-length: 7\r$", text=b"", connections=1)
case(133, "a body though it was HEAD", client=H,
     upstream=[(REQUEST, K + length(4) + E + b"evil", EOF)],
     got_not=rb"evil", text=b"", connections=2)

case(134, client=G + E,
     upstream=[(REQUEST, b"HTTP/1.1 204 N\r\n" + length(5) + E + EVIL, EOF)],
     status=204, got_not=rb"evil", connections=2)
case(134, "and a body", client=G + E,
     upstream=[(REQUEST, b"HTTP/1.1 204 N\r\n" + length(4) + E + b"evil",
                EOF)],
     status=204, got_not=rb"evil", connections=2)
case(134, "and chunks", client=G + E,
     upstream=[(REQUEST, b"HTTP/1.1 204 N\r\n" + CHUNKED + E +
                b"4\r\nevil\r\n0\r\n\r\n", EOF)],
     status=204, got_not=rb"evil", connections=2)
case(134, "without fields", client=G + E,
     upstream=[(REQUEST, b"HTTP/1.1 204 N\r\n\r\n" + EVIL, EOF)],
     status=204, got_not=rb"evil", connections=2)

for name, fields in (("CL 0", length(0)), ("CL 5", length(5)),
                     ("TE", CHUNKED)):
    both(135, f"204, {name}",
         upstream=[b"HTTP/1.1 204 N\r\n" + fields + E], status=204,
         got_not=[in_head(b"content-length"), in_head(b"transfer-encoding")])
    case(135, f"103, {name}", client=G + E,
         upstream=[b"HTTP/1.1 103 E\r\n" + fields + b"Link: </a>\r\n\r\n" +
                   OK],
         got=[rb"(?im)^link: </a>\r$", rb"^HTTP/1\.1 103 "],
         got_not=[in_head(name) for name in (
             b"content-length", b"transfer-encoding", b"date",
             b"connection")],
         text=b"ok", connections=1)

case(136, "CL", client=G + E,
     upstream=[b"HTTP/1.1 304 N\r\n" + length(5) + E], status=304, text=b"",
     got=rb"(?im)^content-length: 5\r$", connections=1)
case(136, "TE", client=G + E,
     upstream=[b"HTTP/1.1 304 N\r\n" + CHUNKED + E], status=304, text=b"",
     got_not=in_head(b"transfer-encoding"), connections=1)
case(136, "a body all the same", client=G + E,
     upstream=[(REQUEST, b"HTTP/1.1 304 N\r\n" + length(4) + E + b"evil",
                EOF)],
     status=304, text=b"", got_not=rb"evil", connections=2)

for n in (100, 102, 103, 104, 150, 199):
    case(137, f"{n}", client=G + E,
         upstream=[b"HTTP/1.1 %d I\r\n" % n + length(5) + E + OK],
         got=rb"^HTTP/1\.1 %d " % n, text=b"ok", connections=1)

case(138, "CL 3", client=G + E,
     upstream=[b"HTTP/1.1 205 R\r\n" + length(3) + E + b"abc"], status=205,
     got=rb"(?im)^content-length: 3\r$", text=b"abc", connections=1)
case(138, "CL 0", client=G + E,
     upstream=[b"HTTP/1.1 205 R\r\n" + length(0) + E], status=205,
     got=rb"(?im)^content-length: 0\r$", text=b"", connections=1)
case(138, "chunked", client=G + E,
     upstream=[b"HTTP/1.1 205 R\r\n" + CHUNKED + E + b"0\r\n\r\n"],
     status=205, text=b"", connections=1)
case(138, "neither", client=G + E,
     upstream=[(REQUEST, b"HTTP/1.1 205 R\r\n\r\n", EOF)], status=205,
     got=rb"(?im)^content-length: 0\r$", text=b"", connections=2)

# --- framing that is in doubt ---

invalid(140, "CL first", K + length(5) + CHUNKED + E + b"0\r\n\r\nevil")
invalid(140, "TE first", K + CHUNKED + length(5) + E + b"0\r\n\r\nevil")
invalid(140, "CL 0", K + CHUNKED + length(0) + E + b"0\r\n\r\n")
invalid(140, "between others", K + b"CONTENT-length: 5\r\n" +
        b"X: y\r\n" * 20 + b"transfer-ENCODING: chunked\r\n\r\n0\r\n\r\n")
invalid(140, "with 304", b"HTTP/1.1 304 N\r\n" + length(5) + CHUNKED + E)
invalid(140, "to HEAD", K + length(5) + CHUNKED + E, client=H)
invalid(140, "forward", K + length(5) + CHUNKED + E + b"0\r\n\r\nevil",
        to="forward", client=FORWARD)

for value in (b"gzip", b"identity", b"xchunked", b'"chunked"', b"chunked;q=1",
              b"gzip, chunked", b"identity, chunked", b"chunked, gzip",
              b"chunked, chunked", b"chunked,", b",chunked", b"",
              b"\x0bchunked", b"chunked x"):
    invalid(141, repr(value)[2:-1],
            K + b"Transfer-Encoding: " + value + b"\r\n\r\n" + b"evil")
invalid(141, "chunked twice", K + CHUNKED + CHUNKED + E + b"0\r\n\r\n")
invalid(141, "gzip and chunked in two lines",
        K + b"Transfer-Encoding: gzip\r\n" + CHUNKED + E + b"0\r\n\r\n")
invalid(141, "HTTP/1.0 and chunked",
        b"HTTP/1.0 200 OK\r\n" + CHUNKED + E + b"0\r\n\r\n")
case(141, "in capitals", client=G + E,
     upstream=[K + b"TRANSFER-ENCODING: ChunKED\r\n\r\n2\r\nok\r\n0\r\n\r\n"],
     text=b"ok", connections=1)

for value in (b"5, 6", b"5, 5", b"5,5", b"-1", b"+5", b"abc", b"", b"5;",
              b"0x5", b"5 5", b"5.0", b"1e1", b"\xd9\xa2", b"1_0",
              b"18446744073709551616", b"18446744073709551615",
              b"9223372036854775808"):
    invalid(142, repr(value)[2:-1],
            K + b"Content-Length: " + value + b"\r\n\r\nevil!")
invalid(142, "5 and 6", K + length(5) + length(6) + E + b"evil!")
invalid(142, "6 and 5", K + length(6) + length(5) + E + b"evil!")
invalid(142, "5 twice", K + length(5) + length(5) + E + b"evil!")
invalid(142, "empty and 5", K + b"Content-Length: \r\n" + length(5) + E +
        b"evil!")
invalid(142, "to HEAD", K + length(5) + length(6) + E, client=H)
invalid(142, "with 304", b"HTTP/1.1 304 N\r\nContent-Length: x\r\n\r\n")
invalid(142, "forward", K + length(5) + length(6) + E + b"evil!",
        to="forward", client=FORWARD)
case(142, "leading zeros", client=G + E,
     upstream=[K + b"Content-Length: 002\r\n\r\nok"], text=b"ok",
     got=rb"(?im)^content-length: 2\r$", connections=1)

# --- truncated ---

for name, end in (("FIN", FIN), ("RST", RST)):
    case(143, name,
         upstream=[(REQUEST, K + length(5) + E + b"ab", Await("read"), end)],
         clients=[[G + E, Until(b"ab"), Mark("read"), EOF]],
         ends="close", reason="upstream_closed", got=rb"\r\n\r\nab$",
         connections=1)
    for what, chunks in (("inside a chunk", b"5\r\n~"),
                         ("after a chunk", b"1\r\n~"),
                         ("before the last chunk", b"1\r\n~\r\n"),
                         ("in the last chunk", b"1\r\n~\r\n0"),
                         ("in the last line", b"1\r\n~\r\n0\r\n"),
                         ("before the last LF", b"1\r\n~\r\n0\r\n\r"),
                         ("in a trailer", b"1\r\n~\r\n0\r\nX: y")):
        case(144, f"{what}, {name}",
             clients=[[G + E, Until(b"~"), Mark("read"), EOF]],
             upstream=[(REQUEST, K + CHUNKED + E + chunks, Await("read"),
                        end)],
             ends="close", reason="upstream_closed", got=rb"\r\n1\r\n~\r\n\Z",
             connections=1)
case(143, "nothing but the head", clients=[[G + E, Until(E + E), Mark("read"),
                                            EOF]],
     upstream=[(REQUEST, K + length(5) + E, Await("read"), FIN)],
     ends="close", reason="upstream_closed", got=rb"\r\n\r\n$")
case(143, "HTTP/1.0", clients=[[OLD, Until(b"ab"), Mark("read"), EOF]],
     upstream=[(REQUEST, K + length(5) + E + b"ab", Await("read"), FIN)],
     ends="close", reason="upstream_closed", got=rb"\r\n\r\nab$")
case(144, "HTTP/1.0, which must see a reset",
     clients=[[OLD, Until(E + E), Until(b"~"), Mark("read"), EOF]],
     upstream=[(REQUEST, K + CHUNKED + E + b"5\r\n~", Await("read"), FIN)],
     ends="reset", reason="upstream_closed", got=rb"\r\n\r\n~\Z")
for name, part in (("nothing", b""), ("half a status line", b"HTTP/1.1 2"),
                   ("half a head", K + b"X: y\r\n")):
    case(143, f"{name} and FIN", client=G + E,
         upstream=[(REQUEST, part, FIN, EOF)], status=502,
         reason="upstream_closed", connections=2)

# --- without a length, and old clients ---

for what, response in (("nothing", K + E),
                       ("Connection: close", K + b"Connection: close\r\n\r\n"),
                       ("HTTP/1.0", b"HTTP/1.0 200 OK\r\n\r\n")):
    case(145, f"{what}, to 1.1", client=G + E,
         upstream=[(REQUEST, response + b"abc", FIN, EOF)], text=b"abc",
         got=rb"(?im)^transfer-encoding: chunked\r$", connections=2)
    case(145, f"{what}, to 1.0", client=OLD, ends="close",
         upstream=[(REQUEST, response + b"abc", FIN, EOF)], text=b"abc",
         got=[rb"(?im)^connection: close\r$", rb"\r\n\r\nabc$"],
         got_not=rb"(?i)transfer-encoding|content-length")
case(145, "empty", client=G + E, upstream=[(REQUEST, K + E, FIN, EOF)],
     text=b"", connections=2)

CHUNKS = K + CHUNKED + E + b"2;x=y\r\nab\r\n1\r\nc\r\n0\r\nX-T: y\r\n\r\n"
case(146, client=OLD, upstream=[CHUNKS], ends="close", text=b"abc",
     got=[rb"\r\n\r\nabc$", rb"(?im)^connection: close\r$"],
     got_not=rb"(?i)transfer-encoding|x-t:")
case(146, "keep-alive is no use", upstream=[CHUNKS], ends="close",
     client=OLD[:-2] + b"Connection: keep-alive\r\n\r\n", text=b"abc",
     got=rb"(?im)^connection: close\r$",
     got_not=rb"(?i)transfer-encoding|keep-alive")
case(146, "forward", to="forward", upstream=[CHUNKS], ends="close",
     client=b"GET http://a/ HTTP/1.0\r\n\r\n", text=b"abc",
     got=[rb"\r\n\r\nabc$", rb"(?im)^connection: close\r$"],
     got_not=rb"(?i)transfer-encoding")

# --- bytes that nobody asked for ---

for name, extra in (("a response", EVIL), ("a head", K + b"X: evil\r\n\r\n"),
                    ("an empty line", E), ("a byte", b"\0"),
                    ("text", b"evil")):
    for what, good in (("CL", OK), ("CL 0", K + length(0) + E),
                       ("chunked", K + CHUNKED + E + b"2\r\nok\r\n0\r\n\r\n")):
        case(147, f"{name} after {what}", client=G + E,
             upstream=[(REQUEST, good + extra, EOF)], got_not=rb"evil",
             connections=2)
case(147, "two requests wait", client=G + E + G + E,
     upstream=[(REQUEST, OK + EVIL, EOF)], status=[200, 200],
     got_not=rb"evil", connections=2)
case(147, "forward", to="forward", client=FORWARD,
     upstream=[(REQUEST, OK + EVIL, EOF)], got_not=rb"evil", connections=2)

for name, extra in (("a response", EVIL), ("an empty line", E),
                    ("a byte", b"x"), ("a 408",
                                       b"HTTP/1.1 408 T\r\n" + length(4) + E +
                                       b"evil"), ("FIN", FIN), ("RST", RST)):
    case(148, name,
         clients=[[G + E, Until(b"ok"), Mark("idle"), Await("sent")]],
         upstream=[(REQUEST, OK, Await("idle"), extra, Mark("sent"),
                    *([] if extra is RST else [EOF]))],
         got_not=rb"evil", connections=2)
    case(148, f"{name}, for another client",
         clients=[[G + E, Until(b"ok"), Mark("idle"), Await("over")],
                  [Await("sent"), b"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
                   Until(b"ok"), Mark("over")]],
         upstream=[(REQUEST, OK, Await("idle"), extra, Mark("sent"),
                    *([] if extra is RST else [EOF])), OK],
         status=[200, 200], seen=[b"GET /", b"GET /2"],
         connections=2)

# --- status lines ---

for line in (b"HTTP/1.1 600 X", b"HTTP/1.1 999 X", b"HTTP/1.1 000 X",
             b"HTTP/1.1 099 X", b"HTTP/1.1 99 X", b"HTTP/1.1 20 X",
             b"HTTP/1.1 0200 X", b"HTTP/1.1 1000 X", b"HTTP/1.1 2x0 X",
             b"HTTP/1.1 +200 X", b"HTTP/1.1 -200 X", b"HTTP/1.1 2OO X",
             b"HTTP/1.1 200.0 X", b"HTTP/1.1 X", b"HTTP/1.1"):
    invalid(149, line.decode(), line + E + length(4) + E + b"evil")

for line in (b"HTTP/1.1  200 OK", b"HTTP/1.1\t200 OK", b" HTTP/1.1 200 OK",
             b"HTTP/1.1 200\tOK", b"HTTP/1.1 \xa0200 OK"):
    invalid(150, repr(line)[2:-1], line + E + length(4) + E + b"evil")

both(151, "no reason", upstream=[b"HTTP/1.1 200\r\n" + length(2) + E + b"ok"],
     text=b"ok", got=rb"^HTTP/1\.1 200 \r\n", connections=1)
both(151, "an empty reason",
     upstream=[b"HTTP/1.1 200 \r\n" + length(2) + E + b"ok"], text=b"ok",
     got=rb"^HTTP/1\.1 200 \r\n", connections=1)
case(151, "a reason of its own", client=G + E,
     upstream=[b"HTTP/1.1 200 All  is\twell \xe9\r\n" + length(2) + E + b"ok"],
     text=b"ok", got=rb"^HTTP/1\.1 200 All  is\twell \xe9\r\n")

for name, reason in (("NUL", b"O\0K"), ("a bare CR", b"O\rK"),
                     ("CR CR", b"OK\r"), ("a control", b"O\x01K"),
                     ("DEL", b"O\x7fK"), ("ESC", b"\x1b[2J")):
    invalid(152, name, b"HTTP/1.1 200 " + reason + E + length(4) + E +
            b"evil")
invalid(152, "64 KiB", b"HTTP/1.1 200 " + b"R" * 65536 + E + length(4) + E +
        b"evil", reason="response_too_large")
invalid(152, "64 KiB without an end",
        (REQUEST, b"HTTP/1.1 200 " + b"R" * 65536, EOF),
        reason="response_too_large")

invalid(153, "the status line", b"HTTP/1.1 200 OK\n" + length(4) + E +
        b"evil")
invalid(153, "without a reason", b"HTTP/1.1 200\n" + length(4) + E + b"evil")
invalid(153, "a field", K + b"Content-Length: 4\n\r\nevil")
invalid(153, "the empty line", K + length(4) + b"\nevil")
invalid(153, "all lines", b"HTTP/1.1 200 OK\nContent-Length: 4\n\nevil")

for begin in (b"HTTP/2.0 200 OK", b"HTTP/0.9 200", b"HTTP/0.9 200 OK",
              b"HTTP/1.2 200 OK", b"HTTP/1.10 200 OK", b"HTTP/3 200 OK",
              b"HTTP/1 200 OK", b"HTTP/11 200 OK", b"http/1.1 200 OK",
              b"ICY 200 OK", b"RTSP/1.0 200 OK", b"<html>evil</html>",
              b"SSH-2.0-x", b"220 mail ESMTP", b"", b"\0",
              b"GET / HTTP/1.1", b"\x15\x03\x01\x00\x02\x02\x28"):
    invalid(154, repr(begin)[2:-1], begin + E + length(4) + E + b"evil")
invalid(154, "forward", b"ICY 200 OK\r\n\r\nevil", to="forward",
        client=FORWARD)

# --- fields of responses ---

DATE = rb"(?im)^date: \*\r$"
both(155, "without", upstream=[OK], got=DATE)
case(155, "204", client=G + E, upstream=[b"HTTP/1.1 204 N\r\n\r\n"],
     status=204, got=DATE)
case(155, "named by Connection", client=G + E,
     upstream=[K + b"Connection: date\r\nDate: x\r\n" + length(2) + E + b"ok"],
     got=DATE, got_not=rb"(?im)^date: [^*].*\r$")

AUTHORIZATION = b'Digest a="b\\"c",  d=e , f="\xe4"'
CHALLENGE = b'Basic realm="x, y", Digest  qop="auth,auth-int" ,Negotiate a=='
for to, target in (("gateway", b"/"), ("forward", b"http://a/")):
    case(156, f"Authorization, {to}", to=to,
         client=b"GET " + target + b" HTTP/1.1\r\nHost: a\r\nAuthorization: " +
         AUTHORIZATION + b"\r\n\r\n",
         has=rb"(?im)^authorization: " +
         AUTHORIZATION.replace(b"\\", b"\\\\") + rb"\r$")
    case(156, f"WWW-Authenticate, {to}", to=to,
         client=b"GET " + target + b" HTTP/1.1\r\nHost: a\r\n\r\n",
         upstream=[b"HTTP/1.1 401 U\r\nWWW-Authenticate: " + CHALLENGE +
                   b"\r\nWWW-Authenticate: Basic realm=z\r\n" + length(2) +
                   E + b"no"],
         status=401, got=rb"(?im)^www-authenticate: " + CHALLENGE +
         rb"\r\nwww-authenticate: basic realm=z\r$")

# --- interim responses ---

SOME = (b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 102 P\r\n\r\n"
        b"HTTP/1.1 103 E\r\nLink: </1>\r\n\r\n"
        b"HTTP/1.1 103 E\r\nLink: </2>\r\n\r\n")
IN_ORDER = (rb"(?s)^HTTP/1\.1 100 .*HTTP/1\.1 102 .*HTTP/1\.1 103 .*</1>.*"
            rb"HTTP/1\.1 103 .*</2>.*HTTP/1\.1 200 ")
both(157, "four", upstream=[SOME + OK], got=IN_ORDER, text=b"ok",
     connections=1)
case(157, "each when the one before has arrived",
     client=[G + E, Until(b"103 "), Until(E + E), Mark("first")],
     upstream=[(REQUEST, b"HTTP/1.1 103 E\r\nLink: </1>\r\n\r\n",
                Await("first"), b"HTTP/1.1 103 E\r\nLink: </2>\r\n\r\n" +
                OK)],
     got=rb"(?s)</1>.*</2>.*200 ", text=b"ok")
case(157, "no connection field of ours in it", client=G + E,
     upstream=[b"HTTP/1.1 103 E\r\nConnection: close, x\r\nX: y\r\n\r\n" +
               OK],
     got_not=rb"(?i)connection|x: y", text=b"ok")
case(158, client=OLD, upstream=[SOME + OK], ends="close", text=b"ok",
     got=rb"^HTTP/1\.1 200 ", got_not=rb" 10[0-9] ")
case(158, "forward", to="forward", client=b"GET http://a/ HTTP/1.0\r\n\r\n",
     upstream=[SOME + OK], ends="close", text=b"ok", got=rb"^HTTP/1\.1 200 ",
     got_not=rb" 10[0-9] ")

CONTINUE = b"HTTP/1.1 100 C\r\n\r\n"
case(159, "32 are taken", client=G + E, upstream=[CONTINUE * 32 + OK],
     text=b"ok", connections=1)
invalid(159, "33", CONTINUE * 33 + OK)
invalid(159, "10 000", CONTINUE * 10000 + OK)
invalid(159, "33 to 1.1 forward", CONTINUE * 33 + OK, to="forward",
        client=FORWARD)
case(159, "33 to 1.0", client=OLD, upstream=[CONTINUE * 33 + OK], status=502,
     ends="close", reason="response_invalid")

case(160, client=G + b'If-None-Match: "e"\r\n\r\n',
     upstream=[b'HTTP/1.1 304 N\r\nETag: "e"\r\nDate: x\r\n'
               b"Cache-Control: max-age=1\r\n\r\n"],
     status=304, has=rb'(?im)^if-none-match: "e"\r$',
     got=[rb'(?im)^etag: "e"\r$', DATE, rb"(?im)^cache-control: max-age=1\r$"],
     connections=1)

# --- whose connection is used again ---

for what, begin in (("CL", length(10) + E + b"~"),
                    ("chunked", CHUNKED + E + b"a\r\n~"),
                    ("until the end", E + b"~")):
    case(161, f"reset, {what}",
         clients=[[G + E, Until(b"~"), RST],
                  [Await("gone"), b"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
                   Until(b"ok")]],
         upstream=[(REQUEST, K + begin, EOF, Mark("gone"), CLOSE), OK],
         ends="gone", status=[200, 200], connections=2)

for what, response in (
        ("CL", OK[:-4] + b"Connection: close\r\n\r\nok"),
        ("chunked", K + b"Connection: x, Close\r\n" + CHUNKED + E +
         b"2\r\nok\r\n0\r\n\r\n"),
        ("204", b"HTTP/1.1 204 N\r\nConnection: close\r\n\r\n")):
    both(162, what, upstream=[(REQUEST, response, EOF)],
         status=204 if what == "204" else 200, connections=2,
         got_not=rb"(?i)connection: (x|close)")
case(162, "keep-alive as well", client=G + E, connections=2,
     upstream=[(REQUEST, K + b"Connection: keep-alive, close\r\n" + length(2) +
                E + b"ok", EOF)])
case(162, "in two lines", client=G + E, connections=2,
     upstream=[(REQUEST, K + b"Connection: keep-alive\r\n" + length(2) +
                b"Connection: close\r\n\r\nok", EOF)])

OLD_OK = b"HTTP/1.0 200 OK\r\n" + length(2)
both(163, "without keep-alive", upstream=[(REQUEST, OLD_OK + E + b"ok", EOF)],
     text=b"ok", connections=2)
both(163, "with keep-alive", text=b"ok", connections=1,
     upstream=[OLD_OK + b"Connection: Keep-Alive\r\n\r\nok"])
case(163, "with keep-alive and close", client=G + E, text=b"ok",
     upstream=[(REQUEST, OLD_OK + b"Connection: keep-alive, close\r\n\r\nok",
                EOF)], connections=2)

case(164, client=G + E, text=b"ok", got_not=rb"evil", connections=2,
     upstream=[(REQUEST, K + b"Connection: close\r\n" + length(2) + E + b"ok" +
                EVIL, EOF)])
case(164, "and FIN", client=G + E, text=b"ok", got_not=rb"evil",
     connections=2,
     upstream=[(REQUEST, K + b"Connection: close\r\n" + length(2) + E + b"ok" +
                EVIL, CLOSE)])

BINARY = bytes(range(256))
for value in (b"no-transform", b"no-transform, public", b"public"):
    both(166, value.decode(), text=BINARY,
         got=rb"(?im)^cache-control: " + value + rb"\r$",
         upstream=[K + b"Cache-Control: " + value + b"\r\n" + length(256) +
                   E + BINARY])

case(167, "HEAD", client=H, upstream=[K + E],
     got_not=in_head(b"content-length"), text=b"", connections=1)
case(167, "HEAD, 1.0", client=b"HEAD / HTTP/1.0\r\nHost: a\r\n\r\n",
     upstream=[K + E], ends="close", got_not=rb"(?i)content-length", text=b"")
case(167, "304", client=G + E, upstream=[b"HTTP/1.1 304 N\r\n\r\n"],
     status=304, got_not=in_head(b"content-length"), connections=1)
case(167, "204", client=G + E, upstream=[b"HTTP/1.1 204 N\r\n\r\n"],
     status=204, got_not=in_head(b"content-length"), connections=1)
