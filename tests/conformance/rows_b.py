# SPDX-License-Identifier: BSD-2-Clause
"""Rows 50 to 59: Host."""

from table import E, G, P, T, case, refused

START = b"GET / HTTP/1.1\r\n"

# A first request with a Host that is not its first field, or not its only.
LATE_HOST = rb"\A[^\r]+\r\n(?!Host: )"
TWO_HOSTS = rb"(?i)\A[^\r]+\r\nhost:[^\r]*\r\n([^\r]+\r\n)*host:"


def forwarded(row, name, host, **more):
    """Sent on with this Host as the first field, and no other."""
    case(row, name, has=rb"\A[A-Z]+ [^ ]+ HTTP/1\.1\r\nHost: " + host +
         rb"\r\n", lacks=[LATE_HOST, TWO_HOSTS], **more)


for to, target in ("gateway", b"/"), ("forward", b"http://a/"):
    start = b"GET " + target + b" HTTP/1.1\r\n"
    refused(50, f"no field, {to}", to=to, client=start + E,
            reason="bad_request")
    refused(50, f"no Host, {to}", to=to, client=start + b"X: a\r\n\r\n")
    refused(50, f"a name like it, {to}", to=to,
            client=start + b"Hosts: a\r\nX-Host: a\r\nHos: t\r\n\r\n")
    for name, lines in (
            ("different", b"Host: a\r\nHost: b\r\n"),
            ("the same", b"Host: a\r\nHost: a\r\n"),
            ("in two cases", b"Host: a\r\nhOST: a\r\n"),
            ("the second is empty", b"Host: a\r\nHost:\r\n"),
            ("the first is empty", b"Host:\r\nHost: a\r\n"),
            ("both are empty", b"Host:\r\nHost:\r\n"),
            ("three", b"Host: a\r\nHost: a\r\nHost: a\r\n"),
            ("far from each other", b"Host: a\r\n" + b"X: y\r\n" * 50 +
             b"Host: b\r\n"),
            ("Connection names it", b"Host: a\r\nConnection: host\r\n"
             b"Host: b\r\n")):
        refused(51, f"{name}, {to}", to=to, client=start + lines + E,
                reason="bad_request")
