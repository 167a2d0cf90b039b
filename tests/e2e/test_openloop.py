# SPDX-License-Identifier: BSD-2-Clause
"""What the open loop of the benchmarks counts, of an origin that is slow.

Each test knows how long the origin takes at least, and nothing more.
"""

import pathlib
import socket
import subprocess

import pytest

from penstock import PROGRAM, answering, free_port, wait_for

HELPERS = pathlib.Path(PROGRAM).resolve().parent / "tests" / "bench"
FIELDS = "asked offered served refused failed done p50 p99".split()


@pytest.fixture(scope="module", autouse=True)
def built():
    top = HELPERS.parents[1]
    if (top / "Makefile").exists():
        subprocess.run(["make", "-s", "-C", top, "tests/bench/openloop",
                        "tests/bench/origin"], check=True, timeout=300)


@pytest.fixture
def origin():
    """origin(slots, service_usec): its port."""
    running = []

    def start(slots, service_usec):
        port = free_port()
        running.append(subprocess.Popen(
            [HELPERS / "origin", str(port), "10", f"slots={slots}",
             f"service={service_usec}"]))
        wait_for(lambda: listens(port))
        return port
    yield start
    for process in running:
        process.kill()
        process.wait()


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def open_loop(port, connections, rate, seconds, *options):
    """What it says, by name."""
    done = subprocess.run(
        [HELPERS / "openloop", *options, str(port), str(connections),
         str(rate), "0", str(seconds)], text=True, timeout=30,
        stdout=subprocess.PIPE, check=True)
    return dict(zip(FIELDS, map(float, done.stdout.split())))


@pytest.mark.parametrize("connections", [1, 100])
def test_a_request_that_waits_for_a_connection_is_as_late(
        origin, connections):
    # 20 come at intervals of 50 ms, and each takes 100 ms.
    found = open_loop(origin(1, 100_000), connections, 20, 1, "-e")
    assert found["offered"] == found["asked"] == found["served"] == 20
    assert found["done"] < 11
    assert found["p50"] > 550_000 and found["p99"] > 1_000_000


def test_an_origin_does_no_more_than_it_can(origin):
    # Two slots of 50 ms: 40 a second, of 200.
    found = open_loop(origin(2, 50_000), 300, 200, 1, "-e")
    assert found["offered"] == 200 and found["done"] <= 40
    assert found["served"] + found["failed"] == 200
    # Up to 2 s after the end they are waited for.
    assert found["failed"] > 0 and found["served"] > 0


def test_what_is_refused_is_no_failure(upstream):
    server = upstream(answering(503, fields=("Retry-After: 1",)))
    found = open_loop(server.port, 50, 50, 1)
    assert found["offered"] == found["refused"] > 0
    assert found["served"] == found["failed"] == found["done"] == 0


def test_who_hangs_up_has_failed(upstream):
    server = upstream(lambda wire: wire.read_head())
    found = open_loop(server.port, 50, 50, 1)
    assert found["offered"] == found["failed"] > 0


def test_the_same_seed_has_the_same_arrivals(upstream):
    server = upstream(answering())
    counts = [open_loop(server.port, 500, 300, 1, "-s", seed)["offered"]
              for seed in ("7", "7", "8", "9", "10")]
    assert counts[0] == counts[1] and len(set(counts)) > 1
