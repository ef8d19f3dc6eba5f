"""File names out of labels: short, safe on any disk, never two alike."""

from __future__ import annotations

import unicodedata
from hashlib import blake2b

LONGEST = 40


def slug(text: str) -> str:
    """`text` as a part of a file name.

    Letters and digits of any script stay; everything else becomes a hyphen. Whatever is
    not its own slug gets a hash, so that different labels keep different names.
    """
    folded = unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode())
    parts = "".join(c if c.isalnum() or c in "._" else "-" for c in folded.lower()).split("-")
    short = "-".join(part for part in parts if part).strip("._-")
    # A name holds 255 bytes on common disks, and a letter takes up to four.
    short = short[:LONGEST].rstrip("._-")
    if short and short == text:
        return short
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{short}-{digest}" if short else digest
