# SPDX-License-Identifier: BSD-2-Clause
"""What is compared: each program, and how it is told to do the same.

Equal settings: no log, one worker on one core, connections to the upstream
kept, as many of them as there are clients, and no time limit that a crowd
could run into.  Where a program has a faster way that its manual recommends
(HAProxy splices what is large; nginx gets larger buffers, and no
temporary files), it has that.
"""

import contextlib
import dataclasses
import pathlib
import re
import shutil
import subprocess

import rig

# On either side of a proxy: it needs two descriptors for each client.
CONNECTIONS = rig.DESCRIPTORS // 2 - 200


@dataclasses.dataclass(frozen=True)
class Queue:
    """Who may wait at a gate: how many, how long, and who is next.

    Not every program can be told all of it.
    """

    length: int = 100000
    timeout_msec: int = 120_000
    target_msec: int = 0    # newest first while waits are longer; 0: never
    is_fair: bool = False   # turns by the client's address


@dataclasses.dataclass(frozen=True)
class Task:
    """What a program is to do, and where to."""

    mode: str               # gateway, forward or tcp
    origin: int             # port of the upstream
    bulk: int = 0           # gateway: port of that for /bulk; 0 for none
    gate: int = 0           # most requests in the upstream; 0: any number
    queue: Queue = Queue()
    large: bool = False     # what comes back


