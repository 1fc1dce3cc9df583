"""Small files of the cache, each signed with the user's secret: a damaged or foreign one is as good as none.

Writers need no lock: each writes a file of its own and renames it, so that a reader finds either a whole file or none,
and the last writer wins, with the same contents.
"""

from __future__ import annotations

import hmac
import os
import stat
from pathlib import Path

from dryfit.atomic_file import write_atomically
from dryfit.target.cache_folder import distrust, make_private
from dryfit.target.cache_key import cache_key

_SIGNATURE_BYTES = 32
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
"""How files are opened: as bytes, and no links."""


def sealed(contents: bytes, name: str) -> bytes:
    """A file's bytes: HMAC-SHA-256 of its name and contents, contents."""
    return _signature(contents, name) + contents


def unsealed(data: bytes, name: str) -> bytes | None:
    """The contents of what `sealed` made; None when a byte of it has changed, or somebody else made it."""
    signature, contents = data[:_SIGNATURE_BYTES], data[_SIGNATURE_BYTES:]
    return contents if hmac.compare_digest(_signature(contents, name), signature) else None


def read(path: Path) -> bytes | None:
    """A file's contents; None when there is none that can be trusted."""
    try:
        if distrust(path.parent.stat()):
            return None
        # What is looked at is the file that was opened, whatever stands in its place meanwhile.
        with os.fdopen(os.open(path, _READ), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or distrust(status):
                return None
            return unsealed(file.read(), _name(path))
    except OSError:
        return None


def write(path: Path, contents: bytes) -> None:
    """Keep contents: a temporary file first, then renamed. Only the user may read it.

    Raises:
        OSError: the folder cannot be made or written to, or is full, or others can write to it. Nothing is left behind.
    """
    make_private(path.parent)
    problem = distrust(path.parent.stat())
    if problem:
        raise PermissionError(f"{path.parent}: {problem}")
    write_atomically(path, [sealed(contents, _name(path))], permissions=0o600)


def _signature(contents: bytes, name: str) -> bytes:
    return hmac.digest(cache_key(), len(name).to_bytes(4, "little") + name.encode() + contents, "sha256")


def _name(path: Path) -> str:
    """What a file is signed as: one that is moved to another's place is not believed."""
    return f"{path.parent.name}/{path.name}"
