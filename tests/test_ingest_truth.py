"""The real logs give exactly the figures that are known of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from parsed import parse


def sums(cycles, *names):
    return tuple(int(cycles[name].sum()) for name in names)


def by_outcome(cycles):
    return dict(cycles["outcome"].value_counts().iter_rows())


def test_chat(corpus: Path):
    log = parse((corpus / "ds4-mtp-chat.log").read_bytes(), tokens=256)
    cycles = log.cycles
    assert cycles.height == 131
    assert by_outcome(cycles) == {"missed": 43, "folded": 46, "all_accepted": 36, "rejected": 6}
    assert sums(cycles, "verified", "accepted", "emitted") == (42, 36, 255)
    assert sums(cycles, "target_forwards") == (219,)
    assert cycles["emitted"].sum() / cycles.height == pytest.approx(1.947, abs=5e-4)
    assert sums(cycles, "free_checked", "free_accepted") == (131, 88)
    assert cycles["reported_ms"].sum() / 1000 == pytest.approx(3.110, abs=5e-4)
    folds = cycles.filter(cycles["outcome"] == "folded")
    assert 25.7 <= folds["decode_ms"].mean() <= 25.8
    # Misses are logged: the 256th token stays unattributed.
    assert log.run["unlogged_cycles"] == 0
    (request,) = log.requests.iter_rows(named=True)
    assert request["decode_tokens_per_s"] == 37.76
    assert request["decode_ms"] == pytest.approx(6779.66, abs=0.01)
    assert request["generated_tokens"] == 256 and request["tokens_source"] == "given"


def test_code(corpus: Path):
    log = parse((corpus / "ds4-mtp-code.log").read_bytes())
    assert by_outcome(log.cycles) == {
        "missed": 31,
        "folded": 50,
        "all_accepted": 39,
        "rejected": 3,
        "unverified": 1,
    }
    assert sums(log.cycles, "verified", "accepted", "emitted") == (42, 39, 256)
    assert log.requests["decode_tokens_per_s"].to_list() == [38.21]
    last = log.cycle(-1)
    assert last["margin"] is None and last["draft_token"] is None and last["next_token"] is None


@pytest.mark.parametrize(("name", "speed"), [("chat", 35.60), ("code", 35.78)])
def test_off_arms_draft(corpus: Path, name: str, speed: float):
    log = parse((corpus / f"ds4-off-{name}.log").read_bytes(), tokens=256)
    assert log.cycles.height == 0
    assert log.run["baseline_drafts"] is True and log.run["draft_depth"] == 2
    assert log.requests["decode_tokens_per_s"].to_list() == [speed]
    assert log.requests["decode_ms"].to_list() == [pytest.approx(256 / speed * 1000)]
    assert log.run["machine"] == "Apple M5 Max, 128.00 GiB RAM"
    assert (log.run["ctx"], log.run["backend"]) == (8192, "metal")


def test_qwen(corpus: Path):
    log = parse((corpus / "ds4-qwen-mtp-server.log").read_bytes())
    cycles = log.cycles
    found = by_outcome(cycles)
    assert cycles.height == 179 and found["missed"] == 5 and found["bypassed"] == 122
    assert sums(cycles, "verified", "accepted", "emitted") == (305, 168, 399)
    drafting = cycles.filter(cycles["drafted"] > 0)
    assert drafting.height == 57
    assert drafting["emitted"].sum() / 57 == pytest.approx(4.86, abs=5e-3)
    assert cycles["line"].max() <= 255
    assert cycles["wall_ms"].null_count() == 0
    # The engine's own cumulative histogram is a check: 1 to 7 drafts accepted, first included.
    histogram = next(f["value"] for f in log.run["facts"] if f["name"] == "qwen_histogram")
    bets = cycles.filter(cycles["free_accepted"] == 1)
    counts = dict((bets["accepted"] + 1).value_counts().iter_rows())
    assert histogram == " ".join(f"{k}={counts.get(k, 0)}" for k in range(1, 8))


def test_dspark(corpus: Path):
    log = parse((corpus / "ds4-dspark-cycles.log").read_bytes())
    assert log.cycles.height == 17 and set(log.outcomes()) == {"unknown"}
    assert sums(log.cycles, "verified", "accepted") == (38, 31)
    assert log.cycles["emitted"].null_count() == 17
    assert log.cycles["extra"].null_count() == 0


def test_server(corpus: Path):
    log = parse((corpus / "ds4-server-requests.log").read_bytes())
    assert log.cycles.height == 0
    requests = log.requests
    assert requests["generated_tokens"].to_list() == [70, 69, 69, 63, 74, 15, 149, 19]
    assert requests["finish"].to_list() == ["tool_calls"] * 4 + ["stop"] * 4
    assert requests["prefill_ms"].to_list() == [1448, 1192, 871, 1256, 1240, 45594, 1192, 9167]
    assert requests["decode_ms"].to_list() == [1751, 1720, 1726, 1572, 1883, 438, 3799, 551]
    assert requests["cached_tokens"].to_list() == [0] * 7 + [20480]
    assert requests["prompt_tokens"].to_list() == [362, 332, 332, 364, 354, 25868, 347, 25676]
    assert requests["prefill_tokens_per_s"].to_list() == [None] * 5 + [567.36, None, 566.81]
    assert not requests["overlapped"].any() and requests["overlapped"].null_count() == 0
    assert requests["flags"].to_list()[4] == ["THINKING"]
    assert requests["started_at"][0] == "0809 10:50:22"


def test_model_text_and_carriage_returns(corpus: Path):
    log = parse((corpus / "ds4-dspark-off-modeltext.log").read_bytes())
    assert log.cycles.height == 0 and log.run["unfit_lines"] == 0
    assert log.requests["decode_tokens_per_s"].to_list() == [38.40]
    assert log.run["baseline_drafts"] is False


def test_no_line_of_the_real_logs_is_misfit(corpus: Path):
    for path in sorted(corpus.glob("*.log")):
        log = parse(path.read_bytes())
        assert log.run["unfit_lines"] == 0 and log.refused.height == 0, path.name
        assert log.run["lines"] == len(path.read_bytes().splitlines()) or "modeltext" in path.name
