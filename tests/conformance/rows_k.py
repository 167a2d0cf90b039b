# SPDX-License-Identifier: BSD-2-Clause
"""Rows k1 to k12, but for some: lists and sizes that have killed a proxy."""

from table import E, G, K, case, refused

FORWARD = b"GET http://a/ HTTP/1.1\r\nHost: a\r\n"
BOTH = ("gateway", G), ("forward", FORWARD)

# --- k1: a list that names itself ---

for name, lines in (
        ("Connection", b"Connection: Connection\r\nConnection: x\r\n"),
        ("itself alone", b"Connection: Connection\r\n"),
        ("the other way", b"Connection: x\r\nConnection: Connection\r\n"),
        ("twice", b"Connection: Connection, Connection, x\r\n"),
        ("each other", b"Connection: X, Y\r\nX: Y\r\nY: X\r\n"),
        ("Proxy-Connection", b"Connection: proxy-connection\r\n"
         b"Proxy-Connection: Connection\r\n"),
        ("Proxy-Connection that is not there",
         b"Connection: proxy-connection\r\n"),
        ("and a field", b"X: 1\r\nConnection: connection, x\r\nx: 2\r\n")):
    for to, start in BOTH:
        case("k1", f"{name}, {to}", to=to, client=start + lines + E,
             seen=b"GET /", lacks=rb"(?im)^((proxy-)?connection|x|y):")
case("k1", "from the upstream", client=G + E, text=b"ok", upstream=[
    K + b"Connection: Connection\r\nConnection: x\r\nX: y\r\n"
    b"Content-Length: 2\r\n\r\nok"], got_not=rb"(?im)^(connection|x):")

# --- k2: empty elements ---

for name, value in (("two commas", b"TE,,Keep-Alive"),
                    ("many commas", b"TE" + b"," * 30000 + b"Keep-Alive"),
                    ("many, spaced", b"TE" + b", " * 15000),
                    ("commas first", b"," * 30000 + b"TE"),
                    ("a comma", b","), ("a comma at the end", b"TE,")):
    for to, start in BOTH:
        case("k2", f"{name}, {to}", to=to, seen=b"GET /",
             client=start + b"TE: x\r\nConnection: " + value + b"\r\n\r\n",
             lacks=rb"(?im)^(te|connection):")
case("k2", "64 KiB", to="gateway_large", seen=b"GET /",
     client=G + b"Connection: " + b"," * 65000 + b"\r\n\r\n")
refused("k2", "100 000 commas", status=431, reason="head_too_large",
        client=G + b"Connection: TE" + b"," * 100000 + b"\r\n\r\n")
case("k2", "from the upstream", client=G + E, text=b"ok", upstream=[
    K + b"Connection: X" + b"," * 30000 + b"\r\nX: y\r\n"
    b"Content-Length: 2\r\n\r\nok"], got_not=rb"\nX: y")

# --- k3: a value that begins with what divides it ---

for value in b";a=b", b";", b"=", b",;=", b";;;;a", b" ;a=b", b'"', b"a=;;b=":
    for to, start in BOTH:
        case("k3", f"{value.decode()!r}, {to}", to=to, seen=b"GET /",
             client=start + b"Cookie: " + value + b"\r\n\r\n", text=b"ok",
             upstream=[K + b"Set-Cookie: " + value + b"\r\n"
                       b"Content-Length: 2\r\n\r\nok"],
             has=b"\r\nCookie: " + value.strip() + b"\r\n",
             got=b"\r\nSet-Cookie: " + value.strip() + b"\r\n")

# --- k5: long lists ---

for n in 1, 1000, 3000, 7000:
    value = b", ".join([b"1.2.3.4"] * n)
    line = b"X-Forwarded-For: " + value + E
    to = "gateway_large" if n > 3000 else "gateway"
    case("k5", f"{n}", to=to, seen=b"GET /", client=G + line + E,
         has=rb"\r\nX-Forwarded-For: 127\.10\.", lacks=rb"1\.2\.3\.4")
    if n <= 3000:
        for to, start in ("gateway_trusting", G), ("forward", FORWARD):
            case("k5", f"{n}, {to}", to=to, client=start + line + E,
                 seen=b"GET /", has=b"\r\nX-Forwarded-For: " +
                 value.replace(b".", rb"\.") +
                 (rb", 127\.10\." if start is G else b"\r\n"))
