# SPDX-License-Identifier: BSD-2-Clause
"""Rows 242 to 262: Forwarded, Proxy-Status, answers of our own."""

from steps import Await, EOF, FIN, Mark, Quiet, REQUEST, RST, Until
from table import E, G, K, OK, P, case, refused

A = b"GET http://a/ HTTP/1.1\r\nHost: a\r\n"
FORWARDED = b"Forwarded: for=192.0.2.60;proto=http;by=203.0.113.43\r\n"
NOT_OURS = rb"(?i)\r\nforwarded:"

# --- Forwarded and X-Forwarded ---

for to, ask in ("gateway", G), ("forward", A), ("gateway_trusting", G), (
        "gateway_six", G):
    case(242, to, to=to, client=ask + E, upstream=[OK], lacks=NOT_OURS,
         got_not=NOT_OURS)
case(242, "forward says nothing of its clients", to="forward",
     client=A + E, lacks=[rb"(?i)x-forwarded", rb"127\.10"])
case(243, "an IPv6 client", to="gateway_six", client=G + E, lacks=NOT_OURS,
     has=rb"(?m)^X-Forwarded-For: ::1\r$")
case(243, "an IPv6 client after others", to="gateway_six",
     client=G + b"X-Forwarded-For: 2001:db8::1\r\n\r\n",
     has=rb"(?m)^X-Forwarded-For: ::1\r$", lacks=rb"2001")
case(244, "nothing twice", client=G + E,
     has=rb"(?m)^X-Forwarded-Proto: http\r$",
     lacks=rb"(?is)GET / .*x-forwarded-(for|proto|host):.*x-forwarded-\1:"
     rb".*GET /probe")
TWO = b"Forwarded: for=192.0.2.1\r\nX: y\r\nForwarded: for=192.0.2.2\r\n"
for to, ask in ("forward", A), ("gateway_trusting", G):
    case(245, to, to=to, client=ask + TWO + E, has=rb"\r\n" + TWO,
         lacks=rb"(?is)forwarded: for.*forwarded: for.*\r\nforwarded: for")
case(245, "from whoever is not trusted", client=G + TWO + E, lacks=NOT_OURS,
     has=rb"(?m)^X: y\r$")
case(246, "one and the same for every request", client=G + E + G + E,
     status=[200, 200], upstream=[()],
     has=rb"(?s)GET / .*(\r\nX-Forwarded-For: 127\.\d+\.\d+\.\d+\r\n).*"
     rb"GET / .*\1")
for host in b"a", b"a:8080", b"[2001:db8::1]", b"[::1]:80", b"A.example":
    case(247, host.decode(), client=b"GET / HTTP/1.1\r\nHost: " + host +
         b"\r\n\r\n", has=[
             rb"(?m)^X-Forwarded-Host: " + host.replace(b"[", rb"\[") +
             rb"\r$", rb"(?m)^X-Forwarded-Proto: http\r$"], lacks=NOT_OURS)
for host in b"a;proto=https", b'a"', b"a, b", b"a;", b"a\x7f", b"a b":
    refused(247, repr(host), client=b"GET / HTTP/1.1\r\nHost: " + host +
            b"\r\n\r\n", reason="bad_request")
for name, evil in {
        "a quoted-pair": b'for="a\\", for=evil"',
        "an unbalanced quote": b'for="a',
        "half a quoted-pair": b'for="a\\',
        "only a quote": b'"'}.items():
    line = b"Forwarded: " + evil + E
    case(248, f"{name}, not trusted", client=G + line + E, lacks=NOT_OURS)
    case(248, f"{name}, trusted", to="gateway_trusting", client=G + line + E,
         has=rb"(?s)\r\n" + line.replace(b"\\", b"\\\\"),
         lacks=rb"(?is)forwarded: for.*\r\nforwarded:")
EVIL = (b"X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\n"
        b"X-Forwarded-Host: evil\r\n")
case(249, "replaced", client=G + EVIL + E, lacks=[rb"6\.6\.6\.6", rb"https",
                                                  rb"evil"],
     has=[rb"(?m)^X-Forwarded-For: 127\.\d+\.\d+\.\d+\r$",
          rb"(?m)^X-Forwarded-Proto: http\r$",
          rb"(?m)^X-Forwarded-Host: a\r$"])
case(249, "appended to by whom is trusted", to="gateway_trusting",
     client=G + EVIL + b"X-Forwarded-For: 7.7.7.7\r\n\r\n",
     has=[rb"(?m)^X-Forwarded-For: 6\.6\.6\.6, 7\.7\.7\.7, 127\.\d+",
          rb"(?m)^X-Forwarded-Proto: https\r$",
          rb"(?m)^X-Forwarded-Host: evil\r$"],
     lacks=rb"(?is)GET / .*x-forwarded-for:.*x-forwarded-for:.*GET /probe")
