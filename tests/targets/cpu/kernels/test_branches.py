"""Branches of one input are one convolution, wherever the window of one has room for the others."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.builder.networks import activation, named

import dryfit
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ScaleMode
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.window_layer import PaddingMode
from dryfit.network.network import Network
from dryfit.reference.executor import run_reference


def convolution(network, x, name, window, **parameters):
    generator, maps = np.random.default_rng(len(name)), x.shape[1]
    shape = (maps, x.shape[1] // parameters.get("num_groups", 1), *window)
    kernel = (generator.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
    bias = generator.standard_normal(maps).astype(np.float32)
    layer = Convolution(num_output_maps=maps, kernel_size_nd=window, kernel=kernel, bias=bias, **parameters)
    return named(network.add_layer(layer, [x]), name)


def normalization(network, x, name):
    shift, scale = np.random.default_rng(1).standard_normal((2, x.shape[1])).astype(np.float32)
    return named(network.add_scale(x, ScaleMode.CHANNEL, shift, scale), name)


def combined(network, a, b, name, operation=ElementWiseOperation.SUM):
    return named(network.add_elementwise(a, b, operation), name)


def built(network, *flags):
    config = dryfit.BuilderConfig()
    config.default_device_type = dryfit.DeviceType.CPU
    for flag in flags:
        config.set_flag(flag)
    return dryfit.Builder().build_engine(network, config)


def groups_and_errors(network, *flags):
    """The layers of each operation, and how far the results are from the references'."""
    engine = built(network, *flags)
    feeds = {
        tensor.name: np.random.default_rng(3).standard_normal(tensor.shape).astype(tensor.dtype.numpy)
        for tensor in network.inputs
    }
    (expected,) = run_reference(network, feeds).values()
    tolerance = 1e-4 if expected.dtype == np.float32 else 2e-2
    for one in (engine, dryfit.Engine.load(engine.serialize())):
        (found,) = one.create_execution_context().run(feeds).values()
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    return [list(operation.layers) for operation in engine.plan.operations]


def block(shape=(1, 8, 7, 9), dtype=DataType.FLOAT, *, window=(3, 3), stride=1, groups=1, dilation=1):
    """A block of MobileOne before a ReLU: normalization where it may be, 1 x 1 window and two larger ones, in sums."""
    network = Network("block")
    x = network.add_input("x", dtype, shape)
    padding = tuple(dilation * (extent // 2) for extent in window)
    same = {"stride_nd": (stride,) * len(window), "num_groups": groups}
    wide = {**same, "pre_padding": padding, "post_padding": padding, "dilation_nd": (dilation,) * len(window)}
    skip = normalization(network, x, "skip") if stride == 1 else None
    value = convolution(network, x, "one", (1,) * len(window), **same)
    value = value if skip is None else combined(network, value, skip, "sum 1")
    for name in ("wide 1", "wide 2"):
        value = combined(network, convolution(network, x, name, window, **wide), value, f"sum of {name}")
    network.mark_output(activation(network, value, "relu"))
    return network


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2},
        {"groups": 8},
        {"groups": 8, "stride": 2},
        {"groups": 2},
        {"dilation": 2},
        {"window": (3, 1)},
        {"window": (5,), "shape": (2, 8, 11)},
        {"shape": (1, 64, 14, 14), "groups": 8},
        {"window": (3, 3, 3), "shape": (1, 8, 4, 5, 6)},
    ],
)
def test_branches_of_one_input_are_one_convolution(options):
    network = block(**options)
    (group,) = groups_and_errors(network)
    assert group[0] == "wide 1"
    assert group[-1] == "relu"
    assert sorted(group) == sorted(layer.name for layer in network.layers)


def test_branches_in_fp16_are_rounded_once():
    (group,) = groups_and_errors(block(dtype=DataType.HALF))
    assert len(group) == len(block().layers)


@pytest.mark.parametrize("groups", [1, 8])
def test_the_input_itself_and_differences_are_branches_too(groups):
    network = Network("mixer")
    x = network.add_input("x", DataType.FLOAT, (2, 8, 6, 5))
    around = {"pre_padding": (1, 1), "post_padding": (1, 1), "num_groups": groups}
    mixed = combined(network, convolution(network, x, "wide", (3, 3), **around), x, "mixed")
    less = combined(network, mixed, normalization(network, x, "norm"), "less", ElementWiseOperation.SUB)
    half = network.add_constant((1, 1, 1, 1), np.full((1, 1, 1, 1), 0.5, np.float32)).get_output(0)
    network.mark_output(combined(network, x, combined(network, less, half, "half", ElementWiseOperation.PROD), "sum"))
    (group,) = groups_and_errors(network)
    assert group[0] == "wide"
    assert len(group) == 6


def test_a_sum_with_the_input_alone_is_added_and_not_part_of_the_weights():
    network = Network("residual")
    x = network.add_input("x", DataType.FLOAT, (1, 8, 6, 5))
    wide = convolution(network, x, "wide", (3, 3), pre_padding=(1, 1), post_padding=(1, 1))
    network.mark_output(combined(network, wide, x, "sum"))
    assert groups_and_errors(network) == [["wide", "sum"]]
    packed = built(network).plan.operations[0].weights
    weights = network.layers[0].kernel
    assert not any(np.isclose(array, weights[0, 0, 1, 1] + 1).any() for array in packed.values())


@pytest.mark.parametrize(
    "beside",
    [
        {"pre_padding": (3, 1), "post_padding": (1, 3)},  # beyond the window on one side
        {"pre_padding": (2, 2), "post_padding": (2, 2), "num_groups": 2},  # of other channels
        {"padding_mode": PaddingMode.SAME_UPPER},  # padding depends on the image
    ],
)
def test_windows_that_do_not_fit_into_each_other_are_convolutions_of_their_own(beside):
    network = Network("apart")
    x = network.add_input("x", DataType.FLOAT, (1, 8, 9, 9))
    wide = convolution(network, x, "wide", (5, 5), pre_padding=(2, 2), post_padding=(2, 2))
    network.mark_output(combined(network, wide, convolution(network, x, "other", (5, 5), **beside), "sum"))
    assert len(groups_and_errors(network)) == 2


def test_branches_are_refitted():
    network = block()
    engine = built(network, dryfit.BuilderFlag.REFIT)
    assert len(engine.plan.operations) == 1
    twin = block()
    for layer in twin.layers:
        if isinstance(layer, Convolution):
            layer.kernel = layer.kernel[::-1].copy()
    refitter = dryfit.Refitter(engine)
    for layer in twin.layers:
        if isinstance(layer, Convolution):
            refitter.set_weights(layer.name, dryfit.WeightsRole.KERNEL, layer.kernel)
    assert refitter.refit_cuda_engine()
    feeds = {"x": np.random.default_rng(3).standard_normal((1, 8, 7, 9)).astype(np.float32)}
    (expected,) = run_reference(twin, feeds).values()
    (found,) = engine.create_execution_context().run(feeds).values()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
