"""What the quantization of each layer and tensor alone does to the outputs, measured sample by sample.

Two engines are built once: the network in FP32, whose tensors stay accessible, and the device's INT8 engine. A layer is
judged by running its INT8 kernel, with the device's integer arithmetic and its quantized weights, on the codes of its
FP32 inputs; what it gives replaces the FP32 tensor, and only what depends on it runs again, in FP32. A tensor is judged
by rounding it. Each sample is measured by itself, so that results do not depend on how samples are distributed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.answers.asked import quiet_log
from dryfit.answers.builder_config import config_of
from dryfit.answers.kept_results import kept_bytes, kept_results
from dryfit.answers.options import NetworkOptions
from dryfit.attrs_classes import frozen
from dryfit.builder.build import build_plan
from dryfit.building import Builder
from dryfit.calibration.executor import tapped_network, whole_network_config
from dryfit.calibration.jobs import SampleCount
from dryfit.calibration.output_noise import rounded
from dryfit.engine.operation_runner import OperationRunner
from dryfit.engine.partial_runs import PartialRuns
from dryfit.engine.plan import Plan
from dryfit.engine.resolved_operation import ResolvedOperation
from dryfit.errors import CalibrationError, ConfigError
from dryfit.network.copying import copy_network
from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import FullyConnected
from dryfit.network.layers.kernel_layer import KernelLayer
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Tensor
from dryfit.quantization.calibration_data import SampleSource
from dryfit.quantization.int8_weights import int8_weights
from dryfit.quantization.range_sharing import floating_point_network
from dryfit.quantization.sample_arrays import Feeds

LOCAL = ("signal", "total", "activations", "weights", "rounding")
"""Energies at a layer's output: of the FP32 values; of the error by the layer's whole quantization, and by that of its
inputs, its weights and its output alone."""

CHANNEL = ("largest", "error", "squared error", "clipped")
"""Values of a tensor's channel: the largest magnitude; the sum of the rounding errors and that of their squares, with
the part of it from values beyond the range."""

_CONVERSIONS = ("quantize", "dequantize", "cast", "identity")
"""Layers of an engine that hold the same values in another type."""

MOST_OUTPUT_BYTES = 1 << 31
"""Outputs of all changes are kept for metrics other than SQNR and agreement; more than this is refused. Our choice."""


@frozen
class MeasuredLayer:
    """A layer of the INT8 engine.

    Attributes:
        name: names of the network's layers, joined with " + ".
        layers: names of the network's layers.
        device: device that runs it.
        inputs: names of the tensors that it reads, and the scale of each that it reads in INT8.
        output: name of the tensor that it writes.
        output_scale: scale of its output; 0 if that is not stored in INT8.
    """

    name: str
    layers: Sequence[str]
    device: str
    inputs: Mapping[str, float]
    output: str
    output_scale: float


@frozen(eq=False)
class Measurement:
    """What was measured on some samples.

    Attributes:
        samples: names of the samples.
        arrays: name to values, the samples along the first axis: `signal` float64[N, outputs], `layers` and `tensors`
            float64[N, changes, outputs] noise, `local` float64[N, layers, 5], `changed layers` and `changed tensors`
            bool[N, changes, batch] whether the class changed, `channels` float64[N, 4, all channels], and `output NAME`
            [N, 1 + changes, ...] for metrics that need whole outputs.
    """

    samples: tuple[str, ...]
    arrays: Mapping[str, Array]

    def joined(self, other: Measurement) -> Measurement:
        """Return both with the samples of the other behind these."""
        arrays = {name: np.concatenate([one, other.arrays[name]]) for name, one in self.arrays.items()}
        return Measurement((*self.samples, *other.samples), arrays)

    def to_bytes(self, fingerprint: Mapping[str, str]) -> bytes:
        """Return the contents of a file that a later run can go on with."""
        return kept_bytes(fingerprint, self.arrays, samples=self.samples)

    @classmethod
    def from_bytes(cls, data: bytes, fingerprint: Mapping[str, str], where: str) -> Measurement:
        """Return what an earlier run stored.

        Raises:
            CalibrationError: The file is damaged, or belongs to another run.
        """
        head, arrays = kept_results(data, fingerprint, where)
        return cls(tuple(head["samples"]), arrays)


@frozen
class MeasurementTask:
    """A picklable task: the same measurement in every process.

    Attributes:
        load: function that returns the network.
        source: source of the samples.
        options: device and all that the INT8 engine is built with.
        ranges: (minimum, maximum) by tensor name, besides what the options bring.
        keeps_outputs: whether whole outputs are kept.
        num_threads: number of threads; None for one per CPU.
    """

    load: Callable[[], Network]
    source: SampleSource
    options: NetworkOptions
    ranges: Mapping[str, tuple[float, float]]
    keeps_outputs: bool = False
    num_threads: int | None = None

    def run(
        self,
        names: Sequence[str],
        count: SampleCount | None = None,
        keep: Callable[[Measurement], None] | None = None,
        before: Measurement | None = None,
    ) -> Measurement:
        """Return the measurement of these samples, or of those up to where the count stops.

        Args:
            names: names of the samples.
            count: shows the progress.
            keep: receives what is finished, after each sample.
            before: what an earlier run measured; the result begins with it.

        Raises:
            CalibrationError, ExecutionError, NetworkError: Samples cannot be read or do not match the network.
        """
        network = self.load()
        samples = self.source.samples(names, network)
        probe: LayerProbe | None = None
        found = before
        for name, feeds in samples if count is None else count(samples):
            probe = probe or self.probe(network, feeds)
            one = probe.measure(name, feeds)
            found = one if found is None else found.joined(one)
            if keep is not None:
                keep(found)
        if found is None:
            raise CalibrationError("Layers are judged on at least one sample", remedy="Pass samples with --data")
        return found

    def probe(self, network: Network, feeds: Feeds) -> LayerProbe:
        """Return the engines for samples of the shapes of this one."""
        fixed = copy_network(network)
        for tensor in fixed.inputs:
            tensor.shape = feeds[tensor.name].shape
        plan = self.plan(fixed)
        return LayerProbe(fixed, plan, feeds, keeps_outputs=self.keeps_outputs, num_threads=self.num_threads)

    def plan(self, network: Network) -> Plan:
        """Return the plan of the INT8 engine."""
        copy = copy_network(network)
        for tensor in copy.tensors:
            if tensor.name in self.ranges:
                tensor.dynamic_range = self.ranges[tensor.name]
        with quiet_log():
            config, _ = config_of(copy, attrs.evolve(self.options, shape={}))
            config.builder_optimization_level = 0
            return Builder().build_engine(copy, config).plan


class LayerProbe:
    """The engines, and the layers and tensors that are judged.

    Args:
        network: the network with fixed shapes.
        plan: plan of its INT8 engine.
        feeds: a sample; all others have its shapes.
        keeps_outputs: see `MeasurementTask`.
        taps: names of more tensors that `exact` and `with_rounded_weights` give, such as sums inside a layer.
        whole: names of tensors that count as not stored in INT8, since the network adds what their rounding takes away.
        num_threads: number of threads; None for one per CPU.

    Attributes:
        layers: layers that the engine computes in INT8.
        tensors: name of each tensor that it stores in INT8 to its scale.
        outputs: names of the outputs.
        channels: number of channels of each of the tensors.
    """

    def __init__(
        self,
        network: Network,
        plan: Plan,
        feeds: Feeds,
        *,
        keeps_outputs: bool = False,
        taps: Sequence[str] = (),
        whole: Collection[str] = (),
        num_threads: int | None = None,
    ) -> None:
        shapes = {name: array.shape for name, array in feeds.items()}
        self._runner = OperationRunner(plan, shapes, num_threads)
        self._keeps_outputs = keeps_outputs
        self._whole = whole
        self._work = _without_roundings(floating_point_network(network))
        self._kinds = {layer.name: layer.kind for layer in self._work.layers}
        self._plan_tensors = {tensor.name: tensor for tensor in plan.network.tensors}
        self.outputs = [tensor.name for tensor in self._work.outputs]
        found = [(one, layer) for one in self._runner.operations if (layer := self._layer(one)) is not None]
        self.layers = [layer for _, layer in found]
        self._operations = [one for one, _ in found]
        self.tensors: dict[str, float] = {}
        for layer in self.layers:
            self.tensors.update({name: scale for name, scale in layer.inputs.items() if scale})
            if layer.output_scale:
                self.tensors[layer.output] = layer.output_scale
        if not self.layers:
            raise ConfigError(
                "No layer runs in INT8 on this device, so there is no INT8 loss to measure",
                where=f"network {self._work.name!r}",
                remedy="Add --precision int8, a calibration cache, or another device; `dryfit explain --quantization` "
                "shows why each layer has its precision",
            )
        named = {*self.tensors, *(one.output for one in self.layers), *(t for one in self.layers for t in one.inputs)}
        named |= set(taps)
        tapped = [tensor.name for tensor in self._work.tensors if tensor.name in named]
        tapped = list(dict.fromkeys([*tapped, *self.outputs]))
        self._exact = PartialRuns(*self._engine(self._work, tapped, feeds), num_threads)
        self._rounded_weights = PartialRuns(*self._engine(self._with_int8_weights(), tapped, feeds), num_threads)
        self._first_feeds = feeds
        self._is_first = True
        shapes_of = {tensor.name: tensor.shape for tensor in self._work.tensors}
        self.channels = {name: _channels(shapes_of[name]) for name in self.tensors}
        self._sizes = {name: math.prod(shapes_of[name]) for name in self.tensors}

    def values_per_channel(self, tensor: str) -> int:
        """Return the number of values of a channel of a tensor, in one sample."""
        return self._sizes[tensor] // max(1, self.channels[tensor])

    def run(self, feeds: Feeds) -> dict[str, Array]:
        """Run the network in FP32 on a sample, and return its outputs; layers and tensors are then judged on it."""
        return self._exact.run(feeds)

    def exact(self, tensor: str) -> Array:
        """Return what a tensor holds in FP32, of the last sample."""
        return self._exact.array(tensor)

    def quantized(self, layer: MeasuredLayer) -> Array:
        """Return what the INT8 kernel of a layer gives for its FP32 inputs of the last sample, as real values."""
        return self._quantized(layer, self._operations[self.layers.index(layer)])

    def with_rounded_weights(self, given: Mapping[str, Array], tensor: str) -> Array:
        """Return a tensor in FP32, by the codes of the weights, from the contents of all that it depends on.

        Other than `quantized`, it has no rounding of the output, and no end of a range or activation behind it.

        Args:
            given: contents by tensor name.
            tensor: name of a layer's output, or of one of the `taps`.
        """
        self._begin()
        return self._rounded_weights.run_after(given, [tensor])[tensor]

    def outputs_by_tensor(self, tensor: str) -> dict[str, Array]:
        """Return the outputs for the last sample if one of `tensors` alone is rounded."""
        coded = rounded(self.exact(tensor), self.tensors[tensor])
        return self._exact.run_after({tensor: coded}, self.outputs)

    def outputs_by_weights(self, layer: MeasuredLayer) -> dict[str, Array]:
        """Return the outputs for the last sample if the weights of a layer alone are rounded."""
        self._begin()
        inputs = {name: self.exact(name) for name in layer.inputs}
        found = self._rounded_weights.run_after(inputs, [layer.output])[layer.output]
        return self._exact.run_after({layer.output: found}, self.outputs)

    def _begin(self) -> None:
        """Run the engine with rounded weights once: what is asked of it later depends on changed tensors only."""
        if self._is_first:
            self._rounded_weights.run(self._first_feeds)
            self._is_first = False

    def measure(self, sample: str, feeds: Feeds) -> Measurement:
        """Return what quantization of each layer and tensor does on one sample."""
        exact = self._exact.run(feeds)
        self._begin()
        signal = np.array([float((exact[name].astype(np.float64) ** 2).sum()) for name in self.outputs])
        local = np.zeros((len(self.layers), len(LOCAL)))
        kept: list[dict[str, Array]] = [exact]
        layer_noise, layer_changed, tensor_noise, tensor_changed = [], [], [], []
        for index, (layer, operation) in enumerate(zip(self.layers, self._operations, strict=True)):
            quantized = self._quantized(layer, operation)
            local[index] = self._local(layer, quantized)
            found = self._exact.run_after({layer.output: quantized}, self.outputs)
            layer_noise.append(self._noise(exact, found))
            layer_changed.append(_class_changed(exact, found))
            kept.append(found)
        statistics = []
        for name, scale in self.tensors.items():
            values = self._exact.array(name)
            coded = rounded(values, scale)
            statistics.append(_channel_statistics(values, coded, scale, self.channels[name]))
            found = self._exact.run_after({name: coded}, self.outputs)
            tensor_noise.append(self._noise(exact, found))
            tensor_changed.append(_class_changed(exact, found))
        arrays: dict[str, Array] = {
            "signal": signal,
            "layers": np.array(layer_noise),
            "tensors": np.array(tensor_noise),
            "changed layers": np.array(layer_changed),
            "changed tensors": np.array(tensor_changed),
            "local": local,
            "channels": np.concatenate(statistics, axis=1),
        }
        if self._keeps_outputs:
            for name in self.outputs:
                arrays[f"output {name}"] = np.stack([one[name] for one in kept]).astype(np.float32)
        return Measurement((sample,), {name: one[np.newaxis] for name, one in arrays.items()})

    def _quantized(self, layer: MeasuredLayer, operation: ResolvedOperation) -> Array:
        """Return what the INT8 kernel gives for the FP32 inputs, as real values."""
        inputs: dict[str, Array] = {}
        for tensor in operation.group.inputs:
            if tensor.name in self._runner.known:
                continue
            name = self._user_name(tensor.name)
            values = self._exact.array(str(name))
            if tensor.dtype is DataType.INT8:
                scale = np.float32(self._scale(tensor.name) or 0.0)
                values = np.clip(np.rint(values / scale), -128, 127).astype(np.int8)
            inputs[tensor.name] = values.astype(tensor.dtype.numpy)
        (found,) = self._runner.run(operation, inputs).values()
        if layer.output_scale:
            return found.astype(np.float32) * np.float32(layer.output_scale)
        return found.astype(np.float32)

    def _local(self, layer: MeasuredLayer, quantized: Array) -> list[float]:
        exact = self._exact.array(layer.output).astype(np.float64)
        inputs = {name: self._exact.array(name) for name in layer.inputs}
        coded = {name: rounded(values, layer.inputs[name]) for name, values in inputs.items() if layer.inputs[name]}
        by_inputs = self._exact.run_after(coded, [layer.output])[layer.output] if coded else exact
        by_weights = self._rounded_weights.run_after(inputs, [layer.output])[layer.output]
        by_rounding = rounded(self._exact.array(layer.output), layer.output_scale) if layer.output_scale else exact
        others = [float(((one - exact) ** 2).sum()) for one in (quantized, by_inputs, by_weights, by_rounding)]
        return [float((exact**2).sum()), *others]

    def _noise(self, exact: Mapping[str, Array], found: Mapping[str, Array]) -> list[float]:
        return [float(((found[name].astype(np.float64) - exact[name]) ** 2).sum()) for name in self.outputs]

    def _layer(self, operation: ResolvedOperation) -> MeasuredLayer | None:
        """Return the layer of an operation; None for one that is not computed in INT8, or only changes formats."""
        group = operation.group
        outputs = group.outputs
        inputs = [tensor for tensor in group.inputs if tensor.name not in self._runner.known]
        is_int8 = any(tensor.dtype is DataType.INT8 for tensor in (*inputs, *outputs))
        names = [self._user_name(tensor.name) for tensor in inputs]
        names += [self._written_name(tensor.name) for tensor in outputs]
        if not is_int8 or len(outputs) != 1 or None in names or names[-1] in names[:-1]:
            return None
        scales = [self._scale(tensor.name) if tensor.dtype is DataType.INT8 else 0.0 for tensor in (*inputs, *outputs)]
        if None in scales:
            return None
        scales = [None if name in self._whole else scale for name, scale in zip(names, scales, strict=True)]
        found = dict(zip(map(str, names), (scale or 0.0 for scale in scales), strict=True))
        output, output_scale = str(names[-1]), found.pop(str(names[-1]))
        layers = [name for name in operation.operation.source_layers if name in self._kinds]
        name = " + ".join(one for one in layers if self._kinds[one] not in _CONVERSIONS) or operation.operation.name
        return MeasuredLayer(name, layers, operation.operation.device, found, output, output_scale)

    def _user_name(self, name: str) -> str | None:
        """Return the name of the network's tensor that a tensor of the engine holds; None for no such tensor."""
        if self._work.find_tensor(name) is not None:
            return name
        # Passes that move a quantization name the codes of a tensor so.
        moved = name.removesuffix(f" [{self._plan_tensors[name].dtype.name}]")
        if self._work.find_tensor(moved) is not None:
            return moved
        producer = self._plan_tensors[name].producer
        if producer is None or producer.kind not in _CONVERSIONS:
            return None
        source = producer.inputs[0]
        return None if source is None else self._user_name(source.name)

    def _written_name(self, name: str) -> str | None:
        """Return the same for a tensor that a layer writes, which may be converted to what readers in FP16 take."""
        found = self._user_name(name)
        for reader, _ in self._plan_tensors[name].consumers if found is None else ():
            if reader.kind in _CONVERSIONS and (found := self._written_name(reader.outputs[0].name)) is not None:
                return found
        return found

    def _scale(self, name: str, seen: frozenset[str] = frozenset()) -> float | None:
        """Return the scale of an INT8 tensor of the engine, from what writes or reads it; None if nothing tells."""
        tensor = self._plan_tensors[name]
        around = [reader for reader, _ in tensor.consumers if reader.kind == "dequantize"]
        if tensor.producer is not None and tensor.producer.kind == "quantize":
            around.insert(0, tensor.producer)
        for layer in around:
            step = layer.inputs[1]
            if step is not None and step.spec.value is not None and step.spec.value.size == 1:
                return float(step.spec.value.reshape(()))
        beside = [out.name for reader, _ in tensor.consumers for out in reader.outputs if out.dtype is DataType.INT8]
        if tensor.producer is not None:
            beside += [one.name for one in tensor.producer.connected_inputs if one.dtype is DataType.INT8]
        for other in beside:
            if other not in seen and (found := self._scale(other, seen | {name})) is not None:
                return found
        return None

    def _with_int8_weights(self) -> Network:
        """Return the network with the weights of INT8 layers as their codes hold them."""
        inside = {name for layer in self.layers for name in layer.layers}
        rounding = {name: one.rounding for one in self._operations for name in one.operation.source_layers}
        copy = copy_network(self._work)
        for layer in copy.layers:
            if layer.name not in inside or not isinstance(layer, KernelLayer | FullyConnected):
                continue
            if isinstance(layer.kernel, np.ndarray):
                codes = int8_weights(layer, layer.kernel, rounding[layer.name])
                if codes.axis >= 0:
                    along = [1] * codes.values.ndim
                    along[codes.axis] = -1
                    real = codes.values.astype(np.float32) * codes.scales.reshape(along)
                    layer.kernel = real.reshape(layer.kernel.shape).astype(layer.kernel.dtype)
        return copy

    def _engine(self, network: Network, taps: Sequence[str], feeds: Feeds) -> tuple[Plan, dict[str, Any]]:
        tapped = tapped_network(network, [], taps)
        plan = build_plan(tapped, whole_network_config(tapped, feeds))
        return plan, {name: array.shape for name, array in feeds.items()}


