# SPDX-License-Identifier: BSD-2-Clause
"""The two logs: how lines look, where they go, and what that may cost."""

import json
import os
import pathlib
import pwd
import re
import shlex
import signal
import subprocess
import threading

import pytest

from penstock import (Client, Daemon, TOP, answering, free_port,
                      run_penstock, wait_for)

LOGROTATE = "/usr/sbin/logrotate"

COMBINED = re.compile(
    r'127\.0\.0\.1 - - '
    r'\[\d\d/(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)/\d{4}'
    r':\d\d:\d\d:\d\d \+0000\] '
    r'"((?:[^"\\]|\\.)*)" (\d{3}) (\d+) '
    r'"((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)"')


def access(folder, more=""):
    return f"[log]\naccess = {folder}/access.log\n{more}\n"


def lines_of(path):
    """The lines of a file, of which the last one is whole, too."""
    text = path.read_text()
    assert text == "" or text.endswith("\n")
    return text.splitlines()


def logged(folder, n):
    """Wait for n lines of the access log."""
    path = folder / "access.log"
    wait_for(lambda: path.read_text().count("\n") >= n)
    lines = lines_of(path)
    assert len(lines) == n
    return lines


def logfmt(line):
    """Names and values of a line of logfmt, by a parser of its grammar."""
    pairs, rest = {}, line
    while rest:
        m = re.match(r'([a-z_]+)=("(?:[^"\\]|\\.)*"|[^ "=]+)(?: |$)', rest)
        assert m, f"not logfmt: {rest!r}"
        assert m[1] not in pairs, line
        pairs[m[1]] = json.loads(m[2]) if m[2][0] == '"' else m[2]
        rest = rest[m.end():]
    return pairs


def ask_raw(port, request):
    with Client(port) as c:
        c.send(request)
        c.end()
        c.read_all()


# --- formats ---

def test_logfmt_has_the_fields_of_json(gateway, upstream, tmp_path):
    server = upstream(answering(body=b"content"))
    daemon = gateway(server.port, rest=access(tmp_path, "format = logfmt"))
    with Client(daemon.port) as c:
        c.request("/a?b=c", method="POST", body=b"123", host="a.test")
        address = "%s:%d" % c.socket.getsockname()
    line, = logged(tmp_path, 1)
    pairs = logfmt(line)
    for name in "time", "total", "connect", "queue", "first_byte":
        assert re.fullmatch(r"\d+\.\d{6}", pairs.pop(name))
    assert len(pairs.pop("id")) == 16
    assert pairs == {
        "listener": "gateway", "client": address, "method": "POST",
        "host": "a.test", "target": "/a?b=c", "status": "200",
        "received": "3", "sent": "7", "upstream": "up",
        "server": server.server, "reused": "false", "retries": "0",
        "cut": "false"}
    assert ' target="/a?b=c" ' in line          # as it has a =


def test_combined_is_what_web_servers_write(gateway, upstream, tmp_path):
    server = upstream(answering(body=b"content"))
    daemon = gateway(server.port, rest=access(tmp_path, "format = combined"))
    with Client(daemon.port) as c:
        c.request("/a?b=c", fields=["Referer: http://r.test/x y",
                                    "User-Agent: curl/8 (x; y)"])
        c.request("/", method="POST", body=b"1")
    ask_raw(daemon.port, b"what\r\n\r\n")
    lines = [COMBINED.fullmatch(x) for x in logged(tmp_path, 3)]
    assert all(lines)
    bad = next(x for x in lines if x[1] == "-")
    assert sorted(x.groups() for x in lines) == sorted([
        ("GET /a?b=c HTTP/1.1", "200", "7", "http://r.test/x y",
         "curl/8 (x; y)"),
        ("POST / HTTP/1.1", "200", "7", "-", "-"),
        ("-", "400", bad[3], "-", "-")])


# What a client may try to end a value or a line with.
BAD = [b'"', b'\\"', b'\\\\" ', b'\\', b'\x0b"', b'\t" x=1', b'\x1b[2J',
       b'\x7f', b'\x85', b'\xe2\x80\xa8', b'\xff" "', b'x" 200 1 "-" "-']


