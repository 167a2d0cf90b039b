# SPDX-License-Identifier: BSD-2-Clause
"""The page for people, in a browser, with real traffic behind it.

What it shows is what /metrics says; it can be used by keyboard, in the dark
and on a telephone; and it asks nothing of anybody else.
"""

import os
import re
import signal
import threading

import pytest

from browser import Browser
from penstock import Client, answering, free_port, wait_for

# What a page of ours needs to be shown once; two cores may be busy.
PATIENCE = 30

DESK = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "hasTouch": True,
         "isMobile": True, "deviceScaleFactor": 2}
WIDTHS = (320, 360, 390, 480, 720, 721, 800, 900, 1024, 1060, 1061, 1280,
          1920)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    with open(folder / "node.log", "w") as log:
        b = Browser(log)
        yield b
        b.stop()


@pytest.fixture
def page(chromium):
    """page(daemon, options): /status of a daemon, shown; a Browser.

    At the end nothing was complained of, and nothing came from elsewhere.
    """
    def show(daemon, options=DESK):
        url = f"http://127.0.0.1:{daemon.admin_port}/status"
        assert chromium.open(url, options) == 200
        wait_until(chromium, "asked >= 2")
        return chromium
    yield show
    assert chromium.said() == []
    chromium.close()


def wait_until(browser, condition):
    wait_for(lambda: browser.run(condition), PATIENCE,
             lambda: f"{condition}; {browser.run('document.body.innerText')}")


TABLE = """
(id) => {
    const box = document.getElementById(id);
    const names = [...box.querySelectorAll("thead th")].map(
        (e) => e.textContent);
    return [...box.querySelectorAll("tbody tr")].map((row) =>
        Object.fromEntries([...row.children].map((cell, i) =>
            [names[i], cell.textContent])));
}
"""


def table(browser, id):
    """The rows of a table as they are shown, by the names of its columns."""
    return browser.run(f"({TABLE})('{id}')")


def row(browser, id, begin):
    """The one whose first cell begins so."""
    found = [r for r in table(browser, id)
             if next(iter(r.values())).startswith(begin)]
    assert len(found) == 1, (begin, table(browser, id))
    return found[0]


def number(text):
    """The first number in a text: "1,234 of 5" is 1234."""
    return float(re.search(r"\d[\d,]*(\.\d+)?", text)[0].replace(",", ""))


def seconds(text):
    return number(text) * {"ms": 1e-3, "µs": 1e-6, "s": 1}[text.split()[-1]]


def quantile(daemon, q, name, **labels):
    """What Prometheus's histogram_quantile() says."""
    metrics, wanted = daemon.metrics(), set(labels.items())
    counts = {}
    for (n, has), value in metrics.items():
        if n == name + "_bucket" and wanted <= has:
            le = float(dict(has)["le"])
            counts[le] = counts.get(le, 0) + value
    rank, low, below = q * counts[float("inf")], 0, 0
    for le in sorted(counts):
        if counts[le] >= rank:
            return low + (le - low) * (rank - below) / (counts[le] - below)
        low, below = le, counts[le]


CONFIG = """
    [listener web]
    mode = gateway
    bind = 127.0.0.1:{web}
    upstream = app
    limits = each two
    [listener db]
    mode = tcp
    bind = 127.0.0.1:{db}
    upstream = nowhere
    [upstream app]
    server = 127.0.0.1:{app}
    server = lost.invalid:80
    pool_idle = 200ms
    [upstream nowhere]
    server = 127.0.0.1:{nowhere}
    [limit each]
    key = client_address
    rate = 1000/s
    concurrency = 9
    [limit two]
    concurrency = 2
    queue = 4
    queue_timeout = 30s
    """


@pytest.fixture
def busy(penstock, upstream):
    """A daemon that has served, refused and failed, and stays as it is: two
    are inside, four wait, and .finish() lets them go."""
    let = threading.Event()
    app = upstream(answering(body=b"x" * 1000, think=lambda r: (
        r.target == "/wait" and let.wait(60))))
    ports = {"web": free_port(), "db": free_port(), "nowhere": free_port()}
    d = penstock(CONFIG.format(app=app.port, **ports))
    clients = [Client(ports["web"], timeout=60) for _ in range(6)]
    with Client(ports["web"]) as c:
        for _ in range(1200):
            assert c.request("/").status in (200, 429)
    d.wait_metric("penstock_sessions", 6)
    d.wait_count("requests", 1200)
    for i, c in enumerate(clients):
        c.ask("/wait")
        d.wait_metric("penstock_exchanges", i + 1)
    with Client(ports["web"]) as c:
        for _ in range(7):
            assert c.request("/").status in (503, 429)
    with Client(ports["db"]) as c:
        assert c.at_end()
    d.wait_metric("penstock_sessions", 6)
    d.wait_count("requests", 1207)
    d.wait_count("failures", 1, listener="db")

    def finish():
        let.set()
        for c in clients:
            assert c.read_message().status == 200
            c.close()
    d.web, d.finish = ports["web"], finish
    yield d
    let.set()


