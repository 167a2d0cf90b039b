# SPDX-License-Identifier: BSD-2-Clause
"""A new process takes over from the old one, and nobody notices."""

import os
import pathlib
import re
import shutil
import signal
import socket
import stat

import pytest

import load
from load import Load
from penstock import (Client, DEADLINE, PROGRAM, Wire, answering, free_port,
                      wait_for)
from test_life import Held
from test_systemd import Manager


@pytest.fixture
def manager(short_path):
    m = Manager(str(short_path / "notify"))
    yield m
    m.close()


# --- it works ---

def test_a_new_process_serves_and_the_old_one_ends(gateway, upstream):
    held = Held()
    server = upstream(held)
    daemon = gateway(server.port)
    with Client(daemon.port) as c:
        c.ask("/")
        assert held.asked.wait(DEADLINE)
        old = daemon.upgrade()
        assert daemon.pid != old.pid
        # The new one has the pages, and no client yet; the old one has.
        assert daemon.admin("/readyz")[0] == 200
        assert daemon.metric("process_start_time_seconds") > 0
        assert old.poll() is None and c.is_silent()
        held.go.set()
        with Client(daemon.port) as other:
            assert other.request("/").get("Connection") is None
        m = c.read_message()
        assert (m.body, m.get("Connection")) == (b"done", "close")
    assert old.wait(DEADLINE) == 0


def test_it_can_be_done_again_and_with_another_program(
        penstock, upstream, tmp_path):
    port, server = free_port(), upstream(answering())
    link = tmp_path / "program"
    copies = [tmp_path / "old", tmp_path / "new"]
    for path in copies:
        shutil.copy(PROGRAM, path)
    link.symlink_to(copies[0])
    daemon = penstock(f"""
        [listener l]
        mode = tcp
        bind = 127.0.0.1:{port}
        upstream = u
        [upstream u]
        server = {server.server}
        """, program="./program")
    for _ in range(2):
        link.unlink()
        link.symlink_to(copies[1])
        old = daemon.upgrade()
        assert old.wait(DEADLINE) == 0
        assert os.readlink(f"/proc/{daemon.pid}/exe") == str(copies[1])
        with Client(port) as c:
            assert c.request("/").status == 200
    arguments = pathlib.Path(f"/proc/{daemon.pid}/cmdline").read_bytes()
    assert arguments.split(b"\0")[0] == b"./program"


def descriptors(pid):
    """What each descriptor of a process is."""
    folder = pathlib.Path(f"/proc/{pid}/fd")
    return sorted(re.sub(r"\d+", "N", os.readlink(f)) for f in
                  folder.iterdir())


def test_nothing_else_is_passed_on(gateway, upstream):
    daemon = gateway(upstream(answering()).port)
    before = None                       # without the test's own connection
    for _ in range(3):
        old = daemon.upgrade()
        assert old.wait(DEADLINE) == 0
        before = before or descriptors(daemon.pid)
    wait_for(lambda: descriptors(daemon.pid) == before,
             what=lambda: [before, descriptors(daemon.pid)])
    environment = pathlib.Path(f"/proc/{daemon.pid}/environ").read_text()
    assert environment.count("LISTEN_FDS=") == 1