@pytest.mark.parametrize("form", ["json", "logfmt", "combined"])
def test_no_format_can_be_forged(gateway, upstream, tmp_path, form):
    server = upstream(answering())
    daemon = gateway(server.port, rest=access(tmp_path, f"format = {form}"))
    requests = []
    for bad in BAD:
        requests += [
            b"GET /" + bad + b" HTTP/1.1\r\nHost: a\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: " + bad + b"\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nReferer: " + bad + b"\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: " + bad + b"\r\n\r\n",
            bad + b" / HTTP/1.1\r\nHost: a\r\n\r\n",
        ]
    for request in requests:
        ask_raw(daemon.port, request)
    for line in logged(tmp_path, len(requests)):
        assert line.isprintable()
        if form == "json":
            assert json.loads(line)["listener"] == "gateway"
        elif form == "logfmt":
            assert logfmt(line)["listener"] == "gateway"
        else:
            assert COMBINED.fullmatch(line), line
            assert len(shlex.split(line)) == 10     # of the format
            assert line.isascii()


@pytest.mark.parametrize("form", ["json", "combined"])
def test_a_line_too_long_goes_without_what_made_it_so(
        gateway, upstream, tmp_path, form):
    server = upstream(answering())
    daemon = gateway(server.port, "head_size = 64k\nrequest_line = 32k",
                     rest=access(tmp_path, f"format = {form}"))
    with Client(daemon.port) as c:
        c.request("/" + "x" * 20000, fields=["User-Agent: " + "y" * 20000])
        c.request("/short")
    long, short = logged(tmp_path, 2)
    assert len(long) < 16384 and "xxx" not in long and "yyy" not in long
    assert "/short" in short
    assert daemon.count("log_dropped") == 0


# --- sampling ---

def test_of_those_that_go_well_only_a_sample_is_logged(
        gateway, upstream, tmp_path):
    server = upstream(answering())
    daemon = gateway(server.port, "limits = tiny",
                     rest=access(tmp_path, "access_sample = 1/20") + """
        [limit tiny]
        rate = 1/h
        burst = 2000
        """)
    with Client(daemon.port) as c:
        for _ in range(2000):
            assert c.request("/well").status == 200
        for _ in range(30):
            assert c.request("/ill").status == 429
    wait_for(lambda: (tmp_path / "access.log").read_text().count("/ill") == 30)
    lines = [json.loads(x) for x in lines_of(tmp_path / "access.log")]
    well = [x for x in lines if x["target"] == "/well"]
    # 100 are expected, with a deviation of 10; this is six times as much.
    assert 40 < len(well) < 160
    assert all(x["sample"] == 20 for x in well)
    assert not any("sample" in x for x in lines if x["target"] == "/ill")


# --- files: rotated, full, not to be opened ---

class Load:
    """Clients that ask on, each for its own number, until they are told."""

    def __init__(self, port, clients=8):
        self.done = [0] * clients
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(port, i))
                        for i in range(clients)]
        for t in self.threads:
            t.start()

    def _run(self, port, i):
        with Client(port) as c:
            while not self.stop.is_set():
                assert c.request(f"/{i}/{self.done[i]}").status == 200
                self.done[i] += 1

    def end(self):
        self.stop.set()
        for t in self.threads:
            t.join()
        return {f"/{i}/{n}" for i, count in enumerate(self.done)
                for n in range(count)}


@pytest.mark.parametrize("form", ["json", "logfmt"])
def test_a_rotation_under_load_loses_and_tears_no_line(
        gateway, upstream, tmp_path, form):
    daemon = gateway(upstream(answering()).port, rest=access(
        tmp_path, f"format = {form}\nerror = {tmp_path}/error.log"))
    parse = json.loads if form == "json" else logfmt
    path, rotated = tmp_path / "access.log", []
    load = Load(daemon.port)
    try:
        for i in range(15):
            wait_for(lambda: path.exists() and path.stat().st_size > 2000)
            rotated.append(tmp_path / f"access.log.{i}")
            path.rename(rotated[-1])
            (tmp_path / "error.log").rename(tmp_path / "error.log.1")
            daemon.signal(signal.SIGUSR1)
            wait_for(lambda: path.exists()
                     and (tmp_path / "error.log").exists())
    finally:
        asked = load.end()
    daemon.stop()
    targets = [parse(line)["target"]
               for f in [*rotated, path] for line in lines_of(f)]
    assert len(targets) == len(asked) and set(targets) == asked


