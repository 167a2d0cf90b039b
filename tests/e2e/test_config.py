# SPDX-License-Identifier: BSD-2-Clause
"""The command line and the configuration, as an operator meets them."""

import os
import signal
import socket

import pytest

from penstock import (Client, Daemon, PRIVATE, answering, curl, free_port,
                      run_penstock, tidy)

GOOD = """
[listener web]
mode = gateway
bind = 127.0.0.1:{port}
upstream = u
[upstream u]
server = 127.0.0.1:1
[admin]
bind = off
"""


@pytest.fixture
def write(tmp_path):
    """write(text, name) makes a file; its path."""
    def make(text, name="a.conf"):
        file = tmp_path / name
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file
    return make


def refused(file):
    """What is said of a file that neither passes -t nor starts."""
    test, start = run_penstock("-t", "-c", file), run_penstock("-c", file)
    dump = run_penstock("-T", "-c", file)
    for r in test, start, dump:
        assert r.returncode == 1
        assert r.stdout == ""
        assert r.stderr == start.stderr
    return start.stderr


# --- what is right ---

def test_a_good_file_is_called_fine(write):
    file = write(GOOD.format(port=free_port()))
    r = run_penstock("-t", "-c", file)
    assert (r.returncode, r.stderr) == (0, "")
    assert "fine" in r.stdout


def test_a_test_says_what_a_start_would_say(write):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        file = write(GOOD.format(port=port))
        test, start = (run_penstock(*options, file)
                       for options in (["-t", "-c"], ["-c"]))
    assert test.returncode == start.returncode == 1
    assert f"127.0.0.1:{port}" in test.stderr
    assert test.stderr == start.stderr


def test_a_test_looks_for_the_user_too(write):
    file = write(GOOD.format(port=free_port()) +
                 "[penstock]\nuser = no-such-user\n")
    r = run_penstock("-t", "-c", file)
    assert r.returncode == 1
    assert "no-such-user" in r.stderr


def test_a_dump_says_where_each_value_is_from_and_can_be_read(write):
    file = write(GOOD.format(port=8000))
    r = run_penstock("-T", "-c", file)
    assert r.returncode == 0
    lines = [line.split("\t") for line in r.stdout.splitlines()]
    assert ["bind = 127.0.0.1:8000", f"; {file}:4"] in lines
    assert ["; workers = auto", "; default"] in lines
    again = run_penstock("-t", "-c", write(r.stdout, "again.conf"))
    assert again.returncode == 0, again.stderr


def test_version_and_help_are_there():
    r = run_penstock("-V")
    assert r.returncode == 0 and r.stdout.startswith("penstock ")
    assert "llhttp" in r.stdout
    r = run_penstock("-h")
    assert r.returncode == 0 and "-c FILE" in r.stdout


@pytest.mark.parametrize("arguments", [["-x"], ["file"], ["-c"]])
def test_a_wrong_command_line_gets_the_usage(arguments):
    r = run_penstock(*arguments)
    assert r.returncode == 1
    assert "usage: penstock" in r.stderr and r.stdout == ""


def test_without_a_file_there_is_a_proxy_for_this_machine(
        tmp_path, upstream):
    server = upstream(answering(body=b"fine"))
    daemon = Daemon(tmp_path, "", admin_port=9480)
    daemon.command = daemon.command[:1]
    daemon.start()
    assert "127.0.0.1:8080" in daemon.said()
    assert "127.0.0.1:9480" in daemon.said()
    assert "built-in" in daemon.said()
    page = curl("-x", "http://127.0.0.1:8080", f"http://{server.server}/")
    assert page == b"fine"


# --- files that can't be read ---

def test_a_directory_is_no_configuration(tmp_path):
    said = refused(tmp_path)
    assert str(tmp_path) in said and "directory" in said


def test_a_file_that_is_not_there_is_told_by_name(tmp_path):
    said = refused(tmp_path / "none.conf")
    assert f"{tmp_path}/none.conf" in said and "No such file" in said


def test_a_file_that_may_not_be_read_is_told_by_name(write):
    file = write(GOOD.format(port=free_port()))
    file.chmod(0)
    command = ["-t", "-c", file]
    if os.getuid() == 0:
        # Even root may not, without this capability.
        r = run_penstock(*command, wrapper=[
            "setpriv", "--bounding-set", "-dac_override,-dac_read_search"])
    else:
        r = run_penstock(*command)
    assert r.returncode == 1
    assert str(file) in r.stderr and "Permission denied" in r.stderr


