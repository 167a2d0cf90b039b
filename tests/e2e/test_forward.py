# SPDX-License-Identifier: BSD-2-Clause
"""The forward proxy: absolute-form requests, CONNECT, and who may go where."""

import socket
import threading

import pytest

from penstock import (Client, PRIVATE, PUBLIC, answering, curl, free_port,
                      run_penstock, tidy, wait_for)


def read_and_note(requests):
    return answering(body=b"fine", think=requests.append)


def connect(daemon, authority, early=b""):
    """A client that has sent CONNECT, and what was answered."""
    c = Client(daemon.port)
    c.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n"
           .encode() + early)
    return c, c.read_head()


# --- requests ---

def test_curl_gets_a_page_and_metrics_show_it(forward, nginx):
    daemon = forward()
    page = curl("-x", f"http://127.0.0.1:{daemon.port}",
                f"http://127.0.0.1:{nginx.port}/")
    assert page == b"hello from nginx\n"
    daemon.wait_metric("penstock_requests_total", 1, listener="forward",
                       code="200")


def test_both_sides_are_kept_alive(forward, upstream):
    server = upstream(answering(body=b"fine"))
    daemon = forward()
    with Client(daemon.port) as c:
        for _ in range(5):
            m = c.request(f"http://{server.server}/", host=server.server)
            assert (m.status, m.body) == (200, b"fine")
    assert server.accepted == 1
    daemon.wait_count("pool_dialled", 1)
    daemon.wait_count("pool_reused", 4)
    daemon.wait_metric("penstock_pool_expired_total", 1)


def test_the_destination_is_told_its_own_host_and_an_origin_form(
        forward, upstream):
    requests = []
    server = upstream(read_and_note(requests))
    daemon = forward(rest="[penstock]\nname = gate")
    with Client(daemon.port) as c:
        m = c.request(f"http://{server.server}/a/../b?c=%2e", host="evil",
                      fields=["Proxy-Connection: keep-alive",
                              "X-Forwarded-For: 192.0.2.1"])
    seen = requests[0]
    assert seen.start == "GET /a/../b?c=%2e HTTP/1.1"
    assert seen.all("Host") == [server.server]
    assert seen.fields[0][0] == "Host"
    assert seen.get("Proxy-Connection") is None
    # What a client says of itself is no business of a forward proxy.
    assert seen.all("X-Forwarded-For") == ["192.0.2.1"]
    assert seen.all("Via") == ["1.1 gate"]
    assert m.all("Via") == ["1.1 gate"]


@pytest.mark.parametrize("target, seen", [
    ("http://{}", "GET / HTTP/1.1"),
    ("http://{}?x=1", "GET /?x=1 HTTP/1.1"),
    ("HTTP://{}/X", "GET /X HTTP/1.1"),
])
def test_a_target_without_a_path_gets_one(forward, upstream, target, seen):
    requests = []
    server = upstream(read_and_note(requests))
    daemon = forward()
    with Client(daemon.port) as c:
        assert c.request(target.format(server.server)).status == 200
    assert requests[0].start == seen


BAD_TARGETS = {
    "userinfo": "http://user:pass@{}/",
    "two ats": "http://a@b@{}/",
    "no host": "http:///x",
    "only a port": "http://:80/",
    "port zero": "http://127.0.0.1:0/",
    "port too large": "http://127.0.0.1:65536/",
    "port wraps around": "http://127.0.0.1:4294967376/",
    "port with a sign": "http://127.0.0.1:+80/",
    "hexadecimal port": "http://127.0.0.1:0x50/",
    "open bracket": "http://[::1/",
    "IPv4 in brackets": "http://[127.0.0.1]/",
    "zone": "http://[fe80::1%25lo]/",
    "another scheme": "ftp://{}/",
    "a file": "file:///etc/passwd",
    "fragment": "http://{}/a#b",
    "origin-form": "/x",
    "asterisk": "*",
    "authority-form": "{}",
}


