# SPDX-License-Identifier: BSD-2-Clause
"""What a row of the table says, and short names for bytes that many need.

The table itself is in rows_*.py; every case in it calls case().
"""

import dataclasses

from steps import size_of

G = b"GET / HTTP/1.1\r\nHost: a\r\n"
P = b"POST / HTTP/1.1\r\nHost: a\r\n"
T = P + b"Transfer-Encoding: chunked\r\n\r\n"
K = b"HTTP/1.1 200 OK\r\n"
E = b"\r\n"
OK = K + b"Content-Length: 2\r\n\r\nok"
# A request hidden in the bytes of another: it may never reach an upstream.
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"

# Above this the pieces are larger, or a case would take seconds.
LARGE = 16384

CASES = []


@dataclasses.dataclass(frozen=True)
class Case:
    """One case.

    row       number of the row in ROWS.md, as a string
    name      what is special about it; row and name are unique together
    to        the listener of penstock.conf that the clients use
    clients   a script for each client's connection, all begun together
    upstream  a script for each connection that the upstreams take
    status    final statuses of the responses of all clients, in order
    ends      what becomes of the first client's connection after that:
              "keep" (another request is answered), "close" (a clean end),
              "reset", "gone" (the client has left), "any"
    reason    token in the log for the last exchange; None: any that has the
              status of its response, and "" none
    log       {field: value} that the same line of the log has; value None:
              it lacks the field
    seen      start lines of all requests that upstreams have got, complete or
              not; None: any
    has       regular expressions that match what the upstreams got
    lacks     those that don't
    got       the same for what the first client got
    got_not
    body      what the upstream got as the body of its first request
    text      the body of the first client's first response
    """
    row: str
    name: str
    to: str
    clients: tuple
    upstream: tuple
    status: tuple
    ends: str
    reason: str
    log: dict
    seen: tuple
    has: tuple
    lacks: tuple
    got: tuple
    got_not: tuple
    body: bytes
    text: bytes

    @property
    def id(self):
        return f"{self.row} {self.name}".rstrip()

    @property
    def is_large(self):
        return max(map(size_of, [*self.clients, *self.upstream])) > LARGE


def _tuple(value):
    if value is None:
        return None
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def case(row, name="", *, to="gateway", client=(), clients=None, upstream=(),
         status=200, ends="keep", reason=None, log=None, seen=None, has=(),
         lacks=(), got=(), got_not=(), body=None, text=None):
    """Add a case.

    client is the script of the only client: steps, or just bytes.  upstream
    is a list of scripts, each steps or just bytes; bytes alone are sent when
    a whole request has come.
    """
    from steps import REQUEST
    if clients is None:
        clients = [client]
    scripts = [(REQUEST, u) if isinstance(u, bytes) else tuple(u)
               for u in upstream]
    CASES.append(Case(
        str(row), name, to, tuple(_tuple(c) for c in clients),
        tuple(scripts) or ((),), _tuple(status), ends, reason, log or {},
        _tuple(seen), _tuple(has), _tuple(lacks), _tuple(got),
        _tuple(got_not), body, text))


def refused(row, name="", *, status=400, **more):
    """A case that ends the connection, with nothing for an upstream."""
    case(row, name, status=status, ends=more.pop("ends", "close"),
         seen=more.pop("seen", ()), **more)
