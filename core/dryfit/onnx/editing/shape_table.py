"""Shapes and element types of all values of a graph, by ONNX's own inference; and values that follow from constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper, numpy_helper, shape_inference

from dryfit.errors import OnnxImportError
from dryfit.network.tensor import Array

LARGEST_SHAPE_ELEMENTS = 1024
"""Initializers up to this size are shown to the inference, which looks for shapes among them; of weights it needs the
shape alone. Our choice: no shape is as long."""


class ShapeTable:
    """What ONNX's shape inference says of a graph.

    Args:
        model: everything but the nodes. Weights are not copied.
        nodes: the nodes.

    Raises:
        OnnxImportError: the shapes do not fit together.
    """

    def __init__(self, model: ModelProto, nodes: Sequence[NodeProto]) -> None:
        self._graph_name = model.graph.name
        self._setting = ModelProto(ir_version=max(model.ir_version, 4), opset_import=model.opset_import)
        self._setting.functions.extend(model.functions)
        self._setting.graph.name = model.graph.name
        self._types: dict[str, TypeProto] = {}
        self._shown: dict[str, TensorProto] = {}
        for tensor in model.graph.initializer:
            self.add_constant(tensor)
        skeleton = ModelProto()
        skeleton.CopyFrom(self._setting)
        skeleton.graph.node.extend(nodes)
        skeleton.graph.output.extend(model.graph.output)
        skeleton.graph.input.extend(info for info in model.graph.input if info.name not in self._types)
        self._infer(skeleton, self._types)

    def add_constant(self, tensor: TensorProto) -> None:
        """An initializer."""
        self._types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
        if math.prod(tensor.dims) <= LARGEST_SHAPE_ELEMENTS and tensor.data_location != TensorProto.EXTERNAL:
            self._shown[tensor.name] = tensor

    def add_nodes(self, nodes: Sequence[NodeProto]) -> None:
        """Nodes whose inputs are known, or computed by one before them; in execution order.

        Raises:
            OnnxImportError: the shapes do not fit together.
        """
        skeleton = ModelProto()
        skeleton.CopyFrom(self._setting)
        skeleton.graph.node.extend(nodes)
        self._infer(skeleton, {name for node in nodes for name in node.input if name in self._types})

    def knows(self, name: str) -> bool:
        """Whether the rank and the element type of a value are known."""
        kind = self._types.get(name)
        return kind is not None and kind.tensor_type.HasField("shape")

    def _infer(self, skeleton: ModelProto, given: Collection[str]) -> None:
        """Take in what the inference says of a graph whose inputs `given` are values that are known already."""
        for name in given:
            if name in self._shown:
                skeleton.graph.initializer.append(self._shown[name])
            else:
                skeleton.graph.input.append(ValueInfoProto(name=name, type=self._types[name]))
        try:
            inferred = shape_inference.infer_shapes(skeleton, data_prop=True).graph
        except (shape_inference.InferenceError, ValueError) as error:
            raise OnnxImportError(
                "The shapes in the model are inconsistent",
                where=f"graph {self._graph_name!r}",
                found=error,
                remedy="Fix the shapes, or export the model again",
            ) from error
        for info in (*inferred.value_info, *inferred.output, *inferred.input):
            self._types[info.name] = info.type

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """The shape of a value; None for a dynamic extent, and for a value of unknown rank."""
        kind = self._types.get(name)
        if kind is None or not kind.tensor_type.HasField("shape"):
            return None
        return tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in kind.tensor_type.shape.dim)

    def data_type(self, name: str) -> int:
        """ONNX's number of the element type; 0 where it is not known."""
        kind = self._types.get(name)
        return 0 if kind is None else kind.tensor_type.elem_type


def known_values(node: NodeProto, constant: Callable[[str], Array | None]) -> Array | None:
    """The output of a constant, or of an identity or reshape of constants; None for other nodes."""
    if node.op_type == "Constant" and not node.input:
        for one in node.attribute:
            if one.name == "value":
                return numpy_helper.to_array(one.t)
            if one.name in ("value_float", "value_floats"):
                return np.asarray(helper.get_attribute_value(one), np.float32)
            if one.name in ("value_int", "value_ints"):
                return np.asarray(helper.get_attribute_value(one), np.int64)
    if node.op_type not in ("Identity", "Reshape"):
        return None
    inputs = [constant(name) for name in node.input]
    if any(value is None for value in inputs) or inputs[0] is None:
        return None
    if node.op_type == "Identity":
        return inputs[0]
    target = [int(extent) for extent in inputs[1]] if len(inputs) > 1 and inputs[1] is not None else []
    if any(one.name == "allowzero" and one.i for one in node.attribute) or not target:
        return None
    try:
        return inputs[0].reshape(
            [inputs[0].shape[axis] if extent == 0 else extent for axis, extent in enumerate(target)]
        )
    except (ValueError, IndexError):
        return None
