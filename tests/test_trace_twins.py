"""The C header and its Python twin write the same bytes for the same calls."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_build import HERE, SANITIZE, build

from tauscope.trace import HASH, OUTCOMES, Request, Trace, token_hash

COUNTS = st.none() | st.integers(0, 9) | st.integers(0, 2**31 - 1)
LONG = st.none() | st.integers(0, 10**6) | st.integers(0, 2**63 - 1)
NUMBER = (
    st.none()
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.floats(-1000, 1000)
    | st.integers(-4000, 4000).map(lambda n: n / 8 + 0.0005)
    | st.integers(-(2**43), 2**43).map(float)
    | st.floats(0, 100, width=32)
)
# Bytes, because a model's name or an error text is whatever the engine holds: no NUL in C.
TEXT = st.none() | (
    st.binary(max_size=12)
    | st.text(max_size=300).map(lambda s: s.encode("utf-8", "replace"))
    | st.sampled_from(
        [b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe0\x80", b"\xf0\x9f\x98", b"a" * 400]
    )
).map(lambda b: b.replace(b"\0", b""))
FLAG = st.none() | st.booleans()
OUTCOME = st.none() | st.sampled_from(OUTCOMES)

OPEN = {"engine": TEXT, "engine_version": TEXT, "model": TEXT, "drafter": TEXT,
        "draft_depth": COUNTS, "threshold": NUMBER, "arm": TEXT, "backend": TEXT,
        "machine": TEXT, "ctx": LONG}  # fmt: skip
BEGIN = {"engine_id": TEXT, "workload": TEXT, "prompt_id": TEXT, "prompt_tokens": LONG,
         "cached_tokens": LONG}  # fmt: skip
CYCLE = (
    {"outcome": OUTCOME, "pos": LONG, "path": TEXT}
    | dict.fromkeys(("drafted", "free_checked", "free_accepted", "verified", "accepted",
                     "resampled", "emitted"), COUNTS)
    | {"truncated": FLAG, "target_forwards": COUNTS, "replayed": FLAG, "margin": NUMBER,
       "threshold": NUMBER, "draft_token": COUNTS, "next_token": COUNTS}
    | dict.fromkeys(("base_ms", "draft_ms", "snapshot_ms", "verify_ms", "commit_ms", "decode_ms",
                     "wall_ms"), NUMBER)
)  # fmt: skip
END = {"generated_tokens": LONG, "prefill_ms": NUMBER, "decode_ms": NUMBER, "finish": TEXT,
       "error": TEXT}  # fmt: skip


def values(fields: dict) -> st.SearchStrategy:
    return st.fixed_dictionaries(fields)


SLOTS = st.integers(0, 3)
CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("t"), st.floats(0, 1e7)),
        st.tuples(st.just("b"), SLOTS, values(BEGIN)),
        st.tuples(st.just("h"), SLOTS, st.integers(-(2**31), 2**31 - 1)),
        st.tuples(st.just("c"), st.none() | SLOTS, values(CYCLE)),
        st.tuples(st.just("e"), SLOTS, values(END)),
    ),
    max_size=12,
)


def field(name: str, value: object) -> str:
    """A value as the C program reads it; floats keep every bit."""
    if name == "outcome":
        return str(0 if value is None else 1 + OUTCOMES.index(value))
    if value is None:
        return "~"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return value.hex()
    return str(value)


def script(run: dict, calls: list) -> bytes:
    token, pid, unix_ms, facts = run["run"], run["pid"], run["unix_ms"], run["facts"]
    lines = ["t\t0x1p3", "\t".join(["o", token.encode().hex(), str(pid), str(unix_ms),
                                    *(field(n, facts[n]) for n in OPEN)])]  # fmt: skip
    for letter, *rest in calls:
        if letter == "t":
            lines.append(f"t\t{rest[0].hex()}")
        elif letter == "h":
            lines.append(f"h\t{rest[0]}\t{rest[1]}")
        else:
            slot, fields = rest
            order = {"b": BEGIN, "c": CYCLE, "e": END}[letter]
            first = "~" if slot is None else str(slot)
            lines.append("\t".join([letter, first, *(field(n, fields[n]) for n in order)]))
    return ("\n".join(lines) + "\n").encode()


def play(path: Path, run: dict, calls: list) -> None:
    """The same script through the Python twin."""
    now = [8.0]
    trace = Trace(path, run=run["run"], pid=run["pid"], unix_ms=run["unix_ms"],
                  clock=lambda: now[0], **run["facts"])  # fmt: skip
    requests = {slot: Request() for slot in range(4)}
    for letter, *rest in calls:
        if letter == "t":
            now[0] = rest[0]
        elif letter == "b":
            requests[rest[0]] = trace.begin(**rest[1])
        elif letter == "h":
            trace.token(requests[rest[0]], rest[1])
        elif letter == "c":
            trace.record(None if rest[0] is None else requests[rest[0]], **rest[1])
        else:
            trace.end(requests[rest[0]], **rest[1])
    trace.close()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(HERE / "native" / "script.c", tmp_path_factory.mktemp("c") / "script", *SANITIZE)


RUN = st.fixed_dictionaries(
    {"run": st.text("abc019-. /\"é", max_size=70).filter(lambda t: "\0" not in t),
     "pid": st.integers(0, 2**40), "unix_ms": st.integers(0, 2**41), "facts": values(OPEN)}
).filter(lambda run: run["run"])  # fmt: skip


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(run=RUN, calls=CALLS)
def test_same_calls_same_bytes(program: Path, tmp_path: Path, run: dict, calls: list) -> None:
    ours, theirs = tmp_path / "python.ndjson", tmp_path / "c.ndjson"
    ours.unlink(missing_ok=True)
    theirs.unlink(missing_ok=True)
    done = subprocess.run([program, theirs], input=script(run, calls), capture_output=True)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    play(ours, run, calls)
    assert ours.read_bytes() == theirs.read_bytes()


def test_the_hash_is_fnv1a_64() -> None:
    """By its definition, and by the published value for `foobar`."""
    state = HASH
    for byte in struct.pack("<i", -5):
        state = ((state ^ byte) * 1099511628211) % 2**64
    assert token_hash(HASH, -5) == state
    # "foobar" is 0x85944171f73967e8 (published); its first four bytes are one token here.
    state = token_hash(HASH, int.from_bytes(b"foob", "little"))
    for byte in b"ar":
        state = ((state ^ byte) * 1099511628211) % 2**64
    assert state == 0x85944171F73967E8


def test_the_line_as_written_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    ticks = iter([100.0, 100.5, 101.25, 102.0])
    trace = Trace(path, run="r1", pid=7, unix_ms=1000, clock=lambda: next(ticks), engine='e"\n\\',
                  threshold=3, draft_depth=1)  # fmt: skip
    request = trace.begin(prompt_tokens=12, workload="散文")
    trace.record(request, drafted=1, verified=1, accepted=1, emitted=2, margin=0.0000005,
                 verify_ms=26.0004999, wall_ms=float("nan"))  # fmt: skip
    trace.token(request, 1)
    trace.end(request, finish="stop")
    trace.close()
    assert path.read_text().splitlines() == [
        '{"tauscope":1,"kind":"run","run":"r1","t_ms":0.000,"pid":7,"unix_ms":1000,'
        '"engine":"e\\"\\u000a\\\\","draft_depth":1,"threshold":3.000000}',
        '{"tauscope":1,"kind":"request","run":"r1","t_ms":0.500,"request":0,"workload":"散文",'
        '"prompt_tokens":12}',
        '{"tauscope":1,"kind":"cycle","run":"r1","t_ms":1.250,"request":0,"drafted":1,'
        '"free_checked":0,"free_accepted":0,"verified":1,"accepted":1,"resampled":0,"emitted":2,'
        '"truncated":false,"margin":0.000001,"verify_ms":26.000}',
        '{"tauscope":1,"kind":"end","run":"r1","t_ms":2.000,"request":0,"generated_tokens":1,'
        f'"finish":"stop","output_hash":"fnv1a64:{token_hash(HASH, 1):016x}"}}',
    ]
