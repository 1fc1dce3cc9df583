"""Recover the network that an engine computes, in the user's terms, from any engine file.

An engine's network contains the user's layers and the type conversions that the builder inserted. Without these, and
with floating-point weights, it is again a network that references can run and that can be built for other devices.

Not recovered: the effects of earlier passes (folded constants, unused layers), the weights before rounding, and factors
folded into them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from dryfit.answers.comparison.stored_weights import NetworkWeights, stored_weights_of
from dryfit.attrs_classes import frozen
from dryfit.builder.fusion.engine_tensors import OUTPUT_COPY
from dryfit.engine.plan import Plan
from dryfit.engine.progress import ProgressMonitor
from dryfit.errors import ConfigError
from dryfit.network.data_types import EXCHANGED_TYPES, DataType
from dryfit.network.layer import Layer
from dryfit.network.layer_copies import copy_layer, copy_tensor_notes
from dryfit.network.layers.convolution import FullyConnected
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.kernel_layer import KernelLayer
from dryfit.network.layers.quantization import Cast, Dequantize
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Tensor
from dryfit.reference.registry import evaluate

MODEL_WEIGHTS = "those of the model"
STORED_WEIGHTS = (
    "those that the engine stores, in floating point: rounded to the type of the layer, with what was folded into them"
)


@frozen(eq=False)
class StoredNetwork:
    """The network that an engine computes.

    Attributes:
        network: layers and tensors with the user's names; floating point is FP32 unless the network is strongly typed.
        weights: description of the weights.
        unknown: reason for each missing layer, including those that depend on it, by layer name.
        rounded: names of engine layers whose weights were recovered only to within a few FP32 roundings.
    """

    network: Network
    weights: str = MODEL_WEIGHTS
    unknown: Mapping[str, str] = attrs.field(factory=dict)
    rounded: Sequence[str] = ()


def compared_network(plan: Plan, progress: ProgressMonitor | None = None) -> StoredNetwork:
    """Return the network to compare an engine with: the user's if the engine contains it, else the stored one.

    Raises:
        ConfigError, PluginError, EngineFileError, ExecutionError: See `stored_network`.
    """
    return stored_network(plan, progress) if plan.refit is None else StoredNetwork(plan.refit.network)


def stored_network(plan: Plan, progress: ProgressMonitor | None = None) -> StoredNetwork:
    """Return the network of any engine.

    Raises:
        ConfigError: The weights of layers that everything depends on cannot be recovered.
        PluginError, EngineFileError, ExecutionError: See `stored_weights_of`.
    """
    stored = stored_weights_of(plan, progress)
    making = _Making(stored, {one.layer for one in plan.layers})
    for tensor in stored.network.inputs:
        making.add_input(tensor)
    for layer in stored.network.layers:
        making.add(layer)
    network = making.finish()
    if not network.layers:
        reasons = "; ".join(f"{layer!r}: {reason}" for layer, reason in stored.unknown.items())
        raise ConfigError(
            "The weights of the engine cannot be read for the comparison",
            where=f"engine {plan.network.name!r}",
            found=reasons or "no layer that reads an input",
            remedy="Build it with --refit, or compare the model with the same options: dryfit compare MODEL.onnx ...",
        )
    return StoredNetwork(network, STORED_WEIGHTS, stored.unknown, stored.rounded)


class _Making:
    """Copies the layers of an engine's network one by one."""

    def __init__(self, stored: NetworkWeights, own_layers: set[str]) -> None:
        self._stored = stored
        self._own_layers = own_layers
        self._is_typed = stored.network.is_strongly_typed
        self._network = Network(stored.network.name, stored.network.flags)
        self._network.metadata.update(stored.network.metadata)
        self._tensors: dict[str, Tensor] = {}
        self._known: dict[str, Array] = {}

    def add_input(self, tensor: Tensor) -> None:
        """Add an input in the type in which the engine accepts it, without changing other inputs."""
        bounds = self._range_of_codes(tensor)
        is_real = (tensor.dtype in EXCHANGED_TYPES or bounds is not None) and not self._is_typed
        new = self._network.add_input(tensor.name, DataType.FLOAT if is_real else tensor.dtype, tensor.shape)
        copy_tensor_notes(tensor, new)
        if bounds is not None:
            new.dynamic_range = bounds
        if new.dtype is not tensor.dtype:
            new.dtype = tensor.dtype
        self._tensors[tensor.name] = new

    def _range_of_codes(self, tensor: Tensor) -> tuple[float, float] | None:
        """Return the range of an INT8 input that represents floating-point values: stated, or from its scale."""
        if tensor.dtype is not DataType.INT8 or tensor.dynamic_range is not None:
            return tensor.dynamic_range
        for layer, _ in tensor.consumers:
            if layer.kind == "dequantize" and layer.name not in self._own_layers and layer.inputs[1] is not None:
                scale = layer.inputs[1].producer
                if isinstance(scale, Constant) and self._is_told(scale):
                    limit = 127 * float(scale.weights.item())
                    return -limit, limit
        return None

    def _is_told(self, layer: Layer) -> bool:
        return layer.name not in self._stored.unknown

    def add(self, layer: Layer) -> None:
        if isinstance(layer, Constant):
            if self._is_told(layer):
                self._known[layer.outputs[0].name] = self._widened(layer.outputs[0].spec.value)
            return
        if not self._is_told(layer) or any(one is not None and not self._has(one) for one in layer.inputs):
            return
        if layer.name not in self._own_layers and layer.is_conversion and self._skip(layer):
            return
        self._copy(layer)

    def _has(self, tensor: Tensor) -> bool:
        return tensor.name in self._tensors or tensor.name in self._known

    def _skip(self, layer: Layer) -> bool:
        """Skip a layer that only stores values in another type; return whether it does."""
        source, output = layer.inputs[0], layer.outputs[0]
        if source is None:
            return False
        if all(one is not None and one.name in self._known for one in layer.inputs):
            values = [None if one is None else self._known[one.name] for one in layer.inputs]
            self._known[output.name] = self._widened(evaluate(layer, values)[0])
            return True
        root = self._tensors.get(source.name)
        if root is None or (layer.kind == "dequantize" and not self._stands_for_real(root)):
            return False
        if layer.name.startswith(OUTPUT_COPY):
            self._network.rename_tensor(root, self._network.free_tensor_name(output.name))
            copy_tensor_notes(output, root)
        self._tensors[output.name] = root
        return True

    def _stands_for_real(self, tensor: Tensor) -> bool:
        """Return whether a tensor already holds floating-point values, as an INT8 input with a range does."""
        return tensor.spec.dtype in EXCHANGED_TYPES

    def _copy(self, layer: Layer) -> None:
        new = copy_layer(layer)
        inputs = list(layer.inputs)
        if not self._is_typed and isinstance(new, (Cast, Dequantize)) and new.to_type in EXCHANGED_TYPES:
            new.to_type = DataType.FLOAT
        weights = inputs[1] if len(inputs) > 1 else None
        if isinstance(new, (KernelLayer, FullyConnected)) and weights is not None and weights.name in self._known:
            new.kernel, inputs[1] = self._known[weights.name], None
            inputs = inputs if any(one is not None for one in inputs[2:]) else inputs[:1]
        self._widen_parameters(new)
        added = self._network.add_layer(new, [None if one is None else self._given(one) for one in inputs])
        for old, output in zip(layer.outputs, added.outputs, strict=True):
            self._network.rename_tensor(output, self._network.free_tensor_name(old.name))
            copy_tensor_notes(old, output)
            self._tensors[old.name] = output

    def _widen_parameters(self, layer: Layer) -> None:
        for field in layer.parameters():
            value = getattr(layer, field.name)
            if isinstance(value, np.ndarray) and field.name in {"kernel", "bias"}:
                setattr(layer, field.name, self._widened(value))

    def _given(self, tensor: Tensor) -> Tensor:
        """Return a tensor of the new network; a constant is added when it is first read."""
        if tensor.name not in self._tensors:
            values = self._known[tensor.name]
            layer = self._network.add_layer(Constant(name=tensor.name, shape=values.shape, weights=values), [])
            self._network.rename_tensor(layer.outputs[0], self._network.free_tensor_name(tensor.name))
            self._tensors[tensor.name] = layer.outputs[0]
        return self._tensors[tensor.name]

    def _widened(self, values: Array | None) -> Array:
        """Return floating-point values as FP32, unless the network is strongly typed."""
        if values is None:
            raise ValueError("a constant must have a value")
        is_exchanged = DataType.from_numpy(values.dtype) in EXCHANGED_TYPES and not self._is_typed
        return values.astype(np.float32) if is_exchanged else values

    def finish(self) -> Network:
        """Mark the engine's outputs, in its types, and the tensors that unknown layers would have read."""
        for tensor in self._stored.network.outputs:
            if not self._has(tensor):
                continue
            output = self._given(tensor)
            self._network.mark_output(output)
            if output.producer is not None and output.dtype is not tensor.dtype:
                output.dtype = tensor.dtype
        for layer in self._network.layers:
            for tensor in layer.outputs:
                if self._stored.unknown and not tensor.consumers:
                    self._network.mark_output(tensor)
        return self._network
