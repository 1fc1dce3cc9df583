"""Elementwise: one operation on the elements of two tensors, with broadcasting."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import ALL_INPUTS, Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import broadcast_shapes
from dryfit.network.tensor import Tensor, TensorSpec


class ElementWiseOperation(enum.Enum):
    """TensorRT's `ElementWiseOperation`; those from MOD on are ONNX's and host only."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    SUB = "sub"
    DIV = "div"
    POW = "pow"
    FLOOR_DIV = "floor_div"
    AND = "and"
    OR = "or"
    XOR = "xor"
    EQUAL = "equal"
    GREATER = "greater"
    LESS = "less"

    MOD = "mod"
    FMOD = "fmod"
    GREATER_EQUAL = "greater_equal"
    LESS_EQUAL = "less_equal"
    BITWISE_AND = "bitwise_and"
    BITWISE_OR = "bitwise_or"
    BITWISE_XOR = "bitwise_xor"
    SHIFT_LEFT = "shift_left"
    SHIFT_RIGHT = "shift_right"

    @property
    def is_host_only(self) -> bool:
        """Whether TensorRT lacks the operation."""
        return self in _HOST_ONLY

    @property
    def is_comparison(self) -> bool:
        """Whether the result is BOOL for operands of any type."""
        return self in _COMPARISONS

    @property
    def is_logical(self) -> bool:
        """Whether operands and result are BOOL."""
        return self in _LOGICAL

    @property
    def is_bitwise(self) -> bool:
        """Whether operands and result are integers, taken as bits."""
        return self in _BITWISE


_Op = ElementWiseOperation
_LOGICAL = frozenset({_Op.AND, _Op.OR, _Op.XOR})
_COMPARISONS = frozenset({_Op.EQUAL, _Op.GREATER, _Op.LESS, _Op.GREATER_EQUAL, _Op.LESS_EQUAL})
_BITWISE = frozenset({_Op.BITWISE_AND, _Op.BITWISE_OR, _Op.BITWISE_XOR, _Op.SHIFT_LEFT, _Op.SHIFT_RIGHT})
_HOST_ONLY = _BITWISE | {_Op.MOD, _Op.FMOD, _Op.GREATER_EQUAL, _Op.LESS_EQUAL}


@layer_kind("elementwise")
class Elementwise(Layer):
    """`op(x, y)` of each pair of elements; inputs have equal ranks, and an extent of 1 is repeated.

    Both inputs have one type; only the exponent of POW may have another (host only).

    Attributes:
        op: the operation.

    Source: TensorRT `IElementWiseLayer`.
    """

    inputs_of_one_type = ALL_INPUTS

    op: ElementWiseOperation

    @property
    def is_host_only(self) -> bool:
        """Whether TensorRT lacks the operation."""
        return self.op.is_host_only

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The broadcast shape; BOOL for comparisons, else the type of the first input."""
        x, y = self.required(inputs, 0), self.required(inputs, 1)
        if x.dtype is not y.dtype and self.op is not ElementWiseOperation.POW:
            raise self.problem(
                "Both inputs have one type",
                found=f"{x.dtype.name} and {y.dtype.name}",
                remedy="Add a cast layer",
            )
        is_bool = x.dtype is DataType.BOOL
        if self.op.is_logical and not is_bool:
            raise self.problem(f"{self.op.name} takes BOOL", found=x.dtype.name, allowed="BOOL")
        if self.op.is_bitwise and not x.dtype.is_integer:
            raise self.problem(f"{self.op.name} takes integers", found=x.dtype.name, allowed="integer types")
        if is_bool and not self.op.is_logical and self.op is not ElementWiseOperation.EQUAL:
            raise self.problem(f"{self.op.name} takes numbers", found="BOOL", remedy="Add a cast layer")
        shape = broadcast_shapes(self, x.shape, y.shape)
        return [TensorSpec(shape, DataType.BOOL if self.op.is_comparison else x.dtype)]


class AddElementwise:
    """The builder method of elementwise layers."""

    def add_elementwise(self: LayerOwner, input1: Tensor, input2: Tensor, op: ElementWiseOperation) -> Elementwise:
        """Add an elementwise operation; TensorRT's `add_elementwise`."""
        return self.add_layer(Elementwise(op=op), [input1, input2])
