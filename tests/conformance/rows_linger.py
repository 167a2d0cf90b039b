# SPDX-License-Identifier: BSD-2-Clause
"""What a client still sends to who has refused it is read, and forgotten.

Else the kernel would reset the connection, and the refusal might be lost on
its way (RFC 9112 section 9.6).
"""

from steps import EOF, HEAD, Await, Lingers, Mark, Until
from table import G, HIDDEN, P, T, case, refused

MORE = HIDDEN * 100

for row, status, sent, more in (
        (1, 400, G + b"X: a\rb\r\n\r\n", {}),
        (8, 400, b"\x16\x03\x01\x02\0\x01\0", {}),
        (14, 505, b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", {}),
        (25, 501, b"FOO / HTTP/1.1\r\nHost: a\r\n\r\n", {}),
        (50, 400, b"GET / HTTP/1.1\r\n\r\n", {}),
        (74, 431, G + b"a: b\r\n" * 1000, {}),
        (86, 400, P + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"
         b"\r\n0\r\n\r\n", {}),
        (89, 501, P + b"Transfer-Encoding: gzip, chunked\r\n\r\n", {}),
        (97, 400, P + b"Content-Length: 0x2\r\n\r\nab", {}),
        (101, 413, P + b"Content-Length: 18446744073709551615\r\n\r\n", {}),
        (108, 413, P + b"Content-Length: 100000\r\n\r\n",
         {"to": "gateway_limited"}),
        (215, 403, b"CONNECT b:25 HTTP/1.1\r\nHost: b:25\r\n\r\n",
         {"to": "forward"})):
    refused(row, "what follows is read", status=status,
            client=[sent, Lingers(MORE)], **more)
case(111, "what follows is read", client=[T, Await("there"),
     b"G\r\n", Lingers(MORE)], upstream=[[HEAD, Mark("there"), EOF]],
     status=400, ends="close", lacks=rb"hidden")
case(131, "what follows is read", ends="close", status=413,
     client=[P + b"Content-Length: 100000\r\n\r\n", Until(b"big"),
             Lingers(MORE)],
     upstream=[[HEAD, b"HTTP/1.1 413 Large\r\nContent-Length: 3\r\n\r\nbig"]])
