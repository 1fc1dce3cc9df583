"""Tune a network for INT8: `dryfit.tune` and `dryfit tune`."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, ClassVar, Unpack

import attrs
import numpy as np
from onnx import ModelProto

from dryfit.answers.asked import EXAMPLE_INPUTS, Asked, Model, asked
from dryfit.answers.defaults import with_defaults
from dryfit.answers.json_data import Amount, Count, hidden
from dryfit.answers.options import NetworkOptions, Options, option_name, shape_text
from dryfit.answers.sample_gains import CHANCE, Gain, SampleParts, Verdict, divided, gain, student_quantile
from dryfit.answers.text import Answer, Block, Line, Table, overlay_lines
from dryfit.answers.tuning.centering import center, centered_tensors
from dryfit.answers.tuning.equalization import channel_tensors, equalize
from dryfit.answers.tuning.input_centering import center_inputs
from dryfit.answers.tuning.judge import CALIBRATORS, Candidate, DeviceRuns, Judge, multiply_accumulates
from dryfit.answers.tuning.mixed_precision import choices, mixed, noise_of, output_givers, readers_of, sums_past_int8
from dryfit.answers.tuning.normalization import (
    Folding,
    analytic_biases,
    fold_batch_normalizations,
    scaled,
    shifted,
)
from dryfit.answers.tuning.remainders import RemainderSite, remainder_sites, remainders_by_worth, store_remainders
from dryfit.answers.tuning.scale_centering import center_by_scales, scalable_tensors
from dryfit.answers.tuning.splitting import Site, divisible_tensors, next_division, split
from dryfit.answers.tuning.trials import Trials, digest
from dryfit.answers.tuning.weights import (
    biases_corrected_in_sequence,
    corrected_biases,
    rounded_by_effect,
    with_corrections,
)
from dryfit.atomic_file import write_atomically
from dryfit.attrs_classes import frozen
from dryfit.board.from_config import TENSORRT_DEVICES
from dryfit.builder.config.layer_rules import PRECISION_WORDS
from dryfit.calibration.jobs import SampleCount, threads_per_job
from dryfit.calibration.output_mix import changes_from, judged_tensors, roundings_of
from dryfit.calibration.worker_processes import WorkerProcesses
from dryfit.errors import ConfigError, UnknownNameError
from dryfit.estimate_text import two_digits
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.tensor import Array
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.model_file import read_model, write_model
from dryfit.plugins import registry
from dryfit.plugins.calibrators import calibrator as calibrator_of
from dryfit.plugins.metrics import metric as metric_of
from dryfit.quantization.calibration_cache import CalibrationCache
from dryfit.quantization.calibration_data import SampleSource, source_of
from dryfit.quantization.calibration_stream import CalibrationAlgoType
from dryfit.quantization.calibrator import Solution
from dryfit.quantization.metric import labels_of, worst_sqnr_db
from dryfit.quantization.network_ranges import solve_network
from dryfit.quantization.picture_preparation import PicturePreparation
from dryfit.quantization.sample_arrays import Feeds
from dryfit.short_text import count_text

STEPS = (
    "equalization",
    "centering",
    "input-centering",
    "scales",
    "weight-rounding",
    "bias-correction",
    "mixed-precision",
    "remainders",
    "channel-splitting",
)

EQUALIZATIONS = (0.0, 0.25, 0.5)
"""Strengths of the factors that are tried."""
RANGE_SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
"""Shares of a tensor's largest range that are tried besides the calibrators' ranges."""
MOST_LOOKED_AT = 8
"""Samples that single layers and ranges are judged on: their order is known from few."""
FEWEST_LOOKED_AT = 2
MOST_WORK = 1.5e12
"""Multiply-accumulates that the judging of single layers and ranges may take: larger networks are judged on fewer
samples, but for `FEWEST_LOOKED_AT`. Our choice: a few minutes of a processor."""
MOST_MIXTURES = 3
"""Searches for layers in FP16: as it is, without corrections, with other ranges."""

REMAINDER_MARGIN = 1.25
"""The range of a tensor whose remainder is stored over the largest value that was learned from. Our choice: other
samples may have larger ones, and its step does not matter."""

TOLERATED_LOSS_DB = 0.5
"""The SQNR over all samples together may fall by as much where the mean of the samples rises. Our choice: it is that of
few samples with large outputs. That mean may fall by as much where ranges are widened, which is an insurance."""

ROUNDING = 1e-9
"""Relative error of FP64 that a comparison allows for."""

EXACT_STEPS = ("equalization", "centering", "input-centering")
"""Steps whose models compute the same in real arithmetic."""
LEAST_EXACT_DB = 60.0
"""Such a model is only taken if its FP32 outputs are as near to the original ones. Our choice: FP32 rounds each
parameter anew, and networks with much cancellation lose most of its 150 dB; a wrong edit is off by far more."""

MODEL_FILE, CACHE_FILE, PRECISIONS_FILE, PLAN_FILE = "model.onnx", "model.cache", "layer-precisions.txt", "plan.json"


@frozen(kw_only=True)
class TuningStep:
    """What a step brought, on the samples that select.

    Attributes:
        step: name of the step.
        what: what was done, or why nothing.
        is_taken: whether its result was taken.
        sqnr_db: SQNR of the worst output after the step, in dB; null if nothing differs from FP32.
        metric: the metric after the step.
        gain_db: mean gain of a sample's SQNR over the plan so far, in dB; null for the first step, and where nothing
            was tried.
        gain_error_db: standard error of the mean gain in dB; null where there is none.
        fp32_sqnr_db: how far the edited model is from the original one in FP32, as SQNR in dB; null if it computes the
            same to the last bit, or the step edits no model.
    """

    step: str
    what: str
    is_taken: bool
    sqnr_db: float | None
    metric: float
    gain_db: float | None
    gain_error_db: float | None
    fp32_sqnr_db: float | None


@frozen(kw_only=True)
class TuningOutcome:
    """What a quantized network is worth on the samples that report, which no step was learned from or chosen by.

    Attributes:
        sqnr_db: SQNR of the worst output in dB; null if nothing differs from FP32.
        metric: the metric.
    """

    sqnr_db: float | None
    metric: float


@frozen(repr=False, kw_only=True)
class TuneAnswer(Answer):
    """A plan that gives a model its accuracy back in INT8, and its files.

    Attributes:
        model: path of the model.
        device: default device.
        quantize_methods: quantize methods whose arithmetic the plan was judged in, in place of the device's.
        overlays: active overlays, each with its author, its board and a digest.
        metric: name of the metric.
        metric_fp32: the metric in FP32 on the samples that report; null where it compares with FP32.
        wanted: least value of the metric that the plan had to reach.
        is_reached: whether it does, on the samples that report.
        samples: names of the samples that were learned from.
        held_back: names of the samples that steps were selected by; none of them was learned from.
        reporting: names of the samples that report; no step was learned from them or selected by them.
        steps: steps in order; the first is the model as it was, calibrated.
        before: the model as it was, calibrated by `entropy2`, on the samples that report.
        expected: the plan on the samples that report: what to expect of others.
        gain_db: mean gain of a sample's SQNR by the plan there, in dB.
        gain_error_db: its standard error in dB; null for a single sample.
        half_layers: names of the layers that are kept in FP16.
        half_macs: share of the multiply-accumulates in FP16.
        added_macs: multiply-accumulates that the plan adds, as a share of those of the model.
        segments: number of segments of the engine before and after.
        files: written files, by what they are.

    Example:
        >>> answer = dryfit.tune("digits.onnx", "images.npy", "tuned", target=25.0, steps=["equalization"])
        >>> set(answer.reporting) & {*answer.samples, *answer.held_back}
        set()
    """

    COMMAND: ClassVar[str] = "tune"

    model: str
    device: str
    quantize_methods: Sequence[str]
    overlays: Sequence[str]
    metric: str
    metric_fp32: float | None
    wanted: float
    is_reached: bool
    samples: Sequence[str]
    held_back: Sequence[str]
    reporting: Sequence[str]
    steps: Sequence[TuningStep]
    before: TuningOutcome
    expected: TuningOutcome
    gain_db: float
    gain_error_db: float | None
    half_layers: Sequence[str]
    half_macs: Amount
    added_macs: Amount
    segments: Sequence[Count]
    files: Mapping[str, Path]
    notes: Sequence[str] = hidden(())
    export_options: Sequence[str] = hidden(())

    @property
    def result(self) -> TuningStep:
        """The last step that was taken, whose values are those of the plan on the samples that select."""
        return [one for one in self.steps if one.is_taken][-1]

    def summary_line(self) -> str:
        """Return what was reached, in one line."""
        first, last = self.before, self.expected
        place = ", ".join([self.device, *self.quantize_methods])
        return (
            f"{self.model}: {self.metric} {first.metric:.6g} -> {last.metric:.6g}, SQNR {_db(first.sqnr_db)} -> "
            f"{_db(last.sqnr_db)} on {place}, {100 * self.half_macs:.1f} % of the MACs in FP16"
        )

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return what each step brought, and the files."""
        yield Line(self.summary_line())
        yield from overlay_lines(self.overlays)
        yield Line(f"These are of {len(self.reporting)} samples that nothing was learned from or selected by")
        error = "" if self.gain_error_db is None else f", standard error {self.gain_error_db:.1f} dB"
        yield Line(f"Mean gain of a sample there: {self.gain_db:+.1f} dB{error}")
        yield Line(f"Learned from {len(self.samples)} samples; steps selected by {len(self.held_back)} others:")
        rows = [
            (
                one.step,
                "yes" if one.is_taken else "no",
                _db(one.sqnr_db),
                f"{one.metric:.6g}",
                "" if one.gain_db is None else f"{one.gain_db:+.1f} +- {one.gain_error_db or 0:.1f} dB",
                one.what,
            )
            for one in self.steps
        ]
        yield Table("Steps", ["step", "taken", "SQNR", self.metric, "mean gain", "what"], rows)
        margin = np.inf if self.gain_error_db is None else 2 * self.gain_error_db
        if self.gain_db < -margin:
            yield Line("On the samples that report, the plan is worse than the first calibration: do not use it")
        elif self.gain_db <= margin and any(one.is_taken for one in self.steps[1:]):
            yield Line("The samples that report do not confirm the gain: more samples would show whether there is one")
        if self.half_layers:
            names = ", ".join(self.half_layers)
            yield Line(f"In FP16: {names} ({100 * self.half_macs:.1f} % of the multiply-accumulates)")
        if self.added_macs:
            yield Line(f"Remainders and divided channels add {100 * self.added_macs:.1f} % to the multiply-accumulates")
        before, after = self.segments
        yield Line(f"Segments: {before} before, {after} after")
        if not self.is_reached:
            yield Line(
                f"The plan does not reach {self.metric} {self.wanted:.6g}: more layers in FP16 (--max-macs) may, or "
                "more stored remainders (--max-added-macs)"
            )
        for what, path in self.files.items():
            yield Line(f"{what}: {path}")
        if self.files and self.device in TENSORRT_DEVICES:
            yield Line(f"For the board: {self.export_line}")

    @property
    def export_line(self) -> str:
        """The command that writes trtexec's arguments for the plan."""
        line = f"dryfit export trtexec {self.files['Model']} --device {self.device} --precision int8,fp16"
        line += f" --calibration-cache {self.files['Calibration cache']}"
        if "Layer precisions" in self.files:
            line += f" --layer-precisions @{self.files['Layer precisions']} --precision-constraints prefer"
        return " ".join([line, *self.export_options])


