# SPDX-License-Identifier: BSD-2-Clause
"""Rows 110 to 127: chunks, their extensions, and trailers.

A body is found bad when its good part has gone on.  So that this is the same
however bytes arrive, the client sends the bad part when the upstream has the
good one.
"""

from rows_d import CHUNKED, LAST, SITES, ask, hidden, length
from steps import Await, Content, EOF, FIN, HEAD, Mark, RST, Until
from table import E, G, HIDDEN, T, case

NO_END = rb"\r\n0\r\n"


def good(row, name, chunks, content=b"ab", fields=CHUNKED, **more):
    """A body that is taken; what follows is the next request."""
    for to in SITES:
        case(row, f"{name}, {to}", to=to, status=[200, 200],
             client=ask(to, fields) + chunks + ask(to, b"", b"GET", b"/2"),
             seen=[b"POST /", b"GET /2"], body=content, **more)


def bad(row, name, chunks, before=b"", content=b"", fields=CHUNKED, **more):
    """One that is refused; nothing behind it is looked at."""
    wait = [Content(content)] if content else []
    for to in SITES:
        case(row, f"{name}, {to}", to=to, status=400, ends="close",
             client=[ask(to, fields) + before, Await("good"),
                     chunks + hidden(to), Await("ended")],
             upstream=[(HEAD, *wait, Mark("good"), EOF, Mark("ended"))],
             reason="bad_request", seen=b"POST /", lacks=NO_END, **more)


# --- sizes ---

good(110, "one chunk", b"2\r\nab\r\n" + LAST)
good(110, "two chunks", b"1\r\na\r\n1\r\nb\r\n" + LAST)
good(110, "no chunk", LAST, b"")
for size in (b"A", b"a", b"0A", b"000000000002", b"0" * 15 + b"2", b"fF",
             b"1000", b"0001"):
    content = b"x" * int(size, 16)
    good(110, size.decode(), size + E + content + E + LAST, content)
for to in SITES:
    case(110, f"a request in a chunk, {to}", to=to, body=hidden(to),
         client=ask(to, CHUNKED) + b"%x\r\n" % len(hidden(to)) + hidden(to) +
         E + LAST, seen=b"POST /")
good(110, "an end in a chunk", b"5\r\n0\r\n\r\n\r\n" + LAST, LAST)
# Ten bodies, so that there is an answer now and then: lines take seconds.
case(110, "100000 chunks of one byte", body=b"x" * 10000, status=[200] * 10,
     client=(T + b"1\r\nx\r\n" * 10000 + LAST) * 10,
     seen=[b"POST /"] * 10)
case(110, "as many as there are sizes", seen=b"POST /",
     client=T + b"".join(b"%x\r\n" % n + b"x" * n + E
                         for n in range(1, 300)) + LAST,
     body=b"x" * sum(range(1, 300)))

for size in (b"+2", b"-2", b"0x2", b"0X2", b" 2", b"2 ", b"2\t", b"\t2", b"G",
             b"", b"0_2", b"2.", b"2,3", b"2\x00", b"\x002", b"2\x0b", b"2h",
             b"h2", "٢".encode(), "２".encode(), b"2\xa0", b"2 3", b"2/",
             b"2:", b"2@", b"2`", b"2g", b'"2"', b"2=", b"\r", b"2\x7f"):
    bad(111, repr(size), size + b"\r\nab\r\n" + LAST)
    bad(111, f"{size!r}, second", size + b"\r\nab\r\n" + LAST,
        b"1\r\nq\r\n", b"q")
for size in (b"+0", b"-0", b"0x0", b" 0", b"0 ", b"0\t", b"0_0", b"0.", b"",
             b"-1", b"0h", b"0\x00"):
    bad(111, f"{size!r}, last", size + E + E, b"1\r\nq\r\n", b"q")
for size in (b"F" * 17, b"10000000000000002", b"0" * 16 + b"2", b"0" * 17,
             b"F" * 1000, b"100000000000000000000000000000002"):
    name = size.decode() if len(size) < 40 else "1000 F"
    bad(112, name, size + b"\r\nab\r\n" + LAST)
    bad(112, f"{name}, second", size + b"\r\nab\r\n" + LAST,
        b"1\r\nq\r\n", b"q")