def test_an_error_while_reading_is_no_end_of_file():
    said = refused("/proc/self/mem")
    assert "/proc/self/mem" in said and "error" in said


# --- what is wrong in them ---

PLAIN = "[listener web]\nmode = gateway\nbind = 127.0.0.1:1\nupstream = u\n" \
        "[upstream u]\nserver = 127.0.0.1:1\n"
MISTAKES = {
    "line too long": ("[penstock]\nname = " + "x" * 200, 2, ["198 bytes"]),
    "line of a mebibyte": ("[log]\n# " + "x" * (1 << 20), 2, ["198 bytes"]),
    "NUL": ("[penstock]\nname = a\0b\n", 2, ["NUL"]),
    "NUL in a comment": ("[penstock]\n# a\0b\n", 2, ["NUL"]),
    "control byte": ("[penstock]\nname = a\x01b\n", 2, ["control byte"]),
    "carriage return": ("[penstock]\r\n", 1, ["carriage return"]),
    "unknown section": ("[penstok]\n", 1, ["[penstok]", '"penstock"']),
    "unknown keyword": ("[penstock]\nworker = 1\n", 2,
                        ["worker", "[penstock]", '"workers"']),
    "unknown timeout": (PLAIN + "timeout_conect = 1s\n", 7,
                        ["timeout_conect", '"timeout_connect"']),
    "unknown choice": ("[listener a]\nmode = forwad\nbind = :1\n", 2,
                       ["forwad", '"forward"']),
    "key twice": ("[penstock]\nworkers = 1\n\nworkers = 2\n", 4,
                  ["workers", ":2"]),
    "section twice": (PLAIN + "[upstream u]\nserver = 127.0.0.1:2\n", 7,
                      ["u", ":5"]),
    "missing reference": (PLAIN.replace("upstream = u", "upstream = v"), 4,
                          ["v", '"u"']),
    "missing limit": (PLAIN + "limits = fats\n[limit fast]\nrate = 1/s\n", 7,
                      ["fats", '"fast"']),
    "key before a section": ("workers = 1\n", 1, ["section"]),
    "no value": ("[penstock]\nworkers\n", 2, []),
    "no number": ("[penstock]\nworkers = many\n", 2, ["many"]),
    "number too large": ("[penstock]\nworkers = 65\n", 2, ["64"]),
    "zero timeout": ("[timeouts]\nconnect = 0\n", 2, ["connect"]),
    "no unit": ("[timeouts]\nconnect = 5\n", 2, ["5"]),
    "bad address": ("[listener a]\nmode = forward\nbind = 1.2.3:80\n", 3,
                    ["1.2.3:80"]),
    "continued scalar": ("[penstock]\nworkers = 1\n    2\n", 3, []),
    "unset variable": ("[penstock]\nname = ${PENSTOCK_UNSET}\n", 2,
                       ["PENSTOCK_UNSET"]),
    "watermarks": (PLAIN.replace("[up", "high_watermark = 4k\n"
                                        "low_watermark = 8k\n[up"), None,
                   ["watermark"]),
    "no mode": ("[listener a]\nbind = :1\n", None, ["mode"]),
    "include that is not there": ("include = none/that.conf\n", 1,
                                  ["none/that.conf"]),
}


@pytest.mark.parametrize("text, line, words", MISTAKES.values(),
                         ids=MISTAKES)
def test_a_mistake_is_told_with_file_line_and_the_nearest_word(
        write, text, line, words):
    file = write(text)
    said = refused(file)
    first = said.splitlines()[0]
    assert first.startswith(f"{file}:{line}: " if line else f"{file}:")
    for word in words:
        assert word in first
    # A message is a line, whatever was in the file.
    assert all(c.isprintable() for c in first)


def test_all_mistakes_are_told_at_once_and_nothing_is_begun(
        write, tmp_path):
    log = tmp_path / "access.log"
    with socket.socket() as s:
        # Were it bound, there would be one mistake more.
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        file = write(tidy(f"""
            [penstock]
            workers = none
            [log]
            access = {log}
            [listener web]
            mode = gateway
            bind = 127.0.0.1:{port}
            upstream = v
            [upstream u]
            server = 127.0.0.1:1
            weigth = 2
            """))
        said = refused(file).splitlines()
    lines = {int(s.removeprefix(f"{file}:").split(":")[0]) for s in said}
    assert lines == {3, 9, 12}
    assert not log.exists()