@pytest.mark.parametrize("target", BAD_TARGETS.values(), ids=BAD_TARGETS)
def test_a_bad_target_gets_400_and_the_connection_ends(
        forward, upstream, target):
    server = upstream(answering())
    daemon = forward()
    with Client(daemon.port) as c:
        m = c.request(target.format(server.server), host=server.server)
        assert m.is_failure(400, "bad_request")
        assert m.get("Connection") == "close"
        assert c.at_end()
    assert server.accepted == 0


def test_https_targets_are_not_fetched_in_clear(forward, upstream):
    server = upstream(answering())
    daemon = forward()
    with Client(daemon.port) as c:
        m = c.request(f"https://{server.server}/", host=server.server)
        assert m.status in (400, 501)
    assert server.accepted == 0


@pytest.mark.parametrize("target", [
    "a", "a:", ":443", "a:0", "a:65536", "http://a:443", "u@a:443",
    "[::1:443", "a:443/", "/"])
def test_a_bad_connect_gets_400_and_the_connection_ends(forward, target):
    c, m = connect(forward(), target)
    with c:
        assert m.status == 400
        assert m.get("Connection") == "close"


# --- tunnels ---

def test_curl_reaches_tls_through_connect(forward, nginx):
    daemon = forward()
    page = curl("-k", "-x", f"http://127.0.0.1:{daemon.port}",
                f"https://127.0.0.1:{nginx.tls_port}/")
    assert page == b"hello from nginx\n"
    daemon.wait_count("tunnels", 1)


def test_bytes_that_come_with_connect_are_not_lost(forward, upstream):
    def behave(wire):
        assert wire.read_exactly(5) == b"early"
        wire.send(b"late")
    server = upstream(behave)
    c, m = connect(forward(), server.server, early=b"early")
    with c:
        assert m.status == 200
        assert m.get("Content-Length") is None
        assert m.get("Transfer-Encoding") is None
        assert c.read_all() == b"late"


def test_a_client_may_end_its_half_first(forward, upstream):
    def behave(wire):
        wire.send(b"got " + wire.read_all())
    server = upstream(behave)
    c, _ = connect(forward(), server.server)
    with c:
        c.send(b"all of it")
        c.end()
        assert c.read_all() == b"got all of it"


def test_a_server_may_end_its_half_first(forward, upstream):
    got = []

    def behave(wire):
        wire.send(b"banner")
        wire.end()
        got.append(wire.read_all())
    server = upstream(behave)
    daemon = forward()
    c, _ = connect(daemon, server.server)
    with c:
        assert c.read_all() == b"banner"
        c.send(b"still here")
    daemon.wait_metric("penstock_tunnels", 0)
    assert wait_for(lambda: got) == [b"still here"]


def test_a_reset_by_the_client_reaches_the_server(forward, upstream):
    reset = threading.Event()

    def behave(wire):
        wire.read_exactly(1)
        if wire.is_reset():
            reset.set()
    server = upstream(behave)
    c, _ = connect(forward(), server.server, early=b"x")
    c.abort()
    assert reset.wait(10)


def test_a_reset_by_the_server_reaches_the_client(forward, upstream):
    def behave(wire):
        wire.read_exactly(1)
        wire.abort()
    server = upstream(behave)
    c, _ = connect(forward(), server.server, early=b"x")
    with c:
        assert c.is_reset()


def test_a_silent_tunnel_is_ended(forward, upstream):
    server = upstream(lambda wire: wire.read_all())
    daemon = forward("timeout_tunnel = 200ms")
    c, _ = connect(daemon, server.server)
    with c:
        assert c.is_reset()
        daemon.wait_metric("penstock_failures_total", 1, reason="tunnel_idle")


def test_a_tunnel_that_only_half_ends_is_ended(forward, upstream):
    over = threading.Event()
    server = upstream(lambda wire: over.wait(10))
    daemon = forward("timeout_half_closed = 200ms")
    c, _ = connect(daemon, server.server)
    with c:
        c.end()
        assert c.is_reset()
        daemon.wait_metric("penstock_failures_total", 1, reason="half_closed")
    over.set()


# --- failures ---

