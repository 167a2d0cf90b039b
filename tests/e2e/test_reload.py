# SPDX-License-Identifier: BSD-2-Clause
"""A reload: another configuration, and nobody notices but by what it says."""

import select
import signal
import socket
import threading
import time

import pytest

from penstock import Client, Wire, answering, free_port, wait_for


def listener(port, name="web", mode="gateway", more=""):
    return f"""
        [listener {name}]
        mode = {mode}
        bind = 127.0.0.1:{port}
        {more}
        """


def up(*servers, name="up", more=""):
    lines = "\n".join(f"server = {s}" for s in servers)
    return f"""
        [upstream {name}]
        {lines}
        pool_idle = 300ms
        {more}
        """


def gateway_to(port, *servers, more=""):
    return listener(port, more=f"upstream = up\n{more}") + up(*servers)


def named(text):
    """A behaviour whose answers have this body."""
    return answering(body=text.encode())


def ask(port, target="/", **more):
    with Client(port, **more) as c:
        return c.request(target)


# --- what it changes ---

def test_the_next_request_of_a_connection_goes_by_the_new_one(
        penstock, upstream):
    a, b = upstream(named("a")), upstream(named("b"))
    port = free_port()
    daemon = penstock(gateway_to(port, a.server))
    with Client(port) as c:
        assert c.request("/").body == b"a"
        daemon.reload(gateway_to(port, b.server))
        assert c.request("/").body == b"b"
    assert ask(port).body == b"b"


def test_a_running_exchange_ends_under_the_old_one(penstock, upstream):
    go = threading.Event()
    a = upstream(answering(body=b"a", think=lambda _: go.wait(10)))
    b = upstream(named("b"))
    port = free_port()
    daemon = penstock(gateway_to(port, a.server))
    with Client(port) as c:
        c.ask("/")
        wait_for(lambda: a.open == 1)
        daemon.reload(gateway_to(port, b.server))
        daemon.reload(gateway_to(port, b.server))
        go.set()
        assert c.read_message().body == b"a"
        assert c.request("/").body == b"b"


def test_routes_change(penstock, upstream):
    a, b = upstream(named("a")), upstream(named("b"))
    port = free_port()

    def config(first, second):
        return listener(port) + up(a.server, name="a") + \
            up(b.server, name="b") + f"""
            [route one]
            listener = web
            path = /1
            upstream = {first}
            [route two]
            listener = web
            path = /2
            upstream = {second}
            """
    daemon = penstock(config("a", "b"))
    with Client(port) as c:
        assert c.request("/1").body + c.request("/2").body == b"ab"
        daemon.reload(config("b", "a"))
        assert c.request("/1").body + c.request("/2").body == b"ba"


def test_servers_that_stay_keep_their_connections(penstock, upstream):
    a, b = upstream(named("a")), upstream(named("b"))
    port = free_port()
    idle = "pool_idle = 60s"

    def config(*servers):
        return listener(port, more="upstream = up") + \
            up(*servers).replace("pool_idle = 300ms", idle)
    daemon = penstock(config(a.server, b.server))
    with Client(port) as c:
        assert {c.request("/").body, c.request("/").body} == {b"a", b"b"}
        assert (a.open, b.open) == (1, 1)
        daemon.reload(config(b.server + " weight=3"))
        wait_for(lambda: a.open == 0)
        assert c.request("/").body == b"b"
        assert (a.accepted, b.accepted) == (1, 1)
        # What it counted goes on too.
        assert daemon.count("server_requests", server=b.server) == 2
    # Before what is idle would be closed by itself.
    daemon.reload(config(a.server).replace(idle, "pool_idle = 100ms"))
    wait_for(lambda: b.open == 0)


