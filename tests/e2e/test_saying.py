# SPDX-License-Identifier: BSD-2-Clause
"""What limits say: to clients, to the log, to who looks at the metrics."""

import json
import re
import time

import pytest

from penstock import Client, answering, run_penstock, wait_for
from test_limits import Slow, limited

ITEM = re.compile(r'"([\w-]+)"((?:;\w+=\d+)*)')


def items(message, name):
    """The members of a structured list: {name: {parameter: number}}."""
    found = {}
    for value in message.all(name):
        for member in value.split(","):
            m = ITEM.fullmatch(member.strip())
            assert m, f"{name}: {value}"
            assert m[1] not in found
            found[m[1]] = {k: int(v) for k, v in (
                p.split("=") for p in m[2].split(";")[1:])}
    return found


def logged(daemon, n):
    """The first n lines of the access log, which is on stderr."""
    def lines():
        return [json.loads(line) for line in daemon.said().splitlines()
                if line.startswith("{")]
    wait_for(lambda: len(lines()) >= n)
    return lines()


LOG = "[log]\naccess = stderr\n"


# --- dry run ---

@pytest.mark.parametrize("key", ["none", "client_address"])
def test_a_dry_run_refuses_nothing_and_says_what_it_would(
        gateway, upstream, key):
    server = upstream(Slow())
    daemon = limited(gateway, server, f"""
        key = {key}
        concurrency = 1
        queue = 1
        dry_run = on
        """, rest=LOG)
    clients = [Client(daemon.port) for _ in range(4)]
    for i, c in enumerate(clients):
        c.ask(f"/{i}")
        wait_for(lambda: server.behaviour.now == i + 1)
    assert daemon.metric("penstock_limit_in_use", limit="l") == 2
    assert daemon.metric("penstock_limit_waiting", limit="l") == 0
    server.behaviour.go.set()
    for c in clients:
        assert c.read_message().status == 200
        c.close()
    daemon.wait_metric("penstock_limit_in_use", 0)
    assert daemon.count("limit_would_wait", limit="l") == 1
    assert daemon.count("limit_would_refuse", limit="l",
                        reason="queue_full") == 2
    assert daemon.count("limit_refused") == 0
    for line in logged(daemon, 4):
        said = line.get("would_refuse"), line.get("would_refuse_limit")
        assert said == (("queue_full", "l") if line["target"] in ("/2", "/3")
                        else (None, None))
        assert line["status"] == 200 and "reason" not in line


def test_a_dry_run_counts_tokens_as_if_it_were_none(gateway, upstream):
    server = upstream(answering())
    daemon = limited(gateway, server, """
        rate = 1/h
        burst = 2
        rate_headers = always
        dry_run = on
        """, rest=LOG)
    with Client(daemon.port) as c:
        for _ in range(5):
            m = c.request("/")
            assert m.status == 200 and not m.all("RateLimit")
    daemon.wait_count("limit_would_refuse", 3, limit="l",
                      reason="rate_limited")
    assert [line.get("would_refuse") for line in logged(daemon, 5)] == [
        None, None, *["rate_limited"] * 3]


def test_a_dry_run_of_connections(gateway, upstream):
    server = upstream(answering())
    daemon = limited(gateway, server, "connections = 1\ndry_run = on",
                     "listener", rest=LOG)
    with Client(daemon.port) as a:
        assert a.request("/a").status == 200
        # Now it is sure which of them came first, whoever accepts them.
        with Client(daemon.port) as b:
            for _ in range(2):
                assert b.request("/b").status == 200
    for line in logged(daemon, 3):
        assert line.get("would_refuse") == (
            "connection_limit" if line["target"] == "/b" else None)
    daemon.wait_count("limit_would_refuse", 1, reason="connection_limit")


def test_what_a_live_limit_refuses_is_refused_beside_a_dry_one(
        gateway, upstream):
    server = upstream(answering())
    daemon = gateway(server.port, "limits = dry", up="limits = live", rest="""
        [limit dry]
        rate = 1/h
        burst = 1
        dry_run = on
        [limit live]
        rate = 1/h
        burst = 2
        """ + LOG)
    with Client(daemon.port) as c:
        assert [c.request("/").status for _ in range(3)] == [200, 200, 429]
    # The second would have been refused by the one, the third was by the
    # other.
    names = "limit", "would_refuse_limit"
    assert [[line.get(name) for name in names] for line in
            logged(daemon, 3)] == [[None, None], [None, "dry"], ["live", None]]
    # The upstream's comes first, so the third never came to the other.
    daemon.wait_count("limit_refused", 1, limit="live")
    daemon.wait_count("limit_would_refuse", 1, limit="dry")


