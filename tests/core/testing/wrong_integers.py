"""A sound declaration of integer operators for the small target, and kernels of them with one fault each."""

import attrs
import numpy as np
from tests.core.testing.acme_npu import ARITHMETIC, FORMATS, LIMITS, MANUAL, TARGET

from dryfit.network.data_types import DataType
from dryfit.network.layer_copies import copy_layer
from dryfit.network.layers.convolution import Convolution
from dryfit.quantization.rounding import RoundingMode
from dryfit.reference.registry import reference_of
from dryfit.target.arithmetic import Arithmetic
from dryfit.target.checks import equals, one_of, parameter, quantity
from dryfit.target.formats import LINEAR
from dryfit.target.kernels import kernel
from dryfit.target.limits import rule, rules

CODES = (DataType.INT8, DataType.INT16)


@quantity("operator")
def computed_kind(question):
    return getattr(question.layer, "computes", "")


_TFLITE = (
    rule("method", parameter("method", one_of("tflite")), source=MANUAL, remedy="Take tflite"),
    rule("operator", parameter(computed_kind, equals("convolution")), source=MANUAL, remedy="Fall back"),
)
DECLARATIONS = {
    "limits": attrs.evolve(
        LIMITS,
        rules=[*LIMITS.rules, *rules("quantized_operator", *_TFLITE)],
        supported_kinds=LIMITS.supported_kinds | {"quantized_operator"},
        unsupported={**LIMITS.unsupported, "quantize": "see the manual", "dequantize": "see the manual"},
    ),
    "input_formats": {**FORMATS, **dict.fromkeys(CODES, (LINEAR,))},
    "output_formats": {**FORMATS, **dict.fromkeys(CODES, (LINEAR,))},
    "arithmetic": {
        **ARITHMETIC,
        **{
            dtype: Arithmetic(
                dtype, DataType.INT64, "group", RoundingMode.HALF_AWAY_FROM_ZERO, "documented", source=MANUAL
            )
            for dtype in CODES
        },
    },
}
FIELDS = {"precisions": [*TARGET.precisions, *CODES]}


def _kernel_of(name, computes, codes_of):
    """A kernel of quantized operators that compute a kind: `codes_of(layer, inputs) -> codes`."""

    @kernel(
        name,
        kinds="quantized_operator",
        data_types=CODES,
        accepts=lambda group, specs: group.main.computes == computes,
    )
    def bound(binding):
        layer = binding.group.main
        known = {one.name: binding.specs[one.name].value for one in layer.inputs}
        arrays = [binding.arrays.get(name, value) for name, value in known.items()]
        output = binding.arrays[layer.outputs[0].name]

        def run():
            output[...] = codes_of(layer, arrays)

        return run

    return bound


def _evaluated(layer, arrays, **changes):
    other = copy_layer(layer)
    for name, value in changes.items():
        setattr(other, name, value)
    return layer.operator_method().evaluate(other, arrays)[0]


def _ties_to_even(layer, arrays):
    """Sums are scaled in real numbers, where TFLite multiplies integers and rounds ties up or away from zero."""
    x, weights, bias = (array.astype(np.float64) for array in arrays)
    sums = reference_of(Convolution)(layer.real_layer(), [x - layer.zero_points[0], weights, bias])[0]
    factors = layer.scales[0] * np.float64(layer.scales[1]).reshape(-1, 1, 1) / np.float64(layer.output_scale)
    limits, real = np.iinfo(layer.to_type.numpy), np.array(layer.limits) / float(layer.output_scale)
    low, high = np.clip(real + layer.output_zero_point, limits.min, limits.max)
    return np.clip(np.rint(sums * factors) + layer.output_zero_point, low, high).astype(layer.to_type.numpy)


def _one_scale(layer, arrays):
    scales = (layer.scales[0], np.full_like(layer.scales[1], layer.scales[1].flat[0]), *layer.scales[2:])
    return _evaluated(layer, arrays, scales=scales)


def _narrow(layer, arrays):
    limits = np.iinfo(layer.to_type.numpy)
    return np.clip(_evaluated(layer, arrays), -limits.max, limits.max)


exact = _kernel_of("acme.exact", "convolution", _evaluated)
rounds_ties_to_even = _kernel_of("acme.even", "convolution", _ties_to_even)
forgets_zero_points = _kernel_of(
    "acme.symmetric",
    "convolution",
    lambda layer, arrays: _evaluated(layer, arrays, zero_points=(np.int32(0), *layer.zero_points[1:])),
)
forgets_channels = _kernel_of("acme.per_tensor", "convolution", _one_scale)
forgets_limits = _kernel_of(
    "acme.unlimited", "convolution", lambda layer, arrays: _evaluated(layer, arrays, limits=(-np.inf, np.inf))
)
forgets_the_lowest_code = _kernel_of("acme.narrow", "convolution", _narrow)