def test_pools_follow_their_numbers(penstock, upstream):
    go = threading.Event()
    a = upstream(answering(think=lambda _: go.wait(10)))
    port = free_port()

    def config(most):
        return listener(port, more="upstream = up") + f"""
            [upstream up]
            server = {a.server}
            pool_idle = 60s
            pool_max = {most}
            """
    daemon = penstock("[penstock]\nworkers = 1\n" + config(8))
    clients = [Client(port) for _ in range(4)]
    for c in clients:
        c.ask("/")
    wait_for(lambda: a.open == 4)
    go.set()
    for c in clients:
        assert c.read_message().status == 200
        c.close()
    assert a.open == 4
    daemon.reload("[penstock]\nworkers = 1\n" + config(1))
    wait_for(lambda: a.open == 1)
    daemon.reload("[penstock]\nworkers = 1\n" + config(0))
    wait_for(lambda: a.open == 0)


def test_a_name_is_known_before_it_is_used(penstock, upstream, names):
    a, b = upstream(named("a")), upstream(named("b"))
    dns = names({"b.test": ["127.0.0.1"]})
    port = free_port()
    resolver = f"[penstock]\nnameservers = {dns.address}\n"
    daemon = penstock(resolver + gateway_to(port, a.server))
    load = Load()
    load.add("keep-alive", keep_alive, port, "/")
    with load, Client(port) as c:
        for i in range(10):
            daemon.reload(resolver + gateway_to(port, f"b.test:{b.port}"))
            assert c.request("/").body == b"b"
            daemon.reload(resolver + gateway_to(port, a.server))
            assert c.request("/").body == b"a"
    assert not load.wrong, load.wrong


def test_a_name_that_is_never_answered_delays_it_and_no_more(
        penstock, upstream, names):
    a = upstream(named("a"))
    dns = names({"silent.test": None})
    port = free_port()
    resolver = f"[penstock]\nnameservers = {dns.address}\n"
    daemon = penstock(resolver + gateway_to(port, a.server))
    daemon.rewrite(resolver + gateway_to(port, a.server,
                                         f"silent.test:{a.port}"))
    daemon.signal(signal.SIGHUP)
    wait_for(lambda: "silent.test" in dns.asked)
    with Client(port) as c:
        assert c.request("/").body == b"a"
        wait_for(lambda: daemon.reloads() == (1, 0), 20)
        assert c.request("/").body == b"a"


def test_nothing_idle_opens_what_is_denied_now(penstock, upstream):
    a = upstream(named("a"))
    port = free_port()

    def config(rule):
        return listener(port, mode="forward", more="""
            access = some
            pool_idle = 300ms
            """) + f"""
            [access some]
            allow = loopback
            {rule}
            """
    daemon = penstock(config("allow_destination = loopback"))
    with Client(port) as c:
        assert c.request(f"http://{a.server}/").body == b"a"
        daemon.reload(config("deny_destination = loopback"))
        assert c.request(f"http://{a.server}/").is_failure(
            403, "destination_denied")


# --- limits ---

def limited(port, server, lines, more=""):
    return gateway_to(port, server, more="limits = some") + f"""
        [limit some]
        {lines}
        {more}
        """


def test_a_rate_keeps_what_was_taken(penstock, upstream):
    a = upstream(answering())
    port = free_port()
    daemon = penstock(limited(port, a.server, "rate = 1/h\nburst = 3"))
    with Client(port) as c:
        assert [c.request("/").status for _ in range(4)] == [200] * 3 + [429]
        daemon.reload(limited(port, a.server, "rate = 1/h\nburst = 5"))
        assert c.request("/").status == 429
        daemon.reload(limited(port, a.server, "rate = 1000/s\nburst = 5"))
        wait_for(lambda: c.request("/").status == 200)


