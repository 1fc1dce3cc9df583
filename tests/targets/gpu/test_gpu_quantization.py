"""What activations and weights may be quantized to on the GPU."""

import numpy as np
import pytest

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.errors import PlacementError
from dryfit.network.data_types import DataType
from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.network import Network

INT8, FP8, INT4, FP4 = DataType.INT8, DataType.FP8, DataType.INT4, DataType.FP4


def constant(network, *shape, value=0.5):
    return network.add_constant(shape, np.full(shape, value, np.float32)).get_output(0)


def quantized(dtype, scale_shape=(), *, weights=False, block=()):
    """The quantize and the dequantize layer of a tensor of 4 x 32."""
    network = Network("net")
    x = constant(network, 4, 32) if weights else network.add_input("x", DataType.FLOAT, (4, 32))
    axis = 0 if scale_shape == (4,) else -1
    codes = network.add_layer(
        Quantize(to_type=dtype, axis=axis, block_shape=block), [x, constant(network, *scale_shape)]
    )
    back = network.add_layer(
        Dequantize(axis=axis, block_shape=block), [codes.get_output(0), constant(network, *scale_shape)]
    )
    network.mark_output(back.get_output(0))
    return codes, back


def rules(layer):
    verdict = BuilderConfig().can_run_on(layer, "GPU")
    return [one.rule for one in (*verdict.violations, *verdict.warnings)]


@pytest.mark.parametrize("dtype", [INT8, FP8])
def test_activations_have_one_scale(dtype):
    for layer in quantized(dtype, (4,)):
        assert rules(layer) == ["gpu.quantization.activation_scales"]
    for layer in (*quantized(dtype), *quantized(dtype, (1,)), *quantized(dtype, (4,), weights=True)):
        assert rules(layer) == []


def test_the_refusal_names_the_tensor_and_the_number_of_scales():
    layer, _ = quantized(INT8, (4,))
    [found] = BuilderConfig().can_run_on(layer, "GPU").violations
    assert (found.actual, found.allowed) == ("4 for 'x'", "1")
    assert "per-tensor" in found.source


def test_int4_is_for_weights():
    for layer in quantized(INT4):
        assert rules(layer) == ["gpu.quantization.int4_activation"]
    for layer in quantized(INT4, (4, 2), weights=True, block=(1, 16)):
        assert rules(layer) == []


def test_fp4_activations_with_scales_that_are_known_are_only_warned_of():
    for layer in quantized(FP4, (4, 2), block=(1, 16)):
        assert rules(layer) == ["gpu.quantization.fp4_activation"]
        assert BuilderConfig().can_run_on(layer, "GPU").supported
    for layer in quantized(FP4, (4, 2), weights=True, block=(1, 16)):
        assert rules(layer) == []


def test_scales_that_are_computed_from_the_data_are_several():
    network = Network("net")
    x = network.add_input("x", DataType.FLOAT, (4, 32))
    dynamic = network.add_dynamic_quantize(x, 1, 16)
    dynamic.set_input(1, constant(network))
    codes, scales = dynamic.get_output(0), dynamic.get_output(1)
    inner = network.add_dequantize(scales, constant(network))
    outer = network.add_dequantize(codes, inner.get_output(0))
    outer.block_shape = (1, 16)
    network.mark_output(outer.get_output(0))
    assert [rules(layer) for layer in (dynamic, inner, outer)] == [[], [], []]


def test_weights_may_be_moved_between_what_quantizes_and_what_dequantizes_them():
    network = Network("net")
    codes = network.add_quantize(constant(network, 4, 32), constant(network, 4))
    codes.axis = 0
    moved = network.add_shuffle(codes.get_output(0))
    moved.first_transpose = (1, 0)
    back = network.add_dequantize(moved.get_output(0), constant(network, 4))
    back.axis = 1
    assert rules(back) == []


def test_the_host_takes_several_scales_where_it_may():
    _, back = quantized(INT8, (4,))
    config = BuilderConfig()
    with pytest.raises(PlacementError, match="activation_scales"):
        Builder().build_plan(back.network, config)
    config.allow_fallback("CPU")
    plan = Builder().build_plan(back.network, config)
    assert {layer.device for layer in plan.layers} == {"CPU"}
