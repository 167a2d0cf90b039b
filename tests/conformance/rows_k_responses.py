# SPDX-License-Identifier: BSD-2-Clause
"""Rows k4, k6, k11, k13, k14 and k20: responses that have killed a proxy."""

from steps import Await, EOF, FIN, Mark, Quiet, REQUEST, Until
from table import E, G, K, OK, case

CHUNKED = K + b"Transfer-Encoding: chunked\r\n\r\n"
EVIL = b"HTTP/1.1 200 OK\r\nX: evil\r\nContent-Length: 4\r\n\r\nevil"
OLD = b"GET / HTTP/1.0\r\nHost: a\r\n\r\n"

# --- k4: what a chunk announces is not what is sent on ---

BULK = b"~" * 100_000
for size in (b"100000001", b"FFFFFFFF", b"100000000", b"7FFFFFFFFFFFFFFF",
             b"000000100000001"):
    case("k4", size.decode(), clients=[[G + E, Until(b"~~"), Mark("some"),
                                        EOF]],
         upstream=[(REQUEST, CHUNKED + size + E + BULK, FIN, EOF)],
         ends="close", reason="upstream_closed", connections=1,
         got=rb"\r\n\r\n[0-9a-f]{1,5}\r\n~", got_not=rb"\r\n0\r\n")
case("k4", "to 1.0", clients=[[OLD, EOF]],
     upstream=[(REQUEST, CHUNKED + b"100000001\r\n" + BULK, FIN, EOF)],
     ends="reset", reason="upstream_closed", got=rb"\r\n\r\n~", or_cut=True)
for size in (b"8000000000000000", b"FFFFFFFFFFFFFFFF", b"10000000000000001",
             b"F" * 17, b"0" * 17, b"0" * 16 + b"2"):
    case("k4", f"{size.decode()} is too much", client=G + E, or_cut=True,
         upstream=[(REQUEST, CHUNKED + size + b"\r\nevil", EOF)],
         status=502, reason="response_invalid", got_not=rb"evil")

# --- k6: an extension as long as what is read at once ---

# A line of so many bytes is walked through; what is kept of it is its length.
TAKEN = 16385


def without_an_end(name, n):
    """A chunk's first line of n bytes, and the upstream says no more."""
    taken = n <= TAKEN
    case("k6", name, client=G + E, or_cut=True, status=502,
         reason="upstream_closed" if taken else "response_invalid",
         upstream=[(REQUEST, CHUNKED + b"2;" + b"a" * (n - 2),
                    *([FIN] if taken else []), EOF)])


for size in (1 << 12, 1 << 14, 1 << 15, 1 << 16, 1 << 17):
    for n in (size - 1, size, size + 1, size + 2):
        without_an_end(f"{n} bytes", n)
        without_an_end(f"{n} bytes with the head", n - len(CHUNKED))
case("k6", "digits", client=G + E, or_cut=True,
     upstream=[(REQUEST, CHUNKED + b"0" * 65536, EOF)], status=502,
     reason="response_invalid")
case("k6", "a little is taken", client=G + E,
     upstream=[CHUNKED + b"2;" + b"a" * 500 + b"\r\nok\r\n0;b=c\r\n\r\n"],
     got_not=rb"aaaa", text=b"ok", connections=1)

# --- k11: a status line in two parts, on a connection that was used before ---

LINE = b"HTTP/1.1 201 Made\r\n"
REST = b"Content-Length: 2\r\n\r\nno"
for cut in range(1, len(LINE)):
    case("k11", f"after {LINE[:cut]!r}", status=[200, 201], connections=1,
         client=[G + E, Until(b"ok"), b"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n"],
         upstream=[(REQUEST, OK, REQUEST, LINE[:cut], Quiet(0.01),
                    LINE[cut:] + REST)],
         got=rb"HTTP/1\.1 201 Made\r\n(?s:.*)\r\n\r\nno")

# --- k13: a chunk of less than nothing ---

for size in (b"-1", b"-80000000", b"-0", b"-", b"+2", b"0x2", b" 2", b"2 ",
             b"G", b"", b";", b"2.", b"2\n", b"\n", b"2,", b"2;;", b"2;=a"):
    case("k13", repr(size)[2:-1], client=G + E, or_cut=True,
         upstream=[(REQUEST, CHUNKED + size + b"\r\nevil", EOF)],
         status=502, reason="response_invalid", got_not=rb"evil")
    case("k13", f"{size!r} after a good one", client=G + E, or_cut=True,
         upstream=[(REQUEST, CHUNKED + b"2\r\nok\r\n" + size + b"\r\nevil",
                    EOF)],
         status=502, reason="response_invalid", got_not=rb"evil")
