"""Refits of quantized networks: scales that rewrites compared, and dynamic ranges."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.builder.refittable_networks import (
    SCALES,
    built,
    float_network,
    give_all,
    named,
    outputs,
    quantized_network,
    same,
    weights,
)

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.config.enumerations import QuantizationFlag
from dryfit.builder.refit.refitter import Refitter
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.errors import BuildError, NetworkError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.network import Network
from dryfit.network.weights import Weights


def test_a_refit_that_fails_changes_nothing():
    engine = built(quantized_network(weights(1), scales=SCALES), BuilderFlag.REFIT)
    before, plan = outputs(engine), engine.plan
    refitter = Refitter(engine)
    give_all(refitter, quantized_network(weights(2), scales=SCALES))
    refitter.set_named_weights("x_scale CONSTANT", np.array(-1, np.float32))
    with pytest.raises(NetworkError, match=r"Scales must be finite and positive.*x_scale_out"):
        refitter.refit_cuda_engine()
    assert engine.plan is plan
    assert same(outputs(engine), before)


def test_scales_that_a_pass_found_equal_stay_equal_or_are_refused_by_name():
    engine = built(quantized_network(weights(1), scales=SCALES), BuilderFlag.REFIT)
    compared = {name for one in engine.plan.refit.comparisons for name in one.scales}
    assert {"left_scale_out", "right_scale_out"} <= compared
    refitter = Refitter(engine)
    refitter.set_named_weights("left_scale CONSTANT", np.array(0.07, np.float32))
    with pytest.raises(NetworkError) as caught:
        refitter.refit_cuda_engine()
    for words in ("'left_scale_out'", "'right_scale_out'", "0.07", "0.05", "pass 'm", "build an engine from the new"):
        assert words in str(caught.value)
    refitter.set_named_weights("right_scale CONSTANT", np.array(0.07, np.float32))
    refitter.refit_cuda_engine()
    fresh = built(quantized_network(weights(1), scales={**SCALES, "left": 0.07, "right": 0.07}))
    assert same(outputs(engine), outputs(fresh))


def test_scales_that_nobody_compared_are_free_even_to_become_equal():
    engine = built(quantized_network(weights(1), scales={**SCALES, "right": 0.06}), BuilderFlag.REFIT)
    layers = engine.num_layers
    refitter = Refitter(engine)
    refitter.set_named_weights("right_scale CONSTANT", np.array(0.05, np.float32))
    refitter.refit_cuda_engine()
    assert engine.num_layers == layers
    assert same(outputs(engine), outputs(built(quantized_network(weights(1), scales=SCALES))))
    refitter.set_named_weights("right_scale CONSTANT", np.array(0.09, np.float32))
    refitter.refit_cuda_engine()
    assert same(outputs(engine), outputs(built(quantized_network(weights(1), scales={**SCALES, "right": 0.09}))))


def test_weights_that_would_make_another_engine_are_refused_with_the_layers():
    network = Network("twice")
    tensor = network.add_input("x", DataType.FLOAT, (1, 4, 8, 8))
    scale = named(network, network.add_constant((), np.array(0.5, np.float32)), "scale")
    for name in ("first", "second"):
        codes = named(network, network.add_quantize(tensor, scale), f"quantize_{name}")
        tensor = named(network, network.add_dequantize(codes, scale), f"dequantize_{name}")
    network.mark_output(tensor)
    engine = built(network, BuilderFlag.REFIT)
    refitter = Refitter(engine)
    # Codes times this scale overflow, so that the second quantization no longer gives back what the first one gave.
    refitter.set_named_weights("scale CONSTANT", np.array(1e37, np.float32))
    with pytest.raises(BuildError, match=r"'quantize_second' is new.*Build an engine from the new weights"):
        refitter.refit_cuda_engine()
    refitter.set_named_weights("scale CONSTANT", np.array(0.25, np.float32))
    refitter.refit_cuda_engine()


def ranged(network: Network, ranges: dict[str, float]) -> Network:
    for name, bound in ranges.items():
        network.tensor(name).set_dynamic_range(-bound, bound)
    return network


RANGES = {"x": 4.0, "conv_out": 30.0, "norm_out": 40.0, "relu_out": 40.0, "pool_out": 10.0}


def test_dynamic_ranges_are_exchanged_too():
    engine = built(ranged(float_network(weights(1)), RANGES), BuilderFlag.REFIT, BuilderFlag.INT8)
    assert any(one.precision is DataType.INT8 for one in engine.plan.operations)
    refitter = Refitter(Engine.load(engine.serialize()))
    assert set(RANGES) <= set(refitter.get_tensors_with_dynamic_range())
    assert refitter.get_dynamic_range("x") == (-4.0, 4.0)
    assert refitter.set_dynamic_range("x", (-2, 3))
    assert refitter.get_dynamic_range("x") == (-2.0, 3.0)
    with pytest.raises(UnknownNameError, match="tensor with a dynamic range"):
        refitter.set_dynamic_range("z", (-1, 1))
    with pytest.raises(NetworkError, match="two finite numbers"):
        refitter.set_dynamic_range("x", (1, -1))
    refitter = Refitter(engine)
    refitter.set_dynamic_range("x", (-2, 3))
    give_all(refitter, float_network(weights(2)))
    refitter.refit_cuda_engine()
    fresh = ranged(float_network(weights(2)), {**RANGES, "x": 3.0})
    assert same(outputs(engine), outputs(built(fresh, BuilderFlag.INT8)))


def test_weights_of_four_bits_come_packed_or_one_a_byte():
    def network(codes):
        network = Network("narrow")
        x = network.add_input("x", DataType.FLOAT, (1, 4, 8, 8))
        flat = network.add_shuffle(x)
        flat.reshape_dims = (1, 256)
        narrow = named(network, network.add_constant((256, 2), codes), "codes")
        scale = named(network, network.add_constant((2,), np.array([0.5, 0.25], np.float32)), "scale")
        dequantize = network.add_dequantize(narrow, scale)
        dequantize.axis = 1
        weight = named(network, dequantize, "dequantize")
        product = network.add_matrix_multiply(flat.get_output(0), MatrixOperation.NONE, weight, MatrixOperation.NONE)
        network.mark_output(product.get_output(0))
        return network

    rng = np.random.default_rng(3)
    old, new = (rng.integers(-8, 8, (256, 2)).astype(DataType.INT4.numpy) for _ in range(2))
    expected = outputs(built(network(new)))
    for values in (new, Weights(DataType.INT4, Weights(new).tobytes(), new.size)):
        engine = built(network(old), BuilderFlag.REFIT)
        refitter = Refitter(engine)
        refitter.set_named_weights("codes CONSTANT", values)
        refitter.refit_cuda_engine()
        assert same(outputs(engine), expected)


@pytest.mark.parametrize("before_fusion", [False, True])
def test_ranges_that_a_calibrator_found_are_kept(before_fusion):
    """An engine that was calibrated is refitted without samples."""
    config = BuilderConfig()
    config.builder_optimization_level = 0
    config.set_flag(BuilderFlag.INT8)
    config.set_flag(BuilderFlag.REFIT)
    if before_fusion:
        config.set_quantization_flag(QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    rng = np.random.default_rng(0)
    samples = [{"x": rng.standard_normal((1, 4, 8, 8)).astype(np.float32)} for _ in range(4)]
    config.calibrate_with("minmax", samples)
    engine = Engine.load(Builder().build_engine(float_network(weights(1)), config).serialize())
    refitter = Refitter(engine)
    ranges = {name: refitter.get_dynamic_range(name) for name in refitter.get_tensors_with_dynamic_range()}
    assert "conv_out" in ranges
    give_all(refitter, float_network(weights(2)))
    refitter.refit_cuda_engine()
    fresh = float_network(weights(2))
    for name, bounds in ranges.items():
        fresh.tensor(name).set_dynamic_range(*bounds)
    assert same(outputs(engine), outputs(built(fresh, BuilderFlag.INT8)))
