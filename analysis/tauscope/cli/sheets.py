"""Tables that fit a terminal of any width, or a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table

# A text column is not made narrower than this.
NARROWEST = 24


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table that fits its place: texts wrap, numbers stay whole, columns go into parts.

    A head that begins with '>' stands over numbers, to the right. Where not all columns fit,
    the first `keys` of them are repeated before the next ones; `blocks` shows a row as names
    and values then.
    """

    title: str
    heads: list[str]
    rows: list[list[str]]
    keys: int
    blocks: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        room = options.max_width
        natural, least = self._widths()
        if _total(least) > room and self.blocks and len(self.heads) > 1:
            yield from self._blocks()
            return
        for number, part in enumerate(self._parts(least, room)):
            wide = _fitted([natural[i] for i in part], [least[i] for i in part], room)
            yield self._drawn(part, wide, self.title if not number else "")

    def _widths(self) -> tuple[list[int], list[int]]:
        """For each column: what it wants, and what it needs."""
        natural, least = [], []
        for place, head in enumerate(self.heads):
            cells = [row[place] for row in self.rows]
            want = max(map(cell_len, [head.lstrip(">"), *cells]))
            words = max(map(cell_len, head.lstrip(">").split(" ")))
            number = head.startswith(">")
            natural.append(want)
            least.append(max([words, *map(cell_len, cells)]) if number else min(want, NARROWEST))
        return natural, least

    def _parts(self, least: list[int], room: int) -> Iterator[list[int]]:
        keys = list(range(self.keys))
        part = list(keys)
        for place in range(self.keys, len(self.heads)):
            if len(part) > len(keys) and _total([least[i] for i in [*part, place]]) > room:
                yield part
                part = list(keys)
            part.append(place)
        yield part

    def _drawn(self, part: list[int], widths: list[int], title: str) -> Table:
        from rich.table import Table
        from rich.text import Text

        made = Table(title=title or None, title_justify="left", title_style="bold",
                     header_style="bold", show_header=any(self.heads))  # fmt: skip
        for place, width in zip(part, widths, strict=True):
            head = self.heads[place]
            made.add_column(Text(head.lstrip(">")), min_width=width, max_width=width,
                            justify="right" if head.startswith(">") else "left",
                            overflow="fold")  # fmt: skip
        for row in self.rows:
            made.add_row(*(Text(row[i]) for i in part))
        return made

    def _blocks(self) -> Iterator[Any]:
        from rich.text import Text

        if self.title:
            yield Text(self.title, style="bold")
        names = [head.lstrip(">") for head in self.heads]
        wide = max(map(cell_len, names))
        for place, row in enumerate(self.rows):
            lines = [f"row {place + 1}"]
            lines += [
                f"  {n}{' ' * (wide - cell_len(n))}  {c}" for n, c in zip(names, row, strict=True)
            ]
            yield Text("\n".join(lines), overflow="fold", no_wrap=False)


def cell_len(text: str) -> int:
    """Places that `text` takes on a terminal: Chinese takes two each."""
    if text.isascii():
        return len(text)
    from rich import cells

    return cells.cell_len(text)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + 3 * len(widths) + 1


def _fitted(natural: list[int], least: list[int], room: int) -> list[int]:
    """Widths that fit, the widest made narrower first; more than `room` only where they must."""
    over = _total(natural) - room
    widths = list(natural)
    while over > 0:
        loose = [i for i, width in enumerate(widths) if width > least[i]]
        if not loose:
            break
        widest = max(loose, key=lambda i: widths[i])
        widths[widest] -= 1
        over -= 1
    return widths
