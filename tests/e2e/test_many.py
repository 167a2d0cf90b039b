# SPDX-License-Identifier: BSD-2-Clause
"""Ten thousand kept-alive clients, and what each of them costs."""

import os
import pathlib
import re
import resource
import socket
import subprocess

import pytest

from penstock import MEASURES_MEMORY, PROGRAM, free_port, wait_for

HELPERS = pathlib.Path(PROGRAM).resolve().parent / "tests/bench"
CLIENTS = 10000
IN_FLIGHT = 200
# More at once than a worker then sees of the others, however they spread.
RUSH = 1000
# By workers: each loop has a table that goes by the number of a descriptor.
MOST_BYTES_EACH = {1: 320, 2: 360}


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
    """clients(port, count, in_flight): see tests/bench/clients.c."""
    started = []

    def start(port, count, in_flight):
        started.append(subprocess.Popen(
            [HELPERS / "clients", str(port), str(count), str(in_flight)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout.readline() == f"open {count}\n"
        return started[-1]
    yield start
    for process in started:
        process.kill()
        process.communicate()


def ask(process, requests):
    """So many requests; how many were answered, how many not."""
    process.stdin.write(f"{requests}\n")
    process.stdin.flush()
    good, failed, *_ = process.stdout.readline().split()
    return int(good), int(failed)


def anonymous_bytes(daemon):
    """The daemon's own memory, without what is mapped from files."""
    text = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+) kB", text)[1]) * 1024


def rush(daemon, clients):
    """What requests in flight need is there, and not an idle client's."""
    few = clients(daemon.port, RUSH, RUSH)
    assert ask(few, RUSH) == (RUSH, 0)
    few.kill()
    few.wait()
    daemon.wait_metric("penstock_sessions", 0)


@pytest.mark.parametrize("workers", MOST_BYTES_EACH)
def test_ten_thousand_clients_ask_and_ask_again(gateway, origin, clients,
                                                workers):
    d = gateway(origin, "timeout_request_head = 60s\n"
                "timeout_keepalive = 60s",
                rest=f"[penstock]\nworkers = {workers}\n[log]\naccess = off")
    started = anonymous_bytes(d)
    rush(d, clients)
    before = anonymous_bytes(d)

    crowd = clients(d.port, CLIENTS, IN_FLIGHT)
    assert ask(crowd, CLIENTS) == (CLIENTS, 0)
    assert ask(crowd, CLIENTS) == (CLIENTS, 0)

    assert d.metric("penstock_sessions") == CLIENTS
    assert d.metric("penstock_requests_total", code="200") == \
        RUSH + 2 * CLIENTS
    d.wait_metric("penstock_pool_connections", 0)
    assert d.metric("penstock_buffer_bytes") == 0
    after = anonymous_bytes(d)
    # Those of the rush had places, which others have taken.
    each = (after - before) / (CLIENTS - RUSH)
    report(workers, f"workers {workers}: {CLIENTS} idle kept-alive clients: "
           f"{each:.0f} bytes of the daemon's memory each, "
           f"{(after - started) / CLIENTS:.0f} with what {RUSH} requests in "
           "flight needed")
    assert each < MOST_BYTES_EACH[workers] or not MEASURES_MEMORY


def report(workers, line):
    """Print it, and leave it with the build's other logs."""
    print(line)
    logs = pathlib.Path(PROGRAM).resolve().parent / "logs"
    os.makedirs(logs, exist_ok=True)
    (logs / f"clients.{workers}.txt").write_text(line + "\n")