def test_values_can_come_from_the_environment(tmp_path, upstream):
    port = free_port()
    server = upstream(answering())
    daemon = Daemon(tmp_path, """
        [penstock]
        name = ${NAME:-gate}
        [listener web]
        mode = gateway
        bind = 127.0.0.1:${WEB_PORT}
        upstream = u
        [upstream u]
        server = ${SERVER}
        pool_idle = 200ms
        """, environment={"WEB_PORT": str(port), "SERVER": server.server})
    daemon.start()
    with Client(port) as c:
        assert c.request("/").get("Via") == "1.1 gate"


def test_the_environment_adds_no_keys(write):
    file = write(PLAIN.replace("127.0.0.1:1\nup", "127.0.0.1:${P}\nup"))
    r = run_penstock("-t", "-c", file, env={
        **os.environ, "P": "80\nmax_connections = 1"})
    assert r.returncode == 1
    assert f"{file}:3: " in r.stderr


def test_files_can_be_included(write, tmp_path, upstream):
    server = upstream(answering(body=b"fine"))
    port = free_port()
    (tmp_path / "parts").mkdir()
    write(f"[listener web]\nmode = gateway\nbind = 127.0.0.1:{port}\n"
          "upstream = u\n", "parts/10-listener.conf")
    write(f"[upstream u]\nserver = {server.server}\npool_idle = 200ms\n",
          "parts/20-upstream.conf")
    write("this is not read", "parts/notes.txt")
    Daemon(tmp_path, "include = parts/*.conf").start()
    with Client(port) as c:
        assert c.request("/").body == b"fine"


def test_a_mistake_in_an_included_file_has_its_own_line(write, tmp_path):
    (tmp_path / "parts").mkdir()
    part = write("[penstock]\n\nworker = 1\n", "parts/one.conf")
    said = refused(write("include = parts/*.conf\n"))
    assert said.startswith(f"{part}:3: ")


def test_files_that_include_one_another_are_a_mistake(write):
    file = write("include = b.conf\n")
    write("include = a.conf\n", "b.conf")
    assert "a.conf" in refused(file)


# --- addresses ---

def test_a_second_instance_is_refused_and_the_first_goes_on(
        gateway, upstream, write):
    server = upstream(answering())
    daemon = gateway(server.port)
    file = write(GOOD.format(port=daemon.port))
    r = run_penstock("-c", file)
    assert r.returncode == 1
    assert f"127.0.0.1:{daemon.port}" in r.stderr
    assert "in use" in r.stderr
    with Client(daemon.port) as c:
        assert c.request("/").status == 200


def test_an_admin_address_in_use_is_refused_too(gateway, upstream, write):
    daemon = gateway(upstream(answering()).port)
    file = write(GOOD.format(port=free_port()).replace(
        "bind = off", f"bind = 127.0.0.1:{daemon.admin_port}"))
    r = run_penstock("-c", file)
    assert r.returncode == 1
    assert f"127.0.0.1:{daemon.admin_port}" in r.stderr


def test_an_address_that_is_not_ours_is_refused_by_name(write):
    file = write(GOOD.format(port=1).replace("127.0.0.1:1\nup",
                                             "192.0.2.1:8000\nup"))
    r = run_penstock("-c", file)
    assert r.returncode == 1
    assert "192.0.2.1:8000" in r.stderr


def test_a_second_instance_on_a_unix_socket_is_refused(
        penstock, upstream, short_path, write):
    server = upstream(answering(body=b"fine"))
    config = f"""
        [listener g]
        mode = gateway
        bind = unix:{short_path}/in
        upstream = u
        [upstream u]
        server = {server.server}
        pool_idle = 200ms
        """
    daemon = penstock(config)
    r = run_penstock("-c", write(tidy(config + "[admin]\nbind = off\n")))
    assert r.returncode == 1
    assert f"{short_path}/in" in r.stderr
    page = curl("--unix-socket", short_path / "in", "http://a.test/")
    assert page == b"fine"
    daemon.signal(signal.SIGKILL)
    daemon.process.wait()
    Daemon.live.remove(daemon)
    # What a killed one leaves behind is in nobody's way.
    penstock(config)
    page = curl("--unix-socket", short_path / "in", "http://a.test/")
    assert page == b"fine"


def test_one_port_serves_all_addresses_of_both_families(penstock, upstream):
    server = upstream(answering(body=b"fine"))
    port = free_port()
    penstock(f"""
        [listener g]
        mode = gateway
        bind = :{port}
        upstream = u
        [upstream u]
        server = {server.server}
        pool_idle = 200ms
        """)
    for host in "127.0.0.1", "[::1]", PRIVATE:
        assert curl(f"http://{host}:{port}/") == b"fine"