case(249, "who may is a matter of the socket", to="forward_closed",
     client=A + b"X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\n"
     b"X-Real-IP: 192.0.2.1\r\nConnection: close\r\n\r\n", status=403,
     seen=(), reason="denied", ends="close")
case(250, "not generated", client=G + E, upstream=[OK], got_not=NOT_OURS)
case(250, "of the server", client=G + E, got=rb"\r\nForwarded: for=x\r\n",
     upstream=[OK.replace(E, b"\r\nForwarded: for=x\r\n", 1)],
     got_not=rb"(?is)forwarded.*\r\n(x-)?forwarded")

# --- Proxy-Status ---


def status_of(error, token):
    return rb'(?m)^Proxy-Status: pen; error=' + error + rb'; details="' + \
        token + rb'"\r$'


def answered(client, token):
    """A client that reads such an answer of our own."""
    steps = client if isinstance(client, list) else [client]
    return [*steps, Until(token + b": ")]


SILENT = [(REQUEST, EOF)]
CLOSES = b"Connection: close\r\n\r\n"
# name: to, client, upstream, status, error, token, ends
ERRORS = {
    "a bad request": ("gateway", G + b" x\r\n\r\n", [()], 400,
                      b"http_request_error", b"bad_request", "close"),
    "a client that may not": ("forward_closed", A + CLOSES, [()], 403,
                              b"http_request_denied", b"denied", "close"),
    "a place nobody may go to": (
        "forward", b"GET http://10.0.0.1/ HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n",
        [()], 403, b"destination_ip_prohibited", b"destination_denied",
        "keep"),
    "no such name": (
        "forward", b"GET http://no.test/ HTTP/1.1\r\nHost: no.test\r\n\r\n",
        [()], 502, b"dns_error", b"dns_error", "keep"),
    "a mute name server": (
        "forward_short",
        b"GET http://mute.test/ HTTP/1.1\r\nHost: mute.test\r\n\r\n",
        [()], 504, b"dns_timeout", b"dns_timeout", "keep"),
    "refused": ("gateway_down", G + CLOSES, [()], 502,
                b"connection_refused", b"connect_refused", "close"),
    "no answer to the connection": (
        "forward_short", b"GET http://b:8003/ HTTP/1.1\r\nHost: b\r\n\r\n",
        [()], 504, b"connection_timeout", b"connect_timeout", "keep"),
    "a server that ends": ("gateway", G + E, [(REQUEST, FIN, EOF)], 502,
                           b"connection_terminated", b"upstream_closed",
                           "keep"),
    "a server that ends in a head": (
        "gateway", G + E, [(REQUEST, K, FIN, EOF)], 502,
        b"connection_terminated", b"upstream_closed", "keep"),
    "a server that says nothing": (
        "gateway_short", G + E, SILENT, 504, b"http_response_timeout",
        b"response_timeout", "keep"),
    "a server that takes nothing": (
        "gateway_send", P + b"Content-Length: 25165824\r\n\r\n" +
        b"x" * (24 << 20), [(Await("over"), RST)], 504,
        b"connection_write_timeout", b"upstream_blocked", "close"),
    "no HTTP": ("gateway", G + E, [b"SSH-2.0-x\r\n"], 502,
                b"http_protocol_error", b"response_invalid", "keep"),
    "too large a head": ("gateway", G + E, [K + b"X: " + b"x" * 40000], 502,
                         b"http_response_header_section_size",
                         b"response_too_large", "keep"),
    "a change nobody wanted": (
        "gateway", G + E, [b"HTTP/1.1 101 S\r\nUpgrade: x\r\n\r\n"], 502,
        b"http_upgrade_failed", b"upgrade_failed", "keep"),
    "a loop": ("gateway", G + b"Via: 1.1 pen\r\n\r\n", [()], 508,
               b"proxy_loop_detected", b"loop_detected", "keep"),
}
# The kernel may take all that a server does not: it stays for the answer.
for name, (to, client, upstream, status, error, token, ends) in \
        ERRORS.items():
    for row in 251, 253:
        case(row, name, to=to,
             client=[*answered(client, token), Mark("over")],
             upstream=upstream, status=status, ends=ends,
             reason=token.decode(),
             got=status_of(error, token))
case(251, "one member, once", client=G + b" x\r\n\r\n", status=400,
     ends="close", got_not=rb"(?is)proxy-status.*proxy-status|^proxy-status: "
     rb"[^\r]*,")
THEIRS = b"Proxy-Status: cdn; error=http_response_timeout\r\n"
case(252, "kept", client=G + E, upstream=[OK.replace(E, E + THEIRS, 1)],
     got=rb"\r\n" + THEIRS, got_not=rb"(?is)proxy-status.*proxy-status")