def tune(
    model: Model,
    data: str | os.PathLike[str] | SampleSource,
    output: str | os.PathLike[str] | None = None,
    *,
    metric: str = "sqnr",
    max_loss: float | None = None,
    target: float | None = None,
    labels: Any = None,
    steps: Sequence[str] = STEPS,
    max_macs: float = 0.1,
    max_added_macs: float = 0.2,
    qdq: bool = False,
    preparation: PicturePreparation | None = None,
    limit: int | None = None,
    state: str | os.PathLike[str] | None = None,
    resume: bool = False,
    threads: int | None = None,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: Callable[[int, int], SampleCount] = SampleCount,
    **options: Unpack[Options],
) -> TuneAnswer:
    """Make a plan that gives a model its accuracy back in INT8: scales, an edited model, layers in FP16.

    One sample in five, at most 16, reports what to expect; of the others one in three, at most 32, selects, and the
    rest is learned from. A step is taken if the mean gain of the selecting samples' SQNR, in the device's integer
    arithmetic, is more than chance: a t-test of the paired gains at 5 %, divided by the number of variants tried;
    and if the SQNR over all of them together does not fall by more than half a dB, or another metric by more than
    chance. A sample's SQNR is the mean over it and copies with moved pictures, if it has pictures.

    Args:
        model: a path or an ONNX model.
        data: samples, as `calibrate` takes them.
        output: folder for the files of the plan; None to write nothing.
        metric: an installed metric, or a user's function: `file.py:function`.
        max_loss: how far below its FP32 value the metric may be.
        target: least value of the metric, instead of `max_loss`. None for both: SQNR 20 dB, 1 % of others.
        labels: labels of all samples, in their order; None for nothing.
        steps: steps to try, see `STEPS`; the order is fixed.
        max_macs: largest share of the multiply-accumulates that may be in FP16, from 0 to 1.
        max_added_macs: largest share of multiply-accumulates that remainders or divided channels may add, from 0.
        qdq: whether to write the plan also as a model with Q/DQ nodes, for TensorRT 11.
        preparation: how pictures are converted to inputs.
        limit: maximum number of samples to use, counted from the first.
        state: path of the file that stores the results of trials, written after each.
        resume: use the results in the file, where there are such.
        threads: number of threads per process; None for one per CPU in total.
        jobs: number of processes that share the trials; the plan and its files are the same for any number.
        executor: executor that runs the trials instead, such as a dask client's; it is not shut down.
        progress: function that receives the number of steps and 0, and returns the monitor that counts them.
        options: keyword arguments named like the options of `dryfit tune`.

    Raises:
        ConfigError: The model is no ONNX model, has Q/DQ nodes, or the options conflict.
        UnknownNameError: A step, metric, device or option value does not exist.
        KeyboardInterrupt: The run was stopped; the notes of the exception state what was saved.
        CalibrationError, ExecutionError: Samples cannot be read, are fewer than five, or do not match the network.

    Example:
        >>> answer = dryfit.tune("digits.onnx", "images.npy", steps=["equalization"])
        >>> [one.step for one in answer.steps][-1]
        'equalization'
    """
    for step in steps:
        if step not in STEPS:
            raise UnknownNameError("step", step, STEPS, where="--step")
    said = {"precision": "int8,fp16", **options}
    subject = asked(model, None, said, defaults=with_defaults, needs_shapes=False)
    source_model = subject.require_onnx("Tuning")
    if EXAMPLE_INPUTS in options:
        raise ConfigError(
            "Tuning requires an ONNX model",
            where="model",
            found="a PyTorch module",
            remedy="Save the model as ONNX first",
        )
    if any(layer.kind in ("quantize", "dequantize") for layer in subject.network.layers):
        raise ConfigError(
            "Tuning requires a model without Q/DQ nodes",
            where="model",
            remedy="Tune the FP32 model, or convert it: dryfit translate",
        )
    source = source_of(os.fspath(data), preparation) if isinstance(data, str | os.PathLike) else data
    proto, external = read_model(source_model, subject.folder)
    every = list(source.names(subject.network))
    names = every[:limit]
    parts = divided(names)
    chosen = metric_of(metric)
    labels = None if labels is None else labels_of(labels, len(names), len(every))

    def of(part: Sequence[str]) -> tuple[list[Feeds], list[Any] | None]:
        inside = set(part)
        marked = None if labels is None else [labels[index] for index, name in enumerate(names) if name in inside]
        return [feeds for _, feeds in source.samples(part, subject.network)], marked

    selecting, selecting_labels = of(parts.selecting)
    assert subject.options is not None  # noqa: S101  there is no config
    shapes = {name: array.shape for name, array in selecting[0].items()}
    # Rules for layers are those of the model as it was: edits may take layers away that they name.
    built_with = attrs.evolve(subject.options, layer_precisions=None)
    runs = DeviceRuns(folder=subject.folder, options=built_with, shapes=shapes, threads=threads)
    fingerprint = {
        "model": digest(proto.SerializeToString(deterministic=True)),
        "samples": f"{source.text}: {digest(*names)}",
        "options": subject.options.fingerprint,
        "metric": chosen.name,
        "labels": digest(json.dumps(labels, default=_plain)),
    }
    with contextlib.ExitStack() as stack:
        count = stack.enter_context(progress(1 + len(steps), 0))
        stack.enter_context(count.shown())
        if jobs > 1 and executor is None:
            only_own = "*" in registry.switches.disabled
            executor = stack.enter_context(WorkerProcesses(jobs, registry.switch_off_foreign if only_own else None))
        place = None if state is None else Path(state)
        trials = Trials(fingerprint, place, executor, lambda: count.is_stopped, resume=resume)
        judge = Judge.of_model(
            proto,
            external=external,
            runs=runs,
            away=attrs.evolve(runs, threads=threads or threads_per_job(jobs)),
            trials=trials,
            collected=of(parts.learning)[0],
            held=selecting,
            metric=chosen,
            labels=selecting_labels,
        )
        given = {layer.name: one for layer in subject.network.layers if (one := layer.precision) is not None}
        wanted = _wanted(chosen.name, judge.measured(judge.exact), max_loss, target)
        tuner = _Tuner(judge, proto, wanted, max_macs, steps, max_added_macs=max_added_macs, said=given)
        tuner.begin()
        count.advance(1, 1)
        for step in STEPS:
            if count.is_stopped:
                raise trials.interruption()
            if step in steps:
                tuner.take(step)
                count.advance(1, 1)
        answer, final = _answer(tuner, judge, subject, parts, of(parts.reporting), max_loss, target)
    if output is None:
        return answer
    shape = {**_open_shapes(subject.network, shapes), **subject.options.shape}
    answer = attrs.evolve(answer, export_options=_export_options({**options, "shape": shape}))
    built_with = attrs.evolve(built_with, device=answer.device, quantize_method=(), shape=shape)
    return _written(answer, judge, final, Path(output), built_with if qdq else None)


