# SPDX-License-Identifier: BSD-2-Clause
"""The life of the process, and what operators read of it."""

import itertools
import json
import os
import re
import signal
import subprocess
import threading
import time

import pytest

from penstock import (Client, DEADLINE, TOP, answering, check_metrics, curl,
                      free_port, wait_for)

LOG = "[log]\naccess = {}/access.log"


def log_lines(folder):
    """The access log: every line of it is an object, and complete."""
    text = (folder / "access.log").read_text()
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def logged(folder, n):
    """Wait for n lines of the access log."""
    wait_for(lambda: (folder / "access.log").read_text().count("\n") >= n)
    lines = log_lines(folder)
    assert len(lines) == n
    return lines


class Held:
    """A behaviour that answers when it is told to."""

    def __init__(self, body=b"done"):
        self.go = threading.Event()
        self.asked = threading.Event()
        self.body = body

    def __call__(self, wire):
        while wire.read_message() is not None:
            self.asked.set()
            self.go.wait(20)
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (
                len(self.body), self.body))


# --- what operators read ---

def test_admin_tells_that_it_lives_and_is_ready(gateway):
    daemon = gateway(free_port())
    assert daemon.admin("/healthz") == (200, "ok\n")
    assert daemon.admin("/readyz") == (200, "ready\n")
    status, text = daemon.admin("/nothing")
    assert status == 404 and "/metrics" in text


def test_admin_takes_more_requests_on_a_connection_but_no_other_method(
        gateway):
    daemon = gateway(free_port())
    with Client(daemon.admin_port) as c:
        assert c.request("/healthz", host="localhost").body == b"ok\n"
        m = c.request("/healthz", method="HEAD", host="localhost")
        assert (m.status, m.get("Content-Length")) == (200, "3")
        m = c.request("/metrics?x=1", host="localhost")
        assert m.get("Content-Type").startswith("text/plain; version=0.0.4")
        m = c.request("/metrics", method="DELETE", host="localhost")
        assert (m.status, m.get("Allow")) == (405, "GET, HEAD")
        assert c.request("/healthz", host="localhost").status == 200
    with Client(daemon.admin_port) as c:
        c.send(b"what\r\n\r\n")
        assert c.read_message().status == 400
        assert c.at_end()


def test_metrics_are_as_prometheus_wants_them(
        penstock, upstream, nginx, tmp_path):
    ports = [free_port() for _ in range(3)]
    server = upstream(answering())
    daemon = penstock(f"""
        [listener one]
        mode = forward
        bind = 127.0.0.1:{ports[0]}
        pool_idle = 200ms
        limits = all
        [listener two]
        mode = gateway
        bind = 127.0.0.1:{ports[1]}
        upstream = u
        [listener three]
        mode = tcp
        bind = 127.0.0.1:{ports[2]}
        upstream = u
        [upstream u]
        server = {server.server}
        server = 127.0.0.1:{nginx.port}
        pool_idle = 200ms
        [limit all]
        rate = 2/h
        concurrency = 5
        """)
    with Client(ports[0]) as c:
        for _ in range(3):
            c.request(f"http://{server.server}/")
        c.request("/what")
    for port in ports[1:]:
        with Client(port) as c:
            assert c.request("/").status == 200
    text = daemon.metrics_text()
    check_metrics(text)
    for name in ("requests_total", "failures_total", "sessions",
                 "limit_in_use", "pool_connections", "tunnels_total",
                 "loop_lag_seconds_bucket", "build_info"):
        assert f"penstock_{name}" in text
    for name in ("open_fds", "max_fds", "resident_memory_bytes",
                 "cpu_seconds_total", "start_time_seconds"):
        assert daemon.metric(f"process_{name}") > 0
    # The one that asks is there, too.
    wait_for(lambda: daemon.metric("process_open_fds") == 1 + len(
        os.listdir(f"/proc/{daemon.pid}/fd")))


def log_fields():
    """Names of the table's rows that any exchange has, and the others."""
    table = (TOP / "src/proxy/log_fields.def").read_text()
    return re.findall(r"^LOG_FIELD\((\w+),", table, re.M)


