"""Lines that ds4 prints, with numbers of our own: what tests put together to logs."""

from __future__ import annotations

START = (
    "ds4: MTP support model loaded: drafts/head.gguf (draft=2)\n"
    "ds4: Metal device Test M1, 8.00 GiB RAM\n"
)
MISS = "ds4: mtp spec miss first draft=5\n"
FOLD = (
    "ds4: mtp timing margin-skip drafted=2 committed=1 margin=1.250 threshold=3.000 "
    "draft=2.100 ms verify=25.500 ms total=27.700 ms\n"
)
ALL = (
    "ds4: mtp timing micro drafted=2 committed=2 draft=2.200 ms snapshot=0.100 ms "
    "verify=40.000 ms total=42.400 ms\n"
)
REJECT = (
    "ds4: mtp timing micro drafted=2 committed=1 draft=2.200 ms snapshot=0.100 ms "
    "verify=40.000 ms prefix=0.300 ms total=42.700 ms noreplay=1\n"
)
SPEED = "ds4: prefill: 80.00 t/s, generation: 40.00 t/s\n"
# 5 missed, 1 folded, 2 all accepted, 2 rejected: 17 tokens.
TEN = START + MISS * 2 + ALL + FOLD + MISS + REJECT + MISS * 2 + ALL + REJECT + SPEED
TEN_DARK = TEN.replace(MISS, "")


def served(ctx: int, flags: str, generated: int, cycles: str = "") -> str:
    """One request of a server: prompt, cycles, end. `flags` as in `TOOLS `."""
    head = f"0102 03:04:05 ds4-server: chat ctx=0..{ctx}:{ctx} "
    return (
        f"{head}{flags}prompt start\n"
        f"{head}{flags}prompt done 1.000s\n"
        f"{cycles}"
        f"{head}gen={generated} {flags}finish=stop 3.000s\n"
    )
