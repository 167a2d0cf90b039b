# SPDX-License-Identifier: BSD-2-Clause
"""Rows 263 to 272: the client's role, and corner rules."""

from steps import EOF, FIN, HEAD, REQUEST, Until
from table import E, G, K, OK, P, case, refused

A = b"GET http://a/ HTTP/1.1\r\nHost: a\r\n"
BODY = P + b"Content-Length: 5\r\n\r\nabcde"
SECOND = b"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n"

case(263, "nothing behind the body", client=[BODY, Until(b"ok"), SECOND],
     upstream=[(REQUEST, OK)], status=[200, 200], body=b"abcde",
     seen=[b"POST /", b"GET /2"], has=rb"\r\n\r\nabcdeGET /2 ")
case(263, "forward", to="forward", client=[
         b"POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"
         b"abcde", Until(b"ok"), A + E],
     upstream=[(REQUEST, OK)], status=[200, 200], body=b"abcde",
     has=rb"\r\n\r\nabcdeGET / ")
case(263, "what an old client sends behind it", status=[200, 200],
     client=[BODY + E + G + E], body=b"abcde", has=rb"abcdeGET / ")
case(263, "chunks", client=[
         P + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
         Until(b"ok"), SECOND],
     upstream=[(REQUEST, OK)], status=[200, 200], body=b"abcde",
     has=rb"\r\n0\r\n\r\nGET /2 ")

# --- the end of connections ---

EARLY = b"HTTP/1.1 103 E\r\nLink: </x>\r\n\r\n"
FINAL = rb"(?m)^Connection: close\r$"
ONCE = rb"(?is)connection: .*connection: "
CLOSES = {
    "the client wants it": (G + b"Connection: close\r\n\r\n", [EARLY + OK]),
    "an old client": (b"GET / HTTP/1.0\r\nHost: a\r\n\r\n", [OK]),
}
for name, (client, upstream) in CLOSES.items():
    case(264, name, client=client, upstream=upstream, ends="close", got=[
             FINAL, rb"(?s)HTTP/1\.1 200 .*Connection: close\r\n"],
         got_not=[ONCE, rb"(?s)HTTP/1\.1 103 .*Connection.*HTTP/1\.1 200"])
for name, client in (
        ("kept-alive connections are switched off", G + E),
        ("and what the client wants is no matter",
         G + b"Connection: keep-alive\r\n\r\n"),
        ("and a second request stays unread", G + E + SECOND)):
    case(264, name, to="gateway_once", client=client, upstream=[EARLY + OK],
         ends="close", seen=b"GET /", got=FINAL,
         got_not=[ONCE, rb"(?s)HTTP/1\.1 103 .*Connection.*HTTP/1\.1 200"])
case(264, "of our own, switched off", to="gateway_once", status=508,
     client=G + b"Via: 1.1 pen\r\n\r\n", ends="close", got=FINAL)
case(264, "the body is not waited for", client=[
         P + b"Content-Length: 5\r\n\r\n"],
     upstream=[(HEAD, EARLY + OK, EOF)], ends="close", got=FINAL,
     got_not=[ONCE, rb"(?s)HTTP/1\.1 103 .*Connection.*HTTP/1\.1 200"])
case(264, "not where it is kept", client=G + E, upstream=[EARLY + OK],
     got_not=rb"(?im)^connection:")
case(265, "two requests, two connections", to="gateway_unpooled",
     client=[G + E, Until(b"ok"), SECOND, Until(b"ok"), FIN],
     upstream=[(REQUEST, OK, EOF), (REQUEST, OK, EOF)], status=[200, 200],
     ends="close", has=rb"(?s)GET / [^\0]*\r\nConnection: close\r\n"
     rb".*GET /2 [^\0]*\r\nConnection: close\r\n")
case(265, "the client wants to keep its own", to="gateway_unpooled",
     client=[G + b"Connection: keep-alive\r\n\r\n", Until(b"ok"), SECOND,
             Until(b"ok"), FIN],
     upstream=[(REQUEST, OK, EOF), (REQUEST, OK, EOF)], status=[200, 200],
     ends="close", lacks=rb"(?i)keep-alive", got_not=rb"^(?s:.*)ok\r\n"
     rb"(?s:.*)Connection: close(?s:.*)GET /2")
case(265, "where they are kept it says nothing", client=G + E,
     lacks=rb"(?im)^connection:")

# --- statuses ---

for status in (b"299 X", b"418 T", b"599 Y", b"200 ", b"299 ", b"399 Z",
               b"499 Z", b"206 P", b"300 M", b"226 IM Used", b"451 x"):
    for to, ask in ("gateway", G), ("forward", A):
        case(268, f"{status.decode()}, {to}", to=to, client=ask + E,
             status=int(status[:3]), text=b"ok",
             upstream=[b"HTTP/1.1 " + status +
                       b"\r\nContent-Length: 2\r\n\r\nok"],
             got=rb"^HTTP/1\.1 " + status + rb"\r\n")
case(268, "of an interim response", client=G + E, upstream=[
         b"HTTP/1.1 199 Z\r\nX: y\r\n\r\n" + OK],
     got=rb"^HTTP/1\.1 199 Z\r\nX: y\r\n")
