# SPDX-License-Identifier: BSD-2-Clause
"""What the benchmarks share: an origin, proxies in front of it, clients.

The proxy under test has a core of its own; origin and clients have another.
All of them are on 127.0.0.1.  The helper programs are built by `make check`;
prepare() does it where that was not run yet.
"""

import contextlib
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import typing

sys.dont_write_bytecode = True
TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "e2e"))

from penstock import PROGRAM, Daemon, enter_network  # noqa: E402
from penstock import free_port, wait_for  # noqa: E402

HELPERS = pathlib.Path(PROGRAM).resolve().parent / "tests" / "bench"
BODY = 1024
# What a server of the benchmark may take to end, before it is made to.
LAST_WORDS = 10


def helper(name):
    return str(HELPERS / name)


# As many as may be had.
DESCRIPTORS = resource.getrlimit(resource.RLIMIT_NOFILE)[1]


CONGESTION = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control")


def leave_pacing():
    """Have a network of its own, where TCP doesn't pace what it sends.

    Where a machine's TCP uses bbr, the kernel sets a timer for every 64 KiB,
    on 127.0.0.1 as well.  That is three quarters of what a bulk flow costs
    then, and falls to whoever has the core.  Reno may be chosen anywhere.
    """
    try:
        enter_network()
        CONGESTION.write_text("reno")
    except OSError as why:
        print(f"TCP is the machine's, {congestion()}: {why}", file=sys.stderr)


def congestion():
    """What TCP does about congestion here."""
    return CONGESTION.read_text().strip()


def prepare(names=("clients", "openloop", "origin", "relay")):
    """Before anything is started: a network, descriptors, helper programs.

    These are made if the folder of the program is a build; and that is made
    where there is none yet.
    """
    top = HELPERS.parents[1]
    if top == TOP / "build" and not (top / "Makefile").exists():
        subprocess.run([TOP / "scripts" / "run", "-V"], check=True,
                       stdout=sys.stderr)
    leave_pacing()
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
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
    """What to run a command with: a core, or several as "0,1", or None."""
    return [] if core is None else ["taskset", "-c", str(core)]


@contextlib.contextmanager
def running(command, port, core):
    """A server that runs pinned to a core, once it listens on the port."""
    process = subprocess.Popen([*pinned(core), *command],
                               stdin=subprocess.DEVNULL)
    process.port = port

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
            process.wait(LAST_WORDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def origin(body=BODY, **options):
    """An upstream, with those options of origin.c: its port.

    True stands for the word alone, and what is false is left out.
    """
    port = free_port()
    words = [name if value is True else f"{name}={value}"
             for name, value in options.items() if value]
    with running([helper("origin"), str(port), str(body), *words], port,
                 OTHER_CORE):
        yield port


CONFIG = """
[penstock]
workers = 1
io_uring = {io_uring}
[log]
access = off
[listener web]
bind = 127.0.0.1:{port}
"""
GATEWAY = """
mode = gateway
upstream = origin
[upstream origin]
server = 127.0.0.1:{origin}
pool_max = 256
"""
MODES = {
    "gateway": GATEWAY,
    "gated": GATEWAY + """
limits = gate
[limit gate]
concurrency = 8
queue = 100
""",
    "forward": """
mode = forward
access = all
pool_max = 256
[access all]
allow = loopback
allow_destination = loopback
""",
}


@contextlib.contextmanager
def penstock_with(folder, config, port, prefix=(), core=PROXY_CORE):
    """The program with that configuration: its Daemon, with its port."""
    daemon = Daemon(folder, config,
                    prefix=[*pinned(core), *prefix]).start()
    daemon.port = port
    try:
        yield daemon
    finally:
        daemon.stop()


def penstock(folder, origin_port, prefix=(), mode="gateway",
             io_uring="auto"):
    """The program as one of MODES."""
    port = free_port()
    config = (CONFIG + MODES[mode]).format(port=port, origin=origin_port,
                                           io_uring=io_uring)
    return penstock_with(folder, config, port, prefix)


class Answers(typing.NamedTuple):
    """What clients say after their requests; times in microseconds."""

    good: int
    failed: int
    seconds: float
    p50: float
    p99: float


class Arrivals(typing.NamedTuple):
    """What came of requests that came by a clock; times in microseconds.

    openloop.c says which is which.
    """

    asked: int
    offered: int
    served: int
    refused: int
    failed: int
    done: int
    p50: float
    p99: float


def open_loop(port, rate, warm_up, seconds, connections=2000, options=()):
    """So many requests a second, for so long; their Arrivals."""
    done = subprocess.run(
        [*pinned(OTHER_CORE), helper("openloop"), *options,
         *map(str, (port, connections, rate, warm_up, seconds))],
        stdout=subprocess.PIPE, text=True, check=True,
        timeout=warm_up + seconds + LAST_WORDS)
    *counts, p50, p99 = done.stdout.split()
    return Arrivals(*map(int, counts), float(p50), float(p99))


class Clients:
    """Clients of a port; options are those of clients.c."""

    def __init__(self, port, count, in_flight=None, core=OTHER_CORE,
                 options=()):
        self.process = subprocess.Popen(
            [*pinned(core), helper("clients"), *options, str(port),
             str(count), str(in_flight or count)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == f"open {count}\n"

    def ask(self, requests):
        """Make so many requests, none of which may fail; the Answers."""
        answers = self.ask_any(requests)
        assert (answers.good, answers.failed) == (requests, 0), answers
        return answers

    def ask_any(self, requests):
        """The same, whatever fails."""
        self.begin(requests)
        line = self.process.stdout.readline()
        assert line, "clients have ended"
        good, failed, *times = line.split()
        return Answers(int(good), int(failed), *map(float, times))

    def begin(self, requests):
        """Have them ask while something else is done."""
        self.process.stdin.write(f"{requests}\n")
        self.process.stdin.flush()

    def abandon(self):
        """End them, whatever they are waiting for."""
        self.process.kill()
        self.process.communicate()

    def close(self):
        self.process.stdin.close()
        self.process.wait(LAST_WORDS)
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
        else:
            self.abandon()


def family(pid):
    """A process and its descendants."""
    pids = [pid]
    for p in pids:
        for task in pathlib.Path(f"/proc/{p}/task").glob("*/children"):
            pids += map(int, task.read_text().split())
    return pids


def cpu_seconds(pid):
    """On the processor so far, all threads and children together.

    The clock of a process is what schedstat tells of its threads, with those
    that have ended: tinyproxy has one for each connection.
    """
    return sum(time.clock_gettime(~p << 3 | 2) for p in family(pid))


def anonymous_bytes(pid):
    """A process's own memory, without what is mapped from files."""
    return sum(int(re.search(
        r"RssAnon:\s+(\d+) kB",
        pathlib.Path(f"/proc/{p}/status").read_text())[1]) * 1024
        for p in family(pid))


def times_preempted(pid):
    """How often a thread of it had to make room on its core."""
    return sum(int(re.search(r"nonvoluntary_ctxt_switches:\s+(\d+)",
                             (task / "status").read_text())[1])
               for task in pathlib.Path(f"/proc/{pid}/task").iterdir())
