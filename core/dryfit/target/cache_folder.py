"""The cache folder for data that can be regenerated: machine code of kernels, processor properties, kernel timings.

The machine code in it is executed. The folder must therefore belong to the user, and nobody else may write to it.
"""

from __future__ import annotations

import atexit
import functools
import logging
import os
import shutil
import stat
import tempfile
from pathlib import Path

import platformdirs

from dryfit.errors import ConfigError

ENVIRONMENT_VARIABLE = "DRYFIT_CACHE_DIR"
"""Names the folder to use instead of the user's cache folder."""
REMEDY = f"Make the folder writable for you only, or choose another with {ENVIRONMENT_VARIABLE}"
_LOG = logging.getLogger("dryfit.cache")


def named_folder() -> Path:
    """Return the folder that the user configured, or the user's cache folder; it need not exist."""
    given = os.environ.get(ENVIRONMENT_VARIABLE)
    return _path(given) if given else _user_folder(os.environ.get("XDG_CACHE_HOME"), os.environ.get("HOME"))


_path = functools.lru_cache(maxsize=64)(Path)


@functools.lru_cache(maxsize=64)
def _user_folder(*_: str | None) -> Path:
    """The user's cache folder, for these values of the variables that name it."""
    return Path(platformdirs.user_cache_dir("dryfit", appauthor=False))


def cache_folder() -> Path:
    """Return the cache folder: the configured one or, if it cannot be used, a temporary folder.

    The temporary folder also belongs to the user, so that only the first process compiles again. The unused
    folder and the reason are reported once.
    """
    return _usable(named_folder(), Path(tempfile.gettempdir()))


@functools.lru_cache(maxsize=64)
def _usable(named: Path, temporary: Path) -> Path:
    problem = refusal(named)
    if not problem:
        return named
    instead = temporary / f"dryfit-{_user()}"
    if instead.is_symlink() or refusal(instead):
        instead = _of_this_process(temporary) or named
    place = "each process compiles them again" if instead == named else f"they are kept in {instead}"
    _LOG.warning("Compiled kernels cannot be kept in %s (%s): %s. %s", named, problem, place, REMEDY)
    return instead


def _of_this_process(temporary: Path) -> Path | None:
    """A new folder, which is removed when this process ends; None where there can be none."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="dryfit-", dir=temporary))
    except OSError:
        return None
    process = os.getpid()

    def remove() -> None:
        if os.getpid() == process:  # a fork ends earlier
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def require_usable() -> None:
    """Raise unless the configured folder is the one in use.

    Raises:
        ConfigError: The folder cannot be created or written to, or others can write to it.
    """
    problem = refusal(named_folder())
    if problem:
        raise ConfigError("Compiled kernels cannot be kept", where=str(named_folder()), found=problem, remedy=REMEDY)


def refusal(folder: Path) -> str:
    """Return why a folder cannot be used, or "". Creates the folder if it does not exist."""
    try:
        make_private(folder)
        problem = distrust(folder.stat())
        if not problem:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"\0")
    except OSError as error:
        return error.strerror or str(error)
    return problem


def make_private(folder: Path) -> None:
    """Create a folder, and its missing parents, with access for this user only.

    Raises:
        OSError: The folder cannot be created.
    """
    if not folder.parent.exists():
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def distrust(found: os.stat_result) -> str:
    """Return why others may have written a file or into a folder; "" if only this user can.

    Not checked on systems without numeric user ids (Windows).
    """
    if not hasattr(os, "geteuid"):
        return ""
    if found.st_uid != os.geteuid():
        return f"it belongs to user {found.st_uid}, not {os.geteuid()}"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others can write to it (mode {stat.S_IMODE(found.st_mode):04o})"
    return ""


def _user() -> str:
    return str(os.geteuid()) if hasattr(os, "geteuid") else "cache"
