"""The cache of machine code on disk.

The key of an entry is the content of every file that can change the code, and what the machine is: a stale entry cannot
be found. An entry carries its own digest: a damaged one is as good as none. A folder that cannot be written to, or a
full disk, costs compile time in each process and nothing else; the first time that happens is told.

Writers need no lock: each writes a file of its own and renames it to the entry's name, so that a reader finds either a
whole entry or none, and the last writer wins, with the same code.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import logging
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs

from dryfit.errors import ConfigError
from dryfit.target.cache_folder import ENVIRONMENT_VARIABLE, cache_folder

_SOURCES = ("codes.py", "compiler/*.py", "native/*.py")
_DIGEST_BYTES = 32
FOLDER = "kernels"
"""In the folder of all caches."""
_REMEDY = f"Make the folder writable, or name another by {ENVIRONMENT_VARIABLE}"
_LOG = logging.getLogger("dryfit.cpu")
_told: set[str] = set()
"""Folders of which it was told that they cannot be written to."""


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
    """A digest of the sources of all kernels, of the versions of dryfit and of the compiler, and of the machine."""
    from dryfit_cpu.compiler import machine

    digest = hashlib.sha256(machine.description().encode())
    for package in ("dryfit", "numba", "llvmlite"):
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
    """Keep a function, if the folder can be written to; if not, say so once."""
    try:
        _write(_path(name), function.to_bytes())
    except OSError as error:
        _tell(str(folder()), error)


def require_writable() -> None:
    """Make sure that functions can be kept.

    Raises:
        ConfigError: the folder cannot be made, or written to.
    """
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder()) as file:
            file.write(b"\0")
    except OSError as error:
        raise ConfigError(
            "Compiled kernels cannot be kept",
            where=str(folder()),
            found=str(error),
            remedy=_REMEDY,
        ) from error


def folder() -> Path:
    """Where the functions are, of this version of dryfit, for this machine and tier; it need not exist."""
    return cache_folder() / FOLDER / salt()


def _write(path: Path, data: bytes) -> None:
    """A temporary file first, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def _tell(place: str, error: OSError) -> None:
    """Say that functions cannot be kept, once for each folder, whatever the reasons are later."""
    if place not in _told:
        _told.add(place)
        reason = error.strerror or str(error)
        told = "Compiled kernels cannot be kept in %s (%s): each process compiles them anew. %s"
        _LOG.warning(told, place, reason, _REMEDY)


def _path(name: str) -> Path:
    return folder() / f"{name}.o"