# --- RateLimit ---

def test_all_responses_tell_what_is_left(gateway, upstream):
    server = upstream(answering())
    daemon = limited(gateway, server, """
        rate = 2/m
        burst = 3
        rate_headers = always
        """)
    with Client(daemon.port) as c:
        seen = [c.request("/") for _ in range(4)]
    assert [m.status for m in seen] == [200, 200, 200, 429]
    for left, m in zip((2, 1, 0, 0), seen):
        assert items(m, "RateLimit-Policy") == {"l": {"q": 3, "w": 90}}
        state = items(m, "RateLimit")["l"]
        assert state["r"] == left
        assert 25 <= state["t"] <= 30
    assert int(seen[3].get("Retry-After")) >= state["t"]


def test_what_comes_back_at_once_needs_no_time(gateway, upstream):
    server = upstream(answering(think=lambda _: time.sleep(0.05)))
    daemon = limited(gateway, server, """
        rate = 1000/s
        burst = 7
        rate_headers = always
        """)
    with Client(daemon.port) as c:
        m = c.request("/")
    assert items(m, "RateLimit-Policy") == {"l": {"q": 7, "w": 1}}
    assert items(m, "RateLimit") == {"l": {"r": 7}}


@pytest.mark.parametrize("key", ["none", "header:X-Tenant"])
def test_only_refusals_tell_it(gateway, upstream, key):
    server = upstream(answering())
    daemon = limited(gateway, server, f"""
        key = {key}
        rate = 1/h
        burst = 1
        rate_headers = refused
        """)
    with Client(daemon.port) as c:
        m = c.request("/", fields=["X-Tenant: a"])
        assert m.status == 200 and not m.all("RateLimit")
        m = c.request("/", fields=["X-Tenant: a"])
        m.is_failure(429, "rate_limited")
        state = items(m, "RateLimit")["l"]
        assert state["r"] == 0
        assert 3500 <= state["t"] <= int(m.get("Retry-After"))
        assert items(m, "RateLimit-Policy") == {"l": {"q": 1, "w": 3600}}
        other = c.request("/", fields=["X-Tenant: b"])
        assert other.status == (429 if key == "none" else 200)


def test_a_full_queue_tells_the_rates_it_has(gateway, upstream):
    server = upstream(Slow())
    daemon = gateway(server.port, "limits = some none", up="limits = gate",
                     rest="""
        [limit some]
        rate = 1/h
        burst = 9
        rate_headers = refused
        [limit none]
        rate = 1/h
        burst = 9
        [limit gate]
        concurrency = 1
        """)
    with Client(daemon.port) as a, Client(daemon.port) as b:
        a.ask("/")
        daemon.wait_metric("penstock_limit_in_use", 1, limit="gate")
        m = b.request("/")
        m.is_failure(503, "queue_full")
        # Its token came back, and the next is no reason to wait an hour.
        assert items(m, "RateLimit") == {"some": {"r": 8}}
        assert int(m.get("Retry-After")) < 10
        server.behaviour.go.set()
        assert a.read_message().status == 200


def test_several_limits_are_members_of_one_list(gateway, upstream):
    server = upstream(answering(fields=[
        'RateLimit-Policy: "theirs";q=1;w=1', 'RateLimit: "theirs";r=1;t=1']))
    daemon = gateway(server.port, "limits = a b", rest="""
        [limit a]
        rate = 1/h
        burst = 5
        rate_headers = always
        [limit b]
        rate = 1/m
        burst = 7
        rate_headers = always
        """)
    with Client(daemon.port) as c:
        m = c.request("/")
    assert items(m, "RateLimit-Policy") == {
        "theirs": {"q": 1, "w": 1}, "a": {"q": 5, "w": 18000},
        "b": {"q": 7, "w": 420}}
    assert {k: v["r"] for k, v in items(m, "RateLimit").items()} == {
        "theirs": 1, "a": 4, "b": 6}
    assert len(m.all("RateLimit")) == 2


