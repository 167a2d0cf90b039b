# SPDX-License-Identifier: BSD-2-Clause
"""A second opinion on what went over the wires: h11, which is strict.

Nothing here knows what a case expects.  What upstreams got must be requests,
exactly those that the access log says were sent on; what clients got must be
responses, one for each line of the log that has a status.  What comes out of a
tunnel must be what was sent into it, from the first byte on, and to the last
one where the end of the other side comes out as well.  Where h11 would choose
between two readings, as of Content-Length with Transfer-Encoding, there may be
only one.
"""

import dataclasses
import datetime
import re

import h11

MOST = 1 << 22          # bytes of a head
LONG = 4096             # bytes of a target that the log may leave out

# What h11 says of a body whose end did not come.
CUT = "without sending complete message body"

# What no request has that goes on, and all that two others of ours may say.
HOP_BY_HOP = (b"keep-alive", b"proxy-connection", b"proxy-authorization",
              b"trailer", b"http2-settings")
OUR_OPTIONS = {b"connection": rb"((close|Upgrade|TE)(, |$))+",
               b"te": rb"trailers"}


@dataclasses.dataclass
class Request:
    method: bytes
    target: bytes
    fields: tuple
    body: bytes = b""
    complete: bool = False
    answered: bool = False      # before it was complete

    @property
    def start(self):
        return self.method + b" " + self.target


@dataclasses.dataclass
class Response:
    status: int
    fields: tuple
    interim: tuple = ()
    body: bytes = b""
    trailers: tuple = ()
    complete: bool = False

    def get(self, name):
        return b", ".join(v for n, v in self.fields if n == name)


@dataclasses.dataclass
class Mouth:
    """One of the two ends of a tunnel."""
    got: bytes
    sent: bytes
    whole: bool         # the end of the other side came as well


class Objection(Exception):
    """What h11 does not take."""


class Missing(Objection):
    """A response that the log has, and the client has not."""


def mouth(player, got=None, sent=None):
    """That of a player; for one that has only a tunnel, all its bytes."""
    return Mouth(bytes(player.received if got is None else got),
                 bytes(player.sent if sent is None else sent),
                 player.end == "fin")


def requests(service):
    """What an upstream's connection got: requests, and a mouth or None.

    A request may be incomplete only at the end of the bytes.
    """
    parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST)
    parser.receive_data(bytes(service.received))
    found = []
    try:
        while True:
            event = parser.next_event()
            if isinstance(event, h11.Request):
                found.append(Request(event.method, event.target,
                                     tuple(event.headers)))
                _request_head(event)
            elif isinstance(event, h11.Data):
                found[-1].body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                found[-1].complete = True
                if _switched(service, found[-1]):
                    return found, mouth(
                        service, parser.trailing_data[0],
                        re.split(rb"(?s)HTTP/1\.1 101 .*?\r\n\r\n",
                                 service.sent, maxsplit=1)[1])
                _answered(parser)
            else:
                break
        if found:
            found[-1].answered = bool(service.sent)
    except (h11.RemoteProtocolError, h11.LocalProtocolError) as e:
        raise Objection(f"an upstream got what h11 refuses: {e}: "
                        f"{bytes(service.received[:400])!r}")
    rest = parser.trailing_data[0]
    if rest and (not found or found[-1].complete):
        raise Objection(f"an upstream got more than requests: {rest[:200]!r}")
    return found, None


def _values(event, name):
    return [v for n, v in event.headers if n == name]


def _framed(event, who):
    """Does this head say once, if at all, and as we do, how long it is?"""
    codings = _values(event, b"transfer-encoding")
    lengths = _values(event, b"content-length")
    if event.http_version != b"1.1":
        raise Objection(f"{who} got version {event.http_version!r}")
    if len(codings) + len(lengths) > 1 or codings not in ([], [b"chunked"]):
        raise Objection(f"{who} got lengths {lengths} and codings {codings}")


