# SPDX-License-Identifier: BSD-2-Clause
"""The name server of the table: names that lead inside, and odd answers."""

import struct

import penstock

TABLE = {
    "public.test": [penstock.PUBLIC],
    "loopback.test": ["127.0.0.1"],
    "loopback6.test": ["::1"],
    "any.test": ["0.0.0.0"],
    "private.test": [penstock.PRIVATE],
    "link.test": ["169.254.169.254"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "own.test": [penstock.PUBLIC],
    # One address that may be reached and one that may not.
    "mixed.test": ["127.0.0.1", penstock.PUBLIC],
    "empty.test": [],
    "mute.test": None,
}


def _answer(query, records):
    """A good answer to a query, with these records."""
    end = query.index(b"\0", 12) + 5
    return query[:2] + struct.pack(
        ">HHHHH", 0x8180, 1, len(records), 0, 0) + query[12:end] + \
        b"".join(records)


def _cname(owner, to):
    return owner + struct.pack(">HHIH", 5, 1, 60, len(to)) + to


# What an odd name is answered with.
ODD = {
    "zero.test": lambda query: b"",
    "short.test": lambda query: query[:11],
    # The record's name is a pointer to itself.
    "pointer.test": lambda query: _answer(query, [struct.pack(
        ">HHHIH4s", 0xc000 | query.index(b"\0", 12) + 5, 1, 1, 60, 4,
        b"\x5d\xb8\xd8\x22")]),
    # a is b, and b is a.
    "circle.test": lambda query: _answer(query, [
        _cname(b"\xc0\x0c", b"\x01b\x04test\0"),
        _cname(b"\x01b\x04test\0", b"\xc0\x0c")]),
    # A record that says it is longer than what is there.
    "cut.test": lambda query: _answer(query, [struct.pack(
        ">HHHIH", 0xc00c, 1, 1, 60, 400) + b"\x5d\xb8"]),
    # To a question that nobody asked.
    "stray.test": lambda query: bytes([query[0] ^ 1]) + query[1:2] +
    _answer(query, [struct.pack(">HHHIH4s", 0xc00c, 1, 1, 60, 4,
                                b"\x5d\xb8\xd8\x22")])[2:],
}


class Names(penstock.Names):
    """Answers as TABLE and ODD say."""

    def __init__(self):
        super().__init__(TABLE)

    def _answer(self, query):
        labels = query[12:query.index(b"\0", 12)]
        name, at = [], 0
        while at < len(labels):
            name.append(labels[at + 1:at + 1 + labels[at]].decode().lower())
            at += 1 + labels[at]
        odd = ODD.get(".".join(name))
        return odd(query) if odd else super()._answer(query)
