"""What an INT8 engine for a device computes from a network of Q/DQ groups is the device's quantize method."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest

import dryfit
from dryfit.network.data_types import DataType
from dryfit.network.layer_copies import copy_layer
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.convolution import Convolution, Deconvolution, FullyConnected
from dryfit.network.layers.matrix import MatrixMultiply
from dryfit.network.layers.quantized_operator import UNLIMITED, QuantizedOperator, fields_of_layer
from dryfit.plugins.quantize_methods import quantize_method

# The DLA itself takes no Q and DQ layers: a device with its arithmetic and versions does.
DEVICE = """
from dryfit.target.limits import LimitTable
from dryfit.target.target import Platform, Target

KINDS = {"convolution", "deconvolution", "fully_connected", "matrix_multiply", "activation", "quantize", "dequantize"}
TARGET = Target(
    "ACME_METHOD",
    "Acme",
    [Platform("one", "one", "One")],
    limits_at="acme_method:LIMITS",
    arithmetic_at="dryfit_dla.arithmetic:ARITHMETIC",
    software_versions=[(8, 6), (10, 3)],
)
LIMITS = LimitTable("ACME_METHOD", [], supported_kinds=KINDS)
"""
K = 5
LIMITS = {"nothing": UNLIMITED, "relu": (0.0, math.inf), "relu6": (0.0, 6.0)}


@attrs.frozen
class Group:
    """A layer with codes and scales, as a network of Q/DQ layers and as a quantized operator.

    Attributes:
        layer: in no network; its weights are input 1.
        x: INT8 codes of the input.
        weights: INT8 codes.
        axis: of the weights, their scales'; None for one scale.
        scales: of input, weights and output.
        bias: INT32, FP32 or None.
        limits: of the activation behind it.
    """

    layer: object
    x: np.ndarray
    weights: np.ndarray
    axis: int | None
    scales: tuple
    bias: np.ndarray | None
    limits: tuple

    def network(self):
        """Q, DQ, the layer with dequantized weights, an activation, Q."""
        network = dryfit.Network()
        sx, sw, sy = (network.add_constant(one.shape, one).get_output(0) for one in self.scales)
        x = network.add_input("x", DataType.FLOAT, self.x.shape)
        real = network.add_dequantize(network.add_quantize(x, sx).get_output(0), sx).get_output(0)
        weights = network.add_dequantize(network.add_constant(self.weights.shape, self.weights).get_output(0), sw)
        if self.axis is not None:
            weights.axis = self.axis
        layer = copy_layer(self.layer)
        if self.bias is not None:
            layer.bias = self.real_bias
        y = network.add_layer(layer, [real, weights.get_output(0)]).get_output(0)
        if self.limits != UNLIMITED:
            is_relu = math.isinf(self.limits[1])
            activation = network.add_activation(y, ActivationType.RELU if is_relu else ActivationType.CLIP)
            activation.alpha, activation.beta = (0.0, 0.0) if is_relu else self.limits
            y = activation.get_output(0)
        network.mark_output(network.add_quantize(y, sy).get_output(0))
        return network

    @property
    def real_bias(self):
        """The bias in FP32; of INT32 in the unit of the sums, as an importer dequantizes it."""
        return self.bias.astype(np.float32) * np.float32(self.scales[0] * self.scales[1] if self.is_whole else 1)

    @property
    def is_whole(self):
        return self.bias.dtype == np.int32

    def codes(self, method):
        """What a method computes."""
        zeros = tuple(np.zeros(one.shape, np.int32) for one in self.scales)
        operator = QuantizedOperator(
            computes=self.layer.kind,
            method=method,
            fields=fields_of_layer(self.layer),
            scales=self.scales[:2],
            zero_points=zeros[:2],
            output_scale=self.scales[2],
            output_zero_point=zeros[2],
            limits=self.limits,
        )
        inputs = [self.x, self.weights] + ([] if self.bias is None else [self.bias])
        return quantize_method(method).evaluate(operator, inputs)[0]

    def codes_of_engine(self, device, software=None, method=""):
        """What an engine for the device computes, its network asked for a method or for none."""
        builder, network = dryfit.Builder(), self.network()
        network.quantize_method = method
        config = builder.create_builder_config()
        config.default_device_type = device
        if software is not None:
            config.set_software(device, software)
        context = builder.build_engine(network, config).create_execution_context(num_threads=1)
        return next(iter(context.run({"x": self.x.astype(np.float32) * self.scales[0]}).values()))


def group(kind, bias=None, limits="nothing", *, seed=0, powers_of_two=True, per_channel=True):
    """Random codes and scales of any value; or both such that many sums lie half-way between codes."""
    generator = np.random.default_rng(seed)
    step = 16 if powers_of_two else 1

    def codes(*shape):
        return (generator.integers(-128 // step, 128 // step, shape) * step).astype(np.int8)

    def scales(low, high, *shape):
        exponents = generator.integers(low, high, shape) if powers_of_two else generator.uniform(low, high, shape)
        return np.asarray(np.exp2(exponents), np.float32)

    layer, x, weights, axis = {
        "convolution": (Convolution(num_output_maps=K, kernel_size_nd=(2, 3)), codes(2, 3, 6, 7), codes(K, 3, 2, 3), 0),
        "depthwise": (
            Convolution(num_output_maps=K, kernel_size_nd=(3, 3), num_groups=K, pre_padding=(1, 1)),
            codes(1, K, 6, 7),
            codes(K, 1, 3, 3),
            0,
        ),
        "deconvolution": (
            Deconvolution(num_output_maps=K, kernel_size_nd=(2, 3), stride_nd=(2, 2)),
            codes(1, 3, 4, 5),
            codes(3, K, 2, 3),
            1,
        ),
        "fully_connected": (FullyConnected(num_output_channels=K), codes(40, 9, 1, 1), codes(K, 9), 0),
        "matrix_multiply": (MatrixMultiply(), codes(40, 9), codes(9, K), 1),
    }[kind]
    sx, sy = scales(-6, -3), scales(-4, -2)
    sw = np.asarray((scales(-11, -8, K) if per_channel else scales(-11, -8)) * sy / sx)
    if bias == "whole":
        values = (generator.integers(-30, 30, K) * 256 + (0 if powers_of_two else 77)).astype(np.int32)
    else:
        values = None if bias is None else generator.uniform(-3, 3, K).astype(np.float32)
    return Group(layer, x, weights, axis if per_channel else None, (sx, sw, sy), values, LIMITS[limits])


CASES = [
    ("convolution", None, "nothing"),
    ("convolution", "whole", "nothing"),
    ("convolution", "real", "nothing"),
    ("convolution", "whole", "relu"),
    ("convolution", "real", "relu6"),
    ("depthwise", "whole", "relu6"),
    ("deconvolution", "whole", "nothing"),
    ("fully_connected", "whole", "nothing"),
    ("fully_connected", "real", "relu"),
    ("matrix_multiply", None, "nothing"),
]


@pytest.mark.parametrize(
    ("powers_of_two", "per_channel"), [(True, True), (False, False)], ids=["ties_a_scale_a_channel", "any_one_scale"]
)
@pytest.mark.parametrize(("kind", "bias", "limits"), CASES)
def test_an_engine_for_the_gpu_computes_the_method_gpu(kind, bias, limits, powers_of_two, per_channel):
    one = group(kind, bias, limits, powers_of_two=powers_of_two, per_channel=per_channel)
    codes = one.codes("gpu")
    np.testing.assert_array_equal(one.codes_of_engine("GPU"), codes)
    assert len(np.unique(codes)) > 8


@pytest.mark.parametrize(("kind", "bias"), [("convolution", "whole"), ("matrix_multiply", None)])
def test_a_network_asked_for_the_method_computes_what_the_engine_for_the_gpu_does(kind, bias):
    one = group(kind, bias, powers_of_two=False)
    np.testing.assert_array_equal(one.codes_of_engine("CPU", method="gpu"), one.codes_of_engine("GPU"))


@pytest.fixture
def device(install):
    install("acme_method", DEVICE, {"dryfit.targets": {"acme-method": "acme_method:TARGET"}})
    return "ACME_METHOD"


@pytest.mark.parametrize(("software", "method"), [("8.6", "dla-8"), ("10.3", "dla-10")])
@pytest.mark.parametrize("kind", ["convolution", "fully_connected"])
def test_an_engine_with_the_dlas_arithmetic_computes_the_method_of_its_version(device, kind, software, method):
    one = group(kind, "whole", "relu")
    np.testing.assert_array_equal(one.codes_of_engine(device, software), one.codes(method))


@pytest.mark.parametrize("kind", ["convolution", "fully_connected"])
def test_the_methods_of_the_devices_part_where_sums_lie_half_way(kind):
    one = group(kind, "whole")
    assert (one.codes("dla-8") != one.codes("gpu")).any()
    np.testing.assert_array_equal(one.codes("dla-10"), one.codes("gpu"))
