"""The one kind of error that a user is meant to read."""

from __future__ import annotations


class Problem(Exception):
    """Bad input or an impossible wish, in one line: what it is about, then what to do.

    The command line prints the text and exits with `code`: 1 bad input or done
    with failures, 2 wrong use, 3 can't tell.
    """

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code
