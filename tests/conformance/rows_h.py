# SPDX-License-Identifier: BSD-2-Clause
"""Rows 211 to 227: CONNECT, tunnels, destinations, tcp."""

from steps import Await, CLOSE, EOF, FIN, Flood, Mark, RST, Until
from table import E, G, HIDDEN, K, case, refused


def connect(to, more=b""):
    return b"CONNECT " + to + b" HTTP/1.1\r\nHost: " + to + E + more + E


def tunnel(row, name, client, upstream, **more):
    """A case of a tunnel to b:443, whose 200 the client has read."""
    case(row, name, to=more.pop("to", "forward"),
         client=[connect(b"b:443"), Until(b"\r\n\r\n"), *client],
         upstream=[upstream], ends=more.pop("ends", "gone"), **more)


MIB = bytes(range(256)) * 4095 + b"the end of it all".rjust(256)
LAST = b"the end of it all"
# More than all buffers on the way take.
FLOOD = Flood(b"x")

# --- CONNECT ---

tunnel(211, "both ways", [b"ping", Until(b"pong"), FIN, EOF],
       [Until(b"ping"), b"pong", EOF], reason="",
       got=[rb"^HTTP/1\.1 200 [^\r]*\r\n(?:[\w-]+: [^\r]*\r\n)*\r\npong$",
            rb"(?m)^Via: 1\.1 pen\r$"],
       got_not=rb"(?i)content-length|transfer-encoding", has=rb"^ping$")
tunnel(211, "the server speaks first", [Until(b"hello"), b"x", FIN, EOF],
       [b"hello", EOF], got=rb"\r\n\r\nhello$", has=rb"^x$")
tunnel(211, "what looks like HTTP",
       [G + E + HIDDEN, Until(b"ok"), FIN, EOF],
       [Until(HIDDEN), K + b"Content-Length: 2\r\n\r\nok", EOF],
       has=rb"^GET / HTTP/1\.1\r\nHost: a\r\n\r\nGET /hidden",
       got=rb"\r\n\r\nHTTP/1\.1 200 OK\r\nContent-Length: 2\r\n\r\nok$",
       got_not=rb"(?s)Via.*Via")
tunnel(211, "every byte there is", [bytes(range(256)) * 3, EOF],
       [Until(bytes(range(256)) * 3), bytes(range(255, -1, -1)), FIN, EOF],
       got=rb"(?s)\xff\xfe.*\x01\x00$")
case(211, "by an address", to="forward", ends="gone",
     client=[connect(b"93.184.216.34:443"), Until(b"\r\n\r\n"), b"a",
             Until(b"b"), FIN, EOF],
     upstream=[(Until(b"a"), b"b", EOF)])
case(211, "HTTP/1.0", to="forward", ends="gone", client=[
         b"CONNECT b:443 HTTP/1.0\r\n\r\n", Until(b"\r\n\r\n"), b"a",
         Until(b"b"), FIN, EOF],
     upstream=[(Until(b"a"), b"b", EOF)], got=rb"^HTTP/1\.1 200 ")
case(211, "Connection: close says nothing", to="forward", ends="gone",
     client=[connect(b"b:443", b"Connection: close\r\n"), Until(b"\r\n\r\n"),
             b"a", Until(b"b"), FIN, EOF],
     upstream=[(Until(b"a"), b"b", EOF)])
case(211, "after another request", to="forward", ends="gone",
     client=[b"GET http://a/1 HTTP/1.1\r\nHost: a\r\n\r\n", Until(b"/1>"),
             connect(b"b:443"), Until(b"\r\n\r\n"), b"a", Until(b"\r\nb"),
             FIN, EOF],
     upstream=[(), (Until(b"a"), b"\r\nb", EOF)], status=[200, 200])
for port in (b"b", b"b:", b"b:0", b"b:65536", b"b:4294967739", b"b:x",
             b"b:00000443", b"b:443x", b"b:-1", b"b:+443", b"b:44 3", b":443",
             b"b:443:443", b"[::1:443", b"::1:443", b"b:0x1bb"):
    refused(212, port.decode(), to="forward", client=connect(port) + HIDDEN,
            lacks=b"hidden", reason="bad_request")
for target in (b"/", b"http://b:443/", b"u@b:443", b"u:p@b:443", b"b:443/x",
               b"*", b"b:443?x", b"b:443#x", b"//b:443", b"https://b:443"):
    refused(213, target.decode(), to="forward", reason="bad_request",
            client=b"CONNECT " + target +
            b" HTTP/1.1\r\nHost: b:443\r\n\r\n" + HIDDEN)
