# SPDX-License-Identifier: BSD-2-Clause
"""What a case lets a client and an upstream do, and who does it.

A script is a list of steps, done in order on one connection:

    bytes           are sent
    Until(mark)     read until the mark has come, after the last one waited for
    REQUEST         (upstream) read one whole request
    HEAD            (upstream) read the head of a request
    Content(bytes)  (upstream) read on until its content ends with these
    Fill(bytes)     send them again and again, until no more is taken
    Flood(bytes)    the same, until the other side has ended
    Quiet(seconds)  fail if anything comes, or the end, within that time
    Mark(name)      lets all who Await(name) go on
    Await(name)     wait for that mark
    FIN             send no more
    RST             close with a reset
    CLOSE           close
    EOF             read until the other side has ended
    Lingers(bytes)  the same, then send these and FIN: all must be taken

An upstream whose script is used up goes on as a server that answers each
request with 200 and "<METHOD target>".
"""

import dataclasses
import enum
import errno
import re
import select
import socket
import struct
import threading
import time

import h11

from penstock import most_under_way, wait_for

# Where each step of a script has to be done.
DEADLINE = 8.0

# Of a socket that no side will use any more, in tcp_info.tcpi_state.
TCP_CLOSE = 7


class Word(enum.Enum):
    REQUEST = enum.auto()
    HEAD = enum.auto()
    FIN = enum.auto()
    RST = enum.auto()
    CLOSE = enum.auto()
    EOF = enum.auto()


REQUEST, HEAD, FIN, RST, CLOSE, EOF = Word


@dataclasses.dataclass(frozen=True)
class Until:
    mark: bytes


@dataclasses.dataclass(frozen=True)
class Content:
    end: bytes


@dataclasses.dataclass(frozen=True)
class Fill:
    data: bytes


@dataclasses.dataclass(frozen=True)
class Flood:
    data: bytes


@dataclasses.dataclass(frozen=True)
class Lingers:
    data: bytes


@dataclasses.dataclass(frozen=True)
class Quiet:
    seconds: float


@dataclasses.dataclass(frozen=True)
class Mark:
    name: str


@dataclasses.dataclass(frozen=True)
class Await:
    name: str


def size_of(script):
    """Bytes that a script sends, or may send in a flood."""
    return sum(len(step) for step in script if isinstance(step, bytes)) + \
        sum(most_under_way() for step in script if isinstance(step, Flood))


class Failed(Exception):
    """A step could not be done."""


class Marks:
    """The marks of one run of a case."""

    def __init__(self):
        self._events = {}
        self._lock = threading.Lock()

    def __getitem__(self, name):
        with self._lock:
            return self._events.setdefault(name, threading.Event())


