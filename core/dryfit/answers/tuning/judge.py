"""A quantized network while it is tuned, and how it is judged: in the device's arithmetic, on held-back samples."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from onnx import ModelProto

from dryfit.answers.asked import quiet_log
from dryfit.answers.builder_config import config_of
from dryfit.answers.method_networks import network_for_methods
from dryfit.answers.network_cost import network_cost
from dryfit.answers.options import NetworkOptions
from dryfit.answers.sample_gains import (
    Probability,
    Verdict,
    by_sample_db,
    jackknife_error,
    probability_outputs,
    whole_db,
)
from dryfit.answers.sensitivity.measurement import LayerProbe
from dryfit.answers.tuning.trials import Arrays, Trials, digest
from dryfit.answers.tuning.weights import parameters_of, sums_of, with_corrections
from dryfit.attrs_classes import frozen
from dryfit.builder.build import build_plan
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.builder.decisions import segment_estimate
from dryfit.builder.design import Design
from dryfit.building import Builder, design_for_assessment
from dryfit.calibration.executor import EngineExecutor, tapped_network, whole_network_config
from dryfit.calibration.output_noise import NoiseProbe, OutputNoise, Rounding
from dryfit.engine.engine import Engine
from dryfit.network.copying import copy_network
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Array
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.translation.implicit_precisions import prepared_model
from dryfit.passes.simplify import fold_constants
from dryfit.plugins.calibrators import calibrator as calibrator_of
from dryfit.quantization.calibration import collect
from dryfit.quantization.collector import Collector
from dryfit.quantization.metric import Metric, worst_sqnr_db
from dryfit.quantization.network_ranges import solve_network
from dryfit.quantization.sample_arrays import Feeds
from dryfit.reference.inference import infer_specs

SAMPLES_PER_TRIAL = 2
"""Samples that single roundings are tried on in one trial: a part that is lost with a worker, or done twice."""

MOVES = ((1, 2), (-2, 1), (2, -3))
"""Pixels that copies of a sample's pictures are moved by, down and to the right: each rounds other values."""
SMALLEST_MOVED = 32
"""Height and width of the smallest pictures that are moved. Our choice: a digit may not be one any more."""
MOST_MOVED_WORK = 5e10
"""Multiply-accumulates of a verdict up to which it has copies. Our choice: some seconds of a processor."""

MOST_GRID_CODE, OFF_GRID = 128, 0.01
"""The largest multiple of a grid's step, which code 127 then stands for too, and how far values may be from one, in
steps."""

CALIBRATORS = ("entropy2", "percentile", "mean-squared-error", "minmax")
"""Calibrators that a new set of ranges is chosen from, where ranges are found anew."""


@frozen(eq=False)
class Candidate:
    """A quantized network.

    Attributes:
        model: ONNX model.
        ranges: end of the range by tensor name.
        half: names of the layers that are kept in FP16.
        statistics: mean and standard deviation of channels that batch normalizations told, by tensor name.
        fixed: ranges that the model was made for, and that other calibrators do not replace.
        said: precisions that the user set, by layer name; layers of FP16 are in `half` too.
        real: the model before weights were rounded and biases corrected; None where none were.
        whole: names of tensors whose remainders are stored, so that rounding them changes nothing.
    """

    model: ModelProto
    ranges: Mapping[str, float]
    half: frozenset[str] = frozenset()
    statistics: Mapping[str, tuple[Array, Array]] = attrs.field(factory=dict)
    fixed: Mapping[str, float] = attrs.field(factory=dict)
    said: Mapping[str, DataType] = attrs.field(factory=dict)
    real: ModelProto | None = None
    whole: frozenset[str] = frozenset()

    @property
    def uncorrected(self) -> Candidate:
        """The same with weights and biases as they were before any were rounded or corrected."""
        return self if self.real is None else attrs.evolve(self, model=self.real, real=None)

    def with_corrected(self, model: ModelProto) -> Candidate:
        """Return the same with a model that has other weights or biases."""
        return attrs.evolve(self, model=model, real=self.uncorrected.model)

    @property
    def digest(self) -> str:
        """Digest of the network, which is what it was chosen to be."""
        ends = json.dumps(sorted(self.ranges.items()))
        return digest(self.model.SerializeToString(deterministic=True), ends, json.dumps(sorted(self.half)))


