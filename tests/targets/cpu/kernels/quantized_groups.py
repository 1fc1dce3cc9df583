"""Builds groups of quantized layers as quantizers write them, and runs them by integer kernels and by definition."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from tests.targets.cpu.group_runner import Guarded, run_group, specs_of

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.constant import Constant
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.quantize import Quantize
from dryfit.network.network import Network
from dryfit.quantization.rounding import RoundingMode
from dryfit.reference.registry import evaluate
from dryfit.target.group import LayerGroup
from dryfit_cpu.kernels.integer_definition import requantized
from dryfit_cpu.kernels.integer_weights import integer_weights
from dryfit_cpu.kernels.requantization import multipliers, requantization_of


def random_bytes(shape, seed=7):
    """INT8 values of the whole range."""
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


class QuantizedChain:
    """A network of quantized layers that grows at its end, and the layers of its one group."""

    def __init__(self, shape, scale=0.05):
        self.network = Network()
        self.layers = []
        self.fill = None
        self._quantized = self.network.add_input("x", DataType.INT8, shape)
        self.scale = scale
        self.value = None
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

    def dequantize(self):
        """The value, which is quantized, as real numbers."""
        self.add(Dequantize(), [self._quantized, self.constant(np.array(self.scale, np.float32))])

    def quantize(self, scale):
        """The value rounded in units of a scale."""
        self.scale = scale
        self.add(Quantize(), [self.value, self.constant(np.array(scale, np.float32))])
        self._quantized = self.value

    def convolve(self, weights, scales, bias, **parameters):
        """A convolution with quantized weights."""
        real = self.network.add_layer(Dequantize(axis=0), [self.constant(weights), self.constant(scales)])
        self.layers.append(real)
        layer = Convolution(num_output_maps=weights.shape[0], kernel_size_nd=weights.shape[2:], bias=bias, **parameters)
        self.add(layer, [self.value, real.get_output(0)])

    def residual(self, scale, *, rounds_first):
        """Add another quantized tensor, after a rounding or at once."""
        if rounds_first:
            self.quantize(0.04)
            self.dequantize()
        other = self.network.add_input("residual", DataType.INT8, self.value.shape)
        real = self.network.add_layer(Dequantize(), [other, self.constant(np.array(scale, np.float32))])
        self.layers.append(real)
        layer = self.network.add_elementwise(self.value, real.get_output(0), ElementWiseOperation.SUM)
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
            layout = (layouts or {}).get(tensor.name, "channels_last")
            array = Guarded.new(tensor.shape, np.int8, layout).array
            array[...] = random_bytes(tensor.shape, seed) if self.fill is None else self.fill
            feeds[tensor.name] = array
        return feeds

    def layer_by_layer(self):
        """The group's output by the references of its layers, which round where the network says."""
        values = dict(self.feeds())
        for layer in self.network.layers:
            results = evaluate(layer, [values[tensor.name] for tensor in layer.inputs])
            values.update((tensor.name, array) for tensor, array in zip(layer.outputs, results, strict=True))
        return values[self.value.name]


def exact_convolution(chain):
    """The INT32 sums of a chain's convolution with its bias, by the convolution's reference in FP64."""
    group = chain.group
    weights, layer = integer_weights(group), group.main
    bare = Convolution(
        num_output_maps=layer.num_output_maps,
        kernel_size_nd=layer.kernel_size_nd,
        kernel=weights.kernel.astype(np.float64),
        bias=weights.bias.astype(np.float64),
        num_groups=layer.num_groups,
        stride_nd=layer.stride_nd,
        dilation_nd=layer.dilation_nd,
        pre_padding=layer.pre_padding,
        post_padding=layer.post_padding,
    )
    network = Network()
    network.add_layer(bare, [network.add_input("x", DataType.DOUBLE, chain.network.inputs[0].shape)])
    sums = evaluate(bare, [chain.feeds()["x"].astype(np.float64)])[0]
    assert (sums == np.rint(sums)).all()
    return sums.astype(np.int32), multipliers(weights.scales, 1.0)[:, None, None], weights.scales[:, None, None]


def assert_like_definition(chain, kernel, exact, layouts=None, rounding=RoundingMode.HALF_TO_EVEN):
    """The kernel gives the definition's bits, with one thread and with three; returns the result."""
    if isinstance(layouts, RoundingMode):
        layouts, rounding = None, layouts
    group = chain.group
    assert kernel.accepts(group, chain.specs)
    sums, _, scales = exact
    steps = requantization_of(group, rounding)
    feeds = chain.feeds(layouts)
    expected = requantized(sums, multipliers(scales, steps.unit), steps, feeds.get(steps.residual))
    layout = (layouts or {}).get("y", "channels_last")
    actual = run_group(chain.network, chain.layers, feeds, kernel=kernel, layout=layout, rounding=rounding)
    np.testing.assert_array_equal(actual, expected)
    parallel = run_group(chain.network, chain.layers, feeds, kernel=kernel, layout=layout, threads=3, rounding=rounding)
    np.testing.assert_array_equal(parallel, actual, err_msg="the result depends on the number of threads")
    return actual