case(252, "kept in an error", client=G + E, status=504, text=b"ok",
     upstream=[b"HTTP/1.1 504 T\r\nContent-Length: 2\r\n" + THEIRS +
               THEIRS.replace(b"cdn", b"other") + b"\r\nok"],
     got=rb"\r\n" + THEIRS + THEIRS.replace(b"cdn", b"other"),
     got_not=rb"(?im)^proxy-status: pen")
case(252, "of a response that is not passed on", client=G + E, status=502,
     upstream=[K + THEIRS + b"Content-Length: x\r\n\r\n"],
     got=status_of(b"http_protocol_error", b"response_invalid"),
     got_not=rb"cdn")
for name, more in ("no trailers asked for", b""), (
        "trailers asked for", b"TE: trailers\r\nConnection: TE\r\n"):
    for how in FIN, RST:
        case(254, f"{name}, {how.name}",
             client=[G + more + E, Until(b"b\r\n"), Mark("begun")],
             upstream=[(REQUEST, K + b"Transfer-Encoding: chunked\r\n"
                        b"Trailer: Proxy-Status\r\n\r\n2\r\nab\r\n",
                        Await("begun"), *([FIN, EOF] if how is FIN else
                                          [RST]))],
             ends="close", reason="upstream_closed",
             got_not=[rb"(?i)\r\nproxy-status:", rb"\r\n0\r\n"])
INSIDE = rb"127\.|:9\d\d\d|:8\d\d\d|93\.184|10\.0|no\.test"
for name in ("refused", "no answer to the connection", "no such name",
             "a place nobody may go to", "a server that ends"):
    to, client, upstream, status, error, token, ends = ERRORS[name]
    case(255, name, to=to, client=answered(client, token), status=status,
         upstream=upstream, ends=ends, got=status_of(error, token),
         got_not=INSIDE)

# --- answers of our own ---

for host in b"b", b"a.b", b"127.0.0.1", b"a:443":
    case(256, host.decode(), to="gateway_routes", status=404, seen=(),
         client=b"GET /b HTTP/1.1\r\nHost: " + host +
         b"\r\nConnection: close\r\n\r\n", ends="close", reason="no_route")
case(256, "of the server", client=G + E, status=421, text=b"ok",
     upstream=[OK.replace(b"200 OK", b"421 Misdirected Request")],
     got=rb"^HTTP/1\.1 421 Misdirected Request\r\n")


def explained(status, token, closes):
    """The whole of an answer of our own, but for fields that some have."""
    end = rb"Connection: close\r\n\r\n" if closes else rb"\r\n"
    return (rb"^HTTP/1\.1 %d [A-Z][ \w-]+\r\nDate: \*\r\n"
            rb"Proxy-Status: [^\r]+\r\nCache-Control: no-store\r\n"
            rb"Content-Type: text/plain; charset=utf-8\r\n"
            rb"Content-Length: \d+\r\n(Retry-After: \d+\r\n)?"
            rb"(Allow: [A-Z, ]+\r\n)?%b"
            rb"%d [A-Z][ \w-]+\n\n%b: [A-Z][^\n]+\.\n" % (
                status, end, status, token))


REFUSED = {
    "a bad head": (G + b" x\r\n\r\n", 400, b"bad_request"),
    "a line that is too long": (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n"
                                b"Host: a\r\n\r\n", 414, b"uri_too_long"),
    "too many fields": (G + b"a: b\r\n" * 200 + E, 431, b"head_too_large"),
    "no version of ours": (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505,
                           b"version_unsupported"),
    "no coding of ours": (P + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
                          501, b"method_unsupported"),
    "CONNECT": (b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 405,
                b"method_not_allowed"),
    "Connection: close": (G + b"Connection: close\r\nVia: 1.1 pen\r\n\r\n",
                          508, b"loop_detected"),
    "HTTP/1.0": (b"GET / HTTP/1.0\r\nHost: a\r\nVia: 1.1 pen\r\n\r\n",
                 508, b"loop_detected"),
}
for name, (client, status, token) in REFUSED.items():
    refused(257, name, client=client, status=status, reason=token.decode(),
            got=explained(status, token, True) + rb"$")
refused(257, "a late head", to="gateway_short", status=408,
        client=b"GET / HTTP/1.1\r\nHo",
        got=explained(408, b"request_timeout", True) + rb"$")
refused(257, "too large a body", to="gateway_limited", status=413,
        client=P + b"Content-Length: 1000000\r\n\r\n",
        got=explained(413, b"body_too_large", True) + rb"$")
KEPT = ("a place nobody may go to", "no such name", "a server that ends",
        "no HTTP", "too large a head", "a loop", "a mute name server",
        "a server that says nothing")
for name in KEPT:
    to, client, upstream, status, error, token, ends = ERRORS[name]
    case(257, f"kept, {name}", to=to, client=client, upstream=upstream,
         status=status, got=explained(status, token, False))
