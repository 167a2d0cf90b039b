# SPDX-License-Identifier: BSD-2-Clause
"""Rows k9, k15 to k19 and k22: requests that were the end of a proxy."""

from rows_d import CHUNKED, LAST, SITES, ask, hidden, length
from steps import (Await, CLOSE, Content, EOF, FIN, HEAD, Mark, REQUEST, RST,
                   Until)
from table import E, G, HIDDEN, P, T, case

# --- k9: answered early, then the rest and garbage in one segment ---

DENIED = b"POST http://127.0.0.1/ HTTP/1.1\r\nHost: a\r\n"
NO = b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"
BAD = {"a control": b"\x01\r\n\r\n", "a space": b" GET / HTTP/1.1\r\n\r\n",
       "no version": b"GET /hidden\r\n\r\n",
       "both framings": b"POST http://a/hidden HTTP/1.1\r\nHost: a\r\n" +
       length(5) + CHUNKED + E + LAST, "an empty name":
       b"GET http://a/hidden HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n"}
for name, what in BAD.items():
    case("k9", f"our answer, then {name}", to="forward", status=[403, 400],
         client=[DENIED + length(10) + E + b"12345",
                 Until(b"destination_denied: "), b"67890" + what],
         ends="close", seen=(), reason="bad_request")
    case("k9", f"our answer and {name} at once", to="forward",
         status=[403, 400], ends="close", seen=(), reason="bad_request",
         client=DENIED + length(10) + E + b"1234567890" + what)
    case("k9", f"the server's answer, then {name}", status=403, ends="close",
         client=[P + length(10) + E + b"12345", Until(b"no"),
                 b"67890" + what], seen=b"POST /", text=b"no",
         upstream=[(HEAD, Content(b"12345"), NO, EOF)])
    case("k9", f"the server's answer and its end, then {name}", status=403,
         client=[P + length(10) + E + b"12345", Until(b"no"),
                 b"67890" + what], seen=b"POST /", text=b"no", ends="close",
         upstream=[(HEAD, Content(b"12345"), NO, CLOSE)])
case("k9", "our answer, and a good one behind", to="forward",
     status=[403, 200], seen=b"GET /2",
     client=[DENIED + length(10) + E + b"12345",
             Until(b"destination_denied: "),
             b"67890" + ask("forward", b"", b"GET", b"/2")])
case("k9", "our answer, and a request as the body", to="forward", status=403,
     client=DENIED + length(len(hidden("forward"))) + E + hidden("forward"),
     seen=())
case("k9", "our answer to chunks", to="forward", status=403, ends="close",
     client=[DENIED + CHUNKED + E + b"A\r\n12345",
             Until(b"destination_denied: "),
             b"67890\r\n" + LAST + hidden("forward")], seen=())

# --- k15, k16: over and over ---

TIMES = 1000
case("k15", "1000 times", seen=b"GET /", to="gateway_tight",
     clients=[[*(Await(str(n)) for n in range(TIMES)), G + E]] +
             [[E, RST, Mark(str(n))] for n in range(TIMES)])
for name, start in (("half an empty line", b"\r"), ("two", E + E),
                    ("and a half", E + b"\r"), ("and a letter", E + b"G"),
                    ("nothing", b"")):
    case("k15", name, seen=b"GET /", to="gateway_tight",
         clients=[[*(Await(str(n)) for n in range(50)), G + E]] +
                 [[start, RST, Mark(str(n))] for n in range(50)])


def in_turn(name, start, steps, times, status=()):
    """So many clients that fail alike, one after another; then a good one."""
    lost = [[*([Await(f"{n - 1} ended")] if n else []), T + start,
             Await(f"{n} is there"), *steps, Await(f"{n} ended")]
            for n in range(times)]
    case("k16", name, to="gateway_tight", clients=[
             [Await(f"{times - 1} ended"), G + E, Until(b"<GET />")], *lost],
         upstream=[(HEAD, Content(b"ab"), Mark(f"{n} is there"), EOF,
                    Mark(f"{n} ended")) for n in range(times)],
         status=[200, *status * times], lacks=rb"\r\n0\r\n",
         seen=[b"POST /"] * times + [b"GET /"])


for name, end in (("FIN", FIN), ("reset", RST)):
    in_turn(f"{name} in a chunk", b"5\r\nab", [end], 50)
    in_turn(f"{name} between chunks", b"2\r\nab\r\n", [end], 20)
    in_turn(f"{name} before the last line", b"2\r\nab\r\n0\r\n", [end], 20)
    in_turn(f"bad chunk, then {name}", b"2\r\nab",
            [b"\rX", Until(b"bad_request: "), end], 20, status=[400])