def test_a_refused_connection_gets_502(forward):
    daemon = forward()
    with Client(daemon.port) as c:
        for _ in range(2):
            m = c.request(f"http://127.0.0.1:{free_port()}/")
            assert m.is_failure(502, "connect_refused")
            assert "error=connection_refused" in m.get("Proxy-Status")
            assert m.get("Connection") is None
    daemon.wait_count("failures", 2, reason="connect_refused")


def test_a_refused_connect_gets_502_and_the_connection_ends(forward):
    c, m = connect(forward(), f"127.0.0.1:{free_port()}")
    with c:
        assert m.status == 502
        assert m.get("Connection") == "close"


def test_a_silent_destination_gets_504(forward, upstream):
    server = upstream(lambda wire: wire.read_all())
    daemon = forward("timeout_response = 200ms")
    with Client(daemon.port) as c:
        m = c.request(f"http://{server.server}/")
        assert m.is_failure(504, "response_timeout")
        assert "error=http_response_timeout" in m.get("Proxy-Status")
        # The client is not to blame.
        assert c.request("http://127.0.0.1:1/").status == 502


def test_a_destination_that_cannot_be_reached_gets_502(forward):
    with Client(forward().port) as c:
        assert c.request("http://192.0.2.1/").is_failure(
            502, "connect_failed")


def test_a_destination_that_does_not_take_connections_gets_504(forward):
    with socket.socket() as deaf, Client(
            forward("timeout_connect = 200ms").port) as c:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        where = deaf.getsockname()
        fillers = []
        for _ in range(3):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(where)
            fillers.append(filler)
        assert c.request(f"http://127.0.0.1:{where[1]}/").is_failure(
            504, "connect_timeout")
        for filler in fillers:
            filler.close()


# --- names ---

def test_names_are_resolved_and_remembered(forward, upstream, names):
    server = upstream(answering(body=b"fine"))
    dns = names({"a.test": ["127.0.0.1"]})
    daemon = forward("pool_max = 0", f"[penstock]\nnameservers = {dns.address}")
    with Client(daemon.port) as c:
        for _ in range(3):
            assert c.request(f"http://a.test:{server.port}/").body == b"fine"
    assert server.accepted == 3
    assert dns.asked.count("a.test") <= 2       # A and AAAA
    daemon.wait_count("dns_lookups", 2, result="cached")


def test_an_unknown_host_gets_502(forward, names):
    dns = names({})
    daemon = forward(rest=f"[penstock]\nnameservers = {dns.address}")
    with Client(daemon.port) as c:
        assert c.request("http://nowhere.test/").is_failure(502, "dns_error")
        assert c.request("http://nowhere.test/").is_failure(502, "dns_error")
    assert set(dns.asked) == {"nowhere.test"}


def test_a_silent_name_server_gets_504(forward, names):
    dns = names({"mute.test": None})
    daemon = forward("timeout_resolve = 300ms",
                     f"[penstock]\nnameservers = {dns.address}")
    with Client(daemon.port) as c:
        m = c.request("http://mute.test/")
        assert m.is_failure(504, "dns_timeout")
        assert "error=dns_timeout" in m.get("Proxy-Status")


@pytest.mark.parametrize("ahead", [0, 20000, 100000])
def test_a_client_that_leaves_while_its_name_is_resolved_is_let_go(
        forward, names, ahead):
    dns = names({"mute.test": None})
    daemon = forward("timeout_resolve = 60s",
                     f"[penstock]\nnameservers = {dns.address}")
    with Client(daemon.port) as c:
        c.ask("http://mute.test/", "POST", body=bytes(ahead))
        daemon.wait_metric("penstock_exchanges", 1)
        c.abort()
    daemon.wait_metric("penstock_failures_total", 1, reason="client_closed")


def test_the_hosts_file_comes_first(forward, upstream, names, tmp_path):
    server = upstream(answering(body=b"fine"))
    dns = names({"here.test": ["192.0.2.1"]})
    hosts = tmp_path / "hosts"
    hosts.write_text("# ours\n127.0.0.1 first.test here.test\n")
    daemon = forward(rest=f"""
        [penstock]
        nameservers = {dns.address}
        hosts = {hosts}
        """)
    with Client(daemon.port) as c:
        assert c.request(f"http://HERE.test:{server.port}/").body == b"fine"
    assert dns.asked == []


