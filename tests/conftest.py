"""What several test files share: the real logs, and an empty store."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT.parent / "shared" / "corpus"


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Folder of real ds4 logs; they are not part of the project."""
    if not CORPUS.is_dir():
        pytest.skip(f"no real logs at {CORPUS.relative_to(ROOT.parent)}; they are not published")
    return CORPUS


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Folder for a store, with blanks and Chinese in its name as people have them."""
    return tmp_path / "跑 分 store"
