# SPDX-License-Identifier: BSD-2-Clause
"""Rows 60 to 85: syntax of fields, limits of heads, order."""

from steps import Await, EOF, Mark, Quiet, REQUEST, Until
from table import E, G, HIDDEN, K, OK, P, T, case, refused

# The same requests for a forward proxy.
START = b"GET / HTTP/1.1\r\n"
FORWARD = b"GET http://a/ HTTP/1.1\r\nHost: a\r\n"
NO_BODY = b"Content-Length: 0\r\n\r\n"


def both(row, name, lines, **more):
    """These lines of fields are refused by both kinds of proxy."""
    refused(row, f"{name}, gateway", client=G + lines + E, **more)
    refused(row, f"{name}, forward", client=FORWARD + lines + E,
            to="forward", **more)


def invalid(row, name, fields, client=G + E, **more):
    """A response with these fields never comes through."""
    more = {"status": 502, "reason": "response_invalid", "seen": b"GET /",
            **more}
    case(row, name, client=client, upstream=[(
        REQUEST, K + fields + NO_BODY, EOF, Mark("closed"))], **more)


# --- lines of fields ---

for space in b" ", b"\t", b"  ", b" \t":
    refused(60, f"Host{space!r}:", reason="bad_request",
            client=START + b"Host" + space + b": a\r\n\r\n")
    for line in (b"X%s: a", b"Content-Length%s: 2", b"Connection%s: close",
                 b"Transfer-Encoding%s: chunked", b"%s: x"):
        both(60, repr(line % space), line % space + E, reason="bad_request")
refused(60, "Content-Length and a body",
        client=P + b"Content-Length : 2\r\n\r\nab")
refused(60, "Transfer-Encoding and a body", lacks=rb".",
        client=P + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + HIDDEN)

for space in b" ", b"\t", b"  ":
    invalid(61, f"X{space!r}:", b"X" + space + b": a\r\n", got_not=rb"\nX")
    invalid(61, f"Content-Length{space!r}:",
            b"Content-Length" + space + b": 2\r\n")
invalid(61, "the last field", b"A: b\r\nX : a\r\n", got_not=rb"\nX")

for space in b" ", b"\t", b"   ", b" \t ":
    both(62, f"{space!r}", b"X: a\r\n" + space + b"b\r\n",
         reason="bad_request")
    both(62, f"an empty one, {space!r}", b"X: a\r\n" + space + E)
    both(62, f"after Host, {space!r}", space + b"b\r\n")
both(62, "twice", b"X: a\r\n b\r\n c\r\n")
both(62, "after an empty value", b"X:\r\n b\r\n")
both(62, "in the last field", b"A: b\r\nX: a\r\n b\r\n")

for space in b" ", b"\t":
    invalid(63, f"{space!r}", b"X: a\r\n" + space + b"b\r\n",
            got_not=rb"\r\n[ \t]")
    invalid(63, f"after the status, {space!r}", space + b"X: b\r\n",
            got_not=rb"\r\n[ \t]")
    invalid(63, f"Content-Length, {space!r}",
            b"Content-Length:\r\n" + space + b"2\r\n")

for name, lines in (
        ("Content-Length", b"Content-Length:\r\n 2\r\n"),
        ("Content-Length, HTAB", b"Content-Length:\r\n\t2\r\n"),
        ("more of it", b"Content-Length: 2\r\n 0\r\n"),
        ("a line of white space", b"Content-Length: 2\r\n \r\n"),
        ("Transfer-Encoding", b"Transfer-Encoding:\r\n chunked\r\n"),
        ("more of it, coding", b"Transfer-Encoding: chunked\r\n , x\r\n"),
        ("in another field", b"X: y\r\n Content-Length: 3\r\n"),
        ("after another field", b"X: y\r\n\tTransfer-Encoding: chunked\r\n")):
    refused(64, name, client=P + lines + b"\r\nab" + HIDDEN, lacks=rb".",
            reason="bad_request")

