"""An implicitly quantized network as an explicit ONNX model: a Q/DQ pair wherever the build would round to INT8.

The builder's design says what is rounded. Nodes and values keep their names; a value that is quantized everywhere is
read through its pair, and where it is an output of the model the pair gives it its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto

from dryfit.attrs_classes import frozen
from dryfit.builder.design import Design
from dryfit.errors import OnnxImportError
from dryfit.network.layer import Layer
from dryfit.onnx.editing.model_graph import ModelGraph, node_name
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.translation.explicit_weights import ExplicitWeights, quantization_plan
from dryfit.onnx.translation.quantization_nodes import carried_value


@frozen
class ExplicitModel:
    """What came of it.

    Attributes:
        model: the Q/DQ model.
        scales: tensor of the implicit network to its scale, for all that are quantized somewhere.
        quantized: the same tensors to the names of the values that hold their codes.
        weights: names of the nodes whose weights are quantized.
        notes: what could not be said in ONNX, in sentences that name the node.
    """

    model: ModelProto
    scales: Mapping[str, float]
    quantized: Mapping[str, str]
    weights: Sequence[str]
    notes: Sequence[str]


def explicit_model(
    model: ModelProto, external: ExternalData, design: Design, *, stores_integers: bool = True
) -> ExplicitModel:
    """The Q/DQ model of a design.

    Args:
        model: what the designed network was imported from, as `prepared_model` gives it; it stays as it is.
        external: where its external data may lie.
        design: of an implicitly quantized build.
        stores_integers: whether weights are INT8 initializers with a dequantization; else FP32 ones that are quantized
            and dequantized.

    Raises:
        BuildError: weights are not finite.
        OnnxImportError: tensors that would be quantized are not FLOAT; all of them are named.
    """
    return _Writer(model, external, design, stores_integers=stores_integers).written()


class _Writer:
    """Adds the pairs to one graph, in one walk over its nodes."""

    def __init__(self, model: ModelProto, external: ExternalData, design: Design, *, stores_integers: bool) -> None:
        self._graph = ModelGraph(model, external)
        self._plan = quantization_plan(design)
        self._nodes = {node_name(node): node for node in self._graph.nodes}
        self._weights = ExplicitWeights(self._graph, self._nodes, stores_integers=stores_integers)
        self._values = {name for node in self._graph.nodes for name in (*node.input, *node.output)}
        self._types = {name: self._graph.data_type(name) for name in self._values}
        self._quantized: dict[str, str] = {}
        self._pairs: dict[str, tuple[list[NodeProto], str]] = {}
        self._names: dict[str, str] = {}
        self.notes: list[str] = []

    def written(self) -> ExplicitModel:
        stored = {name: scale for name, scale in self._plan.stored.items() if name in self._values}
        chosen = self._reads()
        self._require_float([*stored, *(value for values in chosen.values() for value in values)])
        # Both go into the graph after the last question about its types: a new constant makes these be found anew.
        made = self._weights.made(self._plan.weights)
        whole = {value: self._pair(value, scale, is_whole=True) for value, scale in stored.items()}
        originals = {renamed: value for value, renamed in self._names.items()}
        nodes: list[NodeProto] = []
        placed: set[str] = set()
        for value in whole:
            if self._graph.producer(value) is None:
                self._place(value, nodes, placed)
        for node in self._graph.nodes:
            name = node_name(node)
            if name in made.dropped:
                continue
            nodes += made.before.get(name, ())
            for value, scale in chosen.get(name, {}).items():
                self._pair(value, scale, is_whole=False)
                self._place(value, nodes, placed)
            new = made.instead.get(name, node)
            self._rewire(new, chosen.get(name, {}), whole)
            nodes.append(new)
            for value in list(new.output):
                original = originals.get(value, value)
                if original in whole:
                    self._place(original, nodes, placed)
        self._graph.nodes[:] = nodes
        self._graph.changed()
        self.notes += made.notes
        scales = {name: scale for name, scale in self._plan.scales.items() if name in self._quantized}
        return ExplicitModel(self._graph.model(), scales, self._quantized, made.nodes, self.notes)

    def _reads(self) -> dict[str, dict[str, float]]:
        """Node name to the values that it alone reads through a pair, with their scales."""
        chosen: dict[str, dict[str, float]] = {}
        for tensor, (scale, layers) in self._plan.read.items():
            for layer in layers:
                name, value = self._read(tensor, layer)
                if value is not None:
                    chosen.setdefault(name, {})[value] = scale
                elif not self._is_inside_node(layer, tensor):
                    self.notes.append(
                        f"layer {layer.name!r} rounds {tensor!r} to INT8, but the model has no such tensor: it is "
                        "not quantized"
                    )
        return chosen

    def _read(self, tensor: str, layer: Layer) -> tuple[str, str | None]:
        """The node of a layer and the value by which it reads a tensor, which may be a reshape of it."""
        for name in layer.onnx_nodes:
            node = self._nodes.get(name)
            value = None if node is None else carried_value(self._graph, node, tensor)
            if value is not None:
                return name, value
        return "", None

    def _is_inside_node(self, layer: Layer, tensor: str) -> bool:
        """Whether a tensor exists only between the layers of one node: its values are rounded when they leave it."""
        return tensor not in self._values and bool(layer.onnx_nodes)

    def _require_float(self, values: Sequence[str]) -> None:
        others = [value for value in dict.fromkeys(values) if self._types.get(value, 0) not in (0, TensorProto.FLOAT)]
        if others:
            raise OnnxImportError(
                "Quantized tensors must be FP32: a narrower scale could not represent the scales of the cache",
                found=", ".join(f"{name!r} {TensorProto.DataType.Name(self._types[name])}" for name in others),
                remedy="Convert the model to FP32 first",
            )

    def _pair(self, value: str, scale: float, *, is_whole: bool) -> str:
        """Make the pair of a value; returns the name of what its readers read."""
        if value in self._pairs:
            return self._pairs[value][1]
        graph, source, result = self._graph, value, f"{value}_DequantizeLinear_Output"
        if is_whole and graph.is_output(value):
            self._names[value] = source = graph.fresh_name(f"{value}_QuantizeLinear_Input")
            result = value
        else:
            result = graph.fresh_name(result)
        factors = [
            graph.add_constant(f"{value}_scale", np.array(scale, np.float32)),
            graph.add_constant(f"{value}_zero_point", np.zeros((), np.int8)),
        ]
        codes = graph.fresh_name(f"{value}_QuantizeLinear_Output")
        pair = [
            graph.new_node("QuantizeLinear", [source, *factors], name=f"{value}_QuantizeLinear", output=codes),
            graph.new_node("DequantizeLinear", [codes, *factors], name=f"{value}_DequantizeLinear", output=result),
        ]
        self._pairs[value] = pair, result
        self._quantized[value] = codes
        return result

    def _place(self, value: str, nodes: list[NodeProto], placed: set[str]) -> None:
        if value not in placed:
            placed.add(value)
            nodes += self._pairs[value][0]

    def _rewire(self, node: NodeProto, own: Mapping[str, float], whole: Mapping[str, str]) -> None:
        """Let a node read what is dequantized, and write what its pair quantizes."""
        for index, value in enumerate(node.input):
            if value in whole:
                node.input[index] = whole[value]
            elif value in own:
                node.input[index] = self._pairs[value][1]
        for index, value in enumerate(node.output):
            node.output[index] = self._names.get(value, value)
