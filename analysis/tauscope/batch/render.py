"""One self-contained HTML page out of an executed notebook.

Code stays in the notebook; a page holds the text, charts and tables. Scripts run only
when their hash is in the page's policy, so nothing that came out of a log can.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from tauscope import __version__
from tauscope.figures.drawing_types import CHART, TABLE

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def page(
    notebook: Mapping[str, Any], *, made: str, about: str, name: str, folder: str,
    parameters: str, files: Sequence[str],
) -> str:  # fmt: skip
    """HTML of an executed notebook (nbformat 4, as a dict)."""
    blocks = content(notebook)
    scripts = [text("page.js")]
    if any(block["kind"] == "chart" for block in blocks):
        scripts.insert(0, bundle())
    title = heading(notebook)[0] or name
    return template("page").render(
        title=f"{title} · {about}" if about else title, blocks=blocks, made=made, about=about,
        notebook=name, folder=folder, parameters=parameters, files=files, flag=flag(blocks),
        **shell(scripts),
    )  # fmt: skip


def content(notebook: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a page shows, in order: blocks of kind html, chart, image or text."""
    blocks: list[dict[str, Any]] = []
    taken: set[str] = set()
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            blocks.append({"kind": "html", "html": _markdown(_joined(cell["source"]))})
        for output in cell.get("outputs", ()):
            block = _block(output, taken)
            if block:
                blocks.append(block)
    return blocks


def heading(notebook: Mapping[str, Any]) -> tuple[str, str]:
    """A notebook's title and the question under it, from its first text."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            lines = [line.strip() for line in _joined(cell["source"]).splitlines()]
            title = next((line[2:] for line in lines if line.startswith("# ")), "")
            rest = " ".join(line for line in lines if line and not line.startswith("#"))
            return title, rest
    return "", ""


def tables(notebook: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Data of every table and chart, for files: name, title, columns, rows."""
    found = []
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            if TABLE in output.get("data", {}):
                found.append(output["data"][TABLE])
    return found


def flag(blocks: Sequence[Mapping[str, Any]]) -> str:
    """What the header says of simulated rows; empty when there are none."""
    kinds = {kind for block in blocks for kind in block.get("simulated", ())}
    if True not in kinds:
        return ""
    return "simulated and real data, in rows of their own" if False in kinds else "simulated data"


def _block(output: Mapping[str, Any], taken: set[str]) -> dict[str, Any] | None:
    data = output.get("data", {})
    if CHART in data:
        return _chart(data[CHART], taken)
    if "text/html" in data:
        rows = data.get(TABLE, {}).get("rows", [])
        kinds = {row["simulated"] for row in rows if row.get("simulated") is not None}
        return {"kind": "html", "html": _joined(data["text/html"]), "simulated": kinds}
    for kind in ("image/png", "image/jpeg"):
        if kind in data:
            return {"kind": "image", "type": kind, "data": _joined(data[kind]).strip(),
                    "alt": _joined(data.get("text/plain", ""))}  # fmt: skip
    if "text/markdown" in data:
        return {"kind": "html", "html": _markdown(_joined(data["text/markdown"]))}
    if output["output_type"] == "stream" and output["name"] != "stdout":
        return None
    plain = output.get("text") or data.get("text/plain") or ""
    return {"kind": "text", "text": _ANSI.sub("", _joined(plain))} if plain else None


def _chart(spec: Mapping[str, Any], taken: set[str]) -> dict[str, Any]:
    about = spec.get("usermeta", {}).get("tauscope", {})
    wanted = re.sub(r"[^a-z0-9_]", "", str(about.get("name", "chart")).lower()) or "chart"
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    taken.add(name)
    return {
        "kind": "chart",
        "name": name,
        "spec": _script_json(spec),
        "alt": about.get("alt", ""),
        "columns": about.get("columns", []),
        "rows": chart_rows(spec),
        "simulated": set(about.get("simulated", ())),
    }


def chart_rows(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows that the chart's named mark draws, one mark each."""
    name = spec.get("usermeta", {}).get("tauscope", {}).get("name")
    drawn = spec.get("spec", spec)  # the chart in each panel, where there are panels
    layers = [part for part in drawn.get("layer", ()) if part.get("name") == name]
    data = (layers[0].get("data") if layers else None) or spec.get("data") or {}
    return spec.get("datasets", {}).get(data.get("name"), [])


def _script_json(value: Any) -> str:
    """JSON that can stand inside a script element: no `<` can end it or begin another."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _markdown(source: str) -> str:
    from nbconvert.filters import markdown2html

    html = markdown2html(source)
    # The exporter's link marks are for editors.
    return re.sub(r'<a class="anchor-link"[^>]*>.*?</a>', "", html)


def _joined(text: Any) -> str:
    return text if isinstance(text, str) else "".join(text)


def shell(scripts: Sequence[str]) -> dict[str, Any]:
    """What every page's frame takes: style, scripts, and the policy that admits only those."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'"
        for s in scripts
    )
    # Vega compiles its expressions, hence unsafe-eval; no source but the hashes can bring any.
    policy = (
        f"default-src 'none'; script-src {hashes} 'unsafe-eval'; style-src 'unsafe-inline'; "
        "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
    )
    return {"scripts": scripts, "policy": policy, "style": text("style.css"),
            "version": __version__}  # fmt: skip


@cache
def template(name: str) -> Any:
    """A page's Jinja template; everything put into it is escaped."""
    import jinja2

    loader = jinja2.FunctionLoader(text)
    env = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    return env.get_template(f"{name}.html.j2")


@cache
def text(name: str) -> str:
    return (resources.files("tauscope.batch") / "templates" / name).read_text(encoding="utf-8")


@cache
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script: made once, then kept in the user's cache."""
    import vl_convert

    version = vl_convert.get_vegalite_versions()[-1]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tauscope"
    kept = home / f"vega-{vl_convert.__version__}-{version}.js"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return _inline(kept.read_text(encoding="utf-8"))
    script = vl_convert.javascript_bundle(vl_version=version)
    with contextlib.suppress(OSError):
        home.mkdir(parents=True, exist_ok=True)
        part = kept.with_name(f".{kept.name}.{os.getpid()}")
        part.write_text(script, encoding="utf-8")
        os.replace(part, kept)
    return _inline(script)


def _inline(script: str) -> str:
    """`script` as it can stand in a page: no text in it may end the element."""
    return script.replace("</script", "<\\/script")
