"""The recorder in a process of its own, hurried, so that a kill finds it anywhere.

    python recorder.py STORE COMMIT_S ROLL_BYTES FAN_IN ENGINE ARGUMENT…

What takes an hour of a server's run (parts merged, journals rolled) happens within a second.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tauscope.record import parts, recorder


def main(store: str, commit_s: str, roll_bytes: str, fan_in: str, *command: str) -> int:
    """Record `command` into `store`; returns its exit code."""
    recorder.COMMIT_S = float(commit_s)
    recorder.SYNC_S = float(commit_s)
    recorder.ROLL_PAUSE_S = float(commit_s)
    recorder.ROLL_BYTES = int(roll_bytes)
    parts.FAN_IN = int(fan_in)
    done = recorder.record(Path(store), recorder.Wish(command=command))
    for line in done.notes:
        print(line, file=sys.stderr)
    return done.code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
