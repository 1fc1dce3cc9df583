"""Engines of one network in several precisions, and how far their answers lie apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import dryfit
from dryfit.calibration.executor import EngineExecutor
from dryfit.cli.log import log_to_stderr
from dryfit.plugins.calibrators import calibrator
from dryfit.quantization.calibration import collect
from dryfit.quantization.calibration_cache import CalibrationCache
from dryfit.quantization.calibration_stream import CalibrationAlgoType
from dryfit.quantization.metric import worst_sqnr_db
from dryfit.quantization.network_ranges import solve_network
from measuring.accuracy_cases import AccuracyCase, Pictures
from measuring.runtimes import PRECISE, onnxruntime_session

Array = np.ndarray[Any, Any]
Answers = Mapping[str, Array]

FLAGS = dryfit.BuilderFlag


@attrs.frozen
class Build:
    """A device and the precisions that it may use.

    Attributes:
        device: the default device; what it refuses runs on the GPU.
        flags: the precisions besides FP32.
    """

    device: str
    flags: tuple[dryfit.BuilderFlag, ...] = ()

    @property
    def is_int8(self) -> bool:
        """Whether it needs scales."""
        return FLAGS.INT8 in self.flags


BUILDS = {
    "FP32": Build("GPU"),
    "FP16": Build("GPU", (FLAGS.FP16,)),
    "INT8 GPU": Build("GPU", (FLAGS.INT8,)),
    "INT8 DLA": Build("DLA", (FLAGS.INT8, FLAGS.FP16)),
}
"""What is compared. A DLA computes in FP16 what it does not compute in INT8."""


@attrs.frozen
class Measured:
    """What an engine answered.

    Attributes:
        answers: output name to values, one after another along the first axis.
        int8_layers: how many layers of each device are computed in INT8.
        layers: how many layers there are.
        int8_tensors: names of the network's tensors that are stored in INT8, its input included.
    """

    answers: Answers
    int8_layers: Mapping[str, int]
    layers: int
    int8_tensors: Sequence[str]


def network_of(case: AccuracyCase, models: Path) -> dryfit.Network:
    """The network with a fixed batch."""
    network = dryfit.network_from_onnx(models / case.file)
    (image,) = network.inputs
    if image.shape[0] < 0:
        image.shape = (case.batch, *image.shape[1:])
    return network


def calibrated(network: dryfit.Network, pictures: Pictures, calibrators: Sequence[str]) -> dict[str, CalibrationCache]:
    """The scales that calibrators find, by their names. The network runs once for all of them."""
    name = network.inputs[0].name
    chosen = {one: calibrator(one) for one in calibrators}
    first = next(iter(chosen.values()))
    seen = collect(network, first, ({name: one} for one in pictures.calibration), executor=EngineExecutor())
    return {
        one: CalibrationCache.of_solutions(
            solve_network(network, seen, found), CalibrationAlgoType.ENTROPY_CALIBRATION_2
        )
        for one, found in chosen.items()
    }


def measured(
    network: dryfit.Network, build: Build, pictures: Pictures, cache: CalibrationCache | None = None
) -> Measured:
    """Build, run, and keep the answers to the pictures that are judged."""
    config = dryfit.BuilderConfig()
    config.default_device_type = build.device
    for flag in (*build.flags, FLAGS.GPU_FALLBACK):
        config.set_flag(flag)
    config.calibration_cache = cache
    # Kernels that are chosen by their times may round otherwise the next time.
    config.builder_optimization_level = 0
    with log_to_stderr(None):
        engine = dryfit.Builder().build_engine(network, config)
    context, name = engine.create_execution_context(), network.inputs[0].name
    runs = [context.run({name: one}) for one in pictures.judged]
    answers = {output: np.concatenate([run[output] for run in runs]) for output in runs[0]}
    plan, int8 = engine.plan, dryfit.DataType.INT8
    narrow = [layer.device for layer in plan.layers if layer.precision is int8]
    stored = [one for one in plan.placements if plan.network.tensor(one).dtype is int8 and network.find_tensor(one)]
    return Measured(
        answers=answers,
        int8_layers={device: narrow.count(device) for device in sorted(set(narrow))},
        layers=len(plan.layers),
        int8_tensors=[name, *stored] if narrow else [],
    )


def onnxruntime_answers(model: Path, pictures: Pictures) -> Answers:
    """What ONNX Runtime answers to the pictures that are judged, by its kernels that do not saturate."""
    session = onnxruntime_session(model, entries=PRECISE)
    name, outputs = session.get_inputs()[0].name, [one.name for one in session.get_outputs()]
    runs = [session.run(None, {name: one}) for one in pictures.judged]
    return {output: np.concatenate(values) for output, values in zip(outputs, zip(*runs, strict=True), strict=True)}


# How far apart --------------------------------------------------------------------------------------------------------


def sqnr(reference: Array, found: Array) -> float:
    """Signal to quantization noise in dB: the energy of the reference over that of the difference."""
    wide = reference.astype(np.float64)
    signal, noise = (wide**2).sum(), ((found.astype(np.float64) - wide) ** 2).sum()
    return float(10 * np.log10(signal / noise)) if noise else float("inf")


def worst_sqnr(reference: Answers, found: Answers) -> float:
    """The SQNR in dB of the output that has the least."""
    return worst_sqnr_db([reference], [found])


def classes(answers: Answers) -> Array:
    """The class that a network tells of each picture: where its only output is largest."""
    (values,) = answers.values()
    return values.reshape(len(values), -1).argmax(axis=1)
