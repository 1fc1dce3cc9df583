"""The type in which each layer is computed, and with it the type of each tensor on its way between layers.

Networks are weakly typed, as TensorRT's are up to version 10: FLOAT in a network means "as precise as the builder was
allowed to be". Where the config's flags allow FP16, layers that work on floating-point numbers are computed in it.
What is not arithmetic on such numbers keeps the types that it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.builder.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.placement import NOWHERE, Assignment
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.plugins import registry
from dryfit.target.target import Target
from dryfit.target.verdict import Verdict

WEAK_TYPES = frozenset({DataType.FLOAT, DataType.HALF, DataType.BF16})
"""Types that the builder may exchange for one another."""

TYPED_KINDS = frozenset(
    {"cast", "constant", "dequantize", "dynamic_quantize", "fill", "nms", "plugin", "quantize", "shape"}
)
"""Kinds whose types are part of what they mean, so that they keep them."""

DATA_INPUTS = {"grid_sample": (0,), "resize": (0,)}
"""Inputs that take the computation type, where not all do: places and scales of a resampling stay as they are."""

WEIGHTED_KINDS = frozenset({"convolution", "deconvolution", "fully_connected"})
"""Kinds whose constant inputs after the first are weights. They are rounded where they are packed, after what can be
folded into them; biases stay in the accumulator's type."""


@attrs.frozen
class Precisions:
    """Computation types.

    Attributes:
        layers: layer name to the type that it is computed in.
        converted: names of layers whose floating-point tensors have that type, whatever the network says.
        output_types: (layer name, output index) to the type that the user asked for.
        warnings: wishes that could not be granted.
        problems: wishes that had to be granted, and could not.
    """

    layers: Mapping[str, DataType]
    converted: frozenset[str]
    output_types: Mapping[tuple[str, int], DataType]
    warnings: Sequence[str]
    problems: Sequence[str]

    def input_type(self, layer: Layer, index: int) -> DataType:
        """The type in which a layer takes one of its connected inputs."""
        tensor = layer.inputs[index]
        if tensor is None:
            raise ValueError(f"input {index} of layer {layer.name!r} is not connected")
        is_constant = tensor.producer is not None and tensor.producer.kind == "constant"
        if index not in DATA_INPUTS.get(layer.kind, (index,)) or (
            index and is_constant and layer.kind in WEIGHTED_KINDS
        ):
            return tensor.dtype
        return self._computed(layer, tensor.dtype)

    def produced_type(self, layer: Layer, index: int) -> DataType:
        """The type in which a layer gives one of its outputs."""
        return self._computed(layer, layer.outputs[index].dtype)

    def stored_type(self, layer: Layer, index: int) -> DataType:
        """The type in which others find the output: the one the user asked for, or the one produced."""
        return self.output_types.get((layer.name, index)) or self.produced_type(layer, index)

    def network_output_type(self, tensor: Tensor) -> DataType:
        """The type of a network output: the one that the user asked of its layer, or else the network's."""
        producer = tensor.producer
        return self.output_types.get((producer.name if producer else "", tensor.output_index)) or tensor.dtype

    def _computed(self, layer: Layer, dtype: DataType) -> DataType:
        if dtype in WEAK_TYPES and layer.name in self.converted:
            return self.layers[layer.name]
        return dtype


def choose_precisions(network: Network, assignment: Assignment, config: BuilderConfig) -> Precisions:
    """The computation type of every layer that runs on a device."""
    chooser = _Chooser(config)
    for layer in network.layers:
        if layer.name in assignment.devices:
            device = assignment.devices[layer.name]
            verdict = assignment.verdicts.get(layer.name, {}).get(device)
            chooser.choose(layer, registry.host() if device == NOWHERE else registry.target(device), verdict)
    return Precisions(
        chooser.layers, frozenset(chooser.converted), chooser.output_types, chooser.warnings, chooser.problems
    )


class _Chooser:
    """Chooses for one layer after another."""

    def __init__(self, config: BuilderConfig) -> None:
        self._config = config
        self._obeys = config.get_flag(BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
        self.layers: dict[str, DataType] = {}
        self.converted: list[str] = []
        self.output_types: dict[tuple[str, int], DataType] = {}
        self.warnings: list[str] = []
        self.problems: list[str] = []

    def choose(self, layer: Layer, target: Target, verdict: Verdict | None) -> None:
        tensors = [tensor for tensor in (*layer.outputs, *layer.inputs) if tensor is not None]
        own = next((tensor.dtype for tensor in tensors if tensor.dtype in WEAK_TYPES), None)
        if own is None or layer.kind in TYPED_KINDS:
            self.layers[layer.name] = tensors[0].dtype if tensors else DataType.FLOAT
        else:
            self.layers[layer.name] = self._computation_type(layer, target, own, verdict)
            self.converted.append(layer.name)
        for index, wished in sorted(layer.output_types.items()):
            self._choose_output(layer, index, wished, target)

    def _computation_type(self, layer: Layer, target: Target, own: DataType, verdict: Verdict | None) -> DataType:
        if layer.precision is not None and layer.precision not in target.precisions:
            self._cannot(
                f"layer {layer.name!r} asks for precision {layer.precision.name}, which {target.device} does not have "
                f"({', '.join(precision.name for precision in target.precisions)})"
            )
            return own
        asked = self._config.question(layer, target).precision if verdict is None else verdict.precision
        # Without a flag or a wish the default is asked for: it does not widen what the network has in FP16.
        return own if layer.precision is None and asked is target.default_precision else asked

    def _choose_output(self, layer: Layer, index: int, wished: DataType, target: Target) -> None:
        if not 0 <= index < len(layer.outputs) or layer.outputs[index].dtype not in WEAK_TYPES:
            return
        formats = target.output_formats
        if wished not in WEAK_TYPES or (formats and wished not in formats):
            self._cannot(f"layer {layer.name!r} cannot give output {index} as {wished.name} on {target.device}")
        else:
            self.output_types[layer.name, index] = wished

    def _cannot(self, what: str) -> None:
        (self.problems if self._obeys else self.warnings).append(what)
