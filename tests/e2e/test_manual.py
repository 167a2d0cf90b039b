# SPDX-License-Identifier: BSD-2-Clause
"""penstock(8) says what the program does: metrics, reasons, fields."""

import re

from penstock import TOP, free_port

MANUAL = (TOP / "man" / "penstock.8").read_text()


def listed(section):
    """The items of a section of the manual, with the text of each."""
    part = MANUAL.split(f".Sh {section}\n", 1)[1].split("\n.Sh ", 1)[0]
    part = part.split(".Bl", 1)[1].split("\n.El", 1)[0]
    items = re.split(r"^\.It Ic ", part, flags=re.M)[1:]
    return dict(item.split("\n", 1) for item in items)


def rows(path, pattern):
    """What the pattern finds in a table of the source, strings joined."""
    text = (TOP / "src" / path).read_text()
    text = re.sub(r'"\s*\n\s*"', "", text)
    return re.findall(pattern, text)


def test_every_metric_is_in_the_manual_with_its_help(penstock):
    """And nothing else is."""
    config = """
[listener web]
mode = gateway
bind = 127.0.0.1:{port}
upstream = u
limits = l
[limit l]
concurrency = 1
[upstream u]
server = 127.0.0.1:{port2}
"""
    d = penstock(config.format(port=free_port(),
                             port2=free_port()))
    served = dict(re.findall(r"^# HELP (\S+) (.*)$", d.metrics_text(), re.M))
    manual = listed("METRICS")
    assert set(manual) == set(served)
    for name, text in served.items():
        assert manual[name].startswith(text + "\n"), name


def test_every_reason_is_in_the_manual_with_its_sentence():
    """And no other; what may follow is for operators, not clients."""
    manual = listed("REASONS")
    failures = rows("base/failures.def",
                    r'FAILURE\(\w+,\s*(\d+),\s*"(\w+)",\s*"\w*",\s*"(.*?)"\)')
    assert len(failures) > 40
    assert set(manual) == {token for _, token, _ in failures}
    for status, token, text in failures:
        said = manual[token].split("\n")
        assert said[:2] == [f"{status}." if status != "0" else
                            "Nobody is left to be told.", text], token


def test_every_field_of_the_log_is_in_the_manual_with_its_meaning():
    """And nothing else is."""
    manual = listed("ACCESS LOG")
    fields = rows("proxy/log_fields.def",
                  r'(?m)^LOG_FIELD\((\w+),(?:.*\n)*?\s+"(.*?)"\)')
    assert len(fields) > 15
    assert set(manual) == {"time"} | {name for name, _ in fields}
    for name, text in fields:
        assert manual[name].strip() == text, name