for name in "a place nobody may go to", "no such name", "a server that ends", \
        "no HTTP", "a loop":
    to, client, upstream, status, error, token, ends = ERRORS[name]
    case(257, f"HEAD, {name}", to=to, client=[
             client.replace(b"GET", b"HEAD", 1), Until(b"\r\n\r\n")],
         upstream=upstream, status=status, text=b"",
         got=[rb"(?m)^Content-Length: [1-9]\d+\r$",
              rb"\r\n\r\nHTTP/1\.1 200 "])
refused(257, "HEAD and close", status=508, client=b"HEAD / HTTP/1.1\r\n"
        b"Host: a\r\nVia: 1.1 pen\r\nConnection: close\r\n\r\n",
        got=rb"(?s)Content-Length: [1-9].*Connection: close\r\n\r\n$")
ALLOW = rb"(?m)^Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r$"
refused(258, "CONNECT to a gateway", status=405, got=ALLOW,
        client=b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n")
for to, target in ("gateway", b"/"), ("forward", b"http://a/"):
    case(258, f"TRACE that ends here, {to}", to=to, status=405, got=ALLOW,
         client=b"TRACE " + target +
         b" HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n")
for status, field in (405, b"Allow: GET"), (426, b"Upgrade: x"), (
        401, b'WWW-Authenticate: Basic realm="x"'), (
        416, b"Content-Range: bytes */5"):
    case(258, f"{status} of the server", client=G + E, status=status,
         upstream=[b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n" % status + field +
                   b"\r\n\r\n"],
         got=rb"\r\n" + field.replace(b"*", rb"\*") + rb"\r\n")
case(259, "the rate", to="gateway_rate", status=[200, 429], ends="close",
     client=[Quiet(2.1), G + E + G + b"Connection: close\r\n\r\n"],
     upstream=[()], reason="rate_limited", got=rb"(?m)^Retry-After: [12]\r$")
case(259, "the places", to="gateway_full", status=[200, 503],
     clients=[[G + E, Until(b"\r\n\r\nok")],
              [Await("in"), G + E, Until(b"queue_full: "), Mark("full")]],
     upstream=[(REQUEST, Mark("in"), Await("full"),
                K + b"Content-Length: 2\r\nRetry-After: 77\r\n\r\nok")],
     seen=b"GET /", got=rb"(?m)^Retry-After: 77\r$")
case(259, "the places, and what it says", to="gateway_full", ends="close",
     status=[503, 200], clients=[
         [Await("in"), G + b"Connection: close\r\n\r\n",
          Until(b"queue_full: "), Mark("full")],
         [G + E, Until(b"ok")]],
     upstream=[(REQUEST, Mark("in"), Await("full"), OK)],
     got=rb"(?m)^Retry-After: 1\r$")
NAMES = [rb"(?im)^server:", rb"(?i)penstock", rb"0\.1\.0"]
case(260, "of a response", client=G + E, got_not=NAMES)
case(260, "of an error", client=G + E, status=502, got_not=NAMES,
     upstream=[(REQUEST, FIN, EOF)])
case(260, "of a request", client=G + E, lacks=[*NAMES, rb"(?im)^user-agent:"])
case(260, "of a 200 to CONNECT", to="forward", ends="gone", got_not=NAMES,
     client=[b"CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n",
             Until(b"\r\n\r\n"), FIN, EOF], upstream=[(EOF,)])
case(260, "of a 200 to OPTIONS", client=b"OPTIONS * HTTP/1.1\r\nHost: a\r\n"
     b"Max-Forwards: 0\r\n\r\n", got_not=NAMES)
LOOP = b"CDN-Loop: foo.example; a=b, \"x\"\r\nX: y\r\nCDN-Loop: bar\r\n"
for to, ask in ("gateway", G), ("forward", A):
    case(261, to, to=to, client=ask + LOOP + E, upstream=[OK],
         has=rb"\r\n" + LOOP)
case(261, "of a response", client=G + E, got=rb"\r\nCDN-Loop: x\r\n",
     upstream=[OK.replace(E, b"\r\nCDN-Loop: x\r\n", 1)])
# judge.py looks at the Date of every answer of our own; for midnight see
# tests/http/test_date.c.
DATE = (rb"(?m)^(?:HTTP/1\.1 \d+ [^\r]+\r\n)Date: \*\r$")
for name in "a loop", "no HTTP", "a bad request":
    to, client, upstream, status, error, token, ends = ERRORS[name]
    case(262, name, to=to, client=client, upstream=upstream, status=status,
         ends=ends, got=DATE, got_not=rb"(?is)date:.*date:.*HTTP/1\.1 200")
case(262, "of a response that has none", client=G + E, upstream=[OK],
     got=rb"(?m)^Date: \*\r$")
