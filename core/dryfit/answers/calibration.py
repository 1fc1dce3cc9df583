"""The answers of `dryfit.calibrate` and `dryfit.compare_calibrators`: dynamic ranges and their origins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from dryfit.answers.json_data import Amount, Count, hidden
from dryfit.answers.text import Answer, Block, Entries, Line, Table
from dryfit.attrs_classes import frozen
from dryfit.calibration.output_mix import MixedTensor
from dryfit.quantization.calibrator import Solution
from dryfit.quantization.collector import Collector
from dryfit.quantization.network_ranges import FULL_RANGE, SHARED_WITH, clipping_of
from dryfit.short_text import count_text

_LEFT_SHOWN = 12
"""Tensors with another range that are shown."""

_NAMED = 4
"""Tensors that are named where many have something in common."""


@frozen
class CalibratedTensor:
    """The dynamic range of one tensor.

    Attributes:
        name: name of the tensor.
        threshold: the range is [-threshold, threshold]; None if the tensor has no range.
        scale: threshold / 127, rounded to binary32.
        largest: largest magnitude observed; None if unknown.
        skipped: number of non-finite values that were skipped.
        reason: why the tensor has no range; empty if it has one.
        details: further results of the calibrator, and the tensor that the range is shared with.
    """

    name: str
    threshold: Amount | None
    scale: Amount | None
    largest: Amount | None
    skipped: Count
    reason: str
    details: Mapping[str, Any]


@frozen
class CalibrationRun:
    """The duration of a calibration run.

    Attributes:
        samples_before: number of samples processed by earlier runs.
        images: number of images, counted along the first axis of the first input.
        seconds: time since the first sample was requested.
        images_per_second: throughput of the whole run.
    """

    samples_before: Count
    images: Count
    seconds: Amount
    images_per_second: Amount


@frozen(kw_only=True)
class MixedCalibration:
    """How the ranges were mixed.

    Attributes:
        held_back: names of the samples that were judged on; the ranges that were judged are of the others, those of the
            answer of all samples.
        device: device in whose arithmetic the sets of ranges were compared.
        sets: SQNR of a sample's worst output by set of ranges, the mean over the samples, in dB: that of each
            calibrator, and of the mixture, if it is better than all of them by more than chance.
        start: calibrator whose ranges are kept where no other is named.
        left: tensors that got another range, those that gained most first.
        judged: number of tensors, or groups that share a range, that were judged.
        roundings: number of ranges that were tried.
    """

    held_back: Sequence[str]
    device: str
    sets: Mapping[str, Amount]
    start: str
    left: Sequence[MixedTensor]
    judged: Count
    roundings: Count

    def blocks(self) -> Iterator[Block]:
        """Return what was compared, and a table of the tensors that got another range."""
        sets = sorted(self.sets.items(), key=lambda one: -one[1])
        texts = ", ".join(f"{name} {value:.1f} dB" for name, value in sets)
        held = count_text(len(self.held_back), "sample")
        yield Line(f"Judged by the outputs on {held} held back: {self.judged} tensors, {self.roundings} ranges tried")
        yield Line(f"Mean SQNR of a sample in INT8 on {self.device}: {texts}")
        if not self.left:
            yield Line(f"No mixture is better by more than chance: all ranges are those of {self.start}")
            return
        rows = [
            (
                one.tensors[0] + (f" and {len(one.tensors) - 1} that share it" if len(one.tensors) > 1 else ""),
                one.calibrator,
                f"{one.before:.6g}",
                f"{one.threshold:.6g}",
                f"{one.sqnr_before_db:.1f} dB",
                f"{one.sqnr_db:.1f} dB",
            )
            for one in self.left[:_LEFT_SHOWN]
        ]
        title = f"Not by {self.start}: {len(self.left)} of {self.judged} tensors; SQNR with each alone rounded"
        yield Table(title, ["tensor", "taken from", self.start, "range", "SQNR before", "SQNR"], rows)
        if len(self.left) > _LEFT_SHOWN:
            yield Line(f"{len(self.left) - _LEFT_SHOWN} more are in the JSON (--json)")


@frozen(repr=False, kw_only=True)
class CalibrationAnswer(Answer):
    """The dynamic ranges of a model's tensors.

    Attributes:
        model: path of the model file, or name of the network.
        calibrator: calibrator that computed the ranges.
        options: options of the calibrator, with their values.
        samples: number of samples behind the ranges, including earlier runs.
        run: duration of the run; None if nothing was run.
        mixed: how the calibrator `auto` mixed the ranges; None for other calibrators.
        tensors: tensors in execution order.
        cache: calibration cache that was written, or that already covers the model.
        state: file of the collected statistics.
        solutions: full result of the calibrator by tensor.
        collectors: what was seen of each tensor; empty if a cache already covered the model.
        is_covered: whether a cache already covered the model, so that nothing was run.

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
    mixed: MixedCalibration | None
    tensors: Sequence[CalibratedTensor]
    cache: Path | None
    state: Path | None
    solutions: Mapping[str, Solution] = hidden()
    collectors: Mapping[str, Collector] = hidden()
    is_covered: bool = hidden(False)

    def summary_line(self) -> str:
        """Return the number of scales, in one line."""
        scaled = sum(one.scale is not None for one in self.tensors)
        counts = f"{count_text(scaled, 'scale')} from {count_text(self.samples, 'sample')}"
        return f"{self.model}: {counts} by {self.calibrator}"

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return the number of scales, the tensors without one, the tensors set by other means, and the output path."""
        yield Line(self.summary_line())
        if self.mixed is not None:
            yield from self.mixed.blocks()
        kept = ((SHARED_WITH, "the range of another tensor"), (FULL_RANGE, "the largest magnitude as the range"))
        for key, text in kept:
            names = [one.name for one in self.tensors if key in one.details]
            if names:
                yield Line(f"{count_text(len(names), 'tensor')} with {text}: {_some(names)}")
        clipped = [(one.name, str(how), "") for one in self.tensors if (how := clipping_of(one.details)) is not None]
        yield Entries(f"Narrow ranges: {self.calibrator} clips large values of these tensors", clipped)
        skipped = sum(one.skipped for one in self.tensors)
        if skipped:
            yield Line(f"{skipped} non-finite values were left out")
        unscaled: dict[str, list[str]] = {}
        for one in self.tensors:
            if one.scale is None:
                unscaled.setdefault(one.reason, []).append(one.name)
        yield Entries("Without a scale", [(_some(names), reason, "") for reason, names in unscaled.items()])
        if self.cache is not None:
            yield Line(f"Calibration cache: {self.cache}")
        if self.state is not None:
            yield Line(f"State: {self.state}")

    @property
    def run_text(self) -> str:
        """The duration of the run; "" if nothing was run."""
        if self.run is None or not self.run.images:
            return ""
        return f"{self.run.images} images in {self.run.seconds:.1f} s, {self.run.images_per_second:.1f} images/s"


@frozen(repr=False, kw_only=True)
class CalibratorsAnswer(Answer):
    """The ranges that several calibrators compute from the same samples, tensor by tensor.

    Attributes:
        state: file of the collected statistics.
        samples: number of samples in the state.
        calibrators: threshold of each tensor by calibrator name.

    Example:
        >>> dryfit.compare_calibrators("digits.state").calibrators["minmax"]["image"]
        0.9991803169250488
    """

    COMMAND: ClassVar[str] = "calibrate --state FILE --compare"

    state: Path
    samples: Count
    calibrators: Mapping[str, Mapping[str, Amount | None]]

    def summary_line(self) -> str:
        """Return the names of the compared calibrators, in one line."""
        return f"{self.state}: {count_text(self.samples, 'sample')}, {', '.join(self.calibrators)}"

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return a table with one row per tensor and one column per calibrator."""
        found = list(self.calibrators.values())
        rows = [
            (tensor, *(None if (one := each[tensor]) is None else f"{one:.6g}" for each in found))
            for tensor in found[0]
        ]
        yield Table("Thresholds", ["tensor", *self.calibrators], rows)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
