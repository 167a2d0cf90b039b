# SPDX-License-Identifier: BSD-2-Clause
"""What comes for Prometheus and Grafana works with what the program tells."""

import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

from penstock import TOP, Client, answering, free_port, wait_for
from servers import Program
from test_manual import listed

RULES = TOP / "conf" / "prometheus-alerts.yml"
DASHBOARD = TOP / "conf" / "grafana-dashboard.json"
PARTS = re.compile(r"_(bucket|sum|count)$")


def promtool(*arguments):
    return subprocess.run(["promtool", *map(str, arguments)], timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)


def rules():
    """The name and expression of each alert."""
    text = re.sub(r"\n {10,}", " ", RULES.read_text())
    return re.findall(r"- alert: (\w+)\s+expr: (?:\| )?(.*)", text)


def panels():
    """The panels of the dashboard that show something."""
    return [p for p in json.loads(DASHBOARD.read_text())["panels"]
            if p["type"] != "row"]


def expressions():
    return [e for _, e in rules()] + [
        t["expr"] for p in panels() for t in p["targets"]]


def test_the_rules_are_in_order():
    r = promtool("check", "rules", RULES)
    assert r.returncode == 0 and "12 rules found" in r.stdout, r.stdout


def test_each_alert_comes_when_it_should():
    r = promtool("test", "rules", TOP / "tests" / "alerts" / "alerts.test.yml")
    assert r.returncode == 0, r.stdout


def test_an_alert_that_has_changed_is_noticed(tmp_path):
    """The rules are tested by what they say, not by their names."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "tests" / "alerts").mkdir(parents=True)
    (tmp_path / "conf" / RULES.name).write_text(
        RULES.read_text().replace("> 0.8\n", "> 0.95\n"))
    copy = tmp_path / "tests" / "alerts" / "alerts.test.yml"
    copy.write_text(
        (TOP / "tests" / "alerts" / "alerts.test.yml").read_text())
    assert promtool("test", "rules", copy).returncode != 0


def test_only_what_there_is_is_asked_for():
    known = set(listed("METRICS")) | {"up"}
    for expression in expressions():
        names = re.findall(r"\b(?:penstock|process)_\w+|\bup\b", expression)
        names = [n for n in names if f'"{n}"' not in expression]
        assert names, expression
        for name in names:
            assert name in known or PARTS.sub("", name) in known, name


def test_the_dashboard_is_one():
    board = json.loads(DASHBOARD.read_text())
    places = [tuple(p["gridPos"][k] for k in "xywh") for p in board["panels"]]
    cells = [(x + dx, y + dy) for x, y, w, h in places
             for dx in range(w) for dy in range(h)]
    assert len(cells) == len(set(cells)), "panels lie on each other"
    assert all(x < 24 for x, _ in cells)
    ids = [p["id"] for p in board["panels"]]
    assert len(ids) == len(set(ids))


class Prometheus(Program):
    """Debian's, scraping one penstock every second, with our rules."""

    def __init__(self, folder, admin):
        self.port = free_port()
        super().__init__(folder, [
            "prometheus", "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            f"--web.listen-address=127.0.0.1:{self.port}"])
        (self.folder / "prometheus.yml").write_text(f"""
global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files: [{RULES}]
scrape_configs:
  - job_name: penstock
    static_configs:
      - targets: ["127.0.0.1:{admin}"]
""")

    def _is_up(self):
        if not super()._is_up():
            return False
        try:
            with urllib.request.urlopen(
                    f"http://127.0.0.1:{self.port}/-/ready", timeout=10):
                return True
        except urllib.error.HTTPError:      # it listens before it is ready
            return False

    def ask(self, path, **query):
        text = urllib.parse.urlencode(query)
        with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}/api/v1/{path}?{text}",
                timeout=10) as r:
            return json.load(r)["data"]

    def values(self, expression):
        """By labels, what an expression is now."""
        return [(s["metric"], float(s["value"][1])) for s in
                self.ask("query", query=expression)["result"]]

    def sum(self, metric):
        return sum(value for _, value in self.values(metric))


@pytest.fixture
def prometheus(tmp_path):
    """prometheus(daemon): one that looks at it."""
    running = []

    def start(daemon):
        running.append(Prometheus(
            tmp_path / "prometheus", daemon.admin_port).start())
        return running[-1]
    yield start
    for p in running:
        p.stop()


def test_prometheus_sees_what_happens(gateway, upstream, prometheus):
    """Under load: its numbers are ours, its rules and our panels answer."""
    server = upstream(answering(body=b"x" * 1000))
    daemon = gateway(server.port, lines="limits = one", rest="""
[limit one]
rate = 1/h
burst = 200
""")
    p = prometheus(daemon)
    wait_for(lambda: p.sum("up") == 1, what="a scrape")
    with Client(daemon.port) as client:
        answers = [client.request(f"/{i}").status for i in range(250)]
    assert answers == [200] * 200 + [429] * 50
    wait_for(lambda: p.sum('penstock_requests_total{code="200"}') == 200 and
             p.sum('penstock_requests_total{code="429"}') == 50,
             what="the requests in Prometheus")
    assert p.values("penstock_limit_refused_total > 0")[0][1] == 50
    assert p.sum("penstock_request_duration_seconds_count") == 250

    groups = p.ask("rules")["groups"]
    found = {r["name"]: r for g in groups for r in g["rules"]}
    assert set(found) == {name for name, _ in rules()}
    wait_for(lambda: all(r["health"] == "ok" for g in
                         p.ask("rules")["groups"] for r in g["rules"]),
             what="rules that were looked at")
    for panel in panels():
        for target in panel["targets"]:
            expression = target["expr"].replace(
                "$__rate_interval", "1m").replace("$instance", ".*")
            p.values(expression)


def test_prometheus_tells_of_a_reload_that_failed(penstock, prometheus):
    daemon = penstock("""
[listener web]
mode = forward
bind = 127.0.0.1:{port}
""".format(port=free_port()))
    p = prometheus(daemon)
    wait_for(lambda: p.sum("penstock_config_last_reload_success") == 1,
             what="a scrape")
    daemon.reload("[listener web]\nmode = backward\n", ok=False)
    wait_for(lambda: [a["state"] for a in p.ask("alerts")["alerts"]
                      if a["labels"]["alertname"] ==
                      "PenstockReloadFailed"] == ["pending"],
             what="the alert")
