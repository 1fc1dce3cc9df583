"""Small cache files, each signed with the user's secret: a damaged or foreign file is treated as missing.

The secret is not stored in the cache folder. A cache from elsewhere (an archive, a volume, a network drive) is
therefore not trusted, whoever owns its files. This is not a protection against programs that run as the same user: they
can read the secret, and could as well modify dryfit itself.

Writers need no lock: each writes its own file and renames it, so that a reader finds either a complete file or none.
The last writer wins, with the same contents.
"""

from __future__ import annotations

import functools
import hmac
import os
import secrets
import stat
from pathlib import Path

import platformdirs

from dryfit.atomic_file import write_atomically
from dryfit.target.cache_folder import cache_folder, distrust, make_private

ENVIRONMENT_VARIABLE = "DRYFIT_CACHE_KEY"
"""Names the file of the secret to use instead of the one in the user's data folder."""
_SECRET_BYTES = 32


def cache_key() -> bytes:
    """Return the secret; created if it does not exist.

    If the user's data folder cannot be used, the secret is stored in the cache folder, which belongs to the user; if
    that is not possible either, it lives as long as this process.
    """
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    data = platformdirs.user_data_dir("dryfit", appauthor=False)
    return _key(Path(named or Path(data) / "cache.key"), cache_folder())


@functools.lru_cache(maxsize=64)
def _key(path: Path, cache: Path) -> bytes:
    for place in (path, cache / "cache.key"):
        try:
            return _read(place) or _made(place)
        except OSError:
            continue
    return secrets.token_bytes(_SECRET_BYTES)


def _read(path: Path) -> bytes | None:
    """The secret of a file; None where there is no file.

    Raises:
        OSError: it cannot be read, or others can read or write it.
    """
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            found = file.read()
    except FileNotFoundError:
        return None
    if distrust(status) or (hasattr(os, "geteuid") and status.st_mode & 0o077) or len(found) != _SECRET_BYTES:
        raise PermissionError(f"{path} is not a secret file that only this user can read")
    return found


def _made(path: Path) -> bytes:
    """A new secret, or the one that another process made meanwhile.

    Raises:
        OSError: it cannot be written.
    """
    make_private(path.parent)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    with os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(secrets.token_bytes(_SECRET_BYTES))
    try:
        # A rename would put a new secret in the place of one that another process uses already.
        os.link(temporary, path)
    except FileExistsError:
        pass
    except (OSError, AttributeError):  # no links here
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return _read(path) or b""


_SIGNATURE_BYTES = 32
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
"""How files are opened: as bytes, and no links."""


def sealed(contents: bytes, name: str) -> bytes:
    """Return a file's bytes: HMAC-SHA-256 of its name and contents, contents."""
    return _signature(contents, name) + contents


def unsealed(data: bytes, name: str) -> bytes | None:
    """Return the contents of what `sealed` created; None if it was modified or written by someone else."""
    signature, contents = data[:_SIGNATURE_BYTES], data[_SIGNATURE_BYTES:]
    return contents if hmac.compare_digest(_signature(contents, name), signature) else None


def read(path: Path) -> bytes | None:
    """Return a file's contents; None if there is no trusted file."""
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
    """Store contents in a temporary file, then rename it. Only the user may read it.

    Raises:
        OSError: The folder cannot be created or written to, or is full, or others can write to it. No partial file
            remains.
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