def _answer(
    tuner: _Tuner,
    judge: Judge,
    subject: Asked,
    parts: SampleParts,
    reporting: tuple[list[Feeds], list[Any] | None],
    max_loss: float | None,
    target: float | None,
) -> tuple[TuneAnswer, Candidate]:
    """Widen the plan's ranges, and return what it is worth on the samples that report, and the plan."""
    tuner.widen()
    final, notes = tuner.now, list(subject.notes)
    if tuner.is_only_calibrated:
        final = tuner.calibrated_on([*judge.collected, *judge.held])
        notes.append("No step was taken: the ranges are of all samples but those that report")
    reporter = judge.over(tuner.original, *reporting)
    fp32 = reporter.measured(reporter.exact)
    wanted = _wanted(judge.metric.name, fp32, max_loss, target)
    before, expected = reporter.verdicts([tuner.first, final])
    brought = gain(before, expected)
    macs, original_macs = (multiply_accumulates(judge.network(one)) for one in (final.model, tuner.original))
    half = [layer.name for layer in judge.network(final.model).layers if layer.name in final.half]
    reused = len(judge.trials.reused)
    if reused:
        notes.append(f"{reused} of {reused + judge.trials.num_run} trials are of an earlier run")
    answer = TuneAnswer(
        model=subject.name,
        device=subject.config.default_device_type,
        quantize_methods=sorted({method for _, method in judge.runs.options.quantize_method}),
        overlays=subject.config.overlay_labels,
        metric=judge.metric.name,
        metric_fp32=fp32 if np.isfinite(fp32) else None,
        wanted=wanted,
        is_reached=expected.metric >= wanted,
        samples=parts.learning,
        held_back=parts.selecting,
        reporting=parts.reporting,
        steps=tuner.steps,
        before=_outcome(before),
        expected=_outcome(expected),
        gain_db=brought.mean,
        gain_error_db=brought.error if np.isfinite(brought.error) else None,
        half_layers=half,
        half_macs=sum(macs[name] for name in half) / max(1, sum(macs.values())),
        added_macs=sum(macs.values()) / max(1, sum(original_macs.values())) - 1,
        segments=[tuner.segments, len(judge.engine(final).plan.segments)],
        files={},
        notes=notes,
    )
    return answer, final


def _plain(labels: Any) -> Any:
    return labels.tolist() if hasattr(labels, "tolist") else repr(labels)


def _outcome(verdict: Verdict) -> TuningOutcome:
    return TuningOutcome(sqnr_db=_finite(verdict.sqnr_db), metric=verdict.metric)


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _wanted(name: str, fp32: float, max_loss: float | None, target: float | None) -> float:
    for where, value in (("--max-loss", max_loss), ("--target", target)):
        if value is not None and not np.isfinite(value):
            raise ConfigError("The value must be finite", where=where, found=value, remedy="Set a finite number")
    if max_loss is not None and target is not None:
        raise ConfigError(
            "max_loss and target cannot be combined", found=f"{max_loss} and {target}", remedy="Set one of them"
        )
    if target is not None:
        return target
    if np.isfinite(fp32):
        return fp32 - (1.0 if max_loss is None else max_loss)
    if max_loss is not None:
        raise ConfigError(
            "--max-loss is not supported for a metric whose FP32 value is infinite",
            where="--max-loss",
            found=f"metric {name}",
            remedy="Set a minimum value instead, as in --target 20",
        )
    return 20.0


@frozen(eq=False)
class _Proposal:
    """What a step would do.

    Attributes:
        candidate: the quantized network; None where there is nothing to do.
        what: what was done, or why nothing.
        tries: number of networks that this one was chosen from by the samples that select.
        origin: what the candidate's model must compute the same as, if weights are rounded; None for the original.
        alone: the same with corrections that are right whichever other layers are in INT8; None for none.
    """

    candidate: Candidate | None
    what: str
    tries: int = 1
    origin: ModelProto | None = None
    alone: Candidate | None = None


@frozen(eq=False)
class _Mixture:
    """A network with layers in FP16.

    Attributes:
        candidate: the quantized network.
        what: what was done.
        tries: number of networks that this one was chosen from by the samples that select.
        verdict: what it is worth.
    """

    candidate: Candidate
    what: str
    tries: int
    verdict: Verdict

    def after(self, other: _Mixture, what: str) -> _Mixture:
        """Return this one as what was found behind another one, and what is different in it."""
        return attrs.evolve(self, what=f"{self.what}, {what}", tries=self.tries + other.tries)


