# SPDX-License-Identifier: BSD-2-Clause
"""Sockets that a service manager listens on before the daemon does."""

import re
import signal
import socket
import sys
import threading

import pytest

from penstock import (Client, DEADLINE, Wire, answering, free_port,
                      wait_for)
from test_upgrade import over_unix

# Have these descriptors be 3 and up, under these names, and be the program.
LAUNCH = """
import fcntl, os, sys
numbers, names = sys.argv[1:3]
fds = [fcntl.fcntl(int(n), fcntl.F_DUPFD, 100) for n in numbers.split(",")]
for i, fd in enumerate(fds):
    os.dup2(fd, 3 + i)
    os.close(fd)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds)))
if names:
    os.environ["LISTEN_FDNAMES"] = names
os.execv(sys.argv[3], sys.argv[3:])
"""


def handed(sockets, names=""):
    """For a Daemon that gets these sockets as it starts."""
    fds = [s.fileno() for s in sockets]
    return {"prefix": [sys.executable, "-c", LAUNCH,
                       ",".join(map(str, fds)), names],
            "pass_fds": fds}


def listening(address="127.0.0.1", family=socket.AF_INET, both=False):
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if both:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.bind(address if family == socket.AF_UNIX else (address, free_port()))
    s.listen(100)
    return s


def port_of(s):
    return s.getsockname()[1]


@pytest.fixture
def gateway_at(penstock, upstream):
    """gateway_at(binds, ...): a daemon with a listener `web` there."""
    server = upstream(answering(body=b"fine"))

    def start(binds, rest="", **more):
        return penstock(f"""
            [listener web]
            mode = gateway
            bind = {binds}
            upstream = u
            [upstream u]
            server = {server.server}
            pool_idle = 200ms
            {rest}
            """, **more)
    return start


def asks(port, host="127.0.0.1"):
    with Client(port, host) as c:
        return c.request("/").body == b"fine"