@pytest.mark.skipif(not os.access(LOGROTATE, os.X_OK),
                    reason="needs logrotate")
def test_what_logrotate_is_told_is_enough(gateway, upstream, tmp_path):
    """The installed file, but for places, users and how to find the daemon."""
    folder = tmp_path / "log"
    folder.mkdir(mode=0o755)
    daemon = gateway(upstream(answering()).port, rest=access(
        folder, f"error = {folder}/error.log"))
    text = (TOP / "conf" / "logrotate").read_text()
    text, n = re.subn(r"\n\t(create|su) .*", "", text.replace(
        "/var/log/penstock", str(folder)))
    assert n == 2
    text, n = re.subn(r"systemctl .*", f"kill -USR1 {daemon.pid}", text)
    assert n == 1
    (tmp_path / "logrotate.conf").write_text(text)
    with Client(daemon.port) as c:
        c.request("/before")
        logged(folder, 1)
        subprocess.run([LOGROTATE, "--force", "--state", tmp_path / "state",
                        tmp_path / "logrotate.conf"], check=True)
        wait_for((folder / "access.log").exists)
        c.request("/after")
        assert "/after" in logged(folder, 1)[0]
    assert "/before" in (folder / "access.log.1").read_text()


def test_a_full_disk_costs_lines_and_nothing_else(
        gateway, upstream, tmp_path):
    daemon = gateway(upstream(answering()).port,
                     rest="[log]\naccess = /dev/full")
    with Client(daemon.port) as c:
        for _ in range(5):
            assert c.request("/").status == 200
    daemon.wait_count("log_dropped", 5, log="access")
    assert daemon.count("log_dropped", log="error") == 0
    with Client(daemon.port) as c:
        assert c.request("/").status == 200
    daemon.wait_count("log_dropped", 6, log="access")
    assert daemon.said().count("cannot write") == 1
    assert "access log /dev/full: cannot write: No space left" in daemon.said()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to mount")
