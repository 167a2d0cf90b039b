# SPDX-License-Identifier: BSD-2-Clause
"""What the benchmarks share: an origin, proxies in front of it, clients.

The proxy under test has a core of its own; origin and clients have another.
All of them are on 127.0.0.1.  The helper programs are built by `make check`;
build_helpers() does it where that was not run yet.
"""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys

sys.dont_write_bytecode = True
TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "e2e"))

from penstock import PROGRAM, Daemon, free_port, wait_for  # noqa: E402

HELPERS = pathlib.Path(PROGRAM).resolve().parent / "tests" / "bench"
BODY = 1024


def helper(name):
    return str(HELPERS / name)


def build_helpers():
    """Make the helper programs, if the folder of the program is a build."""
    top = HELPERS.parents[1]
    names = ["clients", "origin", "relay"]
    if (top / "Makefile").exists():
        subprocess.run(["make", "-s", "-C", str(top), "penstock",
                        *(f"tests/bench/{n}" for n in names)],
                       check=True, stdout=sys.stderr)
    missing = [n for n in names if not os.access(helper(n), os.X_OK)]
    if missing:
        sys.exit(f"not built in {HELPERS}: {' '.join(missing)}")


def cores():
    """The core of the proxy, and that of all others; None if there is one."""
    have = sorted(os.sched_getaffinity(0))
    return (have[0], have[1]) if len(have) > 1 else (None, None)


PROXY_CORE, OTHER_CORE = cores()


def pinned(core):
    return [] if core is None else ["taskset", "-c", str(core)]


@contextlib.contextmanager
def running(command, port, core):
    """A server that runs pinned to a core, once it listens on the port."""
    process = subprocess.Popen([*pinned(core), *command],
                               stdin=subprocess.DEVNULL)

    def is_up():
        assert process.poll() is None, f"{command[0]} has ended"
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0
    try:
        wait_for(is_up)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def origin(body=BODY):
    """The upstream of all: its port."""
    port = free_port()
    with running([helper("origin"), str(port), str(body)], port, OTHER_CORE):
        yield port


CONFIG = """
[penstock]
workers = 1
[log]
access = off
[listener web]
mode = gateway
bind = 127.0.0.1:{port}
upstream = origin
[upstream origin]
server = 127.0.0.1:{origin}
pool_max = 256
"""


@contextlib.contextmanager
def penstock(folder, origin_port, prefix=()):
    """The program as a gateway: its Daemon, with its port."""
    port = free_port()
    daemon = Daemon(folder, CONFIG.format(port=port, origin=origin_port),
                    prefix=[*pinned(PROXY_CORE), *prefix]).start()
    daemon.port = port
    try:
        yield daemon
    finally:
        daemon.stop()


class Clients:
    """Kept-alive clients of a port; see clients.c."""

    def __init__(self, port, count, in_flight=None, core=OTHER_CORE):
        self.process = subprocess.Popen(
            [*pinned(core), helper("clients"), str(port), str(count),
             str(in_flight or count)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == f"open {count}\n"

    def ask(self, requests):
        """Make so many requests, none of which may fail; the seconds."""
        good, failed, seconds = self.ask_any(requests)
        assert (good, failed) == (requests, 0), (good, failed)
        return seconds

    def ask_any(self, requests):
        """The same; how many were good, how many failed, seconds."""
        self.process.stdin.write(f"{requests}\n")
        self.process.stdin.flush()
        good, failed, seconds = self.process.stdout.readline().split()
        return int(good), int(failed), float(seconds)

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def family(pid):
    """A process and its descendants."""
    pids = [pid]
    for p in pids:
        for task in pathlib.Path(f"/proc/{p}/task").glob("*/children"):
            pids += map(int, task.read_text().split())
    return pids


def cpu_seconds(pid):
    """On the processor so far, all threads and children together."""
    return sum(int(stat.read_text().split()[0]) for p in family(pid)
               for stat in pathlib.Path(f"/proc/{p}/task").glob("*/schedstat")
               ) / 1e9