@pytest.mark.parametrize("change", ["raised", "off", "removed"])
def test_who_waits_at_a_limit(penstock, upstream, change):
    go = threading.Event()
    a = upstream(answering(think=lambda _: go.wait(10)))
    port = free_port()
    queue = "queue = 10\nqueue_timeout = 1m"
    daemon = penstock(limited(port, a.server, f"concurrency = 1\n{queue}"))
    with Client(port) as c, Client(port) as d, Client(port) as e:
        c.ask("/")
        wait_for(lambda: a.open == 1)
        d.ask("/")
        daemon.wait_metric("penstock_limit_waiting", 1)
        if change == "removed":
            daemon.reload(gateway_to(port, a.server))
            # It is the old one's guest; others aren't.
            e.ask("/")
            wait_for(lambda: a.open == 2)
            go.set()
            assert e.read_message().status == 200
        else:
            daemon.reload(limited(port, a.server, (
                f"concurrency = 3\n{queue}" if change == "raised" else
                "rate = 1000/s")))
            wait_for(lambda: a.open == 2)
            e.ask("/")
            wait_for(lambda: a.open == 3)
            go.set()
            assert e.read_message().status == 200
        assert c.read_message().status == d.read_message().status == 200


def test_a_lowered_number_is_a_debt(penstock, upstream):
    go = threading.Event()
    a = upstream(answering(think=lambda _: go.wait(10)))
    port = free_port()
    daemon = penstock(limited(port, a.server, "concurrency = 3"))
    clients = [Client(port) for _ in range(3)]
    for c in clients:
        c.ask("/")
    wait_for(lambda: a.open == 3)
    daemon.reload(limited(port, a.server, "concurrency = 1"))
    assert daemon.metric("penstock_limit_in_use", limit="some") == 3
    assert ask(port).is_failure(503, "queue_full")
    go.set()
    for c in clients:
        assert c.read_message().status == 200
        c.close()
    daemon.wait_metric("penstock_limit_in_use", 0)
    assert ask(port).status == 200


def test_connections_are_counted_on(penstock, upstream):
    a = upstream(answering())
    port = free_port()
    key = "key = client_address\n"
    daemon = penstock(limited(port, a.server, key + "connections = 2"))

    def refused():
        return ask(port).is_failure(503, "connection_limit")
    with Client(port) as c, Client(port) as d:
        assert c.request("/").status == d.request("/").status == 200
        assert refused()
        daemon.reload(limited(port, a.server, key + "connections = 3"))
        assert c.request("/").status == d.request("/").status == 200
        assert ask(port).status == 200
        # Removed, and new: who is there is counted with the next request.
        daemon.reload(gateway_to(port, a.server))
        assert c.request("/").status == d.request("/").status == 200
        assert ask(port).status == 200
        daemon.reload(limited(port, a.server, key + "connections = 2"))
        assert c.request("/").status == d.request("/").status == 200
        assert refused()
    wait_for(lambda: ask(port).status == 200)


def test_max_connections_changes(penstock, upstream):
    a = upstream(answering())
    port = free_port()

    def config(most):
        return f"[penstock]\nmax_connections = {most}\n" + \
            gateway_to(port, a.server)
    daemon = penstock(config(2))
    with Client(port) as c, Client(port) as d, Client(port) as e:
        assert c.request("/").status == d.request("/").status == 200
        e.ask("/")
        wait_for(lambda: daemon.count("accept_paused") > 0)
        assert e.is_silent()
        daemon.reload(config(3))
        assert e.read_message().status == 200
        daemon.reload(config(1))
        assert [x.request("/").status for x in (c, d, e)] == [200] * 3


# --- listeners ---

def test_listeners_come_and_go(penstock, upstream):
    a = upstream(answering())
    port, other = free_port(), free_port()
    one = gateway_to(port, a.server)
    two = one + listener(other, "other", more="upstream = up")
    daemon = penstock(one)
    with Client(port) as c:
        for _ in range(3):
            daemon.reload(two)
            with Client(other) as d, Client(other) as idle:
                assert c.request("/").status == 200
                assert d.request("/").status == 200
                daemon.reload(one)
                is_refused(other)
                last = d.request("/")
                assert last.status == 200
                assert last.get("Connection") == "close" and d.at_end()
                assert idle.at_end()
                wait_for(lambda: is_refused(other))
            assert c.request("/").get("Connection") is None