def test_a_disk_that_has_room_again_gets_whole_lines(
        penstock, upstream, tmp_path):
    """A real file system of 128k, which only the daemon sees."""
    port, disk = free_port(), tmp_path / "disk"
    disk.mkdir()
    daemon = penstock(f"""
        [listener l]
        mode = gateway
        bind = 127.0.0.1:{port}
        upstream = u
        [upstream u]
        server = 127.0.0.1:{upstream(answering()).port}
        pool_idle = 200ms
        [log]
        access = {disk}/access.log
        """, prefix=["/usr/bin/unshare", "-m", "/bin/sh", "-ec",
                     'mount -t tmpfs -o size=128k none "$0"; exec "$@"',
                     disk])
    # The program has replaced the shell; its own view of the disk:
    file = pathlib.Path(f"/proc/{daemon.pid}/root{disk}/access.log")
    with Client(port) as c:
        n = 0
        while daemon.count("log_dropped", log="access") == 0:
            assert c.request(f"/{n}/" + "x" * 5000).status == 200
            n += 1
            assert n < 1000
        wait_for(lambda: "No space left on device" in daemon.said())
        lost = daemon.count("log_dropped", log="access")
        full = file.read_bytes()
        *whole, torn = full.split(b"\n")
        assert [json.loads(x)["target"].split("/")[1] for x in whole] == \
            [str(i) for i in range(len(whole))]
        # Now there is room, as after a rotation: for ever other lines.
        os.truncate(file, len(full) // 2)
        assert c.request("/room").status == 200
        wait_for(lambda: b"/room" in file.read_bytes())
    *_, last = file.read_bytes().splitlines()
    assert json.loads(last)["target"] == "/room"
    assert daemon.count("log_dropped", log="access") == lost
    assert torn == b"" or len(torn) < 5500


def test_a_full_disk_of_messages_stops_nothing(gateway, upstream):
    daemon = gateway(upstream(answering()).port,
                     rest="[log]\nerror = /dev/full")
    wait_for(lambda: daemon.count("log_dropped", log="error") > 0)
    with Client(daemon.port) as c:
        assert c.request("/").status == 200


def test_a_pipe_nobody_reads_costs_lines_and_nothing_else(
        gateway, upstream, tmp_path):
    os.mkfifo(tmp_path / "access.log")
    daemon = gateway(upstream(answering()).port, rest=access(tmp_path) +
                     "[penstock]\nworkers = 1")
    with Client(daemon.port) as c:
        # A ring is a megabyte, a pipe less than that: so many don't fit.
        for _ in range(400):
            assert c.request("/" + "x" * 7000).status == 200
        assert daemon.count("log_dropped", log="access") > 50
        # And now it is moved away, and there is a file.
        (tmp_path / "access.log").rename(tmp_path / "pipe")
        daemon.signal(signal.SIGUSR1)
        wait_for((tmp_path / "access.log").is_file)
        c.request("/last")
    wait_for(lambda: "/last" in (tmp_path / "access.log").read_text())
    for line in lines_of(tmp_path / "access.log"):
        json.loads(line)


def test_a_stderr_nobody_reads_stops_nothing(penstock, upstream, tmp_path):
    port, pipe = free_port(), tmp_path / "pipe"
    os.mkfifo(pipe)
    daemon = penstock(f"""
        [listener l]
        mode = gateway
        bind = 127.0.0.1:{port}
        upstream = u
        [upstream u]
        server = 127.0.0.1:{upstream(answering()).port}
        pool_idle = 200ms
        [penstock]
        workers = 1
        [log]
        access = stderr
        """, prefix=["/bin/sh", "-c", 'exec "$@" 2<>"$0"', pipe])
    with Client(port) as c:
        for _ in range(400):
            assert c.request("/" + "x" * 7000).status == 200
    assert daemon.count("log_dropped", log="access") > 50


@pytest.mark.parametrize("what", ["access", "error"])
def test_a_log_that_cannot_be_opened_is_an_error_at_the_start(
        tmp_path, what):
    file = tmp_path / "x.conf"
    file.write_text(f"[log]\n{what} = {tmp_path}/none/x.log\n"
                    "[listener l]\nmode = forward\n"
                    f"bind = 127.0.0.1:{free_port()}\n"
                    "[admin]\nbind = off\n")
    for options in [], ["-t"]:
        done = run_penstock("-c", file, *options)
        assert done.returncode == 1
        assert (f"cannot open {tmp_path}/none/x.log: No such file or "
                "directory" in done.stderr)


def test_a_test_makes_no_file(tmp_path):
    file = tmp_path / "x.conf"
    file.write_text(f"[log]\naccess = {tmp_path}/a.log\n"
                    f"error = {tmp_path}/e.log\n"
                    "[listener l]\nmode = forward\n"
                    f"bind = 127.0.0.1:{free_port()}\n"
                    "[admin]\nbind = off\n")
    assert run_penstock("-c", file, "-t").returncode == 0
    assert sorted(os.listdir(tmp_path)) == ["x.conf"]


def test_a_log_that_cannot_be_opened_again_stays(gateway, upstream, tmp_path):
    daemon = gateway(upstream(answering()).port, rest=access(tmp_path))
    path = tmp_path / "access.log"
    with Client(daemon.port) as c:
        c.request("/1")
        logged(tmp_path, 1)
        path.rename(tmp_path / "old")
        path.mkdir()
        daemon.signal(signal.SIGUSR1)
        wait_for(lambda: "the old file stays: Is a directory"
                 in daemon.said())
        c.request("/2")
        wait_for(lambda: len(lines_of(tmp_path / "old")) == 2)
        path.rmdir()
        daemon.signal(signal.SIGUSR1)
        wait_for(path.is_file)
        c.request("/3")
        assert "/3" in logged(tmp_path, 1)[0]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become another")
def test_who_was_root_can_open_its_logs_again(gateway, upstream, short_path):
    nobody = pwd.getpwnam("nobody")
    os.chown(short_path, nobody.pw_uid, nobody.pw_gid)
    daemon = gateway(upstream(answering()).port, rest=access(
        short_path, f"error = {short_path}/error.log") +
        "[penstock]\nuser = nobody\n")
    for name in "access.log", "error.log":
        assert os.stat(short_path / name).st_uid == nobody.pw_uid
    # Even without a rotation.
    daemon.signal(signal.SIGUSR1)
    (short_path / "access.log").rename(short_path / "old")
    daemon.signal(signal.SIGUSR1)
    wait_for((short_path / "access.log").exists)
    with Client(daemon.port) as c:
        c.request("/")
    assert len(logged(short_path, 1)) == 1
    assert "cannot" not in (short_path / "error.log").read_text()


# --- by a reload ---

def logging(port, server, lines):
    return f"""
        [listener l]
        mode = gateway
        bind = 127.0.0.1:{port}
        upstream = u
        [upstream u]
        server = {server.server}
        pool_idle = 200ms
        [log]
        {lines}
        """


def test_a_reload_moves_the_logs_and_loses_no_line(
        penstock, upstream, tmp_path):
    server, port = upstream(answering()), free_port()

    def config(i):
        return logging(port, server, f"""
            access = {tmp_path}/access.{i}
            format = {"json" if i % 2 else "logfmt"}
            error = {"stderr" if i % 2 else f"{tmp_path}/error"}
            """)
    daemon = penstock(config(1))
    load = Load(port)
    try:
        for i in range(2, 12):
            # Where the next is said depends on where messages go.
            daemon.rewrite(config(i))
            daemon.signal(signal.SIGHUP)
            file = tmp_path / f"access.{i}"
            wait_for(lambda: file.exists() and file.stat().st_size > 2000)
    finally:
        asked = load.end()
    daemon.stop()
    targets = []
    for i in range(1, 12):
        for line in lines_of(tmp_path / f"access.{i}"):
            pairs = json.loads(line) if line[0] == "{" else logfmt(line)
            targets.append(pairs["target"])
    assert len(targets) == len(asked) and set(targets) == asked
    assert (tmp_path / "error").read_text().count(": reloaded: ") == 5
    assert daemon.said().count(": reloaded: ") == 5


def test_a_reload_turns_the_access_log_on_and_off(
        penstock, upstream, tmp_path):
    server, port = upstream(answering()), free_port()
    daemon = penstock(logging(port, server, "access = off"))
    with Client(port) as c:
        c.request("/1")
        daemon.reload(logging(port, server, f"access = {tmp_path}/a"))
        c.request("/2")
        wait_for(lambda: len(lines_of(tmp_path / "a")) == 1)
        daemon.reload(logging(port, server, "access = off"))
        c.request("/3")
        daemon.reload(logging(
            port, server, f"access = {tmp_path}/a\naccess_sample = 1/1"))
        c.request("/4")
        wait_for(lambda: len(lines_of(tmp_path / "a")) == 2)
    targets = [json.loads(x)["target"] for x in lines_of(tmp_path / "a")]
    assert targets == ["/2", "/4"]
    assert daemon.count("log_dropped") == 0


def test_a_reload_to_a_log_that_cannot_be_opened_is_refused(
        penstock, upstream, tmp_path):
    server, port = upstream(answering()), free_port()
    daemon = penstock(logging(port, server, f"access = {tmp_path}/a"))
    for lines in (f"access = {tmp_path}/none/a\nformat = logfmt",
                  f"access = {tmp_path}/b\nerror = {tmp_path}/none/e"):
        daemon.reload(logging(port, server, lines), ok=False)
        assert f"cannot open {tmp_path}/none/" in daemon.said()
    with Client(port) as c:
        c.request("/still")
    wait_for(lambda: len(lines_of(tmp_path / "a")) == 1)
    assert json.loads((tmp_path / "a").read_text())["target"] == "/still"


# --- the journal ---

def test_only_the_journal_is_told_priorities(upstream, tmp_path):
    server, port = upstream(answering()), free_port()
    config = f"""
        [listener l]
        mode = gateway
        bind = 127.0.0.1:{port}
        upstream = u
        [upstream u]
        server = 127.0.0.1:{server.port}
        pool_idle = 200ms
        [log]
        access = stderr
        """
    for i, name in enumerate(["penstock.log", "penstock1.log"]):
        (tmp_path / name).touch()
        st = os.stat(tmp_path / "penstock.log")
        daemon = Daemon(tmp_path, config, environment={
            "JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino}"}).start()
        with Client(port) as c:
            c.request("/")
        wait_for(lambda: '"target"' in daemon.said())
        daemon.stop()
        lines = [x for x in daemon.said().splitlines()
                 if not x.startswith("penstock: ")]
        assert any('"target"' in x for x in lines)
        if i == 0:
            assert all(re.match(r"<[3-7]>[^<]", x) for x in lines)
        else:
            assert not any(x.startswith("<") for x in lines)