def test_what_the_page_shows_is_what_metrics_say(busy, page):
    b, is_now = page(busy), busy.metric
    two = row(b, "limits", "two")
    assert two["In use"] == "2 of 2 · peak 2"
    assert is_now("penstock_limit_in_use", limit="two") == 2
    assert two["Waiting"].startswith("4 of 4")
    assert is_now("penstock_limit_waiting", limit="two") == 4
    assert f"queue_full {is_now('penstock_limit_refused_total', limit='two'):.0f}" \
        in two["Refused, and why"]
    each = row(b, "limits", "each")
    assert number(each["In use"]) == is_now(
        "penstock_limit_in_use", limit="each")
    limited = is_now("penstock_limit_refused_total", limit="each")
    if limited:
        assert f"rate_limited {limited:,.0f}" in each["Refused, and why"]

    web = row(b, "listeners", "web")
    assert web["Listener"] == f"web gateway127.0.0.1:{busy.web}"
    for column, name in (("Clients", "penstock_sessions"),
                         ("In flight", "penstock_exchanges"),
                         ("Tunnels", "penstock_tunnels"),
                         ("Requests", "penstock_requests_total")):
        assert number(web[column]) == is_now(name, listener="web"), column
    for code, column in (("200", "2xx"), ("429", "4xx"), ("503", "5xx")):
        assert number(web[column]) == is_now(
            "penstock_requests_total", listener="web", code=code), column
    for q, column in ((0.5, "Median"), (0.99, "99 %")):
        assert seconds(web[column]) == pytest.approx(quantile(
            busy, q, "penstock_request_duration_seconds", listener="web"),
            rel=0.06), column

    server = row(b, "upstreams", "127.0.0.1:" + str(
        [p for p in re.findall(r"server = 127.0.0.1:(\d+)",
                               busy.file.read_text())][0]))
    name = dict(upstream="app", server=server["Upstream, server"])
    for column, metric in (("In use", "penstock_server_in_use"),
                           ("Requests", "penstock_server_requests_total"),
                           ("Failures", "penstock_server_failures_total")):
        assert number(server[column]) == is_now(metric, **name), column
    assert server["State"] == "✓ up"
    assert row(b, "upstreams", "lost.invalid")["State"] == "■ no address"
    app = row(b, "upstreams", "app")
    assert app["State"] == "1 of 2 up"
    assert app["Pool"] == "{:.0f} busy, {:.0f} idle".format(
        *(is_now("penstock_pool_connections", upstream="app", state=s)
          for s in ("busy", "idle")))

    failed = row(b, "troubles", "connect_refused")
    assert failed["Listener"] == "db" and "failed" in failed["Reason"]
    assert number(failed["In all"]) == is_now(
        "penstock_failures_total", reason="connect_refused") == 1
    full = row(b, "troubles", "queue_full")
    assert "refused" in full["Reason"]
    assert number(full["In all"]) == is_now(
        "penstock_failures_total", reason="queue_full")

    workers = table(b, "workers")
    for w in workers:
        assert number(w["Clients"]) == is_now(
            "penstock_worker_sessions", worker=w["Worker"])
        assert seconds(w["Longest turn"]) == pytest.approx(is_now(
            "penstock_loop_longest_turn_seconds", worker=w["Worker"]),
            rel=0.06)
    figures = dict(zip(*[b.run(f"""[...document.querySelectorAll(
        '#figures {tag}')].map((e) => e.textContent)""")
        for tag in ("dt", "dd")]))
    assert "1,207 in all" in figures["Requests"]
    assert figures["In flight"] == "64 waiting"
    assert figures["Clients"] == "60 tunnels"
    busy.finish()


def attentive(b):
    """The page, once it has looked: what failed is noted every 2 s."""
    wait_for(lambda: b.run("document.getElementById('title').textContent") ==
             "■Needs attention", what="a verdict")
    return b


def test_what_is_wrong_is_said_first(busy, page):
    b = attentive(page(busy))
    said = b.run("""[...document.querySelectorAll("#findings li")].map(
        (e) => e.textContent)""")
    assert said[0] == "■Listener db failed requests in the last 2 minutes: " \
        "connect_refused 1. Show"
    assert "▲Upstream app: lost.invalid:80 can't be used. Show" in said
    assert any(s.startswith("▲Limit two is full, with 2 inside and 4 waiting; "
                            "it refused in the last 2 minutes: queue_full")
               for s in said)
    assert b.run("document.title").startswith("■ Needs attention")
    busy.finish()


