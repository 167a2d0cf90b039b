# SPDX-License-Identifier: BSD-2-Clause
"""/status.json tells what /metrics does; OpenMetrics; who may ask, and what."""

import http.client
import json
import re
import signal
import socket
import threading
import time

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics)

from penstock import (Client, DEADLINE, MEASURES_MEMORY, PRIVATE, Wire,
                      answering, check_metrics, free_port, run_penstock,
                      tidy, wait_for)
from servers import Book

LIMIT = """
    [limit two]
    concurrency = 2
    queue = 1
    queue_timeout = 5s
    """


def status(daemon, query=""):
    code, text = daemon.admin("/status.json" + query)
    assert code == 200, text
    return json.loads(text)


def ask(daemon, path, method="GET", version="1.1", fields=(), host=None):
    """A request to the admin listener; its answer."""
    with Client(daemon.admin_port) as c:
        lines = [f"{method} {path} HTTP/{version}", *fields]
        host = f"127.0.0.1:{daemon.admin_port}" if host is None else host
        if host:
            lines.append(f"Host: {host}")
        c.send("\r\n".join([*lines, "", ""]).encode("latin-1"))
        return c.read_message(to_head=method == "HEAD")


@pytest.fixture
def held(gateway, upstream):
    """A gateway with a limit of two, a queue of one, and an upstream that
    answers what asks for /wait only when `.let` is set."""
    let = threading.Event()
    up = upstream(answering(body=b"hello", think=lambda r: (
        r.target == "/wait" and let.wait(DEADLINE))))
    daemon = gateway(up.port, "limits = two", rest=LIMIT)
    daemon.let, daemon.up = let, up.port
    yield daemon
    let.set()


def fill(daemon):
    """Two are inside, one waits, and three were refused; the clients."""
    clients = []
    for inside, waiting in ((1, 0), (2, 0), (2, 1)):
        c = Client(daemon.port)
        c.ask("/wait")
        clients.append(c)
        daemon.wait_metric("penstock_limit_in_use", inside, limit="two")
        daemon.wait_metric("penstock_limit_waiting", waiting, limit="two")
    with Client(daemon.port) as c:
        for _ in range(3):
            assert c.request("/").is_failure(503, "queue_full")
    daemon.wait_count("limit_refused", 3, limit="two")
    return clients


def finish(daemon, clients):
    daemon.let.set()
    for c in clients:
        assert c.read_message().status == 200
        c.close()


# --- what is told ---

def test_what_status_says_is_what_metrics_say(held):
    clients = fill(held)
    said, now = status(held), held.metric
    listener, = said["listeners"]
    web = {"listener": "gateway"}
    assert listener["mode"] == "gateway"
    assert listener["bind"] == [f"127.0.0.1:{held.port}"]
    assert listener["sessions"] == 3 == now("penstock_sessions", **web)
    assert listener["sessions_total"] == now("penstock_sessions_total", **web)
    assert listener["exchanges"] == 3 == now("penstock_exchanges", **web)
    assert listener["codes"] == {"503": 3} and listener["own_5xx"] == 3
    assert listener["failures"] == {"queue_full": 3}
    assert sum(listener["duration"]) == now(
        "penstock_request_duration_seconds_count", **web) == 3
    limit, = said["limits"]
    assert (limit["in_use"], limit["permits"], limit["waiting"],
            limit["queue"], limit["refused"]) == (
                2, 2, 1, 1, {"queue_full": 3})
    up, = said["upstreams"]
    server, = up["servers"]
    assert (up["pool_busy"], up["pool_idle"]) == (2, 0)
    assert server["up"] and server["in_use"] == 2 == now(
        "penstock_server_in_use")
    assert server["server"] == f"127.0.0.1:{held.up}"
    assert sum(w["sessions"] for w in said["workers"]) == 3
    assert said["process"]["open_fds"] == now("process_open_fds")
    assert said["state"] == "serving" and not said["held"]
    assert said["reload"] is None
    assert said["file"] == str(held.file)
    finish(held, clients)


def test_histograms_have_the_buckets_that_metrics_have(held):
    with Client(held.port) as c:
        for _ in range(20):
            c.request("/")
    held.wait_metric("penstock_request_duration_seconds_count", 20)
    said = status(held)
    counts, total = said["listeners"][0]["duration"], 0
    assert len(counts) == len(said["bounds"]) + 1
    for bound, n in zip([*said["bounds"], "+Inf"], counts):
        total += n
        le = bound if bound == "+Inf" else f"{bound:g}"
        assert held.metric("penstock_request_duration_seconds_bucket",
                           le=le) == total, le


