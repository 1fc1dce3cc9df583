"""The answers about calibration caches: what one contains, how two differ, and what is wrong with one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs

from dryfit.answers.conditions import Outcome
from dryfit.answers.json_data import Count, Share
from dryfit.answers.text import Answer, Block, Entries, Line, Table, scale_text
from dryfit.quantization.cache_comparison import CacheFinding
from dryfit.quantization.cache_forms import FORMS
from dryfit.short_text import count_text

FINDING_TITLES = {
    "damaged": "Places that cannot be read",
    "duplicate": "Tensors that occur twice",
    "negative": "Negative scales",
    "nonfinite": "Scales that are not finite",
    "zero": "Scales of zero, which mean none",
    "foreign": "Another model's",
    "missing": "Tensors without a scale",
    "unknown": "Scales without a tensor",
    "unnamed": "Names that TensorRT made up",
}
"""Kind of a finding to the title of its list."""


@attrs.frozen
class CachedTensor:
    """What a file says of one tensor.

    Attributes:
        name: the tensor.
        scale: a binary32 number; None for none.
        range: both ends; None where there is no scale.
        origin: where the range comes from.
        place: where in the file, such as `line 3`.
        details: what the calibrator noted.
        statistics: what calibration saw of the tensor; empty where the file does not have it.
    """

    name: str
    scale: float | None
    range: Sequence[float] | None
    origin: str
    place: str
    details: Mapping[str, Any]
    statistics: Mapping[str, Any]

    @property
    def range_text(self) -> str:
        """Both ends."""
        return "none" if self.range is None else f"{self.range[0]:.7g} to {self.range[1]:.7g}"

    @property
    def origin_text(self) -> str:
        """Where the range comes from, with the details."""
        details = ", ".join(f"{key} {value}" for key, value in self.details.items())
        return f"{self.origin}: {details}" if details else self.origin


@attrs.frozen(repr=False, kw_only=True)
class CacheAnswer(Answer):
    """What a calibration cache contains.

    Attributes:
        file: its path.
        form: name of its form.
        header: TensorRT's first line; None where there is none.
        algorithm: TensorRT's name; None where it is not known.
        tensorrt_version: the version that the first line names.
        cutoff: of the legacy algorithm.
        quantile: of the legacy algorithm.
        facts: what else the file has about how the ranges were found.
        tensors: in the order of the file.

    Example:
        >>> dryfit.show_cache("digits.cache").tensors[0].name
        'image'
    """

    COMMAND: ClassVar[str] = "cache show"

    file: Path
    form: str
    header: str | None
    algorithm: str | None
    tensorrt_version: str | None
    cutoff: Share | None
    quantile: Share | None
    facts: Mapping[str, Any]
    tensors: Sequence[CachedTensor]

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Scale, range and origin of each tensor, and what found them."""
        yield Line(f"{self.file}: {FORMS[self.form].title}")
        yield Line(self._found_by())
        for name, fact in self.facts.items():
            yield Line(f"{name}: {fact}")
        rows = [(one.name, scale_text(one.scale), one.range_text, one.origin_text) for one in self.tensors]
        yield Table("", ["tensor", "scale", "range", "origin"], rows)
        yield Line(self.summary_line())

    def summary_line(self) -> str:
        """How many tensors and scales there are."""
        missing = sum(one.scale is None for one in self.tensors)
        return f"{count_text(len(self.tensors), 'tensor')}, {missing} of them without a scale"

    def _found_by(self) -> str:
        if self.header is None:
            return "It does not say which of TensorRT's algorithms found them"
        if self.algorithm is None:
            return f"First line: {self.header}, of no algorithm that is known"
        version = f", TensorRT {self.tensorrt_version}" if self.tensorrt_version else ""
        legacy = "" if self.cutoff is None else f", cutoff {self.cutoff}, quantile {self.quantile}"
        return f"First line: {self.header}, {self.algorithm}{version}{legacy}"


@attrs.frozen
class ChangedScale:
    """A tensor with two scales.

    Attributes:
        name: the tensor.
        first, second: the scales; None for none.
        ratio: the larger scale divided by the smaller; None where one file has none.
    """

    name: str
    first: float | None
    second: float | None
    ratio: float | None


@attrs.frozen(repr=False, kw_only=True)
class CacheDiffAnswer(Answer):
    """How the scales of two calibration caches differ.

    Attributes:
        first, second: the files.
        changed: tensors with different scales, the largest ratio first.
        equal: tensors with the same scale in both.
        added: tensors that only the second file has.
        removed: tensors that only the first file has.
        conditions: the conditions that were asked for, in their order.

    Example:
        >>> dryfit.diff_caches("digits.cache", "minmax.cache").changed[0].ratio
        1.3319838758798996
    """

    COMMAND: ClassVar[str] = "cache diff"

    first: Path
    second: Path
    changed: Sequence[ChangedScale]
    equal: Count
    added: Sequence[str]
    removed: Sequence[str]
    conditions: Sequence[Outcome] = ()

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """The tensors that differ, the largest ratio first."""
        rows = [
            (one.name, scale_text(one.first), scale_text(one.second), f"{one.ratio:.6g}" if one.ratio else "none")
            for one in self.changed
        ]
        if rows:
            yield Table("", ["tensor", str(self.first), str(self.second), "ratio"], rows)
        for file, names in ((self.first, self.removed), (self.second, self.added)):
            yield Entries(f"Only in {file}", [(name, "no scale to compare with", "") for name in names])
        yield Line(self.summary_line())

    def summary_line(self) -> str:
        """The counts in one line."""
        counts = [(len(self.changed), "changed"), (self.equal, "equal")]
        counts += [(len(self.removed), "removed"), (len(self.added), "added")]
        return ", ".join(f"{count} {word}" for count, word in counts)


@attrs.frozen(repr=False, kw_only=True)
class CacheCheckAnswer(Answer):
    """What is wrong with a calibration cache, alone and for a model.

    Attributes:
        file: its path.
        form: name of its form.
        model: the model; None for none.
        tensors: different names in the file.
        findings: all of them.
        summary: how many findings there are of each kind.
        conditions: the conditions that were asked for, in their order.

    Example:
        >>> dryfit.check_cache("digits.cache", "digits.onnx").summary["missing"]
        0
    """

    COMMAND: ClassVar[str] = "cache check"

    file: Path
    form: str
    model: str | None
    tensors: Count
    findings: Sequence[CacheFinding]
    summary: Mapping[str, Count]
    conditions: Sequence[Outcome] = ()

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """The findings by kind."""
        for kind, title in FINDING_TITLES.items():
            found = [one for one in self.findings if one.kind == kind]
            texts = [f"{one.place}: {one.text}" if one.place and one.tensor else one.text for one in found]
            names = [one.tensor or one.place or str(self.file) for one in found]
            yield Entries(title, [(name, text, "") for name, text in zip(names, texts, strict=True)])
        yield Line(self.summary_line())

    def summary_line(self) -> str:
        """The counts in one line."""
        words = ", ".join(f"{count} {kind}" for kind, count in self.summary.items() if count)
        return f"{self.file}: {count_text(self.tensors, 'tensor')}, {words or 'nothing wrong'}"


def finite(number: float) -> float | None:
    """A number as JSON has it; None where it is not finite."""
    return number if math.isfinite(number) else None
