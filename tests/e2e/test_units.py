# SPDX-License-Identifier: BSD-2-Clause
"""The units of systemd, as make makes them."""

import os
import pathlib
import re
import signal
import subprocess

import pytest

from penstock import (Client, DEADLINE, PROGRAM, TOP, answering, free_port,
                      wait_for)

# As `systemd-analyze security' has it; what is left is that it has a network.
MOST_EXPOSED = 1.6


def run(*command):
    return subprocess.run(command, text=True, capture_output=True,
                          timeout=60, stdin=subprocess.DEVNULL)


@pytest.fixture
def units(tmp_path):
    """A folder with the units, and the program that was built in them."""
    made = pathlib.Path(PROGRAM).parent / "systemd/penstock.service"
    text, n = re.subn(r"^ExecStart=/\S+/sbin/penstock -c /\S+/penstock.conf$",
                      f"ExecStart={PROGRAM} -c /etc/penstock/penstock.conf",
                      made.read_text(), flags=re.M)
    assert n == 1, made.read_text()
    (tmp_path / "penstock.service").write_text(text)
    (tmp_path / "penstock.socket").write_text(
        (TOP / "systemd/penstock.socket").read_text())
    return tmp_path


def test_systemd_has_no_complaint(units):
    r = run("systemd-analyze", "verify", "--man=no",
            str(units / "penstock.service"), str(units / "penstock.socket"))
    assert (r.returncode, r.stdout, r.stderr) == (0, "", "")


def test_a_drop_in_for_notify_reload_is_what_it_should_be():
    text = (TOP / "systemd/notify-reload.conf").read_text()
    lines = [x for x in text.splitlines() if x and x[0] != "#"]
    assert lines == ["[Service]", "Type=notify-reload", "ExecReload="]


def test_the_service_is_in_a_sandbox(units):
    r = run("systemd-analyze", "security", "--offline=true", "--no-pager",
            str(units / "penstock.service"))
    exposure = re.search(r"exposure level for .*: ([\d.]+)", r.stdout)
    assert exposure, r.stdout + r.stderr
    assert float(exposure[1]) <= MOST_EXPOSED, r.stdout


def members(name):
    """The system calls of a set as systemd has it, with the sets in it."""
    r = run("systemd-analyze", "syscall-filter", "--no-pager", name)
    assert r.returncode == 0, r.stderr
    found = set()
    for word in re.findall(r"^    (\S+)$", r.stdout, re.M):
        if word.startswith("@"):
            found |= members(word)
        elif not word.startswith("#"):
            found.add(word)
    return found


def allowed(units):
    calls = set()
    text = (units / "penstock.service").read_text()
    for line in re.findall(r"^SystemCallFilter=(.*)$", text, re.M):
        words = line.lstrip("~").split()
        sets = set().union(*map(members, words))
        calls = calls - sets if line.startswith("~") else calls | sets
    return calls


def test_the_sandbox_allows_what_is_done(units, forward, upstream, gateway):
    """Whatever the daemon asks of the kernel, the filter lets through."""
    trace = units / "trace"
    server = upstream(answering(body=b"x" * 500000))
    daemon = gateway(
        server.port, rest=f"[log]\naccess = {units}/access.log",
        prefix=["strace", "-f", "-qq", "-o", str(trace), "--"])
    with Client(daemon.port) as c:
        for _ in range(3):
            assert c.request("/").status == 200
    for number in signal.SIGHUP, signal.SIGUSR1:
        subprocess.run(["kill", f"-{number.value}", inner(daemon)],
                       check=True)
    daemon.metrics()
    old = inner(daemon)
    subprocess.run(["kill", "-USR2", old], check=True)
    # strace ends with the last of them; the first goes of its own accord.
    new = wait_for(lambda: re.findall(r"process (\d+) serves", daemon.said()))
    with Client(daemon.port) as c:
        assert c.request("/").status == 200
    wait_for(lambda: not pathlib.Path(f"/proc/{old}/exe").exists())
    subprocess.run(["kill", "-TERM", new[0]], check=True)
    assert daemon.wait(2 * DEADLINE) == 0
    calls = set(re.findall(r"^\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed)",
                           trace.read_text(), re.M))
    assert {"epoll_wait", "accept4", "sendmsg"} & calls
    # The program is started by systemd, before the filter is.
    # The kernel's own; and a limit that the unit sets already.
    own = {"restart_syscall", "execve", "prlimit64", "arch_prctl"}
    assert calls - allowed(units) - own == set()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_a_file_system_that_is_read_only_will_do(
        penstock, upstream, tmp_path):
    server, port = upstream(answering(body=b"fine")), free_port()
    shut = ("mount --make-rprivate / && mount -o remount,bind,ro / && "
            "! touch {0}/x 2>/dev/null && exec \"$@\"").format(tmp_path)
    daemon = penstock(f"""
        [log]
        access = stderr
        [listener l]
        mode = gateway
        bind = 127.0.0.1:{port}
        upstream = u
        [upstream u]
        server = {server.server}
        pool_idle = 200ms
        """, prefix=["unshare", "--mount", "sh", "-c", shut, "sh"])
    with Client(port) as c:
        assert c.request("/").body == b"fine"
        daemon.signal(signal.SIGHUP)
        wait_for(lambda: "reloaded:" in daemon.said())
        assert c.request("/").body == b"fine"


def inner(daemon):
    """The process that strace runs."""
    children = pathlib.Path(
        f"/proc/{daemon.pid}/task/{daemon.pid}/children")
    return wait_for(lambda: children.read_text().split())[0]
