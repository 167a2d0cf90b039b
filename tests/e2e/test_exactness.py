# SPDX-License-Identifier: BSD-2-Clause
"""HTTP/1.1 to the letter, where the conformance table cannot say it.

Sizes, sockets and memory: what bytes mean is in tests/conformance.
"""

import threading

import pytest

from penstock import (Client, answering, answering_with, free_port, noting,
                      wait_for)

ONE_WORKER = "[penstock]\nworkers = 1\n"
GET = b"GET / HTTP/1.1\r\nHost: a\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
FINE = OK + b"Content-Length: 4\r\n\r\nfine"
UPGRADE = ["Upgrade: websocket", "Connection: Upgrade"]


def test_a_server_that_ends_first_is_heard_to_its_end(forward, upstream):
    got = []

    def behave(wire):
        wire.send(b"x" * (16 << 20))
        wire.end()
        got.append(wire.read_all())
    server = upstream(behave)
    daemon = forward()
    with Client(daemon.port, buffer=4096) as c:
        c.send(f"CONNECT {server.server} HTTP/1.1\r\n"
               f"Host: {server.server}\r\n\r\nearly ".encode())
        assert c.read_head().status == 200
        daemon.wait_metric("penstock_flows_paused", 1)
        c.send(b"late")
        assert len(c.read_all()) == 16 << 20
        c.send(b" and later")
        c.end()
        wait_for(lambda: got)
    assert got == [b"early late and later"]


