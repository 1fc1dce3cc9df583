"""Matrix multiply: products of matrices or vectors, over broadcast batch axes."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import ALL_INPUTS, Inputs, Layer, LayerOwner, Specs, layer_kind
from dryfit.network.layers.shape_inference import broadcast_shapes
from dryfit.network.tensor import Shape, Tensor, TensorSpec


class MatrixOperation(enum.Enum):
    """What an operand is before the product; TensorRT's `MatrixOperation`."""

    NONE = "none"
    TRANSPOSE = "transpose"
    VECTOR = "vector"


@layer_kind("matrix_multiply")
class MatrixMultiply(Layer):
    """`op0(input 0) @ op1(input 1)`.

    The last two axes are a matrix; with VECTOR the last axis is a vector, and has no axis in the output. The axes
    before are batch: equal in number, an extent of 1 is repeated.

    Attributes:
        op0, op1: what each operand is.

    Source: TensorRT `IMatrixMultiplyLayer`.
    """

    sums_products = True
    inputs_of_one_type = ALL_INPUTS

    op0: MatrixOperation = MatrixOperation.NONE
    op1: MatrixOperation = MatrixOperation.NONE

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """`[*batch, rows of input 0, columns of input 1]`, without the axis of a vector; the inputs' type."""
        x, y = self.required(inputs, 0), self.required(inputs, 1)
        if x.dtype is not y.dtype or x.dtype is DataType.BOOL:
            raise self.problem("Both inputs have one type of number", found=f"{x.dtype.name} and {y.dtype.name}")
        batch0, rows, inner0 = self._split(x.shape, self.op0, 0)
        batch1, columns, inner1 = self._split(y.shape, self.op1, 1)
        if -1 not in (inner0, inner1) and inner0 != inner1:
            raise self.problem(
                "The extents that are summed over differ",
                found=f"{x.shape} {self.op0.name} and {y.shape} {self.op1.name}",
            )
        batch = broadcast_shapes(self, batch0, batch1)
        return [TensorSpec((*batch, *rows, *columns), x.dtype)]

    def _split(self, shape: Shape, op: MatrixOperation, index: int) -> tuple[Shape, Shape, int]:
        """(batch axes, the axis that stays, if any, the extent summed over) of an operand."""
        needed = 1 if op is MatrixOperation.VECTOR else 2
        if len(shape) < needed:
            raise self.problem(
                f"Input {index} has too few axes for {op.name}", found=shape, allowed=f"rank {needed} or more"
            )
        if op is MatrixOperation.VECTOR:
            return shape[:-1], (), shape[-1]
        rows, columns = shape[-2:]
        # The inner axis is the columns of the first operand and the rows of the second; transposing swaps them.
        if (index == 0) == (op is MatrixOperation.NONE):
            return shape[:-2], (rows,), columns
        return shape[:-2], (columns,), rows

    def multiply_accumulates(self, specs: Specs) -> int:
        """Each output element sums over the shared axis."""
        shared = -2 if self.op0 is MatrixOperation.TRANSPOSE else -1
        return specs[self.outputs[0].name].least_elements * max(specs[self.connected_input(0).name].shape[shared], 1)


class AddMatrixMultiply:
    """The builder method of matrix products."""

    def add_matrix_multiply(
        self: LayerOwner, input0: Tensor, op0: MatrixOperation, input1: Tensor, op1: MatrixOperation
    ) -> MatrixMultiply:
        """Add a matrix product; TensorRT's `add_matrix_multiply`."""
        return self.add_layer(MatrixMultiply(op0=op0, op1=op1), [input0, input1])
