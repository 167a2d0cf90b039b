# SPDX-License-Identifier: BSD-2-Clause
"""Rows 228 to 241: Upgrade and WebSocket."""

from steps import (Await, EOF, FIN, Flood, HEAD, Mark, Quiet, REQUEST, RST,
                   Until)
from table import E, G, HIDDEN, K, OK, P, case, refused

UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
KEYS = (b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        b"Sec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Protocol: chat, superchat\r\n"
        b"Sec-WebSocket-Extensions: permessage-deflate; a=\"1,2\"\r\n"
        b"Origin: http://example.com\r\n")
ASK = G + UPGRADE + E
ASK_A = b"GET http://a/ HTTP/1.1\r\nHost: a\r\n" + UPGRADE + E
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\n" + UPGRADE
YES = SWITCH + E
HEAD_END = Until(b"\r\n\r\n")
# Masked "hello", and "hello" as a server says it.
ASKED_FRAME = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"
FRAME = b"\x81\x05hello"
FLOOD = Flood(b"x")


def tunnel(row, name, client, upstream, **more):
    """A case of a tunnel, whose 101 the client has read."""
    case(row, name, client=[ASK, HEAD_END, *client],
         upstream=[(REQUEST, YES, *upstream)], status=101,
         ends=more.pop("ends", "gone"), **more)


for to, ask in ("gateway", ASK), ("forward", ASK_A):
    case(228, f"{to}, the first frame with the 101", to=to,
         client=[ask[:-2] + KEYS + E, Until(FRAME), ASKED_FRAME,
                 Until(b"\x88\0"), FIN, EOF],
         upstream=[(REQUEST, SWITCH + b"Sec-WebSocket-Accept: "
                    b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n" + FRAME,
                    Until(ASKED_FRAME), b"\x88\0", FIN, EOF)],
         status=101, ends="gone", reason="",
         has=[rb"(?m)^Upgrade: websocket\r$", rb"(?m)^Connection: Upgrade\r$",
              rb"\x58$"],
         lacks=rb"(?is)upgrade: websocket.*upgrade: websocket",
         got=[rb"^HTTP/1\.1 101 Switching Protocols\r\n",
              rb"(?m)^Upgrade: websocket\r$", rb"(?m)^Connection: Upgrade\r$",
              rb"(?m)^Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=\r$",
              rb"\r\n\r\n\x81\x05hello\x88\0$"],
         got_not=rb"(?i)content-length|transfer-encoding")
tunnel(228, "what looks like HTTP", [HIDDEN, Until(b"ok"), FIN, EOF],
       [Until(HIDDEN), OK, EOF],
       has=rb"\r\n\r\nGET /hidden HTTP/1\.1\r\nHost: a\r\n\r\n$",
       got=rb"\r\n\r\nHTTP/1\.1 200 OK\r\nContent-Length: 2\r\n\r\nok$")
case(228, "in other letters", client=[
         G + b"connection: keep-alive, uPgRaDe\r\nUPGRADE: WebSocket\r\n\r\n",
         HEAD_END, b"a", Until(b"b"), FIN, EOF],
     upstream=[(REQUEST, YES, Until(b"a"), b"b", EOF)], status=101,
     ends="gone", has=rb"(?m)^Upgrade: WebSocket\r$")
case(228, "an interim response before", client=[ASK, Until(FRAME), FIN, EOF],
     upstream=[(REQUEST, b"HTTP/1.1 103 E\r\n\r\n" + YES + FRAME, EOF)],
     status=101, ends="gone", got=rb"(?s)^HTTP/1\.1 103 .*HTTP/1\.1 101 ")

# --- a 101 that nobody wanted ---

NOT_WANTED = {
    "no Upgrade": (G + E, YES),
    "another protocol": (ASK, YES.replace(b"websocket", b"chat")),
    "one asked for and one not": (ASK, YES.replace(b"websocket",
                                                   b"websocket, chat")),
    "two lines": (ASK, SWITCH + b"Upgrade: chat\r\n\r\n"),
    "an empty list": (ASK, YES.replace(b"websocket", b",")),
    "no Connection": (G + b"Upgrade: websocket\r\n\r\n", YES),
    "h2c": (G + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
            YES.replace(b"websocket", b"h2c")),
    "another version": (ASK, YES.replace(b"websocket", b"websocket/2")),
}
for name, (ask, answer) in NOT_WANTED.items():
    case(229, name, client=ask + HIDDEN if ask != ASK else ask,
         upstream=[(REQUEST, answer + FRAME, EOF), ()],
         status=[502, 200] if ask != ASK else 502, reason=None,
         ends="keep", got=[rb"^HTTP/1\.1 502 ",
                           rb"(?m)^Proxy-Status: pen; "
                           rb"error=http_upgrade_failed;"],
         got_not=[rb" 101 ", rb"\x81"])