@frozen(eq=False)
class DeviceRuns:
    """Runs of networks in FP32 and in the device's arithmetic. It can be pickled, for worker processes.

    Attributes:
        folder: the folder of the models' external data; None for none.
        options: device and all that engines are built with.
        shapes: shapes of the inputs.
        threads: number of host threads; None for one per CPU.
    """

    folder: Path | None
    options: NetworkOptions
    shapes: Mapping[str, Sequence[int]]
    threads: int | None

    @property
    def without_methods(self) -> DeviceRuns:
        """The same with the device's own arithmetic, in which single layers are judged."""
        options = self.options
        return attrs.evolve(self, options=attrs.evolve(options, device=options.default_device, quantize_method=()))

    def network(self, model: ModelProto) -> Network:
        """Return the network of a model with the shapes of the samples, and what follows from these as constants."""
        network = network_from_onnx(model, folder=self.folder)
        for tensor in network.inputs:
            tensor.shape = tuple(self.shapes[tensor.name])
        fold_constants(network)
        return network

    def engine(self, candidate: Candidate) -> Engine:
        """Return the device's engine of a quantized network."""
        asked = self._asked(candidate) if not self.options.quantize_method else self._asked_of_methods(candidate)
        with quiet_log():
            return Builder().build_engine(*asked)

    def design(self, candidate: Candidate) -> Design:
        """Return the decisions about a quantized network, on the board whose cost is estimated."""
        network, config = self._asked(candidate)
        device = config.default_device_type
        with quiet_log():
            config.set_platform(device, config.platform(device).name)
            return design_for_assessment(network, config)

    def _asked(self, candidate: Candidate) -> tuple[Network, BuilderConfig]:
        network = self.network(candidate.model)
        for tensor in network.tensors:
            if tensor.name in candidate.ranges:
                end = candidate.ranges[tensor.name]
                tensor.dynamic_range = -end, end
        for layer in network.layers:
            half = DataType.HALF if layer.name in candidate.half else None
            layer.precision = candidate.said.get(layer.name, half)
        with quiet_log():
            config, _ = config_of(network, attrs.evolve(self.options, shape={}))
        config.set_flag(BuilderFlag.PREFER_PRECISION_CONSTRAINTS)
        config.builder_optimization_level = 0
        return network, config

    def _asked_of_methods(self, candidate: Candidate) -> tuple[Network, BuilderConfig]:
        prepared = attrs.evolve(candidate, model=prepared_model(candidate.model))
        asked = self.without_methods._asked(prepared)  # noqa: SLF001  of this class
        return network_for_methods(prepared.model, self.folder, self.options, self.shapes, asked)

    def outputs(self, candidate: Candidate, samples: Sequence[Feeds]) -> list[dict[str, Array]]:
        """Return the outputs of a quantized network."""
        context = self.engine(candidate).create_execution_context(self.threads)
        return [context.run(feeds) for feeds in samples]

    def real_outputs(self, model: ModelProto, samples: Sequence[Feeds]) -> list[dict[str, Array]]:
        """Return the outputs of a model in FP32."""
        network = self.network(model)
        config = whole_network_config(network, samples[0])
        context = Builder().build_engine(network, config).create_execution_context(self.threads)
        return [context.run(feeds) for feeds in samples]

    def collectors(self, model: ModelProto, samples: Sequence[Feeds]) -> tuple[Network, dict[str, Collector]]:
        """Return histograms of a model's tensors."""
        network = self.network(model)
        executor = EngineExecutor(self.threads)
        return network, collect(network, calibrator_of(CALIBRATORS[0]), samples, executor=executor)

    def range_sets(self, model: ModelProto, samples: Sequence[Feeds]) -> dict[str, dict[str, float]]:
        """Return the ranges of each calibrator, from one run, by its name."""
        network, collectors = self.collectors(model, samples)
        found = {}
        for name in CALIBRATORS:
            solved = solve_network(network, collectors, calibrator_of(name))
            found[name] = {tensor: one.threshold for tensor, each in solved.items() if (one := each.dynamic_range)}
        return found

    def noise(self, model: ModelProto, samples: Sequence[Feeds], roundings: Sequence[Rounding]) -> list[OutputNoise]:
        """Return what each rounding does to the outputs in FP32, sample by sample."""
        tensors = list(dict.fromkeys(name for one in roundings for name in one.tensors))
        probe = NoiseProbe(self.network(model), tensors, samples[0], self.threads)
        return [probe.noise(str(index), feeds, roundings) for index, feeds in enumerate(samples)]


