"""Functions that a model writes as several layers, alone and at the end of sums, against the references."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.targets.cpu.group_runner import assert_like_reference, chosen_kernel, random_feeds, run_group

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag, DeviceType
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation, UnaryOperation
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.network import Network
from dryfit.target.group import LayerGroup
from dryfit_cpu import codes
from dryfit_cpu.kernels.written_functions import written_function

SUM, PROD, DIV, POW = (ElementWiseOperation[name] for name in ("SUM", "PROD", "DIV", "POW"))


class Writer:
    """Adds layers to a network and keeps those that compute something."""

    def __init__(self, network, dtype=DataType.FLOAT):
        self.network, self.dtype, self.layers = network, dtype, []

    def number(self, value, like):
        constant = self.network.add_constant((1,) * len(like.shape), np.full((1,) * len(like.shape), value, np.float32))
        constant.weights = constant.weights.astype(self.dtype.numpy)
        return constant.get_output(0)

    def kept(self, layer):
        self.layers.append(layer)
        return layer.get_output(0)

    def combined(self, a, b, operation):
        b = self.number(b, a) if isinstance(b, float) else b
        return self.kept(self.network.add_elementwise(a, b, operation))

    def activation(self, x, kind, alpha=None, beta=None):
        layer = self.network.add_activation(x, ActivationType[kind])
        if alpha is not None:
            layer.alpha, layer.beta = alpha, beta
        return self.kept(layer)


def silu(w, x):
    return w.combined(w.activation(x, "SIGMOID"), x, PROD)


def quick_gelu(w, x):
    return w.combined(x, w.activation(w.combined(x, 1.702, PROD), "SIGMOID"), PROD)


def hard_swish(w, x):
    return w.combined(x, w.activation(x, "HARD_SIGMOID", 1 / 6, 0.5), PROD)


def hard_swish_by_clip(w, x):
    return w.combined(w.combined(x, w.activation(w.combined(x, 3.0, SUM), "CLIP", 0.0, 6.0), PROD), 6.0, DIV)


def gelu(w, x):
    error = w.kept(w.network.add_unary(w.combined(x, math.sqrt(2), DIV), UnaryOperation.ERF))
    return w.combined(w.combined(x, w.combined(error, 1.0, SUM), PROD), 0.5, PROD)


def gelu_with_half_first(w, x):
    half = w.combined(x, 0.5, PROD)
    error = w.kept(w.network.add_unary(w.combined(x, math.sqrt(0.5), PROD), UnaryOperation.ERF))
    return w.combined(half, w.combined(error, 1.0, SUM), PROD)


def gelu_by_tanh(w, x):
    inner = w.combined(x, w.combined(w.combined(x, 3.0, POW), 0.044715, PROD), SUM)
    bent = w.activation(w.combined(inner, math.sqrt(2 / math.pi), PROD), "TANH")
    return w.combined(w.combined(x, 0.5, PROD), w.combined(bent, 1.0, SUM), PROD)


FORMS = {
    silu: codes.SWISH,
    quick_gelu: codes.SWISH,
    hard_swish: codes.HARD_SWISH,
    hard_swish_by_clip: codes.HARD_SWISH,
    gelu: codes.GELU_ERF,
    gelu_with_half_first: codes.GELU_ERF,
    gelu_by_tanh: codes.GELU_TANH,
}
forms = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
ends_of_sums = pytest.mark.parametrize("form", [hard_swish, hard_swish_by_clip], ids=lambda form: form.__name__)


@forms
def test_a_function_is_found_in_the_layers_that_write_it(form):
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 8, 3, 3))
    writer = Writer(network)
    form(writer, x)
    function, count = written_function(writer.layers, x)
    assert (function.kind, count) == (FORMS[form], len(writer.layers))


def test_the_numbers_of_a_function_are_those_of_the_layers():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 8, 3, 3))
    first, second = Writer(network), Writer(network)
    quick_gelu(first, x)
    hard_swish_by_clip(second, x)
    assert written_function(first.layers, x)[0].alpha == pytest.approx(1.702)
    assert written_function(second.layers, x)[0][1:] == pytest.approx((1 / 6, 0.5))


def test_other_numbers_write_another_function():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 8, 3, 3))
    for divisor, shift, last in (
        (1.5, 1.0, 0.5),
        (math.sqrt(2), 1.001, 0.5),
        (math.sqrt(2), 1.0, 0.6),
        (0.0, 1.0, 0.5),
    ):
        writer = Writer(network)
        error = writer.kept(network.add_unary(writer.combined(x, divisor, DIV), UnaryOperation.ERF))
        writer.combined(writer.combined(x, writer.combined(error, shift, SUM), PROD), last, PROD)
        assert written_function(writer.layers, x) is None


@pytest.mark.parametrize(
    ("slope", "low", "high", "divisor"),
    [
        (1.0, 0.0, -6.0, -6.0),  # all values are clamped to a limit below 0, not to the interval from 0
        (1.0, 0.0, 0.0, 1.0),
        (1.0, -1.0, 6.0, 6.0),
        (1.0, 0.0, 6.0, 5.9),
        (0.0, 0.0, 6.0, 6.0),
        (1e-30, 0.0, 1e20, 1e20),  # the slope would be 0 in FP32
        (1e30, 0.0, 1e-20, 1e-20),  # and here infinite
    ],
)
def test_other_limits_write_another_function_than_hard_swish(slope, low, high, divisor):
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 8, 3, 3))
    writer = Writer(network)
    line = writer.combined(writer.combined(x, slope, PROD), 3.0, SUM)
    writer.combined(writer.combined(x, writer.activation(line, "CLIP", low, high), PROD), divisor, DIV)
    assert written_function(writer.layers, x) is None


def test_what_another_layer_of_the_group_reads_is_not_left_out():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 8, 3, 3))
    writer = Writer(network)
    silu(writer, x)
    writer.combined(writer.layers[1].get_output(0), writer.layers[0].get_output(0), SUM)
    assert written_function(writer.layers, x) is None


# In FP16 the numbers of GELU are not those of the function.
@pytest.mark.parametrize(
    ("form", "dtype"),
    [*((form, DataType.FLOAT) for form in FORMS), (silu, DataType.HALF), (hard_swish, DataType.HALF)],
)
@pytest.mark.parametrize("layout", ["linear", "channels_last", "strided"])
def test_a_written_function_is_one_pass(form, dtype, layout):
    network = Network()
    x = network.add_input("x", dtype, (2, 9, 3, 7))
    writer = Writer(network, dtype)
    form(writer, x)
    feeds = random_feeds(network, np.random.default_rng(0), layout)
    feeds["x"][...] *= 3
    kernel, group = chosen_kernel(network, writer.layers), LayerGroup(writer.layers)
    assert kernel.name == "cpu.pointwise"
    assert kernel.fuses_forks
    assert kernel.fuses(LayerGroup(group.layers[:-1]), group.layers[-1])
    assert_end_is_like_the_reference(network, writer.layers, feeds, layout)


@ends_of_sums
@pytest.mark.parametrize("channels", [5, 16, 40])
@pytest.mark.parametrize("kind", ["pointwise", "winograd", "depthwise", "groups"])
@pytest.mark.parametrize("residual", ["no", "before", "after"])
def test_a_weighted_sum_ends_with_hard_swish(form, channels, kind, residual):
    if kind == "groups":
        channels = 16
    network, generator = Network(), np.random.default_rng(1)
    x = network.add_input("x", DataType.FLOAT, (1, channels, 9, 11))
    groups = {"depthwise": channels, "groups": channels // 4}.get(kind, 1)
    size = 1 if kind == "pointwise" else 3
    weights = generator.standard_normal((channels, channels // groups, size, size)).astype(np.float32) / size
    layer = network.add_convolution_nd(x, channels, (size, size), weights / math.sqrt(channels // groups))
    layer.padding_nd, layer.num_groups = (size // 2, size // 2), groups
    writer = Writer(network)
    value, beside = writer.kept(layer), network.add_input("residual", DataType.FLOAT, (1, channels, 9, 11))
    if residual == "before":
        value = writer.combined(value, beside, SUM)
    value = form(writer, value)
    *before, end = writer.layers
    if residual == "after":
        writer.combined(value, beside, SUM)
    feeds, kernel = random_feeds(network, generator), chosen_kernel(network, writer.layers)
    takes_end = kernel.fuses(LayerGroup(before), end)
    assert takes_end == (kind != "depthwise")
    for layout in ("channels_last", "strided") if takes_end else ():
        assert_end_is_like_the_reference(network, writer.layers, feeds, layout)


@ends_of_sums
def test_a_matrix_product_ends_with_hard_swish(form):
    network, generator = Network(), np.random.default_rng(2)
    x = network.add_input("x", DataType.FLOAT, (1, 13, 24))
    weights = network.add_constant((1, 24, 40), generator.standard_normal((1, 24, 40)).astype(np.float32) / 5)
    writer = Writer(network)
    product = network.add_matrix_multiply(x, MatrixOperation.NONE, weights.get_output(0), MatrixOperation.NONE)
    form(writer, writer.kept(product))
    feeds = random_feeds(network, generator, "linear")
    assert_end_is_like_the_reference(network, writer.layers, feeds, "linear")


def test_special_values_go_through_hard_swish_at_the_end_of_sums():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 16, 1, 6))
    layer = network.add_convolution_nd(x, 16, (1, 1), np.eye(16, dtype=np.float32).reshape(16, 16, 1, 1))
    writer = Writer(network)
    hard_swish(writer, writer.kept(layer))
    feeds = random_feeds(network, np.random.default_rng(0))
    feeds["x"][...] = np.float32([-1e30, -3.0, -0.0, 3.0, 1e30, 7.5])
    found = run_group_ending_in_a_fork(network, [layer, *writer.layers[1:]], feeds)
    np.testing.assert_allclose(found[0, 0, 0], [0.0, 0.0, 0.0, 3.0, 1e30, 7.5], rtol=1e-6, atol=1e-6)


def network_with_an_end(form):
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 8, 4, 4))
    layer = network.add_convolution_nd(x, 8, (1, 1), np.eye(8, dtype=np.float32).reshape(8, 8, 1, 1))
    writer = Writer(network)
    network.mark_output(form(writer, writer.kept(layer)))
    return network


def cpu_config(*flags):
    config = BuilderConfig()
    config.default_device_type = DeviceType.CPU
    for flag in flags:
        config.set_flag(flag)
    return config


@forms
def test_an_engine_runs_a_written_function_as_one_layer_or_as_the_end_of_one(form):
    engine = Engine.load(Builder().build_engine(network_with_an_end(form), cpu_config()).serialize())
    assert engine.num_layers == (1 if FORMS[form] == codes.HARD_SWISH else 2)


@pytest.mark.parametrize("flag", [BuilderFlag.REFIT, BuilderFlag.STRIP_PLAN])
def test_a_function_is_not_taken_for_constants_that_a_refit_may_change(flag):
    written = Builder().build_engine(network_with_an_end(gelu), cpu_config(flag))
    without_constants = Builder().build_engine(network_with_an_end(silu), cpu_config(flag))
    assert written.num_layers > 2
    assert without_constants.num_layers == 2


def assert_end_is_like_the_reference(network, layers, feeds, layout):
    kernel = chosen_kernel(network, layers)
    assert kernel.name != "cpu.reference"
    assert_like_reference(network, layers, feeds, kernel_name=kernel.name, layout=layout, is_checked_by_layer=False)


def run_group_ending_in_a_fork(network, layers, feeds):
    return run_group(network, layers, feeds, is_checked_by_layer=False)
