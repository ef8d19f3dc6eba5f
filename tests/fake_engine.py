"""An engine for tests: answers at once, the same for every arm, and traces stated costs.

    python fake_engine.py --prompt-file F [--draft] [--tokens-file F] [--most N]
        [--fail-on TEXT] [--hold FILE] [--wrong-at N]

Without --draft a token takes 10 ms. With it a cycle takes 12.5 ms and emits two tokens
where the prompt says "easy", else one: a speed-up of 1.6 or of 0.8.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from tauscope.trace import Trace

PLAIN, DRAFT, VERIFY, COMMIT = 10.0, 0.5, 11.75, 0.25


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--prompt-file", required=True)
    parser.add_argument("--draft", action="store_true")
    parser.add_argument("--tokens-file")
    parser.add_argument("--most", type=int, default=8)
    parser.add_argument("--fail-on")
    parser.add_argument("--hold")
    parser.add_argument("--wrong-at", type=int)
    options = parser.parse_args()
    text = Path(options.prompt_file).read_text(encoding="utf-8")
    tokens = [sum(text.encode()) + place for place in range(options.most)]
    if options.wrong_at is not None and options.draft:
        tokens[options.wrong_at] += 1
    clock = [0.0]
    trace = Trace(engine="fake", model="none", machine="none", clock=lambda: clock[0])
    request = trace.begin(prompt_tokens=len(text))
    right = int("easy" in text)
    step = 1 + right if options.draft else 1
    if options.hold:
        # Alive until the file is taken away, so that a test can kill at a known moment.
        while os.path.exists(options.hold):
            time.sleep(0.01)
    for place in range(0, options.most, step):
        bet = {"drafted": 1, "verified": 1, "accepted": right, "draft_ms": DRAFT,
               "verify_ms": VERIFY, "commit_ms": COMMIT}  # fmt: skip
        plain = {"drafted": 0, "verified": 0, "accepted": 0, "outcome": "undrafted",
                 "decode_ms": PLAIN}  # fmt: skip
        wall = DRAFT + VERIFY + COMMIT if options.draft else PLAIN
        clock[0] += wall
        for token in tokens[place : place + step]:
            trace.token(request, token)
        trace.record(request, pos=len(text) + place, emitted=step, target_forwards=1,
                     wall_ms=wall, **(bet if options.draft else plain))  # fmt: skip
    if options.fail_on and options.fail_on in text:
        sys.stderr.write("starting\nfake: out of luck\n")
        return 7
    trace.end(request, decode_ms=clock[0], finish="length")
    trace.close()
    print(" ".join(str(token) for token in tokens))
    if options.tokens_file:
        Path(options.tokens_file).write_text("".join(f"{token}\n" for token in tokens))
    return 0


if __name__ == "__main__":
    sys.exit(main())
