# SPDX-License-Identifier: BSD-2-Clause
"""Who of those who wait is next, and by what clients are told apart."""

import base64
import contextlib
import resource
import threading

import pytest

from penstock import Client, wait_for


class InTurn:
    """A behaviour that answers once let(), and remembers who came when."""

    def __init__(self):
        self.targets = []
        self.lock = threading.Lock()
        self.permits = threading.Semaphore(0)

    def __call__(self, wire):
        while (request := wire.read_message()) is not None:
            with self.lock:
                self.targets.append(request.target)
            assert self.permits.acquire(timeout=20)
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    def let(self, n):
        for _ in range(n):
            self.permits.release()


def limited(gateway, server, lines, route=""):
    """A gateway in front of the server with a limit of one at a time."""
    return gateway(server.port, up="limits = l", rest=f"""
{route}
[limit l]
concurrency = 1
{lines}
""")


def basic(user):
    text = base64.b64encode(f"{user}:secret".encode()).decode()
    return f"Authorization: Basic {text}"


# What makes client n be another one, as it is configured and asked for.
TOLD_APART = {
    "client_address": lambda n: {"source": f"127.0.0.{n + 2}"},
    "user": lambda n: {"fields": [basic(f"user{n}")]},
    "host": lambda n: {"host": f"Host{n}.example:80"},
    "header:X-Tenant": lambda n: {"fields": [f"x-tenant: {n}"]},
}


def ask_as(stack, daemon, target, source=None, **how):
    c = stack.enter_context(Client(daemon.port, source=source))
    c.ask(target, **how)
    return c


@pytest.mark.parametrize("key", TOLD_APART)
def test_the_first_of_a_client_waits_for_no_second_of_another(
        gateway, upstream, key):
    server = upstream(InTurn())
    daemon = limited(gateway, server, f"""
        queue = 50
        queue_timeout = 20s
        queue_fair_by = {key}
        """)
    told = TOLD_APART[key]
    with contextlib.ExitStack() as stack:
        waiting = 0
        clients = []
        for who, target in [(0, f"/a{i}") for i in range(8)] + \
                [(1, "/b"), (2, "/c")]:
            clients.append(ask_as(stack, daemon, target, **told(who)))
            if waiting == 0:
                daemon.wait_metric("penstock_limit_in_use", 1)
            daemon.wait_metric("penstock_limit_waiting", waiting)
            waiting += 1
        server.behaviour.let(len(clients))
        for c in clients:
            assert c.read_message().status == 200
    order = server.behaviour.targets
    assert max(order.index("/b"), order.index("/c")) <= 3
    assert len(set(order)) == len(clients)


@pytest.mark.parametrize("key", TOLD_APART)
def test_each_key_has_a_limit_of_its_own(gateway, upstream, key):
    server = upstream(InTurn())
    daemon = limited(gateway, server, f"key = {key}")
    told = TOLD_APART[key]
    with contextlib.ExitStack() as stack:
        first = [ask_as(stack, daemon, "/", **told(n)) for n in range(3)]
        daemon.wait_metric("penstock_limit_in_use", 3)
        for n in range(3):
            again = ask_as(stack, daemon, "/", **told(n))
            again.read_message().is_failure(503, "queue_full")
        server.behaviour.let(3)
        for c in first:
            assert c.read_message().status == 200
    daemon.wait_metric("penstock_limit_in_use", 0)


@pytest.fixture
def many_descriptors():
    """Of 1,000 clients, for the daemon as well."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_ten_clients_wait_for_one_round_beside_one_with_a_thousand(
        many_descriptors, gateway, upstream):
    server = upstream(InTurn())
    daemon = limited(gateway, server, """
        queue = 2000
        queue_timeout = 60s
        queue_fair_by = client_address
        """)
    targets = server.behaviour.targets
    with contextlib.ExitStack() as stack:
        noisy = [ask_as(stack, daemon, "/noisy", "127.0.0.2")
                 for _ in range(1000)]
        daemon.wait_metric("penstock_limit_waiting", 999)
        few = [ask_as(stack, daemon, f"/{n}", f"127.0.0.{n}")
               for n in range(3, 13)]
        daemon.wait_metric("penstock_limit_waiting", 1009)
        # The one that is served, and then a round, of eleven clients.
        server.behaviour.let(12)
        for c in few:
            assert c.read_message().status == 200
        assert {f"/{n}" for n in range(3, 13)} <= set(targets[:12])
        wait_for(lambda: len(targets) == 13)
        few[0].ask("/again")
        daemon.wait_metric("penstock_limit_waiting", 998)
        server.behaviour.let(len(noisy) - 1)
        assert few[0].read_message().status == 200
        assert targets.index("/again") <= 14
        for c in noisy:
            assert c.read_message().status == 200


def test_who_has_no_key_shares_one(gateway, upstream):
    server = upstream(InTurn())
    daemon = limited(gateway, server, "key = header:X-Tenant")
    with Client(daemon.port) as a, Client(daemon.port) as b:
        a.ask("/")
        daemon.wait_metric("penstock_limit_in_use", 1)
        b.request("/").is_failure(503, "queue_full")
        server.behaviour.let(1)
        assert a.read_message().status == 200


def test_a_full_queue_makes_room_for_one_of_whom_fewer_wait(
        gateway, upstream):
    server = upstream(InTurn())
    daemon = limited(gateway, server, """
        queue = 4
        queue_timeout = 20s
        queue_fair_by = header:X-Tenant
        """)
    with contextlib.ExitStack() as stack:
        noisy = []
        for i in range(5):
            noisy.append(ask_as(stack, daemon, f"/a{i}",
                                fields=["X-Tenant: a"]))
            daemon.wait_metric("penstock_limit_in_use", 1)
            daemon.wait_metric("penstock_limit_waiting", i)
        quiet = ask_as(stack, daemon, "/b", fields=["X-Tenant: b"])
        out = noisy.pop()
        out.read_message().is_failure(503, "queue_full")
        daemon.wait_metric("penstock_limit_waiting", 4)
        out.request("/", fields=["X-Tenant: a"]).is_failure(
            503, "queue_full")
        server.behaviour.let(5)
        for c in [*noisy, quiet]:
            assert c.read_message().status == 200
    assert server.behaviour.targets.index("/b") <= 2
    wait_for(lambda: daemon.metric("penstock_limit_refused_total",
                                   limit="l", reason="queue_full") == 2)


def test_high_goes_first_but_for_one_turn_in_eight(gateway, upstream):
    server = upstream(InTurn())
    daemon = limited(gateway, server, """
        queue = 50
        queue_timeout = 20s
        """, route="""
        [route r]
        listener = gateway
        upstream = up
        path = /r
        priority = high
        """)
    with contextlib.ExitStack() as stack:
        clients = []
        for i, target in enumerate(["/0", "/n1", "/n2", *(
                f"/r{i}" for i in range(10))]):
            clients.append(ask_as(stack, daemon, target))
            daemon.wait_metric("penstock_limit_in_use", 1)
            daemon.wait_metric("penstock_limit_waiting", i)
        server.behaviour.let(len(clients))
        for c in clients:
            assert c.read_message().status == 200
    kinds = "".join(target[1] for target in server.behaviour.targets)
    assert kinds == "0" + "rrrrrrr" + "n" + "rrr" + "n"
