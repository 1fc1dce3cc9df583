"""Where what can be made again is kept: machine code of kernels, what the processor is, and how long kernels take.

What is kept there is executed. So the folder has to be the user's, and nobody else may write to it.
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
    """Return the folder that the user names, or the user's cache folder; it need not exist."""
    return Path(os.environ.get(ENVIRONMENT_VARIABLE) or platformdirs.user_cache_dir("dryfit", appauthor=False))


def cache_folder() -> Path:
    """The folder of all caches: the named one or, where that cannot be used, one among the system's temporary files.

    That one belongs to the user as well, so that only the first process compiles anew. Which folder is not used, and
    why, is told once.
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
    """Make sure that the named folder is the one that is used.

    Raises:
        ConfigError: it cannot be made, or written to, or others can write to it.
    """
    problem = refusal(named_folder())
    if problem:
        raise ConfigError("Compiled kernels cannot be kept", where=str(named_folder()), found=problem, remedy=REMEDY)


def refusal(folder: Path) -> str:
    """Why a folder cannot be used, in words; "" where it can. It is made where there is none."""
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
    """Make a folder, and those above it that are missing, for this user alone.

    Raises:
        OSError: it cannot be made.
    """
    if not folder.parent.exists():
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def distrust(found: os.stat_result) -> str:
    """Why others may have written a file or into a folder, in words; "" where only this user can.

    Systems without numbers of users (Windows) keep this in other ways, and are not asked.
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
