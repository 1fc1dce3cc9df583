"""The timing cache: kernel latencies on one processor, stored as text that people can read and edit."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, ClassVar

import attrs

from dryfit.atomic_file import write_atomically
from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError
from dryfit.target.tactics import processor_name, timing_file

FORMAT = 1
LONGEST_LINE = 200
"""Characters of a damaged line that an error shows."""
_HEADER = {"dryfit timing cache": int, "processor": str}
_ENTRY = {"group": str, "kernel": str, "version": int, "layout": str, "microseconds": float}


@frozen(order=True)
class TimingCacheKey:
    """The key of a measurement.

    Attributes:
        group: kinds, parameters, shapes and types of the group's layers; see `dryfit.builder.kernels.timing`.
        kernel: name of the kernel.
        version: version of the kernel.
        layout: host layout of the kernel's arrays.
    """

    group: str
    kernel: str
    version: int
    layout: str


class TimingCache:
    """The minimum latencies of single-threaded runs on this machine, in us; TensorRT's `ITimingCache`.

    The text has one JSON object per line: the first states format and processor, the others are measurements, sorted.
    Edit a number to make a build choose another kernel.

    Args:
        processor: processor of the measurements; default: this machine's.
        entries: measurements by key.

    Example:
        >>> from dryfit.builder.config.timing_cache import TimingCacheKey
        >>> cache = TimingCache("a processor")
        >>> cache.update(TimingCacheKey("softmax(%0)", "acme.softmax", 1, "any"), 2.5)
        >>> print(cache.serialize().decode(), end="")
        {"dryfit timing cache": 1, "processor": "a processor"}
        {"group": "softmax(%0)", "kernel": "acme.softmax", "version": 1, "layout": "any", "microseconds": 2.5}
    """

    def __init__(self, processor: str | None = None, entries: Mapping[TimingCacheKey, float] | None = None) -> None:
        self.processor = processor_name() if processor is None else processor
        self._entries: dict[TimingCacheKey, float] = dict(entries or {})

    def query_keys(self) -> list[TimingCacheKey]:
        """Return the keys of all measurements, sorted."""
        return sorted(self._entries)

    def query(self, key: TimingCacheKey) -> float | None:
        """Return the latency in us; None if not measured."""
        return self._entries.get(key)

    def update(self, key: TimingCacheKey, microseconds: float) -> None:
        """Set a measurement.

        Raises:
            ConfigError: The value is not a valid latency.
        """
        self._entries[key] = _positive(microseconds, f"kernel {key.kernel!r}")

    def reset(self) -> None:
        """Remove all measurements."""
        self._entries.clear()

    def combine(self, other: TimingCache, ignore_mismatch: bool = False) -> bool:
        """Add the measurements of another cache that this one lacks. Returns True.

        Raises:
            ConfigError: The other cache was measured on another processor.
        """
        other.require_processor(self.processor, ignore_mismatch)
        self._entries = {**other._entries, **self._entries}
        return True

    def require_processor(self, processor: str, ignore_mismatch: bool = False, where: str = "timing cache") -> None:
        """Reject measurements from another processor, unless that is allowed.

        Raises:
            ConfigError: The cache was measured on another processor.
        """
        if self.processor != processor and not ignore_mismatch:
            raise ConfigError(
                "The timing cache must be measured on this processor",
                where=where,
                found=self.processor,
                allowed=processor,
                remedy="Measure again with a new cache, or ignore the mismatch",
            )

    def serialize(self) -> bytes:
        """Return the cache as UTF-8 text, deterministic for the same measurements."""
        lines: Iterable[dict[str, Any]] = (
            {"dryfit timing cache": FORMAT, "processor": self.processor},
            *({**attrs.asdict(key), "microseconds": self._entries[key]} for key in self.query_keys()),
        )
        return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines).encode()

    @classmethod
    def parse(cls, text: bytes, where: str = "timing cache") -> TimingCache:
        """Parse the text of `serialize`, possibly edited; an empty text creates an empty cache for this machine.

        Args:
            text: text of the cache.
            where: name of the file, for errors.

        Raises:
            ConfigError: The text is not a timing cache of this format, or a line is invalid; the message states file
                and line.
        """
        if not text.strip():
            return cls()
        try:
            lines = text.decode().splitlines()
        except UnicodeDecodeError as error:
            raise ConfigError(
                "The file is not a timing cache",
                where=where,
                found=error,
                remedy="Choose another file, or delete this one; kernels are then measured again",
            ) from error
        header = _fields(lines[0], _HEADER, f"{where}, line 1")
        if header["dryfit timing cache"] != FORMAT:
            raise ConfigError(
                "The timing cache has an unsupported format",
                where=f"{where}, line 1",
                found=header["dryfit timing cache"],
                allowed=FORMAT,
                remedy="Delete it; kernels are then measured again",
            )
        cache = cls(header["processor"])
        for number, line in enumerate(lines[1:], 2):
            place = f"{where}, line {number}"
            fields = _fields(line, _ENTRY, place)
            microseconds = _positive(fields.pop("microseconds"), place)
            key = TimingCacheKey(**fields)
            if key in cache._entries:
                raise ConfigError(
                    "Duplicate timing cache entry",
                    where=place,
                    found=line,
                    remedy="Delete one of the lines, or delete the file; kernels are then measured again",
                )
            cache._entries[key] = microseconds
        return cache


def _fields(line: str, kinds: Mapping[str, type], where: str) -> dict[str, Any]:
    """Return the fields of one line, with exactly these names and types; an integer is accepted as a float."""
    from dryfit.quantization.cache_document import json_number  # with all that calibration caches are made of

    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and found.keys() == kinds.keys():
        fields = {
            name: json_number(found[name]) if _is_whole(found[name], kind) else found[name]
            for name, kind in kinds.items()
        }
        if all(type(fields[name]) is kind for name, kind in kinds.items()):
            return fields
    raise ConfigError(
        "The line is not a timing cache entry",
        where=where,
        found=line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}... ({len(line)} characters)",
        allowed="one JSON object of " + ", ".join(f"{name!r} ({kind.__name__})" for name, kind in kinds.items()),
        remedy="Fix or delete the line, or delete the file; kernels are then measured again",
    )


def _is_whole(value: object, kind: type) -> bool:
    return kind is float and type(value) is int


def _positive(microseconds: float, where: str) -> float:
    if not 0 < microseconds < float("inf"):
        raise ConfigError(
            "A kernel's time must be greater than 0",
            where=where,
            found=microseconds,
            allowed="greater than 0",
            remedy="Fix or delete the line, or delete the file; kernels are then measured again",
        )
    return float(microseconds)


_LOG = logging.getLogger("dryfit.builder")


def load_timing_cache(path: Path) -> TimingCache:
    """Load the cache from a file; an empty cache if the file does not exist.

    Raises:
        ConfigError: The file cannot be read or is not a timing cache; the message states the line.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        text = b""
    except OSError as error:
        raise ConfigError(
            "The timing cache cannot be read",
            where=str(path),
            found=error,
            remedy="Check the permissions, or choose another file; without one, kernels are measured again",
        ) from error
    return TimingCache.parse(text, str(path))


def save_timing_cache(cache: TimingCache, path: Path) -> None:
    """Add a cache to a file. Existing entries are kept, so that concurrent builds agree on them.

    Raises:
        ConfigError: The file is not a timing cache, belongs to another processor, or cannot be written.
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
        raise ConfigError(
            "The timing cache cannot be written",
            where=str(path),
            found=error,
            remedy="Choose a file in a folder that exists, is writable and has space",
        ) from error


class SharedTimingCache:
    """The default cache of one build: the contents of the shared file plus the measurements of this process.

    A corrupt file is set aside with a warning and measured again. A file that cannot be written only means that each
    process measures for itself.
    """

    _measured: ClassVar[dict[Path, TimingCache]] = {}

    def __init__(self) -> None:
        self._path = timing_file()
        self.cache = self._read()
        self.cache.combine(self._measured.setdefault(self._path, TimingCache()))

    def save(self) -> None:
        """Save the measurements in this process and in the file."""
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
            _LOG.warning("%s. It was renamed to %s, and kernels are measured again", error, aside.name)
            with contextlib.suppress(OSError):
                self._path.replace(aside)
            return TimingCache()
        return cache


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a file for one writer at a time if the system supports file locks; otherwise the last writer wins."""
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