class Product:
    """A program, as the benchmark starts it; the name is what is printed."""

    name = ""
    program = ""            # its path
    package = ""            # of Debian
    modes = ()
    keeps_connections = True
    share = 1               # of a scenario's requests; slow ones take long
    version_command = ()

    def is_there(self):
        return shutil.which(self.program) is not None

    def version(self):
        """As it says itself."""
        done = subprocess.run(
            [self.program, *self.version_command], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        found = re.search(r"\d+\.\d[\w.+~-]*", done.stdout)
        return found[0] if found else "?"

    def config(self, task):
        """Its file, but for what {port} and {folder} stand for."""
        raise NotImplementedError

    def command(self, file, folder):
        raise NotImplementedError

    @contextlib.contextmanager
    def start(self, folder, task):
        """A process that does the task, once it listens: its pid, port."""
        port = rig.free_port()
        file = pathlib.Path(folder) / f"{self.name}-{port}.conf"
        text = self.config(task)
        for word, value in ("port", port), ("folder", folder):
            text = text.replace(f"${word}", str(value))
        file.write_text(text)
        with rig.running(self.command(str(file), str(folder)), port,
                         rig.PROXY_CORE) as process:
            yield process


class Penstock(Product):
    name = "penstock"
    program = rig.PROGRAM
    modes = ("gateway", "forward", "tcp")
    version_command = ("-V",)

    COMMON = f"""
[penstock]
workers = 1
buffers = 256m
max_connections = {CONNECTIONS}
[log]
access = off
[timeouts]
request_head = 120s
keepalive = 120s
[listener in]
bind = 127.0.0.1:$port
"""
    FORWARD = f"""
mode = forward
access = here
pool_max = {CONNECTIONS}
[access here]
allow = loopback
allow_destination = loopback
connect_ports = all
"""
    BULK = """
[route bulk]
listener = in
path = /bulk
upstream = bulk
[upstream bulk]
server = 127.0.0.1:{port}
"""
    GATE = """
limits = gate
[limit gate]
concurrency = {gate}
"""

    def queue(self, queue):
        """Lines of a limit; without any, nobody waits."""
        if queue.length == 0:
            return ""
        lines = [f"queue = {queue.length}",
                 f"queue_timeout = {queue.timeout_msec}ms"]
        if queue.target_msec:
            lines += ["queue_order = adaptive",
                      f"queue_target = {queue.target_msec}ms"]
        if queue.is_fair:
            lines.append("queue_fair_by = client_address")
        return "\n".join([*lines, ""])

    def config(self, task):
        if task.mode == "forward":
            return self.COMMON + self.FORWARD
        text = self.COMMON + (
            f"mode = {task.mode}\nupstream = origin\n"
            f"[upstream origin]\nserver = 127.0.0.1:{task.origin}\n"
            f"pool_max = {CONNECTIONS}\n")
        if task.gate:
            text += (self.GATE.format(gate=task.gate) +
                     self.queue(task.queue))
        if task.bulk:
            text += self.BULK.format(port=task.bulk)
        return text

    @contextlib.contextmanager
    def start(self, folder, task):
        port = rig.free_port()
        text = self.config(task).replace("$port", str(port))
        with rig.penstock_with(folder, text, port) as daemon:
            yield daemon


class Nginx(Product):
    name = "nginx"
    program = "/usr/sbin/nginx"
    package = "nginx-light"
    version_command = ("-v",)
    stream_module = "/usr/lib/nginx/modules/ngx_stream_module.so"

    @property
    def modes(self):
        if pathlib.Path(self.stream_module).exists():
            return ("gateway", "tcp")
        return ("gateway",)

    COMMON = f"""
daemon off;
master_process off;
worker_processes 1;
pid $folder/nginx-$port.pid;
error_log stderr crit;
events {{ worker_connections {rig.DESCRIPTORS - 100}; }}
"""
    HTTP = """
http {{
    access_log off;
    keepalive_requests 1000000000;
    keepalive_timeout 120s;
    client_header_timeout 120s;
    client_body_temp_path $folder/a;
    proxy_temp_path $folder/b;
    fastcgi_temp_path $folder/c;
    uwsgi_temp_path $folder/d;
    scgi_temp_path $folder/e;
    proxy_max_temp_file_size 0;
    proxy_buffers 8 32k;
    proxy_busy_buffers_size 64k;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header X-Forwarded-Proto $scheme;
    upstream origin {{
        server 127.0.0.1:{origin};
        keepalive {connections};
        keepalive_requests 1000000000;
    }}
    {zone}
    server {{
        listen 127.0.0.1:$port backlog=4096;
        location / {{ proxy_pass http://origin; {gate} }}
        {bulk}
    }}
}}
"""
    # It has no queue.
    ZONE = """limit_conn_zone $server_port zone=all:1m;
    limit_conn_status 503;"""
    STREAM = """
stream {{
    server {{
        listen 127.0.0.1:$port backlog=4096;
        proxy_pass 127.0.0.1:{origin};
        proxy_buffer_size 64k;
    }}
}}
"""

    def config(self, task):
        if task.mode == "tcp":
            return (f"load_module {self.stream_module};\n" + self.COMMON +
                    self.STREAM.format(origin=task.origin))
        bulk = (f"location /bulk {{ proxy_pass http://127.0.0.1:{task.bulk};"
                " }" if task.bulk else "")
        return self.COMMON + self.HTTP.format(
            origin=task.origin, connections=CONNECTIONS, bulk=bulk,
            zone=self.ZONE if task.gate else "",
            gate=f"limit_conn all {task.gate};" if task.gate else "")

    def command(self, file, folder):
        return [self.program, "-p", folder, "-e", "stderr", "-c", file]


class Haproxy(Product):
    name = "haproxy"
    program = "/usr/sbin/haproxy"
    package = "haproxy"
    modes = ("gateway", "tcp")
    version_command = ("-v",)

    CONFIG = """
global
    nbthread 1
    maxconn {connections}
    {pipes}
defaults
    mode {mode}
    timeout connect 4s
    timeout client 120s
    timeout server 120s
    timeout queue {queue_msec}ms
    {options}
frontend in
    bind 127.0.0.1:$port
    {bulk}
    default_backend origin
backend origin
    server origin 127.0.0.1:{origin} {gate}
backend bulk
    server bulk 127.0.0.1:{bulk_port}
"""
    PIPES = "tune.pipesize 524288"
    # splice-auto would decide against it here; small messages are dearer so.
    SPLICE = """
    option splice-request
    option splice-response"""
    HTTP = """option http-keep-alive
    option forwardfor
    http-reuse always
    timeout http-request 120s"""

    def config(self, task):
        tcp = task.mode == "tcp"
        options = "" if tcp else self.HTTP
        return self.CONFIG.format(
            # Pipes take descriptors as well.
            connections=CONNECTIONS // (2 if task.large else 1),
            origin=task.origin, mode="tcp" if tcp else "http",
            options=options + self.SPLICE if task.large else options,
            pipes=self.PIPES if task.large else "",
            gate=f"maxconn {task.gate}" if task.gate else "",
            # Without a queue is as good as without a wait.
            queue_msec=task.queue.timeout_msec if task.queue.length else 1,
            bulk="use_backend bulk if { path_beg /bulk }" if task.bulk
            else "", bulk_port=task.bulk or task.origin)

    def command(self, file, folder):
        return [self.program, "-db", "-q", "-f", file]


class Squid(Product):
    name = "squid"
    program = "/usr/sbin/squid"
    package = "squid"
    modes = ("forward",)
    share = 1 / 6
    version_command = ("-v",)

    CONFIG = f"""
http_port 127.0.0.1:$port
http_access allow all
cache deny all
cache_mem 0
access_log none
cache_store_log none
cache_log /dev/null
pid_filename none
netdb_filename none
pinger_enable off
visible_hostname bench.test
coredump_dir $folder
max_filedescriptors {rig.DESCRIPTORS}
shutdown_lifetime 0 seconds
"""

    def config(self, task):
        return self.CONFIG

    def command(self, file, folder):
        return [self.program, "-N", "-f", file]


class Tinyproxy(Product):
    name = "tinyproxy"
    program = "/usr/bin/tinyproxy"
    package = "tinyproxy-bin"
    modes = ("forward",)
    keeps_connections = False       # whatever clients ask for
    share = 1 / 6
    version_command = ("-v",)

    CONFIG = """
Port $port
Listen 127.0.0.1
Timeout 120
MaxClients 2000
LogLevel Critical
LogFile "$folder/tinyproxy.log"
"""

    def config(self, task):
        return self.CONFIG

    def command(self, file, folder):
        return [self.program, "-d", "-c", file]


class Relay(Product):
    """Looks at nothing: what any proxy costs at least."""

    name = "relay"
    program = rig.helper("relay")
    modes = ("gateway", "forward", "tcp")

    def version(self):
        return ""

    @contextlib.contextmanager
    def start(self, folder, task):
        port = rig.free_port()
        with rig.running([self.program, str(port), str(task.origin)], port,
                         rig.PROXY_CORE) as process:
            yield process


PRODUCTS = {p.name: p for p in (Penstock(), Nginx(), Haproxy(), Squid(),
                                Tinyproxy(), Relay())}


def described():
    """The versions of all that are there."""
    return ", ".join(f"{p.name} {p.version()}".strip()
                     for p in PRODUCTS.values() if p.is_there())


def missing():
    """Packages that would let more be compared."""
    lacking = [p.package for p in PRODUCTS.values() if not p.is_there()]
    if "tcp" not in PRODUCTS["nginx"].modes:
        lacking.append("libnginx-mod-stream")
    return lacking