def test_the_configuration_comes_with_the_origin_of_every_value(held):
    assert "config" not in status(held)
    rows = status(held, "?config=1")["config"]
    lines = held.file.read_text().splitlines()
    line = lines.index("concurrency = 2") + 1
    assert ["limit", "two", "concurrency", "2", f"{held.file}:{line}"] in rows
    assert ["limit", "two", "queue_order", "fifo", "default"] in rows
    # It is what -T prints.
    dumped = run_penstock("-T", "-c", held.file).stdout
    for section, name, keyword, value, origin in rows:
        assert f"{keyword} = {value}\t; {origin}" in dumped


def test_the_past_is_told_to_who_comes_now(held):
    clients = fill(held)
    wait_for(lambda: status(held)["troubles"])
    finish(held, clients)
    with Client(held.port) as c:
        c.request("/")
    held.wait_count("requests", 4, code="200")

    def seen():
        h = status(held)["history"]
        rows = [dict(zip(h["fields"], s)) for s in h["samples"]]
        return rows if any(r["requests"] > 0 and r["slow"] > 0
                           for r in rows) else None
    rows = wait_for(seen)
    numbers = [r["number"] for r in rows]
    assert numbers == list(range(1, len(rows) + 1))
    assert all(a["at"] < b["at"] for a, b in zip(rows, rows[1:]))
    assert any(r["refused"] > 0 for r in rows)
    assert any(r["waiting"] == 1 and r["exchanges"] == 3 for r in rows)
    # A page that has some gets those that are new.
    later = status(held, f"?since={numbers[-1]}")["history"]["samples"]
    assert all(s[0] > numbers[-1] for s in later)
    troubles = {(t.get("limit"), t.get("listener")): t
                for t in status(held)["troubles"]}
    assert set(troubles) == {("two", None), (None, "gateway")}
    for t in troubles.values():
        assert (t["reason"], t["kind"], t["total"], t["in_10m"]) == (
            "queue_full", "refused", 3, 3)


def test_the_last_reload_is_told(held):
    assert status(held)["reload"] is None
    held.signal(signal.SIGHUP)
    done = wait_for(lambda: status(held)["reload"])
    assert done["ok"] and done["at"] == pytest.approx(time.time(), abs=60)
    text = held.file.read_text()
    held.file.write_text(text + "[limit two]\n")
    held.signal(signal.SIGHUP)
    wait_for(lambda: not status(held)["reload"]["ok"])
    assert "log" in status(held)["reload"]["text"]
    held.file.write_text(text.replace("queue = 1", "queue = 7"))
    held.signal(signal.SIGHUP)
    wait_for(lambda: status(held)["reload"]["ok"])
    said = status(held, "?config=1")
    assert said["limits"][0]["queue"] == 7
    assert "7" in [v for _, n, k, v, _ in said["config"]
                   if (n, k) == ("two", "queue")]


def test_what_a_server_sends_is_told_from_what_is_ours(gateway, upstream):
    daemon = gateway(upstream(answering(503)).port)
    with Client(daemon.port) as c:
        assert c.request("/").status == 503
    daemon.wait_count("requests", 1, code="503")
    listener, = status(daemon)["listeners"]
    assert (listener["codes"], listener["own_5xx"]) == ({"503": 1}, 0)

    def failed():
        h = status(daemon)["history"]
        at = h["fields"].index("failed")
        return any(s[at] > 0 for s in h["samples"])
    wait_for(failed)


def test_no_server_at_all_is_a_failure_and_no_refusal(gateway):
    daemon = gateway("nowhere.invalid:1")
    with Client(daemon.port) as c:
        assert c.request("/").is_failure(503, "no_server")
    t, = wait_for(lambda: status(daemon)["troubles"])
    assert (t["listener"], t["reason"], t["kind"]) == (
        "gateway", "no_server", "failed")
    server, = status(daemon)["upstreams"][0]["servers"]
    assert not server["up"]


def test_status_is_a_page_that_no_other_can_use(held):
    m = ask(held, "/status")
    policy = m.get("Content-Security-Policy")
    nonce = re.search(r"script-src 'nonce-(\w{32})'", policy)[1]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert m.get("X-Content-Type-Options") == "nosniff"
    assert m.get("Cross-Origin-Resource-Policy") == "same-origin"
    page = m.body.decode()
    assert "@NONCE@" not in page
    assert page.count(nonce) == page.count("nonce=") == 2
    assert nonce not in ask(held, "/status").body.decode()
    # Nothing comes from elsewhere, and nothing runs but that one script.
    assert not re.search(r"""\b(src|on\w+)\s*=\s*["']""", page)
    assert not re.search(r'\sstyle\s*=\s*"', page)
    assert set(re.findall(r'https?://[^\s"\')]+', page)) == {
        "http://www.w3.org/2000/svg"}


