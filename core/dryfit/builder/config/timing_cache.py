"""The timing cache: how long kernels take on one processor, as text that people may read and edit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from dryfit.builder.kernels.processor import processor_name
from dryfit.errors import ConfigError
from dryfit.quantization.json_text import json_number

FORMAT = 1
LONGEST_LINE = 200
"""Characters of a damaged line that an error shows."""
_HEADER = {"dryfit timing cache": int, "processor": str}
_ENTRY = {"group": str, "kernel": str, "version": int, "layout": str, "microseconds": float}


@attrs.frozen(order=True)
class TimingCacheKey:
    """What was measured.

    Attributes:
        group: kinds, parameters, shapes and types of the group's layers; see `dryfit.builder.kernels.group_signature`.
        kernel: name of the kernel.
        version: its version.
        layout: the host layout of its arrays.
    """

    group: str
    kernel: str
    version: int
    layout: str


class TimingCache:
    """The least times of single-threaded runs on this machine, in microseconds; TensorRT's `ITimingCache`.

    As text it is one JSON object a line: first one that names format and processor, then one for each measurement,
    sorted. A number may be changed to make a build choose another kernel.

    Args:
        processor: where it was measured; this machine's by default.
        entries: what was measured.

    Example:
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
        """What was measured, sorted."""
        return sorted(self._entries)

    def query(self, key: TimingCacheKey) -> float | None:
        """Microseconds; None where it was not measured."""
        return self._entries.get(key)

    def update(self, key: TimingCacheKey, microseconds: float) -> None:
        """Set a measurement.

        Raises:
            ConfigError: a kernel takes no such time.
        """
        self._entries[key] = _positive(microseconds, f"kernel {key.kernel!r}")

    def reset(self) -> None:
        """Forget everything."""
        self._entries.clear()

    def combine(self, other: TimingCache, ignore_mismatch: bool = False) -> bool:
        """Take over what another cache knows and this one does not; True.

        Raises:
            ConfigError: the other was measured on another processor.
        """
        other.require_processor(self.processor, ignore_mismatch)
        self._entries = {**other._entries, **self._entries}
        return True

    def require_processor(self, processor: str, ignore_mismatch: bool = False, where: str = "timing cache") -> None:
        """Refuse what was measured elsewhere, unless that does not matter.

        Raises:
            ConfigError: it was measured on another processor.
        """
        if self.processor != processor and not ignore_mismatch:
            raise ConfigError(
                "The timing cache was measured on another processor",
                where=where,
                found=self.processor,
                allowed=processor,
                remedy="Measure again with a new cache, or ignore the mismatch",
            )

    def serialize(self) -> bytes:
        """The cache as text in UTF-8; the same for the same measurements."""
        lines: Iterable[dict[str, Any]] = (
            {"dryfit timing cache": FORMAT, "processor": self.processor},
            *({**attrs.asdict(key), "microseconds": self._entries[key]} for key in self.query_keys()),
        )
        return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines).encode()

    @classmethod
    def parse(cls, text: bytes, where: str = "timing cache") -> TimingCache:
        """What `serialize` wrote, or somebody edited; an empty text is an empty cache of this machine.

        Args:
            text: the text.
            where: its file, for errors.

        Raises:
            ConfigError: it is no timing cache of this format, or a line is wrong; file and line are named.
        """
        if not text.strip():
            return cls()
        try:
            lines = text.decode().splitlines()
        except UnicodeDecodeError as error:
            raise ConfigError("This is no timing cache", where=where, found=error) from error
        header = _fields(lines[0], _HEADER, f"{where}, line 1")
        if header["dryfit timing cache"] != FORMAT:
            raise ConfigError(
                "The timing cache has another format",
                where=f"{where}, line 1",
                found=header["dryfit timing cache"],
                allowed=FORMAT,
                remedy="Delete it; it is measured again",
            )
        cache = cls(header["processor"])
        for number, line in enumerate(lines[1:], 2):
            place = f"{where}, line {number}"
            fields = _fields(line, _ENTRY, place)
            microseconds = _positive(fields.pop("microseconds"), place)
            key = TimingCacheKey(**fields)
            if key in cache._entries:
                raise ConfigError("The same was measured on a line before", where=place, found=line)
            cache._entries[key] = microseconds
        return cache


def _fields(line: str, kinds: Mapping[str, type], where: str) -> dict[str, Any]:
    """The fields of one line, exactly these and of these types; a whole number may stand for a float."""
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
        "This is no line of a timing cache",
        where=where,
        found=line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}... ({len(line)} characters)",
        allowed="one JSON object of " + ", ".join(f"{name!r} ({kind.__name__})" for name, kind in kinds.items()),
        remedy="Mend or delete the line, or delete the file; it is measured again",
    )


def _is_whole(value: object, kind: type) -> bool:
    return kind is float and type(value) is int


def _positive(microseconds: float, where: str) -> float:
    if not 0 < microseconds < float("inf"):
        raise ConfigError("A kernel takes a positive time", where=where, found=microseconds, allowed="above 0")
    return float(microseconds)