refused(229, "HTTP/1.0", client=b"GET / HTTP/1.0\r\nHost: a\r\n" + UPGRADE + E,
        upstream=[(REQUEST, YES + FRAME, EOF)], status=502, seen=b"GET /",
        reason="upgrade_failed")
# Each of many would be looked for among many, while nobody else is served.
MANY = b"a, " * 5000 + b"websocket"
for n, status in (8, 101), (9, 502):
    case(229, f"{n} protocols", status=status, client=[
             ASK.replace(b"websocket", MANY), Until(b"\r\n\r\n"), FIN, EOF],
         upstream=[(REQUEST, YES.replace(
             b"websocket", b"websocket" + b", websocket" * (n - 1)), EOF)],
         ends="gone" if status == 101 else "close",
         reason="" if status == 101 else "upgrade_failed")
for name, answer in {
        "alone": b"HTTP/1.1 101 S\r\n\r\n",
        "with Connection": b"HTTP/1.1 101 S\r\nConnection: Upgrade\r\n\r\n",
        }.items():
    for asked, ask in ("asked for", ASK), ("not asked for", G + E):
        case(230, f"{name}, {asked}", client=ask,
             upstream=[(REQUEST, answer + FRAME, EOF)], status=502,
             reason="response_invalid", got_not=[rb" 101 ", rb"\x81"])
case(230, "Upgrade without Connection", client=[ASK, Until(FRAME), FIN, EOF],
     upstream=[(REQUEST, b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\n" +
                FRAME, EOF)], status=101, ends="gone",
     got=rb"(?m)^Connection: Upgrade\r$")

# --- no 101 ---

STAYS = {
    "200": K + b"Content-Length: 2\r\n\r\nok",
    "200 and Upgrade": K + UPGRADE + b"Content-Length: 2\r\n\r\nok",
    "chunks": K + UPGRADE +
    b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
}
for name, answer in STAYS.items():
    end = b"0\r\n\r\n" if name == "chunks" else b"ok"
    case(231, name, client=[ASK, Until(end), HIDDEN, Until(b"hidden")],
         upstream=[(REQUEST, answer, EOF), ()], status=[200, 200],
         seen=[b"GET /", b"GET /hidden"], got_not=rb"(?im)^upgrade:")
PLAIN = {
    "alone": b"Upgrade: websocket\r\n",
    "with keep-alive": b"Connection: keep-alive\r\nUpgrade: websocket\r\n",
    "with close": b"Connection: close\r\nUpgrade: websocket\r\n",
    "with a longer token": b"Connection: upgraded\r\nUpgrade: websocket\r\n",
    "with Connection of nothing": b"Connection:\r\nUpgrade: websocket\r\n",
}
for name, fields in PLAIN.items():
    case(232, name, client=G + fields + E, upstream=[OK],
         ends="close" if b"close" in fields else "keep",
         lacks=[rb"(?im)^upgrade", rb"(?im)^connection"], text=b"ok")
case(232, "Connection without Upgrade", upstream=[OK], text=b"ok",
     client=G + b"Connection: Upgrade\r\n\r\n",
     lacks=[rb"(?im)^upgrade", rb"(?im)^connection"])
for to, target in ("gateway", b"/"), ("forward", b"http://a/"):
    case(233, to, to=to, upstream=[OK], ends="close", text=b"ok",
         client=b"GET " + target + b" HTTP/1.0\r\nHost: a\r\n" + UPGRADE + E,
         lacks=[rb"(?im)^upgrade", rb"(?im)^connection"])
SETTINGS = b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n"
H2C = {
    "alone": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n",
    "settings not named": b"Connection: Upgrade\r\nUpgrade: h2c\r\n",
    "in capitals": b"Connection: upgrade, http2-settings\r\nUpgrade: H2C\r\n",
    "twice": b"Connection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: h2c\r\n",
    "in a list": b"Connection: Upgrade\r\nUpgrade: ,h2c ,\r\n",
    "with a version": b"Connection: Upgrade\r\nUpgrade: h2c/1\r\n",
}
for name, fields in H2C.items():
    case(234, name, client=[G + fields + SETTINGS + E, Until(b"ok"), HIDDEN],
         upstream=[(REQUEST, OK), ()], status=[200, 200], text=b"ok",
         lacks=[rb"(?im)^upgrade", rb"(?im)^http2", rb"(?im)^connection",
                rb"(?i)h2"])
