"""The index of a report: the answer first, then runs, pages and failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from tauscope import catalog, ledger, speedup
from tauscope.batch import render
from tauscope.economics import bottleneck
from tauscope.economics import costs as economics
from tauscope.figures import answers, evidence, palette, tabling, words

SHOWN_RUNS = 2000


def collect(data: catalog.Catalog) -> dict[str, Any]:
    """What the index says of the data: verdicts, flips, pooled figures, runs, damage."""
    rows = speedup.table(data)
    flips = speedup.flips(rows)
    rank = {label: place for place, label in enumerate(palette.in_order(rows["workload"]))}
    verdicts = sorted(
        tabling.records(rows), key=lambda row: (row["simulated"], rank[row["workload"]])
    )
    costs = economics.each(data)
    return {
        "answer": answers.speedup_answer(rows.to_dicts(), flips.to_dicts()),
        "verdicts": [{**row, "sql": evidence.arms(row)} for row in verdicts],
        "flips": tabling.records(flips),
        "pooled": tabling.records(speedup.pooled(data)) if flips.height else [],
        "bottlenecks": tabling.records(bottleneck.table(data, costs)),
        "runs": tabling.records(ledger.stretches(data)),
        "damaged": [damage.text for damage in data.damaged],
    }


def html(
    found: Mapping[str, Any], pages: Sequence[Mapping[str, Any]], *, made: str, origin: str,
    stores: Sequence[str], seconds: float, files: Sequence[Mapping[str, Any]],
) -> str:  # fmt: skip
    """The index page. `pages` are the records of report.json."""
    runs = found["runs"]
    kinds = {bool(run["simulated"]) for run in runs}
    flag = {
        (True,): "simulated data",
        (False, True): "simulated and real data, in rows of their own",
    }
    good = [page for page in pages if not page["error"]]
    source = f"Read from {origin}: {words.listed([words.label(store, 160) for store in stores])}."
    if len(runs) > SHOWN_RUNS:
        source += (
            f" The first {SHOWN_RUNS:,} of {len(runs):,} rows are listed; all are in report.json."
        )
    total = sum(file["bytes"] for file in files)
    return render.template("index").render(
        title="tauscope report", made=made, flag=flag.get(tuple(sorted(kinds)), ""),
        answer=found["answer"], answers=_answers(found), source=source,
        damaged=[words.label(text, 600) for text in found["damaged"]],
        runs=[_run(run) for run in runs[:SHOWN_RUNS]],
        pages=[_page(page) for page in good if not page["about"]], groups=_groups(good),
        cards=len({page["about"] or page["slug"] for page in good}),
        failures=[
            {**_page(page), "error": words.label(page["error"], 400), "slug": page["slug"]}
            for page in pages if page["error"]
        ],
        seconds=f"{seconds:.1f} s", inputs=f"{len(files):,} files, {total / 1e6:,.1f} MB",
        **render.shell([render.text("index.js")]),
    )  # fmt: skip


def _answers(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = list(found["verdicts"])
    names = words.row_names(rows, ("simulated", "machine", "model", "experiment"), unique=False)
    held = {_key(row): row for row in found["bottlenecks"]}
    mixed = len({bool(row["simulated"]) for row in rows}) > 1

    def kind(row: Mapping[str, Any]) -> str:
        return f" · {words.made(row['simulated'])}" if mixed else ""

    out = [
        {**_answer(row), "name": name,
         "arm": f"{words.label(row['arm'])} against {row['baseline']}",
         "cause": _cause(held.get(_key(row))),
         "full": words.label(row["workload"], 400), "colour": palette.workload(row["workload"]),
         "pooled": False}
        for row, name in zip(rows, names, strict=True)
    ]  # fmt: skip
    for row in found["pooled"]:
        why = words.hidden(row, found["flips"])
        if not why or row["speedup"] is None:
            continue
        out.append(
            {**_answer({**row, "verdict": None, "reasons": []}),
             "name": f"all pooled{kind(row)}",
             "arm": words.label(row["arm"]), "full": "", "colour": "", "why": why, "cause": "",
             "pooled": True}
        )  # fmt: skip
    _place(out)
    return out


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in evidence.KEYS)


def _cause(row: Mapping[str, Any] | None) -> str:
    """What holds speculation back, where something does and it is known."""
    if row is None or row["bottleneck"] in (None, "none"):
        return ""
    return f"held back by the {row['bottleneck']}: {row['because']}"


def _answer(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "verdict": row["verdict"] or "no verdict",
        "verdict_kind": row["verdict"] or "none",
        "speed": words.change(row["speedup"]) if row["speedup"] is not None else "unknown",
        "interval": words.span(row["speedup_lo"], row["speedup_hi"], words.change),
        "why": words.why(row) if row["verdict"] or row["speedup"] is None else "",
        "value": row["speedup"],
        "lo": row["speedup_lo"],
        "hi": row["speedup_hi"],
    }


def _place(rows: list[dict[str, Any]]) -> None:
    """Where each interval stands on one scale, in percent of its width."""
    ends = [1.0, *(row[k] for row in rows for k in ("value", "lo", "hi") if row[k] is not None)]
    low, high = min(ends), max(ends)
    room = (high - low) * 0.06 or 0.05
    low, high = low - room, high + room

    def at(value: float) -> float:
        return round(100 * (value - low) / (high - low), 2)

    for row in rows:
        row["zero"] = at(1.0)
        row["at"] = None if row["value"] is None else at(row["value"])
        known = row["lo"] is not None and row["hi"] is not None
        row["left"] = at(row["lo"]) if known else None
        row["width"] = round(at(row["hi"]) - at(row["lo"]), 2) if known else None


def _run(run: Mapping[str, Any]) -> dict[str, Any]:
    numbers = [run[name] for name in ("cycles", "generated_tokens", "unattributed_tokens",
                                      "unlogged", "unfit_lines", "refused_rows")]  # fmt: skip
    return {
        "source": words.label(run["source"]),
        "run_id": words.run_id(run),
        "full": words.label(run["source"], 400),
        "made": "simulated" if run["simulated"] else "real",
        "arm": words.label(run["arm"]),
        "workloads": words.listed([words.label(name) for name in run["workloads"] or []]),
        "machine": words.label(run["machine"]),
        "model": words.label(run["model"]),
        "state": run["state"] or "unknown",
        "numbers": numbers,
    }


def _groups(pages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The pages of each value of --each together: they differ by notebook only."""
    found: dict[str, list[dict[str, Any]]] = {}
    for page in pages:
        if page["about"]:
            found.setdefault(page["about"], []).append(_page(page))
    return [{"about": about, "pages": some} for about, some in found.items()]


def _page(page: Mapping[str, Any]) -> dict[str, Any]:
    state = f"made in {page['seconds']:.1f} s" if page["why"] else f"kept from {page['made']}"
    return {
        "href": quote(page["file"]),
        "title": page["title"],
        "about": page["about"],
        "question": page["question"],
        "state": f"{state}: {page['why']}" if page["why"] else f"{state}: nothing changed",
    }
