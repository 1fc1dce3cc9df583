"""A Q/DQ model without its Q/DQ nodes: real weights, real values, and what the nodes said of scales.

Values keep their names: what a dequantization gave is read from what its quantization took. Where an output of the
model was dequantized, the value before the pair takes the output's name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np
from onnx import ModelProto, NodeProto, TensorProto

from dryfit.attrs_classes import frozen
from dryfit.network.tensor import Array
from dryfit.onnx.editing.model_graph import ModelGraph, node_name, used_names
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.translation.explicit_weights import WEIGHTED_OPERATORS
from dryfit.onnx.translation.quantization_nodes import (
    MOVING_OPERATORS,
    PlainWeights,
    QuantizationNode,
    RequantizedWeights,
    TranslationRefusals,
    is_quantization,
    quantization_node,
    refuse_other_forms,
    requantized,
)

_MOVES_CODES = MOVING_OPERATORS | {
    "Concat",
    "DepthToSpace",
    "Expand",
    "Gather",
    "MaxPool",
    "Slice",
    "SpaceToDepth",
    "Split",
}
"""Operators that may stand between a quantization and its dequantization: they move or pick codes."""


@frozen(eq=False)
class PlainModel:
    """What came of it.

    Attributes:
        model: FP32, without Q/DQ nodes.
        scales: value to the scales that quantizations of it stated, in order, each once.
        dequantized: node name to the values that it read through a pair.
        weighted: names of the nodes whose weights were quantized.
        requantized: what becomes of these weights in an implicit build.
        quantized: value to the name that its codes had in the Q/DQ model; the first of several.
        integer_borders: names of inputs and outputs that were INT8 and are real now, with their scales.
    """

    model: ModelProto
    scales: Mapping[str, Sequence[float]]
    dequantized: Mapping[str, frozenset[str]]
    weighted: frozenset[str]
    requantized: Sequence[RequantizedWeights]
    quantized: Mapping[str, str]
    integer_borders: Mapping[str, float]


def plain_model(model: ModelProto, external: ExternalData, *, clips_weights: bool = False) -> PlainModel:
    """Take the Q/DQ nodes out of a model.

    Args:
        model: stays as it is.
        external: where its external data may lie.
        clips_weights: whether codes of -128 become -127, so that the implicit rule finds the scale of their channel.

    Raises:
        OnnxImportError: quantization that implicit scales cannot say; every node and tensor is named.
    """
    return _Remover(model, external, clips_weights=clips_weights).plain()


class _Remover:
    """Takes the nodes out in one walk."""

    def __init__(self, model: ModelProto, external: ExternalData, *, clips_weights: bool) -> None:
        self._graph = ModelGraph(model, external)
        self._inputs = {info.name for info in model.graph.input}
        self._clips_weights = clips_weights
        self._refusals = TranslationRefusals()
        self._real: dict[str, str] = {}
        self._scale_of: dict[str, float] = {}
        self._scales: dict[str, list[float]] = {}
        self._weights: dict[str, PlainWeights] = {}
        self._constants: dict[str, Array] = {}
        # By identity: a node without a name is called by its output, which may get another name.
        self._read: dict[int, set[str]] = {}
        self._dequantized: set[str] = set()
        self._quantized: dict[str, str] = {}
        self._borders: dict[str, float] = {}
        self._weighted: list[tuple[NodeProto, PlainWeights]] = []
        self._renamed: dict[str, str] = {}

    def plain(self) -> PlainModel:
        graph = self._graph
        refuse_other_forms(graph, self._refusals)
        found = {
            id(node): quantization_node(graph, node, self._refusals) for node in graph.nodes if is_quantization(node)
        }
        kept = []
        for node in graph.nodes:
            one = found.get(id(node))
            if one is not None:
                self._take_out(one)
            elif id(node) not in found:
                self._keep(node)
                kept.append(node)
        self._refusals.raise_any()
        kept = self._name_outputs(kept)
        for name, values in self._constants.items():
            graph.put_constant(name, values)
        graph.nodes[:] = kept
        graph.changed()
        model = graph.model()
        self._declare_real_borders(model)
        read = {
            node_name(node): frozenset(self._final(value) for value in self._read[id(node)])
            for node in kept
            if id(node) in self._read
        }
        scales = {self._final(value): tuple(stated) for value, stated in self._scales.items()}
        quantized = {self._final(value): codes for value, codes in self._quantized.items()}
        found_again = [requantized(node, weights) for node, weights in self._weighted]
        weighted = frozenset(one.node for one in found_again)
        return PlainModel(model, scales, read, weighted, found_again, quantized, self._borders)

    # Nodes --------------------------------------------------------------------------------------------------------

    def _take_out(self, one: QuantizationNode) -> None:
        constant = self._weights.get(one.source) or self._graph.constant(one.source)
        if constant is not None:
            self._take_out_constant(one, constant)
        elif not one.is_per_tensor:
            self._refusals.add(
                one.name, one.source, f"an activation has {one.scale.size} scales, per channel along axis {one.axis}"
            )
        elif one.is_quantize:
            real = self._real.get(one.source, one.source)
            self._state(real, float(one.scale[0]))
            self._real[one.result] = real
            self._scale_of[one.result] = float(one.scale[0])
            self._quantized.setdefault(real, one.result)
        else:
            self._dequantize(one)

    def _dequantize(self, one: QuantizationNode) -> None:
        real, scale = self._real.get(one.source, one.source), float(one.scale[0])
        if one.source in self._scale_of and self._scale_of[one.source] != scale:
            stated = self._scale_of[one.source]
            self._refusals.add(
                one.name, one.source, f"it was quantized by {stated:.7g} and is dequantized by {scale:.7g}"
            )
        elif one.source not in self._scale_of and one.source in self._inputs:
            self._borders[one.source] = scale
            self._state(real, scale)
            self._quantized.setdefault(real, one.source)
        elif one.source not in self._scale_of:
            self._refusals.add(one.name, one.source, "its input is not quantized by the model")
        self._real[one.result] = real
        self._dequantized.add(one.result)

    def _take_out_constant(self, one: QuantizationNode, constant: PlainWeights | Array) -> None:
        """Weights, or a bias in INT32."""
        if isinstance(constant, PlainWeights):
            # The dequantization behind a quantization of weights.
            weights = attrs.evolve(constant, name=one.result, scale=one.spread(constant.codes.shape))
        else:
            codes = constant
            if one.is_quantize:
                codes = np.clip(np.rint(constant.astype(np.float32) / one.spread(constant.shape)), -128, 127)
                codes = codes.astype(np.int8)
            weights = PlainWeights(one.result, codes, one.spread(codes.shape))
        if self._clips_weights and weights.codes.dtype == np.int8:
            weights = weights.clipped()
        self._weights[one.result] = weights
        if not one.is_quantize:
            self._constants[one.result] = weights.values

    def _keep(self, node: NodeProto) -> None:
        moved = self._weights.get(node.input[0]) if node.input and node.op_type in MOVING_OPERATORS else None
        others = [self._graph.constant(value) for value in node.input[1:]] if moved is not None else []
        if moved is not None and all(one is not None for one in others):
            self._weights[node.output[0]] = moved.moved(node, [one for one in others if one is not None])
        if node.op_type in WEIGHTED_OPERATORS and node.input[1] in self._weights:
            self._weighted.append((node, self._weights[node.input[1]]))
        codes = {self._scale_of[value] for value in node.input if value in self._scale_of}
        if codes:
            self._carry_codes(node, codes)
        for value in set(used_names(node)).difference(node.input) & (self._real.keys() | self._weights.keys()):
            self._refusals.add(node_name(node), value, "a branch or the body of a loop reads it")
        for index, value in enumerate(node.input):
            if value in self._dequantized:
                self._read.setdefault(id(node), set()).add(self._real[value])
            node.input[index] = self._real.get(value, value)

    def _carry_codes(self, node: NodeProto, scales: set[float]) -> None:
        """A node that computes on codes gives codes of the same scale, if it only moves them."""
        if node.op_type not in _MOVES_CODES or len(scales) > 1:
            found = ", ".join(f"{scale:.7g}" for scale in sorted(scales))
            self._refusals.add(
                node_name(node), str(node.input[0]), f"{node.op_type} computes on INT8 codes of the scale {found}"
            )
            return
        (scale,) = scales
        for value in node.output:
            self._scale_of[value] = scale
            self._state(value, scale)
            self._quantized.setdefault(value, value)
        self._read.setdefault(id(node), set()).update(self._real[value] for value in node.input if value in self._real)

    def _state(self, value: str, scale: float) -> None:
        stated = self._scales.setdefault(value, [])
        if scale not in stated:
            stated.append(scale)

    # Borders ------------------------------------------------------------------------------------------------------

    def _name_outputs(self, kept: Sequence[NodeProto]) -> list[NodeProto]:
        """Give values the names of the outputs that their pairs gave; an identity where they have to keep their own."""
        producers = {value: node for node in kept for value in node.output}
        renamed: dict[str, str] = {}
        added: list[NodeProto] = []
        for output in [name for name in self._real if self._graph.is_output(name)]:
            real = self._real[output]
            if output in self._scale_of:
                self._borders[output] = self._scale_of[output]
            if real in producers and real not in renamed and not self._graph.is_output(real):
                renamed[real] = output
            else:
                source = renamed.get(real, real)
                added.append(self._graph.new_node("Identity", [source], name=f"{output}_Identity", output=output))
        for node in kept:
            node.input[:] = [renamed.get(value, value) for value in node.input]
            node.output[:] = [renamed.get(value, value) for value in node.output]
        self._renamed.update(renamed)
        return [*kept, *added]

    def _final(self, value: str) -> str:
        return self._renamed.get(value, value)

    def _declare_real_borders(self, model: ModelProto) -> None:
        """Inputs and outputs that were INT8 are FLOAT."""
        for info in (*model.graph.input, *model.graph.output):
            if info.name in self._borders:
                info.type.tensor_type.elem_type = TensorProto.FLOAT