def test_the_page_follows_without_being_loaded_again(busy, page):
    b = page(busy)
    b.run("document.body.dataset.mark = 'here'")
    busy.finish()
    wait_until(b, """document.querySelector("#limits").textContent
        .includes("0 of 2")""")
    with Client(busy.web) as c:
        statuses = [c.request("/").status for _ in range(50)]
    busy.wait_count("requests", 1263, listener="web")
    wait_until(b, """document.querySelector("#listeners").textContent
        .includes("1,263")""")
    assert number(row(b, "listeners", "web")["2xx"]) == busy.metric(
        "penstock_requests_total", code="200") and 200 in statuses
    assert b.run("document.body.dataset.mark") == "here"


def test_the_configuration_is_there_with_its_origins(busy, page):
    b = page(busy)
    b.run("document.querySelector('#config-box').open = true")
    wait_until(b, "document.querySelectorAll('#config tr.set').length > 10")
    rows = [tuple(r) for r in b.run("""[...document.querySelectorAll(
        "#config tbody tr")].map((r) => [...r.children].map(
        (c) => c.textContent))""")]
    lines = busy.file.read_text().splitlines()
    line = lines.index("queue = 4") + 1
    assert ("queue", "4", f"{busy.file}:{line}") in rows
    assert ("queue_order", "fifo", "default") not in rows
    b.run("document.querySelector('#given').click()")
    b.run("document.querySelector('#find').focus()")
    b.type("queue_or")
    shown = b.run("document.querySelector('#config').textContent")
    assert "queue_orderfifodefault" in shown and "queue_timeout" not in shown
    assert b.run("document.querySelector('#found').textContent") == "2 values"
    busy.finish()


def test_everything_can_be_done_by_keyboard(busy, page):
    b = page(busy)
    where = """(() => {
        const e = document.activeElement, s = getComputedStyle(e);
        return [e.id || e.textContent || e.getAttribute("aria-label"),
            e.getAttribute("aria-label") || "", s.outlineStyle,
            parseFloat(s.outlineWidth) || 0,
            e === document.body];
    })()"""
    b.press("Tab")
    assert b.run(where)[0] == "Skip to what is going on"
    seen = {}
    for _ in range(60):
        name, label, style, width, at_end = b.run(where)
        if at_end:
            break
        assert style != "none" and width >= 2, f"no outline: {name}"
        seen[label or name] = True
        b.press("Tab")
    names = " ".join(seen)
    for wanted in ("pause", "Show", "Requests a second", "Latency", "At once",
                   "Bytes a second", "h-config", "/metrics", "/status.json"):
        assert wanted in names, (wanted, names)

    # The charts tell what was at a moment, by arrows.
    wait_until(b, "samples.length >= 3")
    b.run("document.querySelectorAll('.plot')[0].focus()")
    said = "document.activeElement.getAttribute('aria-valuetext')"
    latest = b.run(said)
    assert re.search(r": answered \S+/s, refused \S+/s, failed \S+/s", latest)
    b.press("Home")
    assert b.run("looked_at === samples[0]")
    assert b.run("document.querySelectorAll('.cross').length") == 4
    b.press("ArrowRight")
    assert b.run("looked_at === samples[1]")
    b.press("Escape")
    assert b.run("looked_at") is None

    # It can be stopped, and goes on.
    b.run("document.querySelector('#pause').focus()")
    b.press("Enter")
    assert b.run("paused && document.activeElement.ariaPressed") == "true"
    b.press("Space")
    wait_until(b, "!paused && fresh.textContent === 'live'")
    # And the configuration opens.
    b.run("document.querySelector('#h-config').focus()")
    b.press("Enter")
    assert b.run("document.querySelector('#config-box').open")
    busy.finish()


def test_a_screen_reader_is_told_what_there_is(busy, page):
    b = attentive(page(busy))
    heard = b.heard()
    for wanted in ("banner", "main", "contentinfo", "status:",
                   'heading "Needs attention" [level=1]',
                   'heading "Limits" [level=2]', "region \"Limits\"",
                   'table "Limits: who is inside, who waits, who is refused"',
                   'columnheader "In use"', 'rowheader "two"',
                   'meter "In use of limit two"',
                   'meter "Descriptors"',
                   'slider "Latency, over the last ten minutes"',
                   'list "Findings"'):
        assert wanted in heard, (wanted, heard)
    # Nothing else interrupts: only the verdict and a count are live.
    assert b.run("""[...document.querySelectorAll('[aria-live],[role=status]')]
        .map((e) => e.id || e.parentElement.id)""") == ["verdict", "found"]
    assert b.run("document.documentElement.lang") == "en"
    # On a telephone, where rows are cards, they are tables all the same.
    b.resize(390, 844)
    assert 'columnheader "In use"' in b.heard()
    busy.finish()