def test_the_new_one_goes_by_what_the_file_says_then(
        penstock, upstream, short_path):
    servers = [upstream(answering(body=b"%d" % i)) for i in range(2)]
    ports = [free_port() for _ in range(3)]
    path = short_path / "l.sock"

    def config(server, binds, workers):
        return f"""
            [penstock]
            workers = {workers}
            [listener l]
            mode = gateway
            bind = {binds}
            upstream = u
            [upstream u]
            server = {server.server}
            """
    daemon = penstock(config(
        servers[0], f"127.0.0.1:{ports[0]} 127.0.0.1:{ports[1]}", 3))
    with Client(ports[1]) as waits:
        daemon.file.write_text(re.sub(r"(?m)^ +", "", config(
            servers[1],
            f"127.0.0.1:{ports[0]} 127.0.0.1:{ports[2]} unix:{path}", 2) +
            f"[admin]\nbind = 127.0.0.1:{daemon.admin_port}\n"))
        old = daemon.upgrade()
        # Who came by the address that is gone is still served.
        assert waits.request("/").body == b"0"
    for port in ports[0], ports[2]:
        for _ in range(8):              # whatever socket of them it hits
            with Client(port) as c:
                assert c.request("/").body == b"1"
    assert over_unix(path).body == b"1"
    assert old.wait(DEADLINE) == 0
    with pytest.raises(ConnectionRefusedError):
        Client(ports[1])
    # The path is the new one's: the old one's end has not removed it.
    old = daemon.upgrade()
    assert old.wait(DEADLINE) == 0
    assert over_unix(path).body == b"1"


def over_unix(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(DEADLINE)
    s.connect(str(path))
    with Wire(s) as w:
        w.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        return w.read_message()


def test_an_admin_listener_at_a_path_goes_on(penstock, upstream, short_path):
    path = short_path / "admin.sock"
    port, admin_port = free_port(), free_port()
    daemon = penstock(f"""
        [listener l]
        mode = forward
        bind = 127.0.0.1:{port}
        [admin]
        bind = unix:{path} 127.0.0.1:{admin_port}
        """, admin_port=admin_port)
    old = daemon.upgrade()
    assert old.wait(DEADLINE) == 0
    assert over_unix(path).status == 200


def test_who_is_in_the_queue_is_served_by_the_new_one(gateway, upstream):
    server = upstream(answering(body=b"fine"))
    daemon = gateway(server.port, rest="""
        [penstock]
        workers = 1
        max_connections = 1
        """)
    with Client(daemon.port) as first:
        assert first.request("/").status == 200
        waiting = [Client(daemon.port) for _ in range(20)]
        wait_for(lambda: daemon.count("accept_paused") > 0)
        old = daemon.upgrade()
        for c in waiting:
            c.ask("/", fields=["Connection: close"])
            assert c.read_message().body == b"fine"
            c.close()
    assert old.wait(DEADLINE) == 0


def test_a_tunnel_keeps_the_old_one_until_drain(forward, upstream):
    server = upstream(lambda wire: wire.send(b"got " + wire.read_all()))
    daemon = forward()
    with Client(daemon.port) as c:
        c.send(f"CONNECT {server.server} HTTP/1.1\r\nHost: a:1\r\n\r\n"
               .encode())
        assert c.read_head().status == 200
        old = daemon.upgrade()
        # That it is to drain is no news to it; a second time is.
        old.send_signal(signal.SIGTERM)
        wait_for(lambda: "draining already" in daemon.said())
        assert old.poll() is None
        c.send(b"the rest")
        c.end()
        assert c.read_all() == b"got the rest"
    assert old.wait(DEADLINE) == 0


# --- it does not ---

def replaced(folder, text):
    """A program at whose place there is another by now."""
    program = folder / "program"
    shutil.copy(PROGRAM, program)
    yield str(program)
    program.unlink()
    if text is not None:
        program.write_text(text)
        program.chmod(0o755)
    yield


@pytest.mark.parametrize("text, why", [
    ("#!/bin/sh\nexit 3\n", "ended with 3"),
    ("#!/bin/sh\nkill -SEGV $$\n", "Segmentation fault"),
    ("#!/bin/sh\nexec sleep 60\n", "did not serve in time"),
    ("#!/bin/sh\nprintf 'what is this? what is this?' >&3\nexec sleep 60\n",
     "no answer"),
    ("#!/bin/sh\nexec 3>&-\nexec sleep 60\n", "did not serve in time"),
    ("no program", "can't be run"),
    (None, "can't be run"),
])
def test_one_that_does_not_serve_changes_nothing(
        gateway, upstream, tmp_path, text, why):
    replace = replaced(tmp_path, text)
    daemon = gateway(upstream(answering()).port, program=next(replace),
                     rest="[penstock]\nupgrade_timeout = 500ms\nworkers = 1")
    next(replace)
    with Client(daemon.port) as c:
        for i in range(2):
            daemon.signal(signal.SIGUSR2)
            wait_for(lambda: daemon.said().count(why) > i,
                     what=lambda: daemon.said()[-2000:])
            wait_for(lambda: daemon.said().count("goes on as before") > i)
            assert c.request("/").get("Connection") is None
            with Client(daemon.port) as other:
                assert other.request("/").status == 200
        assert daemon.admin("/readyz")[0] == 200
        wait_for(lambda: not children(daemon))
        # Nor does it keep the next one from serving.
        shutil.copy(PROGRAM, tmp_path / "program.new")
        os.replace(tmp_path / "program.new", tmp_path / "program")
        old = daemon.upgrade()
        assert c.request("/").get("Connection") == "close"
    assert old.wait(DEADLINE) == 0


def children(daemon):
    return pathlib.Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children"
                        ).read_text().split()


