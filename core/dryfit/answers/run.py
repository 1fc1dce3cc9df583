"""Run an engine, a loadable or a model on this machine: `dryfit run`."""

from __future__ import annotations

import io
import itertools
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Unpack

import attrs
import numpy as np

from dryfit.answers.asked import Model, asked
from dryfit.answers.builder_config import METHOD_OPTION
from dryfit.answers.json_data import Amount, hidden
from dryfit.answers.measured_trace import RunTrace
from dryfit.answers.options import NetworkOptions, Options
from dryfit.answers.placement_text import defaults_line, operator_blocks
from dryfit.answers.run_inputs import RunInputs
from dryfit.answers.text import Answer, Block, Line, Table, table_name, type_text
from dryfit.answers.top_classes import SampleClasses, classes_blocks, read_labels, top_classes
from dryfit.atomic_file import write_atomically
from dryfit.attrs_classes import frozen
from dryfit.builder.assessment import OperatorRule, operator_rules
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.engine.execution_context import ExecutionContext
from dryfit.engine.profiler import LayerTimes, percentile
from dryfit.engine.progress import ProgressMonitor, run_many
from dryfit.errors import ConfigError, ExecutionError
from dryfit.plugins import registry
from dryfit.plugins.model_importers import is_model_file
from dryfit.quantization.picture_preparation import PicturePreparation
from dryfit.short_text import count_text

Array = np.ndarray[Any, Any]

_LARGEST_HEADER = 100_000_000
"""Bytes of header that readers of safetensors accept."""