for size in (b"FFFFFFFFFFFFFFFF", b"8000000000000000", b"fffffffffffffffe",
             b"8000000000000002"):
    bad(113, size.decode(), size + b"\r\nab\r\n" + LAST)
    bad(113, f"{size.decode()}, second", size + b"\r\nab\r\n" + LAST,
        b"1\r\nq\r\n", b"q")
case(113, "7FFFFFFFFFFFFFFF", status=[], ends="gone", seen=b"POST /",
     client=[T + b"7FFFFFFFFFFFFFFF\r\n" + HIDDEN, Await("part"), RST,
             Await("ended")],
     upstream=[(HEAD, Content(HIDDEN), Mark("part"), EOF, Mark("ended"))],
     reason="client_closed", lacks=NO_END)

# --- extensions ---

for name, more in (
        ("a value", b";a=b"), ("no value", b";a"), ("quoted", b';a="b c"'),
        ("quoted pair", b';a="b\\"c"'), ("quoted end", b';a="0;b=c"'),
        ("two", b";a=b;c=d"), ("empty quotes", b';a=""'),
        ("bytes above ASCII", b';a="\xc3\xa9"'),
        ("a size", b";5"), ("HTAB in quotes", b';a="\t"')):
    good(114, name, b"2" + more + b"\r\nab\r\n0" + more + E + E, lacks=rb";")
good(115, "16384 bytes", b"2;" + b"a" * 16383 + b"\r\nab\r\n" + LAST)
bad(115, "16385 bytes", b"2;" + b"a" * 16384 + b"\r\nab\r\n" + LAST)
bad(115, "64 KiB on one chunk", b"2;" + b"a" * 65536 + b"\r\nab\r\n" + LAST)
bad(115, "64 KiB on the last chunk", b"0;" + b"a" * 65536 + E + E,
    b"2\r\nab\r\n", b"ab")
bad(115, "half a mebibyte in one value", b'2;a="' + b"a" * (1 << 19) +
    b'"\r\nab\r\n' + LAST)
SOME = b"1;" + b"a" * 99 + b"\r\nx\r\n"
LESS = SOME * 162 + b"1\r\ny\r\n"
bad(115, "half a mebibyte over many chunks", b"1;" + b"a" * 500 +
    b"\r\nx\r\n" + SOME * 5000 + LAST, LESS, b"xy")
bad(115, "100 bytes too many over many chunks", SOME * 2 + LAST,
    LESS + b"1;" + b"a" * 99 + b"\r\nz\r\n", b"xyz")
good(115, "a sixteenth of the content", (b"40;abc\r\n" + b"x" * 64 + E) *
     8192 + LAST, b"x" * 64 * 8192)
for more in (b";a\nab", b";a=b\nab", b';a="x\r\ny"', b";", b";a\x00", b"; ",
             b";;", b";a=", b";=b", b';a="', b';a="b', b';a="b"c', b';"a"',
             b";a=b c", b";a b", b";a=\x00", b';a="\x00"', b';a="\x7f"',
             b";a=b=c", b";a,b", b";a ", b";a=b ", b';a="b" ', b";a=b\x0b",
             b";a/b", b";a\xff", b';a="\\\r"', b'a="b"', b" a=b", b"\t"):
    bad(116, repr(more), b"2" + more + b"\r\nab\r\n" + LAST)
    bad(116, f"{more!r}, last", b"0" + more + E + E, b"2\r\nab\r\n", b"ab")
for name, line in (("in the extension", b"2;a\rX\r\nab\r\n"),
                   ("before the extension", b"5\r\r;ABCD\r\n"),
                   ("after the size", b"2\rX\r\nab\r\n"),
                   ("in a value", b"2;a=b\rX\r\nab\r\n"),
                   ("in quotes", b'2;a="\rX"\r\nab\r\n'),
                   ("twice", b"2\r\r\nab\r\n"),
                   ("before the size", b"\r2\r\nab\r\n"),
                   ("for the end", b"2\rab\r\n"),
                   ("for the end of the extension", b"2;a\rab\r\n")):
    bad(117, name, line + LAST)
    bad(117, f"{name}, second", line + LAST, b"1\r\nq\r\n", b"q")