refused(51, "HTTP/1.0",
        client=b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n")

for host in (b"a/b", b"/", b"a/", b"u@a", b"u:p@a", b"@a", b"a b", b"a, b",
             b"a,b", b"a;b", b"a:99999", b"a:65536", b"a:0", b"a:-1", b"a:+1",
             b"a: 80", b"a :80", b"a:80 b", b"a:8x", b"a:80:81", b"a::80",
             b":80", b":", b"[::1", b"::1", b"[::1]a", b"[::1]80", b"[a]",
             b"[]", b"[::1%25lo]", b"[::1]:0", b"a\tb", b"a#b", b"a?b", b"a?",
             b"#", b'"a"', b"'a'", b"a\\b", b"<a>", b"a(b)", b"(a)", b"a%2fb",
             b"%61", b"a|b", b"a^b", b"{a}", b"`a`", b"a$b", b"a&b", b"a=b",
             b"a!b", b"a*b", b"*", b"a+b", b"http://a", b"//a", b"a\0b",
             b"a\x7f", b"\xc3\xa4", b"a" * 255, b"a:00000000080"):
    name = repr(host if len(host) < 40 else host[:9])
    refused(52, name, client=START + b"Host: " + host + b"\r\n\r\n",
            reason="bad_request")
    refused(52, f"{name}, forward", to="forward", reason="bad_request",
            client=b"GET http://a/ HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")

for value in b"", b" ", b" \t ":
    refused(53, f"gateway, {value!r}", reason="bad_request",
            client=START + b"Host:" + value + b"\r\n\r\n")
    forwarded(53, f"gateway, an absolute target, {value!r}", b"b",
              client=b"GET http://b/ HTTP/1.1\r\nHost:" + value + b"\r\n\r\n")
    forwarded(53, f"forward, {value!r}", b"b", to="forward",
              client=b"GET http://b/ HTTP/1.1\r\nHost:" + value + b"\r\n\r\n")
refused(53, "gateway, HTTP/1.0", client=b"GET / HTTP/1.0\r\nHost:\r\n\r\n")

# --- what upstreams are told ---

for host in (b"a", b"A", b"a.", b"a:80", b"a:8001", b"a-b.c_d~e", b"127.0.0.1",
             b"[::1]", b"[::1]:1", b"1", b"a:65535", b"a:1", b"a:",
             b"a" * 254, b"xn--4ca.example"):
    name = host[:20].decode()
    forwarded(54, f"gateway, {name}", host.replace(b"[", rb"\["),
              client=START + b"Host: " + host + b"\r\n\r\n")
for method in b"GET", b"HEAD", b"POST", b"DELETE", b"OPTIONS", b"PATCH":
    forwarded(54, f"gateway, absolute, {method.decode()}", b"b:81",
              client=method + b" http://b:81/ HTTP/1.1\r\nHost: a\r\n\r\n")
    forwarded(54, f"forward, {method.decode()}", b"b:81", to="forward",
              client=method + b" http://b:81/ HTTP/1.1\r\nHost: a\r\n\r\n")
forwarded(54, "asterisk", b"a",
          client=b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")
forwarded(54, "in capitals", b"a", client=START + b"HOST: a\r\n\r\n")
forwarded(54, "without a space", b"a", client=START + b"Host:a\r\n\r\n")
forwarded(54, "with many", b"a", client=START + b"Host: \t a \t\r\n\r\n")
case(54, "both of two requests", client=G + E + b"GET /2 HTTP/1.1\r\n"
     b"X: y\r\nHost: c\r\n\r\n", status=[200, 200],
     seen=[b"GET /", b"GET /2"],
     has=rb"\nGET /2 HTTP/1\.1\r\nHost: c\r\n([^\rH][^\r]+\r\n)*\r\n")

for place, fields in (
        ("last", b"X: y\r\nA: b\r\nHost: a\r\n"),
        ("in the middle", b"X: y\r\nHost: a\r\nA: b\r\n"),
        ("after Via", b"Via: 1.1 x\r\nHost: a\r\nA: b\r\nX: y\r\n")):
    for to, target in ("gateway", b"/"), ("forward", b"http://a/"):
        forwarded(55, f"{place}, {to}", b"a", to=to,
                  client=b"GET " + target + b" HTTP/1.1\r\n" + fields + E)
forwarded(55, "with a body", b"a",
          client=b"POST / HTTP/1.1\r\nContent-Length: 2\r\nHost: a\r\n\r\nok",
          body=b"ok")

forwarded(56, "no Host", rb"127\.0\.0\.1:9001", ends="close",
          client=b"GET / HTTP/1.0\r\n\r\n", log={"host": None})
forwarded(56, "no Host, routes by host", rb"127\.0\.0\.1:9001", ends="close",
          to="gateway_hosts", client=b"GET / HTTP/1.0\r\n\r\n")
forwarded(56, "Host", b"b", ends="close", to="gateway_hosts",
          client=b"GET / HTTP/1.0\r\nHost: b\r\n\r\n", log={"route": "b"})
forwarded(56, "kept", rb"127\.0\.0\.1:9001",
          client=b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
refused(56, "a bad Host", client=b"GET / HTTP/1.0\r\nHost: a/b\r\n\r\n")

for option in b"host", b"Host", b"HOST, close", b"close, host", b"x, host":
    ends = "close" if b"close" in option else "keep"
    name = option.decode()
    for to, target in ("gateway", b"/"), ("forward", b"http://a/"):
        forwarded(57, f"{name}, {to}", b"a", to=to, ends=ends,
                  client=b"GET " + target + b" HTTP/1.1\r\nHost: a\r\n"
                  b"Connection: " + option + b"\r\n\r\n")
forwarded(57, "before Host", b"a",
          client=START + b"Connection: host\r\nHost: a\r\n\r\n")

for field in b"Host: evil", b"hOsT: evil", b"Host: a", b"Host:":
    for to, start in ("gateway", b"POST / HTTP/1.1\r\nHost: a\r\n"), \
            ("forward", b"POST http://a/ HTTP/1.1\r\nHost: a\r\n"):
        for te in b"", b"TE: trailers\r\nConnection: TE\r\n":
            forwarded(58, f"{field.decode()}, {to}{', TE' if te else ''}",
                      b"a", to=to, log={"host": "a"}, seen=b"POST /",
                      client=start + te + T[len(P):] + b"2\r\nok\r\n0\r\n" +
                      field + b"\r\n\r\n", body=b"ok")
case(58, "a trailer is no routing", to="gateway_hosts", seen=b"POST /",
     client=T + b"0\r\nHost: b\r\n\r\n", lacks=rb"\nHost: b",
     log={"route": None, "server": "127.0.0.1:9001"})

# --- routes ---

# In the log, Host is as it came; the route is what it led to.
for host, route in (
        (b"b", "b"), (b"B", "b"), (b"b.", "b"), (b"B.", "b"), (b"b:80", "b"),
        (b"b:8110", "b"), (b"b.:80", "b"), (b"b:", "b"),
        (b"b.example", "b"), (b"B.eXample.:080", "b"),
        (b"x.below.example", "below"), (b"X.y.Below.Example.:80", "below"),
        (b"below.example", None), (b"xbelow.example", None),
        (b"b..", None), (b".b", None), (b"a.b", None), (b"b.b", None),
        (b"bb", None), (b"b.example.org", None)):
    server = "127.0.0.1:" + ("9002" if route else "9001")
    for form in "origin", "absolute":
        site = b"http://" + host if form == "absolute" else b""
        forwarded(59, f"{host.decode()}, {form}", host, to="gateway_hosts",
                  client=b"GET " + site + b"/ HTTP/1.1\r\nHost: " + host +
                  b"\r\n\r\n", seen=b"GET /",
                  log={"host": host.decode(), "server": server,
                       "route": route})