@frozen
class RunOutput:
    """An output of a run.

    Attributes:
        name: name of the output.
        file: path of the written file; None if not written.
        values: the computed array.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = {name: name for name in ("name", "shape", "type", "file")}

    name: str
    file: str | None
    values: Array = attrs.field(eq=False)

    @property
    def shape(self) -> Sequence[int]:
        """Shape of the output, with all samples joined along the first axis."""
        return list(self.values.shape)

    @property
    def type(self) -> str:
        """Type of the output, as a numpy name."""
        return str(self.values.dtype)

    @property
    def range_text(self) -> str:
        """Minimum and maximum value; "-" for an empty output."""
        is_number = self.values.size and self.values.dtype.kind in "fiu"
        return f"{self.values.min():.6g} to {self.values.max():.6g}" if is_number else "-"


@frozen(repr=False)
class RunAnswer(Answer):
    """The results of a run. Times are those of this machine and do not indicate the speed of the device.

    Attributes:
        engine: path of the file: an engine, or a model that was built for the run.
        name: name of the engine.
        outputs: outputs in engine order.
        runs: number of runs.
        host_milliseconds_a_run: time per run on this machine, including warm-up.
        host_latency_milliseconds: percentiles `p50` and `p99` of the runs after the first; None for a single run.
        host_milliseconds_by_layer: median time by engine layer; None without a profile.
        host_p99_milliseconds_by_layer: 99th percentile of the time by engine layer; None without a profile.
        trace: path of the trace that was written; None for none.
        quantized_operators: layers that a quantize method computes in integers, with the rule of the method.
        plugins: active plugins, each as `name version (distribution)`; sorted.
        overlays: overlays that the engine was built with, each with its board and a digest.
        top_classes: most likely classes of each sample, for pictures with labels.
        assumed: defaults that the model was built with, as options.
        notes: remarks on options that were adjusted.
    """

    COMMAND: ClassVar[str] = "run"

    engine: str
    name: str
    outputs: Sequence[RunOutput]
    runs: int
    host_milliseconds_a_run: Amount
    host_latency_milliseconds: Mapping[str, Amount] | None
    host_milliseconds_by_layer: Mapping[str, Amount] | None
    host_p99_milliseconds_by_layer: Mapping[str, Amount] | None
    trace: str | None
    quantized_operators: Sequence[OperatorRule]
    plugins: Sequence[str]
    overlays: Sequence[str]
    top_classes: Sequence[SampleClasses]
    assumed: Sequence[str] = hidden(())
    notes: Sequence[str] = hidden(())

    def output(self, name: str) -> Array:
        """Return the values of an output.

        Raises:
            KeyError: The output does not exist.
        """
        return {one.name: one.values for one in self.outputs}[name]

    def summary_line(self) -> str:
        """Return a one-line summary of the answer."""
        runs = count_text(self.runs, "run")
        latency = "".join(f", {name} {ms:.3g} ms" for name, ms in (self.host_latency_milliseconds or {}).items())
        return f"{self.host_milliseconds_a_run:.3g} ms per run on this host{latency} ({runs}, including warm-up)"

    def blocks(self, *, verbose: bool = False) -> Iterator[Block]:  # noqa: ARG002  there is no more to show
        """Return the lines and tables that `dryfit run` prints."""
        yield from defaults_line(self.assumed, self.overlays)
        rows = [
            (table_name(one.name), one.shape, type_text(one.type), one.range_text, one.file) for one in self.outputs
        ]
        yield Table("Outputs", ["name", "shape", "type", "range", "file"], rows)
        yield from classes_blocks(self.top_classes)
        yield Line(self.summary_line())
        yield from operator_blocks(self.quantized_operators)
        if self.host_milliseconds_by_layer is not None:
            yield profile_table(self.host_milliseconds_by_layer, self.host_p99_milliseconds_by_layer or {})
        if self.trace is not None:
            yield Line(f"Trace of this host's times: {self.trace} (https://ui.perfetto.dev opens it)")


def profile_table(medians: Mapping[str, float], longest: Mapping[str, float]) -> Table:
    """Return the host time of each engine layer, median and 99th percentile, with its share, slowest first."""
    total = sum(medians.values()) or 1.0
    ordered = sorted(medians.items(), key=lambda item: -item[1])
    rows = [
        (table_name(name), f"{ms:.4f}", f"{longest[name]:.4f}", f"{100 * ms / total:.1f} %") for name, ms in ordered
    ]
    return Table("Host latency (ms; not the device's)", ["engine layer", "p50", "p99", "share"], rows)


def run(
    model: Model,
    inputs: Sequence[str] | Mapping[str, Array] = (),
    *,
    data: str | None = None,
    limit: int | None = None,
    random: int | None = None,
    preparation: PicturePreparation | None = None,
    labels: Path | None = None,
    batches: bool = False,
    output_dir: Path | None = None,
    threads: int | None = None,
    repeat: int = 1,
    profile: bool = False,
    trace: str | os.PathLike[str] | None = None,
    progress: ProgressMonitor | None = None,
    **options: Unpack[Options],
) -> RunAnswer:
    """Run an engine, a loadable or a model on this machine.

    Args:
        model: path of an engine or a loadable; or a model to build for the run: path of an ONNX model, an ONNX model, a
            network, or a PyTorch module with `example_inputs`.
        inputs: `NAME=FILE` strings, or arrays by input name.
        data: samples, instead of `inputs`: a folder, a file, or `module:function`.
        limit: maximum number of samples to use, counted from the first.
        random: seed of random inputs, instead of `inputs`.
        preparation: how pictures are converted to inputs.
        labels: path of a file with class names, one per line.
        batches: whether to split the inputs into runs of the engine's batch size.
        output_dir: folder where the outputs are written as .npy files.
        threads: number of host threads; None for one per CPU.
        repeat: number of times to run all inputs.
        profile: whether to measure the time of each layer.
        trace: path of a trace to write for Perfetto: when each layer ran on this machine. An existing file is replaced.
        progress: monitor that receives the progress of each run.
        options: for a model, keyword arguments named like the options of `dryfit build`, with the same defaults.

    Raises:
        ConfigError: Build options were given for an engine, or they conflict with the model.
        BuildError: The model cannot be built.
        CalibrationError, ExecutionError: Samples cannot be read or do not match the engine's inputs.
        EngineFileError: The file is corrupt.
    """
    classes = None if labels is None else read_labels(labels)
    engine, assumed, notes = _engine_of(model, options)
    taken = RunInputs.of(engine, inputs, data, random, preparation or PicturePreparation(), limit, batches=batches)
    context = engine.create_execution_context(threads)
    recorded = None if trace is None else RunTrace()
    times = recorded.spans if recorded is not None else LayerTimes() if profile else None
    context.profiler = times
    began = time.perf_counter()
    feeds = itertools.chain.from_iterable(taken.feeds() for _ in range(repeat))
    latencies: list[float] = []
    outputs = _run_all(context, feeds, len(taken), latencies, progress, recorded)
    runs = repeat * len(taken)
    milliseconds = (time.perf_counter() - began) * 1e3 / runs
    top = top_classes(outputs, taken.names, classes) if taken.has_pictures or classes is not None else []
    files = {} if output_dir is None else _write(outputs, output_dir)
    name = str(model) if isinstance(model, str | os.PathLike) else engine.name
    if recorded is not None and trace is not None:
        recorded.trace(Path(name).name, context).write(trace)
    return RunAnswer(
        engine=name,
        name=engine.name,
        outputs=[RunOutput(name, files.get(name), values) for name, values in outputs.items()],
        runs=runs,
        host_milliseconds_a_run=milliseconds,
        host_latency_milliseconds=_percentiles(latencies[1:]),
        host_milliseconds_by_layer=times.medians() if profile and times is not None else None,
        host_p99_milliseconds_by_layer=times.percentiles(99) if profile and times is not None else None,
        trace=None if trace is None else os.fspath(trace),
        quantized_operators=operator_rules(engine.plan.network),
        plugins=registry.active_plugins(),
        overlays=list(engine.plan.settings.get("overlays", ())),
        top_classes=top,
        assumed=assumed,
        notes=notes,
    )


def _run_all(
    context: ExecutionContext,
    feeds: Iterable[Mapping[str, Array]],
    length: int,
    latencies: list[float],
    progress: ProgressMonitor | None,
    recorded: RunTrace | None = None,
) -> dict[str, Array]:
    """Return the outputs of the last `length` runs, joined along the first axis if there are several.

    The seconds of each run are appended to `latencies`.
    """
    kept: list[dict[str, Array]] = []
    begin = 0.0

    def begun() -> Iterator[Mapping[str, Array]]:
        nonlocal begin
        for one in feeds if recorded is None else recorded.begin_each(feeds):
            begin = time.perf_counter()
            yield one

    for outputs in run_many(context, begun(), progress):
        latencies.append(time.perf_counter() - begin)
        if recorded is not None:
            recorded.end_run()
        kept = [*kept[-(length - 1) :], outputs] if length > 1 else [outputs]
    if length == 1:
        return kept[0]
    return {name: np.concatenate([outputs[name] for outputs in kept]) for name in kept[0]}


def _percentiles(latencies: Sequence[float]) -> dict[str, float] | None:
    """Return the median and the 99th percentile in milliseconds; None without latencies."""
    return {f"p{one}": 1e3 * percentile(latencies, one) for one in (50, 99)} if latencies else None


def _write(outputs: Mapping[str, Array], folder: Path) -> dict[str, str]:
    """Write each output to its own file, and return path by name."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, str] = {}
    for number, (name, array) in enumerate(outputs.items()):
        path = str(folder / f"{''.join(c if c.isalnum() or c in '-_.' else '_' for c in name)}.npy")
        if path in files.values():
            path = str(folder / f"output_{number}.npy")
        contents = io.BytesIO()
        np.save(contents, array, allow_pickle=False)
        write_atomically(path, [contents.getbuffer()])
        files[name] = path
    return files


