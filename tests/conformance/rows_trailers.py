# SPDX-License-Identifier: BSD-2-Clause
"""Trailers, in rows 58, 124 to 127, 165, 170, 192, 193 and 267."""

from steps import EOF, HEAD, REQUEST, Await, Mark, Until
from table import E, G, K, OK, T, case

ASKS = G + b"TE: trailers\r\nConnection: TE\r\n\r\n"
CHUNKED = K + b"Transfer-Encoding: chunked\r\n"
LAST = b"2\r\nok\r\n0\r\n"

# --- of requests: they go no further ---

case(58, "after a request", client=T + b"0\r\nHost: evil\r\n\r\n",
     upstream=[OK], lacks=rb"evil", body=b"")
case(124, "after a request", client=T + LAST + b"Content-Length: 5\r\n"
     b"Authorization: x\r\nX-Ok: y\r\n\r\n", upstream=[OK], body=b"ok",
     lacks=[rb"(?i)content-length", rb"(?i)authorization", rb"X-Ok"])


def refused_late(row, name, trailers):
    """Bad trailers of a request that has begun to go on."""
    case(row, name, client=[T + b"1\r\nz\r\n", Await("begun"),
                            b"0\r\n" + trailers],
         upstream=[(HEAD, Until(b"z\r\n"), Mark("begun"), EOF)], status=400,
         ends="close", reason="bad_request", seen=b"POST /",
         lacks=rb"\r\n0\r\n")


BAD = b"X y\r\n", b"X: y\r\n z\r\n", b"X: \x00\r\n", b"X: y\n"

refused_late(125, "a trailer of 1 MiB", b"X: " + b"a" * (1 << 20) + E + E)
refused_late(125, "10000 trailers", b"a: b\r\n" * 10000 + E)
case(126, "after a request", client=T[:-2] + b"Connection: X-T\r\n\r\n"
     b"0\r\nX-T: 1\r\n\r\n", upstream=[OK], lacks=rb"X-T")
for bad in BAD:
    refused_late(127, f"after a request: {bad!r}", bad + E)

# --- of responses: for whoever asks ---

case(124, "after a response", client=ASKS, upstream=[
    CHUNKED + E + LAST + b"Content-Length: 5\r\nAuthorization: x\r\n"
    b"X-Ok: y\r\nHost: evil\r\nSet-Cookie: x\r\n\r\n"],
    got=rb"\r\n0\r\nX-Ok: y\r\n\r\n", text=b"ok",
    got_not=[rb"(?i)content-length: 5", rb"Auth", rb"evil", rb"Set-Cookie"])
case(126, "after a response", client=ASKS, upstream=[
    CHUNKED + b"Connection: X-T\r\n\r\n" + LAST + b"x-t: 1\r\nX-U: 2\r\n\r\n"],
    got=rb"\r\n0\r\nX-U: 2\r\n\r\n", got_not=rb"(?i)x-t")
case(126, "after a response, among what names nothing", client=ASKS, upstream=[
    CHUNKED + b"Connection: ,\"x, X-T , ,y z,,\r\nConnection: X-V,\r\n\r\n" +
    LAST + b"x-t: 1\r\nX-U: 2\r\nx-v: 3\r\nx: 4\r\n\r\n"],
    got=rb"\r\n0\r\nX-U: 2\r\nx: 4\r\n\r\n", got_not=rb"(?i)x-[tv]")
for bad in BAD:
    case(127, f"after a response: {bad!r}",
         client=[ASKS, Until(b"z\r\n"), Mark("begun"), EOF],
         upstream=[(REQUEST, CHUNKED + E + b"1\r\nz\r\n", Await("begun"),
                    b"0\r\nX-Ok: y\r\n" + bad + E, EOF)],
         ends="close", reason="response_invalid", got_not=rb"\r\n0\r\n|X-Ok")
case(165, "asked for", client=ASKS, upstream=[
    CHUNKED + E + LAST + b"X-T: 1\r\n\r\n"], text=b"ok",
    got=rb"\r\n0\r\nX-T: 1\r\n\r\n")
case(165, "asked for, but for Connection", client=G + b"TE: trailers\r\n\r\n",
     upstream=[CHUNKED + E + LAST + b"X-T: 1\r\n\r\n"], text=b"ok",
     got=rb"\r\n0\r\nX-T: 1\r\n\r\n")
case(165, "not asked for", client=G + E, upstream=[
    CHUNKED + E + LAST + b"X-T: 1\r\n\r\n"], text=b"ok",
    got=rb"\r\n0\r\n\r\n", got_not=rb"X-T")
case(165, "HTTP/1.0", client=b"GET / HTTP/1.0\r\nHost: a\r\nTE: trailers\r\n"
     b"Connection: TE\r\n\r\n", upstream=[
         CHUNKED + b"Trailer: X-T\r\n\r\n" + LAST + b"X-T: 1\r\n\r\n"],
     ends="close", got=rb"\r\n\r\nok$", got_not=rb"X-T", lacks=rb"TE:")
case(170, "trailers", client=G + b"TE: trailers\r\n\r\n", upstream=[OK],
     lacks=rb"TE:")
case(192, client=ASKS, upstream=[OK],
     has=[rb"\r\nTE: trailers\r\n", rb"\r\nConnection: TE\r\n"])
case(193, client=G + b"TE: chunked, trailers;q=0.5\r\nConnection: TE\r\n\r\n",
     upstream=[CHUNKED + E + LAST + b"X-T: 1\r\n\r\n"], lacks=rb"TE",
     text=b"ok", got_not=rb"X-T")
case(267, "kept", client=ASKS, upstream=[
    CHUNKED + b"Trailer: X-T\r\n\r\n" + LAST + b"X-T: 1\r\n\r\n"],
    got=[rb"\r\nTrailer: X-T\r\n", rb"\r\n0\r\nX-T: 1\r\n\r\n"])
case(267, "dropped", client=G + E, upstream=[
    CHUNKED + b"Trailer: X-T\r\n\r\n" + LAST + b"X-T: 1\r\n\r\n"],
    got_not=rb"X-T")
