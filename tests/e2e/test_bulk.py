# SPDX-License-Identifier: BSD-2-Clause
"""A gibibyte each way, in little memory, and no faster than it is taken."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from penstock import PROGRAM, free_port, wait_for
from servers import Book

HELPER = pathlib.Path(PROGRAM).resolve().parent / "tests/bench/source_sink"
MIB = 1 << 20
GIB = 1 << 30
MOST_RESIDENT = 30 * MIB

HIGH = 256 * 1024
PIPE = 512 * 1024

CONFIG = """
    [penstock]
    workers = 2
    [listener gateway]
    mode = gateway
    bind = 127.0.0.1:{gateway}
    upstream = origin
    body_size = 0
    high_watermark = 256k
    splice = {splice}
    low_watermark = 64k
    [listener connect]
    mode = forward
    bind = 127.0.0.1:{connect}
    access = tunnels
    high_watermark = 256k
    splice = {splice}
    low_watermark = 64k
    [access tunnels]
    allow = loopback
    allow_destination = loopback
    connect_ports = {origin}
    [listener tcp]
    mode = tcp
    bind = 127.0.0.1:{tcp}
    upstream = origin
    high_watermark = 256k
    splice = {splice}
    low_watermark = 64k
    [upstream origin]
    server = 127.0.0.1:{origin}
    pool_idle = 200ms
    """

MODES = ("gateway", "connect", "tcp")


class Memory:
    """Samples a process's resident memory until it is asked for the peak."""

    def __init__(self, pid):
        self.file = pathlib.Path(f"/proc/{pid}/status")
        self.most = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _read(self, what):
        text = self.file.read_text()
        return int(re.search(what + r":\s+(\d+) kB", text)[1]) * 1024

    def _sample(self):
        while not self._over.wait(0.05):
            self.most = max(self.most, self._read("VmRSS"))

    def peak(self):
        """The most that was seen; the kernel's own high-water mark too."""
        self._over.set()
        self._thread.join()
        return max(self.most, self._read("VmHWM"))


class Bulk:
    """An origin, the daemon in front of it, and transfers through it."""

    def __init__(self, penstock, folder, splice="auto"):
        self.folder = folder
        self.book = Book(folder)
        self.ports = {mode: free_port() for mode in (*MODES, "origin")}
        self.daemon = penstock(self.book.lines + CONFIG.format(
            splice=splice, **self.ports))
        self.origin = subprocess.Popen(
            [HELPER, "serve", str(self.ports["origin"]), folder],
            stdin=subprocess.DEVNULL, start_new_session=True)
        wait_for(self._is_up)
        self.memory = Memory(self.daemon.pid)

    def _is_up(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.ports["origin"])) == 0

    def start(self, mode, method, size, own_rate=0, server_rate=0):
        """Begin a transfer; its process, and its name."""
        name = f"{mode}-{method}"
        via = [f"127.0.0.1:{self.ports['origin']}"] * (mode == "connect")
        return name, subprocess.Popen(
            [HELPER, method, str(self.ports[mode]), str(size),
             str(own_rate), str(server_rate), name, self.folder, *via],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)

    def moved(self, name, end):
        """Bytes that this end, server or client, has moved so far."""
        file = self.folder / f"{name}.{end}"
        return int(file.read_text() or 0) if file.exists() else 0

    def logged(self):
        """Bytes in and out of the one exchange, by the log."""
        entry = self.book.wait(1)[0]
        return entry["received"], entry["sent"]

    def received(self, side):
        return self.daemon.metric("penstock_received_bytes_total", side=side)

    def spliced(self):
        return self.daemon.metric("penstock_spliced_bytes_total")

    def stop(self):
        """End the origin and its children, one for each connection."""
        os.killpg(self.origin.pid, signal.SIGTERM)
        self.origin.wait()


@pytest.fixture
def bulk(penstock, tmp_path):
    made = []

    def start(**more):
        made.append(Bulk(penstock, tmp_path, **more))
        return made[-1]
    yield start
    for b in made:
        b.stop()


@pytest.mark.parametrize("method", ("get", "put"))
@pytest.mark.parametrize("mode", MODES)
def test_a_gibibyte_arrives_byte_exact_in_30_mib(bulk, mode, method):
    b = bulk()
    began = time.monotonic()
    name, process = b.start(mode, method, GIB)
    said, _ = process.communicate(timeout=120)
    seconds = time.monotonic() - began
    peak = b.memory.peak()
    print(f"{name}: {said.strip()}; {GIB / MIB / seconds:.0f} MiB/s, "
          f"{peak / MIB:.1f} MiB resident at most")
    assert process.returncode == 0, said
    assert peak < MOST_RESIDENT
    assert b.spliced() > GIB / 2
    check_log(b, mode, method, GIB)


@pytest.mark.parametrize("method", ("get", "put"))
@pytest.mark.parametrize("mode", MODES)
def test_without_splice_it_is_the_same(bulk, mode, method):
    b = bulk(splice="off")
    _, process = b.start(mode, method, 64 * MIB)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert b.memory.peak() < MOST_RESIDENT
    assert b.spliced() == 0
    check_log(b, mode, method, 64 * MIB)


def check_log(b, mode, method, size):
    """To the byte: of HTTP the bodies count, of a tunnel all that passed."""
    into, out = b.logged()
    if mode == "gateway":
        assert (into if method == "put" else out) == size
    else:
        assert out == b.received("upstream")
    if mode == "tcp":
        assert into == b.received("client")


def most_in_kernel():
    """What two connections of the daemon may hold in their four buffers.

    A receiver's buffer counts what a packet takes, so this is generous.
    """
    def largest(name):
        text = pathlib.Path(f"/proc/sys/net/ipv4/{name}").read_text()
        return int(text.split()[2])
    return 2 * (largest("tcp_rmem") + largest("tcp_wmem"))


def is_held_back(b, transfers):
    """Has every flow of bytes come to the wait for its slow reader?"""
    paused = [b.daemon.metric("penstock_flows_paused", side=side)
              for side in ("client", "upstream")]
    return paused == [len(transfers) / 2] * 2


def test_a_slow_reader_holds_its_sender_back(bulk):
    """All ways at once, at 1 MiB/s each, for 10 s."""
    b = bulk()
    transfers = [
        b.start(mode, method, GIB, **{
            "own_rate" if method == "get" else "server_rate": MIB})
        for mode in MODES for method in ("get", "put")]
    try:
        wait_for(lambda: is_held_back(b, transfers),
                 what=lambda: f"paused: {b.daemon.metrics_text()}")
        end = time.monotonic() + 10
        while time.monotonic() < end:
            check_bounds(b, transfers)
            time.sleep(0.5)
        wait_for(lambda: is_held_back(b, transfers))
    finally:
        for _, process in transfers:
            process.kill()
            process.communicate()
    assert b.memory.peak() < MOST_RESIDENT


def check_bounds(b, transfers):
    # What is queued is below the mark when more is read, so a read of what
    # was free below it is all that can come on top; blocks have headers.
    queued = b.daemon.metric("penstock_buffer_bytes")
    assert queued <= len(transfers) * (HIGH + 64 * 1024)
    for name, process in transfers:
        assert process.poll() is None, process.stdout.read()
        slow, fast = (("client", "server") if name.endswith("get")
                      else ("server", "client"))
        # In this order: the difference is not made larger by the time between.
        sent, taken = b.moved(name, fast), b.moved(name, slow)
        assert sent - taken <= most_in_kernel() + PIPE, (name, sent, taken)