for name, fields in {
        "with another": b"Upgrade: h2c, websocket\r\n",
        "after another": b"Upgrade: websocket, h2c\r\n",
        "in another line": b"Upgrade: websocket\r\nUpgrade: h2c\r\n",
        "in a line before": b"Upgrade: h2c\r\nUpgrade: websocket\r\n"}.items():
    case(234, name, upstream=[(REQUEST, YES + FRAME, EOF)], status=101,
         client=[G + b"Connection: Upgrade, HTTP2-Settings\r\n" + fields +
                 SETTINGS + E, Until(FRAME), FIN, EOF], ends="gone",
         has=rb"(?m)^Upgrade: websocket\r$",
         lacks=[rb"(?i)h2c", rb"(?im)^http2"])
    case(234, f"{name}, and the server takes h2c", status=502,
         upstream=[(REQUEST, YES.replace(b"websocket", b"h2c"), EOF)],
         client=G + b"Connection: Upgrade\r\n" + fields + E,
         reason="upgrade_failed")

# --- bodies ---

BODY = P + UPGRADE + b"Content-Length: 5\r\n\r\n"
CHUNKS = P + UPGRADE + b"Transfer-Encoding: chunked\r\n\r\n"
for name, ask in ("a length", BODY + b"abcde"), (
        "chunks", CHUNKS + b"5\r\nabcde\r\n0\r\n\r\n"):
    case(235, name, upstream=[(REQUEST, YES + FRAME, Until(b"frame"), EOF)],
         client=[ask, Until(FRAME), b"frame", FIN, EOF], status=101,
         ends="gone", body=b"abcde", has=rb"frame$")
    case(235, f"{name}, tunnel data with it", ends="gone",
         upstream=[(REQUEST, YES + FRAME, Until(b"frame"), EOF)],
         client=[ask + b"frame", Until(FRAME), FIN, EOF], status=101,
         body=b"abcde", has=rb"frame$")
    case(235, f"{name}, in pieces", ends="gone", status=101, body=b"abcde",
         upstream=[(HEAD, Mark("head"), REQUEST, YES, Until(b"frame"), EOF)],
         client=[ask[:-2], Await("head"), ask[-2:], HEAD_END, b"frame", FIN,
                 EOF])
case(235, "101 before the body's end", status=502,
     client=[BODY + b"ab", Until(b"upgrade_failed:"), b"cde"],
     upstream=[(HEAD, Until(b"ab"), YES + FRAME, EOF)],
     reason="upgrade_failed", got_not=rb"\x81")

# --- what WebSocket says is the server's matter ---

NO_13 = (b"HTTP/1.1 426 Upgrade Required\r\nSec-WebSocket-Version: 13, 8\r\n"
         b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
         b"Content-Length: 3\r\n\r\nno!")
NO = (b"HTTP/1.1 400 Bad Request\r\nSec-WebSocket-Version: 13\r\n"
      b"Content-Length: 3\r\n\r\nno!")
for name, ask in {
        "POST": P + UPGRADE + KEYS + b"Content-Length: 0\r\n\r\n",
        "version 8": G + UPGRADE + b"Sec-WebSocket-Version: 8\r\n\r\n",
        "no key": G + UPGRADE + b"Sec-WebSocket-Version: 13\r\n\r\n"}.items():
    for status, answer in (400, NO), (426, NO_13):
        case(236, f"{name}, {status}", client=[ask, Until(b"no!")],
             status=status, text=b"no!",
             upstream=[answer], has=rb"(?m)^Upgrade: websocket\r$",
             got=[rb"^HTTP/1\.1 %d " % status,
                  rb"(?m)^Sec-WebSocket-Version: 13(, 8)?\r$"])
case(237, "held until the 101",
     client=[ASK + ASKED_FRAME, Mark("sent"), Until(FRAME), FIN, EOF],
     upstream=[(REQUEST, Await("sent"), Quiet(0.05), YES,
                Until(ASKED_FRAME), FRAME, EOF)],
     status=101, ends="gone", has=rb"\r\n\r\n\x81\x85\x37\xfa\x21\x3d"
     rb"\x7f\x9f\x4d\x51\x58$")
case(237, "after the head", ends="gone", status=101,
     client=[ASK, Await("asked"), ASKED_FRAME, Mark("sent"), Until(FRAME),
             FIN, EOF],
     upstream=[(REQUEST, Mark("asked"), Await("sent"), Quiet(0.05), YES,
                Until(ASKED_FRAME), FRAME, EOF)])
case(237, "much, all of it in order", ends="gone", status=101,
     client=[ASK + b"0123456789abcde\n" * 16384 + b"!", Until(FRAME), FIN,
             EOF],
     upstream=[(REQUEST, Quiet(0.05), YES, Until(b"!"), FRAME, EOF)],
     log={"received": 16384 * 16 + 1})