in_turn("bad chunk", b"2\r\nab", [b"\rX", EOF], 20, status=[400])

# --- k17: one byte after a chunked request ---

for to in SITES:
    for extra in (b"\x00", b"\n", b" ", b"\t", b"\x7f", b"\xff", b":", b"\r\r",
                  b"\r\x00", b"\x16", b"0\r\n\r\n", b"\r\n0\r\n\r\n"):
        for name, chunks in (("", b""), (" after content", b"2\r\nab\r\n")):
            case("k17", f"{extra!r}{name}, {to}", to=to, status=[200, 400],
                 client=ask(to, CHUNKED) + chunks + LAST + extra +
                 hidden(to), seen=b"POST /", ends="close",
                 reason="bad_request")
    case("k17", f"CR and the end, {to}", to=to, status=200, seen=b"POST /",
         client=[ask(to, CHUNKED) + LAST + b"\r", Until(b"<POST "), FIN],
         ends="close")
    case("k17", f"CRLF is an empty line, {to}", to=to, status=[200, 200],
         client=ask(to, CHUNKED) + LAST + E + ask(to, b"", b"GET", b"/2"),
         seen=[b"POST /", b"GET /2"])

# --- k18: what is unchunked is chunked again ---

INNER = b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n"
for to in SITES:
    case("k18", f"an empty line before the last chunk, {to}", to=to,
         client=[ask(to, CHUNKED) + b"17\r\n" + INNER + E, Await("inner"),
                 E + LAST + hidden(to)], status=400, ends="close",
         upstream=[(HEAD, Content(INNER), Mark("inner"), EOF)],
         seen=b"POST /", reason="bad_request")
    case("k18", f"without it, {to}", to=to, body=INNER, seen=b"POST /",
         client=ask(to, CHUNKED) + b"17\r\n" + INNER + E + LAST,
         has=rb"\r\nTransfer-Encoding: chunked\r\n")
    case("k18", f"as a length, {to}", to=to, body=INNER, seen=b"POST /",
         client=ask(to, length(len(INNER))) + INNER)

# --- k19: a GET's body goes with its length ---

for to in SITES:
    for method in (b"GET", b"HEAD", b"DELETE"):
        case("k19", f"{method.decode()}, {to}", to=to, body=b"1234567890",
             client=ask(to, length(10), method) + b"1234567890",
             seen=method + b" /", has=rb"\r\nContent-Length: 10\r\n")
        case("k19", f"{method.decode()} of chunks, {to}", to=to,
             client=ask(to, CHUNKED, method) + b"A\r\n1234567890\r\n" + LAST,
             seen=method + b" /", body=b"1234567890",
             has=rb"\r\nTransfer-Encoding: chunked\r\n")

# --- k22: chunked requests with others right behind them ---


def pairs(name, count, content, to="gateway"):
    """Chunked and plain requests in turn, each with a target of its own."""
    asked, seen, got = b"", [], b""
    for n in range(count):
        post, get = b"/post-%d" % n, b"/get-%d" % n
        asked += ask(to, CHUNKED, b"POST", post)
        asked += b"%x\r\n%s\r\n" % (len(content), content) if content else b""
        asked += LAST + ask(to, b"", b"GET", get)
        seen += [b"POST " + post, b"GET " + get]
        got += rb"[^<>]*<POST %s>[^<>]*<GET %s>" % (post, get)
    case("k22", f"{name}, {to}", to=to, client=asked, seen=seen,
         status=[200] * 2 * count, got=b"^" + got)


for to in SITES:
    pairs("empty bodies", 50, b"", to)
    pairs("small bodies", 50, b"abc", to)
    pairs("requests in the bodies", 50, hidden(to), to)
    pairs("bodies of 4 KiB", 20, b"x" * 4096, to)
pairs("500 pairs", 500, b"abc")
for n in (1, 2, 3):
    case("k22", f"the next head's first {n} came with the body",
         client=[T + b"2\r\nab\r\n" + LAST + G[:n], Until(b"<POST />"),
                 G[n:] + E], status=[200, 200], seen=[b"POST /", b"GET /"])
case("k22", "three that answer late", status=[200] * 3, client=(T + LAST) * 3,
     seen=[b"POST /"] * 3, upstream=[
         (REQUEST, b"HTTP/1.1 200 OK\r\n", b"Content-Length: 0\r\n\r\n",
          REQUEST, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
          REQUEST, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")])
case("k22", "the last is bad", status=[200, 200, 400], ends="close",
     client=(T + b"2\r\nab\r\n" + LAST) * 2 + HIDDEN[:-4] + b"\r\n: x\r\n\r\n",
     seen=[b"POST /"] * 2)
