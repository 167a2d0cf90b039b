# SPDX-License-Identifier: BSD-2-Clause
"""The worst case of memory, which -t prints, holds whatever clients do."""

import contextlib
import pathlib
import re
import resource
import select
import socket
import subprocess
import threading
import time

import pytest

from penstock import PROGRAM, free_port, run_penstock, wait_for

# AddressSanitizer keeps what was freed, and ThreadSanitizer shadows it.
if any(name in pathlib.Path(PROGRAM).read_bytes()
       for name in (b"__asan_init", b"__tsan_init")):
    pytest.skip("a sanitizer takes memory of its own",
                allow_module_level=True)

CLIENTS = 190
MIB = 1 << 20

# Waits for buffers that are full: as nothing tells that they are.
NOTHING_MOVES = 0.3

CONFIG = """
[penstock]
workers = 2
max_connections = 200
buffers = 8m
[log]
access = {folder}/access.log
[timeouts]
request_head = 60s
request_body = 60s
response = 60s
[listener gateway]
mode = gateway
bind = 127.0.0.1:{gateway}
upstream = up
limits = each fair
head_size = 64k
head_fields = 1000
splice = off
high_watermark = 1m
[listener relay]
mode = tcp
bind = 127.0.0.1:{relay}
upstream = up
limits = calls
splice = off
high_watermark = 1m
[limit each]
key = client_address
keys = 64
table_full = allow
rate = 1000/s
burst = 1000
concurrency = 150
queue = 100
queue_timeout = 60s
[limit calls]
key = client_address
keys = 64
table_full = allow
connections = 10000
[limit fair]
concurrency = 120
queue = 100
queue_fair_by = host
[upstream up]
server = {server}
pool_max = 50
"""


class Stubborn:
    """A server that, as the target says, floods its client or reads nothing.

    Both until it is let go, or the connection ends.
    """

    def __init__(self):
        self.over = threading.Event()

    def let_go(self):
        self.over.set()
        self.over = threading.Event()

    def __call__(self, wire):
        over = self.over
        while (head := wire.read_head()) is not None:
            if head.target == "/short":
                wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                continue
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            if head.target == "/flood":
                wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
                          % (1 << 40))
                with contextlib.suppress(OSError):
                    while True:
                        wire.send(bytes(65536))
            over.wait(20)
            return


def largest_head(filled):
    """The start of a head of so many bytes, with as many fields as can be."""
    lines = [b"POST /sink HTTP/1.1", b"Host: x"]
    each = filled // 900
    lines += [b"F%d: " % i + b"x" * (each - 9) for i in range(880)]
    return b"\r\n".join(lines)[:filled]


def request(target, host="x", length=0):
    return (f"POST {target} HTTP/1.1\r\nHost: {host}\r\n"
            f"Content-Length: {length}\r\n\r\n").encode()


# What each of the clients sends, and to which listener; the last part again
# and again, until nothing moves any more.
ATTACKS = [
    ("gateway", lambda i: [largest_head(60000)]),
    ("gateway", lambda i: [largest_head(900)]),
    ("gateway", lambda i: [largest_head(3000)]),
    ("gateway", lambda i: [largest_head(15000)]),
    ("gateway", lambda i: [largest_head(60000) + b"\r\n" +
                           b"Content-Length: 9999999\r\n\r\n", bytes(65536)]),
    ("gateway", lambda i: [request("/sink", f"h{i}", 1 << 40),
                           bytes(65536)]),
    ("gateway", lambda i: [request("/flood", f"h{i}")]),
    ("gateway", lambda i: [request("/short", f"h{i % 7}") * 100] * 2),
    ("relay", lambda i: [request("/flood"), bytes(65536)]),
    ("relay", lambda i: [request("/sink"), bytes(65536)]),
]


def push(pending):
    """Send to all sockets what they still have to, until nothing moves."""
    while pending:
        ready = select.select([], list(pending), [], NOTHING_MOVES)[1]
        if not ready:
            return
        for s in ready:
            parts = pending[s]
            try:
                sent = s.send(parts[0])
            except OSError:
                del pending[s]
                continue
            if sent < len(parts[0]):
                parts[0] = parts[0][sent:]
            elif len(parts) > 1:
                parts.pop(0)
            elif len(parts[0]) < 65536:
                del pending[s]


