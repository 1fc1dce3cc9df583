"""Small files of the cache, each with a digest of its contents: a damaged one is as good as none.

Writers need no lock: each writes a file of its own and renames it, so that a reader finds either a whole file or none,
and the last writer wins, with the same contents.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

_DIGEST_BYTES = 32


def sealed(contents: bytes) -> bytes:
    """A file's bytes: SHA-256 of its contents, contents."""
    return hashlib.sha256(contents).digest() + contents


def unsealed(data: bytes) -> bytes | None:
    """The contents of what `sealed` made; None when a byte of it has changed."""
    digest, contents = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    return contents if hashlib.sha256(contents).digest() == digest else None


def read(path: Path) -> bytes | None:
    """A file's contents; None when there is none that can be trusted."""
    try:
        return unsealed(path.read_bytes())
    except OSError:
        return None


def write(path: Path, contents: bytes) -> None:
    """Keep contents: a temporary file first, then renamed. Only the user may read it.

    Raises:
        OSError: the folder cannot be made or written to, or is full. Nothing is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(sealed(contents))
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