@pytest.mark.parametrize("line", [b"X: %s", b"X:%s", b"Upgrade: %s"])
def test_a_request_that_grows_on_its_way_is_whole_or_refused(
        gateway, upstream, line):
    requests = []
    server = upstream(noting(requests))
    daemon = gateway(server.port, "head_size = 64k")
    name = line[:line.index(b":")].decode()
    head = POST + line + b"\r\nConnection: upgrade\r\n" \
        b"Content-Length: 6\r\n\r\n"
    statuses = []
    for size in 40000, 65100, 65200, 65300, 65400, 65500, 65530, 65536:
        value = b"y," * ((size + 2 - len(head)) // 2)
        requests.clear()
        with Client(daemon.port) as c:
            c.send(head % value + b"body\r\n")
            m = c.read_message()
        statuses.append(m.status)
        assert m.status == 200 or m.is_failure(431, "head_too_large")
        for r in requests:
            assert r.body == b"body\r\n"
            seen = r.get(name).replace(" ", "")
            assert seen.rstrip(",") == value.decode().rstrip(",")
        assert len(requests) == (m.status == 200)
    assert statuses[0] == 200 or name == "Upgrade"
    assert statuses[-1] == 431


@pytest.mark.parametrize("start", [
    b"HTTP/1.1 103 E", b"HTTP/1.1 200 OK",
    b"HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket"])
def test_a_response_that_grows_on_its_way_is_whole_or_refused(
        gateway, upstream, start):
    head = start + b"\r\nX: %s\r\n\r\n"
    value = b"y" * (65538 - len(head))
    server = upstream(answering_with(head % value + FINE))
    daemon = gateway(server.port, "head_size = 64k")
    with Client(daemon.port) as c:
        c.ask("/", fields=UPGRADE)
        assert c.read_message(interim=True).is_failure(
            502, "response_too_large")


def test_a_client_that_never_reads_our_answers_is_cut_off(penstock):
    port = free_port()
    daemon = penstock(f"""
        [listener g]
        mode = gateway
        bind = 127.0.0.1:{port}
        timeout_send = 200ms
        timeout_request_head = 200ms
        upstream = up
        [upstream up]
        server = 127.0.0.1:{free_port()}
        """)
    with Client(port, buffer=4096) as c:
        with pytest.raises(OSError):
            while True:
                c.send((GET + b"\r\n") * 1000)
    daemon.wait_metric("penstock_sessions", 0, listener="g")


def test_a_socket_that_is_not_there_refuses(gateway, tmp_path):
    daemon = gateway(f"unix:{tmp_path}/none")
    with Client(daemon.port) as c:
        assert c.request("/").is_failure(502, "connect_refused")


@pytest.mark.parametrize("answer", [
    FINE, b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\n\r\n"], ids=["200", "101"])
def test_what_is_sent_before_an_upgrade_waits(gateway, upstream, answer):
    size = 8 << 20
    go = threading.Event()

    def behave(wire):
        wire.read_message()
        go.wait(10)
        wire.send(answer)
        if b"101" in answer:
            wire.send(b"%d" % len(wire.read_all()))
        else:
            assert wire.at_end()
    server = upstream(behave)
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.ask("/", fields=UPGRADE)
        sending = threading.Thread(target=send_and_end, args=(c, size))
        sending.start()
        wait_for(lambda: daemon.metric("penstock_buffer_bytes") > 0)
        assert daemon.metric("penstock_buffer_bytes") <= 128 * 1024
        go.set()
        m = c.read_message()
        if m.status == 101:
            assert c.read_all() == b"%d" % size
        else:
            assert m.body == b"fine" and m.get("Connection") == "close"
        sending.join(10)
        assert not sending.is_alive()


def send_and_end(wire, size):
    try:
        for _ in range(size // 65536):
            wire.send(b"x" * 65536)
        wire.end()
    except OSError:
        pass


def test_a_413_during_an_upload_arrives_though_the_server_resets(
        gateway, upstream):
    def behave(wire):
        wire.read_head()
        wire.send(b"HTTP/1.1 413 Too Much\r\nContent-Length: 3\r\n\r\nbig")
        # Closed with bytes unread: a reset.
    server = upstream(behave)
    daemon = gateway(server.port, rest=ONE_WORKER)
    for _ in range(5):
        with Client(daemon.port) as c:
            c.send(POST + b"Content-Length: %d\r\n\r\n" % (256 << 10))
            c.send(b"x" * (128 << 10))
            m = c.read_message()
            assert (m.status, m.body) == (413, b"big")
            assert m.get("Connection") == "close"
            c.send(b"x" * (128 << 10))
            assert c.at_end()


def test_a_pipeline_that_nobody_reads_is_bounded(gateway, upstream):
    server = upstream(answering(body=b"x" * 1000))
    daemon = gateway(server.port)
    with Client(daemon.port, buffer=4096) as c:
        c.socket.settimeout(1)
        with pytest.raises(TimeoutError):
            while True:
                c.send((GET + b"\r\n") * 1000)
        assert daemon.metric("penstock_buffer_bytes") <= 256 * 1024


def test_a_deep_pipeline_is_answered_whole(gateway, upstream):
    requests = []
    server = upstream(noting(requests))
    daemon = gateway(server.port)
    n = 5000
    with Client(daemon.port) as c:
        sending = threading.Thread(target=c.send, args=(b"".join(
            b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % i
            for i in range(n)),))
        sending.start()
        for _ in range(n):
            assert c.read_message().status == 200
        sending.join(10)
    assert [r.target for r in requests] == [f"/{i}" for i in range(n)]
    assert daemon.count("failures") == 0


def test_a_response_that_is_cut_takes_no_earlier_one_with_it(
        gateway, upstream):
    def behave(wire):
        wire.read_message()
        wire.send(OK + b"Content-Length: 30000\r\n\r\n" + b"x" * 30000)
        wire.read_message()
        wire.send(OK + b"Content-Length: 10\r\n\r\nhello")
    daemon = gateway(upstream(behave).port)
    # The client has more to say than is read ahead: a close would reset.
    with Client(daemon.port, buffer=4096) as c:
        c.send((GET + b"\r\n") * 2 + POST + b"Content-Length: 100000\r\n\r\n"
               + b"y" * 100000)
        daemon.wait_count("failures", 1, reason="upstream_closed")
        assert c.read_message().body == b"x" * 30000
        assert c.read_all().endswith(b"\r\n\r\nhello")


LAST = b"Connection: close\r\n\r\n"
LINGERS = "[timeouts]\nlinger = 1m"


@pytest.mark.parametrize("request_", (
    GET + LAST,
    b"GET / HTTP/1.0\r\nHost: a\r\n\r\n",
), ids=("1.1", "1.0"))
def test_a_client_that_has_asked_its_last_is_not_waited_for(
        gateway, upstream, request_):
    daemon = gateway(upstream(answering()).port, rest=LINGERS)
    with Client(daemon.port) as c:
        c.send(request_)
        assert c.read_message().status == 200
        assert c.at_end()
        daemon.wait_metric("penstock_sessions", 0)


# Old clients send a CRLF behind a body (RFC 9112 section 2.2).
@pytest.mark.parametrize("request_", (
    GET + LAST + GET + b"\r\n",
    POST + b"Content-Length: 2\r\n" + LAST + b"ok",
    POST + b"Transfer-Encoding: chunked\r\n" + LAST + b"0\r\n\r\n",
), ids=("pipelined", "length", "chunked"))
def test_a_client_that_may_send_on_after_its_last_is_read_to_its_end(
        gateway, upstream, request_):
    daemon = gateway(upstream(answering()).port, rest=LINGERS)
    with Client(daemon.port) as c:
        c.send(request_)
        assert c.read_message().status == 200
        assert c.at_end()
        c.send(b"\r\n")
        assert daemon.metric("penstock_sessions") == 1
        # What was sent was taken: no reset.
        c.end()
        daemon.wait_metric("penstock_sessions", 0)
        assert c.at_end()


def test_a_stray_byte_after_the_last_request_takes_no_answer_away(
        gateway, upstream):
    content = b"x" * (1 << 20)
    daemon = gateway(upstream(answering(body=content)).port, rest=LINGERS)
    with Client(daemon.port) as c:
        c.send(GET + LAST)
        # All of it is with the kernel, and some not yet here.
        daemon.wait_count("requests", 1, code="200")
        daemon.wait_metric("penstock_exchanges", 0)
        c.send(b"\r\n")
        assert c.read_message().body == content
        assert c.at_end()


UNREADABLE = {
    "too large": b"Host: a\r\nX: " + b"x" * 40000,
    "malformed": b"Host : a\r\n\r\n",
    "no host": b"\r\n",
}


@pytest.mark.parametrize("pieces", (False, True), ids=("whole", "in pieces"))
@pytest.mark.parametrize("fields", UNREADABLE.values(), ids=UNREADABLE)
def test_a_head_that_cannot_be_read_is_answered_without_content(
        gateway, upstream, fields, pieces):
    daemon = gateway(upstream(answering()).port)
    with Client(daemon.port) as c:
        c.send(b"\r\nHEAD / HTTP/1.1\r\n")
        if pieces:
            wait_for(lambda: daemon.metric("penstock_buffer_bytes") > 0)
        c.send(fields)
        answer = c.read_all()
    assert answer.startswith(b"HTTP/1.1 4") and answer.endswith(b"\r\n\r\n")
    assert answer.count(b"\r\n\r\n") == 1


def fill_with_heads(daemon, leave):
    """Clients whose unfinished heads leave less than that for heads."""
    clients = []

    def used():
        return daemon.metric("penstock_buffer_bytes")
    while (room := 512 * 1024 - used()) >= leave:
        clients.append(Client(daemon.port))
        before = used()
        clients[-1].send(GET + b"X: " + b"x" * (12000 if room > 16384 else 9))
        wait_for(lambda: used() > before)
    return clients


def test_head_is_answered_without_content_when_memory_is_short(gateway):
    daemon = gateway(free_port(), rest=ONE_WORKER + "buffers = 1m\n")
    with Client(daemon.port) as head, Client(daemon.port) as get:
        clients = fill_with_heads(daemon, 1024)
        get.send(GET + b"\r\n")
        assert get.read_message().is_failure(503, "memory")
        head.send(b"HEAD" + GET[3:] + b"\r\n")
        assert head.read_head().status == 503
        assert head.at_end()
    for c in clients:
        c.close()


def test_a_client_is_told_that_what_it_sent_ahead_finds_no_memory(
        gateway, upstream):
    asked, go = [], threading.Event()

    def behave(wire):
        asked.append(wire.read_message())
        go.wait(10)
    daemon = gateway(upstream(behave).port, rest=ONE_WORKER + "buffers = 1m\n")
    with Client(daemon.port) as c:
        # One block more than the first request takes, but no larger one.
        clients = fill_with_heads(daemon, 4096)
        c.send(GET + b"\r\n")
        wait_for(lambda: asked)
        c.send(GET + b"X: " + b"x" * 2000)
        assert c.read_message().is_failure(503, "memory")
    go.set()
    for c in clients:
        c.close()
