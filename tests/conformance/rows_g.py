# SPDX-License-Identifier: BSD-2-Clause
"""Rows 194 to 210: Via, Max-Forwards, TRACE, Expect."""

from steps import Await, EOF, FIN, HEAD, Mark, Quiet, REQUEST, Until
from table import E, G, HIDDEN, OK, P, case, refused

A = b"GET http://a/ HTTP/1.1\r\nHost: a\r\n"
# Its body is withheld.
WAITS = P + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n"
GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
POST_A = b"POST http://a/ HTTP/1.1\r\nHost: a\r\n"
FINAL = b" X\r\nContent-Length: 0\r\n\r\n"

# --- Via ---

case(194, "gateway", client=G + E, upstream=[OK],
     has=rb"(?m)^Via: 1\.1 pen\r$", got=rb"(?m)^Via: 1\.1 pen\r$")
case(194, "forward", to="forward", client=A + E, upstream=[OK],
     has=rb"(?m)^Via: 1\.1 pen\r$", got=rb"(?m)^Via: 1\.1 pen\r$")
case(194, "a client of HTTP/1.0", client=b"GET / HTTP/1.0\r\nHost: a\r\n\r\n",
     upstream=[OK], ends="close", has=rb"(?m)^Via: 1\.0 pen\r$",
     got=rb"(?m)^Via: 1\.1 pen\r$")
case(194, "a server of HTTP/1.0", client=G + E,
     upstream=[(REQUEST, OK.replace(b"1.1", b"1.0"), EOF)],
     has=rb"(?m)^Via: 1\.1 pen\r$", got=rb"(?m)^Via: 1\.0 pen\r$")
case(194, "forward, a client of HTTP/1.0", to="forward",
     client=b"GET http://a/ HTTP/1.0\r\n\r\n", ends="close",
     has=rb"(?m)^Via: 1\.0 pen\r$")
case(194, "an interim response", client=G + E,
     upstream=[b"HTTP/1.1 103 E\r\nLink: </x>\r\n\r\n" + OK],
     got=rb"^HTTP/1\.1 103 E\r\nLink: </x>\r\nVia: 1\.1 pen\r\n\r\n")
case(194, "Connection: via",
     client=G + b"Connection: via\r\nVia: 1.0 x\r\n\r\n",
     has=rb"(?m)^Via: 1\.1 pen\r$", lacks=rb"1\.0 x")
case(194, "none in an answer of our own", to="forward",
     client=b"GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
     status=403, seen=(), got_not=rb"(?is)^(?:(?!\r\n\r\n).)*\r\nvia:")
case(195, "two lines",
     client=G + b"Via: 1.0 fred\r\nVia: 1.1 joe (x, y)\r\n\r\n",
     upstream=[OK],
     has=rb"(?s)\r\nVia: 1\.0 fred\r\nVia: 1\.1 joe \(x, y\)\r\n"
     rb"(?:(?!Via).)*Via: 1\.1 pen\r\n(?!.*Via.*Via)")
case(195, "a list", client=G + b"Via: 1.0 fred, 1.1 joe\r\n\r\n",
     has=rb"(?s)\r\nVia: 1\.0 fred, 1\.1 joe\r\n.*Via: 1\.1 pen\r\n")
case(195, "other fields between",
     client=G + b"Via: 1.0 fred\r\nX: 1\r\nvia: 2 joe\r\n\r\n",
     has=rb"(?s)\r\nVia: 1\.0 fred\r\nX: 1\r\nvia: 2 joe\r\n.*"
     rb"Via: 1\.1 pen\r\n")
case(195, "of a response", client=G + E,
     upstream=[OK.replace(E, b"\r\nVia: 1.0 fred\r\nVia: 1.1 joe\r\n", 1)],
     got=rb"(?s)\r\nVia: 1\.0 fred\r\nVia: 1\.1 joe\r\n.*Via: 1\.1 pen\r\n")
for to, ask in ("gateway", G), ("forward", A):
    case(196, to, to=to, client=ask + E, upstream=[OK],
         lacks=rb"(?im)^via:.*(127\.|:8|:9|localhost|penstock)",
         got_not=rb"(?im)^via:.*(127\.|93\.|:8|:9|localhost|penstock)")