both(65, "in the middle", b"X: a\0b\r\n", reason="bad_request")
both(65, "alone", b"X: \0\r\n")
both(65, "at the end", b"X: a\0\r\n")
both(65, "before the value", b"X:\0a\r\n")
refused(65, "in Host", client=START + b"Host: a\0b\r\n\r\n")
refused(65, "in Content-Length", client=P + b"Content-Length: 2\0\r\n\r\nab")
invalid(65, "from the upstream", b"X: a\0b\r\n", got_not=rb"\0")

refused(66, "in two pieces", client=[G + b"X: a", b"\nEvil: b\r\n\r\n"],
        lacks=rb".", reason="bad_request")
refused(66, "CR in the first piece",
        client=[G + b"X: a\r", b"Evil: b\r\n\r\n"], lacks=rb".")
both(66, "in one piece", b"X: a\nEvil: b\r\n")
both(66, "two", b"X: a\n\nGET /2 HTTP/1.1\r\n")
invalid(66, "from the upstream", b"X: a\nEvil: b\r\n", got_not=rb"Evil")
case(66, "a good line in two pieces",
     client=[G + b"X: a\r", b"\nY: b\r\n\r\n"],
     has=rb"\r\nX: a\r\nY: b\r\n", seen=b"GET /")

for c in [*range(1, 9), *range(11, 13), *range(14, 32), 127]:
    refused(67, f"0x{c:02x}", client=G + b"X: a%cb\r\n\r\n" % c,
            reason="bad_request")
    invalid(67, f"0x{c:02x} from the upstream", b"X: a%cb\r\n" % c)
refused(67, "0x1f, forward", to="forward", client=FORWARD + b"X: \x1f\r\n\r\n")
case(67, "HTAB", client=G + b"X: a\tb\r\n\r\n", has=rb"\r\nX: a\tb\r\n")

OBS_TEXT = bytes(range(0x80, 0x100))
for name, value in ("two", b"\xff\x80"), ("all", OBS_TEXT), \
        ("no-break space", b"\xa0a\xa0"), ("next line", b"a\x85b"):
    line = b"X: " + value + E
    for to, start in ("gateway", G), ("forward", FORWARD):
        case(68, f"{name}, {to}", to=to, client=start + line + E,
             has=b"\r\nX: " + value + b"\r\n", seen=b"GET /",
             upstream=[K + line + b"Content-Length: 2\r\n\r\nok"],
             got=b"\r\nX: " + value + b"\r\n", text=b"ok")

for name, lines in (("alone", b": v\r\n"), ("without a value", b":\r\n"),
                    ("before others", b": v\r\nX: a\r\n"),
                    ("two colons", b":: v\r\n"),
                    ("before Content-Length", b":\r\nContent-Length: 2\r\n")):
    both(69, name, lines, reason="bad_request")
    invalid(69, f"{name}, from the upstream", lines)
refused(69, "before Host", client=START + b": v\r\nHost: a\r\n\r\n")

for name in [b"X()", b"X@", b'"X"', b"X\xa0", b"X\0", b"X y", b"X[1]",
             b"X\x7f", b"X\x01", b"\xc3\xa9", b"\xff", b"X\x0b", b"X\xad",
             b"\0", b"X\tY", b"X\r"] + [
                 b"X%cY" % c for c in b'"(),/;<=>?@[\\]{}']:
    both(70, repr(name), name + b": a\r\n", reason="bad_request")
    invalid(70, f"{name!r} from the upstream", name + b": a\r\n")
case(70, "all characters of a token", seen=b"GET /",
     client=G + b"!#$%&'*+-.^_`|~09azAZ: a\r\n\r\n",
     has=rb"\r\n!#\$%&'\*\+-\.\^_`\|~09azAZ: a\r\n")