for name, frames in ("a frame", ASKED_FRAME), ("a request", HIDDEN):
    for status in b"200", b"403", b"426":
        case(237, f"{name}, and no 101 but {status.decode()}",
             client=ASK + frames, status=int(status), ends="close",
             upstream=[(REQUEST, b"HTTP/1.1 " + status +
                        b" X\r\nContent-Length: 2\r\n\r\nok", EOF)],
             seen=b"GET /", got=rb"(?m)^Connection: close")
for to, ask in ("gateway", ASK), ("forward", ASK_A):
    case(238, to, to=to, client=[ask[:-2] + KEYS + E, Until(FRAME), FIN, EOF],
         upstream=[(REQUEST, SWITCH + KEYS + E + FRAME, EOF)], status=101,
         ends="gone", **{
             side: [rb"(?m)^" + line.replace(b".", rb"\.").replace(
                 b"+", rb"\+") + rb"\r$" for line in KEYS.split(E)[:-1]]
             for side in ("has", "got")})
case(239, "426", client=G + E, upstream=[NO_13], status=426, text=b"no!",
     got=[rb"(?m)^Upgrade: websocket\r$", rb"(?m)^Connection: Upgrade\r$"])
case(239, "426 with close", client=G + b"Connection: close\r\n\r\n",
     upstream=[NO_13], status=426, ends="close",
     got=[rb"(?m)^Upgrade: websocket\r$",
          rb"(?m)^Connection: close, Upgrade\r$"])
case(239, "426 for a TLS upgrade", client=G + E, status=426,
     upstream=[NO_13.replace(b"websocket", b"TLS/1.0, HTTP/1.1")],
     got=rb"(?m)^Upgrade: TLS/1\.0, HTTP/1\.1\r$")
case(239, "other statuses say nothing of it", client=G + E,
     upstream=[OK.replace(E, E + UPGRADE, 1)],
     got_not=[rb"(?im)^upgrade", rb"(?im)^connection"])

# --- the end of tunnels, as 219 to 221 ---

tunnel(240, "FIN of the server", [EOF, b"more", FIN],
       [FIN, Until(b"more"), EOF], has=rb"more$", reason="")
tunnel(240, "FIN of the client", [b"a", FIN, Until(b"more"), EOF],
       [EOF, b"more", FIN], got=rb"\r\n\r\nmore$", reason="")
tunnel(240, "FIN with the 101", [EOF], [FRAME, FIN, EOF],
       got=rb"\r\n\r\n\x81\x05hello$", reason="")
tunnel(240, "RST of the client", [b"a", Await("seen"), RST],
       [Until(b"a"), Mark("seen"), EOF])
tunnel(240, "RST of the server", [b"a", EOF], [Until(b"a"), RST],
       ends="reset")
tunnel(240, "idle", [EOF], [EOF], to="gateway_short", reason="tunnel_idle")
tunnel(240, "neither side reads", [Mark("both"), FLOOD],
       [Await("both"), FLOOD, EOF], to="gateway_short", ends="reset",
       reason="tunnel_idle")
tunnel(240, "one side does not follow", [EOF, Await("over")],
       [FIN, EOF, Mark("over")], to="gateway_short", reason="half_closed")
# Times of HTTP are a second there.
tunnel(240, "a time of its own", [Quiet(1.2), b"a", Until(b"b"), FIN, EOF],
       [Until(b"a"), b"b", EOF], to="gateway_tunnel", reason="")

# --- what an attempt leaves behind ---

for name, answer in STAYS.items():
    end = b"0\r\n\r\n" if name == "chunks" else b"ok"
    case(241, name, status=[200, 200], clients=[
             [ASK, Until(end), Mark("done"), Await("over")],
             [Await("done"), G.replace(b"/ ", b"/2 ") + E, Until(b"/2>"),
              Mark("over")]],
         upstream=[(REQUEST, answer, EOF), ()])
case(241, "426", status=[426, 200], clients=[
         [ASK, Until(b"no!"), Mark("done"), Await("over")],
         [Await("done"), G.replace(b"/ ", b"/2 ") + E, Until(b"/2>"),
          Mark("over")]],
     upstream=[(REQUEST, NO_13, EOF), ()])
case(241, "forward", to="forward", status=[200, 200], upstream=[
         (REQUEST, OK, EOF), ()],
     client=[ASK_A, Until(b"ok"),
             b"GET http://a/2 HTTP/1.1\r\nHost: a\r\n\r\n", Until(b"/2>")])
case(241, "without the token it is no attempt", status=[200, 200],
     client=[G + b"Upgrade: websocket\r\n\r\n", Until(b"ok"), G + E],
     upstream=[(REQUEST, OK, REQUEST, OK)])
