"""A recording on a disk that fills up, in a mount namespace of its own; tells as JSON.

    unshare -rUm python full_disk.py FOLDER ENGINE LOG GATE_LINE freed|kept

A small tmpfs holds the store and a filler. The engine is held at GATE_LINE, long after the
disk is full; then the filler goes (`freed`) or stays until the recorder has ended (`kept`).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from standin import cycle_lines, journal_size, wait_for
from tauscope import catalog
from tauscope.record.journal import kept_blocks
from tauscope.record.marker import pending

ROOM, FILLER = 6 << 20, 4 << 20


def lines_stored(store: Path) -> list[int]:
    """Line numbers of all cycles in the store."""
    data = catalog.Catalog([store])
    return data.query("SELECT line FROM cycles ORDER BY line")["line"].to_list()


def main(folder: str, engine: str, log: str, gate_line: str, when: str) -> dict[str, object]:
    """Record until the disk is full and after; what was seen, for the test to judge."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", folder], check=True)
    store, filler = Path(folder) / "跑 store", Path(folder) / "filler"
    filler.write_bytes(b"\0" * FILLER)
    gate = Path(tempfile.mkdtemp()) / "gate"
    program = (
        "import sys; from tauscope.record import recorder, parts\n"
        "recorder.COMMIT_S = recorder.SYNC_S = 0.05; recorder.RETRY_S = 0.2\n"
        "done = recorder.record(recorder.Path(sys.argv[1]), recorder.Wish(sys.argv[2:]))\n"
        "print(*done.notes, sep='\\n', file=sys.stderr); sys.exit(done.code)"
    )
    command = [engine, "--log", log, "--rate", "20000", "--gate", gate_line, gate, "--exit", "7"]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [sys.executable, "-c", program, store, *command],
            stderr=said, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        )  # fmt: skip

        def complaint() -> bool:
            said.seek(0)
            return b"can't be committed" in said.read()

        # Full: the recorder has noticed, and the journal can't grow any more.
        wait_for(complaint)
        full = wait_for(lambda: size if (size := journal_size(store)) == journal_size(store) else 0)
        running = process.poll() is None
        during = lines_stored(store)
        if when == "freed":
            filler.unlink()
            before = len(during)
            wait_for(lambda: len(lines_stored(store)) > before)
        gate.touch()
        code = process.wait(120)
        said.seek(0)
        own = [line for line in said.read().decode().splitlines() if "committed (" in line]
    left = len(pending(store))
    filler.unlink(missing_ok=True)
    lines = lines_stored(store)
    (name,) = catalog.Catalog([store]).runs["raw_file"]
    raw = b"".join(kept_blocks(store, name))
    (copy := Path(gate).with_name("copy.log")).write_bytes(raw)
    from tauscope.ingest import importer, source

    other = Path(gate).with_name("other")
    importer.import_log(source.Log("copy", (copy,)), other)
    return {
        "code": code, "running": running, "full": full, "raw": len(raw), "said": own, "left": left,
        "stored": len(lines), "truth": len(cycle_lines(raw)),
        "same": lines == lines_stored(other), "during": len(during),
        "state": catalog.Catalog([store]).runs["state"][0],
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