for more in (b" ;a=b", b"; a=b", b';a=b;c="d"', b"\t;a=b", b";\ta=b",
             b"; a = b", b'; a = "b" ; c', b" ; a", b" \t ; \t a \t = \t b"):
    good(118, repr(more), b"2" + more + b"\r\nab\r\n0" + more + E + E,
         lacks=rb";")

# --- the end of a chunk, and of a line ---

for end in (b"XX", b"\r\r", b"\n\n", b"\n\r", b"00", b"  ", b"\x00\x00",
            b"0\r", b"\rX", b"X\n", b"\r0", b" \n", b"ab", b"\t\n"):
    bad(119, repr(end), end + LAST, b"2\r\nab", b"ab")
bad(119, "one byte too many", b"c\r\n" + LAST, b"2\r\nab", b"ab")
bad(119, "an empty line", E + E + LAST, b"2\r\nab", b"ab")
bad(120, "LF after data", b"\n" + LAST, b"2\r\nab", b"ab")
bad(120, "CR after data", b"\rX" + LAST, b"2\r\nab", b"ab")
bad(120, "CR and size after data", b"\r" + LAST, b"2\r\nab", b"ab")
bad(120, "LF after a size", b"2\nab\r\n" + LAST)
bad(120, "LF after a size and after data", b"2\nab\n0\n\n")
bad(120, "LF after the last size", b"0\n\r\n", b"2\r\nab\r\n", b"ab")
bad(120, "LF after a second size", b"2\nab\r\n" + LAST, b"1\r\nq\r\n", b"q")
bad(120, "LF after an extension", b"2;a=b\nab\r\n" + LAST)
for name, end in (("LF", b"0\r\n\n"), ("LF and LF", b"0\n\n"),
                  ("CR and a letter", b"0\r\n\rX"), ("CR, CR, LF",
                                                     b"0\r\n\r\r\n"),
                  ("LF after a trailer", b"0\r\nX: y\r\n\n"),
                  ("LF in a trailer", b"0\r\nX: y\n\r\n"),
                  ("only LF with a trailer", b"0\r\nX: y\n\n")):
    bad(121, name, end, b"2\r\nab\r\n", b"ab")
    bad(121, f"{name}, without content", end)
for last in (b"000", b"0;x", b"0" * 16, b'0;x="y"', b"0;x=y;z", b"00;0"):
    good(122, last.decode(), b"2\r\nab\r\n" + last + E + E, lacks=rb";")
for name, end in (("no CRLF", b"0\r\n"), ("no LF", b"0\r\n\r"),
                  ("after a trailer", b"0\r\nX: y\r\n"),
                  ("in a trailer", b"0\r\nX: y"), ("in the line", b"0"),
                  ("in the line's end", b"0\r"),
                  ("before the line", b"")):
    for how in (FIN, RST):
        case(123, f"{name}, {how.name}", seen=[b"POST /", b"GET /"],
             status=200, ends="close" if how is FIN else "gone",
             clients=[[T + b"2\r\nab\r\n" + end, Await("good"), how,
                       Await("ended")],
                      [Await("ended"), G + E, Until(b"<GET />")]],
             upstream=[(HEAD, Content(b"ab"), Mark("good"), EOF,
                        Mark("ended"))], lacks=NO_END)

# --- trailers: they are checked, and dropped ---

END = rb"\r\n0\r\n\r\n"
good(124, "all kinds", b"2\r\nab\r\n0\r\nContent-Length: 5\r\n"
     b"Authorization: x\r\nX-Ok: y\r\n\r\n", has=END,
     lacks=rb"(?i)authorization|x-ok|content-length")