def _request_head(event):
    """What each request that goes on has, and what none of them has."""
    _framed(event, "an upstream")
    if event.headers[0][0] != b"host":
        raise Objection(f"Host is not first: {event.headers!r}")
    if not _values(event, b"via"):
        raise Objection(f"a request without Via: {event.headers!r}")
    for name in HOP_BY_HOP:
        if _values(event, name):
            raise Objection(f"an upstream got {name!r}: {event.headers!r}")
    for name, pattern in OUR_OPTIONS.items():
        for value in _values(event, name):
            if not re.fullmatch(pattern, value):
                raise Objection(f"an upstream got {name!r}: {value!r}")


def _response_head(event):
    """The same for responses, final and interim."""
    _framed(event, "a client")
    bare = event.status_code < 200 or event.status_code == 204
    for name in (b"content-length", b"transfer-encoding") if bare else ():
        if _values(event, name):
            raise Objection(f"a client got {event.status_code} with {name!r}")
    if event.status_code >= 200 and not _values(event, b"date"):
        raise Objection(f"a response without Date: {event.headers!r}")


def _switched(service, request):
    """Has this request been answered with 101?"""
    return any(name == b"upgrade" for name, _ in request.fields) and \
        b"HTTP/1.1 101" in service.sent


def _answered(parser):
    parser.send(h11.Response(status_code=200,
                             headers=[("Content-Length", "0")]))
    parser.send(h11.EndOfMessage())
    if parser.our_state is h11.DONE:
        parser.start_next_cycle()


def responses(player, lines):
    """What a client got, given the lines of the log of its exchanges.

    And its mouth of the tunnel that the last of them has led to, or None.
    """
    parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST)
    if player.received:
        parser.receive_data(bytes(player.received))
    if player.end != "open":
        parser.receive_data(b"")
    asked = [line for line in lines if line["status"]]
    if not all(line["status"] for line in lines[:-1]):
        raise Objection("an exchange without an answer was not the last")
    found = []
    try:
        for line in asked:
            _ask(parser, line)
            r = _response(parser, found)
            if _leads_on(line):
                return found, mouth(player, parser.trailing_data[0],
                                    _sent_inside(player, lines))
            if parser.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
                parser.start_next_cycle()
            else:
                break
        if len(found) < len(asked):
            raise Missing(f"the log has {len(asked)} responses, and "
                          f"{len(found)} came")
    except Missing:
        if player.left:
            return found, None          # it did not stay to read
        raise
    except h11.RemoteProtocolError as e:
        if CUT in str(e) and player.end != "open" and \
                len(found) == len(asked):
            return found, None          # as a client sees it
        raise Objection(f"a client got what h11 refuses: {e}: "
                        f"{bytes(player.received[-600:])!r}")
    rest = parser.trailing_data[0]
    if rest:
        raise Objection("a client got more than its responses: "
                        f"{rest[:200]!r}")
    return found, None


def _leads_on(line):
    """Is what follows this exchange a tunnel's?"""
    return line["status"] == 101 or (
        line.get("method") == "CONNECT" and line["status"] // 100 == 2)


def _sent_inside(player, lines):
    """What a client has sent behind the requests of these lines."""
    parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST)
    parser.receive_data(bytes(player.sent))
    left = len(lines)
    while left:
        event = parser.next_event()
        if event in (h11.NEED_DATA, h11.PAUSED):
            raise Objection("the log has more requests than the client")
        if isinstance(event, h11.EndOfMessage):
            left -= 1
            if left:
                _answered(parser)
    return parser.trailing_data[0]


def _ask(parser, line):
    fields = [("Host", "a")]
    if line["status"] == 101:
        fields += [("Connection", "upgrade"), ("Upgrade", "x")]
    parser.send(h11.Request(
        method=line.get("method") or "GET", target="/", headers=fields))
    parser.send(h11.EndOfMessage())