for fields in (b"Content-Length: 3\r\n", b"Content-Length: 0\r\n",
               b"Transfer-Encoding: chunked\r\n",
               b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"):
    refused(214, repr(fields), to="forward", reason="bad_request",
            client=connect(b"b:443", fields) + b"abc" + HIDDEN)
for port in 25, 22, 80, 442, 444, 1, 65535:
    refused(215, f"by default, {port}", to="forward_plain", status=403,
            client=connect(b"b:%d" % port) + HIDDEN,
            reason="destination_denied")
tunnel(215, "by default, 443", [b"a", Until(b"b"), FIN, EOF],
       [Until(b"a"), b"b", EOF], to="forward_plain")
refused(215, "not configured", to="forward", client=connect(b"b:81"),
        status=403, reason="destination_denied")
case(215, "configured", to="forward", ends="gone",
     client=[connect(b"b:80"), Until(b"\r\n\r\n"), b"a", Until(b"b"), FIN,
             EOF],
     upstream=[(Until(b"a"), b"b", EOF)])

# --- where nobody may go ---

INSIDE = ("127.0.0.1", "127.1.2.3", "0.0.0.0", "10.9.8.7", "10.0.0.1",
          "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
          "224.0.0.1", "255.255.255.255", "[::1]", "[::]", "[fe80::1]",
          "[fc00::1]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]",
          "[::ffff:7f00:1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::a00:1]",
          "[2002:7f00:1::]", "[ff02::1]",
          "localhost", "loopback.test", "loopback6.test", "any.test",
          "private.test", "link.test", "mapped.test", "LOOPBACK.TEST",
          "loopback.test.")
PROHIBITED = rb"(?m)^Proxy-Status: pen; error=destination_ip_prohibited;"
for host in INSIDE:
    name = host.encode()
    refused(216, f"CONNECT {host}", to="forward", status=403,
            client=connect(name + b":443") + HIDDEN, got=PROHIBITED,
            reason="destination_denied")
    case(216, f"GET {host}", to="forward", status=403, seen=(),
         client=b"GET http://" + name + b"/ HTTP/1.1\r\nHost: " + name +
         b"\r\n\r\n", got=PROHIBITED, reason="destination_denied")
# These are no addresses to us, and no names that anybody has.
for host in b"2130706433", b"0x7f000001", b"0177.0.0.1", b"127.1":
    case(216, f"GET {host.decode()}", to="forward", status=502, seen=(),
         client=b"GET http://" + host + b"/ HTTP/1.1\r\nHost: " + host +
         b"\r\n\r\n", reason="dns_error")
# The address that is connected to is one that was checked.
case(216, "a name with an address inside and one outside", to="forward",
     client=b"GET http://mixed.test/ HTTP/1.1\r\nHost: mixed.test\r\n\r\n",
     seen=b"GET /", log={"server": "93.184.216.34:80"})
for name in b"93.184.216.34", b"own.test":
    case(216, f"GET an own listener by {name.decode()}", to="forward",
         status=508, seen=(), reason="loop_detected",
         client=b"GET http://" + name + b":8203/ HTTP/1.1\r\nHost: " + name +
         b":8203\r\n\r\n",
         got=rb"(?m)^Proxy-Status: pen; error=proxy_loop_detected;")
    refused(216, f"CONNECT to an own listener by {name.decode()}",
            to="forward_short", status=508, reason="loop_detected",
            client=connect(name + b":8203") + HIDDEN)

# --- a CONNECT that fails ---

FAILS = {
    "a port": (403, b"b:25", "destination_denied"),
    "an address": (403, b"10.0.0.1:443", "destination_denied"),
    "refused": (502, b"b:8002", "connect_refused"),
    "no such name": (502, b"nowhere.test:443", "dns_error"),
    "a mute name server": (504, b"mute.test:443", "dns_timeout"),
    "no answer": (504, b"b:8003", "connect_timeout"),
    "no way": (502, b"8.8.8.8:443", "connect_failed"),
}
POSTED = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab"
for name, (status, where, reason) in FAILS.items():
    refused(217, name, status=status, reason=reason,
            to="forward_plain" if status == 403 else "forward_short",
            client=connect(where) + POSTED + HIDDEN, lacks=b"POST",
            got=rb"(?im)^connection: close\r$")
    refused(217, f"{name}, later", status=status, reason=reason,
            to="forward_plain" if status == 403 else "forward_short",
            client=[connect(where), Until(b"\r\n\r\n"), POSTED + HIDDEN],
            lacks=b"POST")
refused(217, "bad", to="forward", client=connect(b"b:x") + POSTED,
        lacks=b"POST")

# --- tunnels ---

case(218, "with the head", to="forward", ends="gone",
     client=[connect(b"b:443") + b"early", Until(b"late"), FIN, EOF],
     upstream=[(Until(b"early"), b"late", EOF)], has=rb"^early$",
     got=rb"\r\n\r\nlate$")
case(218, "a request", to="forward", ends="gone",
     client=[connect(b"b:443") + HIDDEN, Until(b"late"), FIN, EOF],
     upstream=[(Until(HIDDEN), b"late", EOF)], status=200,
     has=rb"^GET /hidden HTTP/1\.1\r\nHost: a\r\n\r\n$")
case(218, "and then the end", to="forward", ends="close",
     client=[connect(b"b:443") + b"early", FIN],
     upstream=[(EOF, b"late", CLOSE)], has=rb"^early$",
     got=rb"\r\n\r\nlate$")
case(218, "4 KiB", to="forward", ends="gone",
     client=[connect(b"b:443") + b"y" * 4000 + b"z", Until(b"late"), FIN,
             EOF],
     upstream=[(Until(b"z"), b"late", EOF)], has=rb"^y{4000}z$")
case(218, "1 MiB", to="forward", ends="gone",
     client=[connect(b"b:443") + MIB, Until(b"late"), FIN, EOF],
     upstream=[(Until(LAST), b"late", EOF)], log={"received": len(MIB)})
tunnel(219, "1 MiB and FIN, the client still sends",
       [b"a", Until(LAST), b"more", FIN, EOF],
       [Until(b"a"), MIB, FIN, Until(b"more"), EOF], has=rb"^amore$",
       reason="", log={"sent": len(MIB), "received": 5})
tunnel(219, "FIN of the server comes through", [EOF, b"more", FIN],
       [FIN, Until(b"more"), EOF], has=rb"^more$", reason="")
tunnel(219, "FIN of the client comes through",
       [b"a", FIN, Until(b"more"), EOF], [EOF, b"more", FIN],
       has=rb"^a$", got=rb"\r\n\r\nmore$", reason="")
tunnel(219, "the client's 1 MiB and FIN", [MIB, FIN, Until(b"got it"), EOF],
       [EOF, b"got it", FIN], reason="", log={"received": len(MIB)})
tunnel(219, "the other side does not follow", [EOF, Await("over")],
       [FIN, EOF, Mark("over")],
       to="forward_short", reason="half_closed")
tunnel(220, "RST", [b"a", Await("seen"), RST], [Until(b"a"), Mark("seen"),
                                               EOF])
tunnel(220, "RST while much is under way", [b"a", Until(b"x"), RST],
       [Until(b"a"), FLOOD, EOF])
tunnel(220, "RST of the server", [b"a", EOF], [Until(b"a"), RST],
       ends="reset")
tunnel(221, "neither side reads", [Mark("both"), FLOOD],
       [Await("both"), FLOOD, EOF],
       to="forward_short", ends="reset", reason="tunnel_idle")
tunnel(221, "neither side speaks", [EOF], [EOF], to="forward_short",
       reason="tunnel_idle")
tunnel(221, "one side speaks and nobody reads", [FLOOD, Mark("over")],
       [Await("over"), EOF], to="forward_short", ends="reset",
       reason="tunnel_idle")
for target in b"b:443", b"/", b"a:80":
    for fields in b"", b"Content-Length: 3\r\n":
        refused(224, f"{target.decode()} {fields.decode().strip()}",
                status=405 if target != b"/" and not fields else 400,
                client=connect(target, fields) + HIDDEN)
refused(224, "Allow", status=405, client=connect(b"b:443"),
        got=rb"(?m)^Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r$",
        reason="method_not_allowed")

# --- why not ---

ERRORS = {
    "connect_refused": b"connection_refused",
    "dns_error": b"dns_error",
    "dns_timeout": b"dns_timeout",
    "connect_timeout": b"connection_timeout",
    "connect_failed": b"destination_ip_unroutable",
    "destination_denied": b"destination_ip_prohibited",
}
for name, (status, where, reason) in FAILS.items():
    if name == "a port":
        continue            # is a matter of CONNECT
    case(225, f"GET, {name}", status=status, reason=reason, seen=(),
         to="forward_plain" if name == "an address" else "forward_short",
         client=b"GET http://" + where + b"/ HTTP/1.1\r\nHost: " + where +
         b"\r\n\r\n", got=rb"(?m)^Proxy-Status: pen; error=" +
         ERRORS[reason] + rb"; details=\"" + reason.encode() + rb"\"\r$")
case(225, "a name without an address", to="forward", status=502,
     client=b"GET http://empty.test/ HTTP/1.1\r\nHost: empty.test\r\n\r\n",
     reason="dns_error", seen=())

# --- tcp ---

for name, garbage in {
        "PROXY": b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n",
        "PROXY of version 2": b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" +
        b"z" * 12,
        "HTTP": G + E, "a bad head": b"GET\r\n\r\n\r\n\0",
        "TLS": b"\x16\x03\x01\x02\0\x01\0"}.items():
    case(227, name, to="tcp", status=[], ends="gone",
         client=[garbage + b"!", Until(b"?"), FIN, EOF],
         upstream=[(Until(b"!"), b"?", EOF)], reason="",
         log={"received": len(garbage) + 1, "sent": 1}, got=rb"^\?$")
case(227, "nothing but the end", to="tcp", status=[], ends="close",
     client=[FIN], upstream=[(EOF, CLOSE)], got=rb"^$", has=rb"^$")
case(227, "the server ends", to="tcp", status=[], ends="close",
     upstream=[(CLOSE,)], got=rb"^$")
case(227, "the server speaks first", to="tcp", status=[], ends="close",
     client=[Until(b"220 x\r\n"), FIN], upstream=[(b"220 x\r\n", EOF, CLOSE)],
     got=rb"^220 x\r\n$")
case(227, "nobody listens", to="tcp_down", status=[], ends="close",
     client=[EOF], got=rb"^$", reason="connect_refused", seen=())
