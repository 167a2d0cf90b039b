# SPDX-License-Identifier: BSD-2-Clause
"""What the end-to-end tests are made of.

Daemon starts the built penstock with a configuration, reads its metrics, and
ends it; Nginx is a real upstream; Upstream is one that does what a function
of the test says; Names is a name server; Client is a raw socket that can
misbehave.  All of them are in a network of their own, and none of them waits
without a deadline.
"""

import ctypes
import fcntl
import http.client
import itertools
import mmap
import os
import pathlib
import re
import select
import signal
import socket
import struct
import subprocess
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("PENSTOCK", str(TOP / "build" / "penstock"))

# AddressSanitizer keeps what was freed, and shadows everything.
MEASURES_MEMORY = os.path.exists(PROGRAM) and \
    b"__asan_init" not in pathlib.Path(PROGRAM).read_bytes()

# Where every step of a test has to be done, unless it says otherwise.
DEADLINE = 10.0

# Gauges that are back at their first value once the last client has gone.
GAUGES = (
    "penstock_sessions", "penstock_limit_in_use", "penstock_limit_waiting",
    "penstock_limit_holders", "penstock_limit_unaccounted",
    "penstock_buffer_bytes", "penstock_timers", "penstock_pool_connections",
    "penstock_tunnels", "penstock_flows_paused", "penstock_flows_throttled",
    "penstock_splice_pipes",
    "penstock_destination_connections", "penstock_worker_sessions",
)

# What a sanitizer says; nothing else of ours says it.
COMPLAINTS = re.compile(
    r"ERROR: \w+Sanitizer|WARNING: \w+Sanitizer|runtime error:")


def wait_for(condition, timeout=DEADLINE, what=None):
    """What condition() returns, once that is true; fails after the timeout."""
    end = time.monotonic() + timeout
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            said = what() if callable(what) else what
            raise AssertionError(
                f"not within {timeout} s: {said or condition}")
        time.sleep(0.01)


def most_under_way():
    """More bytes than fit between two ends, with a daemon between them.

    That is two sockets that send, two that receive, and what the daemon has.
    How large the kernel lets the buffers of those grow is its own business,
    and has changed by a factor of five.
    """
    ours = 2 << 20
    return ours + 2 * sum(
        int(pathlib.Path(f"/proc/sys/net/ipv4/{name}").read_text().split()[2])
        for name in ("tcp_rmem", "tcp_wmem"))


# --- the network ---

# Addresses of the network's only interface, besides those of loopback.
PRIVATE, PUBLIC = "10.9.8.7", "93.184.216.34"


def enter_network():
    """Have a network with nothing but a loopback interface.

    Whatever the tests and the programs they start send stays in there, even
    what goes to addresses that exist elsewhere.
    """
    new_user, new_net = 0x10000000, 0x40000000
    uid, gid = os.getuid(), os.getgid()
    flags = new_net if uid == 0 else new_net | new_user
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"unshare: {os.strerror(number)}")
    if flags & new_user:
        me = pathlib.Path("/proc/self")
        (me / "setgroups").write_text("deny")
        (me / "uid_map").write_text(f"{uid} {uid} 1")
        (me / "gid_map").write_text(f"{gid} {gid} 1")
    set_address, set_flags, up = 0x8916, 0x8914, 0x1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, set_flags, struct.pack("16sH14x", b"lo", up))
        for i, address in enumerate((PRIVATE, PUBLIC)):
            fcntl.ioctl(s, set_address, struct.pack(
                "16sHH4s8x", b"lo:%d" % i, socket.AF_INET, 0,
                socket.inet_aton(address)))


# Below the kernel's range for outgoing connections, so that ten thousand
# clients can't take a port between its choice and its use.
_ports = itertools.cycle(range(20000 + os.getpid() % 10000, 32000))


def free_port():
    """A TCP port that nothing listens on, not given out before."""
    for port in _ports:
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


# --- the daemon ---

SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def parse_metrics(text):
    """Prometheus text as {(name, frozenset of (label, value)): number}."""
    samples = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            m = SAMPLE.match(line)
            assert m, f"not a sample: {line!r}"
            key = m[1], frozenset(LABEL.findall(m[2] or ""))
            assert key not in samples, f"twice: {line!r}"
            samples[key] = float(m[3])
    return samples


