# SPDX-License-Identifier: BSD-2-Clause
"""Rows 1 to 49: lines, the start line, versions, targets."""

import random

from steps import EOF, FIN, REQUEST, Until
from table import E, G, HIDDEN, K, P, case, refused

# The rest of a request after its first line.
A = b"\r\nHost: a\r\n\r\n"


def get(target, host=b"a", method=b"GET"):
    """A request without more than it must have."""
    return method + b" " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\n\r\n"


def both(row, name, request, to=("gateway", "forward"), **more):
    """The same bytes are refused as a gateway and as a forward proxy."""
    for listener in to:
        refused(row, f"{name}, {listener}", to=listener, client=request,
                **more)


# --- lines ---

both(1, "a bare CR in a value", G + b"X: a\rb\r\n\r\n", reason="bad_request")
refused(1, "a bare CR after the colon", client=G + b"X:\ra\r\n\r\n")
refused(1, "a bare CR before the end", client=G + b"X: a\r\r\n\r\n")
refused(1, "a bare CR in a name", client=G + b"X\rY: a\r\n\r\n")
refused(1, "a bare CR, then a field", client=G + b"X: a\rE: b\r\n\r\n")
case(1, "a bare CR from the upstream", client=G + E, status=502,
     upstream=[K + b"X: a\rb\r\nContent-Length: 0\r\n\r\n"],
     reason="response_invalid", got_not=rb"\r[^\n]")

refused(2, "a bare CR in the target", client=get(b"/\rx"))
refused(2, "a bare CR after the target",
        client=b"GET /\r HTTP/1.1" + A)
refused(2, "a bare CR after the version",
        client=b"GET / HTTP/1.1\r" + A)
refused(2, "a bare CR and a request",
        client=b"GET / HTTP/1.1\rGET /hidden HTTP/1.1" + A)

refused(3, "LF only", client=b"GET / HTTP/1.1\nHost: a\n\n")
refused(3, "LF after the start line",
        client=b"GET / HTTP/1.1\nHost: a\r\n\r\n")
