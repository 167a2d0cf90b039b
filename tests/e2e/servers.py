# SPDX-License-Identifier: BSD-2-Clause
"""Real programs beside the daemon, and the book that is kept of both.

Apache, Lighttpd and Node are servers that run in the foreground, in a folder
and on a port of their own, as Nginx of penstock.py does; echo is a server of
ours behind them, or alone.  Book is the daemon's access log.
"""

import collections
import json
import os
import pathlib
import signal
import socket
import subprocess

from penstock import DEADLINE, Nginx, free_port, wait_for

SCRIPTS = pathlib.Path(__file__).resolve().parent / "node"

# Where Debian's packages of modules are; a node from elsewhere needs telling.
NODE_ENVIRONMENT = {"NODE_PATH": "/usr/share/nodejs:/usr/lib/nodejs"}


# --- programs ---

class Program:
    """A server in the foreground; what it says goes to a file `log`."""

    environment = {}

    def __init__(self, folder, command):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.command = list(map(str, command))
        self.log = self.folder / "output.log"
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, cwd=self.folder,
                env={**os.environ, **self.environment})
        try:
            wait_for(self._is_up, what=lambda: f"up:\n{self.said()}")
        except BaseException:
            self.stop()
            raise
        return self

    def _is_up(self):
        assert self.process.poll() is None, self.said()
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def said(self):
        return self.log.read_text(errors="replace")

    def stop(self):
        """End it; what it logs is complete then."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Apache(Program):
    """Apache httpd with its proxy modules; `more` is of its configuration.

    Each request leaves a line of method and target in `access`.
    """

    MODULES = "mpm_event authz_core proxy proxy_http"

    def __init__(self, folder, more):
        folder = pathlib.Path(folder)
        self.port = free_port()
        self.access = folder / "access.log"
        super().__init__(folder, [
            "/usr/sbin/apache2", "-d", folder, "-f", folder / "apache.conf",
            "-DFOREGROUND"])
        modules = "\n".join(
            f"LoadModule {m}_module /usr/lib/apache2/modules/mod_{m}.so"
            for m in self.MODULES.split())
        # As root it insists on serving as somebody else.
        (folder / "apache.conf").write_text(f"""
            {modules}
            ServerName apache.test
            Listen 127.0.0.1:{self.port}
            User nobody
            Group nogroup
            DefaultRuntimeDir {folder}
            PidFile {folder}/apache.pid
            ErrorLog /dev/stderr
            LogLevel warn
            LogFormat "%r" line
            CustomLog {self.access} line
            StartServers 1
            ServerLimit 1
            ThreadsPerChild 32
            MaxRequestWorkers 32
            MaxKeepAliveRequests 0
            AllowEncodedSlashes NoDecode
            MergeSlashes Off
            {more}
            """)

    def asked(self):
        """The requests it has logged: (method, target) of each."""
        return request_lines(self.access)


class Lighttpd(Program):
    """lighttpd, which asks the server on port `behind` for its answers."""

    def __init__(self, folder, behind):
        folder = pathlib.Path(folder)
        self.port = free_port()
        self.access = folder / "access.log"
        super().__init__(folder, [
            "/usr/sbin/lighttpd", "-D", "-f", folder / "lighttpd.conf"])
        (folder / "lighttpd.conf").write_text(f"""
            server.modules = ("mod_proxy", "mod_accesslog")
            server.bind = "127.0.0.1"
            server.port = {self.port}
            server.document-root = "{folder}"
            server.upload-dirs = ("{folder}")
            server.max-keep-alive-requests = 10000
            server.http-parseopts = ("method-get-body" => "enable")
            accesslog.filename = "{self.access}"
            accesslog.format = "%r"
            proxy.server = ("" => ((
                "host" => "127.0.0.1", "port" => {behind})))
            """)

    def asked(self):
        """The requests it has logged, once it has ended."""
        return request_lines(self.access)


class LoggingNginx(Nginx):
    """nginx with a line of each request; `more` is of its server block."""

    def __init__(self, folder, more):
        self.access = pathlib.Path(folder) / "access.log"
        super().__init__(
            folder, f"access_log {self.access} line;\n{more}",
            "log_format line escape=none '$request';")

    def asked(self):
        """The requests it has logged: (method, target) of each."""
        return request_lines(self.access)


def request_lines(path):
    """(method, target) of each request line of a file."""
    lines = path.read_text(encoding="latin-1").splitlines()
    return [tuple(line.split(" ")[:2]) for line in lines]


class Node(Program):
    """A script of node/ that serves on the port it is given."""

    environment = NODE_ENVIRONMENT

    def __init__(self, folder, script):
        self.port = free_port()
        super().__init__(folder, ["node", SCRIPTS / script, self.port])

    def asked(self):
        """The requests it has logged: (method, target) of each."""
        return [tuple(json.loads(line)) for line in self.said().splitlines()]


def run(*command, given=b"", environment=None, timeout=60):
    """Run a program, which must end well; what it wrote, as bytes."""
    r = subprocess.run([*map(str, command)], input=given,
                       capture_output=True, timeout=timeout,
                       env={**os.environ, **(environment or {})})
    assert r.returncode == 0, (r.returncode, r.stderr, r.stdout[-2000:])
    return r.stdout


def run_node(script, *arguments):
    """Run a script of node/ to its end; the value that it prints."""
    return json.loads(run("node", SCRIPTS / script, *arguments,
                          environment=NODE_ENVIRONMENT))


# --- a server of ours ---

CLOSES = "Connection: close\r\n"


def echo(seen=None):
    """A behaviour: the answer says what the request was, with its body.

    That is a line of method, X-Token and length, then the body.  `seen` gets
    each request.
    """
    def behave(wire):
        while (request := read_request(wire)) is not None:
            if seen is not None:
                seen.append(request)
            wire.send(echo_of(request))
            if is_last(request):
                return
    return behave


def read_request(wire):
    """The next request; a client that asks to be told to go on is."""
    head = wire.read_head()
    if head is None:
        return None
    if head.get("Expect", "").lower() == "100-continue":
        wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    head.body = wire._read_body(head, False)
    return head


def said_of(method, token, body):
    """The content that echo answers with."""
    return f"{method} {token} {len(body)}\n".encode() + body


def echo_of(request):
    token = request.get("X-Token", "-")
    content = said_of(request.method, token, request.body)
    head = (f"HTTP/1.1 200 OK\r\nX-Token: {token}\r\n"
            f"Content-Type: application/octet-stream\r\n"
            # Or a client may ask again before it has seen the end.
            f"{CLOSES if is_last(request) else ''}"
            f"Content-Length: {len(content)}\r\n\r\n").encode()
    return head if request.method == "HEAD" else head + content


def is_last(request):
    """Does the connection end with this request?"""
    said = request.get("Connection", "").lower()
    if request.start.endswith("1.0"):
        return "keep-alive" not in said
    return "close" in said


# --- the access log ---

class Book:
    """The daemon's access log; `lines` belong into its configuration."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "access.log"
        self.lines = f"[log]\naccess = {self.path}\n"

    def entries(self):
        """What is written down so far, a dict for each exchange."""
        if not self.path.exists():
            return []
        text = self.path.read_text(encoding="utf-8")
        whole = text[:text.rfind("\n") + 1]
        return [json.loads(line) for line in whole.splitlines()]

    def wait(self, n):
        """The entries, once there are n."""
        return wait_for(lambda: (e := self.entries()) and len(e) >= n and e,
                        what=lambda: f"{n} entries: {self.statuses()}")

    def statuses(self):
        return collections.Counter(e["status"] for e in self.entries())

    def agrees(self, daemon, **codes):
        """Wait until log and metrics both say this, and that nothing failed.

        codes: s200=5 for five answers of 200; there may be no others.
        """
        expected = collections.Counter(
            {int(name[1:]): n for name, n in codes.items() if n})
        wait_for(lambda: self.statuses() == expected,
                 what=lambda: f"{expected} in the log: {self.statuses()}")
        for code, n in expected.items():
            daemon.wait_count("requests", n, code=str(code))
        daemon.wait_count("requests", expected.total())
        assert daemon.count("failures") == 0, daemon.metrics_text()
        assert [e for e in self.entries() if "reason" in e] == []
