# SPDX-License-Identifier: BSD-2-Clause
"""What the service manager is told, and what it hands over."""

import ctypes
import os
import pathlib
import re
import signal
import socket
import time

import pytest

from penstock import Client, answering, free_port, wait_for


class Manager:
    """Who listens at NOTIFY_SOCKET; `heard` are the datagrams, in order."""

    def __init__(self, address, buffer=None):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.setblocking(False)
        self.heard = []
        name = address if isinstance(address, str) else "@" + \
            address[1:].decode()
        self.environment = {"NOTIFY_SOCKET": name}

    def listen(self):
        while True:
            try:
                text = self.socket.recv(4096).decode()
            except BlockingIOError:
                return self.heard
            self.heard.append(dict(
                line.split("=", 1) for line in text.splitlines()))

    def wait(self, **wanted):
        """Wait for a datagram that says so; it, and forget those before."""
        def find():
            for i, said in enumerate(self.listen()):
                if wanted.items() <= said.items():
                    del self.heard[:i + 1]
                    return said
        return wait_for(find, 20, lambda: f"{wanted} in {self.heard}")

    def wait_status(self, pattern):
        def find():
            return [s for s in self.listen()
                    if re.search(pattern, s.get("STATUS", ""))]
        return wait_for(find, 20, lambda: f"{pattern} in {self.heard}")[-1]

    def close(self):
        self.socket.close()


@pytest.fixture
def manager(short_path):
    m = Manager(str(short_path / "notify"))
    yield m
    m.close()


# --- what it is told ---

def test_it_is_told_of_each_step(gateway, upstream, manager):
    daemon = gateway(upstream(answering()).port,
                     rest="[penstock]\ndrain_delay = 1s",
                     environment=manager.environment)
    manager.wait(READY="1")
    assert manager.wait_status("serving: 0 clients, .* 0.0 % failed")
    with Client(daemon.port) as c:
        assert c.request("/").status == 200
        daemon.signal(signal.SIGTERM)
        said = manager.wait(STOPPING="1")
        # What the configuration allows, whatever the unit says.
        assert int(said["EXTEND_TIMEOUT_USEC"]) == 36_000_000
    assert daemon.wait() == 0


def test_an_abstract_name_will_do(gateway, upstream):
    m = Manager(b"\0penstock-test-%d" % os.getpid())
    daemon = gateway(upstream(answering()).port, environment=m.environment)
    m.wait(READY="1")
    daemon.stop()
    m.wait(STOPPING="1")
    m.close()


def test_the_status_has_live_figures(gateway, upstream, manager):
    daemon = gateway([free_port()], environment=manager.environment)
    with Client(daemon.port) as c:
        assert c.request("/").status == 502
        manager.wait_status(r"serving: 1 clients, \d+ requests/s, 100.0 %")


def test_a_manager_that_does_not_read_delays_nothing(
        gateway, upstream, manager):
    for i in range(1000):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        s.setblocking(False)
        try:
            s.sendto(b"FILL=1", manager.environment["NOTIFY_SOCKET"])
        except BlockingIOError:
            break
        finally:
            s.close()
    assert i < 999
    daemon = gateway(upstream(answering()).port,
                     environment=manager.environment)
    with Client(daemon.port) as c:
        assert c.request("/").status == 200
    # And when it reads again, it hears what it has to know.
    manager.wait(READY="1")


@pytest.mark.parametrize("address", ["/nowhere/at/all", "@nobody", "what",
                                     "/" + "x" * 200, ""])
def test_a_manager_that_is_not_there_hinders_nothing(
        gateway, upstream, address):
    daemon = gateway(upstream(answering()).port,
                     environment={"NOTIFY_SOCKET": address})
    with Client(daemon.port) as c:
        assert c.request("/").status == 200


def test_a_reload_is_told_of_whatever_comes_of_it(
        gateway, upstream, manager):
    daemon = gateway(upstream(answering()).port,
                     environment=manager.environment)
    text = daemon.file.read_text()
    manager.wait(READY="1")
    for good, status in (True, "reloaded"), (False, "reload refused, "
                                             "nothing has changed: see the "
                                             "log"):
        before = time.monotonic_ns() // 1000
        daemon.file.write_text(text if good else "[nonsense")
        daemon.signal(signal.SIGHUP)
        said = manager.wait(RELOADING="1")
        now = time.monotonic_ns() // 1000
        assert before <= int(said["MONOTONIC_USEC"]) <= now
        manager.wait(READY="1", STATUS=status)
    with Client(daemon.port) as c:
        assert c.request("/").status == 200
    # Later it says what it does, again.
    manager.wait_status("serving: ")


# --- the watchdog ---

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000


def ptrace(request, thread):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p,
                            ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(request, thread, None, None) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def thread_of(daemon, name):
    for task in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int(task.name)
    raise AssertionError(name)


def test_the_watchdog_is_fed_while_every_worker_goes_on(
        gateway, upstream, manager):
    daemon = gateway(
        upstream(answering()).port, rest="[penstock]\nworkers = 3",
        environment={**manager.environment, "WATCHDOG_USEC": "300000"})
    for _ in range(3):
        manager.wait(WATCHDOG="1")
    # One stands still, as if it hung: all the others go on.
    worker = thread_of(daemon, "worker-1")
    ptrace(PTRACE_SEIZE, worker)
    ptrace(PTRACE_INTERRUPT, worker)
    assert os.waitpid(worker, WALL)[0] == worker
    wait_for(lambda: "worker 1 is stuck" in daemon.said())
    manager.listen()
    manager.heard.clear()
    ptrace_until = time.monotonic() + 1
    while time.monotonic() < ptrace_until:
        assert not [s for s in manager.listen() if "WATCHDOG" in s]
        time.sleep(0.05)
    assert daemon.admin("/healthz")[0] == 200
    ptrace(PTRACE_DETACH, worker)
    manager.wait(WATCHDOG="1")


@pytest.mark.parametrize("more", [
    {}, {"WATCHDOG_USEC": "what"}, {"WATCHDOG_USEC": "0"},
    {"WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"}])
def test_no_sign_of_life_is_given_where_none_is_wanted(
        gateway, upstream, manager, more):
    daemon = gateway(upstream(answering()).port,
                     environment={**manager.environment, **more})
    manager.wait(READY="1")
    daemon.stop()
    assert not [s for s in manager.listen() if "WATCHDOG" in s]