refused(3, "LF after a field",
        client=b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n")
refused(3, "LF as the last line", client=G + b"X: b\r\n\n")
refused(3, "LF twice after a field", client=G + b"X: b\n\n" + HIDDEN)

refused(4, "CRLF LF", client=G + b"\n" + HIDDEN, lacks=rb".")
refused(4, "LF CR LF", client=G[:-2] + b"\n\r\n" + HIDDEN, lacks=rb".")

refused(5, "CRLF CR X", client=G + b"\rX" + HIDDEN, lacks=rb".")
refused(5, "CRLF CR CR LF", client=G + b"\r\r\n" + HIDDEN, lacks=rb".")
refused(5, "CRLF CR SP LF", client=G + b"\r \n" + HIDDEN, lacks=rb".")
refused(5, "CRLF CR NUL LF", client=G + b"\r\0\n" + HIDDEN, lacks=rb".")

case(6, "one", client=E + G + E, status=200, seen=b"GET /")
case(6, "two", client=E + E + G + E, status=200, seen=b"GET /")
case(6, "two before the second request", client=G + E + E + E + G + E,
     status=[200, 200], seen=[b"GET /", b"GET /"])
refused(6, "three", client=E + E + E + G + E)
refused(6, "three before the second request",
        client=G + E + E + E + E + G + E, status=[200, 400], seen=b"GET /")
refused(6, "a thousand", client=E * 1000 + G + E)
refused(6, "LF only", client=b"\n" + G + E)
refused(6, "CR only", client=b"\r" + G + E)
refused(6, "white space", client=b" \r\n" + G + E)

for space in (b" ", b"\t", b"  "):
    both(7, f"before Host, {space!r}",
         b"GET / HTTP/1.1\r\n" + space + b"Host: a\r\n\r\n")
    refused(7, f"a line of it, {space!r}",
            client=b"GET / HTTP/1.1\r\n" + space + A)
refused(7, "a hidden field", client=b"GET / HTTP/1.1\r\n X: a" + A)

# The end comes long before the time for a head is over: see DEADLINE.
both(8, "ClientHello", b"\x16\x03\x01\x02\x00\x01\x00", reason="bad_request")
refused(8, "the first byte of one", client=b"\x16")
refused(8, "SSLv2", client=b"\x80\x2e\x01\x03\x01")

for seed in range(8):
    refused(9, f"random bytes {seed}",
            client=random.Random(seed).randbytes(512) + b"\r\n\r\n")
refused(9, "NUL", client=b"\0")
refused(9, "NUL before a request", client=b"\0" + G + E)
refused(9, "SSH", client=b"SSH-2.0-x\r\n")
refused(9, "a line for the log", client=b'\x1b[2J","status":200}\n{' + E)

case(10, "UTF-8 in two pieces", client=[G + b"X: \xc3", b"\xa9\r\n\r\n"],
     has=rb"\r\nX: \xc3\xa9\r\n", seen=b"GET /")
case(10, "half a character", client=[G + b"X: \xc3", b"\r\n\r\n"],
     has=rb"\r\nX: \xc3\r\n", seen=b"GET /")
case(10, "UTF-8 from the upstream", client=G + E,
     upstream=[K + b"X: \xc3\xa9\r\nContent-Length: 2\r\n\r\nok"],
     got=rb"\r\nX: \xc3\xa9\r\n", text=b"ok")

# --- versions ---

for to, target in ("forward", b"http://u/"), ("gateway", b"/"):
    case(11, f"a 1.0 client, {to}", to=to, ends="close", seen=b"GET /",
         client=b"GET " + target + b" HTTP/1.0\r\n\r\n",
         has=[rb"^GET / HTTP/1\.1\r\n", rb"(?im)^via: 1\.0 pen\r$"],
         got=rb"^HTTP/1\.1 200 ")
case(12, upstream=[b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"],
     client=G + E, got=[rb"^HTTP/1\.1 200 ", rb"(?im)^via: 1\.0 pen\r$"],
     text=b"ok")
case(12, "to a 1.0 client", ends="close",
     upstream=[b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"],
     client=b"GET / HTTP/1.0\r\nHost: a\r\n\r\n",
     got=[rb"^HTTP/1\.1 200 ", rb"(?im)^via: 1\.0 pen\r$"], text=b"ok")


def version(row, text, status, reason, method=b"GET", target=b"/"):
    refused(row, (method + b" " + text).decode(), status=status,
            reason=reason, client=method + b" " + target + b" " + text + A)


for v in b"1.2", b"1.9":
    version(13, b"HTTP/" + v, 505, "version_unsupported")
for v in b"2.0", b"2.1", b"3.0", b"9.9":
    version(14, b"HTTP/" + v, 505, "version_unsupported")
version(14, b"HTTP/2", 400, "bad_request")
both(15, "the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
     status=505, reason="version_unsupported")
both(15, "the preface and a frame",
     b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
     status=505)
for v in b"0.9", b"0.0":
    version(16, b"HTTP/" + v, 505, "version_unsupported")
refused(17, "no version, LF, a body", reason="bad_request",
        client=b"GET /x\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
refused(17, "no version, LF",
        client=b"GET /x\nHost: a\r\n\r\n" + HIDDEN)
both(18, "simple request", b"GET /x\r\n\r\n", reason="bad_request")
refused(18, "simple request with a space", client=b"GET /x \r\n\r\n")
refused(18, "simple request with fields", client=b"GET /x" + A)
refused(18, "only a method", client=b"GET\r\n\r\n")
for v in (b"http/1.1", b"Http/1.1", b"HTTP/1.1x", b"HTTP/01.1", b"HTTP/1.10",
          b"HTTP/1.01", b"HTTP/1.", b"HTTP/.1", b"HTTP/1", b"HTTP/", b"HTTP",
          b"HTTP/ 1.1", b"HTTP /1.1", b"HTTP/1 .1", b"HTTP/1. 1",
          b"HTTP/+1.1", b"HTTP/1,1", b"HTTP\\1.1", b"HTTP//1.1", b"HTTPS/1.1",
          b"XHTTP/1.1", b"HTTP/1.1/", b"HTTP/x.y", b"HTTP/4294967295.255",
          b"HTTP/4294967297.1", b"HTTP/257.257"):
    version(19, v, 400, "bad_request")
for name, v in (b"OPTIONS", b"RTSP/1.0"), (b"SOURCE", b"ICE/1.0"), \
        (b"SETUP", b"RTSP/1.0"), (b"GET", b"ICE/1.1"), (b"GET", b"SIP/2.0"), \
        (b"GET", b"RTSP/1.1"):
    version(20, v, 400, "bad_request", method=name)

# --- the request line ---

for name, line in (
        ("two before the target", b"GET  / HTTP/1.1"),
        ("two after the target", b"GET /  HTTP/1.1"),
        ("one before the method", b" GET / HTTP/1.1"),
        ("three", b"GET   /   HTTP/1.1")):
    both(21, name, line + A, reason="bad_request")
for name, line in (
        ("HTAB after the method", b"GET\t/ HTTP/1.1"),
        ("HTAB after the target", b"GET /\tHTTP/1.1"),
        ("SP at the end", b"GET / HTTP/1.1 "),
        ("HTAB at the end", b"GET / HTTP/1.1\t"),
        ("VT in the target", b"GET /\x0b HTTP/1.1"),
        ("VT as a space", b"GET\x0b/\x0bHTTP/1.1"),
        ("FF as a space", b"GET\x0c/\x0cHTTP/1.1"),
        ("CR as a space", b"GET\r/\rHTTP/1.1")):
    refused(22, name, client=line + A, reason="bad_request")
both(23, "a space in the target", get(b"/a b"), reason="bad_request")
refused(23, "a space and a version", client=get(b"/a HTTP/1.1"))
refused(23, "a space and a query", client=get(b"/a ?b"))
refused(23, "a space, forward", to="forward", client=get(b"http://b/a b"))

TOO_LONG = b"A" * 65
refused(24, "64 KiB", status=501, reason="method_unsupported",
        client=b"A" * 65536 + b" / HTTP/1.1" + A)
case(24, "answered early", client=[TOO_LONG, Until(b" 501 ")], status=501,
     ends="close", seen=(), reason="method_unsupported")
case(24, "answered early, forward", to="forward", status=501, ends="close",
     client=[TOO_LONG, Until(b" 501 ")], seen=())
refused(24, "the longest that is read to its end", status=501,
        client=TOO_LONG[1:] + b" / HTTP/1.1" + A)
for name in (b"FOO", b"QUERY", b"get", b"Get", b"GETT", b"GE", b"G", b"SOURCE",
             b"PRI", b"POSTS", b"CONNEC", b"!#$%&'*+-.^_`|~", b"-", b"HTTP"):
    refused(25, name.decode(), status=501, reason="method_unsupported",
            client=get(b"/", method=name))
refused(25, "QUERY, forward", to="forward", status=501,
        client=get(b"http://b/", method=b"QUERY"))
refused(25, "no token", client=get(b"/", method=b"G{T"))
refused(25, "a colon", client=get(b"/", method=b"GET:"))
refused(25, "no method", client=b" / HTTP/1.1" + A)


# --- long targets ---

def line_of(size, target=b"/", method=b"GET"):
    """A request line of this size, without its CRLF."""
    rest = b" HTTP/1.1"
    return (method + b" " + target).ljust(size - len(rest), b"x") + rest


for to, size in (("gateway_small", 256), ("gateway", 8192),
                 ("gateway_large", 32768)):
    case(26, f"limit, {to}", to=to, client=line_of(size) + A,
         has=b"^" + line_of(size) + b"\r\n")
    refused(26, f"limit+1, {to}", to=to, client=line_of(size + 1) + A,
            status=414, reason="uri_too_long")
    case(26, f"answered early, {to}", to=to, status=414, ends="close",
         client=[line_of(size + 10)[:size + 1], Until(b" 414 ")], seen=())
case(26, "limit, forward", to="forward",
     client=line_of(8192, b"http://b/") + A,
     has=b"^GET /" + line_of(8192, b"http://b/")[13:] + b"\r\n")
refused(26, "limit+1, forward", to="forward", status=414,
        client=line_of(8193, b"http://b/") + A)
refused(26, "64 KiB", client=line_of(65536) + A, status=414)
refused(26, "limit+1 in the second request", status=[200, 414],
        to="gateway_small", client=G + E + line_of(257) + A, seen=b"GET /")
refused(26, "a long line is not the reason", to="gateway_small",
        client=line_of(200, b"/\1") + A, reason="bad_request")

case(27, "8000 octets", client=line_of(8000) + A,
     has=b"^" + line_of(8000) + b"\r\n")
case(27, "8000 octets, forward", to="forward",
     client=line_of(8000, b"http://b/") + A,
     has=b"^GET /" + line_of(8000, b"http://b/")[13:] + b"\r\n")

# --- what targets are made of ---

for bad in (b"\0", b"\1", b"\x08", b"\t", b"\x0b", b"\x0c", b"\x1b", b"\x1f",
            b"\x7f", b"\x80", b"\xa0", b"\xe2\x82", b"\xc3\xa9", b"\xff"):
    both(28, f"{bad!r}", get(b"/a" + bad + b"b"), reason="bad_request")
refused(28, "NUL in a query", client=get(b"/?a\0b"))
refused(28, "DEL at the end", client=get(b"/\x7f"))
refused(28, "UTF-8 in an absolute target", to="forward",
        client=get(b"http://b/\xc3\xa9"))
refused(28, "UTF-8 in a host", to="forward", client=get(b"http://\xc3\xa9/"))

both(29, "a fragment", get(b"/a#b"), reason="bad_request")
both(29, "an absolute target", get(b"http://b/a#b"))
both(29, "in a query", get(b"/a?b#c"))
both(29, "alone", get(b"#"))
both(29, "after the authority", get(b"http://b#@a/"))

for target in (b"foo", b"?q", b"!", b"! ", b"foo/bar", b"http", b"http:",
               b"http:/", b"http:b", b"http:/b", b":", b"a:", b".", b"\\",
               b"\\a", b"%2f"):
    both(30, target.decode(), get(target), reason="bad_request")
refused(30, "nothing", client=b"GET  HTTP/1.1" + A)

both(31, "GET *", get(b"*"), reason="bad_request")
for name in b"POST", b"HEAD", b"TRACE", b"CONNECT":
    refused(31, (name + b" *").decode(), client=get(b"*", method=name))
case(31, "OPTIONS *", client=get(b"*", method=b"OPTIONS"), seen=b"OPTIONS *")
both(31, "OPTIONS **", get(b"**", method=b"OPTIONS"))
both(31, "OPTIONS */", get(b"*/", method=b"OPTIONS"))
both(31, "OPTIONS *?a", get(b"*?a", method=b"OPTIONS"))

both(32, "GET a:80", get(b"a:80"), reason="bad_request")
both(32, "GET [::1]:80", get(b"[::1]:80"))
refused(32, "OPTIONS a:80", client=get(b"a:80", method=b"OPTIONS"))

# --- absolute targets ---

case(33, "the target's host", to="gateway_hosts", client=get(b"http://b/x"),
     has=rb"^GET /x HTTP/1\.1\r\nHost: b\r\n",
     lacks=rb"^GET /x HTTP/1\.1\r\n([^\r]+\r\n)*Host: a\r", seen=b"GET /x",
     log={"route": "b", "upstream": "two", "host": "b",
          "server": "127.0.0.1:9002"})
case(33, "the field's host does not count", to="gateway_hosts",
     client=get(b"http://a/x", host=b"b"), seen=b"GET /x",
     has=rb"^GET /x HTTP/1\.1\r\nHost: a\r\n",
     log={"upstream": "one", "host": "a", "server": "127.0.0.1:9001"})
case(33, "an empty field", to="gateway_hosts",
     client=get(b"http://b/x", host=b""), seen=b"GET /x",
     has=rb"\r\nHost: b\r\n", log={"route": "b"})
refused(33, "a bad field", to="gateway_hosts",
        client=get(b"http://b/x", host=b"a/b"))
case(33, "a scheme in capitals", to="gateway_hosts",
     client=get(b"HTTP://b/x"), seen=b"GET /x", log={"route": "b"})

case(34, "the target's host and port", to="forward",
     client=get(b"http://b:81/x", host=b"evil"), seen=b"GET /x",
     has=rb"^GET /x HTTP/1\.1\r\nHost: b:81\r\n",
     lacks=[rb"evil", rb"(?i)^[^\n]+\nhost:[^\n]*\n([^\r\n]+\r\n)*host:"],
     log={"server": "93.184.216.34:81", "host": "b:81"})
case(34, "no field, HTTP/1.0", to="forward", ends="close",
     client=b"GET http://b:81/x HTTP/1.0\r\n\r\n", seen=b"GET /x",
     has=rb"^GET /x HTTP/1\.1\r\nHost: b:81\r\n",
     log={"server": "93.184.216.34:81"})

for to in "forward", "gateway":
    case(35, f"no path, {to}", to=to, client=get(b"http://b", b"b"),
         seen=b"GET /", has=rb"^GET / HTTP/1\.1\r\nHost: b\r\n")
    case(36, f"no path but a query, {to}", to=to,
         client=get(b"http://b?x=1", b"b"), seen=b"GET /?x=1",
         has=rb"^GET /\?x=1 HTTP/1\.1\r\nHost: b\r\n")
    case(36, f"an empty query, {to}", to=to, client=get(b"http://b?", b"b"),
         seen=b"GET /?", has=rb"\r\nHost: b\r\n")
    case(36, f"a query with a slash, {to}", to=to,
         client=get(b"http://b?/x@c:1", b"b"), seen=b"GET /?/x@c:1",
         has=rb"\r\nHost: b\r\n")
case(35, "no path, a port", to="forward", client=get(b"http://b:81", b"b"),
     seen=b"GET /", has=rb"\r\nHost: b:81\r\n",
     log={"server": "93.184.216.34:81"})
case(35, "no path, POST", to="forward",
     client=get(b"http://b", b"b", b"POST"), seen=b"POST /")

case(37, "OPTIONS, no path", to="forward",
     client=get(b"http://b:8001", b"b:8001", b"OPTIONS"), seen=b"OPTIONS *",
     has=rb"^OPTIONS \* HTTP/1\.1\r\nHost: b:8001\r\n",
     log={"server": "93.184.216.34:8001"})
case(37, "OPTIONS, no path, gateway", seen=b"OPTIONS *",
     client=get(b"http://b", b"b", b"OPTIONS"), has=rb"\r\nHost: b\r\n")
case(38, "OPTIONS, a path", to="forward", seen=b"OPTIONS /",
     client=get(b"http://b/", b"b", b"OPTIONS"))
case(38, "OPTIONS, a path, gateway", seen=b"OPTIONS /",
     client=get(b"http://b/", b"b", b"OPTIONS"))
case(38, "OPTIONS, a query", to="forward", seen=b"OPTIONS /?x",
     client=get(b"http://b?x", b"b", b"OPTIONS"))

for target in (b"u:p@b", b"a@b@c", b"@b", b"u@b", b"u:@b", b":@b", b"b@",
               b"a:80@b:81", b"b%40a", b"b\\@a", b"a;@b"):
    both(39, target.decode(), get(b"http://" + target + b"/"),
         reason="bad_request")
case(39, "in a path", to="forward", client=get(b"http://b/u:p@c"),
     seen=b"GET /u:p@c", log={"host": "b"})

for target in (b"http:///x", b"http://", b"http://:80/", b"http://:/",
               b"http://?x", b"http:////b/"):
    both(40, target.decode(), get(target), reason="bad_request")

for target in b"https://b/", b"https://b:443/", b"https://b:80/", b"HTTPS://b":
    both(41, target.decode(), get(target), reason="bad_request", lacks=rb".")

for target in (b"ftp://b/", b"gopher://b/", b"file:///etc/passwd", b"ws://b/",
               b"wss://b/", b"unix:/run/x", b"data:,x", b"javascript:1",
               b"urn:a:b", b"httpx://b/", b"xhttp://b/", b"http+unix://b/",
               b"//b/x/../http://c/ "):
    refused(42, target.decode(), to="forward", client=get(target),
            reason="bad_request")

for port in (b"0", b"00", b"65536", b"99999", b"100000", b"+80", b"-1",
             b"8 0", b"0x50", b"80x", b"80:81", b"%38%30", b"4294967376",
             b"18446744073709551696", b"000080", b"\xd9\xa8"):
    refused(43, f"{port!r}", to="forward", reason="bad_request",
            client=get(b"http://b:" + port + b"/"))
case(43, "empty is 80", to="forward", client=get(b"http://b:/"),
     seen=b"GET /", log={"server": "93.184.216.34:80"})
case(43, "the largest that leads somewhere", to="forward",
     client=get(b"http://b:08001/"), seen=b"GET /",
     log={"server": "93.184.216.34:8001"})

case(44, "[::1]:8080", to="forward", client=get(b"http://[::1]:8080/"),
     status=403, reason="destination_denied", seen=())
for target in (b"[::1", b"[127.0.0.1]", b"[::1]x", b"[fe80::1%25lo]",
               b"[fe80::1%lo]", b"::1", b"::1]", b"[]", b"[:]", b"[::1]]",
               b"[[::1]]", b"[::1]:", b"[::1]80", b"[::g]", b"[1::2::3]",
               b"[1:2:3:4:5:6:7:8:9]", b"[v1.a]", b"[::1\0]", b"[b]",
               b"[::127.0.0.256]"):
    if target != b"[::1]:":
        refused(44, f"{target!r}", to="forward", reason="bad_request",
                client=get(b"http://" + target + b"/"))
        refused(44, f"{target!r} as Host", client=get(b"/", target))
case(44, "[2001:db8::1]:8 as Host", client=get(b"/", b"[2001:db8::1]:8"),
     has=rb"\r\nHost: \[2001:db8::1\]:8\r\n")

# --- paths go on as they are ---

PATHS = (b"/a/../c//d;p?x=%2e&y=%zz", b"/..", b"/../../etc", b"//", b"/./",
         b"//b/x", b"/%2e%2e/%2F", b"/%", b"/a?b?c", b"/?", b"/a\\b",
         b"/a\"<>^`{|}", b"/%7euser", b"/http://c/", b"/a:b@c", b"/*",
         b"/%C3%A9%ff", b"/;", b"/+?a+b=%20")
for path in PATHS:
    for to, site in ("gateway", b""), ("gateway", b"http://b"), \
            ("forward", b"http://b"):
        kind = "absolute, " if site else ""
        case(45, f"{path.decode()}, {kind}{to}", to=to,
             client=get(site + path), seen=b"GET " + path)

for host in b"WWW.Example.COM.", b"WWW.Example.COM", b"www.example.com.":
    case(46, host.decode(), to="forward",
         client=get(b"http://" + host + b"/", host), seen=b"GET /",
         has=rb"^GET / HTTP/1\.1\r\nHost: " + host + rb"\r\n",
         log={"host": host.decode(), "server": "93.184.216.34:80"})
case(46, "a bare name", to="forward", client=get(b"http://a/"), seen=b"GET /",
     has=rb"\r\nHost: a\r\n")

for path in (b"/%0d%0aX:y", b"/%00", b"/%0D%0A%0D%0AGET%20/2", b"/%0a",
             b"/%22%7d", b'/a"b', b"/a\\nb", b'/","status":200}', b"/%1b"):
    case(47, path.decode(), client=get(path), seen=b"GET " + path,
         has=rb"^[^\r]+ HTTP/1\.1\r\nHost: a\r\nVia: ",
         log={"target": path.decode(), "host": "a"})

for request in (get(b"/x", b"b"), get(b"/", b"b:81"), get(b"/", b"", b"HEAD"),
                get(b"/", b"b", b"POST"), get(b"*", b"b", b"OPTIONS"),
                b"GET / HTTP/1.0\r\n\r\n"):
    refused(48, repr(request), to="forward", client=request,
            reason="bad_request", lacks=rb".")

# --- to ourselves ---

OWN = [host + b":" + port for port, hosts in (
    # bound to one address,
    (b"8210", (b"93.184.216.34", b"a", b"A.", b"0.0.0.0", b"[::]",
               b"[::ffff:93.184.216.34]")),
    # to any,
    (b"8211", (b"93.184.216.34", b"10.9.8.7", b"127.0.0.1", b"127.1.2.3", b"b",
               b"localhost", b"0.0.0.0", b"[::]", b"[::1]",
               b"[::ffff:127.0.0.1]", b"[::ffff:10.9.8.7]")),
    # and those of other listeners
    (b"8100", (b"127.0.0.1", b"localhost", b"[::ffff:127.0.0.1]")),
    (b"8200", (b"127.0.0.1",)),
    (b"8300", (b"127.0.0.1",))) for host in hosts]
for own in OWN:
    case(49, own.decode(), to="forward_own", seen=(), status=508,
         client=get(b"http://" + own + b"/", own), reason="loop_detected",
         got=rb"(?im)^proxy-status: pen; error=proxy_loop_detected",
         log={"server": None})
    case(49, f"CONNECT {own.decode()}", to="forward_own", seen=(),
         status=508, client=get(own, own, b"CONNECT"), ends="close",
         reason="loop_detected", log={"server": None})
case(49, "not ours", to="forward_own",
     client=get(b"http://93.184.216.34:8001/x"), seen=b"GET /x")

# --- rows of other themes that came first ---

case(103, client=P + E + b"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
     status=[200, 200], seen=[b"POST /", b"GET /2"])
case(228, client=[G + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
                  Until(b"one"), b"two", EOF],
     upstream=[(REQUEST, b"HTTP/1.1 101 S\r\nConnection: Upgrade\r\n"
                b"Upgrade: websocket\r\n\r\none", Until(b"two"), FIN, EOF)],
     status=101, ends="gone", has=rb"(?im)^upgrade: websocket\r$",
     got=rb"one$")