LOOPS = {
    "alone": b"Via: 1.1 pen\r\n",
    "among others": b"Via: 1.1 a, HTTP/1.1 pen (comment), 1.0 b\r\n",
    "in a second line": b"Via: 1.1 a\r\nVia: 1.0 pen\r\n",
    "in capitals": b"Via: 1.1 PEN\r\n",
    "with a comment right behind": b"Via: 1.1 pen(x)\r\n",
    "many times": b"Via: " + b", ".join([b"1.1 pen"] * 100) + E,
}
for name, via in LOOPS.items():
    for to, ask in ("gateway", G), ("forward", A):
        case(197, f"{name}, {to}", to=to, client=ask + via + E, status=508,
             seen=(), reason="loop_detected",
             got=rb"(?m)^Proxy-Status: pen; error=proxy_loop_detected;")
for name, via in {
        "a longer name": b"1.1 pen2", "a part of a name": b"1.1 xpen",
        "with a port": b"1.1 pen:80", "in a comment": b"1.1 a (1.1 pen)",
        "after a comma in a comment": b"1.1 a (x, 1.1 pen)",
        "as the protocol": b"pen a"}.items():
    case(197, name, client=G + b"Via: " + via + b"\r\n\r\n", seen=b"GET /")
case(197, "a response that has been here", client=G + E,
     upstream=[OK.replace(E, b"\r\nVia: 1.1 pen\r\n", 1)], text=b"ok")

# --- Max-Forwards, OPTIONS, TRACE ---

OPTIONS = b"OPTIONS http://b/ HTTP/1.1\r\nHost: b\r\n"
case(198, "forward", to="forward",
     client=OPTIONS + b"Max-Forwards: 0\r\n\r\n", seen=(), reason="",
     got=[rb"^HTTP/1\.1 200 ", rb"(?m)^Content-Length: 0\r$",
          rb"(?m)^Date: ", rb"(?m)^Allow: [A-Z, ]+\r$"])
case(198, "without a path", to="forward",
     client=b"OPTIONS http://b HTTP/1.1\r\nHost: b\r\nMax-Forwards: 0\r\n\r\n",
     seen=())
for target in b"/", b"*", b"/x?y":
    case(198, f"gateway {target.decode()}", seen=(),
         client=b"OPTIONS " + target +
         b" HTTP/1.1\r\nHost: b\r\nMax-Forwards: 0\r\n\r\n")
case(198, "with zeros in front", client=b"OPTIONS / HTTP/1.1\r\nHost: b\r\n"
     b"Max-Forwards: 000\r\n\r\n", seen=())
case(198, "a body is not a request",
     client=b"OPTIONS / HTTP/1.1\r\nHost: b\r\nMax-Forwards: 0\r\n"
     b"Content-Length: %d\r\n\r\n" % len(HIDDEN) + HIDDEN,
     seen=())
for method in b"TRACE", b"OPTIONS":
    for many, fewer in ((b"5", b"4"), (b"1", b"0"), (b"010", b"9"),
                        (b"9223372036854775807", b"9223372036854775806")):
        for to, target in ("gateway", b"/"), ("forward", b"http://a/"):
            case(199, f"{method.decode()} {many.decode()}, {to}", to=to,
                 client=method + b" " + target +
                 b" HTTP/1.1\r\nHost: a\r\nMax-Forwards: " + many +
                 b"\r\n\r\n", seen=method + b" /",
                 has=rb"(?m)^Max-Forwards: " + fewer + rb"\r$",
                 lacks=rb"(?is)max-forwards.*max-forwards")
for method in b"OPTIONS", b"TRACE", b"GET":
    case(200, method.decode(),
         client=method + b" / HTTP/1.1\r\nHost: a\r\n\r\n",
         seen=method + b" /", lacks=rb"(?i)max-forwards")
case(200, "forward", to="forward", client=OPTIONS + E, seen=b"OPTIONS /",
     lacks=rb"(?i)max-forwards")
for text in (b"-1", b"x", b"99999999999999999999", b"18446744073709551616",
             b"0x0", b"+0", b"0, 0", b"", b"1.0", b"9223372036854775808",
             b"0\r\nMax-Forwards: 5"):
    for method in b"OPTIONS", b"TRACE":
        refused(201, f"{method.decode()} {text!r}", client=method +
                b" / HTTP/1.1\r\nHost: a\r\nMax-Forwards: " + text +
                b"\r\n\r\n" + HIDDEN, reason="bad_request")
case(201, "GET", client=G + b"Max-Forwards: x\r\n\r\n", seen=b"GET /",
     has=rb"(?m)^Max-Forwards: x\r$")
for method in b"GET", b"POST", b"PUT", b"PROPFIND", b"HEAD":
    case(202, method.decode(), client=[
             method + b" / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n" +
             (b"Content-Length: 0\r\n\r\n" if method != b"HEAD" else E),
             Until(b"\r\n\r\n")],
         seen=method + b" /", has=rb"(?m)^Max-Forwards: 0\r$")
