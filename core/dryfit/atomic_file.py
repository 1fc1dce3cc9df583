"""Files that are there whole or not at all.

A file is written under a temporary name in the same folder and renamed. The writer holds a lock on its temporary file,
so a later writer can tell the file of a process that was killed from one that is still being written, and removes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from dryfit.errors import ConfigError

_SUFFIX = ".dryfit-tmp"
_TEMPORARY = re.compile(rf"\..*\.[0-9a-f]{{16}}{re.escape(_SUFFIX)}", re.DOTALL)

Chunks = Iterable[bytes | memoryview]


def refuse_to_overwrite(path: Path, *, force: bool) -> None:
    """Refuse a file that exists already, unless it may be overwritten.

    Raises:
        ConfigError: it exists.
    """
    if path.exists() and not force:
        raise ConfigError(
            "The file already exists", where=f"--output {path}", remedy="Choose another name, or give --force"
        )


def write_atomically(path: str | os.PathLike[str], chunks: Chunks, permissions: int = 0o666) -> None:
    """Write a file under a temporary name in the same folder and rename it: readers see the old file or the new one.

    On failure, or when `chunks` raises, the temporary file is removed and what stood at `path` stays as it was. A
    process that has the old file mapped keeps the old contents. Temporary files that killed writers left in the folder
    are removed.

    A symbolic link stays, and the file that it names is replaced. Only regular files are replaced: the bytes are
    written into devices and named pipes, such as `/dev/null` and `/dev/stdout`, as a shell's redirection does.

    Args:
        path: the file.
        chunks: its contents.
        permissions: of the new file, less the process's umask.

    Raises:
        OSError: the folder does not exist, cannot be written or is full; or `path` is a folder or a socket.
    """
    try:
        if not _is_replaced(path):
            _write_into(path, chunks)
            return
        _write_and_rename(Path(os.path.realpath(path)), chunks, permissions)
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise


def _is_replaced(path: str | os.PathLike[str]) -> bool:
    """Whether a file is put in the place of what stands at `path`, if anything does."""
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        return True
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    return stat.S_ISREG(status.st_mode) and _own_stream(path) is None


def _own_stream(path: str | os.PathLike[str]) -> int | None:
    """The descriptor of this process's output that a link such as `/dev/stdout` leads to; None for other paths."""
    if Path(path).is_symlink():
        status = Path(path).stat()
        for descriptor in (1, 2):
            with contextlib.suppress(OSError):
                if os.path.samestat(status, os.fstat(descriptor)):
                    return descriptor
    return None


def _write_into(path: str | os.PathLike[str], chunks: Chunks) -> None:
    """Write the bytes to a device, a pipe or a stream of this process."""
    stream = _own_stream(path)
    if stream is None:
        descriptor = os.open(path, os.O_WRONLY)
    else:
        # Opening a redirected stream by name would begin at the start of its file again.
        for text in (sys.stdout, sys.stderr):
            text.flush()
        descriptor = os.dup(stream)
    with os.fdopen(descriptor, "wb") as file:
        for chunk in chunks:
            file.write(chunk)


def _write_and_rename(target: Path, chunks: Chunks, permissions: int) -> None:
    _remove_left_over(target.parent)
    temporary, descriptor = _new_temporary(target, permissions)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # Windows cannot rename an open file
            temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _new_temporary(target: Path, permissions: int) -> tuple[Path, int]:
    """A new file beside the target, locked and open for writing."""
    while True:
        temporary = target.with_name(f".{target.name[:100]}.{os.urandom(8).hex()}{_SUFFIX}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, permissions)
        _lock(descriptor, waits=True)
        if os.fstat(descriptor).st_nlink:
            return temporary, descriptor
        # Another writer took it for left over, in the moment before it was locked.
        os.close(descriptor)


def _remove_left_over(folder: Path) -> None:
    """Remove the temporary files of writers that were killed; those that cannot be removed stay."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        left = [Path(entry) for entry in entries if _TEMPORARY.fullmatch(entry.name)]
        for path in left:
            with contextlib.suppress(OSError):
                descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
                try:
                    if stat.S_ISREG(os.fstat(descriptor).st_mode) and _lock(descriptor, waits=False):
                        path.unlink()
                finally:
                    os.close(descriptor)


def _lock(descriptor: int, *, waits: bool) -> bool:
    """Lock an open file until it is closed or its process ends; False if that cannot be done."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except OSError:
        return False
    return True