def is_refused(port):
    """Nobody gets in; at first since nothing is said, then since it is."""
    try:
        Client(port, timeout=0.2).close()
    except ConnectionRefusedError:
        return True
    except TimeoutError:
        return False
    raise AssertionError(f"{port} takes connections")


def test_one_that_was_to_leave_may_stay(penstock, upstream):
    a = upstream(answering())
    port, other = free_port(), free_port()
    one = gateway_to(port, a.server)
    two = one + listener(other, "other", more="upstream = up")
    daemon = penstock(two)
    for _ in range(5):
        daemon.reload(one)
        daemon.reload(two)
        # A SYN that was dropped would come again after a second.
        assert ask(other, timeout=0.9).status == 200


def test_who_is_in_the_queue_of_one_that_goes_is_served(penstock, upstream):
    a = upstream(answering())
    port, other = free_port(), free_port()
    one = gateway_to(port, a.server)
    two = one + listener(other, "other", more="upstream = up")
    daemon = penstock(two)
    daemon.signal(signal.SIGSTOP)
    clients = [Client(other) for _ in range(20)]
    for c in clients:
        c.ask("/")
    daemon.rewrite(one)
    daemon.signal(signal.SIGHUP)
    daemon.signal(signal.SIGCONT)
    for c in clients:
        assert c.read_message().status == 200
        assert c.at_end()
    wait_for(lambda: is_refused(other))


def test_who_waits_there_for_a_permit_is_served(penstock, upstream):
    a = upstream(answering())
    port, other = free_port(), free_port()
    one = "[penstock]\nmax_connections = 1\n" + gateway_to(port, a.server)
    two = one + listener(other, "other", more="upstream = up")
    daemon = penstock(two)
    with Client(port) as c:
        assert c.request("/").status == 200
        clients = [Client(other) for _ in range(20)]
        for d in clients:
            d.ask("/")
        daemon.reload(one)
        assert not is_refused(other)
        assert c.request("/").status == 200
        # However long that takes.
        time.sleep(1)
        assert all(d.is_silent() for d in clients)
    # Only with one that has gone does the next one come.
    waiting = set(clients)
    while waiting:
        served, _, _ = select.select([d.socket for d in waiting], [], [], 10)
        assert served
        for d in [d for d in waiting if d.socket in served]:
            assert d.read_message().status == 200
            assert d.at_end()
            d.close()
            waiting.remove(d)
    wait_for(lambda: is_refused(other))


def test_an_address_goes_from_one_listener_to_another(penstock, upstream):
    a, b = upstream(named("a")), upstream(named("b"))
    port = free_port()
    daemon = penstock(listener(port, "one", more="upstream = a") +
                      up(a.server, name="a"))
    with Client(port) as c:
        assert c.request("/").body == b"a"
        daemon.reload(listener(port, "two", more="upstream = b") +
                      up(b.server, name="b"))
        assert ask(port, timeout=0.9).body == b"b"
        assert c.request("/").body == b"a"
        assert c.at_end()


def test_an_address_widens_and_narrows(penstock, upstream):
    a = upstream(answering())
    port = free_port()
    narrow = gateway_to(port, a.server)
    wide = narrow.replace("127.0.0.1:", "0.0.0.0:", 1)
    daemon = penstock(narrow)
    with Client(port) as c:
        for config in (wide, narrow, wide):
            daemon.reload(config)
            assert ask(port).status == 200
            assert c.request("/").status == 200


def test_unix_listeners_come_and_go(penstock, upstream, short_path):
    a = upstream(answering())
    port, path = free_port(), short_path / "s"
    one = gateway_to(port, a.server)
    two = one + f"""
        [listener local]
        mode = gateway
        bind = unix:{path}
        upstream = up
        """
    daemon = penstock(one)

    def connect():
        s = socket.socket(socket.AF_UNIX)
        s.connect(str(path))
        return Wire(s)
    for _ in range(3):
        daemon.reload(two)
        with connect() as c:
            c.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert c.read_message().status == 200
            daemon.reload(one)
            assert not path.exists()
            c.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert c.read_message().status == 200


