"""The C header compiles without a word, whatever the engine's flags and however much is used."""

from __future__ import annotations

from pathlib import Path

import pytest
from native_build import HEADER, HERE, build

OTHERS = (
    "",
    "-D_POSIX_C_SOURCE=1",
    "-D_POSIX_C_SOURCE=199309L",
    "-D_POSIX_C_SOURCE=200112L",
    "-D_POSIX_C_SOURCE=200809L",
    "-D_XOPEN_SOURCE=700",
    "-D_GNU_SOURCE",
)


@pytest.mark.parametrize("program", ["no_call", "one_call", "trouble", "loop"])
@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("define", OTHERS)
def test_strict_flags(tmp_path: Path, define: str, language: str, program: str) -> None:
    flags = [define] if define else []
    if language == "c++" or "POSIX" not in define:
        flags.append("-O1")
    build(HERE / "native" / f"{program}.c", tmp_path / "program", *flags, language=language)


@pytest.mark.parametrize("standard", ["gnu99", "c11", "gnu17"])
def test_later_c_and_fast_math(tmp_path: Path, standard: str) -> None:
    flags = ("-O3", "-ffast-math", f"-std={standard}")
    build(HERE / "native" / "loop.c", tmp_path / "program", *flags)


def test_two_files_of_one_program_share_a_trace(tmp_path: Path) -> None:
    other = tmp_path / "other.c"
    other.write_text(
        '#include "tauscope_trace.h"\n'
        "extern tauscope_trace trace;\n"
        "void other(void);\n"
        "void other(void) { tauscope_close(&trace); }\n"
    )
    main = tmp_path / "main.c"
    main.write_text(
        '#include "tauscope_trace.h"\n'
        "extern tauscope_trace trace;\n"
        "tauscope_trace trace;\n"
        "void other(void);\n"
        "int main(void) { other(); return 0; }\n"
    )
    build(main, tmp_path / "program", str(other))


def test_the_header_carries_its_licence() -> None:
    text = (HEADER / "tauscope_trace.h").read_text()
    assert "MIT License" in text and 'THE SOFTWARE IS PROVIDED "AS IS"' in text
