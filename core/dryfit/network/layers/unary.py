"""Unary: one mathematical function of each element."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.tensor import Tensor, TensorSpec


class UnaryOperation(enum.Enum):
    """TensorRT's `UnaryOperation`; BITWISE_NOT is ONNX's and host only."""

    EXP = "exp"
    LOG = "log"
    SQRT = "sqrt"
    RECIP = "recip"
    ABS = "abs"
    NEG = "neg"
    SIN = "sin"
    COS = "cos"
    TAN = "tan"
    SINH = "sinh"
    COSH = "cosh"
    ASIN = "asin"
    ACOS = "acos"
    ATAN = "atan"
    ASINH = "asinh"
    ACOSH = "acosh"
    ATANH = "atanh"
    CEIL = "ceil"
    FLOOR = "floor"
    ERF = "erf"
    NOT = "not"
    SIGN = "sign"
    ROUND = "round"
    ISINF = "isinf"
    ISNAN = "isnan"

    BITWISE_NOT = "bitwise_not"

    @property
    def is_host_only(self) -> bool:
        """Whether TensorRT lacks the operation."""
        return self is UnaryOperation.BITWISE_NOT


_Op = UnaryOperation
_FOR_INTEGERS = frozenset({_Op.ABS, _Op.NEG, _Op.SIGN, _Op.BITWISE_NOT})


@layer_kind("unary")
class Unary(Layer):
    """`op(x)` of each element. ROUND is half to even.

    Attributes:
        op: the operation.

    Source: TensorRT `IUnaryLayer`.
    """

    needs_real_numbers = True

    op: UnaryOperation

    @property
    def is_host_only(self) -> bool:
        """Whether TensorRT lacks the operation."""
        return self.op.is_host_only

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """The input's shape; BOOL for ISINF and ISNAN, else the input's type."""
        x = self.required(inputs, 0)
        if self.op is _Op.NOT:
            fits, allowed = x.dtype is DataType.BOOL, "BOOL"
        elif self.op is _Op.BITWISE_NOT:
            fits, allowed = x.dtype.is_integer, "integer types"
        elif self.op in _FOR_INTEGERS:
            fits, allowed = x.dtype is not DataType.BOOL, "numbers"
        else:
            fits = x.dtype.is_floating_point or x.dtype is DataType.INT8
            allowed = "floating-point types and INT8"
        if not fits:
            raise self.problem(f"{self.op.name} does not take this type", found=x.dtype.name, allowed=allowed)
        return [TensorSpec(x.shape, DataType.BOOL if self.op in (_Op.ISINF, _Op.ISNAN) else x.dtype)]


class AddUnary:
    """The builder method of unary layers."""

    def add_unary(self: LayerOwner, input: Tensor, op: UnaryOperation) -> Unary:
        """Add a unary operation; TensorRT's `add_unary`."""
        return self.add_layer(Unary(op=op), [input])
