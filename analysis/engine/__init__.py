"""A small speculative decoder over llama.cpp, for real traces on any machine.

It knows nothing of the suite but `tauscope.trace`, and the suite knows nothing of it.

    python -m engine --prompt-file prompt.txt -n 160 --draft 1 --margin 3
"""

from __future__ import annotations
