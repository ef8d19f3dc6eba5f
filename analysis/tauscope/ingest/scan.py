"""A scanf over columns of lines: one template, many lines, no loop over them.

A template such as `draft={3} ms` is read from every line at once: each step
compares a literal or reads a number at the lines' own cursors. Numbers are
read eight bytes to a 64-bit word. Lines that do not fit the template from
their first byte to their last are reported as such, never half read.

`{}` is a whole number of 1 to 7 digits, `{3}` and `{6}` are numbers with 1 to 7
digits before the point and exactly 3 or 6 after it. Anything else (a sign, an
exponent, a longer number) does not fit: the general reader takes those lines.
"""

from __future__ import annotations

import re

import numpy as np

U = np.uint64
_ZEROS = U(0x3030303030303030)
_CARRY = U(0x7676767676767676)
_HIGH = U(0x8080808080808080)
_PAIRS = U(0x00FF00FF00FF00FF)
_QUADS = U(0x0000FFFF0000FFFF)
_LOW = U(0xFFFFFFFF)


def words(data: np.ndarray) -> np.ndarray:
    """Every 8-byte word of `data` (uint8), at every offset, without a copy."""
    return np.lib.stride_tricks.as_strided(data[:8].view(U), (len(data) - 8,), (1,))


def word(text: str) -> np.uint64:
    """The first eight bytes of an ASCII text as a word."""
    return np.frombuffer(text.encode()[:8].ljust(8, b"\0"), U)[0]


def _value(digits: np.ndarray, count: np.ndarray | int) -> np.ndarray:
    """Value of the first `count` decimal digits in words of byte-wise digits."""
    shift = U(64) - (np.asarray(count).astype(U) << U(3))
    v = digits << shift
    v = (v * U(10) + (v >> U(8))) & _PAIRS
    v = (v * U(100) + (v >> U(16))) & _QUADS
    return (v * U(10000) + (v >> U(32))) & _LOW


class Template:
    """One line shape, compiled once."""

    def __init__(self, text: str) -> None:
        self.steps: list[tuple[str, int]] = []
        for literal, hole in re.findall(r"([^{}]*)(\{\d?\}|$)", text):
            if literal:
                self.steps.append((literal, -1))
            if hole:
                self.steps.append(("", int(hole[1:-1] or 0)))

    def scan(
        self, data: np.ndarray, starts: np.ndarray, ends: np.ndarray
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Which lines fit, and for each hole its values (int64 or float64) on all lines.

        `starts` is where the template's first byte is looked for. Values of
        lines that do not fit mean nothing.
        """
        view = words(data)
        at = starts
        ok = np.ones(len(starts), bool)
        values: list[np.ndarray] = []
        for literal, decimals in self.steps:
            if decimals < 0:
                for k in range(0, len(literal), 8):
                    part = literal[k : k + 8]
                    here = view[at + k]
                    if len(part) < 8:
                        here = here & U((1 << (8 * len(part))) - 1)
                    ok &= here == word(part)
                at = at + len(literal)
                continue
            x = view[at] ^ _ZEROS
            other = ((x + _CARRY) | x) & _HIGH
            count = np.bitwise_count((other & (~other + U(1))) - U(1)).astype(np.int64) >> 3
            ok &= (count > 0) & (count < 8)
            number = _value(x, np.clip(count, 1, 7)).astype(np.int64)
            at = at + count
            if decimals == 0:
                values.append(number)
                continue
            ok &= data[at] == ord(".")
            x = view[at + 1] ^ _ZEROS
            ok &= ((x + _CARRY) | x) & U(
                (0x80 * (0x0101010101010101)) & ((1 << (8 * decimals)) - 1)
            ) == 0
            scale = 10**decimals
            number = number * scale + _value(x, decimals).astype(np.int64)
            values.append(number / scale)
            at = at + 1 + decimals
        return ok & (at == ends), values