class Pieces:
    """How large the pieces are that a Daemon reads; they may be changed.

    It has to be started with `.environment`; shim is what trickle.c makes.
    """

    def __init__(self, shim, folder):
        path = folder / "pieces"
        path.write_bytes(bytes(8))
        with open(path, "r+b") as f:
            self._map = mmap.mmap(f.fileno(), 8)
        # AddressSanitizer insists on being the first; it need not be.
        asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        self.environment = {"LD_PRELOAD": str(shim), "ASAN_OPTIONS": asan,
                            "TRICKLE_FILE": str(path)}

    def set(self, size):
        """0: as it comes; -1: line by line; else a number of bytes."""
        self._map[:4] = struct.pack("i", size)

    def cuts(self):
        """How often the daemon was given less than had come."""
        return struct.unpack_from("I", self._map, 4)[0]


class Adopted:
    """A process that is no child of ours but of one that was, as a Popen.

    It comes to whoever has said that orphans are welcome.
    """

    def __init__(self, pid):
        self.pid = pid
        self.returncode = None

    @staticmethod
    def welcome():
        set_child_subreaper = 36
        ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)

    def poll(self):
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                return None             # its parent hasn't ended yet
            if pid != 0:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout=None):
        wait_for(lambda: self.poll() is not None, timeout or DEADLINE,
                 f"the end of process {self.pid}")
        return self.returncode

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def tidy(config):
    """A configuration without the indentation that it has in a test."""
    return "".join(line.strip() + "\n" for line in config.splitlines())


