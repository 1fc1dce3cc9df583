"""Timing caches in files: the user's own, and the one that builds share by default."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, ClassVar

from dryfit.atomic_file import write_atomically
from dryfit.builder.config.timing_cache import TimingCache
from dryfit.builder.kernels.processor import processor_name
from dryfit.errors import ConfigError
from dryfit.target.cache_folder import cache_folder

_LOG = logging.getLogger("dryfit.builder")


def load_timing_cache(path: Path) -> TimingCache:
    """The cache of a file; an empty one where there is no such file.

    Raises:
        ConfigError: the file cannot be read, or is no timing cache; the line is named.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        text = b""
    except OSError as error:
        raise ConfigError("The timing cache cannot be read", where=str(path), found=error) from error
    return TimingCache.parse(text, str(path))


def save_timing_cache(cache: TimingCache, path: Path) -> None:
    """Add a cache to a file. What the file knows already stays as it is: builds that run at once agree on it.

    Raises:
        ConfigError: the file is no timing cache, is of another processor, or cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path):
            merged = load_timing_cache(path) if path.is_file() else TimingCache(cache.processor)
            known = merged.query_keys()
            merged.combine(cache)
            if merged.query_keys() != known or not path.is_file():
                write_atomically(path, [merged.serialize()])
    except OSError as error:
        raise ConfigError("The timing cache cannot be written", where=str(path), found=error) from error


def default_path() -> Path:
    """The file that builds share: one for each processor, in the user's cache folder."""
    name = processor_name()
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60]
    return cache_folder() / "timing" / f"{words}-{hashlib.sha256(name.encode()).hexdigest()[:8]}.jsonl"


class SharedTimingCache:
    """The default cache of one build: what the shared file says, and what this process measured.

    A file that is damaged is set aside, with a warning, and measured again. A file that cannot be written costs
    measuring in each process and nothing else.
    """

    _measured: ClassVar[dict[Path, TimingCache]] = {}

    def __init__(self) -> None:
        self._path = default_path()
        self.cache = self._read()
        self.cache.combine(self._measured.setdefault(self._path, TimingCache()))

    def save(self) -> None:
        """Keep what was measured, in this process and in the file."""
        self._measured[self._path].combine(self.cache)
        try:
            save_timing_cache(self.cache, self._path)
        except ConfigError as error:
            _LOG.info("%s", error)

    def _read(self) -> TimingCache:
        try:
            cache = load_timing_cache(self._path)
            cache.require_processor(processor_name(), where=str(self._path))
        except ConfigError as error:
            aside = self._path.with_suffix(".damaged")
            _LOG.warning("%s. It is set aside as %s and measured again", error, aside.name)
            with contextlib.suppress(OSError):
                self._path.replace(aside)
            return TimingCache()
        return cache


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One writer at a time, where the system has locks on files; elsewhere the last one wins."""
    with path.with_name(f"{path.name}.lock").open("w") as file, contextlib.ExitStack() as stack:
        _lock(file, stack)
        yield


def _lock(file: IO[str], stack: contextlib.ExitStack) -> None:
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(file, fcntl.LOCK_EX)
    stack.callback(fcntl.flock, file, fcntl.LOCK_UN)
