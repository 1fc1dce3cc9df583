"""The type in which each layer is computed, and with it the type of each tensor on its way between layers.

Networks are weakly typed, as TensorRT's are up to version 10: FLOAT in a network means "as precise as the builder was
allowed to be". Where the config's flags allow FP16, layers that work on floating-point numbers are computed in it.
What is not arithmetic on such numbers keeps the types that it has. A layer plugin gets the combination of types, of
those that it names, that suits the flags best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.builder.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.placement import NOWHERE, Assignment
from dryfit.builder.precision import REDUCED_TYPES
from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.format_combinations import EXCHANGED_TYPES, FormatCombination, chosen_combination
from dryfit.network.layer import Layer
from dryfit.network.layers.plugin import Plugin
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.plugins import registry
from dryfit.target.target import Target
from dryfit.target.verdict import Verdict

WEAK_TYPES = frozenset(EXCHANGED_TYPES)
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
        combinations: name of a plugin layer to the types and formats that it gets, where its plugin names some.
        warnings: wishes that could not be granted.
        problems: wishes that had to be granted, and could not.
    """

    layers: Mapping[str, DataType]
    converted: frozenset[str]
    output_types: Mapping[tuple[str, int], DataType]
    warnings: Sequence[str]
    problems: Sequence[str]
    combinations: Mapping[str, FormatCombination] = attrs.field(factory=dict)

    def input_type(self, layer: Layer, index: int) -> DataType:
        """The type in which a layer takes one of its connected inputs."""
        tensor = layer.inputs[index]
        if tensor is None:
            raise ValueError(f"input {index} of layer {layer.name!r} is not connected")
        if layer.name in self.combinations:
            return self.combinations[layer.name].input_types[index]
        is_constant = tensor.producer is not None and tensor.producer.kind == "constant"
        if index not in DATA_INPUTS.get(layer.kind, (index,)) or (
            index and is_constant and layer.kind in WEIGHTED_KINDS
        ):
            return tensor.dtype
        return self._computed(layer, tensor.dtype)

    def produced_type(self, layer: Layer, index: int) -> DataType:
        """The type in which a layer gives one of its outputs."""
        if layer.name in self.combinations:
            return self.combinations[layer.name].output_types[index]
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
    """The computation type of every layer that runs on a device.

    Raises:
        NetworkError: layer plugins do not compute with any types that are permitted; all of them are listed.
    """
    chooser = _Chooser(config)
    for layer in network.layers:
        if layer.name in assignment.devices:
            device = assignment.devices[layer.name]
            verdict = assignment.verdicts.get(layer.name, {}).get(device)
            chooser.choose(layer, registry.host() if device == NOWHERE else registry.target(device), verdict)
    if chooser.refusals:
        raise NetworkError("Layer plugins cannot get the types that they need:\n  " + "\n  ".join(chooser.refusals))
    return Precisions(
        chooser.layers,
        frozenset(chooser.converted),
        chooser.output_types,
        chooser.warnings,
        chooser.problems,
        chooser.combinations,
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
        self.combinations: dict[str, FormatCombination] = {}
        self.refusals: list[str] = []

    def choose(self, layer: Layer, target: Target, verdict: Verdict | None) -> None:
        tensors = [tensor for tensor in (*layer.outputs, *layer.inputs) if tensor is not None]
        own = next((tensor.dtype for tensor in tensors if tensor.dtype in WEAK_TYPES), None)
        if isinstance(layer, Plugin) and self._has_combination(layer, target, own, verdict):
            types = (*self.combinations[layer.name].output_types, *self.combinations[layer.name].input_types)
            self.layers[layer.name] = next((dtype for dtype in types if dtype in WEAK_TYPES), types[0])
        elif own is None or layer.kind in TYPED_KINDS:
            self.layers[layer.name] = tensors[0].dtype if tensors else DataType.FLOAT
        else:
            self.layers[layer.name] = self._computation_type(layer, target, own, verdict)
            self.converted.append(layer.name)
        for index, wished in sorted(layer.output_types.items()):
            self._choose_output(layer, index, wished, target)

    def _has_combination(self, layer: Plugin, target: Target, own: DataType | None, verdict: Verdict | None) -> bool:
        """Choose among the types and formats that a layer's plugin names; False where it names none.

        FLOAT is always permitted, since it holds what narrower types hold; so is what the network has.
        """
        wish = DataType.FLOAT if own is None else self._computation_type(layer, target, own, verdict)
        permitted = [*(dtype for flag, dtype in REDUCED_TYPES if self._config.get_flag(flag)), DataType.FLOAT]
        permitted += [tensor.dtype for tensor in layer.inputs if tensor is not None and tensor.dtype in WEAK_TYPES]
        if layer.precision in WEAK_TYPES:
            permitted = [layer.precision]
        inputs = [None if tensor is None else tensor.spec for tensor in layer.inputs]
        try:
            combination = chosen_combination(
                layer.implementation(),
                layer.complete_fields(),
                inputs,
                [wish, *permitted],
                allowed=list(dict.fromkeys(permitted)),
            )
        except NetworkError as error:
            self.refusals.append(f"{layer.where}: {error}")
            return False
        if combination is not None:
            self.combinations[layer.name] = combination
        return combination is not None

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