def is_free(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize("names", [["--fdname=web"], []])
def test_a_client_that_came_before_the_daemon_is_served(gateway_at, names):
    """With systemd's own program, which starts the daemon for a client."""
    port = free_port()
    got = []

    def come():
        wait_for(lambda: not is_free(port))
        with Client(port) as c:
            c.ask("/")
            got.append(c.read_message())
    client = threading.Thread(target=come)
    client.start()
    daemon = gateway_at(f"127.0.0.1:{port}", prefix=[
        "systemd-socket-activate", f"--listen=127.0.0.1:{port}", *names])
    client.join(DEADLINE)
    assert got[0].body == b"fine"
    assert asks(port)
    assert daemon.metric("penstock_sessions_total") >= 2
    daemon.baseline = {}                # it began with a client


def test_a_name_counts_more_than_an_address(gateway_at):
    bound = free_port()
    with listening() as s:
        daemon = gateway_at(f"127.0.0.1:{bound}", **handed([s], "web"))
        assert asks(port_of(s))
        assert is_free(bound)
        assert f"web on 127.0.0.1:{port_of(s)}" in daemon.said()


def test_what_is_not_handed_over_is_bound(gateway_at):
    other = free_port()
    with listening() as s:
        gateway_at(f"127.0.0.1:{port_of(s)} 127.0.0.1:{other}",
                   **handed([s], "web"))
        assert asks(port_of(s)) and asks(other)


def test_several_descriptors_and_names(penstock, upstream):
    servers = [upstream(answering(body=b"%d" % i)) for i in range(2)]
    with listening() as a, listening() as b, listening() as admin:
        daemon = penstock(f"""
            [admin]
            bind = 127.0.0.1:{free_port()}
            [listener one]
            mode = tcp
            bind = 127.0.0.1:{free_port()}
            upstream = one
            [listener two]
            mode = tcp
            bind = 127.0.0.1:{port_of(b)}
            upstream = two
            [upstream one]
            server = {servers[0].server}
            [upstream two]
            server = {servers[1].server}
            """, admin_port=port_of(admin),
            **handed([admin, a, b], "admin:one:penstock.socket"))
        for i, s in enumerate((a, b)):
            with Client(port_of(s)) as c:
                assert c.request("/").body == b"%d" % i
        for _ in range(2):
            old = daemon.upgrade()
            assert old.wait(DEADLINE) == 0
            for i, s in enumerate((a, b)):
                with Client(port_of(s)) as c:
                    assert c.request("/").body == b"%d" % i


def test_one_socket_may_be_for_both_families(gateway_at):
    with listening("::", socket.AF_INET6, both=True) as s:
        daemon = gateway_at(f":{port_of(s)}", **handed([s]))
        assert asks(port_of(s)) and asks(port_of(s), "127.0.0.1")
        with socket.create_connection(("::1", port_of(s)), DEADLINE) as c:
            with Wire(c) as w:
                w.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                assert w.read_message().body == b"fine"
        old = daemon.upgrade()
        assert old.wait(DEADLINE) == 0
        assert asks(port_of(s))


def test_who_comes_between_two_daemons_waits_and_is_served(gateway_at):
    with listening() as s:
        first = gateway_at(f"127.0.0.1:{port_of(s)}", **handed([s]))
        assert asks(port_of(s))
        first.settled()
        first.stop()
        with Client(port_of(s)) as c:
            c.ask("/")
            second = gateway_at(f"127.0.0.1:{port_of(s)}", **handed([s]))
            assert c.read_message().body == b"fine"
        second.baseline = {}            # it began with a client
        # An upgrade is no reason to close it, either.
        old = second.upgrade()
        assert old.wait(DEADLINE) == 0
        assert asks(port_of(s))
        second.settled()
        second.stop()
        Client(port_of(s)).close()


def test_a_path_stays_whose_it_is(gateway_at, short_path):
    path = short_path / "web.sock"
    with listening(str(path), socket.AF_UNIX):
        pass
    path.unlink()
    with listening(str(path), socket.AF_UNIX) as s:
        daemon = gateway_at(f"unix:{path}", **handed([s], "web"))
        assert over_unix(path).body == b"fine"
        text = daemon.file.read_text()
        for binds in f"127.0.0.1:{free_port()}", f"unix:{path}":
            daemon.file.write_text(text.replace(f"unix:{path}", binds))
            said = daemon.said().count("reloaded:")
            daemon.signal(signal.SIGHUP)
            wait_for(lambda: daemon.said().count("reloaded:") > said
                     or "in use" in daemon.said())
            assert path.is_socket()
        daemon.settled()
        daemon.stop()
        assert path.is_socket()


def test_a_listener_that_a_reload_removes_leaves_its_socket(gateway_at):
    with listening() as s:
        daemon = gateway_at(f"127.0.0.1:{port_of(s)}", **handed([s]))
        text = daemon.file.read_text()
        daemon.file.write_text(re.sub(
            r"bind = 127.0.0.1:\d+\nupstream",
            f"bind = 127.0.0.1:{free_port()}\nupstream", text))
        daemon.signal(signal.SIGHUP)
        wait_for(lambda: "reloaded" in daemon.said())
        Client(port_of(s)).close()      # into a queue that is another's


@pytest.mark.parametrize("family, kind, what", [
    (socket.AF_INET, socket.SOCK_DGRAM, "no listening stream"),
    (socket.AF_INET, socket.SOCK_STREAM, "no listening stream"),
])
def test_what_is_no_listening_socket_is_said(gateway_at, family, kind, what):
    port = free_port()
    with socket.socket(family, kind) as s:
        daemon = gateway_at(f"127.0.0.1:{port}", **handed([s], "web"))
        assert what in daemon.said() and asks(port)


def test_what_nobody_wants_is_said(gateway_at):
    port = free_port()
    with listening() as s:
        daemon = gateway_at(f"127.0.0.1:{port}", **handed([s], "other"))
        assert f"127.0.0.1:{port_of(s)} (other)" in daemon.said()
        assert asks(port)


@pytest.mark.parametrize("environment", [
    {"LISTEN_PID": "1", "LISTEN_FDS": "3"},
    {"LISTEN_PID": "what", "LISTEN_FDS": "3", "LISTEN_FDNAMES": "a:b:c"},
    {"LISTEN_FDS": "-1", "LISTEN_FDNAMES": ":"},
])
def test_what_is_meant_for_others_is_passed_over(gateway_at, environment):
    port = free_port()
    daemon = gateway_at(f"127.0.0.1:{port}", environment=environment)
    assert "descriptor" not in daemon.said() and asks(port)