def test_the_root_leads_to_the_page(held):
    m = ask(held, "/")
    assert (m.status, m.get("Location")) == (302, "/status")
    assert "/status" in ask(held, "/nothing").body.decode()


# --- OpenMetrics ---

OPEN = "application/openmetrics-text"
PROMETHEUS = f"Accept: {OPEN};version=1.0.0,{OPEN};version=0.0.1;q=0.75," \
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


@pytest.mark.parametrize("accept, is_open", [
    (PROMETHEUS, True),
    (f"Accept: {OPEN}", True),
    (f"accept: text/plain;q=0.5 , {OPEN.upper()} ; q=0.5", True),
    (f"Accept: text/plain, {OPEN};q=0.9", False),
    (f"Accept: {OPEN};q=0", False),
    (f"Accept: {OPEN};q=0.000, */*", False),
    ("Accept: */*", False), ("Accept: text/plain", False),
    ("Accept: ,;q,=", False), ("X-Nothing: 1", False)])
def test_openmetrics_is_for_who_asks_for_it(held, accept, is_open):
    m = ask(held, "/metrics", fields=[accept])
    assert m.get("Content-Type").startswith(
        f"{OPEN}; version=1.0.0" if is_open else "text/plain; version=0.0.4")
    assert m.get("Vary") == "Accept"
    assert m.body.endswith(b"# EOF\n") == is_open
    if not is_open:
        check_metrics(m.body.decode())


def test_openmetrics_says_what_the_other_format_says(held, tmp_path):
    with Client(held.port) as c:
        for _ in range(5):
            c.request("/")
    held.wait_count("requests", 5)
    text = ask(held, "/metrics", fields=[PROMETHEUS]).body.decode()
    families = {f.name: f for f in parse_openmetrics(text)}
    requests = families["penstock_requests"]
    assert requests.type == "counter"
    assert [(s.name, s.value) for s in requests.samples] == [
        ("penstock_requests_total", 5)]
    assert families["process_cpu_seconds"].type == "counter"
    theirs = set(re.findall(r"^# TYPE (\S+) ", held.metrics_text(), re.M))
    # What a gauge is called already keeps its name, as of unknown type.
    unknown = {n for n, f in families.items() if f.type == "unknown"}
    assert unknown == {"penstock_sessions_total", "penstock_tunnels_total"}
    assert {n if n in unknown else re.sub("_total$", "", n)
            for n in theirs} == set(families)
    bounds = re.findall(r'duration_seconds_bucket\{.*le="(.*?)"', text)
    assert "1.0" in bounds and "0.0001" in bounds and bounds[-1] == "+Inf"


def test_a_slow_request_is_an_exemplar_by_its_id_in_the_log(
        gateway, upstream, tmp_path):
    book = Book(tmp_path)
    let = threading.Event()
    up = upstream(answering(think=lambda r: let.wait(0.12)))
    daemon = gateway(up.port, rest=book.lines)
    with Client(daemon.port) as c:
        c.request("/")
    entry, = book.wait(1)
    text = ask(daemon, "/metrics", fields=[PROMETHEUS]).body.decode()
    families = {f.name: f for f in parse_openmetrics(text)}
    exemplars = [s.exemplar for s in
                 families["penstock_request_duration_seconds"].samples
                 if s.exemplar]
    slow = [e for e in exemplars if e.labels == {"id": entry["id"]}]
    assert len(slow) == 1
    assert slow[0].value == pytest.approx(float(entry["total"]), abs=1e-3)
    assert float(slow[0].timestamp) == pytest.approx(float(entry["time"]), abs=1)
    assert status(daemon)["listeners"][0]["slowest"]["id"] == entry["id"]
    assert "# {" not in daemon.metrics_text()


# --- who may ask ---

@pytest.mark.parametrize("host", [
    "localhost", "LOCALHOST:9480", "127.0.0.1", "127.0.0.1:1", "[::1]:9480",
    "10.1.2.3", "admin.test", "ADMIN.test:80", "a.sub.test"])