for end in (b"XX", b"\n", b"\rX", b"X\r\n", b"\r\r\n"):
    case("k13", f"content ends with {end!r}", client=G + E, or_cut=True,
         upstream=[(REQUEST, CHUNKED + b"2\r\nok" + end + b"0\r\n\r\n", EOF)],
         status=502, reason="response_invalid", got_not=rb"\r\n0\r\n")
for trailer in (b"\n", b"X y\r\n\r\n", b"X : y\r\n\r\n", b" X: y\r\n\r\n",
                b"X: y\n\r\n", b"X: \0\r\n\r\n", b"X: y\r\n z\r\n\r\n"):
    case("k13", f"trailer {trailer!r}", client=G + E, or_cut=True,
         upstream=[(REQUEST, CHUNKED + b"2\r\nok\r\n0\r\n" + trailer, EOF)],
         status=502, reason="response_invalid", got_not=rb"\r\n0\r\n")
# Refused with a clean end, or begun and reset.
case("k13", "to 1.0", client=[OLD, EOF], or_cut=True, ends="any", status=502,
     upstream=[(REQUEST, CHUNKED + b"2\r\nok\r\n-1\r\nevil", EOF)],
     reason="response_invalid", got_not=rb"evil")

# --- k14: responses to no request ---

FIRST = K + b"Content-Length: 5\r\n\r\nfirst"
case("k14", "at accept", client=G + E, upstream=[(FIRST + EVIL, EOF)],
     text=b"first", got_not=rb"evil", connections=2)
case("k14", "at accept, before a body",
     clients=[[b"POST / HTTP/1.1\r\nHost: a\r\n"
               b"Content-Length: 5\r\n\r\n", Until(b"first"), b"hello"]],
     upstream=[(FIRST + EVIL, EOF)], text=b"first", got_not=rb"evil",
     ends="close")
case("k14", "idle, ten times", connections=11, status=[200] * 11,
     client=[step for n in range(10) for step in
             (G + E, Until(b"ok"), Mark(f"idle {n}"), Await(f"sent {n}"))] +
     [G + E],
     upstream=[(REQUEST, OK, Await(f"idle {n}"), EVIL, Mark(f"sent {n}"), EOF)
               for n in range(10)], got_not=rb"evil")
case("k14", "with the last byte, ten times", connections=11,
     status=[200] * 11, client=[G + E, Until(b"ok")] * 10 + [G + E],
     upstream=[(REQUEST, OK + EVIL, EOF)] * 10, got_not=rb"evil")

# --- k20: who is asked to authenticate the connection ---

def unauthorised(challenges):
    return (b"HTTP/1.1 401 U\r\n" + b"".join(
        b"WWW-Authenticate: " + c + E for c in challenges) +
        b"Content-Length: 2\r\n\r\nno")


for challenges in ([b"NTLM"], [b"Negotiate"], [b"ntlm"], [b"NEGOTIATE"],
                   [b"NTLM TlRMTVNTUAAC"], [b"Negotiate YII="],
                   [b"Basic realm=x", b"NTLM"], [b"Negotiate", b"NTLM"],
                   [b'Basic realm="a, b"', b"Digest realm=x, negotiate"]):
    name = b", ".join(challenges).decode()
    case("k20", name, client=G + E, status=401, connections=2,
         upstream=[(REQUEST, unauthorised(challenges), EOF)],
         got=rb"(?im)^www-authenticate: " + challenges[0] + rb"\r$")
    case("k20", f"{name}, and another client",
         clients=[[G + E, Until(b"no"), Mark("asked"), Await("over")],
                  [Await("asked"), G + E, Until(b"ok"), Mark("over")]],
         upstream=[(REQUEST, unauthorised(challenges), EOF), OK],
         status=[401, 200], connections=2)
for credentials in (b"NTLM TlRMTVNTUAAB", b"Negotiate YII=", b"ntlm abc"):
    case("k20", f"Authorization: {credentials.decode()}", connections=2,
         client=G + b"Authorization: " + credentials + b"\r\n\r\n",
         upstream=[(REQUEST, OK, EOF)],
         has=rb"(?im)^authorization: " + credentials + rb"\r$")
case("k20", "Authorization: Basic binds nothing", connections=1,
     client=G + b"Authorization: Basic TlRMTQ==\r\n\r\n")
for challenge in (b"Basic realm=NTLM", b"Digest realm=x", b"Bearer", b"NTLMX",
                  b'Basic realm="NTLM, Negotiate"',
                  b'Digest realm="a", opaque=NTLM'):
    case("k20", f"{challenge.decode()} binds nothing", client=G + E,
         status=401, upstream=[unauthorised([challenge])], connections=1)
