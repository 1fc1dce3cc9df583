"""Merge and convert calibration caches without running a model: `dryfit.merge_caches`, `dryfit.convert_cache`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import attrs

from dryfit.answers.json_data import Count
from dryfit.answers.options import ALGORITHMS
from dryfit.answers.text import Answer, Block, Line
from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError, UnknownNameError
from dryfit.quantization.cache_comparison import ConflictRule, merge
from dryfit.quantization.cache_forms import read_ranges_file, write_ranges_file
from dryfit.quantization.cache_header import NEWEST_VERSION, CacheHeader, parse_version
from dryfit.quantization.calibration_stream import CalibrationAlgoType
from dryfit.short_text import count_text

PathLike = str | os.PathLike[str]
HEADED_FORMS = ("tensorrt", "json")
"""Forms that keep TensorRT's first line."""


@frozen(repr=False, kw_only=True)
class WrittenCache(Answer):
    """A calibration cache that was written.

    Attributes:
        output: path of the file that was written.
        form: form of the file.
        tensors: number of tensors that were written.
        left_out: tensors without a scale, which the form cannot represent.
        notes: sentences on information that was lost or added.
    """

    output: Path
    form: str
    tensors: Count
    left_out: Sequence[str]
    _notes: Sequence[str] = ()

    @property
    def notes(self) -> Sequence[str]:
        """Sentences on information that was lost or added."""
        names = ", ".join(map(repr, self.left_out))
        lost = f"{len(self.left_out)} without a scale are left out, for the form has none: {names}"
        return [*([lost] if self.left_out else []), *self._notes]

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return the text on the written file."""
        yield Line(self.summary_line())

    def summary_line(self) -> str:
        """Return a one-line summary of the written file."""
        return f"{self.output}: {count_text(self.tensors, 'tensor')}, form {self.form}"


@frozen
class FileScale:
    """The scale of a tensor in one file.

    Attributes:
        file: path of the file.
        scale: scale of the tensor in this file.
    """

    file: Path
    scale: float


@frozen
class ScaleConflict:
    """A tensor with different scales in several files.

    Attributes:
        name: name of the tensor.
        scales: the scale in each file.
    """

    name: str
    scales: Sequence[FileScale]


@frozen(repr=False, kw_only=True)
class MergeAnswer(WrittenCache):
    """A calibration cache merged from several files.

    Attributes:
        files: paths of the merged files.
        conflicts: tensors with different scales.
    """

    COMMAND: ClassVar[str] = "cache merge"

    files: Sequence[Path]
    conflicts: Sequence[ScaleConflict]


@frozen(repr=False, kw_only=True)
class ConvertAnswer(WrittenCache):
    """A calibration cache converted to another form.

    Attributes:
        file: path of the file that was read.
        header: first line, as written by TensorRT; None if missing.
    """

    COMMAND: ClassVar[str] = "cache convert"

    file: Path
    header: str | None


def merge_caches(
    files: Sequence[PathLike],
    output: PathLike,
    *,
    on_conflict: str = "refuse",
    to: str | None = None,
    form: str | None = None,
) -> MergeAnswer:
    """Merge several calibration caches, which may have different forms, into one.

    The result uses the first line of the first file, and lists tensors in order of first occurrence. A tensor that has
    a scale in one file and none in another keeps that scale.

    Args:
        files: paths of the caches.
        output: path of the file to write.
        on_conflict: scale to use if the files differ: `refuse`, `first`, `last` or `widest`.
        to: form of the output; None for the form of the first file.
        form: form of the files, if it cannot be detected from the contents.

    Raises:
        CalibrationError: A file cannot be read or written, or scales differ and `on_conflict` is `refuse`.
        UnknownNameError: The option value or form does not exist.

    Example:
        >>> dryfit.merge_caches(["digits.cache", "minmax.cache"], "both.cache", on_conflict="widest").tensors
        15
    """
    rules = [one.value for one in ConflictRule]
    if on_conflict not in rules:
        raise UnknownNameError("rule", on_conflict, rules, where="--on-conflict")
    stored = [(str(file), read_ranges_file(Path(file), form)) for file in files]
    found = merge(stored, ConflictRule(on_conflict))
    chosen = to or found.stored.form
    left_out = write_ranges_file(Path(output), found.stored, chosen)
    conflicts = [
        ScaleConflict(name, [FileScale(Path(stored[index][0]), entry.scale) for index, entry in several])
        for name, several in found.conflicts.items()
    ]
    headers = {one.header: name for name, one in stored if one.header}
    notes = []
    if conflicts:
        notes.append(f"{count_text(len(conflicts), 'tensor')} had different scales; the {on_conflict} one is used")
    if len(headers) > 1:
        notes.append(f"The files have different first lines: {', '.join(headers)}; that of the first one is kept")
    return MergeAnswer(
        output=Path(output),
        form=chosen,
        tensors=len(found.stored.entries) - len(left_out),
        left_out=left_out,
        notes=notes,
        files=[Path(name) for name, _ in stored],
        conflicts=conflicts,
    )


def convert_cache(
    file: PathLike,
    output: PathLike,
    *,
    to: str | None = None,
    form: str | None = None,
    tensorrt_version: str | None = None,
    algorithm: str | None = None,
    cutoff: float | None = None,
    quantile: float | None = None,
) -> ConvertAnswer:
    """Convert a calibration cache to another form, or for another version of TensorRT.

    Scales are kept bit for bit. Information that the form cannot represent, such as both ends of a range, is lost.

    Args:
        file: path of the cache.
        output: path of the file to write.
        to: form of the output; None for the form of the cache.
        form: form of the cache, if it cannot be detected from the contents.
        tensorrt_version: version in the first line, such as `8.6.1`.
        algorithm: algorithm in the first line, such as `entropy2`.
        cutoff: regression cutoff in a legacy first line.
        quantile: quantile in a legacy first line.

    Raises:
        CalibrationError: The file cannot be read or written.
        ConfigError: The form has no first line, or the first line cannot represent a given setting.
        UnknownNameError: The form or algorithm does not exist.

    Example:
        >>> dryfit.convert_cache("digits.cache", "new.cache", tensorrt_version="10.3").header
        'TRT-100300-EntropyCalibration2'
    """
    stored = read_ranges_file(Path(file), form)
    chosen = to or stored.form
    version = None if tensorrt_version is None else parse_version(tensorrt_version)
    if any(one is not None for one in (version, algorithm, cutoff, quantile)):
        if chosen not in HEADED_FORMS:
            raise ConfigError(
                f"Only the forms {' and '.join(HEADED_FORMS)} have a first line to state this in",
                remedy="Choose one of these forms with --to, or leave out the options for the first line",
            )
        header = _header(stored.header, algorithm)
        if header.algorithm.name != ALGORITHMS["legacy"] and (cutoff is not None or quantile is not None):
            raise ConfigError(
                f"--cutoff and --quantile require the legacy algorithm, not {header.algorithm.name}",
                remedy="Add --algorithm legacy, or leave out --cutoff and --quantile",
            )
        header = attrs.evolve(
            header,
            version=header.version if version is None else version,
            cutoff=header.cutoff if cutoff is None else cutoff,
            quantile=header.quantile if quantile is None else quantile,
        )
        stored = attrs.evolve(stored, header=header.text)
    left_out = write_ranges_file(Path(output), stored, chosen)
    made_up = "The first line says entropy2, because FILE does not name an algorithm; use --algorithm to change it"
    return ConvertAnswer(
        output=Path(output),
        form=chosen,
        tensors=len(stored.entries) - len(left_out),
        left_out=left_out,
        notes=[made_up] if not stored.header and chosen == "tensorrt" else [],
        file=Path(file),
        header=stored.header or None,
    )


def _header(line: str, algorithm: str | None) -> CacheHeader:
    """Return the header of the file with the requested algorithm.

    Raises:
        ConfigError: The first line of the file is unknown, so the algorithm must be given.
        UnknownNameError: The algorithm does not exist.
    """
    found = CacheHeader.parse(line)
    if algorithm is None:
        if found is None:
            raise ConfigError(
                "The first line of FILE must name a known algorithm",
                found=repr(line),
                allowed=", ".join(ALGORITHMS),
                remedy="Set the algorithm with --algorithm",
            )
        return found
    if algorithm not in ALGORITHMS:
        raise UnknownNameError("algorithm", algorithm, ALGORITHMS, where="--algorithm")
    chosen = CalibrationAlgoType[ALGORITHMS[algorithm]]
    if found is not None and found.algorithm is chosen:
        return found
    return CacheHeader(chosen, NEWEST_VERSION if found is None or found.version is None else found.version)