class Daemon:
    """The program, in the foreground, with a configuration file of its own.

    Lines of the configuration may be indented as suits the test.  An [admin]
    section is added unless there is one; `admin_port` then says which port it
    has.  start() returns when the daemon says it is ready, and notes the
    gauges that settled() waits for.
    """

    live = []           # started and not ended; conftest.py ends them

    def __init__(self, folder, config, program=PROGRAM, options=(),
                 environment=None, admin_port=None, prefix=(), pass_fds=()):
        self.folder = pathlib.Path(folder)
        self.admin_port = admin_port or free_port()
        if "[admin]" not in config:
            config += f"\n[admin]\nbind = 127.0.0.1:{self.admin_port}\n"
        n = len(list(self.folder.glob("penstock*.conf")))
        self.file = self.folder / f"penstock{n or ''}.conf"
        self.file.write_text(tidy(config))
        self.log = self.file.with_suffix(".log")
        self.command = [*prefix, program, "-c", str(self.file), *options]
        self.environment = {**os.environ, **(environment or {})}
        self.pass_fds = pass_fds
        self.process = None
        self.baseline = None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env=self.environment, cwd=self.folder,
                pass_fds=self.pass_fds)
        try:
            wait_for(self._is_ready,
                     what=lambda: f"ready; it says:\n{self.said()}")
            self.baseline = self.gauges()
        except BaseException:
            self.kill()
            raise
        Daemon.live.append(self)
        return self

    def _is_ready(self):
        status = self.process.poll()
        assert status is None, f"ended with {status}:\n{self.said()}"
        try:
            return self.admin("/readyz")[0] == 200
        except OSError:
            return False

    @property
    def pid(self):
        return self.process.pid

    def said(self):
        """Everything written to standard output and error so far."""
        return self.log.read_text(errors="replace")

    def admin(self, path):
        """Status and text of a path of the admin listener."""
        c = http.client.HTTPConnection(
            "127.0.0.1", self.admin_port, timeout=DEADLINE)
        try:
            c.request("GET", path, headers={"Connection": "close"})
            r = c.getresponse()
            return r.status, r.read().decode()
        finally:
            c.close()

    def metrics_text(self):
        status, text = self.admin("/metrics")
        assert status == 200, text
        return text

    def metrics(self):
        return parse_metrics(self.metrics_text())

    def metric(self, name, **labels):
        """The sum of the samples that have this name and these labels."""
        wanted = set(labels.items())
        return sum(value for (n, has), value in self.metrics().items()
                   if n == name and wanted <= has)

    def count(self, name, **labels):
        """The same, for a penstock_NAME_total that has only ever grown."""
        return self.metric(f"penstock_{name}_total", **labels)

    def wait_metric(self, name, value, timeout=DEADLINE, **labels):
        """Wait until metric() is this value."""
        wait_for(lambda: self.metric(name, **labels) == value, timeout,
                 lambda: f"{name}{labels or ''} is "
                         f"{self.metric(name, **labels)}, not {value}")

    def wait_count(self, name, value, **labels):
        """Wait until count() is this value.

        What an exchange was is counted when it is over; its client may know
        before that.
        """
        self.wait_metric(f"penstock_{name}_total", value, **labels)

    def gauges(self):
        return {key: value for key, value in self.metrics().items()
                if key[0] in GAUGES}

    def unsettled(self):
        """Lines for the gauges that are not where they began."""
        now = self.gauges()
        lines = []
        for key in sorted(now.keys() | self.baseline.keys(), key=str):
            was, is_now = self.baseline.get(key, 0), now.get(key, 0)
            if was != is_now:
                labels = ",".join(f"{k}={v}" for k, v in sorted(key[1]))
                lines.append(f"{key[0]}{{{labels}}}: {was:g} -> {is_now:g}")
        return lines

    def settled(self, timeout=15.0):
        """Wait until all gauges are what they were before the first client.

        The time allows for pool_idle, after which pooled connections go.
        """
        wait_for(lambda: not self.unsettled(), timeout,
                 lambda: "settled:\n" + "\n".join(self.unsettled()))

    def resident_bytes(self, which="VmRSS"):
        """Resident memory, as the kernel has it; VmHWM: the most so far."""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(which + r":\s+(\d+) kB", status)[1]) * 1024

    def signal(self, number):
        self.process.send_signal(number)

    def rewrite(self, config):
        """Have the file say something else, with the same [admin]."""
        if "[admin]" not in config:
            config += f"\n[admin]\nbind = 127.0.0.1:{self.admin_port}\n"
        self.file.write_text(tidy(config))

    def reloads(self):
        """How many reloads are over, well or not."""
        said = self.said()
        return said.count(": reloaded: "), said.count(": reload refused")

    def reload(self, config=None, ok=True):
        """Have it read the file, which now says `config`, and do so."""
        if config is not None:
            self.rewrite(config)
        done, refused = self.reloads()
        wanted = (done + 1, refused) if ok else (done, refused + 1)
        self.signal(signal.SIGHUP)
        wait_for(lambda: sum(self.reloads()) > done + refused,
                 what="reload is over")
        assert self.reloads() == wanted, self.said()[-4000:]

    def wait(self, timeout=DEADLINE):
        """Wait for the end; the exit status.  Nothing may have complained."""
        status = self.process.wait(timeout)
        if self in Daemon.live:
            Daemon.live.remove(self)
        found = COMPLAINTS.search(self.said())
        assert not found, self.said()[max(0, found.start() - 200):]
        return status

    def stop(self, timeout=40.0):
        """Drain and end; the exit status must be 0."""
        self.signal(signal.SIGTERM)
        status = self.wait(timeout)
        assert status == 0, f"exit status {status}:\n{self.said()[-4000:]}"

    def upgrade(self, timeout=30):
        """Have a new process take over; the old one, which drains.

        From then on the daemon is the new one.
        """
        Adopted.welcome()
        old = self.process
        before = len(re.findall(r"process \d+ serves", self.said()))
        self.signal(signal.SIGUSR2)
        found = wait_for(
            lambda: re.findall(r"process (\d+) serves", self.said())[before:],
            timeout, lambda: f"upgraded; it says:\n{self.said()[-2000:]}")
        self.process = Adopted(int(found[0]))
        return old

    def kill(self):
        """End at once, whatever it is doing."""
        self.process.kill()
        self.process.wait()
        if self in Daemon.live:
            Daemon.live.remove(self)


def run_penstock(*arguments, timeout=DEADLINE, wrapper=(), **more):
    """Run the program to its end: for -t, -T, -V, and starts that fail."""
    return subprocess.run([*wrapper, PROGRAM, *map(str, arguments)],
                          text=True, capture_output=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, **more)


# --- upstreams ---

