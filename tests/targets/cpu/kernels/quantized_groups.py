"""Builds groups of quantized layers as quantizers write them, and runs them by integer kernels and by definition."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from tests.targets.cpu.group_runner import Guarded, run_group, specs_of
from tests.targets.cpu.kernels.integer_definition import requantized

from dryfit.network.data_types import DataType
from dryfit.network.layer_copies import copy_layer
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.network import Network
from dryfit.quantization.rounding import RoundingMode
from dryfit.reference.registry import evaluate
from dryfit.target.group import LayerGroup
from dryfit_cpu.kernels.integer_weights import integer_weights
from dryfit_cpu.kernels.requantization import in_units, requantization_of

X_SCALE = float(np.float32(0.05))
"""Of a chain's input, as FP32 has it."""


def random_bytes(shape, seed=7):
    """INT8 values of the whole range."""
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


class QuantizedChain:
    """A network of quantized layers that grows at its end, and the layers of its one group.

    Where it `is_cut`, what the group reads comes from a ReLU of other codes.
    """

    def __init__(self, shape, scale=0.05, zero_point=0, *, is_cut=False):
        self.network = Network()
        self.layers = []
        self.fill = self.whole_bias = self.real_bias = None
        self.scale, self.zero_point = scale, zero_point
        self._least = zero_point if is_cut else -128
        self._quantized = self.network.add_input("before" if is_cut else "x", DataType.INT8, shape)
        self.value = None
        self.dequantize()
        if is_cut:
            self.activate(None)
            self.quantize(scale, zero_point)
            self.network.rename_tensor(self.value, "x")
            self.layers.clear()
            self.dequantize()

    @property
    def group(self):
        return LayerGroup(self.layers)

    @property
    def specs(self):
        return specs_of(self.network)

    def constant(self, values):
        return self.network.add_layer(Constant(shape=values.shape, weights=values), []).get_output(0)

    def add(self, layer, inputs):
        self.layers.append(self.network.add_layer(layer, inputs))
        self.value = self.layers[-1].get_output(0)
        return self.layers[-1]

    def grid(self, scale, zero_point=0):
        """The inputs that name a grid: a zero point of 0 is left out."""
        scale = self.constant(np.array(scale, np.float32))
        return [scale, self.constant(np.array(zero_point, np.int8))] if zero_point else [scale]

    def dequantize(self):
        """The value, which is quantized, as real numbers."""
        self.add(Dequantize(), [self._quantized, *self.grid(self.scale, self.zero_point)])

    def quantize(self, scale, zero_point=0):
        """The value rounded in units of a scale."""
        self.scale, self.zero_point = scale, zero_point
        self.add(Quantize(), [self.value, *self.grid(scale, zero_point)])
        self._quantized = self.value

    def convolve(self, weights, scales, bias, *, zero_points=None, **parameters):
        """A convolution with quantized weights, with a zero point each output channel or without.

        A bias of INT32 is in units of the products, and dequantized to FP32 as an ONNX model's is when it is read.
        """
        if bias is not None and bias.dtype == np.int32:
            self.whole_bias, bias = bias, bias.astype(np.float32) * (scales * np.float32(self.scale))
        else:
            self.real_bias = bias
        layer = Convolution(num_output_maps=weights.shape[0], kernel_size_nd=weights.shape[2:], bias=bias, **parameters)
        self.multiply(layer, weights, Dequantize(axis=0), scales, zero_points)

    def multiply(self, layer, weights, dequantize, scales, zero_points=None):
        """A layer with quantized weights."""
        inputs = [self.constant(weights), self.constant(scales)]
        inputs += [] if zero_points is None else [self.constant(zero_points)]
        real = self.network.add_layer(dequantize, inputs)
        self.layers.append(real)
        self.add(layer, [self.value, real.get_output(0)])

    def residual(self, scale, *, rounds_first, operation=ElementWiseOperation.SUM, zero_point=0, shape=None):
        """Combine another quantized tensor with the value, after a rounding or at once."""
        if rounds_first:
            self.quantize(0.04, zero_point)
            self.dequantize()
        other = self.network.add_input("residual", DataType.INT8, shape or self.value.shape)
        real = self.network.add_layer(Dequantize(), [other, *self.grid(scale, zero_point)])
        self.layers.append(real)
        layer = self.network.add_elementwise(self.value, real.get_output(0), operation)
        self.layers.append(layer)
        self.value = layer.get_output(0)

    def activate(self, limits):
        """A ReLU, or with limits a clip."""
        layer = self.network.add_activation(self.value, ActivationType.CLIP if limits else ActivationType.RELU)
        layer.alpha, layer.beta = limits or (0.0, 0.0)
        self.layers.append(layer)
        self.value = layer.get_output(0)

    def feeds(self, layouts: Mapping[str, str] | None = None):
        """Random inputs, or all of one value where `fill` says so."""
        feeds = {}
        for seed, tensor in enumerate(self.network.inputs):
            name = "x" if tensor.name == "before" else tensor.name
            layout = (layouts or {}).get(name, "channels_last")
            array = Guarded.new(tensor.shape, np.int8, layout).array
            array[...] = random_bytes(tensor.shape, seed) if self.fill is None else self.fill
            if name == "x":
                np.maximum(array, self._least, out=array)
            feeds[name] = array
        return feeds

    def layer_by_layer(self):
        """The group's output by the references of its layers, which round where the network says."""
        values = dict(self.feeds())
        for layer in self.network.layers:
            results = evaluate(layer, [values[tensor.name] for tensor in layer.inputs])
            values.update((tensor.name, array) for tensor, array in zip(layer.outputs, results, strict=True))
        return values[self.value.name]