def echo(wire):
    while data := wire.socket.recv(65536):
        wire.send(data)


def upgrading(wire):
    wire.read_head()
    wire.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
              b"Upgrade: echo\r\n\r\n")
    echo(wire)


def test_tunnels_outlive_their_listeners(penstock, upstream, tmp_path):
    a, b, web = upstream(echo), upstream(upgrading), upstream(answering())
    port, tcp, proxy, gate = (free_port() for _ in range(4))
    log = f"[log]\naccess = {tmp_path}/log\n"
    one = log + gateway_to(port, web.server)
    two = one + listener(tcp, "relay", "tcp", "upstream = echo") + \
        listener(proxy, "proxy", "forward") + \
        listener(gate, "gate") + \
        "[route some]\nlistener = gate\nupstream = upgrade\n" + \
        up(a.server, name="echo") + up(b.server, name="upgrade")
    daemon = penstock(two)
    with Client(tcp) as c, Client(proxy) as d, Client(gate) as e:
        d.ask(a.server, "CONNECT", host=a.server)
        assert d.read_head().status == 200
        e.ask("/", fields=["Connection: upgrade", "Upgrade: echo"])
        assert e.read_head().status == 101
        for i in range(3):
            for tunnel in c, d, e:
                tunnel.send(b"%d" % i)
                assert tunnel.read_exactly(1) == b"%d" % i
            daemon.reload(one)
        for gone in tcp, proxy, gate:
            wait_for(lambda: is_refused(gone))
        for tunnel in c, d, e:
            tunnel.send(b"end")
            assert tunnel.read_exactly(3) == b"end"
    wait_for(lambda: len((tmp_path / "log").read_text().splitlines()) == 3)
    text = (tmp_path / "log").read_text()
    assert all(f'"listener":"{name}"' in text
               for name in ("relay", "proxy", "gate")), text
    assert '"route":"some"' in text and '"upstream":"upgrade"' in text, text


# --- what is refused ---

def is_unchanged(daemon, port, body=b"a"):
    assert ask(port).body == body
    assert daemon.metric("penstock_config_last_reload_success") == 0
    return True


def test_every_mistake_is_said(penstock, upstream):
    a = upstream(named("a"))
    port = free_port()
    right = gateway_to(port, a.server)
    daemon = penstock(right)
    stamp = "penstock_config_last_reload_timestamp_seconds"
    began = daemon.metric(stamp)
    wrong = "".join(f"[limit l{i}]\nrate = {i}/x\n" for i in range(30))
    daemon.reload(right + wrong + "[rout x]\n", ok=False)
    said = daemon.said()
    for i in range(30):
        assert f"rate: " in said and f"{i}/x" in said, said
    assert "[rout]" in said and 'did you mean "route"' in said
    assert is_unchanged(daemon, port)
    assert daemon.metric(stamp) == began
    daemon.reload(right)
    assert daemon.metric("penstock_config_last_reload_success") == 1
    assert daemon.metric(stamp) > began


def test_what_needs_a_restart_is_named(penstock, upstream):
    a, b = upstream(named("a")), upstream(named("b"))
    port = free_port()
    daemon = penstock(gateway_to(port, a.server))
    daemon.reload(gateway_to(port, b.server) + """
        [penstock]
        workers = 7
        name = other
        pid_file = /nowhere/penstock.pid
        """, ok=False)
    lines = [line for line in daemon.said().splitlines()
             if line.endswith("a change needs a restart")]
    assert [line.split(": ")[-2] for line in lines] == [
        "[penstock] workers", "[penstock] name", "[penstock] pid_file"]
    assert all(f"{daemon.file}:" in line for line in lines)
    assert is_unchanged(daemon, port)


