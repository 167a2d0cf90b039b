# SPDX-License-Identifier: BSD-2-Clause
"""Ten thousand kept-alive clients, and what each of them costs."""

import os
import pathlib
import re
import resource
import socket
import subprocess

import pytest

from penstock import PROGRAM, free_port, wait_for

HELPERS = pathlib.Path(PROGRAM).resolve().parent / "tests/bench"
CLIENTS = 10000
IN_FLIGHT = 200
# AddressSanitizer keeps what was freed, and shadows everything.
MEASURES_MEMORY = b"__asan_init" not in pathlib.Path(PROGRAM).read_bytes()
MOST_BYTES_EACH = 800


@pytest.fixture(autouse=True)
def many_descriptors():
    """Clients and daemon need one for each client; they inherit the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CLIENTS + 1000
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.fail(f"the limit of descriptors is {hard}, {wanted} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def origin():
    """An upstream that answers at once: its port."""
    port = free_port()
    process = subprocess.Popen([HELPERS / "origin", str(port), "1024"],
                               stdin=subprocess.DEVNULL)

    def is_up():
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0
    wait_for(is_up)
    yield port
    process.kill()
    process.wait()


@pytest.fixture
def clients():
    """clients(port): CLIENTS connections; see tests/bench/clients.c."""
    started = []

    def start(port):
        started.append(subprocess.Popen(
            [HELPERS / "clients", str(port), str(CLIENTS), str(IN_FLIGHT)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout.readline() == f"open {CLIENTS}\n"
        return started[-1]
    yield start
    for process in started:
        process.kill()
        process.communicate()


def one_request_each(process):
    """Let every client ask once; how many were answered, how many not."""
    process.stdin.write(f"{CLIENTS}\n")
    process.stdin.flush()
    good, failed, *_ = process.stdout.readline().split()
    return int(good), int(failed)


def anonymous_bytes(daemon):
    """The daemon's own memory, without what is mapped from files."""
    text = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+) kB", text)[1]) * 1024


def test_ten_thousand_clients_ask_and_ask_again(gateway, origin, clients):
    d = gateway(origin, "timeout_request_head = 60s\n"
                "timeout_keepalive = 60s",
                rest="[penstock]\nworkers = 2\n[log]\naccess = off")
    before = anonymous_bytes(d)

    crowd = clients(d.port)
    assert one_request_each(crowd) == (CLIENTS, 0)
    assert one_request_each(crowd) == (CLIENTS, 0)

    assert d.metric("penstock_sessions") == CLIENTS
    assert d.metric("penstock_requests_total", code="200") == 2 * CLIENTS
    d.wait_metric("penstock_pool_connections", 0)
    assert d.metric("penstock_buffer_bytes") == 0
    each = (anonymous_bytes(d) - before) / CLIENTS
    report(f"{CLIENTS} idle kept-alive clients: {each:.0f} bytes of the "
           f"daemon's memory each")
    assert each < MOST_BYTES_EACH or not MEASURES_MEMORY


def report(line):
    """Print it, and leave it with the build's other logs."""
    print(line)
    logs = pathlib.Path(PROGRAM).resolve().parent / "logs"
    os.makedirs(logs, exist_ok=True)
    (logs / "clients.txt").write_text(line + "\n")
