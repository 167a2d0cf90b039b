# SPDX-License-Identifier: BSD-2-Clause
"""What a row of the table says, and short names for bytes that many need.

The table itself is in rows_*.py; every case in it calls case().
"""

import dataclasses

from steps import REQUEST, size_of

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
    connections  how many connections upstreams have taken, also for the
              request that shows that the client's was kept; None: any
    or_cut    what is bad in the response may come when it has begun: then
              the client has a part of it, and sees that it is one
    """
    row: str
    name: str
    clients: tuple
    upstream: tuple = ((),)
    to: str = "gateway"
    status: tuple = (200,)
    ends: str = "keep"
    reason: str = None
    log: dict = dataclasses.field(default_factory=dict)
    seen: tuple = None
    has: tuple = ()
    lacks: tuple = ()
    got: tuple = ()
    got_not: tuple = ()
    body: bytes = None
    text: bytes = None
    connections: int = None
    or_cut: bool = False

    @property
    def id(self):
        return f"{self.row} {self.name}".rstrip()

    @property
    def is_large(self):
        return max(map(size_of, [*self.clients, *self.upstream])) > LARGE


# Expectations that may be given as one value or as several.
SEVERAL = ("status", "seen", "has", "lacks", "got", "got_not")


def _tuple(value):
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def case(row, name="", *, client=(), clients=None, upstream=((),), **more):
    """Add a case.

    client is the script of the only client: steps, or just bytes.  upstream
    is a list of scripts, each steps or just bytes; bytes alone are sent when
    a whole request has come.  The rest is as in Case.
    """
    for name_ in SEVERAL:
        if more.get(name_) is not None:
            more[name_] = _tuple(more[name_])
    CASES.append(Case(
        str(row), name,
        tuple(_tuple(c) for c in ([client] if clients is None else clients)),
        tuple((REQUEST, u) if isinstance(u, bytes) else tuple(u)
              for u in upstream) or ((),), **more))


def refused(row, name="", *, status=400, **more):
    """A case that ends the connection, with nothing for an upstream."""
    case(row, name, status=status, ends=more.pop("ends", "close"),
         seen=more.pop("seen", ()), **more)