for name, upstream, status in (
        ("passed on", OK, 200),
        ("an error of the server", OK.replace(b"200", b"500"), 500),
        ("of our own", b"x\r\n", 502)):
    case(269, name, client=G + E, upstream=[upstream], status=status,
         got_not=rb"(?i)received-status|next-protocol|next-hop")

# --- what is not ours passes ---

for name, text in {
        "of an unknown unit": b"banana=1-2",
        "1000 of them": b"bytes=" + b",".join([b"0-1"] * 1000),
        "backwards": b"bytes=5-1", "nothing": b"bytes=",
        "large": b"bytes=99999999999999999999-"}.items():
    for to, ask in ("gateway", G), ("forward", A):
        case(270, f"{name}, {to}", to=to, text=b"ok",
             client=ask + b"Range: " + text + b"\r\nIf-Range: \"x\"\r\n\r\n",
             upstream=[OK], has=[rb"(?m)^Range: " + text + rb"\r$",
                                 rb'(?m)^If-Range: "x"\r$'])
refused(270, "10000 of them", status=431, reason="head_too_large",
        client=G + b"Range: bytes=" + b",".join([b"0-1"] * 10000) + E + E)
case(270, "206 with parts", client=G + b"Range: bytes=0-1\r\n\r\n",
     status=206, text=b"ok", upstream=[
         b"HTTP/1.1 206 P\r\nContent-Range: bytes 0-1/9\r\n"
         b"Content-Length: 2\r\n\r\nok"],
     got=rb"\r\nContent-Range: bytes 0-1/9\r\n")
THEIRS = (b'Server: x/1.2 (y)\r\nETag: W/"a,b"\r\n'
          b"Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
          b"Content-Type: text/html; charset=x\r\nContent-Encoding: gzip\r\n"
          b"Content-Language: en, de\r\nContent-Location: /x\r\n"
          b"Content-MD5: x\r\nContent-Range: bytes */5\r\n"
          b"Accept-Ranges: none\r\nAge: 5\r\nExpires: 0\r\n"
          b"Cache-Control: max-age=5, ext=\"a, no-store\"\r\n"
          b"Vary: *\r\nLocation: /y\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\n")
PATTERN = rb"\r\n" + THEIRS.replace(b"*", rb"\*").replace(
    b"(", rb"\(").replace(b")", rb"\)").replace(b".", rb"\.")
for to, ask in ("gateway", G), ("forward", A):
    case(271, to, to=to, client=ask + E, text=b"ok", got=PATTERN,
         upstream=[OK.replace(E, E + THEIRS, 1)])
    case(271, f"304, {to}", to=to, status=304, got=PATTERN, text=b"",
         client=ask + b'If-None-Match: W/"a,b"\r\n\r\n',
         upstream=[b"HTTP/1.1 304 N\r\n" + THEIRS + E],
         has=rb'(?m)^If-None-Match: W/"a,b"\r$')
case(271, "HEAD", client=[b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
                          Until(b"\r\n\r\n")], got=PATTERN,
     upstream=[K + THEIRS + b"Content-Length: 9\r\n\r\n"])

# --- quoted-pairs and quotes ---

QUOTED = {
    "in a comment of Via": b"Via: 1.1 a (x\\), 1.1 pen (y))\r\n",
    "a comma in a comment of Via": b"Via: 1.1 a (x, 1.1 pen, y)\r\n",
    "a comment in a comment of Via": b"Via: 1.1 a (x (y) , 1.1 pen)\r\n",
    "in Forwarded": b'Forwarded: for="a\\", for=evil"\r\n',
    "in Cache-Control": b'Cache-Control: x="a\\", no-store"\r\n',
}
for name, field in QUOTED.items():
    case(272, name, to="forward", client=A + field + E, seen=b"GET /",
         has=rb"\r\n" + field.replace(b"\\", rb"\\").replace(
             b"(", rb"\(").replace(b")", rb"\)"))
for comment in b"(x\\))", b"(x\\()", b"(\\\\)":
    case(272, f"a quoted-pair in {comment.decode()}, and then a loop",
         client=G + b"Via: 1.1 a " + comment + b", 1.1 pen\r\n\r\n",
         status=508, seen=())
for name, options in ("a quote", b'"a, x-t'), ("two quotes", b'"a, x-t, b"'), (
        "a quoted-pair", b'"a\\", x-t'):
    case(272, f"{name} does not hide what Connection names", upstream=[OK],
         client=G + b"Connection: " + options + b"\r\nX-T: 1\r\n\r\n",
         lacks=[rb"(?i)connection", rb"(?i)x-t"])
for name, field, kept in (
        ("a comma in quotes ends no element of Keep-Alive",
         b'Keep-Alive: x="a, timeout=1, b"', True),
        ("a quoted-pair in Keep-Alive",
         b'Keep-Alive: x="a\\", timeout=1, b"', True),
        ("an element of Keep-Alive", b'Keep-Alive: x="a", timeout=1', False)):
    case(272, name, client=[G + E, Until(b"ok"), SECOND, Until(b"/2>")],
         upstream=[(REQUEST, OK.replace(E, E + field + E, 1))],
         status=[200, 200], connections=1 if kept else 2)
case(272, "a comma in quotes splits no Upgrade", client=[
         G + b'Connection: Upgrade\r\nUpgrade: x/"a, h2c"\r\n\r\n',
         Until(b"ok")], upstream=[OK], lacks=rb"(?im)^upgrade: h2c")