def biased_to_ties(shape, weights, **parameters):
    """A chain whose convolution has one sum a channel, which in units of 0.25 its real bias brings to a tie."""
    chain = QuantizedChain(shape)
    chain.fill, K = 1, len(weights)
    generator = np.random.default_rng(3)
    scales = generator.uniform(0.5, 1.5, K).astype(np.float32)
    scaled = weights.sum(axis=(1, 2, 3)).astype(np.float32) * in_units(scales.astype(np.float64) * X_SCALE, 0.25)
    ties = generator.integers(-60, 60, K).astype(np.float32) + np.float32(0.5)
    chain.convolve(weights, scales, (ties - scaled) * np.float32(0.25), **parameters)
    return chain


def in_one_step(chain):
    """What a chain's scaled sums are not, in units of 0.25: the bias added with no rounding before, or in the sums."""
    sums, scales, bias = exact_convolution(chain)
    yield (sums * in_units(scales, 0.25).astype(np.float64) + in_units(bias, 0.25)).astype(np.float32)
    yield (sums + np.rint(bias / scales)).astype(np.float32) * in_units(scales, 0.25)


def exact_convolution(chain):
    """The INT32 sums of a chain's (de)convolution by its reference in FP64, the scales of sums, and a real bias."""
    weights, layer = integer_weights(chain.group), chain.group.main
    bare = copy_layer(layer)
    codes, _, *zeros = (tensor.spec.value for tensor in layer.inputs[1].producer.inputs)
    bare.kernel = codes.astype(np.float64)
    if zeros:
        bare.kernel -= zeros[0].reshape(-1, *[1] * (codes.ndim - 1))
    bare.bias = None if chain.whole_bias is None else chain.whole_bias.astype(np.float64)
    network, zero_point = Network(), weights.source.zero_point
    network.add_layer(bare, [network.add_input("x", DataType.DOUBLE, chain.network.inputs[0].shape)])
    sums = evaluate(bare, [chain.feeds()["x"].astype(np.float64) - zero_point])[0]
    assert (sums == np.rint(sums)).all()
    spread = (slice(None), *[None] * len(layer.kernel_size_nd))
    bias = None if chain.real_bias is None else chain.real_bias.astype(np.float64)[spread]
    return sums.astype(np.int32), weights.scales[spread], bias


def assert_like_definition(chain, kernel, exact, layouts=None, rounding=RoundingMode.HALF_TO_EVEN):
    """The kernel gives the definition's bits, with one thread and with three; returns the result.

    Args:
        chain: a quantized chain.
        kernel: what runs it.
        exact: INT32 sums, their FP64 scales, and a real bias in FP64 or None; all broadcast to the sums.
        layouts: of inputs by name, and of the output "y".
        rounding: the device's.
    """
    if isinstance(layouts, RoundingMode):
        layouts, rounding = None, layouts
    group = chain.group
    assert kernel.accepts(group, chain.specs)
    sums, scales, bias = exact
    steps = requantization_of(group, rounding)
    feeds = chain.feeds(layouts)
    bias = None if bias is None else in_units(bias, steps.unit)
    expected = requantized(sums, in_units(scales, steps.unit), steps, feeds.get(steps.residual), bias)
    layout = (layouts or {}).get("y", "channels_last")
    actual = run_group(chain.network, chain.layers, feeds, kernel=kernel, layout=layout, rounding=rounding)
    np.testing.assert_array_equal(actual, expected)
    parallel = run_group(chain.network, chain.layers, feeds, kernel=kernel, layout=layout, threads=3, rounding=rounding)
    np.testing.assert_array_equal(parallel, actual, err_msg="the result depends on the number of threads")
    return actual