for name in (b"Content-Length", b"Transfer-Encoding", b"Host", b"Connection",
             b"Authorization", b"Cookie", b"Via", b"X-Forwarded-For",
             b"Expect", b"Upgrade", b"Max-Forwards", b"Proxy-Authorization",
             b"Trailer", b"TE", b"Content-Type", b"Set-Cookie", b"X-Ok"):
    good(124, name.decode(), b"2\r\nab\r\n0\r\n" + name + b": zzz\r\n\r\n",
         has=END, lacks=rb"zzz")
    good(124, f"{name.decode()}, announced", b"2\r\nab\r\n0\r\n" + name +
         b": zzz\r\n\r\n", has=END, lacks=rb"zzz",
         fields=CHUNKED + b"Trailer: " + name + b"\r\nTE: trailers\r\n"
         b"Connection: TE\r\n")
good(124, "close", b"2\r\nab\r\n0\r\nConnection: close\r\n\r\n",
     has=END, got_not=rb"(?i)connection: close")
good(124, "a length of the next request", b"2\r\nab\r\n0\r\n" + length(50) +
     E, lacks=rb"(?i)content-length")
good(124, "a second coding", b"2\r\nab\r\n0\r\n" + CHUNKED + E,
     lacks=rb"(?i)transfer-encoding:.*(\r\n.*)*transfer-encoding:")
good(124, "an empty value, and spaces", b"2\r\nab\r\n0\r\nA:\r\nB:  \r\n"
     b"C: \t c \r\n\r\n", has=END)

MIB = (1 << 20) - 1000
bad(125, "1 MiB in one value", b"X: " + b"x" * MIB + E + E, b"0\r\n")
bad(125, "1 MiB in a name", b"X" * MIB + b": x\r\n\r\n", b"0\r\n")
bad(125, "1 MiB in lines", (b"X: " + b"x" * 1000 + E) * 1040 + E, b"0\r\n")
bad(125, "10000 fields", b"A: 1\r\n" * 10000 + E, b"0\r\n")
bad(125, "101 fields", b"A: 1\r\n" * 101 + E, b"2\r\nab\r\n0\r\n", b"ab")
good(125, "100 fields", b"2\r\nab\r\n0\r\n" + b"A: 1\r\n" * 100 + E)
good(125, "16 KiB", b"2\r\nab\r\n0\r\nX: " + b"x" * (16384 - 7) + E + E)
bad(125, "16 KiB and a byte", b"X: " + b"x" * (16384 - 6) + E + E,
    b"2\r\nab\r\n0\r\n", b"ab")
good(126, "the token in the head", b"0\r\nX-T: 1\r\n\r\n", b"",
     fields=b"Connection: X-T\r\n" + CHUNKED, lacks=rb"(?i)x-t")
good(126, "in another case", b"2\r\nab\r\n0\r\nx-t: 1\r\n\r\n",
     fields=b"Connection: close-not, X-T\r\n" + CHUNKED, lacks=rb"(?i)x-t")
good(126, "announced", b"2\r\nab\r\n0\r\nX-T: zzz\r\n\r\n",
     fields=b"Connection: X-T\r\nTrailer: X-T\r\n" + CHUNKED, lacks=rb"zzz")
good(126, "with what is kept", b"2\r\nab\r\n0\r\nX-U: 1\r\nX-T: zzz\r\n\r\n",
     fields=b"Connection: X-T\r\nX-T: yyy\r\n" + CHUNKED, lacks=rb"zzz|yyy")
for line in (b"X y", b"X: a\r\n b", b"X: a\r\n\tb", b"X: a\x00b", b"X : a",
             b"X\t: a", b": v", b"X", b"X: a\rb", b"X: a\nY: b", b" X: a",
             b"\tX: a", b"X@: a", b"X\xa0: a", b"X: \x01", b"X: \x7f",
             b"X\x00: a", b'"X": a', b"X[1]: a", b"\x00", b"=", b"\xff",
             b"GET /hidden HTTP/1.1", b"X: a\r", b"X: a\r\r"):
    bad(127, repr(line), line + E + E, b"2\r\nab\r\n0\r\n", b"ab")
    bad(127, f"{line!r}, second", b"A: 1\r\n" + line + E + E, b"0\r\n")
