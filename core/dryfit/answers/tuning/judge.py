"""A quantized network while it is tuned, and how it is judged: in the device's arithmetic, on held-back samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from onnx import ModelProto

from dryfit.answers.asked import quiet_log
from dryfit.answers.builder_config import config_of
from dryfit.answers.options import NetworkOptions
from dryfit.answers.sensitivity.measurement import LayerProbe
from dryfit.answers.tuning.verdicts import Verdict, by_sample_db
from dryfit.answers.tuning.weights import sums_of
from dryfit.builder.build import build_plan
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.building import Builder
from dryfit.calibration.executor import EngineExecutor, tapped_network, whole_network_config
from dryfit.engine.engine import Engine
from dryfit.network.copying import copy_network
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.tensor import Array
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.importer import network_from_onnx
from dryfit.plugins.calibrators import calibrator as calibrator_of
from dryfit.quantization.calibration import collect
from dryfit.quantization.collector import Collector
from dryfit.quantization.metric import Metric, worst_sqnr_db
from dryfit.quantization.network_ranges import solve_network
from dryfit.quantization.sample_arrays import Feeds

CALIBRATORS = ("entropy2", "percentile", "mean-squared-error", "minmax")
"""Calibrators that a new set of ranges is chosen from, where ranges are found anew."""


@attrs.frozen(eq=False)
class Candidate:
    """A quantized network.

    Attributes:
        model: ONNX model.
        ranges: end of the range by tensor name.
        half: names of the layers that are kept in FP16.
        fixed: ranges that the model was made for, and that other calibrators do not replace.
    """

    model: ModelProto
    ranges: Mapping[str, float]
    half: frozenset[str] = frozenset()
    fixed: Mapping[str, float] = attrs.field(factory=dict)


@attrs.frozen(eq=False)
class Judge:
    """Samples, the exact answers, and the device.

    Attributes:
        external: location of the models' external data.
        folder: the folder of these data; None for none.
        options: device and all that engines are built with.
        collected: samples to find ranges, factors and corrections from.
        held: samples to judge by; none of `collected` is among them.
        metric: what the user wants to keep.
        labels: labels of the held-back samples for the metric; None for nothing.
        threads: number of host threads; None for one per CPU.
        exact: FP32 outputs of the original model for the samples held back.
        probabilities: names of the outputs that a softmax gives.
    """

    external: ExternalData
    folder: Path | None
    options: NetworkOptions
    collected: Sequence[Feeds]
    held: Sequence[Feeds]
    metric: Metric
    labels: Any
    threads: int | None
    exact: Sequence[Mapping[str, Array]]
    probabilities: frozenset[str] = frozenset()

    @classmethod
    def of_model(cls, model: ModelProto, **fields: Any) -> Judge:
        """Return the judge of a model, which computes the exact outputs."""
        judge = cls(exact=(), **fields)
        found = {name for node in model.graph.node if node.op_type == "Softmax" for name in node.output}
        return attrs.evolve(judge, exact=judge.real_outputs(model), probabilities=frozenset(found))

    def over(self, model: ModelProto, samples: Sequence[Feeds], labels: Any = None) -> Judge:
        """Return a judge by other samples, against the FP32 outputs of the original model."""
        other = attrs.evolve(self, held=samples, labels=labels)
        return attrs.evolve(other, exact=other.real_outputs(model))

    @property
    def device(self) -> str:
        """The default device."""
        return str(self.options.device)

    def network(self, model: ModelProto) -> Network:
        """Return the network of a model with the shapes of the samples."""
        network = network_from_onnx(model, folder=self.folder)
        for tensor in network.inputs:
            tensor.shape = self.held[0][tensor.name].shape
        return network

    def engine(self, candidate: Candidate) -> Engine:
        """Return the device's engine of a quantized network."""
        network = self.network(candidate.model)
        for tensor in network.tensors:
            if tensor.name in candidate.ranges:
                end = candidate.ranges[tensor.name]
                tensor.dynamic_range = -end, end
        for layer in network.layers:
            if layer.name in candidate.half:
                layer.precision = DataType.HALF
        with quiet_log():
            config, _ = config_of(network, attrs.evolve(self.options, shape={}))
            config.set_flag(BuilderFlag.PREFER_PRECISION_CONSTRAINTS)
            config.builder_optimization_level = 0
            return Builder().build_engine(network, config)

    def outputs(self, candidate: Candidate) -> list[dict[str, Array]]:
        """Return the outputs of a quantized network for the samples held back."""
        context = self.engine(candidate).create_execution_context(self.threads)
        return [context.run(feeds) for feeds in self.held]

    def real_outputs(self, model: ModelProto) -> list[dict[str, Array]]:
        """Return the outputs of a model in FP32 for the samples held back."""
        network = self.network(model)
        config = whole_network_config(network, self.held[0])
        context = Builder().build_engine(network, config).create_execution_context(self.threads)
        return [context.run(feeds) for feeds in self.held]

    def verdict(self, candidate: Candidate) -> Verdict:
        """Return what a quantized network is worth on the samples held back."""
        found = self.outputs(candidate)
        by_sample = by_sample_db(self.exact, found, self.probabilities)
        return Verdict(worst_sqnr_db(self.exact, found), self.measured(found), by_sample)

    def measured(self, outputs: Sequence[Mapping[str, Array]]) -> float:
        """Return the metric of outputs for the samples held back."""
        whole = {name: np.concatenate([one[name] for one in outputs]) for name in outputs[0]}
        exact = {name: np.concatenate([one[name] for one in self.exact]) for name in self.exact[0]}
        return self.metric.value(whole, exact, self.labels)

    # Learning from the other samples --------------------------------------------------------------------------------

    def collectors(self, model: ModelProto) -> tuple[Network, dict[str, Collector]]:
        """Return histograms of a model's tensors."""
        network = self.network(model)
        executor = EngineExecutor(self.threads)
        return network, collect(network, calibrator_of(CALIBRATORS[0]), self.collected, executor=executor)

    def range_sets(self, model: ModelProto) -> Iterator[tuple[str, dict[str, float]]]:
        """Yield the ranges of each calibrator, from one run, by its name."""
        network, collectors = self.collectors(model)
        for name in CALIBRATORS:
            solved = solve_network(network, collectors, calibrator_of(name))
            yield name, {tensor: one.threshold for tensor, each in solved.items() if (one := each.dynamic_range)}

    def ends_per_channel(self, model: ModelProto, names: Sequence[str]) -> tuple[dict[str, Array], dict[str, Array]]:
        """Return the smallest and the largest value of each channel of tensors, float64[C], by name."""
        network = copy_network(self.network(model))
        inputs = {tensor.name for tensor in network.inputs}
        taps = [name for name in names if name not in inputs]
        tapped = tapped_network(network, [], taps)
        plan = build_plan(tapped, whole_network_config(tapped, self.collected[0]))
        context = Engine(plan).create_execution_context(self.threads)
        lowest: dict[str, Array] = {}
        highest: dict[str, Array] = {}
        for feeds in self.collected:
            arrays = {**feeds, **context.run(feeds)}
            for name in names:
                axes = tuple(axis for axis in range(arrays[name].ndim) if axis != 1)
                least, most = (end(arrays[name], axis=axes).astype(np.float64) for end in (np.min, np.max))
                lowest[name] = np.minimum(lowest.get(name, np.inf), least)
                highest[name] = np.maximum(highest.get(name, -np.inf), most)
        return lowest, highest

    def input_ends(self) -> dict[str, float]:
        """Return the largest magnitude of each input: INT8's range cuts off what is beyond, but for the code -128."""
        names = self.collected[0]
        return {name: max(float(np.abs(one[name]).max()) for one in self.collected) * 128 / 127 for name in names}

    def probe(self, candidate: Candidate) -> LayerProbe:
        """Return the engines that judge single layers of a quantized network."""
        network = self.network(candidate.model)
        plan = self.engine(candidate).plan
        return LayerProbe(network, plan, self.collected[0], taps=sums_of(network), num_threads=self.threads)
