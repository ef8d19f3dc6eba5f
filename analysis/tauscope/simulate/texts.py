"""What every position of a text holds: drawn once, the same for every arm.

Position p of a text of n tokens is where a cycle may begin that emits token p and drafts
token p + 1. So the last position has nothing to draft.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from scipy.signal import lfilter
from scipy.special import expit, ndtr

from tauscope.simulate.model import Workload

VOCABULARY = 128_000
DECIMALS = 3  # of margins and times, as engines print them


@dataclass(frozen=True, slots=True)
class Texts:
    """Some prompts of one workload; arrays of (prompts, tokens) unless said otherwise."""

    margin: np.ndarray  # logits, lead of the draft made at p
    right: np.ndarray  # whether that draft is token p + 1
    luck: np.ndarray  # in [0, 1): a draft i steps ahead also needs luck < depth_decay ** i
    token: np.ndarray  # id of token p
    wrong: np.ndarray  # what is drafted at p when the draft isn't right
    prompt_tokens: np.ndarray  # (prompts,)

    def next_token(self) -> np.ndarray:
        """Token p + 1; −1 at the last position."""
        return np.pad(self.token[:, 1:], ((0, 0), (0, 1)), constant_values=-1)

    def hashes(self) -> list[str]:
        """One hash a text: arms of a greedy engine that agree have the same."""
        rows = np.ascontiguousarray(self.token, dtype="<i8")
        return [blake2b(row.tobytes(), digest_size=8).hexdigest() for row in rows]


def draw(workload: Workload, seed: int, prompts: range) -> Texts:
    """The texts of `prompts` (numbers from 0), each from a stream of its own.

    So neither other prompts nor the arms that read a text change it.
    """
    many, n = len(prompts), workload.tokens
    normal = np.empty((2, many, n))
    uniform = np.empty((3, many, n))
    shift = np.empty((many, 1))
    length = np.empty(many)
    for i, rng in enumerate(streams(seed, workload.name, prompts)):
        shift[i] = rng.standard_normal()
        length[i] = rng.random()
        normal[:, i] = rng.standard_normal((2, n))
        uniform[:, i] = rng.random((3, n))
    margin = workload.margin_mean + workload.margin_between_prompts * shift
    margin = margin + workload.margin_sd * chained(normal[0], workload.margin_autocorrelation)
    margin = np.round(np.abs(margin), DECIMALS)
    token = token_ids(uniform[1])
    wrong = token_ids(uniform[2])
    texts = Texts(
        margin=margin,
        right=ndtr(chained(normal[1], workload.right_autocorrelation)) < p_right(workload, margin),
        luck=uniform[0],
        token=token,
        wrong=wrong,
        prompt_tokens=np.maximum(1, (workload.prompt_tokens * (0.5 + length)).astype(np.int64)),
    )
    clash = wrong == texts.next_token()
    wrong[clash] = (wrong[clash] + 1) % VOCABULARY
    return texts


def streams(
    seed: int, workload: str, prompts: range, run: int | None = None
) -> Iterator[np.random.Generator]:
    """A random stream for each prompt's text or, with `run`, for its times in that run."""
    key = zlib.crc32(workload.encode())
    place = 0 if run is None else run + 1
    for prompt in prompts:
        sequence = np.random.SeedSequence(seed, spawn_key=(key, prompt, place))
        yield np.random.Generator(np.random.PCG64(sequence))


def p_right(workload: Workload, margin: np.ndarray) -> np.ndarray:
    """Stated probability that a draft with this margin is right."""
    rise = expit(workload.right_slope * (margin - workload.right_middle))
    return workload.right_floor + (workload.right_ceiling - workload.right_floor) * rise


def chained(normal: np.ndarray, correlation: float) -> np.ndarray:
    """Independent standard normals made AR(1) along the last axis, still standard."""
    if not correlation:
        return normal
    shocks = normal * np.sqrt(1 - correlation**2)
    shocks[..., 0] = normal[..., 0]
    return lfilter([1.0], [1.0, -correlation], shocks, axis=-1)


def token_ids(uniform: np.ndarray) -> np.ndarray:
    """Ids with few common and many rare tokens, as texts have: log-uniform ranks."""
    return np.exp(uniform * np.log(VOCABULARY)).astype(np.int64)
