"""Networks of quantized operators for a target: drawn operators side by side, and random operators in a chain.

A device declares them by its limits: it computes INT8, UINT8 or INT16, and its rules let a layer of the kind
`quantized_operator` of a quantize method pass. The numpy definition of the method is the oracle, to the last code.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.errors import DryfitError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layer_copies import copy_layer
from dryfit.network.layers.quantized_operator import UNLIMITED, QuantizedOperator, fields_of_layer
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.passes.quantized_operators.operator_of_group import rule_problem
from dryfit.plugins.quantize_methods import quantize_method, quantize_methods
from dryfit.quantization.methods.method import QuantizeMethod
from dryfit.quantization.methods.operators import OPERATORS, operator_of
from dryfit.reference.executor import run_reference
from dryfit.target.target import Target
from dryfit.testing.example_layers import add_example
from dryfit.testing.operator_cases.habits import RELU, RELU6
from dryfit.testing.operator_cases.operator_case import OperatorCase
from dryfit.testing.quantize_method_checks import drawn_examples
from dryfit.testing.trial_networks import Trial, config_for

Array = np.ndarray[Any, Any]

CODE_TYPES = (DataType.INT8, DataType.UINT8, DataType.INT16)
"""Types of activations of quantized operators."""

_KIND = "quantized_operator"
_ALL_OPERANDS = frozenset({"bias_add", "concat", "eltwise_sum"})
"""Operators whose inputs are all tensors of the network; of others all but the first are constants."""
_KINDS = (
    "activation",
    "concatenation",
    "convolution",
    "deconvolution",
    "elementwise",
    "fully_connected",
    "identity",
    "matrix_multiply",
    "pooling",
    "reduce",
    "resize",
    "shuffle",
    "slice",
    "softmax",
    "unary",
)
_MOVING = ("shuffle", "slice")
"""Kinds that move codes and keep their scale: they are layers of codes in every method."""
_LONGEST, _ATTEMPTS, _MOST_ELEMENTS = 6, 40, 1 << 14
_CASES_OF_AN_OPERATOR, _CASES_ASKED = 12, 4


@frozen
class IntegerCase:
    """What a target computes in integers.

    Attributes:
        method: name of a quantize method.
        dtype: type of the activations.
    """

    method: str
    dtype: DataType

    def __str__(self) -> str:
        return f"{self.method}-{self.dtype.name}"


def integer_cases(target: Target) -> list[IntegerCase]:
    """Return the quantize methods and types of which a target supports some operator; none of a host.

    The kits of the quantize methods test engines for the host.

    Args:
        target: an installed target.
    """
    table = target.limits
    kinds = None if table is None else table.supported_kinds
    if target.segment_rules.is_host or (kinds is not None and _KIND not in kinds):
        return []
    found = [IntegerCase(name, dtype) for name in quantize_methods() for dtype in CODE_TYPES]
    return [one for one in found if one.dtype in target.precisions and any(_supported(target, one, _CASES_ASKED))]


def operator_trial(target: Target, case: IntegerCase) -> tuple[Trial, Mapping[str, OperatorCase]]:
    """Return a network of drawn operators side by side, and the operator of each output.

    The operators include sums that lie on and beside half codes, which tell roundings apart.

    Args:
        target: an installed target.
        case: one of `integer_cases`.
    """
    network, feeds, kept = Network(f"operators of {case}"), dict[str, Array](), dict[str, OperatorCase]()
    for index, one in enumerate(_supported(target, case, _CASES_OF_AN_OPERATOR)):
        name = f"{one.operator}_{index}"
        feeds |= add_operator_case(network, one, case.method, name)
        kept[f"{name}_output"] = one
    config = config_for(target, DataType.FLOAT, fallback=True)
    return Trial(network, config, feeds, list(dict.fromkeys(one.operator for one in kept.values()))), kept


def add_operator_case(network: Network, case: OperatorCase, method: str, name: str) -> dict[str, Array]:
    """Add an operator whose operands are inputs and whose weights and biases are constants; return what to feed.

    Its output is an output of the network, with `_output` behind the name.
    """
    inputs: list[Tensor | None] = []
    feeds: dict[str, Array] = {}
    for index, array in enumerate(case.inputs):
        if array is None:
            inputs.append(None)
        elif index == 0 or case.operator in _ALL_OPERANDS:
            inputs.append(network.add_input(f"{name}_x{index}", DataType.from_numpy(array.dtype), array.shape))
            feeds[f"{name}_x{index}"] = array
        else:
            inputs.append(network.add_constant(array.shape, array).outputs[0])
    layer = copy_layer(case.layer)
    layer.name, layer.method = name, method
    network.mark_output(network.add_layer(layer, inputs).outputs[0])
    return feeds


def _supported(target: Target, case: IntegerCase, most: int) -> Iterator[OperatorCase]:
    """Drawn operators that the method defines and the device supports: the first of so many of each operator."""
    method, config = quantize_method(case.method), config_for(target, DataType.FLOAT)
    for operator in OPERATORS:
        typed = (one for one in drawn_examples(operator) if one.call.code_type is case.dtype)
        defined = (one for one in typed if _is_defined(method, one))
        for one in itertools.islice(defined, most):
            network = Network("one operator")
            add_operator_case(network, one, method.name, "operator")
            if config.can_run_on(network.layer("operator"), target.device):
                yield one


def _is_defined(method: QuantizeMethod, case: OperatorCase) -> bool:
    try:
        method.rule_for(case.call)
    except DryfitError:
        return False
    return True


# Chains ---------------------------------------------------------------------------------------------------------------


@frozen(eq=False)
class _Codes:
    """A tensor of codes and its contents in a trial; `scale` is of one channel where weights have several."""

    tensor: Tensor
    array: Array
    scale: Array
    zero_point: Array

    @property
    def real(self) -> Array:
        """The real numbers that the codes represent, float32."""
        distances = self.array.astype(np.float32) - np.float32(self.zero_point)
        return np.asarray(distances * np.float32(self.scale), np.float32)


def integer_trial(target: Target, case: IntegerCase, seed: int) -> Trial:
    """Return a random network of integer operators that the target supports; the same for the same arguments.

    Scales follow from the numbers that come out, as calibration gives them: asymmetric of 8 bits, symmetric of 16.

    Args:
        target: an installed target.
        case: one of `integer_cases`.
        seed: which network.
    """
    rng = np.random.default_rng(seed)
    config = config_for(target, DataType.FLOAT, fallback=True)
    network = Network(f"integer trial {seed}")
    shape = (1, int(rng.choice([3, 4, 16])), int(rng.choice([8, 13])), 8)
    limits = np.iinfo(case.dtype.numpy)
    data = rng.integers(limits.min, limits.max + 1, shape).astype(case.dtype.numpy)
    x = network.add_input("x", case.dtype, shape)
    made, kinds = [_Codes(x, data, *_range_grid(case.dtype, -2.0, 3.0))], list[str]()
    for _ in range(_ATTEMPTS):
        if len(kinds) == _LONGEST:
            break
        kind, mark = _KINDS[int(rng.integers(len(_KINDS)))], len(network)
        source = made[-int(rng.integers(1, min(2, len(made)) + 1))]
        found = _added(kind, network, source, quantize_method(case.method), rng)
        fits = found is not None and found.array.size <= _MOST_ELEMENTS
        if found is not None and fits and _runs(network.layers[mark:], config, target.device):
            made.append(found)
            kinds.append(kind)
        else:
            network.remove_layers(network.layers[mark:])
    for one in made[1:]:
        if not one.tensor.consumers:
            network.mark_output(one.tensor)
    return Trial(network, config, {"x": data}, kinds)


def _runs(layers: Sequence[Layer], config: BuilderConfig, device: str) -> bool:
    return all(config.can_run_on(layer, device) for layer in layers if layer.kind != "constant")


def _added(kind: str, network: Network, x: _Codes, method: QuantizeMethod, rng: np.random.Generator) -> _Codes | None:
    """An example of a kind as a quantized operator behind codes; None where the method has no such operator."""
    if kind in _MOVING:
        layer = add_example(kind, network, x.tensor, rng)
        if layer is None:
            return None
        alone = Network(kind)
        copied = alone.add_layer(copy_layer(layer), [alone.add_input("x", x.tensor.dtype, x.tensor.shape)])
        alone.mark_output(copied.outputs[0])
        (moved,) = run_reference(alone, {"x": x.array}).values()
        return attrs.evolve(x, tensor=layer.outputs[0], array=moved)
    alone = Network(kind)
    real = add_example(kind, alone, alone.add_input("x", DataType.FLOAT, x.tensor.shape), rng)
    if real is None or operator_of(real) is None:
        return None
    alone.mark_output(real.outputs[0])
    (values,) = run_reference(alone, {"x": x.real}).values()
    operands = _operands(real, network, x, is_per_channel=bool(rng.integers(2)))
    is_bounded = operator_of(real) == "eltwise_sum" or real.is_weighted
    limits = (UNLIMITED, RELU, RELU6)[int(rng.integers(3))] if is_bounded else UNLIMITED
    return _operator(real, network, operands, np.clip(values, *limits), method, limits)


def _operator(
    real: Layer,
    network: Network,
    operands: Sequence[_Codes],
    values: Array,
    method: QuantizeMethod,
    limits: tuple[float, float],
) -> _Codes | None:
    """The operator with the first output grid that the method takes: of the values, of the input, or a fixed one."""
    x = operands[0]
    has_grid = [index != 2 or not real.is_weighted for index in range(len(operands))]
    for scale, zero_point in (
        _range_grid(x.tensor.dtype, float(values.min()), float(values.max())),
        (x.scale, x.zero_point),
        _fixed_grid(x.tensor.dtype),
    ):
        operator = QuantizedOperator(
            computes=real.kind,
            method=method.name,
            fields=fields_of_layer(real),
            scales=tuple(one.scale if has else None for one, has in zip(operands, has_grid, strict=True)),
            zero_points=tuple(one.zero_point if has else None for one, has in zip(operands, has_grid, strict=True)),
            output_scale=scale,
            output_zero_point=zero_point,
            to_type=x.tensor.dtype,
            limits=limits,
        )
        if not rule_problem(operator, [one.tensor.spec for one in operands], method):
            (codes,) = method.evaluate(operator, [one.array for one in operands])
            layer = network.add_layer(operator, [one.tensor for one in operands])
            return _Codes(layer.outputs[0], codes, scale, zero_point)
    return None


def _operands(real: Layer, network: Network, x: _Codes, *, is_per_channel: bool) -> list[_Codes]:
    """The inputs of a layer of real numbers as codes: `x`, weights and bias."""

    def constant(array: Array, scale: Array, zero_point: Any) -> _Codes:
        tensor = network.add_constant(array.shape, array).outputs[0]
        return _Codes(tensor, array, scale, np.broadcast_to(np.int32(zero_point), scale.shape))

    weights, bias = getattr(real, "kernel", None), getattr(real, "bias", None)
    arrays = [one.producer.weights for one in real.inputs if one is not None and _is_constant(one)]  # type: ignore[union-attr]
    arrays = arrays if weights is None else [weights]
    found = [x] * (len(real.connected_inputs) - (len(arrays) if weights is None else 0))
    for array in arrays:
        by_channel = is_per_channel and real.kind in ("convolution", "fully_connected")
        magnitudes = np.abs(array).reshape(len(array), -1).max(axis=1) if by_channel else np.abs(array).max()
        scale = np.asarray(np.maximum(magnitudes, 1e-3) / 127, np.float32)
        steps = np.rint(array / scale.reshape(scale.shape + (1,) * (array.ndim - 1) * by_channel))
        zero_point, dtype = (128, np.uint8) if x.tensor.dtype is DataType.UINT8 else (0, np.int8)
        found.append(constant((steps + zero_point).astype(dtype), scale, zero_point))
    if bias is not None:
        unit = np.asarray(x.scale * found[1].scale, np.float32)
        wide = np.int64 if x.tensor.dtype is DataType.INT16 else np.int32
        found.append(constant(np.rint(bias / unit).astype(wide), np.broadcast_to(unit, bias.shape), 0))
    return found


def _is_constant(tensor: Tensor) -> bool:
    return tensor.producer is not None and tensor.producer.kind == "constant"


def _range_grid(dtype: DataType, low: float, high: float) -> tuple[Array, Array]:
    """Scale and zero point for a range that 0 is in; symmetric of INT16."""
    limits, low, high = np.iinfo(dtype.numpy), min(low, 0.0), max(high, 0.0, 1e-3)
    if dtype is DataType.INT16:
        return np.asarray(max(high, -low) / limits.max, np.float32), np.asarray(0, np.int32)
    scale = np.float32((high - low) / 255)
    return np.asarray(scale), np.asarray(np.clip(limits.min - np.rint(low / scale), limits.min, limits.max), np.int32)


def _fixed_grid(dtype: DataType) -> tuple[Array, Array]:
    """What softmax and sigmoid have in TFLite: results of 0 to 1 over all codes."""
    is_wide = dtype is DataType.INT16
    zero_point = 0 if is_wide else np.iinfo(dtype.numpy).min
    return np.asarray(2.0**-15 if is_wide else 2.0**-8, np.float32), np.asarray(zero_point, np.int32)