def test_a_file_that_is_wrong_by_now_changes_nothing(gateway, upstream):
    daemon = gateway(upstream(answering()).port)
    good = daemon.file.read_text()
    daemon.file.write_text(good + "\n[nonsense]\n")
    daemon.signal(signal.SIGUSR2)
    wait_for(lambda: "goes on as before" in daemon.said())
    assert "ended with 1" in daemon.said() and "nonsense" in daemon.said()
    with Client(daemon.port) as c:
        assert c.request("/").status == 200


def test_an_address_that_another_has_changes_nothing(gateway, upstream):
    daemon = gateway(upstream(answering()).port)
    good = daemon.file.read_text()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        daemon.file.write_text(good.replace(
            f"bind = 127.0.0.1:{daemon.port}",
            f"bind = 127.0.0.1:{daemon.port} 127.0.0.1:{port}"))
        daemon.signal(signal.SIGUSR2)
        wait_for(lambda: "goes on as before" in daemon.said())
    assert f"can't listen on 127.0.0.1:{port}" in daemon.said()
    with Client(daemon.port) as c:
        assert c.request("/").status == 200


def test_sigterm_while_it_starts_ends_both(gateway, upstream, tmp_path):
    replace = replaced(tmp_path, "#!/bin/sh\nexec sleep 60\n")
    daemon = gateway(upstream(answering()).port, program=next(replace))
    next(replace)
    daemon.signal(signal.SIGUSR2)
    child = wait_for(lambda: children(daemon))[0]
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    wait_for(lambda: not os.path.exists(f"/proc/{child}/exe"))


# --- privileges, and the pid file ---

def pid_in(path):
    text = path.read_text()
    return int(text) if text.endswith("\n") else None


def test_the_pid_file_says_who_serves(penstock, upstream, tmp_path):
    path = tmp_path / "penstock.pid"
    daemon = penstock(f"""
        [penstock]
        pid_file = {path}
        [listener l]
        mode = forward
        bind = 127.0.0.1:{free_port()}
        """)
    assert pid_in(path) == daemon.pid
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    old = daemon.upgrade()
    assert old.wait(DEADLINE) == 0
    assert pid_in(path) == daemon.pid
    daemon.stop()
    assert not path.exists()


