"""The bytes of a file to read: memory-mapped, or copied to aligned memory."""

from __future__ import annotations

import mmap
import os
import stat

import numpy as np

from dryfit.engine.container import ENGINE, Array, FileKind
from dryfit.errors import EngineFileError

EngineSource = str | os.PathLike[str] | bytes | bytearray | memoryview | Array
"""A path, or the bytes of a file in anything with the buffer protocol."""


def file_bytes(source: EngineSource, kind: FileKind = ENGINE) -> tuple[memoryview, str]:
    """Return the bytes of a file, read-only, and its name for errors.

    A file is memory-mapped: it must not be modified in place while the bytes are in use. Bytes are copied once.

    Raises:
        EngineFileError: The file does not exist, is empty or cannot be read, or the source has another type.
    """
    if isinstance(source, (str, os.PathLike)):
        return _mapped(source, kind), f"file {os.fspath(source)!r}"
    return _aligned_copy(source, kind), f"{kind.noun} bytes"


def _aligned_copy(source: bytes | bytearray | memoryview | Array, kind: FileKind) -> memoryview:
    """Return a read-only copy at a multiple of 64 bytes, so that arrays have the same alignment as in a mapped file."""
    try:
        view = source.data if isinstance(source, np.ndarray) else memoryview(source)
        data = np.frombuffer(view.cast("B") if view.nbytes else b"", dtype=np.uint8)
    except TypeError as error:
        raise EngineFileError(
            f"{kind.one.capitalize()} must be loaded from a path or from contiguous bytes",
            found=type(source).__name__,
            remedy="Pass a str, a Path, bytes or a contiguous numpy array",
        ) from error
    space = np.empty(data.size + 64, dtype=np.uint8)
    start = -space.ctypes.data % 64
    copy = space[start : start + data.size]
    copy[:] = data
    return copy.data.toreadonly()


def _mapped(path: str | os.PathLike[str], kind: FileKind) -> memoryview:
    where = f"file {os.fspath(path)!r}"
    try:
        # A named pipe would otherwise make the open wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or not status.st_size:
                found = "an empty file" if stat.S_ISREG(status.st_mode) else "a folder or device"
                raise EngineFileError(
                    f"The path is not {kind.one} file",
                    where=where,
                    found=found,
                    allowed="a file",
                    remedy=f"Pass the path of {kind.one} file",
                )
            return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise EngineFileError(
            f"The {kind.noun} file cannot be read",
            where=where,
            found=error.strerror,
            remedy="Check the path and the permissions",
        ) from error