def test_our_own_failures_and_tunnels_tell_it_too(forward, upstream):
    server = upstream(answering())
    daemon = forward("limits = l\naccess = all", """
        [access all]
        allow = all
        allow_destination = all
        connect_ports = all
        [limit l]
        rate = 1/h
        burst = 5
        rate_headers = always
        """)
    with Client(daemon.port) as c:
        m = c.request("http://127.0.0.1:1/")
        assert m.status == 502 and items(m, "RateLimit")["l"]["r"] == 4
    with Client(daemon.port) as c:
        c.send(f"CONNECT {server.server} HTTP/1.1\r\n"
               f"Host: {server.server}\r\n\r\n".encode())
        m = c.read_head()
        assert m.status == 200 and items(m, "RateLimit")["l"]["r"] == 3
        assert c.request("/through").status == 200


# --- peak and self-check ---

@pytest.mark.parametrize("key", ["none", "client_address"])
def test_holders_and_peak(gateway, upstream, key):
    server = upstream(Slow())
    daemon = limited(gateway, server, f"""
        key = {key}
        concurrency = 3
        queue = 9
        queue_timeout = 20s
        """, rest="[penstock]\nworkers = 1")
    clients = [Client(daemon.port) for _ in range(5)]
    for c in clients:
        c.ask("/")
    daemon.wait_metric("penstock_limit_waiting", 2)
    assert daemon.metric("penstock_limit_holders", limit="l") == 3
    server.behaviour.go.set()
    for c in clients:
        assert c.read_message().status == 200
        c.close()
    daemon.wait_metric("penstock_limit_in_use", 0)
    for _ in range(2):
        assert daemon.metric("penstock_limit_in_use_peak", limit="l") == 3
        assert daemon.metric("penstock_limit_holders", limit="l") == 0
        assert daemon.metric("penstock_limit_unaccounted", limit="l") == 0


# --- refusals ---

# What limits refuse for, with what makes the second client be refused.
REASONS = {
    "rate_limited": (429, "rate = 1/h\nburst = 1", "upstream"),
    "queue_full": (503, "concurrency = 1", "upstream"),
    "queue_timeout": (503, "concurrency = 1\nqueue = 1\n"
                      "queue_timeout = 50ms", "upstream"),
    "connection_limit": (503, "connections = 1", "listener"),
}


@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_is_one_word_everywhere(gateway, upstream, reason):
    status, lines, where = REASONS[reason]
    server = upstream(Slow())
    daemon = limited(gateway, server, lines, where, rest=LOG)
    with Client(daemon.port) as a:
        a.ask("/")
        wait_for(lambda: server.behaviour.now == 1)
        with Client(daemon.port) as b:
            b.request("/").is_failure(status, reason)
        server.behaviour.go.set()
        assert a.read_message().status == 200
    assert {(m["status"], m.get("reason"), m.get("limit"))
            for m in logged(daemon, 2)} == {
        (200, None, None), (status, reason, "l")}
    daemon.wait_count("limit_refused", 1, limit="l", reason=reason)
    daemon.wait_count("failures", 1, reason=reason)


@pytest.mark.parametrize("lines, where", [
    ("connections = 1", "listener"),
    ("concurrency = 1", "listener"),
    ("concurrency = 1", "upstream"),
])
def test_too_many_keys_are_one_word_everywhere(
        gateway, upstream, lines, where):
    server = upstream(Slow())
    daemon = limited(gateway, server, f"""
        key = client_address
        keys = 64
        {lines}
        """, where, rest=LOG)
    clients = [Client(daemon.port, source=f"127.0.1.{i + 1}")
               for i in range(100)]
    for c in clients:
        c.ask("/")
    refused = 0

    def all_are_known():
        nonlocal refused
        refused = daemon.count("limit_refused", limit="l")
        return refused + server.behaviour.now == len(clients)

    wait_for(all_are_known)
    server.behaviour.go.set()
    told = [m for m in (c.read_message() for c in clients)
            if m.status != 200]
    for c in clients:
        c.close()
    assert all(m.is_failure(503, "keys_full") for m in told)
    assert refused == len(told) > 0
    assert {(m["status"], m.get("reason"), m.get("limit"))
            for m in logged(daemon, len(clients))} == {
        (200, None, None), (503, "keys_full", "l")}
    daemon.wait_count("limit_refused", refused, limit="l", reason="keys_full")
    daemon.wait_count("failures", refused, reason="keys_full")