def test_a_line_of_the_log_has_every_field(gateway, upstream, tmp_path):
    server = upstream(answering(body=b"content"))
    daemon = gateway(server.port, "limits = l",
                     rest=f"{LOG.format(tmp_path)}\n"
                          "[route r]\nlistener = gateway\nupstream = up\n"
                          "[limit l]\nrate = 1/h\nburst = 2")
    before = time.time()
    with Client(daemon.port) as c:
        c.request("/a?b=c", method="POST", body=b"123", host="a.test")
        c.request("/", method="GET")
        c.request("/over")
        address = "%s:%d" % c.socket.getsockname()
    first, second, refused = logged(tmp_path, 3)     # of one worker
    assert before - 1 <= first.pop("time") <= time.time() + 1
    for name in "queue", "connect", "first_byte", "total":
        assert 0 <= first.pop(name) < 10
    assert len(first.pop("id")) == 16
    assert first == {
        "listener": "gateway", "client": address, "method": "POST",
        "host": "a.test", "target": "/a?b=c", "route": "r", "status": 200,
        "received": 3, "sent": 7, "upstream": "up",
        "server": server.server, "reused": False, "retries": 0,
        "cut": False}
    assert second["reused"] is True
    assert [refused[name] for name in ("status", "reason", "limit")] == [
        429, "rate_limited", "l"]
    assert "server" not in refused and "connect" not in refused
    # It had no user, no reason, and no dry run; nothing else is missing.
    names = {"time", *first, "queue", "connect", "first_byte", "total", "id",
             "user", "reason", "limit", "would_refuse", "would_refuse_limit",
             "throttled", "sample"}
    assert names == {"time", *log_fields()}


def test_a_tunnel_has_its_line_when_it_ends(forward, upstream, tmp_path):
    server = upstream(lambda wire: wire.send(wire.read_exactly(5) * 2))
    daemon = forward(rest=LOG.format(tmp_path))
    with Client(daemon.port) as c:
        c.send(f"CONNECT {server.server} HTTP/1.1\r\nHost: a:1\r\n\r\nhello"
               .encode())
        assert c.read_head().status == 200
        assert c.read_all() == b"hello" * 2
    line, = logged(tmp_path, 1)
    assert line["method"] == "CONNECT"
    assert line["target"] == line["server"] == server.server
    assert (line["status"], line["received"], line["sent"]) == (200, 5, 10)


def test_failures_are_logged_with_their_reason(forward, upstream, tmp_path):
    server = upstream(lambda wire: wire.read_message())
    daemon = forward(rest=LOG.format(tmp_path))
    with Client(daemon.port) as c:
        c.request(f"http://{server.server}/1")
        c.request(f"http://127.0.0.1:{free_port()}/2")
        c.request("/origin-form")
    with Client(daemon.port) as c:
        c.send(b"\x16\x03\x01\x02\r\n\r\n")
        c.read_all()
    # Workers write their lines one after another: there is no order.
    assert sorted((x["status"], x["reason"]) for x in logged(tmp_path, 4)) \
        == [(400, "bad_request"), (400, "bad_request"),
            (502, "connect_refused"), (502, "upstream_closed")]


def test_a_log_line_cannot_be_forged(gateway, upstream, tmp_path):
    server = upstream(answering())
    daemon = gateway(server.port, rest=LOG.format(tmp_path))
    forged = '{"time":1,"status":200}'
    raw = [
        b'GET /"}%s HTTP/1.1\r\nHost: a\r\n\r\n' % forged.encode(),
        b"GET /\\ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /%0a%22 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /\n" + forged.encode() + b"\n HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /\xff\xc3 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /\x00\x1b[0m HTTP/1.1\r\nHost: a\r\n\r\n",
        b'GET / HTTP/1.1\r\nHost: a"b\r\n\r\n',
        b"GET / HTTP/1.1\r\nHost: a\xe2\x80\xa8\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: \xe2\x80\xa8" + forged.encode() +
        b"\r\n\r\n",
        b"\n" + forged.encode() + b"\n",
    ]
    for request in raw:
        with Client(daemon.port) as c:
            c.send(request)
            c.end()
            c.read_all()
    lines = logged(tmp_path, len(raw))
    assert all(line["listener"] == "gateway" for line in lines)
    assert all(line["client"].startswith("127.0.0.1:") for line in lines)
    assert "/%0a%22" in [line.get("target") for line in lines]
    assert (tmp_path / "access.log").read_bytes().isascii()


# --- clients that are slow to ask ---

def test_a_head_that_takes_too_long_gets_408(gateway):
    daemon = gateway(free_port(), "timeout_request_head = 300ms")
    with Client(daemon.port) as c:
        began = time.monotonic()
        c.send(b"GET / HTTP/1.1\r\n")
        # It does not help to go on sending: the time is for the whole head.
        while c.is_silent() and time.monotonic() < began + DEADLINE:
            c.send(b"X: y\r\n")
            time.sleep(0.02)
        m = c.read_message()
        assert time.monotonic() - began >= 0.3
        assert m.is_failure(408, "request_timeout")
        assert m.get("Connection") == "close"


def test_a_connection_without_a_byte_is_closed_in_silence(gateway):
    daemon = gateway(free_port(), "timeout_request_head = 200ms")
    with Client(daemon.port) as c:
        assert c.at_end()


