"""The lines that fit no fast shape: cleaned, cut into pieces, taken apart by key.

A physical line can hold more than a record: model text without a newline before
it, carriage returns of a progress counter, another writer's line. A record is
looked for at the start of the line, after every carriage return (and NUL), and
at every engine marker inside the line, because a cycle glued behind model text
is still a cycle. It must then fit its shape from the marker to the end of its
piece: the engine ends every record with a newline, so text behind one means
that two writers tore it. Text of a model that quotes a whole record to its end
can't be told from the record.
"""

from __future__ import annotations

import polars as pl

NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
STAMP = r"(?:[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} )?"
MARK = STAMP + r"ds4(?:-server)?: "
# Values of `key=value` fields. No quote, backslash or control character: they
# go into JSON as they are.
WORD = r"[A-Za-z0-9_./:+%(),-]+"
FIELDS = rf"(?: [A-Za-z_][A-Za-z0-9_.-]*=(?:{WORD})(?: ms)?)*"

# Records that quote free text keep their whole line; the quoted text may hold anything.
QUOTING = (
    rf"^(?:ds4: glm mtp cycle: .*'|{STAMP}ds4-server: (?:chat|completion) ctx=[^\"]* "
    rf"finish=[a-z_]+ error=\".*\" {NUMBER}s$)"
)
ANSI = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])"


def pieces(lines: pl.DataFrame, before: tuple[int, int] = (0, 0)) -> pl.DataFrame:
    """Frame (line, text) to frame (line, piece, text) of the pieces that begin with a marker.

    An overlong line comes in parts, one a row, with the same `line`: its pieces are
    numbered as one line's. `before` is a line that had parts earlier, and how many
    pieces those had.
    """
    text = pl.col("text")
    clean = (
        lines.with_columns(
            text.str.strip_suffix("\n").str.strip_suffix("\r").str.replace_all(ANSI, "")
        )
        .with_columns(text.str.replace_all("\x00", "\r", literal=True).str.strip_chars_start("\r"))
        .with_columns(quoting=text.str.contains(QUOTING))
        .with_row_index("part")
    )
    whole = clean.filter("quoting").select(
        "part", "line", pl.lit(0, pl.Int32).alias("piece"), "text"
    )
    cut = (
        clean.filter(~pl.col("quoting"))
        .select("part", "line", text.str.replace_all(rf"({MARK})", "\r$1").str.split("\r"))
        .with_columns(piece=pl.int_ranges(0, text.list.len(), dtype=pl.Int32))
        .explode("piece", "text")
        .filter(text.str.contains(f"^{MARK}"))
        .select("part", "line", "piece", "text")
    )
    table = pl.concat([whole, cut]).drop("part")
    parts = lines.select((pl.col("line") == pl.col("line").shift(1, fill_value=before[0])).any())
    if not parts.item():
        return table
    first = pl.when(pl.col("line") == before[0]).then(before[1]).otherwise(0)
    return (
        pl.concat([whole, cut])
        .sort("part", "piece", maintain_order=True)
        .with_columns(
            piece=(pl.int_range(pl.len()).over("line") + first).cast(pl.Int32),
        )
        .drop("part")
    )


def field(key: str, unit: str = "", value: str = NUMBER) -> pl.Expr:
    """Text of ` key=value` (with ` ms` behind it, if that is its unit) in column `fields`."""
    tail = f" {unit}" if unit else ""
    return pl.col("fields").str.extract(rf"(?:^| ){key}=({value}){tail}(?: |$)")


def has(key: str) -> pl.Expr:
    """Whether `fields` holds the key at all, readable or not."""
    return pl.col("fields").str.contains(rf"(?:^| ){key}=")


def whole(key: str) -> pl.Expr:
    return field(key).cast(pl.Int64, strict=False)


def real(key: str) -> pl.Expr:
    return field(key).cast(pl.Float64, strict=False)


def ms(key: str) -> pl.Expr:
    return field(key, "ms").cast(pl.Float64, strict=False)


def left_over(keys: tuple[str, ...]) -> pl.Expr:
    """JSON members of the fields whose key is not among `keys`; null when there are none.

    A number stays one; a time carries its unit in its name (`x_ms`).
    """
    known = "|".join(key.replace("-", r"\-") for key in keys)
    rest = pl.lit(" ") + pl.col("fields").str.strip_chars(" ")
    if known:
        rest = rest.str.replace_all(rf" (?:{known})=(?:{WORD})(?: ms\b)?", "")
    return members(rest)


def members(rest: pl.Expr) -> pl.Expr:
    """JSON members of ` key=value key=value ms …`."""
    value = rf"=({WORD})"
    json = (
        rest.str.replace_all(rf" ([A-Za-z_][A-Za-z0-9_.-]*){value} ms\b", r' "${1}_ms":"$2"')
        .str.replace_all(rf" ([A-Za-z_][A-Za-z0-9_.-]*){value}", r' "$1":"$2"')
        .str.replace_all(r'"(-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?)"( |$)', "$1$2")
        .str.strip_chars(" ")
        .str.replace_all(" ", ", ", literal=True)
    )
    return pl.when(json != "").then(json)


def together(*parts: pl.Expr) -> pl.Expr:
    """JSON members joined; null when all are null."""
    joined = pl.concat_str(*parts, separator=", ", ignore_nulls=True)
    return pl.when(joined != "").then(joined)


def say(template: str, *values: str | pl.Expr) -> pl.Expr:
    """The template with a value for each `{}`; null when a value is null.

    In place of `pl.format`, which panics on a column with an empty chunk (Polars 2.1).
    """
    literals = template.split("{}")
    parts = [pl.lit(literals[0])]
    for value, literal in zip(values, literals[1:], strict=True):
        parts.append((pl.col(value) if isinstance(value, str) else value).cast(pl.String))
        parts.append(pl.lit(literal))
    return pl.concat_str(*parts)
