# SPDX-License-Identifier: BSD-2-Clause
"""Clients that ask, wait for the answer, and ask again, until told to stop.

Each asks for something that no other asks for, and looks whether that is what
it gets.  What went wrong is kept: a connection that was refused, reset, or
ended with an answer missing is a failed request.
"""

import collections
import itertools
import threading
import time

from penstock import Client, DEADLINE

# What a client asks for over one connection before it makes another.
REQUESTS = 20
BATCH = 8
BIG = 1 << 20


def pattern(token, size):
    """So many bytes that no other token has."""
    unit = b"%s;" % token.encode()
    return (unit * (size // len(unit) + 1))[:size]


def serve(wire):
    """The server's behaviour: the target, or as much as it asks for."""
    while (request := wire.read_message()) is not None:
        token = request.target
        size = BIG if token.startswith("/big/") else len(token)
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (
            size, pattern(token, size)))


def get(token):
    return f"GET {token} HTTP/1.1\r\nHost: test\r\n\r\n".encode()


class Load:
    """Clients of all kinds, each in a thread.

    add() has one more; stop() ends them and raises what has failed.  With
    `may_end`, a connection that is refused is the end of its client, since
    nobody is there any more.
    """

    def __init__(self, may_end=False):
        self.may_end = may_end
        self.done = collections.Counter()
        self.failed = []
        self._stopping = threading.Event()
        self._threads = []
        self._tokens = itertools.count()
        self._lock = threading.Lock()

    def add(self, kind, *args, count=1):
        """So many clients that do this: kind(load, *args), a connection."""
        for _ in range(count):
            t = threading.Thread(target=self._run, args=(kind, args),
                                 daemon=True)
            t.start()
            self._threads.append(t)
        return self

    def _run(self, kind, args):
        while not self._stopping.is_set():
            try:
                kind(self, *args)
            except ConnectionRefusedError as e:
                if self.may_end:
                    return
                self._fail(kind, e)
            except Exception as e:
                self._fail(kind, e)

    def _fail(self, kind, e):
        with self._lock:
            self.failed.append((time.monotonic(), kind.__name__, repr(e)))
        time.sleep(0.01)        # not a flood of the same

    def token(self, prefix="/"):
        return f"{prefix}{next(self._tokens)}"

    def note(self, kind, m, token, size=None):
        """That is the answer to what was asked; True if it is the last."""
        size = len(token) if size is None else size
        assert m is not None, f"{token}: closed without an answer"
        assert m.status == 200, f"{token}: {m!r}"
        assert m.body == pattern(token, size), f"{token}: another's"
        with self._lock:
            self.done[kind] += 1
        return m.get("Connection") == "close"

    def count(self):
        return sum(self.done.values())

    def wait(self, timeout=60):
        """Wait until all clients have come to their own end."""
        end = time.monotonic() + timeout
        for t in self._threads:
            t.join(max(0, end - time.monotonic()))
            assert not t.is_alive(), "a client still waits"

    def stop(self):
        """End them, after the answers they wait for."""
        self._stopping.set()
        self.wait()
        assert not self.failed, "\n".join(map(str, self.failed[:20]))


# --- kinds of clients: what each does with a connection ---

def keep_alive(load, port, prefix="", requests=REQUESTS):
    with Client(port, timeout=3 * DEADLINE) as c:
        for _ in range(requests):
            token = load.token()
            c.send(get(token if not prefix else prefix + token))
            if load.note("keep_alive", c.read_message(), token):
                return


def pipelined(load, port):
    """A batch at once; the next when all of it is answered."""
    with Client(port, timeout=3 * DEADLINE) as c:
        for _ in range(REQUESTS):
            tokens = [load.token() for _ in range(BATCH)]
            c.send(b"".join(map(get, tokens)))
            last = [load.note("pipelined", c.read_message(), t)
                    for t in tokens]
            assert True not in last[:-1], "closed before all is answered"
            if last[-1]:
                return


def download(load, port):
    """Large answers, read slowly enough to be in the middle of one."""
    with Client(port, timeout=3 * DEADLINE, buffer=65536) as c:
        for _ in range(3):
            token = load.token("/big/")
            c.send(get(token))
            if load.note("download", c.read_message(), token, BIG):
                return


def _raw(load, kind, c):
    """To the server, whatever is between: it never says close."""
    for _ in range(REQUESTS):
        token = load.token()
        c.send(get(token))
        assert not load.note(kind, c.read_message(), token)


def relayed(load, port):
    with Client(port, timeout=3 * DEADLINE) as c:
        _raw(load, "relayed", c)


def tunnelled(load, port, server):
    with Client(port, timeout=3 * DEADLINE) as c:
        c.send(f"CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n".encode())
        m = c.read_head()
        assert m is not None and m.status == 200, repr(m)
        _raw(load, "tunnelled", c)