def test_what_cant_be_bound_changes_nothing(penstock, upstream):
    a, b = upstream(named("a")), upstream(named("b"))
    port, free = free_port(), free_port()
    daemon = penstock(limited(port, a.server, "concurrency = 5"))
    daemon.reload(
        limited(port, b.server, "concurrency = 6") +
        listener(free, "free", more="upstream = up") +
        listener(a.port, "taken", more="upstream = up") +
        listener(b.port, "taken2", more="upstream = up"), ok=False)
    for server in a.server, b.server:
        assert f"can't listen on {server}: " in daemon.said()
    assert is_unchanged(daemon, port)
    assert is_refused(free)
    assert daemon.metric("penstock_limit_permits") == 5


def test_a_file_or_a_part_of_it_that_has_gone(penstock, upstream, tmp_path):
    a = upstream(named("a"))
    port = free_port()
    part = tmp_path / "part.conf"
    text = up(a.server)
    part.write_text("".join(l.strip() + "\n" for l in text.splitlines()))
    daemon = penstock(f"include = {part}\n" +
                      listener(port, more="upstream = up"))
    daemon.reload()
    part.unlink()
    daemon.reload(ok=False)
    assert "part.conf" in daemon.said()
    assert is_unchanged(daemon, port)
    daemon.file.unlink()
    daemon.reload(ok=False)
    assert is_unchanged(daemon, port)


# --- what would be ---