for line in (b"foo", b"Content-Length 10", b"Content-Length",
             b"GET / HTTP/1.1", b"foo bar", b"f",
             b"Transfer-Encoding=chunked", b"-"):
    both(71, line.decode(), line + E, reason="bad_request")
    invalid(71, f"{line.decode()} from the upstream", line + E)
refused(71, "before Host", client=START + b"foo\r\nHost: a\r\n\r\n")

# --- limits of heads ---


def head_of(size, start=G, name=b"X"):
    """A head of exactly this size, most of it in one value."""
    left = size - len(start + name + b": \r\n\r\n")
    return start + name + b": " + b"v" * left + b"\r\n\r\n"


SIZES = (("gateway_small", 1024), ("gateway", 32768), ("gateway_large", 65536))
FIELDS = (("gateway_small", 8), ("gateway", 100), ("gateway_large", 1000))

for to, size in SIZES[:2]:
    case(72, f"limit, {to}", to=to, client=head_of(size), seen=b"GET /",
         has=rb"\r\nX: v{%d}\r\n" % (size - len(G) - 7))
for to, size in SIZES:
    refused(72, f"limit+1, {to}", to=to, client=head_of(size + 1),
            status=431, reason="head_too_large")
    case(72, f"answered early, {to}", to=to, status=431, ends="close",
         client=[head_of(size + 99)[:size + 1], Until(b" 431 ")], seen=())
refused(72, "limit+1, forward", to="forward", status=431,
        client=head_of(32769, FORWARD))
case(72, "limit, forward", to="forward", client=head_of(32768, FORWARD),
     seen=b"GET /", has=rb"\r\nX: v{%d}\r\n" % (32768 - len(FORWARD) - 7))
case(72, "16 KiB+1", client=G + b"X: " + b"v" * 16382 + b"\r\n\r\n",
     seen=b"GET /", has=rb"\r\nX: v{16382}\r\n")
case(72, "white space counts", to="gateway_small", status=431, ends="close",
     client=G + b"X:" + b" " * 1100 + b"v\r\n\r\n", seen=())
refused(72, "a megabyte", status=431, client=G + b"X: " + b"v" * (1 << 20))
case(72, "empty lines before do not count", to="gateway_small",
     client=E + E + head_of(1024), seen=b"GET /")

for to, size in ("gateway_small", 2000), ("gateway", 65536), \
        ("gateway_large", 65536), ("gateway", 32768), ("gateway_large", 65537):
    refused(73, f"{size}, {to}", to=to, status=431, reason="head_too_large",
            client=G + b"N" * size + b": a\r\n\r\n")
for name in b"Content-Length", b"Transfer-Encoding", b"Host":
    # As long as it takes to look like another in 8 or 16 bits.
    for more in 256, 65536:
        long = name + b"x" * more
        large = more > 256
        case(73, f"{name.decode()} and {more} more", seen=None if not large
             else (), client=P + long + b": 5\r\n\r\n",
             status=431 if large else 200, ends="close" if large else "keep",
             has=() if large else b"\r\n" + long + b": 5\r\n",
             lacks=rb"(?im)^(content-length|transfer-encoding):")
case(73, "30000", seen=b"GET /", client=G + b"N" * 30000 + b": a\r\n\r\n",
     has=rb"\r\nN{30000}: a\r\n")
case(73, "answered early", status=431, ends="close", seen=(),
     client=[G + b"N" * 32768, Until(b" 431 ")])


def fields(n):
    return b"".join(b"F%d: %d\r\n" % (i, i) for i in range(n))


for to, most in FIELDS:
    case(74, f"fields, limit, {to}", to=to, client=G + fields(most - 1) + E,
         has=b"\r\n" + fields(most - 1), seen=b"GET /")
    refused(74, f"fields, limit+1, {to}", to=to, status=431,
            client=G + fields(most) + E, reason="head_too_large")
    case(74, f"fields, answered early, {to}", to=to, status=431,
         ends="close", client=[G + fields(most), Until(b" 431 ")], seen=())
