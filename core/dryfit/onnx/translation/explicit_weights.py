"""Where the Q/DQ pairs of an explicit model are, and what its weights are.

The pairs are read from the design of an implicit build. The builder decides what is INT8 and what stays inside a step;
here its decisions are put into words of the model. Weights are INT8 with a dequantization, or FP32 with a quantization
and a dequantization. They are what the implicit build would quantize: the factors of a batch normalization behind the
layer are part of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np
from onnx import NodeProto, helper

from dryfit.attrs_classes import define, frozen
from dryfit.builder.design import Design
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Scale
from dryfit.network.layers.convolution import Deconvolution, FullyConnected
from dryfit.network.layers.kernel_layer import KernelLayer
from dryfit.network.tensor import Array, Tensor
from dryfit.onnx.editing.model_graph import ModelGraph, node_name
from dryfit.quantization.int8_steps import DynamicRange
from dryfit.quantization.int8_weights import Int8Weights, constant_weights, folded, int8_weights


@frozen(eq=False)
class PlannedWeights:
    """The weights of one layer that is computed in INT8.

    Attributes:
        layer: the layer, as it is built.
        real: float32, what is quantized: with the factors of `scale`, where there is one.
        quantized: codes and scales.
        bias: float32 `[K]`; None where the layer has none as a parameter.
        scale: the scale layer that is part of the weights; None for none.
    """

    layer: Layer
    real: Array
    quantized: Int8Weights
    bias: Array | None
    scale: Scale | None


@frozen(eq=False)
class QuantizationPlan:
    """What an implicit build quantizes.

    Attributes:
        stored: tensor to its scale, for those that are INT8 wherever anybody reads them.
        read: tensor to its scale and the layers that read it in INT8, while others read floating-point values.
        weights: of the layers that multiply by constants, in the order of the network.
    """

    stored: Mapping[str, float]
    read: Mapping[str, tuple[float, Sequence[Layer]]]
    weights: Sequence[PlannedWeights]

    @property
    def scales(self) -> dict[str, float]:
        """Tensor to scale, for all that are quantized somewhere."""
        return {**self.stored, **{name: scale for name, (scale, _) in self.read.items()}}


def quantization_plan(design: Design) -> QuantizationPlan:
    """What the design of an implicitly quantized network quantizes, tensor by tensor.

    Raises:
        BuildError: weights are not finite.
    """
    precisions = design.precisions
    stored: dict[str, float] = {}
    read: dict[str, tuple[float, list[Layer]]] = {}
    weights = []
    for layer in design.network.layers:
        if layer.name not in precisions.layers or not precisions.is_int8(layer):
            continue
        for index, tensor in enumerate(layer.inputs):
            if tensor is None or tensor.is_constant or tensor.dtype is DataType.INT8:
                continue
            if precisions.input_type(layer, index) is DataType.INT8 and tensor.name not in stored:
                readers = read.setdefault(tensor.name, (_scale(tensor), []))[1]
                readers.append(layer)
        for index, tensor in enumerate(layer.outputs):
            if precisions.stored_type(layer, index) is DataType.INT8:
                stored[tensor.name] = _scale(tensor)
        found = _weights(design, layer)
        if found is not None:
            weights.append(found)
    return QuantizationPlan(stored, {name: one for name, one in read.items() if name not in stored}, weights)


def _is_folded(design: Design, layer: Layer) -> bool:
    """Whether a layer is part of the weights of the one before it."""
    source = layer.inputs[0] if isinstance(layer, Scale) else None
    return source is not None and source.name in design.precisions.real_tensors


def _weights(design: Design, layer: Layer) -> PlannedWeights | None:
    real = constant_weights(layer)
    if real is None:
        return None
    bias = getattr(layer, "bias", None)
    reader = layer.outputs[0].consumers[0][0] if layer.outputs[0].consumers else None
    scale = reader if isinstance(reader, Scale) and _is_folded(design, reader) else None
    if scale is not None and isinstance(layer, (KernelLayer, FullyConnected)):
        real, bias = folded(layer, real, scale)
    quantized = int8_weights(layer, real, design.precisions.weight_rounding[layer.name])
    as_quantized = real.astype(np.float32).reshape(quantized.values.shape)
    return PlannedWeights(layer, as_quantized, quantized, None if bias is None else bias.astype(np.float32), scale)


def _scale(tensor: Tensor) -> float:
    minimum, maximum = tensor.dynamic_range or (0.0, 0.0)
    return DynamicRange(minimum, maximum).scale


WEIGHTED_OPERATORS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
"""Operators whose second input is weights that a device computes with in INT8."""


@define(eq=False)
class MadeNodes:
    """What becomes of nodes with weights.

    Attributes:
        before: node name to nodes that go before it.
        instead: node name to what takes its place.
        dropped: names of nodes that are part of the weights now.
        nodes: names of the nodes whose weights are quantized.
        notes: what could not be done.
    """

    before: dict[str, list[NodeProto]] = attrs.field(factory=dict)
    instead: dict[str, NodeProto] = attrs.field(factory=dict)
    dropped: set[str] = attrs.field(factory=set)
    nodes: list[str] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)


class ExplicitWeights:
    """Writes quantized weights.

    Args:
        graph: takes the constants.
        nodes: its nodes by name.
        stores_integers: whether codes are stored; else real numbers that have these codes.
    """

    def __init__(self, graph: ModelGraph, nodes: Mapping[str, NodeProto], *, stores_integers: bool) -> None:
        self._graph = graph
        self._nodes = nodes
        self._stores_integers = stores_integers
        # Asked before constants are added, which would have the shapes inferred anew each time.
        self._shapes = {
            name: graph.shape(node.input[1]) for name, node in nodes.items() if node.op_type in WEIGHTED_OPERATORS
        }

    def made(self, planned: Sequence[PlannedWeights]) -> MadeNodes:
        """The new nodes; the graph gets the constants, and its nodes stay where they are."""
        made = MadeNodes()
        for one in planned:
            problem = self._add(one, made)
            if problem:
                made.notes.append(f"layer {one.layer.name!r} keeps floating-point weights: {problem}")
        return made

    def _add(self, planned: PlannedWeights, made: MadeNodes) -> str:
        """Add the weights of one layer; returns why it cannot be done, or ""."""
        names = [name for name in planned.layer.onnx_nodes if name in self._nodes]
        weighted = [name for name in names if self._nodes[name].op_type in WEIGHTED_OPERATORS]
        if len(weighted) != 1:
            return "it was not imported from a single Conv, ConvTranspose, Gemm or MatMul"
        name = weighted[0]
        oriented = _oriented(planned, self._nodes[name].op_type, self._shapes[name])
        if oriented is None:
            return "its scales are per group and channel, which ONNX cannot express"
        normalization = self._normalization(planned, name)
        if planned.scale is not None and normalization is None:
            return f"they include the factors of {planned.scale.name!r}, which comes from other nodes"
        new = NodeProto()
        new.CopyFrom(self._nodes[name])
        new.input[1] = self._write(new.input[1], *oriented, made.before.setdefault(name, []))
        if new.op_type == "Gemm" or normalization is not None:
            self._set_bias(new, planned)
        if new.op_type == "Gemm":
            _reset_gemm(new)
        if normalization is not None:
            new.output[0] = normalization.output[0]
            made.dropped.add(node_name(normalization))
        made.instead[name] = new
        made.nodes.append(name)
        return ""

    def _normalization(self, planned: PlannedWeights, name: str) -> NodeProto | None:
        """The node behind a weighted one that is part of its weights; None where there is none."""
        names = [] if planned.scale is None else [one for one in planned.scale.onnx_nodes if one in self._nodes]
        if len(names) != 1:
            return None
        node = self._nodes[names[0]]
        is_next = node.input[0] == self._nodes[name].output[0] and self._graph.has_one_use(node.input[0])
        return node if is_next else None

    def _write(self, name: str, real: Array, codes: Array, scales: Array, axis: int, before: list[NodeProto]) -> str:
        """Add weights and what dequantizes them; returns the name of the dequantized value."""
        graph = self._graph
        factors = [
            graph.add_constant(f"{name}_scale", scales.astype(np.float32)),
            graph.add_constant(f"{name}_zero_point", np.zeros(scales.shape, np.int8)),
        ]
        if self._stores_integers:
            stored = graph.add_constant(f"{name}_quantized", codes)
        else:
            source = self._real_constant(name, _with_codes(real, codes, scales, axis))
            quantize = graph.new_node("QuantizeLinear", [source, *factors], name=f"{name}_QuantizeLinear", axis=axis)
            before.append(quantize)
            stored = quantize.output[0]
        result = graph.fresh_name(f"{name}_DequantizeLinear_Output")
        before.append(
            graph.new_node(
                "DequantizeLinear", [stored, *factors], name=f"{name}_DequantizeLinear", output=result, axis=axis
            )
        )
        return result

    def _real_constant(self, name: str, values: Array) -> str:
        """The model's own constant where it has these values, or a new one."""
        own = self._graph.constant(name)
        same = own is not None and own.dtype == values.dtype and np.array_equal(own, values)
        return name if same else self._graph.add_constant(f"{name}_real", values)

    def _set_bias(self, node: NodeProto, planned: PlannedWeights) -> None:
        del node.input[2:]
        if planned.bias is not None:
            node.input.append(self._graph.add_constant(f"{node_name(node)}_bias", planned.bias))