# The contrast of every text with what is behind it, the worst first.
CONTRAST = """
(() => {
    const parse = (c) => c.match(/[\\d.]+/g).map(Number);
    const linear = (v) => (v /= 255) <= 0.04045 ? v / 12.92 :
        ((v + 0.055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) +
        0.0722 * linear(b);
    const behind = (e) => {
        for (; e; e = e.parentElement) {
            const c = parse(getComputedStyle(e).backgroundColor);
            if (c.length === 3 || c[3] === 1)
                return c;
        }
        return [255, 255, 255];
    };
    const worst = [];
    const walk = document.createTreeWalker(document.body,
        NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const e = walk.currentNode.parentElement;
        const svg = e.namespaceURI.endsWith("svg");
        if (!walk.currentNode.data.trim() || e.closest("script,style,noscript")
            || !e.getClientRects().length)
            continue;
        const s = getComputedStyle(e);
        const a = light(parse(svg ? s.fill : s.color)), b = light(behind(e));
        worst.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05),
            walk.currentNode.data.trim()]);
    }
    return worst.sort((x, y) => x[0] - y[0]);
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_in_light_and_in_dark(busy, page, scheme):
    b = page(busy, {**DESK, "colorScheme": scheme})
    b.run("document.querySelector('#config-box').open = true")
    texts = b.run(CONTRAST)
    assert len(texts) > 150
    assert texts[0][0] >= 4.5, texts[:5]
    page_light = b.run("""getComputedStyle(document.body).backgroundColor
        .match(/\\d+/g).map(Number)[0]""")
    assert page_light > 200 if scheme == "light" else page_light < 50
    # Changing it at dusk needs no reload.
    b.look({"colorScheme": "dark" if scheme == "light" else "light"})
    assert b.run(CONTRAST)[0][0] >= 4.5
    busy.finish()


def test_no_width_needs_scrolling_sideways(penstock, page):
    """Not even with the longest names and addresses there can be."""
    long = "n" * 40
    d = penstock(f"""
        [listener {long}]
        mode = gateway
        bind = 127.0.0.1:{free_port()} [::1]:{free_port()}
        upstream = {long}
        limits = {long}
        [limit {long}]
        concurrency = 1000000
        queue = 1000000
        rate = 999999/s
        [upstream {long}]
        server = {'a' * 60}.{'b' * 60}.invalid:65535
        """)
    b = page(d, PHONE)
    b.run("document.querySelector('#config-box').open = true")
    b.run("document.querySelector('#given').click()")
    for width in WIDTHS:
        b.resize(width, 800)
        wide = b.run("""[document.documentElement.scrollWidth - innerWidth,
            ...[...document.querySelectorAll("table")].map((t) =>
            t.scrollWidth - t.parentElement.clientWidth)]""")
        assert max(wide) <= 0, (width, wide)


def test_text_twice_as_large_still_fits_a_telephone(busy, page):
    b = page(busy, PHONE)
    b.run("document.body.style.fontSize = '28px'")
    b.run("draw_charts()")
    assert b.run("document.documentElement.scrollWidth <= innerWidth")
    busy.finish()


def test_a_daemon_that_is_gone_is_said_to_be(busy, page):
    b = page(busy)
    busy.kill()
    wait_until(b, "document.title.startsWith('■ No answer')")
    assert b.run("document.body.classList.contains('stale')")
    assert b.run("fresh.textContent").startswith("no answer since ")
    # What it said last is still there to be read.
    assert row(b, "limits", "two")["In use"].startswith("2 of 2")
    assert any("ERR_CONNECTION" in s for s in b.said())
    b.close()


def test_a_daemon_that_drains_is_said_to(busy, page):
    b = page(busy)
    busy.signal(signal.SIGTERM)
    wait_until(b, "title.textContent.includes('Draining')")
    # It has left when its last client has: then the page has nobody to ask.
    b.close()
    busy.finish()
    assert busy.wait(40) == 0


def test_a_healthy_one_is_said_to_be_so_on_a_telephone(gateway, page,
                                                       upstream, tmp_path):
    d = gateway(upstream(answering(body=b"x")).port)
    with Client(d.port) as c:
        for _ in range(100):
            c.request("/")
    d.wait_count("requests", 100)
    b = page(d, {**PHONE, "colorScheme": "dark"})
    wait_until(b, "title.textContent === '✓Healthy'")
    assert b.run("document.querySelector('#findings').children.length") == 0
    path = b.shot(str(tmp_path / "phone.png"), {"fullPage": True})
    assert os.path.getsize(path) > 20000