def test_localhost_is_never_asked_for(forward, upstream, names):
    server = upstream(answering(body=b"fine"))
    dns = names({"localhost": ["192.0.2.1"]})
    daemon = forward(rest=f"""
        [penstock]
        nameservers = {dns.address}
        hosts = /dev/null
        """)
    with Client(daemon.port) as c:
        assert c.request(f"http://localhost:{server.port}/").body == b"fine"
    assert dns.asked == []


# --- access ---

def test_a_listener_elsewhere_needs_an_access_section(tmp_path):
    file = tmp_path / "a.conf"
    file.write_text(tidy(f"""
        [listener out]
        mode = forward
        bind = {PRIVATE}:8080
        """))
    r = run_penstock("-t", "-c", file)
    assert r.returncode == 1
    assert f"{file}:" in r.stderr and "access" in r.stderr


def test_clients_are_allowed_and_denied_by_address(forward, upstream):
    server = upstream(answering())
    daemon = forward("access = some", """
        [access some]
        allow = 127.0.0.0/8
        deny = 127.0.0.2
        allow_destination = loopback
        """)
    for source, status in ("127.0.0.1", 200), ("127.0.0.2", 403), (
            "127.0.0.3", 200):
        with Client(daemon.port, source=source) as c:
            m = c.request(f"http://{server.server}/")
            assert m.status == status
            assert status == 200 or m.is_failure(403, "denied")


def test_an_access_section_without_clients_lets_nobody_in(forward):
    daemon = forward("access = none", "[access none]\nconnect_ports = all")
    with Client(daemon.port) as c:
        assert c.request("http://127.0.0.1:1/").is_failure(403, "denied")


def test_connect_goes_to_443_unless_told_otherwise(forward, upstream):
    server = upstream(lambda wire: wire.send(b"hi"))
    rules = "allow = loopback\nallow_destination = loopback"
    c, m = connect(forward("access = a", f"[access a]\n{rules}"),
                   server.server)
    with c:
        assert m.status == 403
        assert 'details="destination_denied"' in m.get("Proxy-Status")
    c, m = connect(forward("access = a", f"""
        [access a]
        {rules}
        connect_ports = 443 {server.port}-{server.port + 1}
        """), server.server)
    with c:
        assert m.status == 200
        assert c.read_all() == b"hi"
    assert server.accepted == 1


@pytest.fixture
def outside(forward, upstream, names):
    """outside(rules): a daemon, with a server inside and one outside."""
    def start(rules=""):
        dns = names({"in.test": ["127.0.0.1"], "out.test": [PUBLIC],
                     "both.test": ["127.0.0.1", PUBLIC],
                     "mapped.test": ["::ffff:127.0.0.1"],
                     "six.test": ["::1"], "any.test": ["0.0.0.0"]})
        public = upstream(answering(body=b"outside"), host=PUBLIC)
        daemon = forward("access = a", f"""
            [penstock]
            nameservers = {dns.address}
            [access a]
            allow = loopback
            {rules}
            """)
        daemon.outside = public
        return daemon
    return start


@pytest.mark.parametrize("host", [
    "127.0.0.1", "in.test", "localhost", PRIVATE, "mapped.test", "six.test",
    "any.test", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.1.1",
    "[fe80::1]", "[fd00::1]", "192.168.1.1"])
def test_only_public_addresses_may_be_reached_by_default(
        outside, upstream, host):
    inside = upstream(answering())
    daemon = outside()
    with Client(daemon.port) as c:
        m = c.request(f"http://{host}:{inside.port}/")
        assert m.is_failure(403, "destination_denied")
        m = c.request(f"http://out.test:{daemon.outside.port}/")
        assert (m.status, m.body) == (200, b"outside")
    assert inside.accepted == 0


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "127.1",
                                  "017700000001", "127.0.0.1."])
def test_odd_spellings_of_addresses_lead_nowhere(outside, upstream, host):
    inside = upstream(answering())
    with Client(outside().port) as c:
        m = c.request(f"http://{host}:{inside.port}/")
        assert m.status in (400, 403, 502)
    assert inside.accepted == 0