@frozen(eq=False)
class Judge:
    """Samples, the exact answers, and the device.

    Attributes:
        external: location of the models' external data.
        runs: runs networks in this process.
        away: runs them in trials, which may be in other processes, with less threads.
        trials: keeps results, and has the processes.
        collected: samples to find ranges, factors and corrections from.
        held: samples to judge by; none of `collected` is among them.
        metric: what the user wants to keep.
        labels: labels of the held-back samples for the metric; None for nothing.
        exact: FP32 outputs of the original model for the samples held back.
        probabilities: what gives the outputs that count by their logits, by name.
        moved: copies of the samples held back with moved pictures, all samples for one move after those for another.
            The noise of a sample's rounding is a draw, and copies are further draws.
        moved_exact: FP32 outputs of the original model for the copies.
    """

    external: ExternalData
    runs: DeviceRuns
    away: DeviceRuns
    trials: Trials
    collected: Sequence[Feeds]
    held: Sequence[Feeds]
    metric: Metric
    labels: Any
    exact: Sequence[Mapping[str, Array]]
    probabilities: Mapping[str, Probability] = attrs.field(factory=dict)
    moved: Sequence[Feeds] = ()
    moved_exact: Sequence[Mapping[str, Array]] = ()

    @classmethod
    def of_model(cls, model: ModelProto, **fields: Any) -> Judge:
        """Return the judge of a model, which computes the exact outputs."""
        judge = cls(exact=(), **fields)
        found = probability_outputs(judge.network(model))
        return attrs.evolve(judge, probabilities=found).over(model, judge.held, judge.labels)

    def over(self, model: ModelProto, samples: Sequence[Feeds], labels: Any = None) -> Judge:
        """Return a judge by other samples, against the FP32 outputs of the original model."""
        macs = sum(multiply_accumulates(self.network(model)).values())
        moves = MOVES[: max(0, int(MOST_MOVED_WORK / max(1, macs * len(samples))) - 1)]
        moved = [one for move in moves for one in moved_samples(samples, *move)]
        exact = self.runs.real_outputs(model, [*samples, *moved])
        own, others = exact[: len(samples)], exact[len(samples) :]
        return attrs.evolve(self, held=samples, moved=moved, labels=labels, exact=own, moved_exact=others)

    @property
    def device(self) -> str:
        """The default device."""
        return str(self.runs.options.device)

    def network(self, model: ModelProto) -> Network:
        """Return the network of a model with the shapes of the samples."""
        return self.runs.network(model)

    def engine(self, candidate: Candidate) -> Engine:
        """Return the device's engine of a quantized network."""
        return self.runs.engine(candidate)

    def with_half(self, candidate: Candidate, layers: frozenset[str]) -> Candidate:
        """Return the same with just these layers in FP16, whose weights and biases are then as they were."""
        model = candidate.model
        if candidate.real is not None:
            model = with_corrections(model, self.external, parameters_of(candidate.real, self.external, layers))
        return attrs.evolve(candidate, model=model, half=layers)

    def added_microseconds(
        self, candidate: Candidate, groups: Mapping[str, Collection[str]]
    ) -> dict[str, float] | None:
        """Return the estimated time that layers take longer in FP16 than in INT8, in us, for each group of layers.

        None: a target does not estimate time.

        Args:
            candidate: the quantized network.
            groups: names of layers, by any name of the group.
        """
        every = candidate.half.union(*groups.values())
        designs = [self.runs.without_methods.design(one) for one in (candidate, attrs.evolve(candidate, half=every))]
        found = {}
        for name, layers in groups.items():
            before, after = (_microseconds(design, layers) for design in designs)
            if before is None or after is None:
                return None
            found[name] = after - before
        return found

    def has_int8(self, candidate: Candidate) -> bool:
        """Return whether the device computes any layer of a quantized network in INT8."""
        plan = self.runs.without_methods.engine(candidate).plan
        return any(layer.precision is DataType.INT8 for layer in plan.layers)

    def latency_microseconds(self, candidate: Candidate) -> float | None:
        """Return the estimated latency of a quantized network in us; None if a target does not estimate time."""
        return network_cost(self.runs.without_methods.design(candidate)).latency_microseconds

    def real_outputs(self, model: ModelProto) -> list[dict[str, Array]]:
        """Return the outputs of a model in FP32 for the samples held back."""
        return self.runs.real_outputs(model, self.held)

    def verdict(self, candidate: Candidate) -> Verdict:
        """Return what a quantized network is worth on the samples held back."""
        return self.verdicts([candidate])[0]

    def verdicts(self, candidates: Sequence[Candidate]) -> list[Verdict]:
        """Return what quantized networks are worth on the samples held back."""
        every = [*self.held, *self.moved]
        samples = samples_digest(every)
        trials = [
            (
                digest("verdict, metric with copies", one.digest, samples),
                partial(self.away.outputs, attrs.evolve(one, real=None), every),
            )
            for one in candidates
        ]

        def kept(found: list[dict[str, Array]]) -> Arrays:
            # Copies are no samples: they make what a sample gains more certain, and not the gain of samples.
            exact = [*self.exact, *self.moved_exact]
            by_sample = by_sample_db(exact, found, self.probabilities).reshape(-1, len(self.held)).mean(axis=0)
            logit_db = whole_db(exact, found, self.probabilities)
            own = found[: len(self.held)]
            metrics = [self.measured(own), self._error(own), self.measured(found), self._error(found)]
            whole = np.array([worst_sqnr_db(self.exact, own), logit_db, *metrics])
            return {"whole": whole, "by sample": by_sample}

        verdicts = []
        for one in self.trials.found(trials, kept):
            sqnr_db, logit_db, metric, error, copies_metric, copies_error = one["whole"].tolist()
            verdicts.append(Verdict(sqnr_db, metric, one["by sample"], error, logit_db, copies_metric, copies_error))
        return verdicts

    def measured(self, outputs: Sequence[Mapping[str, Array]]) -> float:
        """Return the metric of outputs for the samples held back, and for the copies of these if there are more."""
        return self._measured(outputs, range(len(outputs)))

    def _error(self, outputs: Sequence[Mapping[str, Array]]) -> float:
        """Return the standard error of `measured`, from leaving out one sample with its copies after the other."""
        count = len(self.held)
        every = range(len(outputs))
        if count < 2:
            return 0.0
        return jackknife_error(
            [self._measured(outputs, [index for index in every if index % count != one]) for one in range(count)]
        )

    def _measured(self, outputs: Sequence[Mapping[str, Array]], chosen: Sequence[int]) -> float:
        """Return the metric of the chosen ones of the samples held back and their copies."""
        exact = [*self.exact, *self.moved_exact]
        found, real = (
            {name: np.concatenate([np.atleast_1d(each[index][name]) for index in chosen]) for name in each[0]}
            for each in (outputs, exact)
        )
        labels = None if self.labels is None else [self.labels[index % len(self.held)] for index in chosen]
        return self.metric.value(found, real, labels)

    # Learning from the other samples --------------------------------------------------------------------------------

    def collectors(self, model: ModelProto) -> tuple[Network, dict[str, Collector]]:
        """Return histograms of a model's tensors."""
        return self.runs.collectors(model, self.collected)

    def range_sets(self, models: Sequence[ModelProto]) -> list[dict[str, dict[str, float]]]:
        """Return the ranges of each calibrator by its name, for each model."""
        samples = samples_digest(self.collected)
        trials = [
            (
                digest("ranges", model.SerializeToString(deterministic=True), samples),
                partial(self.away.range_sets, model, self.collected),
            )
            for model in models
        ]

        def kept(sets: dict[str, dict[str, float]]) -> Arrays:
            tensors = {f"{name} tensors": np.array(list(ends), np.str_) for name, ends in sets.items()}
            return {**tensors, **{f"{name} ends": np.array(list(ends.values())) for name, ends in sets.items()}}

        return [
            {
                name: dict(zip(one[f"{name} tensors"].tolist(), one[f"{name} ends"].tolist(), strict=True))
                for name in CALIBRATORS
            }
            for one in self.trials.found(trials, kept)
        ]

    def noise(self, model: ModelProto, samples: Sequence[Feeds], roundings: Sequence[Rounding]) -> OutputNoise | None:
        """Return what each rounding does to the outputs in FP32; None for no rounding."""
        if not roundings:
            return None
        proto = model.SerializeToString(deterministic=True)
        said = json.dumps([(one.tensors, one.scale) for one in roundings])
        parts = [samples[first : first + SAMPLES_PER_TRIAL] for first in range(0, len(samples), SAMPLES_PER_TRIAL)]
        trials = [
            (digest("noise", proto, said, samples_digest(part)), partial(self.away.noise, model, part, roundings))
            for part in parts
        ]

        def kept(found: list[OutputNoise]) -> Arrays:
            one = reduce(OutputNoise.joined, found)
            return {"outputs": np.array(one.outputs, np.str_), "signal": one.signal, "noise": one.noise}

        found = [
            OutputNoise(
                tuple(one["outputs"].tolist()), tuple(map(str, range(len(one["signal"])))), one["signal"], one["noise"]
            )
            for one in self.trials.found(trials, kept)
        ]
        return reduce(OutputNoise.joined, found)

    def ends_per_channel(self, model: ModelProto, names: Sequence[str]) -> tuple[dict[str, Array], dict[str, Array]]:
        """Return the smallest and the largest value of each channel of tensors, float64[C], by name."""
        network = copy_network(self.network(model))
        inputs = {tensor.name for tensor in network.inputs}
        taps = [name for name in names if name not in inputs]
        context = None
        if taps:
            tapped = tapped_network(network, [], taps)
            plan = build_plan(tapped, whole_network_config(tapped, self.collected[0]))
            context = Engine(plan).create_execution_context(self.runs.threads)
        lowest: dict[str, Array] = {}
        highest: dict[str, Array] = {}
        for feeds in self.collected:
            arrays = {**feeds, **(context.run(feeds) if context else {})}
            for name in names:
                axes = tuple(axis for axis in range(arrays[name].ndim) if axis != 1)
                least, most = (end(arrays[name], axis=axes).astype(np.float64) for end in (np.min, np.max))
                lowest[name] = np.minimum(lowest.get(name, np.inf), least)
                highest[name] = np.maximum(highest.get(name, -np.inf), most)
        return lowest, highest

    def input_extents(self) -> dict[str, tuple[Array, Array]]:
        """Return the smallest and the largest value of each channel of each input: float64[C]."""
        found = {}
        for name in self.collected[0]:
            every = [one[name].astype(np.float64) for one in self.collected]
            axes = tuple(axis for axis in range(every[0].ndim) if axis != 1)
            found[name] = (
                np.min([one.min(axis=axes) for one in every], axis=0),
                np.max([one.max(axis=axes) for one in every], axis=0),
            )
        return found

    def input_grids(self) -> dict[str, float]:
        """Return the range of each input whose values are multiples of one step, as 8-bit pixels may be: 127 steps."""
        found = {}
        for name in self.collected[0]:
            values = np.unique(np.concatenate([np.unique(one[name]) for one in self.collected])).astype(np.float64)
            step = np.diff(values).min(initial=np.inf)
            codes = values / step
            is_grid = MOST_GRID_CODE / 2 < np.abs(codes).max() < MOST_GRID_CODE + OFF_GRID
            if is_grid and np.abs(codes - np.rint(codes)).max() < OFF_GRID:
                found[name] = 127 * step
        return found

    def input_ends(self) -> dict[str, float]:
        """Return the largest magnitude of each input: INT8's range cuts off what is beyond, but for the code -128."""
        names = self.collected[0]
        return {name: max(float(np.abs(one[name]).max()) for one in self.collected) * 128 / 127 for name in names}

    def probe(self, candidate: Candidate) -> LayerProbe:
        """Return the engines that judge single layers of a quantized network."""
        network = self.network(candidate.model)
        plan = self.runs.without_methods.engine(candidate).plan
        return LayerProbe(
            network,
            plan,
            self.collected[0],
            taps=sums_of(network),
            whole=candidate.whole,
            num_threads=self.runs.threads,
        )


