"""`make lab`: notebooks on this machine only, behind a token, with nothing popping up."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 60  # seconds; a lab that starts at all does so in two or three


@dataclass(frozen=True)
class Lab:
    url: str
    token: str

    def get(self, path: str, token: bool = True) -> tuple[str, str]:
        """Address in the end and text."""
        request = urllib.request.Request(self.url + path)
        if token:
            request.add_header("Authorization", f"token {self.token}")
        # A proxy of the user's is not for this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=PATIENCE) as answer:
            return answer.url, answer.read().decode()


def command() -> list[str]:
    """What `make lab` would run, with this Python's JupyterLab."""
    # What was said to a make that runs this suite is not for this one.
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "ARGS"))}
    printed = subprocess.run(
        ["make", "--no-print-directory", "-n", "-o", ".venv/.installed", "lab"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    own = f"{shlex.quote(sys.executable)} -m jupyterlab"
    recipe = printed.replace(".venv/bin/jupyter-lab", f"exec {own}").rstrip()
    return ["sh", "-c", f"{recipe} --no-browser --ServerApp.port=0"]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    if shutil.which("make") is None:
        pytest.skip("no make on this machine")
    home = tmp_path_factory.mktemp("home")
    # The user's own kernel of the same name must not run the notebooks.
    foreign = home / "data" / "kernels" / "python3"
    foreign.mkdir(parents=True)
    (foreign / "kernel.json").write_text(
        json.dumps({"argv": ["/no/such/python"], "display_name": "foreign", "language": "python"})
    )
    env = {k: v for k, v in os.environ.items() if not k.startswith("JUPYTER")}
    for name in ("config", "data", "runtime"):
        env[f"JUPYTER_{name.upper()}_DIR"] = str(home / name)
    log = home / "log"
    with log.open("wb") as stderr:
        server = subprocess.Popen(
            command(),
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
        )
    try:
        yield _started(server, home / "runtime", log)
    finally:
        server.terminate()
        server.wait(PATIENCE)


def _started(server: subprocess.Popen[bytes], runtime: Path, log: Path) -> Lab:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and server.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            told = json.loads(file.read_text() or "{}")
            # The file comes before the server listens.
            if told and _answers(told["port"]):
                return Lab(told["url"], told["token"])
        time.sleep(0.05)
    raise AssertionError(f"JupyterLab didn't start:\n{log.read_text()}")


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_it_listens_on_this_machine_only(lab: Lab):
    assert lab.url.startswith("http://127.0.0.1:")


def test_it_wants_a_token(lab: Lab):
    assert len(lab.token) >= 32
    with pytest.raises(urllib.error.HTTPError) as refused:
        lab.get("api/contents", token=False)
    assert refused.value.code == 403
    assert "/login" in lab.get("lab", token=False)[0]


def test_it_opens_in_the_folder_of_notebooks(lab: Lab):
    listed = {item["name"] for item in json.loads(lab.get("api/contents")[1])["content"]}
    assert {path.name for path in (ROOT / "notebooks").glob("*.ipynb")} <= listed


def test_nothing_asks_and_nothing_is_fetched(lab: Lab):
    told = json.loads(lab.get("lab/api/settings/@jupyterlab/apputils-extension:notification")[1])
    defaults = {name: known["default"] for name, known in told["schema"]["properties"].items()}
    assert defaults["fetchNews"] == "false"
    assert defaults["checkForUpdates"] is False
    page = lab.get("lab")[1]
    config = re.search(r'id="jupyter-config-data"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert json.loads(config[1])["extensionManager"]["name"] == "read-only"


def test_kernels_are_of_the_environment_itself(lab: Lab):
    kernels = json.loads(lab.get("api/kernelspecs")[1])
    assert kernels["default"] == "python3"
    spec = kernels["kernelspecs"]["python3"]["spec"]
    assert spec["display_name"] != "foreign"
    assert spec["argv"][0] in ("python", sys.executable)