def test_a_denied_address_of_a_name_is_never_dialled(outside, upstream):
    daemon = outside()
    inside = socket.socket()
    inside.bind(("127.0.0.1", daemon.outside.port))
    inside.listen()
    inside.setblocking(False)
    with inside, Client(daemon.port) as c:
        m = c.request(f"http://both.test:{daemon.outside.port}/")
        assert (m.status, m.body) == (200, b"outside")
        with pytest.raises(BlockingIOError):
            inside.accept()


def test_an_allowed_name_opens_no_denied_address(outside, upstream):
    inside = upstream(answering())
    daemon = outside("""
        allow_destination = in.test
        deny_destination = loopback
        """)
    with Client(daemon.port) as c:
        m = c.request(f"http://in.test:{inside.port}/")
        assert m.is_failure(403, "destination_denied")
    assert inside.accepted == 0


def test_a_denied_name_is_not_even_resolved(outside):
    daemon = outside("deny_destination = *.test")
    with Client(daemon.port) as c:
        for host in "out.test", "OUT.TEST", "out.test.":
            m = c.request(f"http://{host}:{daemon.outside.port}/")
            assert m.is_failure(403, "destination_denied")
        m = c.request(f"http://{PUBLIC}:{daemon.outside.port}/")
        assert m.status == 200
    assert daemon.metric("penstock_dns_lookups_total") == 0


def test_the_most_specific_rule_wins(outside, upstream):
    inside = upstream(answering())
    daemon = outside(f"""
        allow_destination = 127.0.0.1:{inside.port}
        deny_destination = loopback
        """)
    with Client(daemon.port) as c:
        assert c.request(f"http://127.0.0.1:{inside.port}/").status == 200
        for other in f"127.0.0.1:{inside.port + 1}", \
                f"127.0.0.2:{inside.port}":
            m = c.request(f"http://{other}/")
            assert m.is_failure(403, "destination_denied")


# --- ourselves ---

@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0",
                                  "me.test"])
def test_own_listeners_are_not_reached(forward, names, host):
    dns = names({"me.test": ["127.0.0.1"]})
    daemon = forward(rest=f"[penstock]\nnameservers = {dns.address}")
    for port in daemon.port, daemon.admin_port:
        with Client(daemon.port) as c:
            m = c.request(f"http://{host}:{port}/metrics")
            assert m.is_failure(508, "loop_detected")
        c, m = connect(daemon, f"{host}:{port}")
        with c:
            assert m.status == 508


def test_a_listener_on_all_addresses_is_known_by_each(penstock):
    port = free_port()
    daemon = penstock(f"""
        [listener out]
        mode = forward
        bind = :{port}
        access = all
        [access all]
        allow = all
        allow_destination = all
        """)
    for host in "127.0.0.1", "127.9.9.9", PRIVATE, PUBLIC, "[::1]", \
            "[::ffff:127.0.0.1]":
        with Client(port) as c:
            m = c.request(f"http://{host}:{port}/")
            assert m.is_failure(508, "loop_detected"), host
    assert daemon.admin("/healthz")[0] == 200


def test_a_request_that_was_here_before_is_refused(forward):
    daemon = forward(rest="[penstock]\nname = gate")
    with Client(daemon.port) as c:
        m = c.request("http://127.0.0.1:1/",
                      fields=["Via: 1.1 other, 1.0 gate (it)"])
        assert m.is_failure(508, "loop_detected")
        m = c.request("http://127.0.0.1:1/", fields=["Via: 1.1 gatekeeper"])
        assert m.is_failure(502, "connect_refused")


def test_connections_to_destinations_are_counted(forward, upstream):
    go = threading.Event()
    server = upstream(answering(think=lambda _: go.wait(10)))
    daemon = forward()
    with Client(daemon.port) as c:
        c.ask(f"http://{server.server}/")
        daemon.wait_metric("penstock_destination_connections", 1, state="busy")
        go.set()
        assert c.read_message().status == 200
        daemon.wait_metric("penstock_destination_connections", 0, state="busy")
