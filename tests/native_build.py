"""Compiling the C programs of tests/native against the trace header, once per set of flags."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
HEADER = HERE.parent / "traces" / "emit"
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-Wshadow", "-Wconversion")
SANITIZE = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def compiler(language: str = "c") -> str:
    """Path of a compiler for `c` or `c++`; skips the test where there is none."""
    for name in ("gcc", "clang", "cc") if language == "c" else ("g++", "clang++", "c++"):
        if path := shutil.which(name):
            return path
    pytest.skip(f"no {language} compiler on this machine")


def build(source: Path, target: Path, *flags: str, language: str = "c") -> Path:
    """Compile `source` to the program `target`; fails the test with the compiler's words."""
    standard = "c99" if language == "c" else "c++11"
    command = [compiler(language), f"-std={standard}", *STRICT, f"-I{HEADER}", *flags]
    done = subprocess.run(
        [*command, "-x", language, str(source), "-o", str(target), "-pthread"],
        capture_output=True,
        text=True,
    )
    if (
        done.returncode
        and any("sanitize" in flag for flag in flags)
        and "cannot find" in done.stderr
    ):
        pytest.skip("the compiler has no sanitizer libraries on this machine")
    assert done.returncode == 0, done.stderr
    return target