def test_an_idle_connection_is_closed_in_silence(gateway, upstream):
    daemon = gateway(upstream(answering()).port, "timeout_keepalive = 200ms")
    with Client(daemon.port) as c:
        assert c.request("/").status == 200
        assert c.at_end()


def test_a_body_that_stops_gets_408(gateway, upstream):
    cut = threading.Event()

    def behave(wire):
        try:
            wire.read_message()
        except (EOFError, ConnectionResetError):
            cut.set()
    server = upstream(behave)
    daemon = gateway(server.port, "timeout_request_body = 200ms")
    with Client(daemon.port) as c:
        c.ask("/", method="POST", fields=["Content-Length: 10"])
        c.send(b"12345")
        m = c.read_message()
        assert m.is_failure(408, "request_timeout")
        assert m.get("Connection") == "close"
    assert cut.wait(10)


def test_an_exchange_may_have_a_time_for_all_of_it(gateway, upstream):
    server = upstream(lambda wire: wire.read_all())
    daemon = gateway(server.port, "timeout_total = 200ms")
    with Client(daemon.port) as c:
        assert c.request("/").is_failure(504, "total_timeout")


def test_slow_clients_do_not_hinder_a_fast_one(gateway, upstream):
    daemon = gateway(upstream(answering()).port,
                     "timeout_request_head = 500ms")
    slow = [Client(daemon.port) for _ in range(200)]
    for c in slow:
        c.send(b"GET / HTTP/1.1\r\nX: ")
    with Client(daemon.port) as c:
        assert c.request("/").status == 200
    for c in slow:
        assert c.read_message().status == 408
        c.close()


# --- signals ---

def is_refused(port):
    try:
        Client(port).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_drain_ends_what_is_begun_and_begins_nothing(
        gateway, upstream, number):
    held = Held()
    server = upstream(held)
    daemon = gateway(server.port)
    with Client(daemon.port) as busy, Client(daemon.port) as idle:
        busy.ask("/")
        assert held.asked.wait(10)
        daemon.signal(number)
        wait_for(lambda: daemon.admin("/readyz") == (503, "draining\n"))
        assert daemon.admin("/healthz")[0] == 200
        # From when the kernel's queue is served; before that some may get in.
        wait_for(lambda: is_refused(daemon.port))
        assert idle.at_end()            # after a second, and nothing else
        assert busy.is_silent()
        held.go.set()
        m = busy.read_message()
        assert (m.status, m.body) == (200, b"done")
        assert m.get("Connection") == "close"
        assert busy.at_end()
    assert daemon.wait() == 0


def test_a_second_signal_ends_at_once(gateway, upstream):
    held = Held()
    server = upstream(held)
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.ask("/")
        assert held.asked.wait(10)
        daemon.signal(signal.SIGTERM)
        wait_for(lambda: daemon.admin("/readyz")[0] == 503)
        assert c.is_silent()
        daemon.signal(signal.SIGTERM)
        assert daemon.wait() == 0
        held.go.set()
        try:
            assert c.read_all() == b""
        except ConnectionResetError:
            pass


def test_a_drain_has_an_end(forward, upstream, tmp_path):
    server = upstream(lambda wire: wire.read_all())
    daemon = forward(rest=f"[timeouts]\ndrain = 500ms\n{LOG.format(tmp_path)}")
    with Client(daemon.port) as c:
        c.send(f"CONNECT {server.server} HTTP/1.1\r\nHost: a:1\r\n\r\n"
               .encode())
        assert c.read_head().status == 200
        daemon.signal(signal.SIGTERM)
        assert c.is_reset()
        assert daemon.wait() == 0
    line, = log_lines(tmp_path)
    assert line["reason"] == "draining"


def test_who_is_in_the_queue_when_a_drain_begins_is_still_served(
        gateway, upstream):
    server = upstream(answering(body=b"fine"))
    daemon = gateway(server.port, rest="""
        [penstock]
        workers = 1
        max_connections = 1
        """)
    with Client(daemon.port) as a, Client(daemon.port) as b:
        assert a.request("/").status == 200
        b.ask("/")
        wait_for(lambda: daemon.count("accept_paused") > 0)
        daemon.signal(signal.SIGTERM)
        m = b.read_message()            # after the idle one was closed
        assert (m.body, m.get("Connection")) == (b"fine", "close")
    assert daemon.wait() == 0


def test_a_tunnel_goes_on_during_a_drain(forward, upstream):
    server = upstream(lambda wire: wire.send(b"got " + wire.read_all()))
    daemon = forward()
    with Client(daemon.port) as c:
        c.send(f"CONNECT {server.server} HTTP/1.1\r\nHost: a:1\r\n\r\n"
               .encode())
        assert c.read_head().status == 200
        daemon.signal(signal.SIGTERM)
        wait_for(lambda: daemon.admin("/readyz")[0] == 503)
        c.send(b"the rest")
        c.end()
        assert c.read_all() == b"got the rest"
    assert daemon.wait() == 0


