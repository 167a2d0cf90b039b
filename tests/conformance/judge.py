# SPDX-License-Identifier: BSD-2-Clause
"""Whether a run of a case is what the case says, and what h11 says."""

import re

import oracle
from steps import mask


class Run:
    """What happened in one delivery of a case."""

    def __init__(self, case, delivery, clients, services):
        self.case = case
        self.delivery = delivery
        self.clients = clients          # players
        self.services = services
        self.kept = None                # the first client's probe
        self.lines = []                 # of the log, a list for each client

    def all_lines(self):
        return [line for lines in self.lines for line in lines]

    def without_probe(self, of_clients):
        """Of a list for each client, all but what the probe has added."""
        first, *others = of_clients
        return [one for some in (first[:-1] if self.kept else first, *others)
                for one in some]


def judge(run, reasons):
    """What is wrong with a run, as lines of text; sets run.outcome.

    reasons has the tokens of failures.def for each status.
    """
    wrong = [f"client {n}: {p.problem}" for n, p in enumerate(run.clients)
             if p.problem]
    wrong += [f"upstream {n}: {s.problem}"
              for n, s in enumerate(run.services) if s.problem]
    run.outcome = None
    try:
        sent_on, answers = _second_opinion(run)
        run.outcome = _outcome(run, sent_on, answers)
    except oracle.Objection as e:
        return wrong + [str(e)]
    wrong += _status(run, answers, reasons)
    wrong += _end(run)
    wrong += _bytes(run, sent_on, answers)
    return wrong


def _second_opinion(run):
    """Requests that upstreams got, responses that each client got."""
    is_tcp = run.case.to.startswith("tcp")
    lines = run.all_lines()
    opaque = oracle.tunnels(lines)
    sent_on, answers, theirs, ours = [], [], [], []
    for p, some in zip(run.clients, run.lines):
        found, mouth = ([], oracle.mouth(p)) if is_tcp else \
            oracle.responses(p, some)
        answers.append(found)
        theirs += [mouth] if mouth else []
    for s in run.services:
        found, mouth = ([], oracle.mouth(s)) \
            if is_tcp or s.address in opaque else oracle.requests(s)
        sent_on += found
        ours += [mouth] if mouth else []
    oracle.unbroken(ours, theirs)
    oracle.unbroken(theirs, ours)
    if not is_tcp:
        oracle.agree(sent_on, lines)
    return sent_on, answers


def _outcome(run, sent_on, answers):
    """What may not differ between deliveries.

    A response that may be cut is refused in one and begun in another, so
    that the client's connection is kept in one only.
    """
    outcome = {
        # How much of a body that was given up had gone on is chance.
        "upstream": [(r.start, r.fields, r.complete and r.body)
                     for r in sent_on if not _is_probe(r)],
        "reasons": [line.get("reason", "")
                    for line in run.without_probe(run.lines)],
    }
    if not run.case.or_cut:
        outcome["end"] = run.kept if run.case.ends == "keep" \
            else run.clients[0].end
        outcome["responses"] = [
            [(a.status, _steady(a.fields), a.interim, a.body, a.trailers,
              a.complete) for a in some] for some in answers]
    return outcome


def _is_probe(request):
    return b"/probe-" in request.start


def _steady(fields):
    return tuple(f for f in fields if f[0] != b"date")


def _status(run, answers, reasons):
    case, wrong = run.case, []
    flat = run.without_probe(answers)
    lines = run.without_probe(run.lines)
    status = tuple(a.status for a in flat)
    if _is_cut(run, flat):
        status = case.status
    if not case.to.startswith("tcp") and status != case.status:
        wrong.append(f"status {status}, not {case.status}")
    for a, line in zip(flat, (line for line in lines if line["status"])):
        wrong += _own(a, line, reasons)
    return wrong + _log(run, lines)


def _log(run, lines):
    """What the line of the last exchange, but for the probe's, must say."""
    line = lines[-1] if lines else {}
    wanted = dict(run.case.log)
    if run.case.reason is not None:
        wanted["reason"] = run.case.reason or None
    return [f"{field} {line.get(field)!r} in the log, not {value!r}"
            for field, value in wanted.items() if line.get(field) != value]


def _is_cut(run, flat):
    """Is the last answer a part, where the case allows that?"""
    return run.case.or_cut and bool(flat) and (
        not flat[-1].complete or run.clients[0].end == "reset")


def _own(a, line, reasons):
    """An answer of our own says in every place the same, and why."""
    said = re.search(rb'details="?([a-z_]+)', a.get(b"proxy-status"))
    reason = line.get("reason", "")
    if a.status != line["status"]:
        return [f"status {a.status}, in the log {line['status']}"]
    if not a.complete and not reason and a.status != 101 and \
            line.get("method") != "CONNECT":
        return [f"a part of a response for {line['status']} in the log"]
    if said is None:
        return []
    wrong = oracle.dated(a)
    if said[1].decode() != reason or reason not in reasons[a.status]:
        wrong.append(f"{a.status} for {said[1]!r}, in the log {reason!r}")
    return wrong


def _end(run):
    ends, first = run.case.ends, run.clients[0]
    if ends == "keep" and run.case.or_cut and not run.kept:
        return [] if first.end != "open" else ["neither kept nor ended"]
    if ends == "keep":
        return [] if run.kept else [f"not kept: {first.end}"]
    if ends == "close" and first.end != "fin":
        return [f"no clean end but {first.end}"]
    if ends == "reset" and first.end != "reset":
        return [f"no reset but {first.end}"]
    return []


def _bytes(run, sent_on, answers):
    case, wrong = run.case, []
    starts = [r.start for r in sent_on if not _is_probe(r)]
    if case.seen is not None and tuple(starts) != case.seen:
        wrong.append(f"upstreams got {starts}, not {list(case.seen)}")
    if case.connections not in (None, len(run.services)):
        wrong.append(f"{len(run.services)} connections to upstreams, not "
                     f"{case.connections}")
    theirs = b"".join(bytes(s.received) for s in run.services)
    ours = mask(run.clients[0].received)
    for data, who, patterns, there in (
            (theirs, "upstreams", case.has, True),
            (theirs, "upstreams", case.lacks, False),
            (ours, "the client", case.got, True),
            (ours, "the client", case.got_not, False)):
        for pattern in patterns:
            if bool(re.search(pattern, data)) is not there:
                wrong.append(f"{who} got {'no ' if there else ''}{pattern!r}: "
                             f"{data[:1500]!r}")
    if case.body is not None and (
            not sent_on or sent_on[0].body != case.body):
        wrong.append(f"the body of the first request is "
                     f"{sent_on[0].body[:200] if sent_on else None!r}")
    if case.text is not None and (
            not answers[0] or answers[0][0].body != case.text):
        wrong.append(f"the body of the first response is "
                     f"{answers[0][0].body[:200] if answers[0] else None!r}")
    return wrong