def check(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(str(path))
    with Wire(s) as c:
        c.send(b"POST /reload?check HTTP/1.1\r\nHost: localhost\r\n\r\n")
        m = c.read_message()
        return m.status, m.body.decode()


def test_it_can_be_asked_what_a_reload_would_say(
        penstock, upstream, short_path):
    a, b = upstream(named("a")), upstream(named("b"))
    port, free = free_port(), free_port()
    path = short_path / "admin"
    number = free_port()
    admin = f"""
        [admin]
        bind = 127.0.0.1:{number} unix:{path}
        """
    right = gateway_to(port, a.server) + admin
    daemon = penstock(right, admin_port=number)
    assert check(path) == (200, "fine\n")
    daemon.rewrite(gateway_to(port, b.server) + admin +
                   listener(free, "free", more="upstream = up"))
    assert check(path) == (200, "fine\n")
    assert is_refused(free) and ask(port).body == b"a"
    daemon.rewrite(right + listener(b.port, "taken", more="upstream = up") +
                   "[listener x]\n")
    status, text = check(path)
    assert status == 422 and "[listener x]" in text, text
    daemon.rewrite(right + listener(b.port, "taken", more="upstream = up"))
    status, text = check(path)
    assert status == 422 and f"can't listen on {b.server}" in text, text
    daemon.rewrite(right + "[penstock]\nworkers = 9\n")
    status, text = check(path)
    assert status == 422 and "workers: a change needs a restart" in text
    assert daemon.metric("penstock_config_last_reload_success") == 1
    assert ask(port).body == b"a"
    # Not by whoever can connect.
    with Client(number) as c:
        assert c.request("/reload?check", "POST",
                         host="localhost").status == 403
    daemon.reload(right)


# --- when it comes ---

def test_many_at_once_end_with_what_the_file_says(penstock, upstream):
    a, b = upstream(named("a")), upstream(named("b"))
    port = free_port()
    daemon = penstock(gateway_to(port, a.server))
    for i in range(20):
        daemon.rewrite(gateway_to(port, (a, b)[i % 2].server))
        daemon.signal(signal.SIGHUP)
    wait_for(lambda: ask(port).body == b"b")
    wait_for(lambda: daemon.reloads()[0] >= 1)


def test_none_begins_in_a_drain(penstock, upstream):
    go = threading.Event()
    a = upstream(answering(think=lambda _: go.wait(10)))
    port = free_port()
    daemon = penstock(gateway_to(port, a.server))
    with Client(port) as c:
        c.ask("/")
        wait_for(lambda: a.open == 1)
        daemon.signal(signal.SIGTERM)
        wait_for(lambda: daemon.admin("/readyz")[0] == 503)
        daemon.signal(signal.SIGHUP)
        wait_for(lambda: "no reload" in daemon.said())
        go.set()
        assert c.read_message().status == 200
    assert daemon.wait() == 0


def test_a_drain_in_the_middle_of_one(penstock, upstream):
    a = upstream(answering())
    for i in range(10):
        port, other = free_port(), free_port()
        one = gateway_to(port, a.server)
        daemon = penstock(one)
        daemon.rewrite(one + listener(other, "other", more="upstream = up"))
        daemon.signal(signal.SIGHUP)
        if i % 2 == 1:
            time.sleep(i / 1000)        # anywhere in it
        daemon.signal(signal.SIGTERM)
        assert daemon.wait() == 0


def test_a_drain_while_a_name_is_asked_for(penstock, upstream, names):
    a = upstream(answering())
    dns = names({"silent.test": None})
    port = free_port()
    resolver = f"[penstock]\nnameservers = {dns.address}\n"
    daemon = penstock(resolver + gateway_to(port, a.server))
    daemon.rewrite(resolver + gateway_to(port, f"silent.test:{a.port}"))
    daemon.signal(signal.SIGHUP)
    wait_for(lambda: "silent.test" in dns.asked)
    assert ask(port).status == 200
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0


# --- under load ---

BLOCK = bytes(range(256)) * 256
LONG = 64 * len(BLOCK)


class Load:
    """Closed loops of many kinds; what goes wrong with any is in .wrong."""

    def __init__(self):
        self.over = threading.Event()
        self.wrong = []
        self.counts = {}
        self._threads = []

    def add(self, kind, step, *arguments):
        """Call step(*arguments) again and again: one round of one client."""
        def run():
            try:
                while not self.over.is_set():
                    step(*arguments)
                    self.counts[kind] = self.counts.get(kind, 0) + 1
            except BaseException as e:
                self.wrong.append(f"{kind}: {e!r}")
        self._threads.append(threading.Thread(target=run, daemon=True))

    def __enter__(self):
        for t in self._threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for t in self._threads:
            t.join(20)

    def progress(self):
        """Wait until each kind has done one round more, and none is wrong."""
        was = dict(self.counts)
        wait_for(lambda: self.wrong or all(
            n > was.get(kind, 0) for kind, n in self.counts.items()), 20,
            what=lambda: f"progress: {was} {self.counts}")
        assert not self.wrong, self.wrong


def keep_alive(port, target):
    """A connection that lives for twenty requests."""
    with Client(port) as c:
        for i in range(20):
            m = c.request(f"{target}?{i}")
            assert m.status == 200, m
            assert m.get("Connection") is None, m


def pipelined(port, target):
    with Client(port) as c:
        for _ in range(4):
            for i in range(5):
                c.ask(f"{target}?{i}")
            for _ in range(5):
                m = c.read_message()
                assert m.status == 200 and m.get("Connection") is None, m


def download(port):
    with Client(port, buffer=65536) as c:
        c.ask("/long")
        head = c.read_head()
        assert head.status == 200, head
        for _ in range(LONG // len(BLOCK)):
            assert c.read_exactly(len(BLOCK)) == BLOCK


def echoes(c):
    for i in range(10):
        text = b"%d " % i * 500
        c.send(text)
        assert c.read_exactly(len(text)) == text


def connect(port, to):
    with Client(port) as c:
        c.ask(to, "CONNECT", host=to)
        assert c.read_head().status == 200
        echoes(c)


def relay(port):
    with Client(port) as c:
        echoes(c)


def some_time(port):
    """A listener that isn't always there: who gets in is served."""
    try:
        c = Client(port)
    except (ConnectionRefusedError, TimeoutError):
        time.sleep(0.01)
        return
    with c:
        for i in range(20):
            m = c.request(f"/?{i}")
            assert m.status == 200, m
            if m.get("Connection") == "close":
                assert c.at_end()
                return


def web(wire):
    """Long answers to /long, short ones otherwise."""
    while (request := wire.read_message()) is not None:
        if "/long" in request.target:
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LONG)
            for _ in range(LONG // len(BLOCK)):
                wire.send(BLOCK)
        else:
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


class Town:
    """A configuration of everything, in many versions."""

    def __init__(self, upstream, routes=0):
        self.routes = routes
        self.servers = [upstream(web).server for _ in range(4)]
        self.echo = upstream(echo).server
        self.web, self.forward, self.tcp, self.other = (
            free_port() for _ in range(4))

    def config(self, i):
        """Limits, routes, servers and listeners change with i."""
        n = len(self.servers)
        servers = [self.servers[(i + k) % n] for k in range(1 + i % 3)]
        limits = f"""
            [limit all]
            concurrency = {200 + i % 7}
            queue = 100
            queue_order = {("fifo", "adaptive")[i % 2]}
            [limit each]
            key = client_address
            rate = 1000/s
            burst = {100000 + i % 5}
            concurrency = {1000 + i % 3}
            connections = {1000 + i % 2 if i % 4 else 0}
            bandwidth_out = {("0", "1g")[i % 2]}
            """
        if i % 3 == 0:
            limits += "[limit more]\nconcurrency = 500\n"
        more = "more" if i % 3 == 0 else ""
        routes = [f"""
            [route {name}]
            listener = web
            path = /{name}
            upstream = {("up", "also")[(i + k) % 2]}
            limits = {more or "all"}
            """ for k, name in enumerate(("a", "b", "long"))]
        if i % 5 == 4:
            routes = routes[1:] + routes[:1]
        routes += [f"""
            [route many{k}]
            listener = web
            host = h{k}.example
            upstream = up
            """ for k in range(self.routes)]
        other = "" if i % 2 else listener(
            self.other, "other", more=f"upstream = up\nlimits = {more} all")
        return "".join([
            "[timeouts]\nkeepalive = ", ("60s", "50s")[i % 2], "\n",
            f"[penstock]\nbuffers = {64 + i % 3}m\nworkers = 2\n",
            f"max_connections = {1000 + i}\n", limits,
            listener(self.web, more=f"upstream = up\nlimits = each {more}"),
            other,
            listener(self.forward, "proxy", "forward", "limits = each all"),
            listener(self.tcp, "relay", "tcp", "upstream = echo"),
            up(*servers, more=f"balance = {('first', 'least_busy')[i % 2]}"),
            up(*self.servers[:2], name="also"), up(self.echo, name="echo"),
            *routes])

    def load(self):
        load = Load()
        for _ in range(2):
            load.add("keep-alive", keep_alive, self.web, "/a")
            load.add("pipelined", pipelined, self.web, "/b")
            load.add("download", download, self.web)
            load.add("connect", connect, self.forward, self.echo)
            load.add("tcp", relay, self.tcp)
            load.add("other", some_time, self.other)
        return load


def failures(daemon):
    return {key: value for key, value in daemon.metrics().items()
            if key[0] == "penstock_failures_total" and value}


def test_twenty_under_load_and_nobody_notices(penstock, upstream):
    town = Town(upstream)
    daemon = penstock(town.config(0))
    with town.load() as load:
        load.progress()
        for i in range(1, 21):
            daemon.reload(town.config(i))
            load.progress()
    assert not load.wrong, load.wrong
    assert not failures(daemon)
    assert daemon.reloads() == (20, 0)


def test_two_hundred_leave_nothing_behind(penstock, upstream):
    # What is left of one of these could not be overlooked.
    town = Town(upstream, routes=300)
    daemon = penstock(town.config(0))

    def reload(count):
        for i in range(count):
            daemon.reload(town.config(i))
    with town.load() as load:
        load.progress()
        reload(60)
        fds = daemon.metric("process_open_fds")
        before = daemon.resident_bytes()
        reload(200)
        load.progress()
        grown = daemon.resident_bytes() - before
    assert not load.wrong, load.wrong
    assert not failures(daemon)
    assert grown < 1 << 20, f"{grown} bytes"
    daemon.wait_metric("penstock_sessions", 0)
    wait_for(lambda: daemon.metric("process_open_fds") < fds)