def _response(parser, found):
    """Read the next response into a new last element of found."""
    interim = []
    while True:
        event = parser.next_event()
        if isinstance(event, (h11.InformationalResponse, h11.Response)):
            _response_head(event)
        if isinstance(event, h11.InformationalResponse) and \
                event.status_code != 101:
            interim.append(event.status_code)
        elif isinstance(event, (h11.Response, h11.InformationalResponse)):
            found.append(Response(event.status_code, tuple(event.headers),
                                  tuple(interim)))
            if event.status_code == 101:
                return found[-1]
        elif isinstance(event, h11.Data):
            found[-1].body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            found[-1].trailers = tuple(event.headers)
            found[-1].complete = True
            return found[-1]
        elif found and not found[-1].complete:
            return found[-1]
        else:
            raise Missing(f"a response is missing; there came "
                          f"{bytes(parser.trailing_data[0])[:400]!r}")


def tunnels(lines):
    """Addresses to which CONNECTs have led."""
    return {line["server"] for line in lines if line.get("server") and
            line.get("method") == "CONNECT"}


def unbroken(mouths, others):
    """Has what came out of these been sent into one of those?

    From its first byte on; and to the last one where the end came as well.
    """
    sent = [m.sent for m in others] or [b""]
    for m in mouths:
        if not any(m.got == s if m.whole else s.startswith(m.got)
                   for s in sent):
            raise Objection(
                f"out of a tunnel came {len(m.got)} bytes, {m.got[:200]!r} "
                f"to {m.got[-50:]!r}, of {[len(s) for s in sent]} sent in")


def dated(response):
    """What is wrong with its Date (RFC 9110 section 5.6.7), as a list."""
    date = response.get(b"date").decode()
    form = "%a, %d %b %Y %H:%M:%S GMT"
    utc = datetime.timezone.utc
    try:
        then = datetime.datetime.strptime(date, form).replace(tzinfo=utc)
    except ValueError:
        return [f"no date: {date!r}"]
    now = datetime.datetime.now(utc)
    if then.strftime(form) != date or abs((now - then).days) > 1:
        return [f"no date of today: {date!r}"]
    return []


def agree(sent_on, lines):
    """Are these requests exactly those that the log claims?

    A line with a server claims a request that this server got, or two when it
    was tried again; with a reason, it may have got none.
    """
    claimed = [line for line in lines if line.get("server") and
               line.get("method") != "CONNECT"]
    sure = [line for line in claimed if not line.get("reason")]
    # Whole requests first, for lines that are sure: a part was tried again.
    left = sure + [line for line in claimed for _ in range(
        line.get("retries", 0) + bool(line.get("reason")))]
    got = 0
    for r in sorted(sent_on, key=lambda r: not (r.complete or r.answered)):
        n = next((n for n, line in enumerate(left) if _is_of(r, line)), None)
        if n is None:
            raise Objection(f"the log does not have {r.start!r}")
        line = left.pop(n)
        got += n < len(sure) - got
        if not (r.complete or r.answered or line.get("reason") or
                line["status"] >= 400 or line.get("retries")):
            raise Objection(f"a part of {r.start!r} for {line['status']}")
    if got < len(sure):
        raise Objection(f"upstreams got {len(sent_on)} requests, and none "
                        f"for {left[0]}")


def _is_of(request, line):
    """Did this line's exchange send that request on?"""
    if line["method"].encode() != request.method:
        return False
    target = line.get("target")
    if target is None:
        return len(request.target) > LONG   # a line had no room for it
    return request.target == _as_sent(target.encode(), request.method)


def _as_sent(target, method):
    """What goes on of a target: RFC 9112 section 3.2."""
    site = re.match(rb"(?i)http://[^/?]*", target)
    if site is None:
        return target
    rest = target[site.end():]
    if not rest and method == b"OPTIONS":
        return b"*"
    return rest if rest.startswith(b"/") else b"/" + rest