def _oriented(
    planned: PlannedWeights, operator: str, shape: Sequence[int | None] | None
) -> tuple[Array, Array, Array, int] | None:
    """(real weights, codes, scales, axis) as the operator has them; None where ONNX has no axis for the scales."""
    real, found = planned.real, planned.quantized
    if operator == "MatMul":
        static = tuple(extent for extent in shape or () if extent is not None) or found.values.shape
        if found.axis < 0 or len(static) < 2 or found.axis != found.values.ndim - 1:
            return None
        return real.reshape(static), found.values.reshape(static), found.scales, len(static) - 1
    if found.axis >= 0:
        return real, found.values, found.scales, found.axis
    if isinstance(planned.layer, Deconvolution) and found.values.shape[1] == 1:
        # One output channel a group: what belongs to it is one or more channels of the input, axis 0.
        return real, found.values, np.repeat(found.scales.reshape(-1), found.block_shape[0]), 0
    return None


def _with_codes(real: Array, codes: Array, scales: Array, axis: int) -> Array:
    """The weights; where rounding half to even would find another code than the device's, that code's value."""
    along = [1] * real.ndim
    along[axis] = -1
    spread = scales.reshape(along)
    found = np.clip(np.rint(real / spread), -128, 127)
    return np.where(found == codes, real, codes * spread).astype(np.float32)


def _reset_gemm(node: NodeProto) -> None:
    """The weights of a fully connected layer are `[K, C]` and hold alpha; its bias holds beta."""
    del node.attribute[:]
    node.attribute.append(helper.make_attribute("transB", 1))
