# SPDX-License-Identifier: BSD-2-Clause
"""Chromium, driven by Playwright in a node of its own; see node/browser.js.

scripts/test installs both.  Where one of them is missing a test that needs it
fails: a page that nobody has looked at is not tested.
"""

import json
import os
import pathlib
import queue
import subprocess
import threading

from penstock import TOP

DRIVER = pathlib.Path(os.environ.get(
    "PLAYWRIGHT", TOP / "build/browser/node_modules/playwright-core"))
CHROMIUM = pathlib.Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))


class Browser:
    """One Chromium.  open() a page; the rest is about that page."""

    def __init__(self, log):
        for path in (DRIVER, CHROMIUM):
            assert path.exists(), f"{path} is missing; scripts/test " \
                "installs it (see browser_driver there)"
        self._process = subprocess.Popen(
            ["node", pathlib.Path(__file__).parent / "node/browser.js",
             DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=log, text=True, env={**os.environ, "HOME": str(
                pathlib.Path(log.name).parent)})
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        assert self._answer() == "ready"

    def _read(self):
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _answer(self):
        line = self._lines.get(timeout=60)
        assert line is not None, "the browser has ended"
        answer = json.loads(line)
        if isinstance(answer, dict) and "error" in answer:
            raise AssertionError(answer["error"])
        return answer

    def _do(self, *what):
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def __getattr__(self, name):
        """Every action of node/browser.js is a method."""
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *arguments: self._do(name, *arguments)

    def stop(self):
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