def test_who_waits_when_a_drain_begins_is_still_served(gateway, upstream):
    held = Held()
    server = upstream(held)
    daemon = gateway(server.port, "limits = l", rest="""
        [limit l]
        concurrency = 1
        queue = 5
        queue_timeout = 20s
        """)
    with Client(daemon.port) as a, Client(daemon.port) as b:
        a.ask("/")
        daemon.wait_metric("penstock_limit_in_use", 1)
        b.ask("/")
        daemon.wait_metric("penstock_limit_waiting", 1)
        daemon.signal(signal.SIGTERM)
        wait_for(lambda: daemon.admin("/readyz")[0] == 503)
        held.go.set()
        for c in a, b:
            m = c.read_message()
            assert (m.status, m.get("Connection")) == (200, "close")
    assert daemon.wait() == 0


# --- all of it at once ---

class LoadedClient:
    """Asks again and again on one connection, for as long as that goes."""

    def __init__(self, port):
        self.wire = Client(port, timeout=20)
        self.responses = 0
        self.said_close = False
        self.problem = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            with self.wire as c:
                while not self.said_close:
                    m = c.request("/file")
                    if (m.status, len(m.body)) != (200, 3000):
                        raise ValueError(f"what is {m!r}?")
                    self.responses += 1
                    self.said_close = m.get("Connection") == "close"
                if not c.at_end():
                    raise ValueError("goes on after Connection: close")
        except Exception as e:
            self.problem = e


def drain_under_load(gateway, nginx, folder, seconds):
    nginx.file("file", bytes(3000))
    daemon = gateway(nginx.port, rest=LOG.format(folder))
    clients = [LoadedClient(daemon.port) for _ in range(64)]
    time.sleep(seconds / 2)             # this is a span of load
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    for client in clients:
        client.thread.join(20)
    assert [c.problem for c in clients if c.problem is not None] == []
    assert all(c.said_close and c.responses > 1 for c in clients)
    lines = log_lines(folder)
    assert len(lines) == sum(c.responses for c in clients)
    assert {line["status"] for line in lines} == {200}
    assert not any(line["cut"] for line in lines)


@pytest.mark.parametrize("seconds", [1, 10])
def test_a_drain_under_load_cuts_no_response(
        gateway, nginx, tmp_path, seconds):
    drain_under_load(gateway, nginx, tmp_path, seconds)


def test_a_killed_upstream_program_is_only_a_failed_upstream(
        gateway, tmp_path):
    """A real program that ends between two requests, not a socket of ours."""
    port = free_port()
    command = ["/usr/bin/python3", "-m", "http.server", "--bind",
               "127.0.0.1", str(port), "--directory", str(tmp_path)]
    daemon = gateway(port)
    with Client(daemon.port) as c:
        with subprocess.Popen(command, stderr=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL) as program:
            wait_for(lambda: c.request("/").status == 200)
            program.kill()
        assert c.request("/").is_failure(502, "connect_refused")


def test_what_came_while_the_process_stood_still_is_in_time(gateway, upstream):
    """The time itself is what this is about, so it is let pass."""
    go = threading.Event()

    def behave(wire):
        while wire.read_message() is not None:
            go.wait(10)
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    daemon = gateway(upstream(behave).port, """
        timeout_response = 500ms
        timeout_request_head = 500ms
        """)
    with Client(daemon.port) as asked, Client(daemon.port) as asking:
        asked.ask("/")
        asking.send(b"GET / HTTP/1.1\r\n")
        daemon.wait_metric("penstock_exchanges", 1)
        daemon.wait_metric("penstock_buffer_bytes", 2048)
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            go.set()
            asking.send(b"Host: a\r\n\r\n")
            time.sleep(1)
        finally:
            daemon.process.send_signal(signal.SIGCONT)
        assert asked.read_message().status == 200
        assert asking.read_message().status == 200


def test_scripts_run_needs_nothing_but_itself():
    """What the README begins with; this namespace has only loopback."""
    with subprocess.Popen([str(TOP / "scripts" / "run")], text=True,
                          stdout=subprocess.PIPE) as run:
        try:
            said = list(itertools.takewhile(
                lambda line: "9480/metrics" not in line, run.stdout))
            assert "penstock: proxy on 127.0.0.1:8080\n" in said
            assert any("curl -x http://127.0.0.1:8080" in s for s in said)
            assert curl("http://127.0.0.1:9480/healthz") == b"ok\n"
        finally:
            run.terminate()
        assert run.wait(20) == 0
