"""The cache of machine code on disk.

The key of an entry is the content of every file that can change the code, and what the machine is: a stale entry cannot
be found. An entry carries its own digest: a damaged one is as good as none. A folder that cannot be written to costs
compile time in each process and nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs

from dryfit.target.cache_folder import cache_folder

_SOURCES = ("codes.py", "compiler/*.py", "native/*.py")
_DIGEST_BYTES = 32


@attrs.frozen
class CompiledFunction:
    """One native function as machine code.

    Attributes:
        symbol: its name in the object file.
        fields: (name, `int` or `float`) of each argument, in the order of the descriptor.
        code: the object file.
    """

    symbol: str
    fields: Sequence[tuple[str, str]]
    code: bytes

    def to_bytes(self) -> bytes:
        """Digest, length of the header, header, code."""
        header = json.dumps({"symbol": self.symbol, "fields": self.fields}).encode()
        body = len(header).to_bytes(4, "little") + header + self.code
        return hashlib.sha256(body).digest() + body

    @classmethod
    def from_bytes(cls, data: bytes) -> CompiledFunction | None:
        """What `to_bytes` wrote; None when a byte of it has changed."""
        digest, body = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if hashlib.sha256(body).digest() != digest:
            return None
        length = int.from_bytes(body[:4], "little")
        header = json.loads(body[4 : 4 + length])
        return cls(header["symbol"], [(name, kind) for name, kind in header["fields"]], body[4 + length :])


@functools.cache
def salt() -> str:
    """A digest of the sources of all kernels, of the compiler's versions and of the machine."""
    from dryfit_cpu.compiler import machine

    digest = hashlib.sha256(machine.description().encode())
    for package in ("numba", "llvmlite"):
        digest.update(importlib.metadata.version(package).encode())
    root = Path(__file__).parents[1]
    for pattern in _SOURCES:
        for path in sorted(root.glob(pattern)):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:32]


def read(name: str) -> CompiledFunction | None:
    """The entry of a function; None when there is none that can be trusted."""
    try:
        data = _path(name).read_bytes()
    except OSError:
        return None
    return CompiledFunction.from_bytes(data)


def write(name: str, function: CompiledFunction) -> None:
    """Keep a function, if the folder can be written to: a temporary file first, then renamed."""
    path = _path(name)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(function.to_bytes())
            Path(temporary).replace(path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise


def _path(name: str) -> Path:
    return cache_folder() / "kernels" / salt() / f"{name}.o"