def _microseconds(design: Design, names: Collection[str]) -> float | None:
    """Return the estimated time of layers, in us; None if a target does not estimate it."""
    by_device: dict[str, list[Layer]] = {}
    for layer in design.network.layers:
        if layer.name in names:
            by_device.setdefault(design.assignment.devices[layer.name], []).append(layer)
    total = 0.0
    for device, layers in by_device.items():
        variant = design.variants[device]
        found = segment_estimate(variant, layers, design.specs, design.precisions, design.sparse_layers)
        if found is None or found.microseconds is None:
            return None
        total += found.microseconds
    return total


def moved_samples(samples: Sequence[Feeds], down: int, right: int) -> list[Feeds]:
    """Return copies of samples with moved pictures, whose border fills what is left; none if a sample has no picture.

    Pictures are what has four axes, the last two of which are not small. Each sample has as many copies as the others,
    or its mean over them would not be comparable.

    Args:
        samples: the samples.
        down: number of rows.
        right: number of columns.
    """

    def moved(array: Array) -> Array:
        if not is_picture(array):
            return array
        rows, columns = (
            np.clip(np.arange(extent) - move, 0, extent - 1)
            for extent, move in zip(array.shape[2:], (down, right), strict=True)
        )
        return np.ascontiguousarray(array[:, :, rows][..., columns])

    def is_picture(array: Array) -> bool:
        return array.ndim == 4 and min(array.shape[2:]) >= SMALLEST_MOVED and array.dtype.kind == "f"

    if not all(any(map(is_picture, feeds.values())) for feeds in samples):
        return []
    return [{name: moved(array) for name, array in feeds.items()} for feeds in samples]


def multiply_accumulates(network: Network) -> dict[str, int]:
    """Return the multiply-accumulates of each layer."""
    specs = infer_specs(network)
    return {layer.name: layer.multiply_accumulates(specs) for layer in network.layers}


def samples_digest(samples: Sequence[Feeds]) -> str:
    """Return a digest of the contents of samples."""
    parts = [part for feeds in samples for name, array in feeds.items() for part in (name, array.tobytes())]
    return digest(*parts)
