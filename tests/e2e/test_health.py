# SPDX-License-Identifier: BSD-2-Clause
"""What the log says of how the process feels: stuck, slow, and in sum.

A worker is stuck when strace(1) delays one of its system calls, which needs
nothing of the program.
"""

import os
import re
import signal
import subprocess
import threading
import time

import pytest

from penstock import Client, answering, wait_for

STRACE = "/usr/bin/strace"
needs_strace = pytest.mark.skipif(not os.access(STRACE, os.X_OK),
                                  reason="needs strace")


class Delayed:
    """The daemon's next accept of each thread takes 700 ms longer."""

    def __init__(self, daemon, folder, microseconds=700000, when="1"):
        self.output = folder / "strace"
        self.process = subprocess.Popen(
            [STRACE, "-f", "-p", str(daemon.pid), "-o", self.output,
             "-e", "trace=accept4,exit_group", "-e",
             f"inject=accept4:delay_enter={microseconds}:when={when}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        threads = len(os.listdir(f"/proc/{daemon.pid}/task"))
        line = self.process.stderr.readline()
        if "attached" not in line:
            self.process.wait()
            pytest.skip(f"strace can't: {line}")
        # It says so of the first one; all of them are traced when they say.
        wait_for(lambda: self._traced(daemon.pid) == threads)

    @staticmethod
    def _traced(pid):
        traced = 0
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/status") as f:
                traced += not re.search(r"^TracerPid:\s+0$", f.read(), re.M)
        return traced

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        self.process.stderr.close()


@needs_strace
def test_a_worker_that_is_stuck_is_said_once_and_its_end(
        gateway, upstream, tmp_path):
    daemon = gateway(upstream(answering()).port,
                     rest="[penstock]\nworkers = 1")
    assert daemon.count("loop_stuck") == 0
    with Delayed(daemon, tmp_path):
        with Client(daemon.port) as c:
            assert c.request("/").status == 200
    wait_for(lambda: "goes on" in daemon.said())
    stuck, = re.findall(r"warning: worker 0 is stuck: for (\d+) ms in "
                        r"(\S+); its thread ([^;]+); \d+ sessions wait\n",
                        daemon.said())
    over, = re.findall(r"warning: worker 0 goes on, after (\d+) ms\n",
                       daemon.said())
    assert int(stuck[0]) >= 250 and int(over) >= 700
    assert stuck[1] == "net/listener.c:on_readable"
    assert daemon.count("loop_stuck", worker="0") == 1
    # The longest turn was that one, and it is known what it was in.
    assert daemon.metric("penstock_loop_longest_turn_seconds",
                         callback="net/listener.c:on_readable") >= 0.7
    assert "on_readable took" not in daemon.said()      # without debug


@needs_strace
def test_with_debug_a_slow_function_is_said_by_name(
        gateway, upstream, tmp_path):
    daemon = gateway(upstream(answering()).port, rest="""
        [penstock]
        workers = 1
        [log]
        debug = on
        slow_callback = 300ms
        """)
    with Delayed(daemon, tmp_path):
        with Client(daemon.port) as c:
            assert c.request("/").status == 200
    wait_for(lambda: " took " in daemon.said())
    took, = re.findall(r"warning: worker 0: net/listener.c:on_readable took "
                       r"(\d+) ms\n", daemon.said())
    assert int(took) >= 600


@needs_strace
def test_messages_of_a_kind_are_limited_and_summed_up(
        gateway, upstream, tmp_path):
    """Twenty-five connections, each accepted by a function that is slow."""
    daemon = gateway(upstream(answering()).port, rest="""
        [penstock]
        workers = 1
        [log]
        debug = on
        slow_callback = 2ms
        """)
    with Delayed(daemon, tmp_path, 4000, "1+"):
        for _ in range(25):
            with Client(daemon.port) as c:
                assert c.request("/").status == 200
        wait_for(lambda: " more suppressed, like: worker 0: " in
                 daemon.said())
    said = daemon.said()
    # Ten a second, and however many seconds it took, none is missing.
    written = re.findall(r"Z warning: worker 0: \S+on_readable took ", said)
    summed = [int(n) for n in re.findall(r"(\d+) more suppressed, like", said)]
    assert len(written) < 25 <= len(written) + sum(summed)


def test_a_process_that_stood_still_is_not_said_to_be_stuck(
        gateway, upstream):
    """The time itself is what this is about, so it is let pass.

    With so many clients, a worker is in the middle of a turn mostly.
    """
    daemon = gateway(upstream(answering()).port)
    stop = threading.Event()

    def ask():
        with Client(daemon.port) as c:
            while not stop.is_set():
                assert c.request("/").status == 200
    clients = [threading.Thread(target=ask) for _ in range(8)]
    for client in clients:
        client.start()
    for _ in range(6):
        daemon.signal(signal.SIGSTOP)
        time.sleep(0.4)
        daemon.signal(signal.SIGCONT)
        time.sleep(0.2)
    stop.set()
    for client in clients:
        client.join()
    daemon.stop()
    assert "stuck" not in daemon.said()


SUMMARY = re.compile(r"info: in (\d+) s: (\d+) requests, (\d+) active, (\d+) "
                     r"errors \((\S+) %\), mean (\S+) ms, p99 under "
                     r"(\S+) (m?s)\n")


def test_a_summary_is_what_was_served_since_the_last(gateway, upstream):
    go, asked = threading.Event(), threading.Event()

    def behave(wire):
        while (m := wire.read_message()) is not None:
            if m.start.split()[1] == "/held":
                asked.set()
                go.wait(20)
            status = "503 No" if m.start.split()[1] == "/no" else "200 OK"
            wire.send(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"
                      .encode())
    daemon = gateway(upstream(behave).port, rest="[log]\nsummary = 1s")
    with Client(daemon.port) as c, Client(daemon.port) as held:
        held.ask("/held")
        assert asked.wait(10)
        for i in range(40):
            assert c.request("/no" if i % 4 == 0 else "/yes").status in (
                200, 503)
        wait_for(lambda: "no request is over, 1 active" in daemon.said())
        go.set()
        assert held.read_message().status == 200
    found = []
    wait_for(lambda: sum(int(x[1]) for x in SUMMARY.findall(daemon.said()))
             == 41)
    found = SUMMARY.findall(daemon.said())
    assert sum(int(x[3]) for x in found) == 10
    assert found[0][2] == "1" and found[-1][2] == "0"
    for _, n, _, errors, share, mean, bound, unit in found:
        assert float(share) == pytest.approx(
            100 * int(errors) / int(n), abs=0.006)
        # Those held took longer than a second; nothing else did.
        limit = float(bound) * (1000 if unit == "s" else 1)
        assert 0 < float(mean) <= limit * int(n)
    # And silence while there is nothing to say.
    lines = daemon.said().count(" in 1 s: ")
    time.sleep(2.5)
    assert daemon.said().count(" in 1 s: ") == lines


def test_a_reload_changes_how_often_there_is_a_summary(gateway, upstream):
    daemon = gateway(upstream(answering()).port, rest="[log]\nsummary = 0")
    text = daemon.file.read_text()
    with Client(daemon.port) as c:
        daemon.reload(text.replace("summary = 0", "summary = 300ms"))
        assert c.request("/").status == 200
        wait_for(lambda: " 1 requests, 0 active" in daemon.said())


def test_no_summary_if_none_is_wanted(gateway, upstream):
    daemon = gateway(upstream(answering()).port, rest="[log]\nsummary = 0")
    with Client(daemon.port) as c:
        assert c.request("/").status == 200
        time.sleep(1.2)
    assert "requests," not in daemon.said()
