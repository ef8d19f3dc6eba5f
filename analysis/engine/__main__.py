"""Generate one answer, as an engine's command line does. `python -m engine --help` lists how."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

from engine.decode import generate
from engine.drafter import Drafter, load_table
from engine.gate import Gate
from tauscope.trace import Trace


def main() -> int:
    options = _options()
    try:
        text = Path(options.prompt_file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return _fail(f"{options.prompt_file}: can't be read ({error}); name a text file")
    try:
        from engine import llama
    except ImportError as error:
        return _fail(f"{error.name}: not installed; pip install 'tauscope[engine]'")
    try:
        path = Path(options.model) if options.model else llama.bundled()
        model = llama.Llama(path, options.threads)
    except OSError as error:
        return _fail(str(error))
    model.warm()
    prompt = model.prompt(text)
    if len(prompt) + options.tokens > llama.WINDOW:
        return _fail(
            f"{options.prompt_file}: {len(prompt)} tokens and {options.tokens} to come are more "
            f"than the window of {llama.WINDOW}; shorten it"
        )
    gate = Gate(options.draft, options.margin)
    trace = Trace(
        engine="tauscope example engine",
        engine_version=llama.VERSION,
        model=path.name,
        drafter="n-gram" if gate.depth else None,
        draft_depth=gate.depth,
        threshold=gate.bar if gate.depth else None,
        backend="cpu",
        machine=_machine(),
        ctx=llama.WINDOW,
    )
    request = trace.begin(prompt_tokens=len(prompt))
    drafter = Drafter(load_table() if gate.depth else {})
    made = generate(model, drafter, gate, prompt, options.tokens, trace, request)
    trace.end(request, prefill_ms=made.prefill_ms, decode_ms=made.decode_ms, finish=made.finish)
    trace.close()
    sys.stdout.write(model.text(made.tokens) + "\n")
    if options.tokens_file:
        Path(options.tokens_file).write_text("".join(f"{t}\n" for t in made.tokens))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m engine",
        description="A small greedy speculative decoder; $TAUSCOPE_TRACE names its trace.",
    )
    parser.add_argument("--prompt-file", required=True, metavar="FILE", help="the user's text")
    parser.add_argument("-n", "--tokens", type=int, default=160, help="most tokens to generate")
    parser.add_argument("--draft", type=int, default=0, help="draft tokens a cycle; 0 is off")
    parser.add_argument("--margin", type=float, default=3.0, help="the gate's bar, in nats")
    parser.add_argument("--tokens-file", metavar="FILE", help="write the token ids there")
    parser.add_argument("--model", metavar="GGUF", help="another model than the bundled one")
    # One thread: several wait for one another, and a busy neighbour then stops them all.
    parser.add_argument("--threads", type=int, default=1, help="threads; the result is the same")
    return parser.parse_args()


def _machine() -> str:
    """The processor and memory, as an engine prints them."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next((line.split(":", 1)[1].strip() for line in lines if "model name" in line), name)
    except OSError:
        pass
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{name}, {os.cpu_count()} cores, {memory:.0f} GiB"


def _fail(text: str) -> int:
    sys.stderr.write(text + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