class Nginx:
    """A real server: plain HTTP on `port`, TLS on `tls_port`.

    Files below `root` are served; what is sent to /discard is read whole and
    answered with 204; `more` goes into the server block, `http` around it.
    """

    def __init__(self, folder, more="", http=""):
        self.folder = pathlib.Path(folder)
        self.root = self.folder / "root"
        self.root.mkdir(parents=True)
        self.port, self.tls_port = free_port(), free_port()
        self.certificate = make_certificate(self.folder)
        (self.root / "index.html").write_text("hello from nginx\n")
        (self.folder / "nginx.conf").write_text(self._config(more, http))
        self.process = None

    def _config(self, more, http):
        user = "user root root;" if os.getuid() == 0 else ""
        temp = "\n".join(
            f"{kind}_temp_path {self.folder}/{kind};" for kind in
            ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        cert, key = self.certificate
        return f"""
            {user}
            daemon off;
            worker_processes 1;
            pid {self.folder}/nginx.pid;
            error_log stderr warn;
            worker_rlimit_nofile 16384;
            events {{ worker_connections 12000; }}
            http {{
                access_log off;
                sendfile on;
                client_max_body_size 0;
                keepalive_requests 1000000;
                default_type application/octet-stream;
                {temp}
                {http}
                server {{
                    listen 127.0.0.1:{self.port} backlog=4096;
                    listen 127.0.0.1:{self.tls_port} ssl;
                    ssl_certificate {cert};
                    ssl_certificate_key {key};
                    root {self.root};
                    location = /discard {{
                        client_body_buffer_size 1m;
                        proxy_pass http://127.0.0.1:{self.port}/none;
                        proxy_request_buffering off;
                    }}
                    location = /none {{ return 204; }}
                    {more}
                }}
            }}
            """

    def start(self):
        with open(self.folder / "nginx.log", "ab") as log:
            self.process = subprocess.Popen(
                ["/usr/sbin/nginx", "-p", str(self.folder), "-e", "stderr",
                 "-c", str(self.folder / "nginx.conf")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for(self._is_up, what=lambda: "nginx up:\n" + (
            self.folder / "nginx.log").read_text())
        return self

    def _is_up(self):
        assert self.process.poll() is None, (
            self.folder / "nginx.log").read_text()
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def file(self, name, content):
        """Put a file there, of bytes; its path in a URL."""
        (self.root / name).write_bytes(content)
        return "/" + name

    def stop(self):
        self.process.send_signal(signal.SIGQUIT)
        try:
            self.process.wait(3)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def make_certificate(folder, name="localhost"):
    """A self-made certificate for localhost and 127.0.0.1; (file, key)."""
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
         "-subj", f"/CN={name}", "-addext",
         f"subjectAltName=DNS:{name},IP:127.0.0.1",
         "-keyout", key, "-out", cert],
        check=True, capture_output=True, timeout=DEADLINE)
    return cert, key


class Upstream:
    """A server that does with each connection what a function says.

    behaviour(connection) runs in a thread of its own with a Wire; when it
    returns, the connection is closed.  What it raises fails the test, except
    for connections that break, which is what many tests are about.
    """

    def __init__(self, behaviour, host="127.0.0.1", path=None):
        self.behaviour = behaviour
        self.requests = []      # for behaviours to append to
        self.errors = []
        self.accepted = 0
        self.open = 0
        self.most_open = 0
        self._lock = threading.Lock()
        self._wires = set()
        if path is None:
            self._socket = socket.socket()
            self._socket.setsockopt(
                socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.port = free_port()
            self.server = f"{host}:{self.port}"
            self._socket.bind((host, self.port))
        else:
            self._socket = socket.socket(socket.AF_UNIX)
            self.server = f"unix:{path}"
            self._socket.bind(str(path))
        self._socket.listen(1024)
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self):
        while True:
            try:
                s, _ = self._socket.accept()
            except OSError:
                return
            wire = Wire(s)
            with self._lock:
                self._wires.add(wire)
                self.accepted += 1
                self.open += 1
                self.most_open = max(self.most_open, self.open)
            threading.Thread(
                target=self._serve, args=(wire,), daemon=True).start()

    def _serve(self, wire):
        try:
            self.behaviour(wire)
        except (OSError, EOFError):
            pass
        except BaseException as e:
            self.errors.append(e)
        finally:
            wire.close()
            with self._lock:
                self._wires.discard(wire)
                self.open -= 1

    def stop(self):
        """Close everything; raise what a behaviour has raised."""
        # A blocked accept() does not notice that its socket is closed.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(DEADLINE)
        with self._lock:
            wires = list(self._wires)
        for wire in wires:
            wire.abort()
        wait_for(lambda: self.open == 0, what="behaviours have returned")
        if self.errors:
            raise self.errors[0]


def answering(status=200, body=b"", fields=(), think=None):
    """A behaviour: this answer to every request, with keep-alive.

    think(request) is called before the answer; it may wait for something, or
    note the request.
    """
    def behave(wire):
        while True:
            request = wire.read_message()
            if request is None:
                return
            if think is not None:
                think(request)
            lines = [f"HTTP/1.1 {status} OK", *fields,
                     f"Content-Length: {len(body)}", "", ""]
            head = "\r\n".join(lines).encode("latin-1")
            wire.send(head + (b"" if request.method == "HEAD" else body))
    return behave


def noting(requests, **more):
    """The same, with every request in this list."""
    return answering(think=requests.append, **more)


def answering_with(raw, close=False, requests=None):
    """A behaviour: these bytes to every request; or to one, and then an end.

    requests: a list for what was asked.
    """
    def behave(wire):
        while (request := wire.read_message()) is not None:
            if requests is not None:
                requests.append(request)
            wire.send(raw)
            if close:
                return
    return behave


class Names:
    """A name server for A and AAAA; `table` has a list of addresses a name.

    A name that has None is never answered; one that isn't there doesn't
    exist.  `asked` has the names that were asked for.
    """

    def __init__(self, table):
        self.table = table
        self.asked = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.1)
        self.address = "127.0.0.1:%d" % self._socket.getsockname()[1]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while not self._over.is_set():
            try:
                query, client = self._socket.recvfrom(4096)
            except TimeoutError:
                continue
            answer = self._answer(query)
            if answer is not None:
                self._socket.sendto(answer, client)

    def _answer(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        question = query[12:at + 5]
        kind = struct.unpack(">H", query[at + 1:at + 3])[0]
        name = ".".join(labels).lower()
        self.asked.append(name)
        addresses = self.table.get(name, ())
        if addresses is None:
            return None
        family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
        records = b""
        wanted = [a for a in addresses if family == (
            socket.AF_INET6 if ":" in a else socket.AF_INET)]
        for address in wanted:
            data = socket.inet_pton(family, address)
            records += struct.pack(
                ">HHHIH", 0xc00c, kind, 1, 60, len(data)) + data
        flags = 0x8180 if name in self.table else 0x8183
        return query[:2] + struct.pack(
            ">HHHHH", flags, 1, len(wanted), 0, 0) + question + records

    def stop(self):
        self._over.set()
        self._thread.join(DEADLINE)
        self._socket.close()


# --- raw connections ---

class Message:
    """A request or a response: start line, fields in order, body."""

    def __init__(self, head):
        lines = head.decode("latin-1").split("\r\n")
        self.raw = head
        self.start = lines[0]
        self.fields = [tuple(p.strip() for p in line.split(":", 1))
                       for line in lines[1:] if line]
        self.trailers = []
        self.body = b""
        words = self.start.split(" ", 2)
        self.is_response = self.start.startswith("HTTP/")
        self.status = int(words[1]) if self.is_response else None
        self.method, self.target = (
            (None, None) if self.is_response else words[:2])

    def all(self, name):
        """Every value of a field, in order."""
        return [v for n, v in self.fields if n.lower() == name.lower()]

    def get(self, name, default=None):
        return (self.all(name) or [default])[0]

    def is_failure(self, status, token):
        """Is it this row of failures.def, in status, field and body?"""
        assert self.status == status and token in self.body.decode() and \
            f'details="{token}"' in self.get("Proxy-Status", ""), repr(self)
        if status in (429, 503):
            assert int(self.get("Retry-After")) >= 1, repr(self)
        return True

    def __repr__(self):
        return f"<{self.start!r} {self.fields!r} {self.body[:80]!r}>"


class Wire:
    """A connected socket with what was read ahead of it."""

    def __init__(self, s, timeout=DEADLINE):
        self.socket = s
        self.ahead = b""
        s.settimeout(timeout)
        if s.family != socket.AF_UNIX:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        self.socket.sendall(data)

    def _more(self, size=65536):
        data = self.socket.recv(size)
        self.ahead += data
        return bool(data)

    def read_until(self, mark):
        """Bytes up to and with the mark; EOFError when they end before."""
        while mark not in self.ahead:
            if not self._more():
                raise EOFError(f"ended after {self.ahead!r}")
        end = self.ahead.index(mark) + len(mark)
        data, self.ahead = self.ahead[:end], self.ahead[end:]
        return data

    def read_exactly(self, n):
        parts, missing = [self.ahead[:n]], n - len(self.ahead[:n])
        self.ahead = self.ahead[n:]
        while missing > 0:
            data = self.socket.recv(min(missing, 1 << 20))
            if not data:
                raise EOFError(f"{missing} of {n} bytes are missing")
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def read_all(self):
        """Everything up to the end of the stream."""
        parts, self.ahead = [self.ahead], b""
        while data := self.socket.recv(1 << 20):
            parts.append(data)
        return b"".join(parts)

    def at_end(self):
        """True if the other side has closed, with nothing left to read."""
        return not self.ahead and not self._more()

    def is_silent(self):
        """True if there is nothing to read now, not even an end."""
        return not self.ahead and not select.select([self.socket], [], [],
                                                    0)[0]

    def is_reset(self):
        """True if the other side resets the connection."""
        try:
            self.read_all()
        except ConnectionResetError:
            return True
        return False

    def read_head(self):
        """The next message without its body; None at a clean end."""
        if not self.ahead and not self._more():
            return None
        return Message(self.read_until(b"\r\n\r\n"))

    def read_message(self, to_head=False, interim=False):
        """The next message with its body; None at a clean end.

        to_head: the response is to HEAD.  1xx are skipped unless interim.
        """
        while True:
            m = self.read_head()
            if m is None or interim or not m.status or m.status >= 200 \
                    or m.status == 101:
                break
        if m is not None:
            m.body = self._read_body(m, to_head)
        return m

    def _read_body(self, m, to_head):
        if m.is_response and (to_head or m.status < 200
                              or m.status in (204, 304)):
            return b""
        if "chunked" in (m.get("Transfer-Encoding") or "").lower():
            return self._read_chunks(m)
        if m.get("Content-Length") is not None:
            return self.read_exactly(int(m.get("Content-Length")))
        return self.read_all() if m.is_response else b""

    def _read_chunks(self, m):
        parts = []
        while True:
            size = int(self.read_until(b"\r\n").split(b";")[0], 16)
            if size == 0:
                break
            parts.append(self.read_exactly(size))
            assert self.read_exactly(2) == b"\r\n"
        while (line := self.read_until(b"\r\n")) != b"\r\n":
            name, value = line.decode("latin-1").split(":", 1)
            m.trailers.append((name.strip(), value.strip()))
        return b"".join(parts)

    def end(self):
        """No more will be sent; reading goes on."""
        self.socket.shutdown(socket.SHUT_WR)

    def close(self):
        self.socket.close()

    def abort(self):
        """Close with a reset, and wake whoever reads in another thread."""
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                   struct.pack("ii", 1, 0))
            self.socket.shutdown(socket.SHUT_RD)
        except OSError:
            pass
        self.socket.close()


