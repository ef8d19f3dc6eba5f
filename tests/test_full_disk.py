"""A full disk is one line and an exit code, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from logs import TEN

from tauscope.ingest import source
from tauscope.ingest.importer import import_log

MODEL = Path(__file__).resolve().parents[1] / "traces" / "sample" / "model.toml"
NAMESPACE = ["unshare", "--map-root-user", "--user", "--mount"]
SCRIPT = """
mount -t tmpfs -o size=2m tmpfs "$DISK" && cp -R "$STORE" "$DISK/store" || exit 99
{ head -c 4m /dev/zero > "$DISK/filler"; } 2>/dev/null
"$@"
echo "code $?"
find "$DISK" -name '.*.part'
"""


@pytest.fixture(scope="module", autouse=True)
def namespace() -> None:
    if not shutil.which("unshare"):
        pytest.skip("no unshare here: a full disk needs a mount namespace (Linux)")
    words = [*NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    tried = subprocess.run(words, capture_output=True)
    if tried.returncode:
        pytest.skip(f"user namespaces can't mount here: {tried.stderr.decode().strip()}")


@pytest.mark.parametrize(
    "words",
    [
        ("import", "{log}", "--traces", "{disk}/store"),
        ("import", "{log}", "--traces", "{disk}/new"),
        ("import", "-", "--traces", "{disk}/store"),
        ("import", "{known}", "--tokens", "17", "--traces", "{disk}/store"),
        ("label", "--arm", "off", "--traces", "{disk}/store"),
        ("simulate", str(MODEL), "--traces", "{disk}/store"),
        ("report", "--traces", "{disk}/store", "--out", "{disk}/out"),
    ],
    ids=lambda words: " ".join(word for word in words[:2] if "/" not in word),
)
def test_a_full_disk_is_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    known, log, disk, store = (tmp_path / n for n in ("known.log", "big.log", "disk", "store"))
    known.write_text(TEN)
    import_log(source.find([known])[0], store)
    # Without its like in the store, and too long to fit into what is left of a page.
    log.write_bytes(TEN.encode() + b"# " + os.urandom(200_000).hex().encode() + b"\n")
    disk.mkdir()
    places = {"log": log, "disk": disk, "known": known}
    call = [sys.executable, "-c", "from tauscope.cli import main; main()"]
    with log.open("rb") as stdin:
        done = subprocess.run(
            [*NAMESPACE, "sh", "-c", SCRIPT, "sh", *call, *(w.format(**places) for w in words)],
            capture_output=True, text=True, stdin=stdin, timeout=120,
            env={**os.environ, "DISK": str(disk), "STORE": str(store)},
        )  # fmt: skip
    said = done.stdout.splitlines()
    assert said[-1] == "code 1", done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    *before, last = done.stderr.splitlines()
    assert before == [] or words[0] == "report", done.stderr  # it tells how far it is
    assert "room" in last or "No space left" in last