SECRETS = (b"Authorization: Basic c2VjcmV0\r\nCookie: a=secret\r\n"
           b"Proxy-Authorization: Basic c2VjcmV0\r\n")
for to, target in ("gateway", b"/"), ("forward", b"http://a/"):
    case(203, to, to=to, client=b"TRACE " + target +
         b" HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n" + SECRETS + E,
         status=405, seen=(), reason="method_not_allowed",
         got=rb"(?m)^Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r$",
         got_not=[rb"secret", rb"c2VjcmV0"])

# --- Expect ---

case(204, "the server asks for the body",
     client=[WAITS, Until(b"\r\n\r\n"), b"abcde"],
     upstream=[(HEAD, GO_ON, REQUEST, OK)], body=b"abcde",
     has=rb"(?m)^Expect: 100-continue\r$",
     got=rb"^HTTP/1\.1 100 Continue\r\n(?s:.*)\r\n\r\nHTTP/1\.1 200 ")
case(204, "forward", to="forward",
     client=[POST_A + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
             Until(b"\r\n\r\n"), b"abcde"],
     upstream=[(HEAD, GO_ON, REQUEST, OK)], body=b"abcde",
     has=rb"(?m)^Expect: 100-continue\r$",
     got=rb"^HTTP/1\.1 100 ")
case(204, "chunks", client=[
         P + b"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
         Until(b"\r\n\r\n"), b"5\r\nabcde\r\n0\r\n\r\n"],
     upstream=[(HEAD, GO_ON, REQUEST, OK)], body=b"abcde",
     got=rb"^HTTP/1\.1 100 ")
case(204, "nothing is said before the server has spoken",
     client=[WAITS, Await("head"), Quiet(0.05), Mark("go"),
             Until(b"\r\n\r\n"), b"abcde"],
     upstream=[(HEAD, Mark("head"), Await("go"), GO_ON, REQUEST, OK)],
     got=rb"^HTTP/1\.1 100 ")
case(204, "the client does not wait", client=WAITS + b"abcde",
     upstream=[(HEAD, REQUEST, OK)], body=b"abcde", got=rb"^HTTP/1\.1 200 ")
case(204, "the client does not wait, 100 comes", client=WAITS + b"abcde",
     upstream=[(HEAD, GO_ON, REQUEST, OK)], body=b"abcde",
     got=rb"^HTTP/1\.1 100 ")
case(204, "100 twice", client=[WAITS, Until(b"\r\n\r\n"), b"abcde"],
     upstream=[(HEAD, GO_ON + GO_ON, REQUEST, OK)], body=b"abcde")
case(204, "each of a pipeline", client=(WAITS + b"abcde") * 20,
     upstream=[(REQUEST, OK) * 20], status=[200] * 20, seen=[b"POST /"] * 20,
     has=rb"(?s)(abcdePOST .*){19}abcde")
for status in b"401", b"417", b"200", b"500":
    answer = b"HTTP/1.1 " + status + FINAL
    case(205, f"{status.decode()} at once, the body never comes",
         client=[WAITS], upstream=[(HEAD, answer, EOF)], status=int(status),
         ends="close", got=[rb"^HTTP/1\.1 " + status,
                            rb"(?im)^connection: close\r$"])
    case(205, f"{status.decode()} at once, then a request",
         client=[WAITS, Until(b"\r\n\r\n"), HIDDEN],
         upstream=[(HEAD, answer, EOF)], status=int(status), ends="close",
         seen=b"POST /", lacks=b"hidden")
    case(205, f"{status.decode()} at once, then the body and a request",
         client=[WAITS, Until(b"\r\n\r\n"), b"abcde" + HIDDEN],
         upstream=[(HEAD, answer, EOF)], status=int(status), ends="close",
         seen=b"POST /", lacks=b"hidden")
case(205, "forward", to="forward", client=[
         POST_A + b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" %
         len(HIDDEN), Until(b"\r\n\r\n"), HIDDEN],
     upstream=[(HEAD, b"HTTP/1.1 401" + FINAL, EOF)], status=401,
     ends="close", lacks=b"hidden")
case(205, "a refusal of our own", to="forward", status=403, ends="close",
     client=[b"POST http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n"
             b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
             Until(b"destination_denied"), HIDDEN], seen=())
