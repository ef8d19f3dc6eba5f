"""A scanf over columns of lines: one template, many lines, no loop over them.

A template such as `draft={3} ms` is read from every line at once: each step
compares a literal or reads a number at the lines' own cursors. Numbers are
read eight bytes to a 64-bit word. Lines that do not fit the template from
their first byte to their last are reported as such, never half read.

`{1}` is one digit, `{}` a whole number of 1 to 7 digits, `{0}` one whose value nobody
wants, `{3}` a number with 1 to 4 digits before the point and 3 after it, `{6}` one
with 1 to 7 and 6. Anything else (a sign, an exponent, a longer number) does not
fit: the general reader takes those lines.
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
_ONE = U(1)
_POINT = U(0x80 << 32)  # a point's mark with the digits before it shifted out


def words(data: np.ndarray) -> np.ndarray:
    """Every 8-byte word of `data` (uint8), at every offset, without a copy."""
    return np.lib.stride_tricks.as_strided(data[:8].view(U), (len(data) - 8,), (1,))


def word(text: str) -> np.uint64:
    """The first eight bytes of an ASCII text as a word."""
    return np.frombuffer(text.encode()[:8].ljust(8, b"\0"), U)[0]


def _value(digits: np.ndarray, shift: np.ndarray | np.uint64) -> np.ndarray:
    """Value of the first digits in words of byte-wise digits, once shifted to the top."""
    v = digits << shift
    v = (v * U(10) + (v >> U(8))) & _PAIRS
    v = (v * U(100) + (v >> U(16))) & _QUADS
    return ((v * U(10000) + (v >> U(32))) & _LOW).view(np.int64)


def _digits(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Words as byte-wise digits, eight times the number of digits they begin with, and the
    top bits of the bytes that are none (right up to the first such byte, and for a point)."""
    x ^= _ZEROS
    other = x + _CARRY
    other |= x
    other &= _HIGH
    # The lowest bit of `other` is the top bit of the first byte that is no digit.
    below = other - _ONE
    below &= ~other
    return x, (np.bitwise_count(below) & 0x78).astype(U), other


class Template:
    """One line shape, compiled once."""

    def __init__(self, text: str) -> None:
        self.steps: list[tuple[str, str]] = []
        for literal, hole in re.findall(r"([^{}]*)(\{\d?\}|$)", text):
            if literal:
                self.steps.append((literal, ""))
            if hole:
                self.steps.append(("", hole))

    def scan(
        self, data: np.ndarray, starts: np.ndarray, ends: np.ndarray
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Which lines fit, and for each hole but `{0}` its values on all lines.

        `starts` is where the template's first byte is looked for. Values of
        lines that do not fit mean nothing.
        """
        view = words(data)
        at, ahead = starts, 0  # the cursor stands at `at + ahead`
        wrong = np.zeros(len(starts), U)
        ok = np.ones(len(starts), bool)
        values: list[np.ndarray] = []
        for literal, hole in self.steps:
            if literal:
                size = len(literal)
                # Words may overlap; only a literal shorter than one needs a mask.
                for k in (*range(0, size - 8, 8), max(0, size - 8)):
                    here = view[ahead + k :][at]
                    here ^= word(literal[k : k + 8])
                    if size < 8:
                        here &= U((1 << (8 * size)) - 1)
                    wrong |= here
                ahead += size
            elif hole == "{1}":
                digit = data[ahead:][at]
                digit ^= np.uint8(ord("0"))
                ok &= digit < 10
                values.append(digit)
                ahead += 1
            elif hole == "{3}":
                value, size = _thousandths(view[ahead:][at], ok)
                values.append(value)
                at, ahead = at + size, ahead + 4
            else:
                x, bits, _ = _digits(view[ahead:][at])
                ok &= (bits > 0) & (bits < 64)
                at = at + (bits >> U(3)).view(np.int64)
                if hole == "{0}":
                    continue
                number = _value(x, (U(64) - bits) & U(63))
                if hole == "{6}":
                    ok &= data[ahead:][at] == ord(".")
                    x, bits, _ = _digits(view[ahead + 1 :][at])
                    ok &= bits >= 48
                    number = (number * 1_000_000 + _value(x, U(16))) / 1e6
                    ahead += 7
                values.append(number)
        ok &= wrong == 0
        ok &= ends - at == ahead
        return ok, values


def _thousandths(word_: np.ndarray, ok: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values of numbers like `41.250` at the head of words, and the digits before the point.

    Clears `ok` where there is none. The point is cut out of the word, so both
    parts are read as one number of thousandths: exact, and rounded once.
    """
    x, bits, other = _digits(word_)
    np.minimum(bits, U(32), out=bits)
    low = (_ONE << bits) - _ONE
    # A point, and nothing else that is no digit, among the digits and three more.
    ok &= ((x >> bits) & U(0xFF)) == U(ord(".") ^ 0x30)
    ok &= (other << (U(32) - bits)) == _POINT
    ok &= bits > 0
    x = (x & low) | ((x >> U(8)) & ~low)
    value = _value(x, U(40) - bits) / 1000.0
    return value, (bits >> U(3)).view(np.int64)
