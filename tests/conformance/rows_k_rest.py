# SPDX-License-Identifier: BSD-2-Clause
"""Rows k10 and k21: blocked output, and answers of name servers."""

from names import ODD
from steps import Await, EOF, Mark, REQUEST
from table import E, G, K, OK, case

# There are no pages for errors to configure; what is left is a client that
# reads nothing while its times run out.
MUCH = K + b"Content-Length: 25165824\r\n\r\n" + b"x" * (24 << 20)
case("k10", "a response is blocked", to="gateway_send",
     client=[G + E + b"GET /2 HT", Await("over"), EOF],
     upstream=[(REQUEST, MUCH, EOF, Mark("over"))], ends="close",
     reason="client_timeout", log={"cut": True}, or_cut=True)
case("k10", "the rest of a head does not come", to="gateway_short",
     ends="close", client=[G + E + b"GET /2 HT", EOF], upstream=[OK],
     status=[200, 408], reason="request_timeout",
     got=rb"(?s)request_timeout: [^\n]*\n$")

# What is an answer, but none that can be used; the others are none at all,
# and so the time runs out.
USELESS = "circle.test", "cut.test", "pointer.test"
for name in sorted(ODD):
    host = name.encode()
    for how in "GET", "CONNECT":
        case("k21", f"{name}, {how}", to="forward_short",
             client=b"GET http://" + host + b"/ HTTP/1.1\r\nHost: " + host +
             b"\r\n\r\n" if how == "GET" else
             b"CONNECT " + host + b":443 HTTP/1.1\r\nHost: " + host +
             b":443\r\n\r\n", status=502 if name in USELESS else 504, seen=(),
             reason="dns_error" if name in USELESS else "dns_timeout",
             ends="keep" if how == "GET" else "close")