class Client(Wire):
    """A connection to a port, made at once.

    source: the address to come from; buffer: the size of the receive buffer,
    for a client that takes little.
    """

    def __init__(self, port, host="127.0.0.1", timeout=DEADLINE, source=None,
                 buffer=None):
        s = socket.socket()
        if source is not None:
            s.bind((source, 0))
        if buffer is not None:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        s.settimeout(timeout)
        s.connect((host, port))
        super().__init__(s, timeout)

    def ask(self, target, method="GET", host="test", fields=(), body=b""):
        """Send a request."""
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *fields]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    def request(self, target, method="GET", **more):
        """Send a request and read the whole response."""
        self.ask(target, method, **more)
        return self.read_message(to_head=method == "HEAD")


# --- programs ---

def curl(*arguments, timeout=60, check=True):
    """Run curl quietly; what it wrote, as bytes."""
    r = subprocess.run(["curl", "-sS", "--noproxy", "", *map(str, arguments)],
                       capture_output=True, timeout=timeout,
                       stdin=subprocess.DEVNULL)
    assert r.returncode == 0 or not check, (r.returncode, r.stderr)
    return r.stdout


def check_metrics(text):
    """What promtool has to say about metrics must be nothing."""
    r = subprocess.run(["promtool", "check", "metrics"], input=text,
                       text=True, capture_output=True, timeout=DEADLINE)
    assert r.returncode == 0 and not r.stderr, r.stderr + r.stdout
