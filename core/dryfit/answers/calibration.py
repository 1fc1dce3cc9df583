"""The answers of `dryfit.calibrate` and `dryfit.compare_calibrators`: ranges of tensors, and where they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs

from dryfit.answers.json_data import Amount, Count, hidden
from dryfit.answers.text import Answer, Block, Entries, Line, Table
from dryfit.quantization.calibrator import Solution
from dryfit.quantization.network_ranges import FULL_RANGE, SHARED_WITH, clipping_of
from dryfit.short_text import count_text

_NAMED = 4
"""Tensors that are named where many have something in common."""


@attrs.frozen
class CalibratedTensor:
    """The range of one tensor.

    Attributes:
        name: name of the tensor.
        threshold: the range reaches from minus this to this; None where there is none.
        scale: threshold / 127, rounded to binary32.
        largest: the largest magnitude that was seen; None where that is not known.
        skipped: values that were not finite and left out.
        reason: why there is no range; empty where there is one.
        details: what else the calibrator tells, and whose range is shared.
    """

    name: str
    threshold: Amount | None
    scale: Amount | None
    largest: Amount | None
    skipped: Count
    reason: str
    details: Mapping[str, Any]


@attrs.frozen
class CalibrationRun:
    """How long the samples took.

    Attributes:
        samples_before: samples that earlier runs had seen.
        images: by the first axis of the first input.
        seconds: since the first sample was requested.
        images_per_second: throughput of the whole run.
    """

    samples_before: Count
    images: Count
    seconds: Amount
    images_per_second: Amount


@attrs.frozen(repr=False, kw_only=True)
class CalibrationAnswer(Answer):
    """Dynamic ranges of a model's tensors.

    Attributes:
        model: what the user calls it: the path of the file, or the network's name.
        calibrator: the calibrator that found the ranges.
        options: options of the calibrator and their values.
        samples: those that the ranges come from, earlier runs included.
        run: how the samples were run; None if none were.
        tensors: in the order of execution.
        cache: the calibration cache that was written, or that covers the model already.
        state: the file of what was gathered.
        solutions: tensor to its range, with all that the calibrator found.
        is_covered: whether a cache covered the model already, so that nothing was run.

    Example:
        >>> answer = dryfit.calibrate("digits.onnx", "images.npy", output="new.cache")
        >>> answer.tensors[0].name
        'image'
    """

    COMMAND: ClassVar[str] = "calibrate"

    model: str
    calibrator: str
    options: Mapping[str, Any]
    samples: Count
    run: CalibrationRun | None
    tensors: Sequence[CalibratedTensor]
    cache: Path | None
    state: Path | None
    solutions: Mapping[str, Solution] = hidden()
    is_covered: bool = hidden(False)

    def summary_line(self) -> str:
        """How many scales were found."""
        scaled = sum(one.scale is not None for one in self.tensors)
        counts = f"{count_text(scaled, 'scale')} from {count_text(self.samples, 'sample')}"
        return f"{self.model}: {counts} by {self.calibrator}"

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """How many scales, what has none, what was not left to the calibrator, and where it went."""
        yield Line(self.summary_line())
        kept = ((SHARED_WITH, "share the range of another tensor"), (FULL_RANGE, "keep their largest magnitude"))
        for key, text in kept:
            names = [one.name for one in self.tensors if key in one.details]
            if names:
                yield Line(f"{len(names)} {text}: {_some(names)}")
        clipped = [(one.name, str(how), "") for one in self.tensors if (how := clipping_of(one.details)) is not None]
        yield Entries(f"Narrow ranges: {self.calibrator} clips large values of these tensors", clipped)
        skipped = sum(one.skipped for one in self.tensors)
        if skipped:
            yield Line(f"{skipped} non-finite values were left out")
        yield Entries("Without a scale", [(one.name, one.reason, "") for one in self.tensors if one.scale is None])
        if self.cache is not None:
            yield Line(f"Calibration cache: {self.cache}")
        if self.state is not None:
            yield Line(f"State: {self.state}")

    @property
    def run_text(self) -> str:
        """How long the samples took; "" where nothing was run."""
        if self.run is None or not self.run.images:
            return ""
        return f"{self.run.images} images in {self.run.seconds:.1f} s, {self.run.images_per_second:.1f} images/s"


@attrs.frozen(repr=False, kw_only=True)
class CalibratorsAnswer(Answer):
    """What each calibrator makes of the same samples, each tensor alone.

    Attributes:
        state: the file of what was gathered.
        samples: number of samples in the state.
        calibrators: name of each calibrator to its threshold for each tensor.

    Example:
        >>> dryfit.compare_calibrators("digits.state").calibrators["minmax"]["image"]
        0.9991803169250488
    """

    COMMAND: ClassVar[str] = "calibrate --state FILE --compare"

    state: Path
    samples: Count
    calibrators: Mapping[str, Mapping[str, Amount | None]]

    def summary_line(self) -> str:
        """Which calibrators were compared."""
        return f"{self.state}: {count_text(self.samples, 'sample')}, {', '.join(self.calibrators)}"

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """A row per tensor, a column per calibrator."""
        found = list(self.calibrators.values())
        rows = [
            (tensor, *(None if (one := each[tensor]) is None else f"{one:.6g}" for each in found))
            for tensor in found[0]
        ]
        yield Table("Thresholds", ["tensor", *self.calibrators], rows)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