def test_a_host_that_is_ours_is_answered(gateway, host):
    port = free_port()
    daemon = gateway(free_port(), admin_port=port, rest=f"""
        [admin]
        bind = 127.0.0.1:{port}
        hosts = admin.test *.sub.test
        """)
    assert ask(daemon, "/metrics", host=host).status == 200


@pytest.mark.parametrize("host", [
    "evil.test", "localhost.evil.test", "127.0.0.1.evil.test", "sub.test",
    "xadmin.test", "admin.test.evil.test:9480", "127.0.0.1.", "0x7f.1",
    "localhost."])
def test_a_name_that_was_pointed_here_is_not(gateway, host):
    port = free_port()
    daemon = gateway(free_port(), admin_port=port, rest=f"""
        [admin]
        bind = 127.0.0.1:{port}
        hosts = admin.test *.sub.test
        """)
    for path in ("/metrics", "/status", "/status.json", "/healthz"):
        m = ask(daemon, path, host=host)
        assert m.status == 421, path
        assert "penstock_" not in m.body.decode()
    assert ask(daemon, "http://localhost/metrics", host=host).status == 421


def test_who_names_no_host_is_no_browser(held):
    assert ask(held, "/healthz", version="1.0", host="").status == 200
    assert ask(held, "/healthz", host="").status == 400


def test_an_address_that_is_not_loopback_needs_allow(gateway):
    port = free_port()
    config = tidy(f"""
        [listener f]
        mode = forward
        bind = 127.0.0.1:1
        [admin]
        bind = {PRIVATE}:{port}
        """)
    daemon = gateway(free_port(), admin_port=port, rest=f"""
        [admin]
        bind = 127.0.0.1:{port} {PRIVATE}:{port}
        allow = 10.9.8.0/24
        """)
    file = daemon.folder / "bare.conf"
    file.write_text(config)
    r = run_penstock("-t", "-c", file)
    assert r.returncode == 1
    assert f"{file}:6: [admin] allow is missing" in r.stderr
    with Client(port, host=PRIVATE) as c:
        assert c.request("/healthz", host=PRIVATE).status == 200


def test_who_is_not_allowed_is_closed_and_said(gateway):
    port = free_port()
    daemon = gateway(free_port(), admin_port=port, rest=f"""
        [admin]
        bind = 127.0.0.1:{port} {PRIVATE}:{port}
        allow = 10.1.0.0/16
        """)
    with Client(port, host=PRIVATE) as c:
        try:
            assert c.at_end()
        except ConnectionResetError:
            pass
    wait_for(lambda: f"admin: {PRIVATE} isn't in admin.allow"
             in daemon.said())
    assert daemon.admin("/healthz")[0] == 200


# --- what changes something ---

def over_unix(path, request):
    s = socket.socket(socket.AF_UNIX)
    s.connect(str(path))
    with Wire(s) as w:
        w.send(request)
        return w.read_message()


def test_writes_are_for_unix_sockets(gateway, short_path):
    port = free_port()
    daemon = gateway(free_port(), admin_port=port, rest=f"""
        [admin]
        bind = 127.0.0.1:{port} unix:{short_path}/admin
        """)

    def post(path):
        # Over a unix socket any Host will do: no browser comes that way.
        return over_unix(short_path / "admin", f"POST {path} HTTP/1.1\r\n"
                         "Host: anything.test\r\n\r\n".encode())
    for path in ("/drain", "/ready", "/log-level?level=debug"):
        assert ask(daemon, path, "POST").status == 403
        assert ask(daemon, path).status == 405
        assert ask(daemon, path).get("Allow") == "POST"
    assert daemon.admin("/readyz") == (200, "ready\n")
    assert post("/drain").status == 200
    assert daemon.admin("/readyz") == (503, "draining\n")
    assert status(daemon)["held"] and status(daemon)["state"] == "serving"
    assert daemon.admin("/healthz")[0] == 200
    with Client(daemon.port) as c:
        assert c.request("/").is_failure(502, "connect_refused")
    assert post("/ready").body == b"ready\n"
    assert daemon.admin("/readyz") == (200, "ready\n")
    assert not status(daemon)["held"]
    assert post("/log-level?level=debug").body == b"debug\n"
    assert post("/log-level?level=loud").status == 400
    assert post("/log-level").status == 400
    for said in ("admin: drain", "admin: ready", "admin: log level debug"):
        wait_for(lambda: said in daemon.said())


