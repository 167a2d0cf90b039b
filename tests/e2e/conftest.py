# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures of the end-to-end tests, and what holds at the end of each."""

import os
import pathlib
import shutil
import sys
import tempfile

# The source tree stays as it is.
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(__file__))

import pytest

from penstock import (Daemon, Names, Nginx, PROGRAM, Upstream, enter_network,
                      free_port)

LONG = os.environ.get("PENSTOCK_LONG") == "1"


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "long: takes long; only with PENSTOCK_LONG=1, that is in "
        "scripts/test --all")


def pytest_collection_modifyitems(config, items):
    long = [] if LONG else [i for i in items if "long" in i.keywords]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [i for i in items if i not in long]


def pytest_sessionstart():
    if not os.access(PROGRAM, os.X_OK):
        pytest.exit(f"{PROGRAM} is not built; scripts/test does that", 1)
    enter_network()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Let fixtures know whether the test itself has failed."""
    report = (yield).get_result()
    if report.when == "call":
        item.failed = report.failed


@pytest.fixture(autouse=True)
def nothing_is_left(request):
    """Every daemon that still runs settles and ends well.

    Not after a failure, which is what should be reported, and what may have
    left anything behind.  Made first, so it comes after the test's clients
    and upstreams have gone.
    """
    yield
    problems = []
    for daemon in list(Daemon.live):
        try:
            if not getattr(request.node, "failed", True):
                daemon.settled()
                daemon.stop()
        except Exception as e:
            problems.append(str(e))
        finally:
            if daemon in Daemon.live:
                daemon.kill()
            if problems or getattr(request.node, "failed", True):
                print(f"--- {daemon.log}:\n{daemon.said()[-8000:]}")
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


@pytest.fixture
def penstock(tmp_path):
    """penstock(config, ...) starts a daemon; see Daemon for the rest."""
    def start(config, **more):
        return Daemon(tmp_path, config, **more).start()
    return start


# Short, since tests wait for its end; long enough for two requests in a row.
POOL_IDLE = "pool_idle = 200ms"


def _start(penstock, mode, lines, rest, **more):
    port = free_port()
    daemon = penstock(f"""
        [listener {mode}]
        mode = {mode}
        bind = 127.0.0.1:{port}
        {lines}
        {rest}
        """, **more)
    daemon.port = port
    return daemon


@pytest.fixture
def forward(penstock):
    """forward(lines, rest): a daemon with a forward listener on its .port.

    lines: more for the listener; rest: more sections.
    """
    def start(lines="", rest=""):
        return _start(penstock, "forward", f"{POOL_IDLE}\n{lines}", rest)
    return start


def _upstream(servers, lines):
    if isinstance(servers, (int, str)):
        servers = [servers]
    servers = "\n".join(
        f"server = 127.0.0.1:{s}" if isinstance(s, int) else f"server = {s}"
        for s in servers)
    idle = "" if "pool_idle" in lines else POOL_IDLE
    return f"[upstream up]\n{servers}\n{idle}\n{lines}"


@pytest.fixture
def gateway(penstock):
    """gateway(servers, lines, up, rest): a daemon with a gateway on its .port.

    servers: of upstream `up`, where everything goes; lines: more for the
    listener; up: more for the upstream; rest: more sections; more: for Daemon.
    """
    def start(servers, lines="", up="", rest="", **more):
        return _start(penstock, "gateway", f"upstream = up\n{lines}",
                      f"{_upstream(servers, up)}\n{rest}", **more)
    return start


@pytest.fixture
def relay(penstock):
    """The same in mode tcp."""
    def start(servers, lines="", up="", rest=""):
        return _start(penstock, "tcp", f"upstream = up\n{lines}",
                      f"{_upstream(servers, up)}\n{rest}")
    return start


@pytest.fixture
def upstream():
    """upstream(behaviour, ...) starts a server that behaves so."""
    servers = []

    def start(behaviour, **more):
        servers.append(Upstream(behaviour, **more))
        return servers[-1]
    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def names():
    """names(table) starts a name server; see Names."""
    servers = []

    def start(table):
        servers.append(Names(table))
        return servers[-1]
    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def short_path():
    """A folder whose path is short enough for sockets in it."""
    folder = tempfile.mkdtemp(prefix="penstock-")
    yield pathlib.Path(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def nginx(tmp_path_factory):
    """One nginx for all tests; they may put files into its root."""
    server = Nginx(tmp_path_factory.mktemp("nginx")).start()
    yield server
    server.stop()