class _Tuner:
    """A plan while steps change it.

    Attributes:
        original: the model as it was.
        first: the same, calibrated, with batch normalizations in its convolutions.
        now: the quantized network so far.
        steps: what each step brought.
        segments: number of segments of the first engine.
    """

    def __init__(
        self,
        judge: Judge,
        model: Any,
        wanted: float,
        max_macs: float,
        steps: Sequence[str] = STEPS,
        *,
        max_added_macs: float = 0.0,
        said: Mapping[str, DataType] | None = None,
    ) -> None:
        self._judge = judge
        self.original = model
        self._wanted = wanted
        self._max_macs = max_macs
        self._max_added_macs = max_added_macs
        self._steps = steps
        said = said or {}
        folding = fold_batch_normalizations(model, judge.external, said)
        # A model that FP32 makes another one of by folding stays as it is.
        if folding.statistics and worst_sqnr_db(judge.exact, judge.real_outputs(folding.model)) < LEAST_EXACT_DB:
            folding = Folding(model, {})
        half = frozenset(name for name, one in said.items() if one is DataType.HALF)
        self.now = self.first = Candidate(folding.model, {}, half, statistics=folding.statistics, said=said)
        self.steps: list[TuningStep] = []
        self.segments = 0
        self._calibrator = ""
        self._alone: Candidate | None = None
        self._uncorrected: Candidate | None = None
        self._unshifted: Candidate | None = None
        self._unmixed: Candidate | None = None
        self._is_mixed_shifted = False
        self._shifting: frozenset[str] = frozenset()

    def begin(self) -> None:
        """Calibrate by TensorRT's calibrator, and then by the best of several."""
        (found,) = self._judge.range_sets([self.now.model])
        sets = {name: attrs.evolve(self.now, ranges=ranges) for name, ranges in found.items()}
        verdicts = dict(zip(sets, self._judge.verdicts(list(sets.values())), strict=True))
        first = next(iter(sets))
        self.now = self.first = sets[first]
        self._calibrator = first
        self._verdict = verdicts.pop(first)
        self.segments = len(self._judge.engine(self.first).plan.segments)
        folded = len(self.first.statistics)
        what = f"ranges by {first}" + (f"; {folded} batch normalizations folded into convolutions" if folded else "")
        self._report("calibration", what, self._verdict, None, is_taken=True)
        best = max(verdicts, key=lambda name: verdicts[name].score)
        brought = gain(self._verdict, verdicts[best], len(verdicts))
        what = f"ranges by {best}, the best of {len(verdicts)} others"
        is_taken = self._is_taken(verdicts[best], brought)
        self._report("calibration", what, verdicts[best], brought, is_taken=is_taken)
        if is_taken:
            self.now, self._verdict, self._calibrator = sets[best], verdicts[best], best

    @property
    def is_only_calibrated(self) -> bool:
        """Whether no step behind the calibration was taken."""
        return not any(one.is_taken for one in self.steps if one.step != "calibration")

    def calibrated_on(self, samples: Sequence[Feeds]) -> Candidate:
        """Return the model as it was with the ranges that the chosen calibrator finds on these samples."""
        (sets,) = attrs.evolve(self._judge, collected=samples).range_sets([self.first.model])
        return attrs.evolve(self.first, ranges=sets[self._calibrator])

    def take(self, step: str) -> None:
        """Try a step, and keep what it brings."""
        proposals: dict[str, Callable[[], _Proposal]] = {
            "equalization": self._equalized,
            "centering": self._centered,
            "input-centering": lambda: self._with_centered_inputs(self.now),
            "scales": self._scaled,
            "weight-rounding": lambda: self._with_rounded_weights(self.now),
            "bias-correction": lambda: self._corrected(self.now),
            "mixed-precision": self._mixed,
            "remainders": self._with_remainders,
            "channel-splitting": self._split,
        }
        self._decide(step, proposals[step]())

    def widen(self) -> None:
        """Widen the ranges to all that was learned from, if the mean SQNR falls by `TOLERATED_LOSS_DB` at most.

        Samples unlike these have larger values, which a range cuts off: that costs them more than coarser codes do.
        """
        if self.is_only_calibrated or "scales" not in self._steps:
            return
        now = self.now
        (sets,) = self._judge.range_sets([now.model])
        free = now.ranges.keys() - now.fixed.keys()
        wider = {name: end for name, end in sets["minmax"].items() if name in free and end > now.ranges[name]}
        if not wider:
            return
        candidate = attrs.evolve(now, ranges={**now.ranges, **wider})
        verdict = self._judge.verdict(candidate)
        brought = gain(self._verdict, verdict)
        is_taken = brought.mean >= -TOLERATED_LOSS_DB and self._is_harmless(self._verdict, verdict)
        what = f"{count_text(len(wider), 'range')} widened to the largest values, "
        what += "which cuts off less of other samples" if is_taken else "which costs too much"
        self._report("scales", what, verdict, brought, is_taken=is_taken)
        if is_taken:
            self.now, self._verdict = candidate, verdict

    def _decide(self, step: str, proposed: _Proposal) -> None:
        """Keep what a step proposes, if that convinces."""
        candidate = proposed.candidate
        if candidate is None:
            self._report(step, proposed.what, self._verdict, None, is_taken=False)
            return
        verdict = self._judge.verdict(candidate)
        brought = gain(self._verdict, verdict, proposed.tries)
        difference = None
        is_taken = self._is_taken(verdict, brought)
        if is_taken and candidate.model is not self.now.model:
            real = self._judge.real_outputs(candidate.model)
            difference = _finite(worst_sqnr_db(self._judge.exact, real))
            origin = self._judge.exact if proposed.origin is None else self._judge.real_outputs(proposed.origin)
            is_taken = step not in EXACT_STEPS or worst_sqnr_db(origin, real) >= LEAST_EXACT_DB
        if is_taken:
            if step == "input-centering" and candidate.half != self.now.half:
                self._unshifted, self._shifting = self._uncorrected or self.now, candidate.half - self.now.half
            if step in ("weight-rounding", "bias-correction") and self._uncorrected is None:
                self._alone, self._uncorrected = proposed.alone, self.now
            elif step == "input-centering":
                self._alone, self._uncorrected = (
                    one and (self._with_centered_inputs(one).candidate or one)
                    for one in (self._alone, self._uncorrected)
                )
            if step == "mixed-precision":
                self._unmixed = self.now
            self.now, self._verdict = candidate, verdict
        self._report(step, proposed.what, verdict, brought, is_taken=is_taken, difference=difference)
        with_more = ("mixed-precision", "remainders", "channel-splitting")
        if is_taken and step in with_more and not self._is_reached(verdict):
            self._take_inputs_again()

    @property
    def _is_input_centered(self) -> bool:
        """Whether the plan shifts inputs, or has layers in FP16 that were selected with shifted inputs."""
        return self._is_mixed_shifted or any(one.step == "input-centering" and one.is_taken for one in self.steps)

    def _take_inputs_again(self) -> None:
        """Try once more what is done to inputs: their share of the noise is larger where others make less."""
        step = "input-centering"
        if step in self._steps and not self._is_input_centered:
            proposed = self._with_centered_inputs(self.now)
            if proposed.candidate is not None:
                self._decide(step, proposed)

    def _is_taken(self, verdict: Verdict, brought: Gain) -> bool:
        return brought.is_convincing and self._is_harmless(self._verdict, verdict)

    def _is_harmless(self, before: Verdict, after: Verdict) -> bool:
        """Return whether the metric over all samples and copies stays, which the mean of the samples does not tell.

        SQNR, by the logits of probabilities, may fall by `TOLERATED_LOSS_DB`, another metric by what is chance.
        """
        if self._judge.metric.name == "sqnr":
            return after.logit_db >= before.logit_db - TOLERATED_LOSS_DB
        error = max(before.copies_error, after.copies_error)
        if len(after.by_sample) > 1:  # what chance reaches once in twenty
            error *= student_quantile(1 - CHANCE, len(after.by_sample) - 1)
        return before.copies_metric - after.copies_metric <= error * (1 + ROUNDING)

    def _report(
        self,
        step: str,
        what: str,
        verdict: Verdict,
        brought: Gain | None,
        *,
        is_taken: bool,
        difference: float | None = None,
    ) -> None:
        if difference is not None:
            what += f"; in FP32 {difference:.1f} dB from the original"
        if difference is not None and not is_taken:
            what += ", which is too far for an exact edit"
        elif brought is not None and not is_taken and brought.is_convincing:
            what += f"; the {self._judge.metric.name} over all samples falls too far"
        elif brought is not None and not is_taken and brought.mean > 0:
            what += (
                f"; {brought.needed:.1f} dB would convince"
                if np.isfinite(brought.needed)
                else "; a single sample cannot convince"
            )
        self.steps.append(
            TuningStep(
                step=step,
                what=what,
                is_taken=is_taken,
                sqnr_db=_finite(verdict.sqnr_db),
                metric=verdict.metric,
                gain_db=None if brought is None else brought.mean,
                gain_error_db=None if brought is None else _finite(brought.error),
                fp32_sqnr_db=difference,
            )
        )

    # The steps ------------------------------------------------------------------------------------------------------

    def _equalized(self) -> _Proposal:
        judge, model = self._judge, self.now.model
        names = channel_tensors(model, judge.external)
        lowest, highest = judge.ends_per_channel(model, names)
        largest = {name: np.maximum(np.abs(lowest[name]), np.abs(highest[name])) for name in names}
        inputs = judge.input_ends()
        variants: dict[str, tuple[Candidate, str]] = {}
        for strength in EQUALIZATIONS:
            found = equalize(model, judge.external, largest, strength, inputs)
            if found.factors:
                statistics = scaled(self.now.statistics, found.factors)
                proved = f", {found.proved} channels that cannot reach the bound of their ReLU6" if found.proved else ""
                what = f"{found.num_tensors} tensors scaled by channel (strength {strength}{proved}), ranges by "
                variant = attrs.evolve(self.now, model=found.model, ranges={}, statistics=statistics)
                variants.setdefault(variant.digest, (variant, what))
        sets = judge.range_sets([each.model for each, _ in variants.values()])
        tried = [
            _Proposal(attrs.evolve(each, ranges=ranges), what + name)
            for (each, what), found_sets in zip(variants.values(), sets, strict=True)
            for name, ranges in found_sets.items()
        ]
        return self._best(tried) or _Proposal(None, "no channels can be scaled")

    def _best(self, tried: Sequence[_Proposal], *, prefers_first: bool = False) -> _Proposal | None:
        """Return the proposal whose samples have the highest mean SQNR; None if there are none.

        Args:
            tried: the proposals.
            prefers_first: whether one replaces another before it only if its gain over that is more than chance.
        """
        if not tried:
            return None
        verdicts = self._judge.verdicts([one.candidate for one in tried if one.candidate is not None])
        best = 0
        for index, verdict in enumerate(verdicts):
            brought = gain(verdicts[best], verdict, len(tried))
            if brought.is_convincing if prefers_first else brought.mean > 0:
                best = index
        among = f", the best of {len(tried)}" if len(tried) > 1 else ""
        return attrs.evolve(tried[best], what=f"{tried[best].what}{among}", tries=len(tried))

    def _centered(self) -> _Proposal:
        judge, model = self._judge, self.now.model
        names = list(
            dict.fromkeys([*centered_tensors(model, judge.external), *scalable_tensors(model, judge.external)])
        )
        if not names:
            return _Proposal(None, "no channels can be shifted")
        ends = judge.ends_per_channel(model, names)
        variants = self._centerings(*ends)
        sets = judge.range_sets([each.model for each, _, _ in variants])
        tried = [
            _Proposal(attrs.evolve(each, ranges={**ranges, **each.fixed}), what + name, origin=origin)
            for (each, what, origin), found_sets in zip(variants, sets, strict=True)
            for name, ranges in found_sets.items()
        ]
        refused = f"the activations that this requires would cut segments of {judge.device}"
        # Layers in FP16 for borders and shifts take time, and shifts multiply what rounded weights do.
        plain, more = (
            [one for one in tried if one.candidate and (one.candidate.half == self.now.half) == few]
            for few in (True, False)
        )
        best = [one for one in (self._best(plain), self._best(more)) if one is not None]
        found = self._best(best, prefers_first=True)
        return attrs.evolve(found, tries=len(tried)) if found else _Proposal(None, refused)

    def _centerings(
        self, lowest: Mapping[str, Array], highest: Mapping[str, Array]
    ) -> list[tuple[Candidate, str, ModelProto | None]]:
        """Return networks with centered tensors without ranges, what is said of each, and what it is the same as.

        Activations with a bound below zero are preferred; where they would cut segments, scale layers behind them do.
        """
        model, external = self.now.model, self._judge.external
        variants: list[tuple[Candidate, str, ModelProto | None]] = []
        is_reached = self._is_reached(self._verdict)
        ways = ((True, True, False), (True, False, False), (False, False, True), (False, False, False))
        for activations, borders, scales in ways:
            if is_reached and (borders or scales):
                continue  # they take time
            real: ModelProto | None = None
            for rounds in (False, True):
                found = center(
                    model, external, lowest, highest, activations=activations, borders=borders, rounds=rounds
                )
                centered, origin, what = found.model, found.origin, f"{len(found.shifts)} tensors centered, "
                ranges, layers = dict(found.ranges), found.half
                if scales:
                    others = {name: one for name, one in lowest.items() if name not in found.shifts}
                    with_scales = center_by_scales(centered, external, others, highest, rounds=rounds)
                    origin = center_by_scales(origin, external, others, highest, rounds=rounds).origin
                    centered, layers = with_scales.model, with_scales.layers
                    ranges.update(with_scales.ranges)
                    what += f"{len(layers)} more by scale layers in FP16, "
                else:
                    what += f"{len(layers)} layers in FP16 for borders, " if borders else ""
                    what += f"{len(found.ranges)} of them behind activations, "
                candidate = attrs.evolve(
                    self.now,
                    model=centered,
                    ranges={**self.now.ranges, **ranges},
                    half=self.now.half | layers,
                    statistics=shifted(self.now.statistics, found.shifts),
                    fixed=ranges,
                    real=real,
                )
                if not (found.shifts or layers) or not self._keeps_segments(candidate):
                    break
                what += "weights rounded to INT8 before; " if rounds else "weights as they are; "
                variants.append((candidate, what + "ranges by ", origin if rounds else None))
                real = centered
            if variants and activations and not borders:
                break
        return variants

    def _with_centered_inputs(self, now: Candidate) -> _Proposal:
        judge = self._judge
        refused, extents = "no shift of an input makes its codes much finer", judge.input_extents()
        for pads_below_kernel in (False, True):
            found = center_inputs(now.model, judge.external, extents, pads_below_kernel=pads_below_kernel)
            if not found.layers:
                break
            macs = multiply_accumulates(judge.network(found.model))
            share = sum(macs[name] for name in now.half | found.layers) / sum(macs.values())
            if share > self._max_macs:
                refused = "the layers that shift in FP16 exceed the limit of multiply-accumulates"
                break
            real = (
                now.real and center_inputs(now.real, judge.external, extents, pads_below_kernel=pads_below_kernel).model
            )
            candidate = attrs.evolve(
                now,
                model=found.model,
                real=real,
                ranges={**now.ranges, **found.ranges},
                half=now.half | found.layers,
                fixed={**now.fixed, **found.ranges},
            )
            if self._keeps_segments(candidate):
                what = f"{count_text(len(found.layers), 'input')} shifted in FP16 ({100 * share:.1f} % of the "
                what += "multiply-accumulates), so that all 256 codes are used"
                return _Proposal(candidate, what, origin=now.model)
            refused = f"the layers that shift would cut segments of {judge.device}"
        grids = {name: end for name, end in judge.input_grids().items() if now.ranges.get(name, end) != end}
        grids = {name: end for name, end in grids.items() if name not in now.whole}
        if grids:
            ranges, fixed = {**now.ranges, **grids}, {**now.fixed, **grids}
            what = f"{count_text(len(grids), 'input')} with codes for its 8-bit values"
            return _Proposal(attrs.evolve(now, ranges=ranges, fixed=fixed), what)
        return _Proposal(None, refused)

    def _scaled(self) -> _Proposal:
        judge = self._judge
        network, collectors = judge.collectors(self.now.model)
        found = {"now": {name: Solution.of_threshold(end) for name, end in self.now.ranges.items()}}
        for name in CALIBRATORS:
            found[name] = solve_network(network, collectors, calibrator_of(name), full_range=False)
        for share in RANGE_SHARES:
            whole = found["minmax"].items()
            found[f"{share:g} of the largest"] = {
                name: Solution.of_threshold(share * one.dynamic_range.threshold)
                if one.dynamic_range is not None
                else one
                for name, one in whole
            }
        judged = judged_tensors(network, {name: {**found["now"], **one} for name, one in found.items()})
        roundings = roundings_of(judged)
        samples = self._few_samples(network, len(roundings))
        changes = changes_from(found["now"], judged, judge.noise(self.now.model, samples, roundings))
        counts = sorted({1 << power for power in range(len(changes).bit_length())} | {len(changes)}) if changes else []
        candidates = []
        for count in counts:
            ranges = dict(self.now.ranges)
            for change in changes[:count]:
                ranges.update(dict.fromkeys(change.tensors, change.threshold))
            candidates.append(attrs.evolve(self.now, ranges=ranges))
        best, kept, now = self._verdict.score, 0, self.now
        for count, candidate, verdict in zip(counts, candidates, judge.verdicts(candidates), strict=True):
            if verdict.score > best:
                best, kept, now = verdict.score, count, candidate
        what = f"{kept} of {len(judged)} ranges changed, {len(roundings)} tried"
        if not kept:
            return _Proposal(None, f"no range is better, {len(roundings)} tried")
        return _Proposal(now, what, len(counts))

    def _with_rounded_weights(self, candidate: Candidate) -> _Proposal:
        """Return a network with weights rounded by their effect, and biases for these, from those as they were."""
        judge, start = self._judge, candidate.uncorrected
        found = rounded_by_effect(judge.network(start.model), judge.probe(start), judge.collected)
        if not found.kernels:
            return _Proposal(None, "no weights can be rounded by their effect")
        # Layers that have gone to FP16 since get what they had.
        base = judge.with_half(candidate, candidate.half)
        rounded = base.with_corrected(with_corrections(base.model, judge.external, found))
        what = f"weights of {count_text(len(found.kernels), 'layer')} rounded by their effect, with biases"
        return _Proposal(rounded, what, alone=rounded)

    def _corrected(self, candidate: Candidate) -> _Proposal:
        """Return a network with corrected biases: each layer alone, unless another way convinces on what selects."""
        found = self._best(self._corrections(candidate), prefers_first=True)
        return found or _Proposal(None, "no mean error is sure")

    def _corrections(self, candidate: Candidate) -> list[_Proposal]:
        """Return a network with corrected biases, by each way that corrects any."""
        judge = self._judge
        samples = judge.collected[: 2 * MOST_LOOKED_AT]
        network, probe = judge.network(candidate.model), judge.probe(candidate)
        real = None if candidate.real is None else judge.probe(candidate.uncorrected)
        found = {
            "by data, each layer alone": corrected_biases(network, probe, samples, real),
            "by batch normalization": analytic_biases(candidate.model, judge.external, candidate.statistics),
            "by data, in sequence": biases_corrected_in_sequence(network, probe, samples, real),
        }
        return [
            _Proposal(
                candidate.with_corrected(with_corrections(candidate.model, judge.external, one)),
                f"biases of {count_text(len(one.biases), 'layer')} corrected {name}",
            )
            for name, one in found.items()
            if one.biases
        ]

    @property
    def _less_corrected(self) -> dict[Candidate, str]:
        """The plan with fewer corrections, and what is said of it."""
        found = {}
        if self._alone is not None and self._alone.digest != self.now.digest:
            found[self._alone] = "without corrections for other layers in INT8"
        if self._uncorrected is not None:
            found[self._uncorrected] = "without rounded weights and corrected biases"
        return found

    def _mixed(self) -> _Proposal:
        if self._is_reached(self._verdict):
            return _Proposal(None, "the metric is reached without")
        found, start = self._mixed_from(self.now), self.now
        # Corrections of what layers before do in INT8 are errors where these leave it.
        for one, what in self._less_corrected.items():
            if not self._is_reached(found.verdict):
                other = self._mixed_from(one)
                # By the samples' mean, which tells more than a share of few samples does.
                if other.verdict.score > found.verdict.score:
                    found, start = other.after(found, what), one
        # What layers that shift inputs take of the limit may be worth more elsewhere.
        if not self._is_reached(found.verdict) and self._unshifted is not None:
            other = self._mixed_from(self._unshifted)
            ends = (found, other)
            if "bias-correction" in self._steps:  # as both end, since only the first one may be corrected already
                ends = (self._corrected_mixture(found), self._corrected_mixture(other))
            if ends[1].verdict.score > ends[0].verdict.score:
                found, start = other.after(found, "without shifted inputs"), self._unshifted
        # What layers before did not show may be worth its share of the limit where others leave INT8.
        if not self._is_reached(found.verdict) and "input-centering" in self._steps and not self._is_input_centered:
            for one, what in {start: "", **self._less_corrected}.items():
                shifted_start = self._with_centered_inputs(one).candidate
                if shifted_start is None or self._is_reached(found.verdict):
                    continue
                other = self._mixed_from(shifted_start)
                if other.verdict.score > found.verdict.score:
                    self._is_mixed_shifted = True
                    found, start = (
                        other.after(found, ", ".join(filter(None, ["with input-centering", what]))),
                        shifted_start,
                    )
        # Ranges were chosen while other layers made most of the noise; what is left may want others.
        if not self._is_reached(found.verdict):
            candidate, name, count = self._ranged_anew(found.candidate, found.verdict)
            if name:
                other = self._mixed_from(attrs.evolve(start, ranges=candidate.ranges))
                other = attrs.evolve(other, tries=other.tries + count)
                if gain(found.verdict, other.verdict, other.tries).is_convincing:
                    found = other.after(found, f"ranges by {name}")
        return self._ended(found)

    def _ended(self, found: _Mixture) -> _Proposal:
        """Return a mixture with what is tried at its end, one after the other until the metric is reached."""
        for step, changed in (
            ("mixed-precision", self._with_real_sums),
            ("weight-rounding", self._rounded_mixture),
            ("bias-correction", self._corrected_mixture),
            ("mixed-precision", self._with_real_outputs),
        ):
            if step in self._steps and not self._is_reached(found.verdict):
                found = changed(found)
        return _Proposal(found.candidate, found.what + self._latencies(found.candidate), found.tries)

    def _with_real_sums(self, found: _Mixture) -> _Mixture:
        """Return the mixture with sums in FP16 that read sums, or others in FP16, past INT8 layers, if that convinces.

        They add up what is not rounded yet, which only the INT8 layers read rounded.
        """
        start = found.candidate
        sums = sums_past_int8(self._judge.network(start.model), start.half, start.said)
        return self._with_more_half(found, sums, f"and {len(sums)} more for sums")

    def _with_real_outputs(self, found: _Mixture) -> _Mixture:
        """Return the mixture with layers in FP16 that give outputs in INT8, as on a DLA, if that convinces.

        They are those with the fewest multiply-accumulates, as many as the limit has room for.
        """
        start = found.candidate
        if not self._judge.has_int8(start):
            return found
        macs = multiply_accumulates(self._judge.network(start.model))
        most = self._max_macs * sum(macs.values())
        half = start.half
        for layers in sorted(output_givers(self._judge.probe(start)), key=lambda one: sum(macs[name] for name in one)):
            if layers.isdisjoint(start.said) and sum(macs[name] for name in half | layers) <= most:
                half |= layers
        count = count_text(len(half - start.half), "layer")
        return self._with_more_half(found, half - start.half, f"and {count} more for outputs")

    def _with_more_half(self, found: _Mixture, layers: frozenset[str], what: str) -> _Mixture:
        """Return the mixture with more layers in FP16, if that convinces."""
        candidate = self._judge.with_half(found.candidate, found.candidate.half | layers)
        if not layers or not self._keeps_segments(candidate):
            return found
        verdict = self._judge.verdict(candidate)
        if not gain(found.verdict, verdict).is_convincing or not self._is_harmless(found.verdict, verdict):
            return found
        return _Mixture(candidate, found.what, 1, verdict).after(found, what)

    def _corrected_mixture(self, found: _Mixture) -> _Mixture:
        """Return the mixture with the mean errors taken back that its INT8 layers leave, if that convinces."""
        return self._with_corrections(found, self._corrected)

    def _rounded_mixture(self, found: _Mixture) -> _Mixture:
        """Return the mixture with the weights of its INT8 layers rounded by their effect, if that convinces."""
        return self._with_corrections(found, self._with_rounded_weights)

    def _with_corrections(self, found: _Mixture, correct: Callable[[Candidate], _Proposal]) -> _Mixture:
        corrected = _Proposal(None, "")
        if self._judge.has_int8(found.candidate):
            corrected = correct(found.candidate)
        if corrected.candidate is None:
            return found
        verdict = self._judge.verdict(corrected.candidate)
        is_convincing = gain(found.verdict, verdict, corrected.tries).is_convincing
        if not is_convincing or not self._is_harmless(found.verdict, verdict):
            return found
        return _Mixture(corrected.candidate, found.what, corrected.tries, verdict).after(found, corrected.what)

    def _with_remainders(self) -> _Proposal:
        if self._is_reached(self._verdict):
            return _Proposal(None, "the metric is reached without")
        found = self._remainders_from(self.now)
        # Layers in FP16 have more noise than remainders leave, and corrections take back errors that these do not have.
        start = self._uncorrected or self._unmixed
        what = "without corrections" if self._unmixed is None else "before layers were selected"
        if start is not None and found is not None and not self._is_reached(found.verdict):
            other = self._remainders_from(start)
            if other is not None and other.verdict.score > found.verdict.score:
                found = other.after(found, what)
        if found is None:
            return _Proposal(None, "no remainders can be stored within the limit of multiply-accumulates")
        if self._max_macs > 0 and "mixed-precision" in self._steps and not self._is_reached(found.verdict):
            found = self._mixed_further(found)
        return self._ended(found)

    def _split(self) -> _Proposal:
        if self._is_reached(self._verdict):
            return _Proposal(None, "the metric is reached without")
        if self.now.whole:
            return _Proposal(None, "remainders are stored, which bring more")
        found = self._split_from(self.now)
        # Corrections take back errors that divided channels do not have.
        starts = self._less_corrected if self._shifting <= self.now.half else {self._unshifted: "without corrections"}
        for start, what in starts.items():
            if start is not None and not (found and self._is_reached(found.verdict)):
                other = self._split_from(self._judge.with_half(start, self.now.half))
                if found is None or (other is not None and other.verdict.score > found.verdict.score):
                    found = other and (other if found is None else other.after(found, what))
        is_mixing = self._max_macs > 0 and "mixed-precision" in self._steps
        if found is not None and is_mixing and not self._is_reached(found.verdict):
            found = self._mixed_further(found)
        # Where channels are divided already, other layers are worth FP16, and layers in FP16 are not divided.
        if self._unmixed is not None and is_mixing and not (found and self._is_reached(found.verdict)):
            other = self._split_from(self._unmixed)
            other = other and self._mixed_further(other)
            if other is not None and (found is None or other.verdict.score > found.verdict.score):
                found = other if found is None else other.after(found, "divided before layers were selected")
        if found is None:
            return _Proposal(None, "no channels can be divided")
        return self._ended(found)

    def _mixed_further(self, found: _Mixture) -> _Mixture:
        """Return the mixture with more layers in FP16, for which what was added in INT8 leaves room in the limit."""
        more = self._mixed_from(found.candidate)
        is_convincing = gain(found.verdict, more.verdict, more.tries).is_convincing
        if more.candidate.half == found.candidate.half or not is_convincing:
            return found
        return more.after(found, found.what) if self._is_harmless(found.verdict, more.verdict) else found

    def _remainders_from(self, start: Candidate) -> _Mixture | None:
        """Return a network with stored remainders: the fewest that reach the metric, the best number if none does.

        None: no remainder can be stored, or the device needs other segments for it.
        """
        judge = self._judge
        network, probe = judge.network(start.model), judge.probe(start)
        macs = multiply_accumulates(network)
        sites = remainder_sites(start.model, judge.external, macs, readers_of(probe), start.half)
        if not sites:
            return None
        samples = self._few_samples(network, len(probe.tensors) + len(probe.layers))
        noise = noise_of(probe, samples, judge.probabilities)
        is_left = [not one or not one <= start.half for one in noise.readers]
        by_name = {name: row for name, row, left in zip(probe.tensors, noise.ratios, is_left, strict=False) if left}
        others = noise.ratios[is_left].sum(axis=0) - sum(by_name.values())
        # A wider range costs hardly anything, since its step is that of the remainder.
        free = [name for name in sites if name not in start.fixed]
        lowest, highest = judge.ends_per_channel(start.model, free)
        largest = {name: float(max(-lowest[name].min(), highest[name].max())) for name in free}
        wide = {name: REMAINDER_MARGIN * max(start.ranges[name], end) for name, end in largest.items()}
        ends = {**start.ranges, **wide}

        def with_remainders(names: Sequence[str]) -> Candidate:
            return candidate_with_remainders(start, {name: sites[name] for name in names}, ends, judge.external)

        if not self._keeps_segments(with_remainders(list(sites))):
            sites = {name: site for name, site in sites.items() if self._keeps_segments(with_remainders([name]))}
        most = self._most_added(macs)
        order = remainders_by_worth(sites, readers_of(probe), by_name, others, macs, start.half, most)
        best: _Mixture | None = None
        counts = sorted({len(order), *(1 << power for power in range(len(order).bit_length()))}) if order else []
        for tries, count in enumerate(counts, 1):
            candidate = with_remainders(order[:count])
            if not self._keeps_segments(candidate):
                continue
            verdict = judge.verdict(candidate)
            if best is None or verdict.score > best.verdict.score:
                best = _Mixture(
                    candidate,
                    f"remainders of {count_text(count, 'tensor')} stored, {self._added_text(candidate, macs)}",
                    tries,
                    verdict,
                )
            best = attrs.evolve(best, tries=tries)
            if self._is_reached(verdict):
                break
        return best

    def _most_added(self, macs: Mapping[str, int]) -> float:
        """Return the most multiply-accumulates that may be added to those of a network's layers."""
        original = sum(multiply_accumulates(self._judge.network(self.first.model)).values())
        return max(0.0, (1 + self._max_added_macs) * original - sum(macs.values()))

    def _added_text(self, candidate: Candidate, macs: Mapping[str, int]) -> str:
        """Return how much a network has more than another one, in words."""
        now = multiply_accumulates(self._judge.network(candidate.model))
        added = sum(now.values()) / max(1, sum(macs.values())) - 1
        return f"{100 * added:.1f} % more multiply-accumulates"

    def _split_from(self, start: Candidate) -> _Mixture | None:
        """Return a network with divided channels: the fewest pieces that reach the metric, the best if none do.

        None: no channels can be divided, or the device needs other segments for them.
        """
        judge = self._judge
        sites = divisible_tensors(start.model, judge.external, start.ranges)
        if not sites:
            return None
        network, probe = judge.network(start.model), judge.probe(start)
        sites = {name: site for name, site in sites.items() if name in probe.tensors}
        macs = multiply_accumulates(network)
        samples = self._few_samples(network, len(probe.tensors) + len(probe.layers))
        noise = noise_of(probe, samples, judge.probabilities)
        is_left = [not one or not one <= start.half for one in noise.readers]
        by_name = {name: row for name, row, left in zip(probe.tensors, noise.ratios, is_left, strict=False) if left}
        pieces = self._divisions(start, sites, by_name, noise.ratios[is_left].sum(axis=0), macs)
        best: _Mixture | None = None
        exact = judge.real_outputs(start.model)
        counts = sorted({len(pieces), *(1 << power for power in range(len(pieces).bit_length()))}) if pieces else []
        for tries, count in enumerate(counts, 1):
            candidate = divided_candidate(start, pieces[count - 1], judge.external)
            is_exact = worst_sqnr_db(exact, judge.real_outputs(candidate.model)) >= LEAST_EXACT_DB
            if not is_exact or not self._keeps_segments(candidate):
                continue
            verdict = judge.verdict(candidate)
            if best is None or verdict.score > best.verdict.score:
                what = f"channels of {count_text(len(pieces[count - 1]), 'tensor')} divided, "
                what += self._added_text(candidate, macs)
                best = _Mixture(candidate, what, tries, verdict)
            best = attrs.evolve(best, tries=tries)
            if self._is_reached(verdict):
                break
        return best

    def _divisions(
        self,
        start: Candidate,
        sites: Mapping[str, Site],
        noise: Mapping[str, Array],
        total: Array,
        macs: Mapping[str, int],
    ) -> list[dict[str, int]]:
        """Return the pieces of tensors as one division follows another, but for tensors that cut segments.

        Args:
            start: the undivided network.
            sites: tensors that can be divided, by name.
            noise: what the rounding of each tensor causes at the outputs, by name.
            total: what all roundings cause.
            macs: multiply-accumulates of each layer.
        """
        most_added = self._most_added(macs) / max(1, sum(macs.values()))
        limits: dict[str, Any] = {"most_added": most_added, "half": start.half, "most_half": self._max_macs}

        def keeps_segments(pieces: Mapping[str, int]) -> bool:
            return self._keeps_segments(divided_candidate(start, pieces, self._judge.external))

        while True:
            others = total - sum(row for name, row in noise.items() if name in sites)
            found: list[dict[str, int]] = []
            while one := next_division(sites, noise, others, macs, found[-1] if found else {}, **limits):
                found.append(one)
            if not found or keeps_segments(found[-1]):
                return found
            kept = {name: site for name, site in sites.items() if name not in found[-1] or keeps_segments({name: 2})}
            if len(kept) == len(sites):
                return found
            sites = kept

    def _latencies(self, candidate: Candidate) -> str:
        """Return the estimated latencies before and after, in words; empty where a target estimates none."""
        times = [self._judge.latency_microseconds(one) for one in (self.now, candidate)]
        known = [two_digits(one) for one in times if one is not None]
        return f"; estimated latency {known[0]} -> {known[1]} us" if len(known) == len(times) else ""

    def _ranged_anew(self, candidate: Candidate, verdict: Verdict) -> tuple[Candidate, str, int]:
        """Return the network with the ranges of the best calibrator, its name, and how many were tried.

        The name is empty if the network's own ranges are the best ones.
        """
        (sets,) = self._judge.range_sets([candidate.model])
        others = {name: attrs.evolve(candidate, ranges={**ranges, **candidate.fixed}) for name, ranges in sets.items()}
        scores = [one.score for one in self._judge.verdicts(list(others.values()))]
        best, name = max(zip(scores, others, strict=True))
        return (others[name], name, len(others)) if best > verdict.score else (candidate, "", len(others))

    def _is_reached(self, verdict: Verdict) -> bool:
        """Return whether the metric is reached, and few samples do not reach it by chance."""
        return verdict.reaches(self._wanted, is_share=self._judge.metric.unit == "%")

    def _keeps_segments(self, candidate: Candidate) -> bool:
        return len(self._judge.engine(candidate).plan.segments) <= self.segments

    def _few_samples(self, network: Network, roundings: int) -> Sequence[Feeds]:
        """Return evenly spread samples to judge so many roundings on, each of which computes half of the network."""
        work = roundings * sum(multiply_accumulates(network).values()) / 2
        count = min(MOST_LOOKED_AT, max(FEWEST_LOOKED_AT, int(MOST_WORK / max(1.0, work))))
        return self._judge.collected[:: max(1, len(self._judge.collected) // count)][:count]

    def _mixed_from(self, start: Candidate) -> _Mixture:
        """Return a network with layers in FP16: the cheapest for the device that reaches the metric.

        If none does within the limit of multiply-accumulates, layers are chosen by what they take of that limit.
        """
        judge = self._judge
        network, probe = judge.network(start.model), judge.probe(start)
        samples = self._few_samples(network, MOST_MIXTURES * (len(probe.tensors) + len(probe.layers)))
        macs = multiply_accumulates(network)
        noise = noise_of(probe, samples, judge.probabilities)
        most = self._max_macs * sum(macs.values())
        verdicts: dict[frozenset[str], Verdict] = {}

        def is_enough(candidate: Candidate) -> bool:
            if candidate.half not in verdicts:
                verdicts[candidate.half] = judge.verdict(candidate)
            return self._is_reached(verdicts[candidate.half])

        found = start
        costs = judge.added_microseconds(start, readers_of(probe))
        for microseconds in ([costs] if costs is not None else []) + [None]:
            affordable = choices(network, probe, noise, macs, start.half, most, microseconds, start.said)
            found = mixed(judge, start, affordable, is_enough)
            if is_enough(found):
                break
        else:
            ordered = sorted(verdicts, key=lambda half: -verdicts[half].score)
            whole = (half for half in ordered if self._keeps_segments(judge.with_half(start, half)))
            found = judge.with_half(start, next(whole, ordered[0]))
        share = sum(macs.get(name, 0) for name in found.half) / max(1, sum(macs.values()))
        what = f"{len(found.half)} layers in FP16, {100 * share:.1f} % of the multiply-accumulates"
        return _Mixture(found, what, len(verdicts), verdicts[found.half])


def divided_candidate(start: Candidate, pieces: Mapping[str, int], external: ExternalData) -> Candidate:
    """Return a quantized network with divided channels, all else as it was."""
    found = split(start.model, external, pieces, start.ranges)
    real = start.real and split(start.real, external, pieces, start.ranges).model
    ranges = {**start.ranges, **{name: start.ranges[one] for name, one in found.likenesses.items()}, **found.ranges}
    half = start.half.union(name for name, one in found.origins.items() if one in start.half)
    fixed = {**start.fixed, **found.ranges}
    said = {**start.said, **{name: start.said[one] for name, one in found.origins.items() if one in start.said}}
    return attrs.evolve(start, model=found.model, real=real, ranges=ranges, half=half, fixed=fixed, said=said)


def candidate_with_remainders(
    start: Candidate, sites: Mapping[str, RemainderSite], ends: Mapping[str, float], external: ExternalData
) -> Candidate:
    """Return a quantized network with stored remainders, all else as it was."""
    found = store_remainders(start.model, external, sites, ends)
    real = start.real and store_remainders(start.real, external, sites, ends).model
    like = {name: start.ranges[one] for name, one in found.likenesses.items() if one in start.ranges}
    return attrs.evolve(
        start,
        model=found.model,
        real=real,
        ranges={**start.ranges, **like, **found.ranges},
        half=start.half | found.half,
        fixed={**start.fixed, **found.ranges},
        said={**start.said, **{name: start.said[one] for name, one in found.origins.items() if one in start.said}},
        whole=start.whole.union(sites),
    )


_PLANNED_OPTIONS = ("device", "precision", "precision_constraints", "calibration_cache", "ranges", "layer_precisions")
"""Options whose values are those of the plan."""


def _open_shapes(network: Network, shapes: Mapping[str, Sequence[int]]) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Return the shapes of the samples, of inputs that have none of their own."""
    return {one.name: (tuple(shapes[one.name]),) for one in network.inputs if -1 in one.shape}


def _export_options(options: Mapping[str, Any]) -> list[str]:
    """Return options of the tuned model that building it requires too, as words of a command line."""
    words: list[str] = []
    for name, value in options.items():
        if name == "shape":
            for tensor, shapes in value.items():
                words += ["--shape", shlex.quote(f"{tensor}={':'.join(map(shape_text, shapes))}")]
        elif value is True:
            words.append(option_name(name))
        elif name not in _PLANNED_OPTIONS and value and isinstance(value, str | os.PathLike):
            words += [option_name(name), shlex.quote(os.fspath(value))]
    return words


def _written(
    answer: TuneAnswer, judge: Judge, final: Candidate, folder: Path, built_with: NetworkOptions | None
) -> TuneAnswer:
    """Write the files of a plan; with options, also the model with Q/DQ nodes that a build with them rounds at."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"Model": folder / MODEL_FILE, "Calibration cache": folder / CACHE_FILE}
    write_model(final.model, files["Model"], judge.external, judge.runs.folder or folder)
    network = judge.network(final.model)
    # An edit may have replaced a tensor that has a range, such as a constant that is added.
    known = {tensor.name for tensor in network.tensors}
    solutions = {name: Solution.of_threshold(end) for name, end in final.ranges.items() if name in known}
    cache = CalibrationCache.of_solutions(solutions, CalibrationAlgoType.ENTROPY_CALIBRATION_2)
    write_atomically(files["Calibration cache"], [cache.to_bytes()])
    words = {dtype: word for word, dtype in PRECISION_WORDS.items()}
    precisions = {**dict.fromkeys(final.half, DataType.HALF), **final.said}
    layers = [layer.name for layer in network.layers if layer.name in precisions]
    if layers:
        files["Layer precisions"] = folder / PRECISIONS_FILE
        line = ",".join(f"{name}:{words[precisions[name]]}" for name in layers)
        write_atomically(files["Layer precisions"], [line.encode()])
    if built_with is not None:
        from dryfit.answers.translate import translate

        files["Q/DQ model"] = folder / "model-qdq.onnx"
        said: dict[str, Any] = attrs.asdict(built_with, recurse=False)
        said |= {"calibration_cache": files["Calibration cache"], "ranges": None}
        if layers:
            said |= {"layer_precisions": f"@{files['Layer precisions']}", "precision_constraints": "prefer"}
        translate(files["Model"], files["Q/DQ model"], to="qdq", samples=0, **said)
    files["Plan"] = folder / PLAN_FILE
    written = attrs.evolve(answer, files=files)
    write_atomically(files["Plan"], [json.dumps(json.loads(written.to_json()), indent=2).encode()])
    return written


def _db(value: float | None) -> str:
    return "equal" if value is None else f"{value:.1f} dB"
