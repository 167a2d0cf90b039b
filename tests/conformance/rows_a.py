# SPDX-License-Identifier: BSD-2-Clause
"""Rows 1 to 49: lines, the start line, versions, targets."""

from steps import (Await, CLOSE, EOF, FIN, HEAD, Mark, Quiet, REQUEST, RST,
                   Until)
from table import E, G, HIDDEN, K, OK, P, T, case, refused

refused(1, "a bare CR in a value", client=G + b"X: a\rb\r\n\r\n")
refused(2, "a bare CR in the target",
        client=b"GET /\rx HTTP/1.1\r\nHost: a\r\n\r\n")
case(6, "two", client=E + E + G + E, status=200, seen=b"GET /")
refused(6, "three", client=E + E + E + G + E)
case(11, to="forward", client=b"GET http://u/ HTTP/1.0\r\n\r\n", ends="close",
     seen=b"GET /", has=rb"^GET / HTTP/1\.1\r\n", got=rb"^HTTP/1\.1 200 ")
case(12, upstream=[b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"],
     client=G + E, got=[rb"^HTTP/1\.1 200 ", rb"(?im)^via: 1\.0 pen\r$"],
     text=b"ok")
case(103, client=P + E + b"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
     status=[200, 200], seen=[b"POST /", b"GET /2"])
case(228, client=[G + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
                  Until(b"one"), b"two", EOF],
     upstream=[(REQUEST, b"HTTP/1.1 101 S\r\nConnection: Upgrade\r\n"
                b"Upgrade: websocket\r\n\r\none", Until(b"two"), FIN, EOF)],
     status=101, ends="gone", has=rb"(?im)^upgrade: websocket\r$",
     got=rb"one$")