def test_admin_writes_lets_all_do_so_but_no_other_site_s_page(gateway):
    port = free_port()
    daemon = gateway(free_port(), admin_port=port, rest=f"""
        [admin]
        bind = 127.0.0.1:{port}
        admin_writes = on
        """)
    here = f"http://127.0.0.1:{port}"
    for origin in ("http://evil.test", "null", "", f"{here}.evil.test",
                   f"https://127.0.0.1:{port}"):
        assert ask(daemon, "/drain", "POST", fields=[
            f"Origin: {origin}"] if origin else ["Origin: x"]).status == 403
    assert daemon.admin("/readyz")[0] == 200
    assert ask(daemon, "/drain", "POST",
               fields=[f"Origin: {here}"]).status == 200
    assert daemon.admin("/readyz")[0] == 503
    # A body is not wanted, and does no harm.
    assert ask(daemon, "/ready", "POST",
               fields=["Content-Length: 0"]).status == 200
    assert daemon.admin("/readyz")[0] == 200


# --- what may not exhaust it ---

def test_idle_connections_make_room_for_who_asks(held):
    idle = [Client(held.admin_port) for _ in range(200)]
    for _ in range(3):
        assert held.admin("/healthz") == (200, "ok\n")
    for c in idle:
        c.close()


def test_heads_that_never_end_make_room_too(held):
    slow = []
    for _ in range(200):
        slow.append(Client(held.admin_port))
        slow[-1].send(b"GET /metrics HTTP/1.1\r\nX: ")
    assert held.admin("/healthz") == (200, "ok\n")
    for c in slow:
        c.close()


def test_a_head_that_trickles_ends_after_its_time(held):
    """Each byte is in time; together they are not."""
    with Client(held.admin_port, timeout=1) as c:
        c.send(b"GET /healthz HTTP/1.1\r\n")

        def is_cut():
            try:
                c.send(b"X")
                return c.socket.recv(1) == b""
            except TimeoutError:
                return False
            except OSError:
                return True
        wait_for(is_cut, 20)
    assert held.admin("/healthz") == (200, "ok\n")


@pytest.mark.parametrize("junk", [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100,
    b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 9000,
    b"GET /" + b"x" * 3000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: 1\r\n" * 70 + b"\r\n",
    b"GET / HTTP/9.9\r\nHost: a\r\n\r\n", b"\r\n" * 50,
    b"GET / HTTP/1.1\nHost: a\n\n", b"A" * 200000,
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"],
    ids=("tls", "head", "line", "fields", "version", "empty", "lf", "endless",
         "hosts"))
def test_garbage_is_refused_and_closed(held, junk):
    with Client(held.admin_port) as c:
        try:
            c.send(junk)
            m = c.read_message()
            assert m.status == 400 and c.read_all() == b""
        except (ConnectionResetError, BrokenPipeError):
            pass
    assert held.admin("/healthz") == (200, "ok\n")


def test_a_body_without_end_ends_with_the_answer(held):
    with Client(held.admin_port) as c:
        c.ask("/metrics", host="localhost", fields=[
            "Content-Length: 1000000000000"])
        assert c.read_message().get("Connection") == "close"
        try:
            assert c.at_end()
        except ConnectionResetError:
            pass
    assert held.admin("/healthz") == (200, "ok\n")


def test_pages_that_nobody_reads_cost_no_more_than_they_may(held):
    """And others are served meanwhile."""
    greedy = []
    for _ in range(60):
        c = Client(held.admin_port, buffer=4096)
        for _ in range(30):
            c.ask("/status.json?config=1", host="localhost")
        greedy.append(c)
    assert held.admin("/healthz") == (200, "ok\n")
    assert held.resident_bytes() < 64 << 20 or not MEASURES_MEMORY
    for c in greedy:
        c.abort()
    assert held.admin("/healthz") == (200, "ok\n")


def test_many_requests_at_once_are_answered_in_order(held):
    with Client(held.admin_port) as c:
        for i in range(100):
            c.ask("/healthz" if i % 2 else "/readyz", host="localhost")
        for i in range(100):
            assert c.read_message().body == (b"ok\n" if i % 2 else b"ready\n")


def test_a_listening_page_does_not_hide_that_it_drains(held):
    """Over a connection that was open before."""
    c = http.client.HTTPConnection("127.0.0.1", held.admin_port,
                                   timeout=DEADLINE)
    clients = fill(held)
    c.request("GET", "/status.json")
    assert json.loads(c.getresponse().read())["state"] == "serving"
    held.signal(signal.SIGTERM)

    def is_draining():
        c.request("GET", "/status.json")
        return json.loads(c.getresponse().read())["state"] == "draining"
    wait_for(is_draining)
    finish(held, clients)
    c.close()
    assert held.wait() == 0
