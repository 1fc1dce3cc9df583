"""Find the layers and tensors that INT8 harms: `dryfit.sensitivity` and `dryfit sensitivity`."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, ClassVar, Unpack

import attrs
import numpy as np

from dryfit.answers.asked import EXAMPLE_INPUTS, Model, asked, load_network
from dryfit.answers.builder_config import refuse_quantize_methods
from dryfit.answers.defaults import has_scales, with_defaults
from dryfit.answers.json_data import Amount, Count, hidden
from dryfit.answers.options import NetworkOptions, Options
from dryfit.answers.sensitivity.causes import causes, few_that_explain
from dryfit.answers.sensitivity.measurement import LOCAL, LayerProbe, Measurement, MeasurementTask
from dryfit.answers.text import Answer, Block, Line, Table, overlay_lines
from dryfit.atomic_file import write_atomically
from dryfit.attrs_classes import frozen
from dryfit.calibration.calibrate import calibrate
from dryfit.calibration.jobs import SampleCount, threads_per_job
from dryfit.calibration.shards import shards_of
from dryfit.calibration.worker_processes import WorkerProcesses
from dryfit.errors import ConfigError
from dryfit.network.network import Network
from dryfit.network.tensor import Array
from dryfit.plugins.metrics import metric as metric_of
from dryfit.quantization.calibration_data import SampleSource, source_of
from dryfit.quantization.metric import labels_of
from dryfit.quantization.picture_preparation import PicturePreparation
from dryfit.short_text import count_text

MOST_SHARE = 0.9
"""The layers that have this share of the noise are counted."""
_SHOWN = 15
_CALIBRATOR = "entropy2"


@frozen
class SensitiveLayer:
    """What the quantization of one layer alone causes.

    Attributes:
        layer: names of the layers that run as one.
        device: device that runs them.
        output: name of the tensor that they give.
        sqnr_db: SQNR of the network output that suffers most, in dB; null if nothing changes.
        share: share of the noise of all layers together.
        agreement: percentage of samples whose class stays that of FP32; null for networks with several outputs.
        metric: requested metric with this layer quantized; null if it is one of the above.
        local_sqnr_db: SQNR of the layer's own output, in dB; null if nothing changes.
        by_activations, by_weights, by_rounding: shares of the error at the layer's output that its rounded inputs, its
            rounded weights and the rounding of its output cause, each measured alone and divided by their sum.
    """

    layer: str
    device: str
    output: str
    sqnr_db: float | None
    share: Amount
    agreement: Amount | None
    metric: float | None
    local_sqnr_db: float | None
    by_activations: Amount
    by_weights: Amount
    by_rounding: Amount


@frozen
class SensitiveTensor:
    """What the rounding of one tensor alone causes.

    Attributes:
        tensor: name of the tensor.
        threshold: end of its range.
        sqnr_db: SQNR of the network output that suffers most, in dB; null if nothing changes.
        agreement: percentage of samples whose class stays that of FP32; null for networks with several outputs.
        causes: why, in words.
    """

    tensor: str
    threshold: Amount
    sqnr_db: float | None
    agreement: Amount | None
    causes: Sequence[str]


@frozen(repr=False, kw_only=True)
class SensitivityAnswer(Answer):
    """The layers and tensors of a model by what their quantization alone costs at the outputs.

    Attributes:
        model: path of the model, or name of the network.
        device: default device.
        overlays: active overlays, each with its author, its board and a digest.
        samples: number of samples.
        scales: where the scales come from.
        metric: name of the metric.
        metric_fp32: the metric in FP32; null for `sqnr` and `agreement`.
        layers: layers that the device computes in INT8, those that cost most first.
        tensors: tensors that it stores in INT8, those that cost most first.
        explaining: number of layers that together have 90 % of the noise of all layers.
        state: file of the results.

    Example:
        >>> answer = dryfit.sensitivity("digits.onnx", "images.npy", device="DLA")
        >>> answer.layers[0].layer
        'conv2'
    """

    COMMAND: ClassVar[str] = "sensitivity"

    model: str
    device: str
    overlays: Sequence[str]
    samples: Count
    scales: str
    metric: str
    metric_fp32: float | None
    layers: Sequence[SensitiveLayer]
    tensors: Sequence[SensitiveTensor]
    explaining: Count
    state: Path | None
    notes: Sequence[str] = hidden(())

    def summary_line(self) -> str:
        """Return the layer that costs most, in one line."""
        first = self.layers[0]
        return (
            f"{self.model}: {count_text(len(self.layers), 'INT8 layer')} on {self.device}, "
            f"{first.layer} alone costs most: {_db(first.sqnr_db)}"
        )

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:
        """Return tables of the layers and tensors that cost most; `verbose`: all."""
        yield Line(f"{self.model}: {count_text(self.samples, 'sample')}, INT8 on {self.device}, scales {self.scales}")
        yield from overlay_lines(self.overlays)
        if self.metric_fp32 is not None:
            yield Line(f"{self.metric} in FP32: {self.metric_fp32:.6g}")
        yield Line(
            f"{self.explaining} of {count_text(len(self.layers), 'INT8 layer')} cause {100 * MOST_SHARE:.0f} % of the "
            "noise, each quantized alone"
        )
        limit = None if verbose else _SHOWN
        has_classes = any(one.agreement is not None for one in self.layers)
        columns = ["layer", "SQNR", "share", "own SQNR", "activations", "weights", "rounding"]
        columns += ["same class"] if has_classes else []
        columns += [self.metric] if self.metric_fp32 is not None else []
        rows = [
            (
                one.layer,
                _db(one.sqnr_db),
                f"{100 * one.share:.1f} %",
                _db(one.local_sqnr_db),
                *(f"{100 * part:.0f} %" for part in (one.by_activations, one.by_weights, one.by_rounding)),
                *([f"{one.agreement:.1f} %" if one.agreement is not None else "-"] if has_classes else []),
                *([f"{one.metric:.6g}" if one.metric is not None else "-"] if self.metric_fp32 is not None else []),
            )
            for one in self.layers[:limit]
        ]
        yield Table("Layers, each quantized alone", columns, rows)
        tensors = [
            (one.tensor, _db(one.sqnr_db), f"{one.threshold:.4g}", "; ".join(one.causes) or "-")
            for one in self.tensors[:limit]
        ]
        yield Table("Tensors, each rounded alone", ["tensor", "SQNR", "range", "causes"], tensors)
        if limit is not None and max(len(self.layers), len(self.tensors)) > limit:
            yield Line("All layers and tensors: --verbose, or --json")
        if self.state is not None:
            yield Line(f"Results: {self.state}")


def sensitivity(
    model: Model,
    data: str | os.PathLike[str] | SampleSource,
    *,
    metric: str = "sqnr",
    labels: Any = None,
    preparation: PicturePreparation | None = None,
    limit: int | None = None,
    state: str | os.PathLike[str] | None = None,
    resume: bool = False,
    threads: int | None = None,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: Callable[[int, int], SampleCount] = SampleCount,
    **options: Unpack[Options],
) -> SensitivityAnswer:
    """Find what the quantization of each layer and tensor alone costs at the outputs, and why.

    Layers run in the device's integer arithmetic, with FP32 inputs that are rounded to its codes; the layers behind
    them run in FP32. One run over the samples serves all layers. Without scales, the model is calibrated first.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`.
        data: samples, as `calibrate` takes them.
        metric: an installed metric, or a user's function: `file.py:function`. `sqnr` sorts the layers in any case.
        labels: what the metric is given as labels: anything with an entry per sample; None for nothing.
        preparation: how pictures are converted to inputs.
        limit: maximum number of samples to use, counted from the first.
        state: path of the file that stores the results, written after each sample.
        resume: continue with the samples that the file does not have.
        threads: number of threads per process; None for one per CPU in total.
        jobs: number of processes that share the samples; results are the same for any number.
        executor: executor that runs the work instead, such as a dask client's; it is not shut down.
        progress: as for `calibrate`.
        options: keyword arguments named like the options of `dryfit sensitivity`.

    Raises:
        ConfigError: The device computes nothing in INT8, or the metric does not fit the network.
        CalibrationError, ExecutionError: Samples cannot be read or do not match the network.
        KeyboardInterrupt: The run was stopped; the notes of the exception state what was saved.

    Example:
        >>> answer = dryfit.sensitivity("digits.onnx", "images.npy")
        >>> answer.scales
        'by entropy2 on these samples'
    """
    said = dict(options)
    example_inputs = said.pop(EXAMPLE_INPUTS, None)
    filled = {"precision": "int8,fp16", **said}
    subject = asked(model, None, {**filled, EXAMPLE_INPUTS: example_inputs}, defaults=with_defaults, needs_shapes=False)
    assert subject.options is not None  # noqa: S101  there is no config
    refuse_quantize_methods(
        subject.options,
        "Layers are judged alone in the arithmetic of a device",
        "Choose --device, or judge the whole network with the method: dryfit tune",
    )
    source = source_of(os.fspath(data), preparation) if isinstance(data, str | os.PathLike) else data
    every = list(source.names(subject.network))
    names = every[:limit]
    # What has no entry per sample is the user's function's own.
    if isinstance(labels, Sequence) or np.ndim(labels):
        labels = labels_of(labels, len(names), len(every))
    ranges, scales = scales_of(subject.network, subject.options, source, names, threads)
    chosen = metric_of(metric)
    shaped = NetworkOptions(shape=subject.options.shape)
    task = MeasurementTask(
        load=functools.partial(load_network, subject.source or subject.network, shaped, subject.folder),
        source=source,
        options=subject.options,
        ranges=ranges,
        keeps_outputs=chosen.name not in ("sqnr", "agreement"),
        num_threads=threads or threads_per_job(jobs),
    )
    place = None if state is None else Path(state)
    found = _measured(task, names, place, progress, jobs, executor, resume=resume)
    probe = task.probe(subject.network, next(iter(source.samples(names[:1], subject.network)))[1])
    layers, tensors = _ranked(probe, found)
    value = None
    if task.keeps_outputs:
        value, layers = _with_metric(chosen, probe, found, labels, layers)
    noise = [one.share for one in layers]
    return SensitivityAnswer(
        model=subject.name,
        device=subject.config.default_device_type,
        overlays=subject.config.overlay_labels,
        samples=len(found.samples),
        scales=scales,
        metric=chosen.name,
        metric_fp32=value,
        layers=sorted(layers, key=lambda one: -one.share),
        tensors=tensors,
        explaining=few_that_explain(noise, MOST_SHARE),
        state=place,
        notes=subject.notes,
    )


def scales_of(
    network: Network, options: NetworkOptions, source: SampleSource, names: Sequence[str], threads: int | None
) -> tuple[dict[str, tuple[float, float]], str]:
    """Return ranges by tensor name, and where they come from: none if the options or the model have scales."""
    if has_scales(options):
        if options.assume_scales:
            raise ConfigError(
                "Assumed scales have no values to judge",
                where="--assume-scales",
                remedy="Pass --calibration-cache, or omit the scales",
            )
        return {}, f"of {options.calibration_cache or options.ranges}"
    if any(layer.kind in ("quantize", "dequantize") for layer in network.layers):
        return {}, "of the model's Q/DQ nodes"
    solved = calibrate(network, _CALIBRATOR, source.samples(names, network), num_threads=threads)
    ranges = {name: (one.minimum, one.maximum) for name, each in solved.items() if (one := each.dynamic_range)}
    return ranges, f"by {_CALIBRATOR} on these samples"


def _measured(
    task: MeasurementTask,
    names: Sequence[str],
    place: Path | None,
    progress: Callable[[int, int], SampleCount],
    jobs: int,
    executor: Executor | None,
    *,
    resume: bool,
) -> Measurement:
    ranges = hashlib.sha256(json.dumps(sorted(task.ranges.items())).encode()).hexdigest()
    digest = _digest(task.load.args[0]) if isinstance(task.load, functools.partial) else ""
    of_samples = "" if has_scales(task.options) else ", which are of all samples without --calibration-cache"
    fingerprint = {
        "model": digest,
        "samples": task.source.text,
        f"ranges{of_samples}": ranges,
        "options": task.options.fingerprint,
        "outputs": str(task.keeps_outputs),
    }
    before = None
    if resume and place is not None and place.exists():
        before = Measurement.from_bytes(place.read_bytes(), fingerprint, str(place))
    done = () if before is None else before.samples
    left = [name for name in names if name not in set(done)]
    found = before

    def keep(one: Measurement) -> None:
        nonlocal found
        found = one
        if place is not None:
            write_atomically(place, [one.to_bytes(fingerprint)])

    with progress(len(names), len(names) - len(left)) as count:
        if left and jobs == 1 and executor is None:
            task.run(left, count, keep, before)
        elif left:
            workers = WorkerProcesses(jobs) if executor is None else executor
            try:
                with count.shown():
                    shards = shards_of(left, max(1, -(-len(left) // (4 * jobs))))
                    futures = [workers.submit(task.run, shard.names) for shard in shards]
                    for shard, future in zip(shards, futures, strict=True):
                        part = future.result()
                        keep(part if found is None else found.joined(part))
                        count.advance(len(shard.names), len(shard.names))
                        if count.is_stopped:
                            break
            finally:
                if isinstance(workers, WorkerProcesses):
                    workers.shutdown(cancel_futures=True)
    if found is None or not set(names) <= set(found.samples):
        stopped = KeyboardInterrupt()
        kept = "" if place is None else f" They are kept in {place}; add --resume to go on."
        stopped.add_note(f"{0 if found is None else len(found.samples)} of {len(names)} samples were measured.{kept}")
        raise stopped
    order = [found.samples.index(name) for name in names]
    return Measurement(tuple(names), {name: one[order] for name, one in found.arrays.items()})


def _digest(source: Any) -> str:
    if isinstance(source, str | os.PathLike):
        return hashlib.sha256(Path(source).read_bytes()).hexdigest()
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest()
    if isinstance(source, Network):
        return source.name
    return hashlib.sha256(source.SerializeToString(deterministic=True)).hexdigest()


def _ranked(probe: LayerProbe, found: Measurement) -> tuple[list[SensitiveLayer], list[SensitiveTensor]]:
    signal = found.arrays["signal"].sum(axis=0)
    ratios = _ratios(found.arrays["layers"].sum(axis=0), signal)
    total = float(ratios.sum()) or 1.0
    changed = {name: found.arrays[f"changed {name}"] for name in ("layers", "tensors")}
    local = found.arrays["local"].sum(axis=0)
    layers = []
    for index, layer in enumerate(probe.layers):
        own = dict(zip(LOCAL, local[index].tolist(), strict=True))
        parts = [own[name] for name in ("activations", "weights", "rounding")]
        together = sum(parts) or 1.0
        layers.append(
            SensitiveLayer(
                layer=layer.name,
                device=layer.device,
                output=layer.output,
                sqnr_db=_worst_db(ratios[index]),
                share=float(ratios[index].sum()) / total,
                agreement=_agreement(changed["layers"][:, index]),
                metric=None,
                local_sqnr_db=_worst_db(_ratios(np.array([own["total"]]), np.array([own["signal"]]))),
                by_activations=parts[0] / together,
                by_weights=parts[1] / together,
                by_rounding=parts[2] / together,
            )
        )
    costs = _ratios(found.arrays["tensors"].sum(axis=0), signal)
    channels = found.arrays["channels"]
    starts = np.cumsum([0, *probe.channels.values()])
    tensors = []
    for index, (name, scale) in enumerate(probe.tensors.items()):
        part = channels[:, :, starts[index] : starts[index + 1]]
        statistics = np.concatenate([part[:, :1].max(axis=0), part[:, 1:].sum(axis=0)])
        counts = len(found.samples) * probe.values_per_channel(name)
        why = causes(statistics, counts, 127 * scale)
        sqnr = _worst_db(costs[index])
        tensors.append(SensitiveTensor(name, 127 * scale, sqnr, _agreement(changed["tensors"][:, index]), why))
    order = np.argsort(-costs.sum(axis=1), kind="stable")
    return layers, [tensors[index] for index in order]


def _with_metric(
    metric: Any, probe: LayerProbe, found: Measurement, labels: Any, layers: Sequence[SensitiveLayer]
) -> tuple[float, list[SensitiveLayer]]:
    def outputs(change: int) -> dict[str, Array]:
        kept = {name: found.arrays[f"output {name}"][:, change] for name in probe.outputs}
        return {name: one.reshape(-1, *one.shape[2:]) for name, one in kept.items()}

    exact = outputs(0)
    values = [metric.value(outputs(1 + index), exact, labels) for index in range(len(layers))]
    measured = [attrs.evolve(one, metric=value) for one, value in zip(layers, values, strict=True)]
    return metric.value(exact, exact, labels), measured


def _ratios(noise: Array, signal: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = np.where(signal > 0, noise / signal, np.where(noise > 0, 1.0, 0.0))
    return found


def _worst_db(ratios: Array) -> float | None:
    worst = float(np.max(ratios))
    return -10 * float(np.log10(worst)) if worst > 0 else None


def _agreement(changed: Array) -> float | None:
    return 100 * (1 - float(changed.mean())) if changed.size else None


def _db(value: float | None) -> str:
    return "equal" if value is None else f"{value:.1f} dB"
