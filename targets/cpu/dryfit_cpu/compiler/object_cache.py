"""The cache of machine code on disk.

The key of an entry is the content of every file that can change the code, and what the machine is: a stale entry cannot
be found. A folder that cannot be used costs the compile time of one process (see `cache_folder`), a full disk that of
each process, and nothing else; the first time that happens is told.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import logging
from collections.abc import Sequence
from pathlib import Path

from dryfit.attrs_classes import frozen
from dryfit.target import kept_files
from dryfit.target.cache_folder import REMEDY, cache_folder
from dryfit_cpu.compiler.tier import current_tier, this_processor

_SOURCES = ("codes.py", "descriptors.py", "compiler/*.py", "native/*.py")
FOLDER = "kernels"
"""In the folder of all caches."""
_LOG = logging.getLogger("dryfit.cpu")
_told: set[str] = set()
"""Folders of which it was told that they cannot be written to."""


@frozen
class FunctionObject:
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
        """Length of the header, header, code."""
        header = json.dumps({"symbol": self.symbol, "fields": self.fields}).encode()
        return len(header).to_bytes(4, "little") + header + self.code

    @classmethod
    def from_bytes(cls, data: bytes) -> FunctionObject:
        """What `to_bytes` wrote."""
        length = int.from_bytes(data[:4], "little")
        header = json.loads(data[4 : 4 + length])
        return cls(header["symbol"], [(name, kind) for name, kind in header["fields"]], data[4 + length :])


@functools.cache
def salt() -> str:
    """A digest of the sources of all kernels, of the versions of dryfit and of the compiler, and of the machine."""
    digest = hashlib.sha256(machine_description().encode())
    for package in ("dryfit", "numba", "llvmlite"):
        digest.update(importlib.metadata.version(package).encode())
    root = Path(__file__).parents[1]
    for pattern in _SOURCES:
        for path in sorted(root.glob(pattern)):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:32]


def machine_description() -> str:
    """What machine code depends on besides its source: LLVM, CPU, features and tier."""
    return f"{this_processor()} {current_tier()}"


def read(name: str) -> FunctionObject | None:
    """The entry of a function; None when there is none that can be trusted."""
    contents = kept_files.read(_path(name))
    return None if contents is None else FunctionObject.from_bytes(contents)


def write(name: str, function: FunctionObject) -> None:
    """Keep a function, if the folder can be written to; if not, say so once."""
    try:
        kept_files.write(_path(name), function.to_bytes())
    except OSError as error:
        _tell(str(folder()), error)


def folder() -> Path:
    """Where the functions are, of this version of dryfit, for this machine and tier; it need not exist."""
    return cache_folder() / FOLDER / salt()


def _tell(place: str, error: OSError) -> None:
    """Say that functions cannot be kept, once for each folder, whatever the reasons are later."""
    if place not in _told:
        _told.add(place)
        reason = error.strerror or str(error)
        told = "Compiled kernels cannot be kept in %s (%s): each process compiles them again. %s"
        _LOG.warning(told, place, reason, REMEDY)


def _path(name: str) -> Path:
    return folder() / f"{name}.o"