# What runs ------------------------------------------------------------------------------------------------------------


def _engine_of(model: Model, options: Mapping[str, Any]) -> tuple[Engine, Sequence[str], Sequence[str]]:
    """Return (engine, defaults of its build, notes); the latter are empty for an existing engine."""
    if not isinstance(model, str | os.PathLike) or is_model_file(model):
        subject = asked(model, None, options)
        return Builder().build_engine(subject.network, subject.config), subject.assumed, subject.notes
    said = NetworkOptions.said(options)
    if said.quantize_method:
        raise ExecutionError(
            "The quantize methods of a built engine cannot be changed",
            where=f"{METHOD_OPTION}, {model}",
            remedy=f"Build it again: `dryfit build MODEL.onnx {METHOD_OPTION} NAME`",
        )
    if said != NetworkOptions():
        raise ConfigError(
            "Build options cannot be changed for a built engine", where=str(model), remedy="Pass the model instead"
        )
    return load_engine(Path(model)), (), ()


def load_engine(path: Path) -> Engine:
    """Load the engine of an engine file, or of a file written by a target's exporter.

    Raises:
        EngineFileError: The file is corrupt, or belongs to another version.
    """
    form = _format_of(path)
    for target in registry.targets_in_turn():
        if form and form == target.exported_format and target.import_segment is not None:
            engine: Engine = target.import_segment(path)
            return engine
    return Engine.load(path)


def _format_of(path: Path) -> str:
    """Return the format in the header of a dryfit file; "" without such a header."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = file.read(length) if 2 <= length <= _LARGEST_HEADER else b""
    try:
        return str(json.loads(header)["__metadata__"]["format"])
    except (ValueError, TypeError, LookupError, RecursionError):
        return ""  # the reader of engines says what is wrong with it