class Player:
    """One end of a connection, and all that came and went there."""

    def __init__(self, s, marks):
        self.socket = s
        self.marks = marks
        self.received = bytearray()
        self.sent = bytearray()
        self.end = "open"       # or "fin", "reset": how the other side ended
        self.closed = False     # we have closed
        self.left = False       # the script said so
        self.problem = None
        self._looked = 0        # where the next Until begins to look
        self._was_reset = False     # as sending has told
        s.settimeout(DEADLINE)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def play(self, script):
        """Do the steps; false, with .problem, when one can't be done."""
        for n, step in enumerate(script):
            try:
                self.do(step)
            except (Failed, OSError, h11.RemoteProtocolError) as e:
                self.problem = f"step {n} ({_short(step)}): {e or repr(e)}"
                return False
        return True

    def do(self, step):
        if isinstance(step, bytes):
            self._send(step)
        elif isinstance(step, Until):
            self._until(step.mark)
        elif isinstance(step, Fill):
            self._fill(step.data)
        elif isinstance(step, Flood):
            self._flood(step.data)
        elif isinstance(step, Quiet):
            self._quiet(step.seconds)
        elif isinstance(step, Lingers):
            self._lingers(step.data)
        elif isinstance(step, Mark):
            self.marks[step.name].set()
        elif isinstance(step, Await):
            if not self.marks[step.name].wait(DEADLINE):
                raise Failed("nobody made that mark")
        elif step is FIN:
            self.socket.shutdown(socket.SHUT_WR)
        elif step in (RST, CLOSE):
            self.left = True
            self.close(step is RST)
        elif step is EOF:
            self.read_to_end()
        else:
            raise TypeError(f"not a step: {step!r}")

    def _send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as e:
            # Refused clients may learn so while they still send; what was
            # said to them is judged, not what they could still say.  Who
            # reads after a reset is told of a clean end.
            self._was_reset |= isinstance(e, ConnectionResetError)
        self.sent += data

    def more(self):
        """Read what there is, waiting for it; false at the end."""
        if self.end != "open":
            return False
        try:
            data = self.socket.recv(1 << 20)
        except TimeoutError:
            raise Failed(f"nothing more came after {_tail(self.received)}")
        except ConnectionResetError:
            self.end = "reset"
            return False
        if not data:
            self.end = "reset" if self._was_reset else "fin"
            return False
        self.received += data
        return True

    def _until(self, mark):
        while (at := self.received.find(mark, self._looked)) < 0:
            if not self.more():
                raise Failed(f"ended with {self.end} after "
                             f"{_tail(self.received)}")
        self._looked = at + len(mark)

    def _fill(self, data):
        """Fail if the other side reads on and on."""
        more = self._again(data)
        while select.select([], [self.socket], [], 0.2)[1]:
            more()

    def _flood(self, data):
        """Fail if the other side never ends, or reads on and on.

        An amount that is fixed may all be taken by the kernel's buffers, and
        the next step is done while nobody is blocked.
        """
        more = self._again(data)
        try:
            while True:
                more()
        except TimeoutError:
            raise Failed("nobody ended it")
        except (BrokenPipeError, ConnectionResetError) as e:
            self._was_reset |= isinstance(e, ConnectionResetError)

    def _again(self, data):
        """A function that sends some more of what is sent again and again."""
        many = data * (65536 // len(data) + 1)
        at, most = len(self.sent), most_under_way()

        def more():
            some = many[(len(self.sent) - at) % len(data):]
            self.sent += some[:self.socket.send(some)]
            if len(self.sent) - at > most:
                raise Failed(f"{most} bytes were taken")
        return more

    def _lingers(self, data):
        """Fail if the other side, which has ended, doesn't stay to read.

        To whom reads, a reset after the end does not show; elsewhere it
        overtakes what was said before the end.
        """
        self.read_to_end()
        self.socket.sendall(data)
        self.sent += data
        self.socket.shutdown(socket.SHUT_WR)
        wait_for(lambda: self.socket.getsockopt(
            socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_CLOSE,
            DEADLINE, "its FIN was not taken")
        if wrong := self.socket.getsockopt(socket.SOL_SOCKET,
                                           socket.SO_ERROR):
            raise Failed(f"{errno.errorcode[wrong]} after the end")

    def _quiet(self, seconds):
        if select.select([self.socket], [], [], seconds)[0]:
            before = len(self.received)
            self.more()
            raise Failed(f"not quiet: {_tail(self.received[before:])}, "
                         f"{self.end}")

    def read_to_end(self):
        while self.more():
            pass

    def close(self, reset=False):
        if not self.closed:
            self.closed = True
            if reset:
                self.socket.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER,
                    struct.pack("ii", 1, 0))
            self.socket.close()


class Service(Player):
    """The upstream's end: a Player that knows where requests end."""

    def __init__(self, s, marks):
        super().__init__(s, marks)
        self.address = "%s:%d" % s.getsockname()[:2]
        self._fed = 0
        self._parser = h11.Connection(
            h11.SERVER, max_incomplete_event_size=1 << 21)
        self._request = None
        self.done = threading.Event()

    def do(self, step):
        if step is REQUEST:
            if not self._next(whole=True):
                raise Failed("no request came")
        elif step is HEAD:
            if not self._next(whole=False):
                raise Failed("no request came")
        elif isinstance(step, Content):
            self._content(step.end)
        else:
            super().do(step)

    def _content(self, end):
        """However it is framed: Until looks at chunks, this does not."""
        content = bytearray()
        while not content.endswith(end):
            event = self._event()
            if not isinstance(event, h11.Data):
                raise Failed(f"the content ended after {_tail(content)}")
            content += event.data

    def _event(self):
        """The next event of the parser; None at the end."""
        while True:
            if self._fed < len(self.received):
                self._parser.receive_data(bytes(self.received[self._fed:]))
                self._fed = len(self.received)
            event = self._parser.next_event()
            if event not in (h11.NEED_DATA, h11.PAUSED):
                return event
            if not self.more():
                return None

    def _restart(self):
        """To the parser, what was read has been answered."""
        if self._parser.our_state is h11.SEND_RESPONSE:
            self._parser.send(h11.Response(
                status_code=200, headers=[("Content-Length", "0")]))
            if self._parser.our_state is not h11.DONE:
                self._parser.send(h11.EndOfMessage())
        if self._parser.states == {h11.SERVER: h11.DONE,
                                   h11.CLIENT: h11.DONE}:
            self._parser.start_next_cycle()

    def _next(self, whole):
        """Read to the head, or to the end, of a request."""
        if self._request is None:
            self._restart()
            while not isinstance(event := self._event(), h11.Request):
                if event is None or isinstance(event, h11.ConnectionClosed):
                    return False
            self._request = event
        if whole:
            while not isinstance(event := self._event(), h11.EndOfMessage):
                if event is None:
                    return False
            self.last, self._request = self._request, None
        # What is waited for after this is not in there.
        self._looked = self._fed - len(self._parser.trailing_data[0])
        return True

    def serve(self):
        """Answer requests until the client has gone."""
        if self._request is not None:
            self._next(whole=True)      # the script has answered it
        while self._next(whole=False):
            if self._parser.they_are_waiting_for_100_continue:
                self._send(b"HTTP/1.1 100 Continue\r\n\r\n")
            if not self._next(whole=True):
                break
            self._send(answer(self.last.method, self.last.target))
            if self._parser.their_state is h11.MUST_CLOSE:
                self.do(FIN)
        self.read_to_end()

    def run(self, script):
        """The whole life of an upstream's connection."""
        try:
            if self.play(script) and not self.closed and self.end == "open":
                self.serve()
        except (Failed, OSError, h11.RemoteProtocolError) as e:
            self.problem = f"serving: {e or repr(e)}"
        finally:
            self.close()
            self.done.set()


def answer(method, target, more=b""):
    """What an upstream says when its script says nothing."""
    body = b"<" + method + b" " + target + b">"
    return (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" % len(body) + more +
            b"\r\n" + (b"" if method == b"HEAD" else body))


class Upstreams:
    """Listens everywhere the configuration leads to, all the time.

    begin() says which script each connection of a case gets, in the order
    they come in; finish() ends what is still open and returns all.
    """

    def __init__(self, addresses):
        self._listeners = []
        self._lock = threading.RLock()
        self._scripts = iter(())
        self._services = []
        self._marks = Marks()
        self._over = False
        for address in addresses:
            s = socket.socket(socket.AF_INET6 if ":" in address[0]
                              else socket.AF_INET)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(address)
            s.listen(64)
            s.setblocking(False)
            self._listeners.append(s)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self._over:
            select.select(self._listeners, [], [], 0.5)
            self._accept_all()

    def _accept_all(self):
        """Take the connections that the daemon has made so far."""
        with self._lock:
            for s in self._listeners:
                try:
                    while True:
                        self._serve(s.accept()[0])
                except BlockingIOError:
                    pass

    def _serve(self, c):
        service = Service(c, self._marks)
        script = next(self._scripts, ())
        self._services.append(service)
        threading.Thread(
            target=service.run, args=(script,), daemon=True).start()

    def begin(self, scripts, marks):
        with self._lock:
            self._scripts = iter(scripts)
            self._services = []
            self._marks = marks

    def finish(self):
        """Every connection of the case, once the daemon has let it go.

        The clients have gone; so an idle connection is all there can be, and
        the daemon closes that when it sees the end of ours.
        """
        with self._lock:
            self._accept_all()
            services = list(self._services)
        end = time.monotonic() + DEADLINE
        for service in services:
            if not service.closed:
                try:
                    service.socket.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
        for service in services:
            if not service.done.wait(max(0, end - time.monotonic())):
                service.problem = (service.problem or "") + \
                    " the daemon keeps the connection"
                service.close()
        return services

    def stop(self):
        self._over = True


def _short(step):
    text = repr(step)
    return text if len(text) < 70 else text[:66] + "..."


def _tail(data):
    return repr(bytes(data[-120:]))


def mask(data):
    """Received bytes without what differs from run to run: a Date of now."""
    now = rb"\w{3}, \d\d \w{3} 20[2-9]\d [\d:]{8} GMT"
    return re.sub(rb"(?mi)^(date: )" + now + rb"\r$", rb"\1*\r", bytes(data))
