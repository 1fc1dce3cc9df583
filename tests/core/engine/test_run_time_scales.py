"""Scales that a caller gives in each run, and scales that a network computes."""

from __future__ import annotations

import numpy as np
import pytest

import dryfit
from dryfit import DataType
from dryfit.errors import ExecutionError
from dryfit.reference.executor import run_reference

X = np.random.default_rng(1).standard_normal((1, 3, 16, 16)).astype(np.float32)


def network_of(to_type=DataType.INT8, shape=(), *, is_computed=False):
    network = dryfit.Network("scales")
    x, scale = network.add_input("x", DataType.FLOAT, X.shape), network.add_input("scale", DataType.FLOAT, shape)
    if is_computed:
        scale = network.add_unary(scale, dryfit.UnaryOperation.NEG).get_output(0)
        scale.name = "negated"
    quantize = network.add_quantize(x, scale, to_type)
    quantize.axis = 1 if shape else -1
    dequantize = network.add_dequantize(quantize.get_output(0), scale)
    dequantize.axis = quantize.axis
    network.mark_output(dequantize.get_output(0))
    return network


def context_of(network, device):
    config = dryfit.BuilderConfig()
    config.default_device_type = device
    return dryfit.Builder().build_engine(network, config).create_execution_context()


@pytest.mark.parametrize(
    ("to_type", "device"),
    [
        (DataType.INT8, "CPU"),
        (DataType.INT8, "GPU"),
        (DataType.FP8, "CPU"),
        (DataType.FP8, "GPU"),
        (DataType.INT4, "CPU"),
    ],
)
@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("is_computed", [False, True])
def test_each_run_quantizes_by_the_scales_of_that_run(to_type, shape, is_computed, device):
    network = network_of(to_type, shape, is_computed=is_computed)
    context = context_of(network, device)
    for scale in (0.5, 0.25, 0.02):
        feeds = {"x": X, "scale": np.full(shape, -scale if is_computed else scale, np.float32)}
        (result,) = context.run(feeds).values()
        (expected,) = run_reference(network, feeds).values()
        # A device that rounds ties otherwise differs by none here: no value lies between two codes.
        assert np.array_equal(result, expected)


@pytest.mark.parametrize("wrong", [-1.0, 0.0, np.nan, np.inf])
def test_a_scale_that_is_given_is_finite_and_positive(wrong):
    network, feeds = network_of(), {"x": X, "scale": np.array(wrong, np.float32)}
    context = context_of(network, "CPU")
    for run in (context.run, lambda given: run_reference(network, given)):
        with pytest.raises(ExecutionError, match=r"tensor 'scale': Scales must be finite and positive \(found"):
            run(feeds)
    assert np.isfinite(*context.run(feeds | {"scale": np.array(0.5, np.float32)}).values()).all()


def test_a_wrong_scale_among_many_is_named_by_its_index():
    context = context_of(network_of(shape=(3,)), "CPU")
    with pytest.raises(ExecutionError, match=r"found -2.0 at index \[1\]"):
        context.run({"x": X, "scale": np.array([1, -2, 1], np.float32)})


@pytest.mark.parametrize("wrong", [1.0, np.nan, np.inf])
def test_a_scale_that_is_computed_is_finite_and_not_negative(wrong):
    network, feeds = network_of(is_computed=True), {"x": X, "scale": np.array(wrong, np.float32)}
    for run in (context_of(network, "CPU").run, lambda given: run_reference(network, given)):
        with pytest.raises(ExecutionError, match="tensor 'negated': Scales must be finite and positive"):
            run(feeds)


def test_zeros_may_have_a_computed_scale_of_0():
    (result,) = run_reference(network_of(is_computed=True), {"x": X, "scale": np.array(0, np.float32)}).values()
    assert (result == 0).all()