for name in b"X-Forwarded-For", b"Forwarded", b"Via", b"Connection":
    line = name + b": " + b"1.2.3.4, " * 10000
    refused("k5", f"10 000, {name.decode()}", client=G + line + b"\r\n\r\n",
            status=431, reason="head_too_large")
for opening in b"(", b"\\(", b'"', b"(\\":
    value = b"1.1 a " + opening * (30000 // len(opening))
    case("k5", f"Via, {opening.decode()}", client=G + b"Via: " + value +
         b"\r\n\r\n", seen=b"GET /", has=rb"\nVia: 1\.1 a [^\n]{30000}\r\n")

# --- k7: triplets that are none, where a route looks at the path ---

for path in (b"/%zz%u0041%0", b"/%", b"/%%", b"/%0", b"/%u", b"/%zz%",
             b"/%g0", b"/%-1", b"/%zz?%zz", b"/?%zz%u0041%0", b"/%00%"):
    for form, site in ("origin", b""), ("absolute", b"http://a"):
        zz = path.startswith(b"/%zz")
        case("k7", f"{path.decode()}, {form}", to="gateway_hosts",
             client=b"GET " + site + path + b" HTTP/1.1\r\nHost: a\r\n\r\n",
             seen=b"GET " + path, log={"route": "zz" if zz else None})
    case("k7", f"{path.decode()}, forward", to="forward",
         client=b"GET http://a" + path + b" HTTP/1.1\r\nHost: a\r\n\r\n",
         seen=b"GET " + path)

# --- k8: no room for what is added ---


def head_of(size, start=G):
    return start + b"X: " + b"v" * (size - len(start) - 7) + b"\r\n\r\n"


for to, most in ("gateway_small", 1024), ("gateway", 32768):
    for size in most - 2, most - 1, most:
        case("k8", f"{size}, {to}", to=to, status=[200, 200],
             client=head_of(size) + G + E, seen=[b"GET /", b"GET /"],
             has=rb"\r\nX: v{%d}\r\n(?s:.)*\r\nVia: 1\.1 pen\r\n" %
             (size - len(G) - 7))
    refused("k8", f"{most + 1}, {to}", to=to, status=431,
            client=head_of(most + 1) + G + E)
# Here it is we who have no room: what is added goes beyond 64 KiB.
for size in 65000, 65534, 65535, 65536:
    fits = size == 65000
    case("k8", f"{size}, gateway_large", to="gateway_large",
         client=head_of(size) + G + E,
         status=[200, 200] if fits else [431, 200],
         seen=[b"GET /", b"GET /"] if fits else b"GET /")
for to in "gateway_trusting", "forward":
    start = FORWARD if to == "forward" else G + b"X-Forwarded-For: 1.1.1.1\r\n"
    case("k8", f"32767, {to}", to=to, client=head_of(32767, start) + start + E,
         status=[200, 200], seen=[b"GET /", b"GET /"])

# --- k12: ports that wrap ---

for port in (b"4294972296", b"4294967376", b"65616", b"00000000080", b"000080",
             b"18446744073709551696",
             b"340282366920938463463374607431768211536",
             b"-65456", b"8080808080808080"):
    name = port.decode()
    refused("k12", name, to="forward", reason="bad_request",
            client=b"GET http://127.0.0.1:" + port + b"/ HTTP/1.1\r\n"
            b"Host: a\r\n\r\n")
    refused("k12", f"{name}, CONNECT", to="forward", reason="bad_request",
            client=b"CONNECT b:" + port + b" HTTP/1.1\r\nHost: b\r\n\r\n")
    refused("k12", f"{name}, Host", reason="bad_request",
            client=b"GET / HTTP/1.1\r\nHost: a:" + port + b"\r\n\r\n")
case("k12", "five digits", to="forward", seen=b"GET /",
     client=b"GET http://a:00080/ HTTP/1.1\r\nHost: a\r\n\r\n",
     log={"server": "93.184.216.34:80"})
