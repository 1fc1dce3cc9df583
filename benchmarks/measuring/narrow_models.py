"""Products with INT4 weights in blocks along K, as ONNX has them and as ONNX Runtime's own operator takes them."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from measuring.layer_models import NODE

Array = np.ndarray[Any, Any]

BLOCK = 32
_OPSETS = (("", 21), ("com.microsoft", 1))


@attrs.frozen(eq=False)
class NarrowProduct:
    """`x[rows, depth] @ weights[depth, columns]`.

    Attributes:
        rows, depth, columns: extents.
        codes: INT4 values as INT8 `[depth, columns]`.
        scales: FP32 `[depth / 32, columns]`.
    """

    rows: int
    depth: int
    columns: int
    codes: Array
    scales: Array

    @classmethod
    def of(cls, rows: int, depth: int, columns: int) -> NarrowProduct:
        """Random weights of these extents."""
        generator = np.random.default_rng(0)
        codes = generator.integers(-8, 8, (depth, columns)).astype(np.int8)
        return cls(rows, depth, columns, codes, generator.uniform(0.001, 0.002, (depth // BLOCK, columns)).astype("f"))

    @property
    def input(self) -> Array:
        """Normal numbers `[rows, depth]`."""
        return np.random.default_rng(1).standard_normal((self.rows, self.depth)).astype(np.float32)

    def dequantized_model(self) -> bytes:
        """DequantizeLinear with blocks, and MatMul."""
        weights = helper.make_tensor("w", TensorProto.INT4, self.codes.shape, self.codes.reshape(-1))
        nodes = [
            helper.make_node("DequantizeLinear", ["w", "s"], ["real"], axis=0, block_size=BLOCK),
            helper.make_node("MatMul", ["x", "real"], ["y"], NODE),
        ]
        return self._model(nodes, [weights, numpy_helper.from_array(self.scales, "s")])

    def real_model(self) -> bytes:
        """MatMul with the dequantized weights."""
        weights = self.codes * np.repeat(self.scales, BLOCK, axis=0)
        return self._model(
            [helper.make_node("MatMul", ["x", "w"], ["y"], NODE)], [numpy_helper.from_array(weights, "w")]
        )

    def contributed_model(self, accuracy_level: int) -> bytes:
        """ONNX Runtime's MatMulNBits; the level is 1 for FP32 and 4 for INT8 activations."""
        blocks = (self.codes + 8).astype(np.uint8).T.reshape(self.columns, -1, BLOCK)
        packed = blocks[..., ::2] | blocks[..., 1::2] << 4
        node = helper.make_node(
            "MatMulNBits",
            ["x", "w", "s"],
            ["y"],
            NODE,
            domain="com.microsoft",
            K=self.depth,
            N=self.columns,
            bits=4,
            block_size=BLOCK,
            accuracy_level=accuracy_level,
        )
        scales = numpy_helper.from_array(np.ascontiguousarray(self.scales.T).reshape(-1), "s")
        return self._model([node], [numpy_helper.from_array(packed, "w"), scales])

    def _model(self, nodes: list[onnx.NodeProto], constants: list[onnx.TensorProto]) -> bytes:
        graph = helper.make_graph(
            nodes,
            NODE,
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [self.rows, self.depth])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [self.rows, self.columns])],
            constants,
        )
        opsets = [helper.make_opsetid(domain, version) for domain, version in _OPSETS]
        return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())