def _without_roundings(network: Network) -> Network:
    """Return the network without the pairs that round what depends on its inputs; it is changed.

    Raises:
        ConfigError: A pair has a zero point, which no device has.
    """
    pairs = [
        (layer.inputs[0].producer, layer)
        for layer in network.layers
        if layer.kind == "dequantize" and layer.inputs[0] is not None and layer.inputs[0].producer is not None
    ]
    for before, after in pairs:
        if before is not None and before.kind == "quantize" and not after.outputs[0].is_network_output:
            for one in (before, after):
                zero_point = one.inputs[2] if len(one.inputs) > 2 else None
                if zero_point is not None and (zero_point.spec.value is None or zero_point.spec.value.any()):
                    raise ConfigError(
                        "Single layers can be judged only in models without zero points",
                        where=f"layer {one.name!r}",
                        found="a zero point",
                        allowed="zero points of 0",
                        remedy="Pass the FP32 model with --calibration-cache, or quantize it symmetrically",
                    )
            network.replace_uses(after.outputs[0], before.connected_inputs[0])
    for kind in ("dequantize", "quantize"):
        network.remove_layers([one for one in network.layers if one.kind == kind and not _is_read(one.outputs[0])])
    network.refresh_shapes()
    return network


def _is_read(tensor: Tensor) -> bool:
    return tensor.is_network_output or bool(tensor.consumers)


