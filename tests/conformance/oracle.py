# SPDX-License-Identifier: BSD-2-Clause
"""A second opinion on what went over the wires: h11, which is strict.

Nothing here knows what a case expects.  What upstreams got must be requests,
exactly those that the access log says were sent on; what clients got must be
responses, one for each line of the log that has a status.  What went through
a tunnel must be what was sent into it.
"""

import dataclasses
import datetime

import h11

MOST = 1 << 22          # bytes of a head
LONG = 4096             # bytes of a target that the log may leave out


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


class Objection(Exception):
    """What h11 does not take."""


class Missing(Objection):
    """A response that the log has, and the client has not."""


def requests(service):
    """What an upstream's connection got: requests, and what a tunnel had.

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
            elif isinstance(event, h11.Data):
                found[-1].body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                found[-1].complete = True
                if _switched(service, found[-1]):
                    return found, parser.trailing_data[0]
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
    return found, b""


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
    """What a client got, given the lines of the log of its exchanges."""
    parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST)
    if player.received:
        parser.receive_data(bytes(player.received))
    if player.end != "open":
        parser.receive_data(b"")
    found = []
    try:
        for line in (line for line in lines if line["status"]):
            _ask(parser, line)
            r = _response(parser, found)
            if r.status == 101 or (line.get("method") == "CONNECT" and
                                   r.status // 100 == 2):
                return found, parser.trailing_data[0]
            if parser.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
                parser.start_next_cycle()
            else:
                break
    except Missing:
        if player.left:
            return found, b""           # it did not stay to read
        raise
    except h11.RemoteProtocolError as e:
        if found and not found[-1].complete and player.end != "open":
            return found, b""           # cut, as a client sees it
        raise Objection(f"a client got what h11 refuses: {e}: "
                        f"{bytes(player.received[-600:])!r}")
    rest = parser.trailing_data[0]
    if rest:
        raise Objection(f"a client got more than its responses: {rest[:200]!r}")
    return found, b""


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


def unbroken(got, sent):
    """Is what came out of a tunnel what one of those has sent into it?"""
    if not any(bytes(got) in bytes(s) for s in sent):
        raise Objection(f"a tunnel gave what nobody sent: {got[:400]!r}")


def dated(response):
    """What is wrong with its Date (RFC 9110 section 5.6.7), as a list."""
    date = response.get(b"date").decode()
    form = "%a, %d %b %Y %H:%M:%S GMT"
    try:
        then = datetime.datetime.strptime(date, form)
    except ValueError:
        return [f"no date: {date!r}"]
    now = datetime.datetime.utcnow()
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
    least = sum(1 for line in claimed if not line.get("reason"))
    most = sum(1 + line.get("retries", 0) for line in claimed)
    if not least <= len(sent_on) <= most:
        raise Objection(f"upstreams got {len(sent_on)} requests, the log has "
                        f"{least} to {most}")
    methods = {line["method"].encode() for line in claimed}
    for r in sent_on:
        if r.method not in methods:
            raise Objection(f"nobody asked for {r.start!r}")
        if r.target.startswith(b"/") and not any(
                line["method"].encode() == r.method and
                _same_target(line.get("target"), r.target)
                for line in claimed):
            raise Objection(f"the log does not have {r.start!r}")
    whole = sum(r.complete or r.answered for r in sent_on)
    sure = sum(1 for line in claimed
               if not line.get("reason") and line["status"] < 400)
    if whole < sure:
        raise Objection(f"{whole} whole requests for {sure} good exchanges")


def _same_target(asked, sent):
    if asked is None:
        return len(sent) > LONG     # a line that had no room for it
    asked = asked.encode("latin-1", "replace")
    return asked == sent or asked.endswith(sent) or \
        b"/" + asked.partition(b"?")[1] + asked.partition(b"?")[2] == sent or \
        (asked.startswith(b"http://") and sent == b"/")
