"""Elementwise layers: unary, binary with broadcasting, and selection by a condition."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from dryfit.network.data_types import DataType
from dryfit.network.layer import ALL_INPUTS, Inputs, Layer, LayerOwner, layer_kind
from dryfit.network.layers.shape_inference import broadcast_shapes, check_same_types
from dryfit.network.tensor import Tensor, TensorSpec


class ElementWiseOperation(enum.Enum):
    """TensorRT's `ElementWiseOperation`; operations from MOD on are ONNX's, the last TFLite's, and host only."""

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
    SQUARED_DIFFERENCE = "squared_difference"

    __hash__ = object.__hash__  # as for `DataType`

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
        """Whether operands and result are integers, treated as bits."""
        return self in _BITWISE


_Binary = ElementWiseOperation
_LOGICAL = frozenset({_Binary.AND, _Binary.OR, _Binary.XOR})
_COMPARISONS = frozenset({_Binary.EQUAL, _Binary.GREATER, _Binary.LESS, _Binary.GREATER_EQUAL, _Binary.LESS_EQUAL})
_BITWISE = frozenset(
    {_Binary.BITWISE_AND, _Binary.BITWISE_OR, _Binary.BITWISE_XOR, _Binary.SHIFT_LEFT, _Binary.SHIFT_RIGHT}
)
_HOST_ONLY = _BITWISE | {_Binary.MOD, _Binary.FMOD, _Binary.GREATER_EQUAL, _Binary.LESS_EQUAL}
_HOST_ONLY |= {_Binary.SQUARED_DIFFERENCE}


@layer_kind("elementwise")
class Elementwise(Layer):
    """`op(x, y)` of each pair of elements. The inputs have equal ranks, and extents of 1 broadcast.

    Both inputs must have the same type, except for the exponent of POW (host only).

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
        """Return the broadcast shape, with type BOOL for comparisons and otherwise the type of the first input."""
        x, y = self.required(inputs, 0), self.required(inputs, 1)
        if x.dtype is not y.dtype and self.op is not ElementWiseOperation.POW:
            raise self.problem(
                "Both inputs must have the same type",
                found=f"{x.dtype.text} and {y.dtype.text}",
                remedy="Add a cast layer",
            )
        is_bool = x.dtype is DataType.BOOL
        if self.op.is_logical and not is_bool:
            raise self.problem(
                f"{self.op.name} requires BOOL inputs",
                found=x.dtype.text,
                allowed="BOOL",
                remedy="Add a cast or comparison layer",
            )
        if self.op.is_bitwise and not x.dtype.is_integer:
            raise self.problem(
                f"{self.op.name} requires integer inputs",
                found=x.dtype.text,
                allowed="integer types",
                remedy="Add a cast layer",
            )
        if is_bool and not self.op.is_logical and self.op is not ElementWiseOperation.EQUAL:
            raise self.problem(f"{self.op.name} requires numeric inputs", found="BOOL", remedy="Add a cast layer")
        shape = broadcast_shapes(self, x.shape, y.shape)
        dtype = DataType.BOOL if self.op.is_comparison else x.dtype
        is_first = shape is x.shape and dtype is x.dtype and x.value is None
        return [x if is_first else TensorSpec(shape, dtype)]


class UnaryOperation(enum.Enum):
    """TensorRT's `UnaryOperation`; BITWISE_NOT is ONNX's, RSQRT TFLite's, and both are host only."""

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
    RSQRT = "rsqrt"

    @property
    def is_host_only(self) -> bool:
        """Whether TensorRT lacks the operation."""
        return self in (UnaryOperation.BITWISE_NOT, UnaryOperation.RSQRT)


_Unary = UnaryOperation
_FOR_INTEGERS = frozenset({_Unary.ABS, _Unary.NEG, _Unary.SIGN, _Unary.BITWISE_NOT})


@layer_kind("unary")
class Unary(Layer):
    """`op(x)` of each element. ROUND rounds half to even.

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
        """Return the input's shape, with type BOOL for ISINF and ISNAN and otherwise the input's type."""
        x = self.required(inputs, 0)
        if self.op is _Unary.NOT:
            fits, allowed = x.dtype is DataType.BOOL, "BOOL"
        elif self.op is _Unary.BITWISE_NOT:
            fits, allowed = x.dtype.is_integer, "integer types"
        elif self.op in _FOR_INTEGERS:
            fits, allowed = x.dtype is not DataType.BOOL, "numbers"
        else:
            fits = x.dtype.is_floating_point or x.dtype is DataType.INT8
            allowed = "floating-point types and INT8"
        if not fits:
            raise self.problem(
                f"{self.op.name} does not support this type",
                found=x.dtype.text,
                allowed=allowed,
                remedy="Add a cast layer",
            )
        return [TensorSpec(x.shape, DataType.BOOL if self.op in (_Unary.ISINF, _Unary.ISNAN) else x.dtype)]


@layer_kind("select")
class Select(Layer):
    """`condition ? then_input : else_input`, element by element (inputs 0, 1, 2). Extents of 1 broadcast.

    Source: TensorRT `ISelectLayer`; ONNX `Where`.
    """

    needs_real_numbers = True
    inputs_of_one_type = (1, 2)

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the broadcast shape, with the type of the two values."""
        condition, then_input, else_input = (self.required(inputs, index) for index in range(3))
        if condition.dtype is not DataType.BOOL:
            raise self.problem(
                "The condition must be BOOL",
                found=condition.dtype.text,
                allowed="BOOL",
                remedy="Add a cast or comparison layer",
            )
        dtype = check_same_types(self, then_input, else_input)
        return [TensorSpec(broadcast_shapes(self, condition.shape, then_input.shape, else_input.shape), dtype)]


class AddElementwise:
    """The builder methods of layers that compute element by element."""

    def add_elementwise(self: LayerOwner, input1: Tensor, input2: Tensor, op: ElementWiseOperation) -> Elementwise:
        """Add an elementwise layer; TensorRT's `add_elementwise`."""
        return self.add_layer(Elementwise(op=op), [input1, input2])

    def add_unary(self: LayerOwner, input: Tensor, op: UnaryOperation) -> Unary:
        """Add a unary layer; TensorRT's `add_unary`."""
        return self.add_layer(Unary(op=op), [input])

    def add_select(self: LayerOwner, condition: Tensor, then_input: Tensor, else_input: Tensor) -> Select:
        """Add a select layer; TensorRT's `add_select`."""
        return self.add_layer(Select(), [condition, then_input, else_input])
