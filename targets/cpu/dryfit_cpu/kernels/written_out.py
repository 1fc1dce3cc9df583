"""A quantized operator as the group that it stands for: dequantizations, a layer of real numbers, a quantization.

So every kernel that sums products of quantized values computes those of quantize methods too: it sees a group of the
form that it knows, with the numbers of the method in the place of the device's. UINT8 codes count as INT8 ones that are
128 lower, as their zero points are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.quantization.methods.call import OperatorCall, call_of
from dryfit.quantization.methods.definitions.weighted import (
    TAIL_ROUNDING,
    output_range,
    real_bias,
    weighted,
    weighted_multipliers,
)
from dryfit.quantization.methods.method import MethodRule, QuantizeMethod
from dryfit.quantization.methods.requantization import Encoding, Requantization, Steps
from dryfit.quantization.rounding import RoundingMode
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Specs
from dryfit_cpu import codes
from dryfit_cpu.kernels import requantization
from dryfit_cpu.kernels.integer_endings import DOUBLES, MANTISSAS, SHIFTS, MethodNumbers
from dryfit_cpu.kernels.integer_stages import Quantized, StageGrid
from dryfit_cpu.kernels.integer_weights import IntegerWeights, is_within_int32, quantized_kernel
from dryfit_cpu.kernels.requantization import StatedGroup

CODE_TYPES = frozenset({DataType.INT8, DataType.UINT8})
_SCALINGS = {
    (Steps.REAL, Encoding.FLOAT32): (codes.REAL_PRODUCTS, frozenset(RoundingMode)),
    (Steps.REAL, Encoding.FLOAT64): (codes.DOUBLE_PRODUCTS, frozenset({RoundingMode.HALF_AWAY_FROM_ZERO})),
    (Steps.ONE_STEP, Encoding.Q31): (codes.ONE_STEP, frozenset({RoundingMode.HALF_UP})),
    (Steps.TWO_STEP, Encoding.Q31): (
        codes.TWO_STEPS,
        frozenset({RoundingMode.HALF_UP, RoundingMode.HALF_AWAY_FROM_ZERO}),
    ),
}
"""Steps and encoding of a record to the code of how sums are scaled, and the roundings that native functions have."""

_NUMBERS_OF_SAMPLES = (1, 2, 3, 8, 64)
"""Tried where any number may come: libraries tell one from several, and whole vectors from parts of them."""


def offset_of(dtype: DataType) -> int:
    """By how much codes of a type are lower as INT8 ones."""
    return 128 if dtype is DataType.UINT8 else 0


def written_out(layer: QuantizedOperator, specs: Specs | None = None) -> StatedGroup | None:
    """The group that a weighted operator stands for; None where no kernel of such groups computes what its method says.

    Specs may know more of the tensors than the network does.
    """
    inputs = [None if tensor is None else _spec(tensor, specs) for tensor in layer.inputs]
    if inputs[0] is None or not all(_is_known(spec, index) for index, spec in enumerate(inputs) if spec is not None):
        return None
    call = _call(layer, inputs)
    rule = _rule(layer, call)
    numbers = None if rule is None or rule.definition is not weighted else _numbers(call, rule)
    if rule is None or numbers is None or not _has_one_grid(call):
        return None
    geometry = LayerGroup(_layers(layer, call))
    found = quantized_kernel(geometry.main, geometry)
    weights = None if found is None else _weights(geometry, found[0], call, numbers)
    return None if weights is None else StatedGroup(geometry.layers, weights, _steps(call, rule, numbers))


def _spec(tensor: Tensor, specs: Specs | None) -> TensorSpec:
    return tensor.spec if specs is None else specs[tensor.name]


def _is_known(spec: TensorSpec, index: int) -> bool:
    """Whether an input is a constant or, of the data, has a shape that is known but for the number of samples."""
    return spec.value is not None or (index == 0 and -1 not in spec.shape[1:])


def _call(layer: QuantizedOperator, inputs: Sequence[TensorSpec | None], samples: int = 1) -> OperatorCall:
    """The use that a layer is. Data that is known when it runs has zeros, and as many samples where none are said."""
    return call_of(layer, [None if spec is None else _values(spec, samples) for spec in inputs])


def _values(spec: TensorSpec, samples: int) -> Array:
    if spec.value is not None:
        return spec.value
    shape = [samples if extent < 0 else extent for extent in spec.shape]
    return np.broadcast_to(np.zeros((), spec.dtype.numpy), shape)


def _rule(layer: QuantizedOperator, call: OperatorCall) -> MethodRule | None:
    """The rule of a use; None where the layer may have any number of samples, and another rule for some.

    Packed numbers are those of one rule.
    """
    method = layer.operator_method()
    if not isinstance(method, QuantizeMethod):
        return None
    rule, own = method.rule_for(call), [None if tensor is None else tensor.spec for tensor in layer.inputs]
    if own[0] is not None and -1 in own[0].shape[:1]:
        others = (method.rule_for(_call(layer, own, samples)) for samples in _NUMBERS_OF_SAMPLES)
        return rule if all(one is rule for one in others) else None
    return rule


def _has_one_grid(call: OperatorCall) -> bool:
    """Whether data has one scale and weights have no zero point, once they are INT8."""
    data, weights = call.operand(0), call.operand(1)
    if data.scale is None or weights.zero_point is None or data.dtype not in CODE_TYPES:
        return False
    return not (np.asarray(weights.zero_point) - offset_of(weights.dtype)).any()


def _layers(layer: QuantizedOperator, call: OperatorCall) -> list[Layer]:
    """The layers, in a network of their own; what they read and write has the names that it has outside."""
    network, data, kernel = Network(), call.operand(0), call.operand(1)
    values = kernel.values if kernel.dtype is DataType.INT8 else (kernel.values ^ np.uint8(128)).view(np.int8)

    def add(part: str, kind: Layer, *inputs: Tensor) -> Tensor:
        kind.name = f"{layer.name}, {part}"
        return network.add_layer(kind, inputs).outputs[0]

    x = network.add_input(cast("Tensor", layer.inputs[0]).name, DataType.INT8, data.values.shape)
    w = add("codes", Constant(shape=values.shape, weights=values))
    one = add("scale", Constant(shape=(), weights=np.ones((), np.float32)))
    dequantized = [add("data", Dequantize(), x, one), add("weights", Dequantize(), w, one)]
    quantized = add("result", Quantize(), add("sums", layer.real_layer(), *dequantized), one)
    network.rename_tensor(quantized, layer.outputs[0].name)
    return [one for one in network.layers if not isinstance(one, Constant)]


def _weights(geometry: LayerGroup, kernel: Array, call: OperatorCall, numbers: MethodNumbers) -> IntegerWeights | None:
    """What the group multiplies by; None where sums may overflow."""
    data = call.operand(0)
    zero_point = data.one_zero_point - offset_of(data.dtype)
    bias = call.operands[2] if len(call.operands) > 2 else None
    has_whole = bias is not None and bias.dtype.is_integer
    whole = (
        bias.values.astype(np.int32).reshape(-1) if bias is not None and has_whole else np.zeros(len(kernel), np.int32)
    )
    source = Quantized(cast("Tensor", geometry.prologue[0].inputs[0]), StageGrid(1.0, zero_point))
    weights = IntegerWeights(source, kernel, np.ones(len(kernel)), whole, None, numbers)
    return weights if is_within_int32(weights) else None


def _numbers(call: OperatorCall, rule: MethodRule) -> MethodNumbers | None:
    """What scales the sums, by output channels; None where no native function scales so."""
    record = rule.requantization
    if record is None or record.zero_point_first or TAIL_ROUNDING in rule.options:
        return None
    scaling, roundings = _SCALINGS.get((record.steps, record.encoding), (codes.REAL_PRODUCTS, frozenset()))
    if record.rounding not in roundings:
        return None
    factors, channels = weighted_multipliers(call, record), _channels(call)

    def spread(values: Array, dtype: type) -> Array:
        return np.ascontiguousarray(np.broadcast_to(np.reshape(values, -1), channels), dtype)

    added = real_bias(call)
    bias = None if added is None else spread(added, np.float32)
    ones = np.ones(channels, np.float32)
    if scaling == codes.REAL_PRODUCTS:
        return MethodNumbers(scaling, spread(factors.real, np.float32), {}, bias)
    if bias is not None:
        return None
    if factors.fixed is None:
        return MethodNumbers(scaling, ones, {DOUBLES: spread(factors.real, np.float64)})
    mantissa, shift = factors.fixed.mantissa, factors.fixed.shift
    return MethodNumbers(scaling, ones, {MANTISSAS: spread(mantissa, np.int32), SHIFTS: spread(shift, np.int32)})


def _channels(call: OperatorCall) -> int:
    """Output channels."""
    return call.output_shape[-1 if call.layer.kind == "matrix_multiply" else 1]


def _steps(call: OperatorCall, rule: MethodRule, numbers: MethodNumbers) -> requantization.GroupRequantization:
    """What happens to the sums: one rounding within the limits."""
    low, high = output_range(call, rule)
    zero_point = call.output_grid[1]
    return requantization.GroupRequantization(
        limits=(float(low - zero_point), float(high - zero_point)),
        zero_point=zero_point - offset_of(call.to_type),
        rounding=cast("Requantization", rule.requantization).rounding,
        scaling=numbers.scaling,
    )
