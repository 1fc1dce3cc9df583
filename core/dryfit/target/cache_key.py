"""The user's secret by which files of the cache are signed: who cannot read it cannot make a file that is believed.

It does not lie in the cache folder. So a cache that came from elsewhere (an archive, a volume, a network drive) is not
believed, whoever owns its files. It is no protection from a program that runs as the same user: that can read the
secret, and could as well change dryfit itself.
"""

from __future__ import annotations

import functools
import os
import secrets
from pathlib import Path

import platformdirs

from dryfit.target.cache_folder import cache_folder, distrust, make_private

ENVIRONMENT_VARIABLE = "DRYFIT_CACHE_KEY"
"""Names the file of the secret to use instead of the one in the user's data folder."""
_BYTES = 32


def cache_key() -> bytes:
    """The secret; made where there is none.

    Where the user's data folder cannot be used it lies in the cache folder, which is the user's own; where that is not
    possible either, it lives as long as this process.
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
    return secrets.token_bytes(_BYTES)


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
    if distrust(status) or (hasattr(os, "geteuid") and status.st_mode & 0o077) or len(found) != _BYTES:
        raise PermissionError(f"{path} is no secret of this user")
    return found


def _made(path: Path) -> bytes:
    """A new secret, or the one that another process made meanwhile.

    Raises:
        OSError: it cannot be written.
    """
    make_private(path.parent)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    with os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(secrets.token_bytes(_BYTES))
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
