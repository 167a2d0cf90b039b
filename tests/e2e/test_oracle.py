# SPDX-License-Identifier: BSD-2-Clause
"""What the oracle of the conformance table objects to, and what not."""

import pathlib
import sys
import types

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "conformance"))

import oracle                                                    # noqa: E402

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 pen\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nDate: x\r\nTransfer-Encoding: chunked\r\n\r\n"


def line(target="/", method="GET", **more):
    """A line of the access log."""
    return {"method": method, "target": target, "server": "127.0.0.1:9001",
            "status": 200, **more}


def requests(received, sent=b""):
    return oracle.requests(types.SimpleNamespace(
        received=received, sent=sent, address="127.0.0.1:9001"))[0]


def responses(received, *lines, end="fin"):
    return oracle.responses(types.SimpleNamespace(
        received=received, end=end, left=False), lines or [line()])[0]


def with_field(message, field):
    """The message with one more line, at the end of its head."""
    return message.replace(b"\r\n\r\n", b"\r\n" + field + b"\r\n\r\n", 1)


def test_what_is_good():
    """All that the daemon may send is no objection."""
    assert len(requests(REQUEST + REQUEST)) == 2
    assert len(responses(OK + OK, line(), line(), end="open")) == 2
    assert not responses(CHUNKED + b"5\r\nab")[0].complete
    assert requests(with_field(
        REQUEST, b"Connection: close, Upgrade\r\nUpgrade: x"))


@pytest.mark.parametrize("field", [
    b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"Keep-Alive: x",
    b"Proxy-Connection: x", b"Trailer: x", b"TE: gzip", b"HTTP2-Settings: x",
    b"Connection: keep-alive", b"Connection: closed",
    b"Proxy-Authorization: x"])
def test_fields_of_requests(field):
    """Framing that can be read in two ways, and what was not meant for all."""
    body = b"0\r\n\r\n" if b"chunked" in field else b""
    with pytest.raises(oracle.Objection):
        requests(with_field(REQUEST, field) + body)


@pytest.mark.parametrize("received", [
    REQUEST.replace(b"1.1\r\nHost", b"1.0\r\nHost"),
    REQUEST.replace(b"Via: 1.1 pen\r\n", b""),
    REQUEST.replace(b"Host: a\r\n", b""),
    b"GET / HTTP/1.1\r\nVia: 1.1 pen\r\nHost: a\r\n\r\n",
    REQUEST + b"GET", REQUEST + b"\r\n"])
def test_heads_of_requests(received):
    """What each request must begin with, and bytes behind the last."""
    with pytest.raises(oracle.Objection):
        requests(received)


@pytest.mark.parametrize("received", [
    CHUNKED + b"2\r\nokXX", CHUNKED + b"2\r\nok\r\nX", CHUNKED + b"-",
    with_field(CHUNKED, b"Content-Length: 2") + b"0\r\n\r\n",
    OK.replace(b"1.1", b"1.0"), OK.replace(b"Date: x\r\n", b""),
    OK.replace(b"200", b"204")[:-2],
    b"HTTP/1.1 103 E\r\nContent-Length: 0\r\n\r\n" + OK,
    OK + OK, OK + b"\r\n", b"", OK[:-8]])
def test_responses(received):
    """Neither what is none, nor other than one, nor bad chunks for a cut."""
    with pytest.raises(oracle.Objection):
        responses(received)


def test_a_response_that_did_not_come():
    """Whatever ended the connection, the log must not have more."""
    last = with_field(OK, b"Connection: close")
    for received in last, CHUNKED + b"5\r\nab":
        assert len(responses(received)) == 1
        with pytest.raises(oracle.Objection):
            responses(received, line(), line())


def test_a_line_too_many():
    """Who got no answer is gone, and is logged once."""
    gone = line(status=0, reason="client_closed")
    assert len(responses(OK, line(), gone)) == 1
    for lines in (gone, line()), (line(), gone, gone):
        with pytest.raises(oracle.Objection):
            responses(OK, *lines)


def sent_on(*targets, complete=True):
    return [oracle.Request(b"GET", target, (), complete=complete)
            for target in targets]


def test_agreement():
    """Each request is that of one line, and each sure line has its own."""
    oracle.agree(sent_on(b"/1", b"/2"), [line("/2"), line("/1")])
    oracle.agree(sent_on(b"/", b"/"), [line(retries=1)])
    oracle.agree([], [line(reason="upstream_closed", status=502)])
    oracle.agree(sent_on(b"/x?y"), [line("http://a/x?y")])
    oracle.agree(sent_on(b"/?y"), [line("http://a?y")])
    for requests, *lines in (
            (sent_on(b"/1", b"/1"), line("/1"), line("/2")),
            (sent_on(b"/1"), line("/1"), line("/2")),
            (sent_on(b"/1", b"/1"), line("/1")),
            (sent_on(b"/1"), line("/0/1")),
            (sent_on(b"/"), line("http://a/x")),
            (sent_on(b"/"), line(method="HEAD")),
            (sent_on(b"/1", complete=False), line("/1"))):
        with pytest.raises(oracle.Objection):
            oracle.agree(requests, lines)