LARGE = P + b"Content-Length: 2000\r\nExpect: 100-continue\r\n\r\n"
for to, status, reason in (("gateway_limited", 413, b"body_too_large"),
                           ("gateway_routes", 404, b"no_route")):
    refused(205, f"{status} of our own", to=to, status=status,
            reason=reason.decode(), client=[LARGE, Until(reason), HIDDEN],
            got=rb"(?m)^Connection: close\r$")
OLD = b"POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 5\r\n"
case(206, "100 comes", client=OLD + b"Expect: 100-continue\r\n\r\nabcde",
     upstream=[(HEAD, GO_ON, REQUEST, OK)], body=b"abcde", ends="close",
     lacks=rb"(?i)expect", got=rb"^HTTP/1\.1 200 ", got_not=rb" 100 ")
case(206, "another expectation", client=OLD + b"Expect: banana\r\n\r\nabcde",
     body=b"abcde", ends="close", lacks=rb"(?i)expect")
for text in (b"banana", b"100-continue, x", b"100-continue=1", b"",
             b"100-continue;q=1", b"x, 100-continue", b"100-continu"):
    refused(207, text.decode() or "empty", status=417,
            client=P + b"Content-Length: %d\r\nExpect: " % len(HIDDEN) +
            text + b"\r\n\r\n" + HIDDEN, reason="expectation_failed")
    case(207, f"{text.decode() or 'empty'}, no body", status=417, seen=(),
         client=G + b"Expect: " + text + b"\r\n\r\n",
         reason="expectation_failed")
refused(207, "two lines", status=417, client=G +
        b"Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n", ends="keep")
for line in (b"EXPECT: 100-Continue", b"expect:100-CONTINUE",
             b"Expect:  100-continue "):
    case(207, line.decode(), client=[
             P + b"Content-Length: 5\r\n" + line + b"\r\n\r\n",
             Until(b"\r\n\r\n"), b"abcde"],
         upstream=[(HEAD, GO_ON, REQUEST, OK)], body=b"abcde")
for name, ask in (("GET", G), ("a length of 0", P + b"Content-Length: 0\r\n"),
                  ("POST without a length", P)):
    case(208, name, client=ask + b"Expect: 100-continue\r\n\r\n",
         upstream=[OK], text=b"ok")
    case(208, f"{name}, and the next", status=[200, 200], upstream=[()],
         client=ask + b"Expect: 100-continue\r\n\r\n" + G + E,
         seen=[ask[:ask.index(b" ")] + b" /", b"GET /"])
UPGRADES = P + (b"Content-Length: 5\r\nExpect: 100-continue\r\n"
                b"Upgrade: x\r\nConnection: Upgrade\r\n\r\n")
SWITCHES = b"HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"
case(209, "100, the body, 101",
     client=[UPGRADES, Until(b"\r\n\r\n"), b"abcde", Until(b"one"), b"two",
             EOF],
     upstream=[(HEAD, GO_ON, REQUEST, SWITCHES + b"one", Until(b"two"), FIN,
                EOF)],
     status=101, ends="gone", body=b"abcde",
     got=rb"(?s)^HTTP/1\.1 100 .*\r\n\r\nHTTP/1\.1 101 .*one$")
case(209, "the body unasked, 101",
     client=[UPGRADES + b"abcde", Until(b"one"), FIN, EOF],
     upstream=[(REQUEST, SWITCHES + b"one", FIN, EOF)], status=101,
     ends="gone", body=b"abcde", got=rb"^HTTP/1\.1 101 ", got_not=rb" 100 ")
case(209, "101 instead of 100", client=[UPGRADES],
     upstream=[(HEAD, SWITCHES, EOF)], status=502, ends="close",
     reason="upgrade_failed", got_not=rb"HTTP/1\.1 10[01]")
case(210, "100, and no body", to="gateway_short",
     client=[WAITS, Until(b"\r\n\r\n")], upstream=[(HEAD, GO_ON, EOF)],
     status=408, ends="close", reason="request_timeout")
case(210, "100, and half a body", to="gateway_short",
     client=[WAITS, Until(b"\r\n\r\n"), b"ab"],
     upstream=[(HEAD, GO_ON, EOF)], status=408, ends="close",
     reason="request_timeout")
case(210, "a late 100", to="gateway_body",
     client=[WAITS, Until(b"\r\n\r\n"), b"abcde"], body=b"abcde",
     upstream=[(HEAD, Quiet(1.2), GO_ON, REQUEST, OK)])
case(210, "no 100", to="gateway_short", client=[WAITS],
     upstream=[(HEAD, EOF)], status=504, ends="close",
     reason="response_timeout")