def settle(daemon):
    """Wait until the daemon has read what there is to be read."""
    before = -1
    while (now := daemon.count("received_bytes")) != before:
        before = now
        time.sleep(NOTHING_MOVES)


def attack(daemon, port, parts_of):
    with contextlib.ExitStack() as stack:
        pending = {}
        for i in range(CLIENTS):
            s = stack.enter_context(socket.socket())
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.bind((f"127.0.1.{i % 100 + 1}", 0))
            s.connect(("127.0.0.1", port))
            s.setblocking(False)
            pending[s] = list(parts_of(i))
        push(pending)
        settle(daemon)


def worst_case(file):
    """The rows that -t prints, in MiB."""
    r = run_penstock("-t", "-c", file)
    assert r.returncode == 0, r.stderr
    found = re.findall(r"^ +(\d+) MiB  (.*?)(?:  .*)?$", r.stdout, re.M)
    return {what: int(n) for n, what in found}


def test_the_worst_case_holds_whatever_clients_do(
        penstock, upstream, tmp_path):
    behaviour = Stubborn()
    ports = {"gateway": free_port(), "relay": free_port()}
    config = CONFIG.format(folder=tmp_path, **ports,
                           server=upstream(behaviour).server)
    file = tmp_path / "tested.conf"
    file.write_text(config)
    worst = worst_case(file)
    # What no client of these listeners can use.
    here = worst["in all"] - sum(
        worst[what] for what in ("program", "admin listener", "names"))
    daemon = penstock(config)
    wait_for(lambda: f"memory: {worst['in all']} MiB" in daemon.said())
    start = daemon.resident_bytes()
    for listener, parts_of in ATTACKS:
        attack(daemon, ports[listener], parts_of)
        behaviour.let_go()
        wait_for(lambda: daemon.metric("penstock_sessions") == 0, 30)
    grown = (daemon.resident_bytes("VmHWM") - start) / MIB
    print(f"memory: grown by {grown:.1f} MiB, by {here} in the worst case")
    assert grown < here
    # They have used up what there was for them.
    assert daemon.count("failures", reason="memory") > 0


def test_blocks_that_are_held_are_told(penstock, tmp_path):
    """In use or not; what nobody uses is kept, up to half of `buffers`."""
    port = free_port()
    daemon = penstock(CONFIG.format(
        folder=tmp_path, gateway=port, relay=free_port(),
        server="127.0.0.1:1"))
    assert daemon.metric("penstock_buffer_held_bytes") == 0
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            s = stack.enter_context(
                socket.create_connection(("127.0.0.1", port)))
            s.sendall(largest_head(60000))
        wait_for(lambda: daemon.metric("penstock_buffer_bytes") >= 50 * 60000)
        held = daemon.metric("penstock_buffer_held_bytes")
        # But for the first piece of each worker.
        assert 48 * 60000 <= held <= 16 * MIB
    daemon.wait_metric("penstock_buffer_bytes", 0)
    assert 0 < daemon.metric("penstock_buffer_held_bytes") <= 4 * MIB


LARGE = "[listener a]\nmode = gateway\nupstream = up\nlimits = n1\n" \
    "bind = 127.0.0.1:{port}\n" + "".join(
        f"[limit n{i}]\nconcurrency = 10\n" for i in range(1000)) + \
    "[upstream up]\n" + "".join(
        f"server = 127.0.{i // 200 + 1}.{i % 200 + 1}:1\n"
        for i in range(2000))


def scraper(stack, path, page="/metrics"):
    """One who asks for a page and doesn't read it.

    By a unix socket, for which the kernel keeps little.
    """
    s = stack.enter_context(socket.socket(socket.AF_UNIX))
    s.settimeout(20)
    s.connect(path)
    s.sendall(f"GET {page} HTTP/1.0\r\n\r\n".encode())
    return s


