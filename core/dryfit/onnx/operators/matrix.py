"""Matrix products of any rank, einsum and determinants. Gemm has a file of its own."""

from __future__ import annotations

from dryfit.network.layers.einsum import Einsum
from dryfit.network.layers.matrix_multiply import MatrixMultiply, MatrixOperation
from dryfit.onnx.composition import add_plugin
from dryfit.onnx.node import Node
from dryfit.onnx.operand import Operand
from dryfit.onnx.problems import ErrorCode
from dryfit.onnx.registry import operator
from dryfit.onnx.shapes import with_rank


@operator("MatMul")
def matmul(node: Node) -> Operand:
    """Matrix multiply; an operand with one axis is a vector."""
    a, b = node[0], node[1]
    if a.rank < 1 or b.rank < 1:
        raise node.refusal("A matrix product takes no scalars", code=ErrorCode.INVALID_NODE)
    rank_a, rank_b = max(a.rank, 2), max(b.rank, 2)
    batch = max(rank_a, rank_b) - 2
    op_a = MatrixOperation.VECTOR if a.rank == 1 else MatrixOperation.NONE
    op_b = MatrixOperation.VECTOR if b.rank == 1 else MatrixOperation.NONE
    a = with_rank(node, a, batch + (1 if a.rank == 1 else 2))
    b = with_rank(node, b, batch + (1 if b.rank == 1 else 2))
    return node.add(MatrixMultiply(op0=op_a, op1=op_b), a, b)


@operator("Einsum")
def einsum(node: Node) -> Operand:
    """Einsum."""
    equation = node.get_string("equation", "")
    return node.add(Einsum(equation=equation), *(node[index] for index in range(len(node.inputs))))


@operator("Det")
def determinant(node: Node) -> Operand:
    """The layer plugin `Det`."""
    return add_plugin(node, "Det", {}, node[0])[0]