for to in "gateway", "gateway_large":
    refused(74, f"10 000 fields, {to}", to=to, status=431,
            client=G + fields(10000) + E, reason="head_too_large")
    refused(74, f"10 000 empty fields, {to}", to=to, status=431,
            client=G + b"a:\r\n" * 10000 + E, reason="head_too_large")
for to, size in SIZES[:2]:
    line = b"X: " + b"v" * (size // 8) + E
    head = head_of(size, G + line * 6, b"Y")
    case(74, f"total, limit, {to}", to=to, client=head, seen=b"GET /",
         has=rb"\r\nY: v+\r\n")
    refused(74, f"total, limit+1, {to}", to=to, status=431,
            client=head[:-4] + b"v\r\n\r\n", reason="head_too_large")
refused(74, "fields, forward", to="forward", status=431,
        client=FORWARD + fields(100) + E)
refused(74, "the second request", status=[200, 431], to="gateway_small",
        client=G + E + head_of(1025), seen=b"GET /")


# --- limits of responses ---

def large_response(name, head, to="gateway", method=b"GET", **more):
    """Refused, and the upstream's connection closed at once."""
    case(75, name, to=to, status=502, reason="response_too_large",
         client=[G.replace(b"GET", method) + E, Until(b" 502 "),
                 Await("closed")],
         upstream=[(REQUEST, head, EOF, Mark("closed"))],
         got=rb"(?im)^proxy-status: pen; "
         rb"error=http_response_header_section_size", **more)


for to, size in SIZES:
    large_response(f"limit+1, {to}", head_of(size + 1, K), to)
    large_response(f"no end, {to}", K + b"X: " + b"v" * size, to)
    large_response(f"a long reason, {to}",
                   b"HTTP/1.1 200 " + b"r" * size + b"\r\n\r\n", to)
for to, most in FIELDS:
    large_response(f"fields, limit+1, {to}", K + fields(most + 1) + E, to)
    case(75, f"fields, limit, {to}", to=to, client=G + E, text=b"ok",
         upstream=[K + fields(most - 1) + b"Content-Length: 2\r\n\r\nok"],
         got=b"\r\n" + fields(most - 1))
for to, size in SIZES[:2]:
    start = K + b"Content-Length: 2\r\n"
    case(75, f"limit, {to}", to=to, client=G + E, text=b"ok",
         upstream=[head_of(size, start) + b"ok"],
         got=rb"\r\nX: v{%d}\r\n" % (size - len(start) - 7))
large_response("to HEAD", head_of(32769, K), method=b"HEAD")
large_response("a field name", K + b"N" * 40000 + b": a\r\n\r\n")
large_response("after 100", b"HTTP/1.1 100 C\r\n\r\n" + head_of(32769, K))
large_response("100", head_of(32769, b"HTTP/1.1 100 C\r\n"))

# --- order and values ---

case(76, "of a request", client=G + b"A: 1\r\nB: x\r\nA: 2\r\n\r\n",
     has=rb"\r\nA: 1\r\nB: x\r\nA: 2\r\n", seen=b"GET /")
case(76, "of a request, forward", to="forward", seen=b"GET /",
     client=FORWARD + b"A: 1\r\nB: x\r\na: 2\r\nA: 3\r\n\r\n",
     has=rb"\r\nA: 1\r\nB: x\r\na: 2\r\nA: 3\r\n")
case(76, "around fields that do not pass", seen=b"GET /",
     client=G + b"A: 1\r\nKeep-Alive: x\r\nA: 2\r\nB:  y\r\nA: 3\r\nTE: x\r\n"
     b"A:4\r\n\r\n", has=rb"\r\nA: 1\r\nA: 2\r\nB: y\r\nA: 3\r\nA: 4\r\n")
case(76, "Cookie", client=G + b"Cookie: a=1\r\nX: y\r\nCookie: b=2\r\n\r\n",
     has=rb"\r\nCookie: a=1\r\nX: y\r\nCookie: b=2\r\n")
for to, start in ("gateway", G), ("forward", FORWARD):
    case(76, f"Set-Cookie, {to}", to=to, client=start + E, text=b"ok",
         upstream=[K + b"Set-Cookie: a=1, 2\r\nX: y\r\nSet-Cookie: b=2\r\n"
                   b"set-cookie: c\r\nContent-Length: 2\r\n\r\nok"],
         got=rb"\r\nSet-Cookie: a=1, 2\r\nX: y\r\nSet-Cookie: b=2\r\n"
         rb"set-cookie: c\r\n")

UNKNOWN = (b"X-Never-Seen: 1", b"x: ", b"Priority: u=1", b'Sec-X: a, b;c="d"',
           b"Origin: null", b"Hosts: a", b"Connectio: close", b"1: 2",
           b"Content-Lengt: 3", b"Content-Length-X: 3", b"Via2: x",
           b"X-Transfer-Encoding: chunked", b"Upgrade-Insecure-Requests: 1")
for line in UNKNOWN:
    name = line.decode()
    shown = b"\r\n" + line + b"\r\n"
    for to, start in ("gateway", G), ("forward", FORWARD):
        case(77, f"{name}, {to}", to=to, client=start + line + E + E,
             has=shown, seen=b"GET /", got=shown, text=b"ok",
             upstream=[K + line + b"\r\nContent-Length: 2\r\n\r\nok"])

for raw, value in ((b"   b \t ", b"b"), (b"b", b"b"), (b"\tb", b"b"),
                   (b" b\t", b"b"), (b" b  c ", b"b  c"), (b"", b""),
                   (b" ", b""), (b"\t \t", b""), (b" :", b":"),
                   (b" b" + b" " * 500, b"b"), (b" \xa0 ", b"\xa0")):
    line = b"X:" + raw + E
    name = repr(raw[:12])
    shown = b"\r\nX: " + value + b"\r\n"
    case(78, f"{name}", client=G + line + E, has=shown, seen=b"GET /",
         got=shown, text=b"ok",
         upstream=[K + line + b"Content-Length: 2\r\n\r\nok"])
case(78, "the last field", client=G + b"A: b\r\nX: c \r\n\r\n",
     has=rb"\r\nA: b\r\nX: c\r\n")
case(78, "Content-Length", client=P + b"Content-Length: \t2  \r\n\r\nab",
     has=rb"\r\nContent-Length: 2\r\n", body=b"ab")
# llhttp does not take it; see penstock(8), what is refused.
refused(78, "Content-Length, HTAB behind it", reason="bad_request",
        client=P + b"Content-Length: 2\t\r\n\r\nab")

for value in (b", ,close, ,", b",close", b"close,", b",,,,close", b"close , ,",
              b"\t,\tclose\t,"):
    for to, start in ("gateway", G), ("forward", FORWARD):
        case(79, f"Connection: {value!r}, {to}", to=to, ends="close",
             client=start + b"Connection: " + value + b"\r\n\r\n",
             got=rb"(?im)^connection: close\r$", seen=b"GET /",
             lacks=rb"(?i)\nConnection:")
for value in b"", b",", b", , ,", b"," * 10000, b" ," * 10000:
    case(79, f"Connection: {value[:6]!r} {len(value)}",
         client=G + b"Connection: " + value + b"\r\n\r\n", seen=b"GET /",
         lacks=rb"(?i)\nConnection:")
for value in b",", b", ,", b",1.0 x,,", b"," * 10000:
    case(79, f"Via: {value[:9]!r}", seen=b"GET /",
         client=G + b"Via: " + value + b"\r\n\r\n",
         has=b"\r\nVia: " + value + rb"\r\nVia: 1\.1 pen\r\n")
case(79, "from the upstream", upstream=[
    K + b"Connection: , ,X, ,\r\nX: y\r\nVia: ,\r\n"
    b"Content-Length: 2\r\n\r\nok"], client=G + E, text=b"ok",
     got=rb"\r\nVia: ,\r\n", got_not=rb"\nX: y")
refused(79, "too many options", reason="bad_request",
        client=G + b"Connection: " + b"x," * 10000 + b"\r\n\r\n")

for name in b"Host", b"hOsT", b"HOST", b"host":
    case(80, name.decode(), client=START + name + b": a\r\n\r\n",
         has=rb"\A[^\r]+\r\nHost: a\r\nV", seen=b"GET /")
for name in b"CONTENT-LENGTH", b"content-length", b"cOnTeNt-LeNgTh":
    case(80, name.decode(), client=P + name + b": 2\r\n\r\nab", body=b"ab",
         upstream=[K + name + b": 2\r\n\r\nok"], text=b"ok",
         has=rb"\r\nContent-Length: 2\r\n", got=rb"\r\nContent-Length: 2\r\n")
for name in b"TRANSFER-ENCODING", b"transfer-encoding":
    case(80, name.decode(), body=b"ab", text=b"ok",
         client=P + name + b": CHUNKED\r\n\r\n2\r\nab\r\n0\r\n\r\n",
         upstream=[K + name + b": Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"])
case(80, "CONNECTION", client=G + b"CONNECTION: CLOSE, X\r\nx: y\r\n\r\n",
     ends="close", lacks=rb"\nx: y", seen=b"GET /")

for line in (b"Content_Length: 5", b"Transfer_Encoding: chunked",
             b"CONTENT_LENGTH: 5", b"Content-_Length: 5", b"Host_: b",
             b"X_Forwarded_For: 1.2.3.4", b"Content.Length: 5"):
    shown = b"\r\n" + line + b"\r\n"
    for to, start in ("gateway", G), ("forward", FORWARD):
        case(81, f"{line.decode()}, {to}", to=to, has=shown, seen=b"GET /",
             client=start + line + E + E)
    case(81, f"{line.decode()} from the upstream", client=G + E, text=b"ok",
         upstream=[K + line + b"\r\nContent-Length: 2\r\n\r\nok"], got=shown)
case(81, "no body", client=P + b"Content_Length: 38\r\n\r\n" + HIDDEN,
     status=[200, 200], seen=[b"POST /", b"GET /hidden"], body=b"")

VIA = b"Via: 1.0 fred, 1.1 p\r\nX: y\r\nVia: HTTP/1.1 b:80 (c)\r\n"
for to, start in ("gateway", G), ("forward", FORWARD):
    case(82, f"Via, {to}", to=to, client=start + VIA + E, seen=b"GET /",
         has=b"\r\n" + VIA.replace(b"(c)", rb"\(c\)") +
         rb"([^V\r][^\r]*\r\n)*Via: 1\.1 pen\r\n")
case(82, "Via of the upstream", client=G + E, text=b"ok", upstream=[
    K + b"Via: 1.0 x\r\nVia: 1.1 y\r\nContent-Length: 2\r\n\r\nok"],
     got=rb"\r\nVia: 1\.0 x\r\nVia: 1\.1 y\r\n([^V\r][^\r]*\r\n)*"
     rb"Via: 1\.1 pen\r\n")
FORWARDED = b"X-Forwarded-For: 1.1.1.1, 2.2.2.2\r\nX: y\r\n" \
    b"X-Forwarded-For: 3.3.3.3\r\n"
case(82, "X-Forwarded-For, trusted", to="gateway_trusting", seen=b"GET /",
     client=G + FORWARDED + E, lacks=rb"(?s)For: [^G]*For: ",
     has=rb"\r\nX-Forwarded-For: 1\.1\.1\.1, 2\.2\.2\.2, 3\.3\.3\.3, 127\.")
case(82, "X-Forwarded-For, not trusted", seen=b"GET /",
     client=G + FORWARDED + E, has=rb"\r\nX-Forwarded-For: 127\.10\.",
     lacks=rb"[123]\.[123]\.[123]\.[123]")
case(82, "X-Forwarded-For, forward", to="forward", seen=b"GET /",
     client=FORWARD + FORWARDED + E, has=b"\r\n" + FORWARDED,
     lacks=rb"127\.10\.")

# --- how bytes arrive ---

for name, client, seen, body in (
        ("GET", G + b"A: b\r\nX:\r\nY: \t\r\n\r\n", b"GET /", b""),
        ("a length", P + b"Content-Length: 5\r\n\r\na\r\n\r\n", b"POST /",
         b"a\r\n\r\n"),
        ("chunks", T + b"1\r\na\r\n10;x=y\r\n0123456789abcdef\r\n0\r\nX: y\r\n"
         b"\r\n", b"POST /", b"a0123456789abcdef"),
        ("OPTIONS", b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", b"OPTIONS *",
         b""),
        ("HEAD", b"HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n", b"HEAD /x", b""),
        ("only Host", G + E, b"GET /", b"")):
    case(83, name, client=client, seen=seen, body=body)
    case(83, f"{name}, in our pieces", seen=seen, body=body,
         client=[client[i:i + 7] for i in range(0, len(client), 7)])
case(83, "three in one", status=[200, 200, 200], body=b"ab",
     client=P + b"Content-Length: 2\r\n\r\nab" + G + E + T + b"0\r\n\r\n",
     seen=[b"POST /", b"GET /", b"POST /"])
case(83, "an absolute target", to="forward", client=FORWARD + E,
     seen=b"GET /", has=rb"\r\nHost: a\r\n")
case(83, "a response in chunks", client=G + E, text=b"ok!", upstream=[
    K + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n1;x\r\n!\r\n0\r\n\r\n"])

# Silence, and no upstream is spoken to before a head is complete.
for name, client in (("the last CRLF", G), ("the last LF", G + b"\r"),
                     ("half a field", G + b"X: a"),
                     ("half a request line", b"GET / HT")):
    case(84, f"without {name}", to="gateway_short", client=client,
         status=408, ends="close", seen=(), lacks=rb".",
         reason="request_timeout")
case(84, "an upstream that waits", to="gateway_short", status=[200, 408],
     client=[G + E, Until(b"ok"), P + b"Content-Length: 5\r\n", Mark("half")],
     upstream=[(REQUEST, OK, Await("half"), Quiet(0.2))], seen=b"GET /",
     ends="close", reason="request_timeout")
case(84, "it comes at last", client=[G, Quiet(0.05), E], seen=b"GET /")

for date in (b"Sunday, 06-Nov-94 08:49:37 GMT", b"Sun Nov  6 08:49:37 1994",
             b"Sun, 06 Nov 1994 08:49:37 GMT", b"Sun Nov 26 08:49:37 1994",
             b"yesterday", b"0", b"", b"Sun, 06 Nov 1994 08:49:37 +0100"):
    for to, start in ("gateway", G), ("forward", FORWARD):
        case(85, f"{date.decode()!r}, {to}", to=to, text=b"ok",
             client=[start + E, Until(b"ok")],
             upstream=[K + b"Date: " + date + E +
                       b"Content-Length: 2\r\n\r\nok"],
             got=rb"\A[^\r]+\r\nDate: " + date.replace(b"+", rb"\+") +
             rb"\r\n(?!([^\r]+\r\n)*Date)")
case(85, "two of them", client=G + E, text=b"ok", upstream=[
    K + b"Date: x\r\nDate: y\r\nContent-Length: 2\r\n\r\nok"],
     got=rb"\r\nDate: x\r\nDate: y\r\n")