@pytest.mark.parametrize("page, of_server, of_limit", [
    ("/metrics", "penstock_server_up{", "penstock_limit_permits{"),
    ("/status.json?config=1", '"up":true', '"permits":10')])
def test_a_large_page_is_served_beside_those_who_do_not_read(
        penstock, tmp_path, short_path, page, of_server, of_limit):
    config = LARGE.format(port=free_port())
    file = tmp_path / "tested.conf"
    file.write_text(f"{config}[admin]\nbind = 127.0.0.1:{free_port()}\n")
    at_most = worst_case(file)["admin listener"]
    port = free_port()
    daemon = penstock(f"{config}[admin]\nbind = 127.0.0.1:{port}\n"
                      f"bind = unix:{short_path}/a\n", admin_port=port)
    start = daemon.resident_bytes()
    with contextlib.ExitStack() as stack:
        slow = [scraper(stack, f"{short_path}/a", page) for _ in range(7)]
        # The first byte of its answer: the rest is kept for it.
        for s in slow:
            s.recv(1, socket.MSG_PEEK)
        status, text = daemon.admin(page)
        assert status == 200
        assert text.count(of_server) == 2000
        assert text.count(of_limit) == 1000
        grown = (daemon.resident_bytes("VmHWM") - start) / MIB
        print(f"admin: {len(text)} bytes a page, grown by {grown:.1f} MiB, "
              f"by {at_most} in the worst case")
        assert 5 * len(text) / MIB < grown < at_most
        # None was cut.
        for s in slow:
            head, body = s.makefile("rb").read().split(b"\r\n\r\n", 1)
            assert b"\r\nContent-Length: %d\r\n" % len(body) in head
            assert len(body) > len(text) * 0.9


def test_the_admin_listener_takes_what_its_page_does(write_config, tmp_path):
    small = tmp_path / "small.conf"
    small.write_text(f"[listener a]\nmode = forward\n"
                     f"bind = 127.0.0.1:{free_port()}\n"
                     f"[admin]\nbind = 127.0.0.1:{free_port()}\n")
    assert 1 < worst_case(small)["admin listener"] <= 16
    assert worst_case(write_config(""))["admin listener"] == 0


def test_what_was_assumed_is_told(write_config):
    """The descriptors are those of whoever calls, not of the service."""
    file = write_config("[penstock]\nworkers = 3")
    for descriptors, sessions in ((2000, 1200), (3000, 1800)):
        r = subprocess.run(
            [PROGRAM, "-t", "-c", file], text=True, check=True,
            capture_output=True, preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_NOFILE, (descriptors, descriptors)))
        assert (f"with 3 workers and {descriptors} descriptors, so "
                f"max_connections = {sessions}:") in r.stdout


def test_what_is_asked_for_is_in_the_worst_case(write_config):
    """Each bound that is raised raises it, and the rows add up."""
    def rows(config):
        return worst_case(write_config(config))

    base = rows("")
    parts = sum(base.values()) - base["in all"]
    assert parts - len(base) < base["in all"] <= parts
    for what, more in (
            ("clients", "[penstock]\nmax_connections = 100000"),
            ("exchanges", "[penstock]\nmax_connections = 100000"),
            ("bytes that wait", "[penstock]\nbuffers = 1g"),
            ("workers", "[penstock]\nworkers = 64"),
            ("names", "[penstock]\nworkers = 64"),
            ("limits", "[limit l]\nkey = client_address\nrate = 1/s\n"
             "keys = 1000000"),
            ("limits", "[penstock]\nworkers = 64\n" + "".join(
                f"[limit n{i}]\nconcurrency = 1\n" for i in range(100)))):
        raised = rows(more)
        assert raised[what] > base[what] + 1, what
        assert raised["in all"] >= base["in all"] + raised[what] - \
            base[what] - 1


@pytest.fixture
def write_config(tmp_path):
    def write(text):
        file = tmp_path / "file.conf"
        file.write_text(text + "\n[admin]\nbind = off\n[listener a]\n"
                        f"mode = forward\nbind = 127.0.0.1:{free_port()}\n")
        return file
    return write
