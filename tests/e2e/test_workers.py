# SPDX-License-Identifier: BSD-2-Clause
"""Workers share their clients, however the kernel dealt them out.

A unix address has one socket, so that one worker accepts all that come by it
and hands them to others: what happens to those is seen best there.
"""

import signal
import socket

from penstock import DEADLINE, Client, Wire, answering, wait_for

from test_life import Held


class UnixClient(Client):
    """A connection to a unix socket."""

    def __init__(self, path, timeout=DEADLINE):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(timeout)
        s.connect(str(path))
        Wire.__init__(self, s, timeout)


def start(penstock, folder, server, workers, lines="", rest=""):
    """A gateway on a unix socket."""
    daemon = penstock(f"""
        [penstock]
        workers = {workers}
        {rest}
        [listener web]
        mode = gateway
        bind = unix:{folder}/in
        upstream = up
        {lines}
        [upstream up]
        server = {server.server}
        pool_idle = 100ms
        """)
    daemon.path = folder / "in"
    return daemon


def loads(daemon, workers):
    """How many clients each worker has."""
    return [daemon.metric("penstock_worker_sessions", worker=str(i))
            for i in range(workers)]


def close_all(clients):
    for c in clients:
        c.close()


def test_clients_of_a_unix_listener_are_spread(penstock, upstream,
                                               short_path):
    daemon = start(penstock, short_path, upstream(answering()), 3)
    clients = [UnixClient(daemon.path) for _ in range(60)]
    for c in clients:
        assert c.request("/").status == 200
    have = loads(daemon, 3)
    assert sum(have) == 60
    # A quarter more than another, and two, and the one that was kept for it.
    assert max(have) <= min(have) * 1.25 + 3, have
    given = daemon.count("handovers", way="given")
    assert given == daemon.count("handovers", way="taken")
    assert given == 60 - max(have)
    close_all(clients)
    wait_for(lambda: sum(loads(daemon, 3)) == 0)


def test_one_worker_keeps_its_clients(penstock, upstream, short_path):
    daemon = start(penstock, short_path, upstream(answering()), 1)
    clients = [UnixClient(daemon.path) for _ in range(20)]
    for c in clients:
        assert c.request("/").status == 200
    assert loads(daemon, 1) == [20]
    assert daemon.count("handovers") == 0
    close_all(clients)


def test_who_is_handed_over_comes_in_by_the_same_listener(
        penstock, upstream, short_path):
    a, b = upstream(answering(body=b"a")), upstream(answering(body=b"b"))
    penstock(f"""
        [penstock]
        workers = 3
        [listener a]
        mode = gateway
        bind = unix:{short_path}/a
        upstream = a
        [listener b]
        mode = tcp
        bind = unix:{short_path}/b
        upstream = b
        [upstream a]
        server = {a.server}
        pool_idle = 100ms
        [upstream b]
        server = {b.server}
        """)
    clients = [(name, UnixClient(short_path / name))
               for _ in range(20) for name in "ab"]
    for name, c in clients:
        assert c.request("/").body == name.encode()
    close_all(c for _, c in clients)


def test_permits_go_with_who_is_handed_over(penstock, upstream, short_path):
    daemon = start(penstock, short_path, upstream(answering()), 2,
                   rest="max_connections = 20")
    for _ in range(3):
        clients = [UnixClient(daemon.path) for _ in range(20)]
        for c in clients:
            assert c.request("/").status == 200
        with UnixClient(daemon.path) as late:
            late.ask("/")
            assert late.is_silent()
            assert min(loads(daemon, 2)) > 0
            close_all(clients)
            assert late.read_message().status == 200
    assert daemon.count("handovers", way="given") > 0


def test_limits_count_who_is_handed_over(penstock, upstream, short_path):
    daemon = start(penstock, short_path, upstream(answering()), 2,
                   lines="max_connections = 12")
    clients = [UnixClient(daemon.path) for _ in range(12)]
    for c in clients:
        assert c.request("/").status == 200
    with UnixClient(daemon.path) as late:
        assert late.request("/").is_failure(503, "connection_limit")
    assert min(loads(daemon, 2)) > 0
    close_all(clients)


def queue_up(daemon, count):
    """So many clients that ask while the daemon stands still."""
    daemon.signal(signal.SIGSTOP)
    clients = [UnixClient(daemon.path) for _ in range(count)]
    for c in clients:
        c.ask("/")
    return clients


def test_none_is_lost_on_its_way_when_a_drain_begins(penstock, upstream,
                                                     short_path):
    server = upstream(answering(body=b"fine"))
    for _ in range(5):
        daemon = start(penstock, short_path, server, 3)
        clients = queue_up(daemon, 100)
        daemon.signal(signal.SIGTERM)
        daemon.signal(signal.SIGCONT)
        for c in clients:
            assert c.read_message().body == b"fine"
            c.close()
        assert daemon.wait() == 0


def test_a_stop_ends_those_on_their_way(penstock, upstream, short_path):
    held = Held()
    server = upstream(held)
    for _ in range(5):
        daemon = start(penstock, short_path, server, 3)
        clients = queue_up(daemon, 100)
        daemon.signal(signal.SIGTERM)
        daemon.signal(signal.SIGINT)
        daemon.signal(signal.SIGCONT)
        assert daemon.wait() == 0
        close_all(clients)
    held.go.set()