def test_a_full_listener_is_one_word_everywhere(gateway, upstream):
    server = upstream(answering())
    daemon = gateway(server.port, "max_connections = 1", rest=LOG)
    with Client(daemon.port) as a:
        assert a.request("/").status == 200
        with Client(daemon.port) as b:
            b.request("/").is_failure(503, "connection_limit")
    assert {(m["status"], m.get("reason"), m.get("limit"))
            for m in logged(daemon, 2)} == {
        (200, None, None), (503, "connection_limit", None)}
    daemon.wait_count("failures", 1, reason="connection_limit")


def test_the_longest_wait_of_all_limits_is_told(gateway, upstream):
    server = upstream(answering())
    daemon = gateway(server.port, "limits = a b c", rest="""
        [limit a]
        rate = 1/s
        burst = 1
        [limit b]
        rate = 1/h
        burst = 1
        [limit c]
        rate = 1/m
        burst = 1
        """)
    with Client(daemon.port) as c:
        assert c.request("/").status == 200
        m = c.request("/")
        m.is_failure(429, "rate_limited")
        assert 3590 <= int(m.get("Retry-After")) <= 3600 * 1.25
        daemon.wait_count("limit_refused", 1, limit="a")


def test_a_token_that_comes_back_is_nothing_to_wait_for(gateway, upstream):
    server = upstream(Slow())
    daemon = limited(gateway, server, """
        rate = 1/h
        burst = 2
        concurrency = 1
        """)
    with Client(daemon.port) as a, Client(daemon.port) as b:
        a.ask("/")
        daemon.wait_metric("penstock_limit_in_use", 1)
        m = b.request("/")
        m.is_failure(503, "queue_full")
        assert int(m.get("Retry-After")) < 10
        server.behaviour.go.set()
        assert a.read_message().status == 200


def test_being_held_counts_as_a_wait(gateway, upstream):
    server = upstream(answering())
    daemon = limited(gateway, server, "rate = 20/s\nburst = 1\nwait = 5s")
    with Client(daemon.port) as c:
        for _ in range(3):
            assert c.request("/").status == 200
    assert daemon.metric("penstock_limit_wait_seconds_count", limit="l") >= 1
    assert daemon.metric("penstock_limit_wait_seconds_sum", limit="l") > 0


# --- keys ---

def test_no_key_is_told_to_anybody(gateway, upstream):
    """Nor is it in the memory of a limit: that has hashes, with a secret."""
    server = upstream(Slow())
    daemon = limited(gateway, server, """
        key = header:X-Tenant
        concurrency = 1
        rate = 1/h
        burst = 2
        rate_headers = always
        """, rest=LOG)
    secret = "tenant-whom-nobody-should-know"
    with Client(daemon.port) as a, Client(daemon.port) as b:
        a.ask("/", fields=[f"X-Tenant: {secret}"])
        daemon.wait_metric("penstock_limit_in_use", 1)
        m = b.request("/", fields=[f"X-Tenant: {secret}"])
        m.is_failure(503, "queue_full")
        assert secret not in repr(m) + daemon.metrics_text()
        server.behaviour.go.set()
        m = a.read_message()
        assert secret not in repr(m)
    logged(daemon, 2)
    assert secret not in daemon.said() + daemon.metrics_text()


# --- what can't be ---

@pytest.mark.parametrize("lines, number, said", [
    ("rate = 1/s\nburst = 0", 6, "burst: 0 is outside 1 to 4294967296"),
    ("queue = 1", 5, "queue: means nothing without concurrency"),
    ("concurrency = 1\nrate_headers = always", 6,
     "rate_headers: means nothing without rate"),
    ("key = user\nconnections = 1", 6, "connections: of a client that has "
     "connected only its address is known"),
])
def test_impossible_limits_are_refused_with_their_line(
        tmp_path, lines, number, said):
    file = tmp_path / "x.conf"
    file.write_text("[listener x]\nmode = forward\nbind = 127.0.0.1:1\n"
                    f"[limit l]\n{lines}\n")
    result = run_penstock("-t", "-c", file)
    assert result.returncode != 0
    assert f"{file}:{number}: " in result.stderr and said in result.stderr