def _channels(shape: Sequence[int]) -> int:
    return shape[1] if len(shape) > 1 else 1


def _channel_statistics(values: Array, coded: Array, scale: float, channels: int) -> Array:
    """Return `CHANNEL` of each channel: float64[4, channels]."""
    by_channel = np.moveaxis(values, 1, 0).reshape(channels, -1) if values.ndim > 1 else values.reshape(1, -1)
    codes = np.moveaxis(coded, 1, 0).reshape(channels, -1) if values.ndim > 1 else coded.reshape(1, -1)
    error = (codes - by_channel).astype(np.float64)
    squared = error**2
    beyond = np.abs(by_channel) > 127.5 * scale
    return np.stack(
        [
            np.abs(by_channel).max(axis=1, initial=0.0),
            error.sum(axis=1),
            squared.sum(axis=1),
            np.where(beyond, squared, 0.0).sum(axis=1),
        ]
    )


def _class_changed(exact: Mapping[str, Array], found: Mapping[str, Array]) -> Array:
    """Return for each row of the batch whether its class changed; empty for networks with several outputs."""
    if len(exact) != 1:
        return np.zeros(0, np.bool_)
    ((name, values),) = exact.items()
    rows = values.reshape(len(values), -1) if values.ndim else values.reshape(1, 1)
    others = found[name].reshape(rows.shape)
    changed: Array = rows.argmax(axis=1) != others.argmax(axis=1)
    return changed
