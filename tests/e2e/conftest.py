# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures of the end-to-end tests, and what holds at the end of each."""

import os
import sys

# The source tree stays as it is.
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(__file__))

import pytest

from penstock import Daemon, Nginx, PROGRAM, Upstream

LONG = os.environ.get("PENSTOCK_LONG") == "1"


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "long: takes long; only with PENSTOCK_LONG=1, that is in "
        "scripts/test --all")


def pytest_collection_modifyitems(items):
    for item in items:
        if "long" in item.keywords and not LONG:
            item.add_marker(pytest.mark.skip(reason="long; see --all"))


def pytest_sessionstart():
    if not os.access(PROGRAM, os.X_OK):
        pytest.exit(f"{PROGRAM} is not built; scripts/test does that", 1)


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


@pytest.fixture
def upstream():
    """upstream(behaviour) starts a server that behaves so."""
    servers = []

    def start(behaviour):
        servers.append(Upstream(behaviour))
        return servers[-1]
    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def nginx(tmp_path_factory):
    """One nginx for all tests; they may put files into its root."""
    server = Nginx(tmp_path_factory.mktemp("nginx")).start()
    yield server
    server.stop()