def test_a_pid_file_is_no_link_and_no_folder(penstock, tmp_path):
    (tmp_path / "target").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for name in "link", "", "none/penstock.pid":
        with pytest.raises(AssertionError, match="ended with 1"):
            penstock(f"""
                [penstock]
                pid_file = {tmp_path}/{name}
                [listener l]
                mode = forward
                bind = 127.0.0.1:{free_port()}
                """)
    assert (tmp_path / "target").read_text() == "precious"


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_privileges_that_were_dropped_are_not_needed(
        gateway, upstream, tmp_path):
    """Files of root, a folder of root's, and a port that only root binds."""
    folder = tmp_path / "root"
    folder.mkdir(mode=0o755)
    tmp = tmp_path
    while str(tmp) not in ("/", "/tmp"):        # pytest's are closed to others
        tmp.chmod(tmp.stat().st_mode | 0o055)
        tmp = tmp.parent
    port = 443
    daemon = gateway(upstream(answering()).port, f"bind = 127.0.0.1:{port}",
                     rest=f"""
        [penstock]
        user = nobody
        pid_file = {folder}/penstock.pid
        [log]
        access = {folder}/access.log
        """)
    for _ in range(2):
        old = daemon.upgrade()
        assert old.wait(DEADLINE) == 0
        assert pid_in(folder / "penstock.pid") == daemon.pid
        status = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
        assert re.search(r"^Uid:(\s+65534){4}$", status, re.M)
        assert re.search(r"^NoNewPrivs:\s+1$", status, re.M)
        assert re.search(r"^Cap(Eff|Prm):\s+0+$", status, re.M)
        lines = (folder / "access.log").read_text().count("\n")
        with Client(port) as c:
            assert c.request("/").status == 200
        wait_for(lambda: (folder / "access.log").read_text().count("\n")
                 == lines + 1)
    assert (folder / "penstock.pid").stat().st_uid == 0
    daemon.settled()
    daemon.stop()
    # It may not be removed, but it tells no lies.
    assert (folder / "penstock.pid").read_text() == ""


# --- the service manager ---

def test_the_manager_is_told_who_the_main_process_is(
        gateway, upstream, manager):
    daemon = gateway(upstream(answering()).port,
                     environment={**manager.environment,
                                  "WATCHDOG_USEC": "200000"})
    manager.wait(READY="1")
    old = daemon.upgrade()
    manager.wait(MAINPID=str(daemon.pid))
    # Only after that does the new one say anything.
    manager.wait(READY="1")
    manager.wait(WATCHDOG="1")
    assert old.wait(DEADLINE) == 0
    assert not [s for s in manager.listen() if "STOPPING" in s]
    daemon.stop()
    manager.wait(STOPPING="1")


# --- under load ---

def test_five_upgrades_under_load_lose_nothing(penstock, upstream):
    server = upstream(load.serve)
    gateway, forward, tcp = (free_port() for _ in range(3))
    daemon = penstock(f"""
        [penstock]
        workers = 2
        [listener gateway]
        mode = gateway
        bind = 127.0.0.1:{gateway}
        upstream = u
        [listener forward]
        mode = forward
        bind = 127.0.0.1:{forward}
        [listener tcp]
        mode = tcp
        bind = 127.0.0.1:{tcp}
        upstream = u
        [upstream u]
        server = {server.server}
        pool_idle = 200ms
        """)
    clients = Load()
    clients.add(load.keep_alive, gateway, count=4)
    clients.add(load.keep_alive, gateway, "", 1, count=2)
    clients.add(load.keep_alive, forward, f"http://{server.server}", count=2)
    clients.add(load.pipelined, gateway, count=2)
    clients.add(load.download, gateway, count=2)
    clients.add(load.tunnelled, forward, server.server, count=2)
    clients.add(load.relayed, tcp, count=2)
    for _ in range(5):
        before = dict(clients.done)
        old = daemon.upgrade()
        # All kinds have gone on, with both.
        wait_for(lambda: all(clients.done[k] > n for k, n in before.items()))
        assert old.wait(60) == 0
    clients.stop()
    assert set(clients.done) == {"keep_alive", "pipelined", "download",
                                 "tunnelled", "relayed"}
    wait_for(lambda: daemon.metric("penstock_sessions") == 0)
    daemon.stop()
