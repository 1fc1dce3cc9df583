from __future__ import annotations

import numpy as np
import pytest
from tests.core.passes.quantization.small_qdq import (
    chain,
    constant,
    convolution,
    dequantize,
    network_with_input,
    optimized,
    pair,
    quantize,
    relu,
    steps,
)

from dryfit.network.data_types import DataType
from dryfit.passes.findings import PassFindings
from dryfit.passes.quantization.cancel_quantizations import CancelQuantizations, all_codes
from dryfit.quantization.rewrites import RewriteAction


def test_quantizations_of_one_tensor_by_equal_scales_become_one():
    network, x = network_with_input()
    for name in "ab":
        network.mark_output(convolution(network, pair(network, x, name), f"conv_{name}"))
    for layer in network.layers:
        layer.onnx_nodes = (f"node of {layer.name}",)
    rewritten, journal = optimized(network)
    assert [layer.name for layer in rewritten if layer.kind == "quantize"] == ["a.q"]
    assert rewritten.layer("a.q").onnx_nodes == ("node of a.q", "node of b.q")
    (step,) = journal.of("b.q")
    assert (step.action, step.over) == (RewriteAction.MERGED, ("a.q",))
    assert step.compared_scales == ("a.q_scale", "b.q_scale")


def test_one_scale_tensor_for_both_is_nothing_that_could_break():
    network, x = network_with_input()
    scale = constant(network, 0.1, "scale")
    for name in "ab":
        layer = network.add_quantize(x, scale)
        network.rename_layer(layer, name)
        network.mark_output(relu(network, dequantize(network, layer.get_output(0), f"{name}.dq"), f"{name}.r"))
    _, journal = optimized(network)
    assert [step.compared_scales for step in journal.of("b")] == [()]


def test_unequal_scales_and_axes_are_not_merged():
    network, x = network_with_input()
    for name, scale, axis in (("a", 0.1, -1), ("b", 0.2, -1), ("c", [0.1] * 4, 1), ("d", [0.1] * 4, 2)):
        network.mark_output(quantize(network, x, name, scale, axis))
    rewritten, journal = optimized(network)
    assert chain(rewritten) == ["a", "b", "c", "d"]
    assert len(journal) == 0


def test_two_outputs_of_the_network_keep_both_their_names():
    network, x = network_with_input()
    for name in "ab":
        network.mark_output(quantize(network, x, name))
    rewritten, _ = optimized(network)
    assert [tensor.name for tensor in rewritten.outputs] == ["a", "b"]


def test_quantization_right_after_dequantization_by_the_same_scale_goes():
    network, x = network_with_input()
    y = pair(network, pair(network, x, "a"), "b")
    network.mark_output(convolution(network, y, "conv"))
    rewritten, journal = optimized(network)
    assert set(chain(rewritten)) == {"a.q", "b.dq", "conv.w.dq", "conv"}
    (step,) = journal.of("b.q")
    assert (step.action, step.over) == (RewriteAction.CANCELLED, ("a.dq",))
    assert step.compared_scales == ("a.dq_scale", "b.q_scale")
    assert steps(journal, "a.dq") == [("CANCELLED", ("b.q",))]


def test_a_dequantization_that_others_read_outlives_the_pair():
    network, x = network_with_input()
    y = pair(network, x, "a")
    network.mark_output(y)
    network.mark_output(quantize(network, y, "q"))
    rewritten, _ = optimized(network)
    assert chain(rewritten) == ["a.q", "a.dq"]
    assert [tensor.name for tensor in rewritten.outputs] == ["a.dq", "q"]


def test_codes_that_are_an_input_and_an_output_stay_two_tensors():
    network, x = network_with_input(DataType.INT8)
    network.mark_output(quantize(network, dequantize(network, x, "dq"), "q"))
    rewritten, journal = optimized(network)
    assert chain(rewritten) == ["dq", "q"]
    assert "outside of the network" in journal.of("q")[0].reason


@pytest.mark.parametrize(
    ("dtype", "real", "scale", "cancels"),
    [
        (DataType.INT8, DataType.FLOAT, 0.1, True),
        (DataType.INT8, DataType.FLOAT, 1e-44, True),  # denormal: products are whole multiples of it
        (DataType.INT8, DataType.FLOAT, 3e36, False),  # 127 * 3e36 is infinite
        (DataType.INT8, DataType.HALF, 0.1, True),
        (DataType.INT8, DataType.HALF, 1e-7, True),  # products are rounded to whole 2**-24, by at most 0.3 codes
        (DataType.INT8, DataType.HALF, 4e-8, False),  # and here by 0.7 codes
        (DataType.INT8, DataType.HALF, 600.0, False),  # 127 * 600 is infinite in FP16
        (DataType.INT8, DataType.BF16, 0.1, True),  # 8 bits of a product are enough for its nearest whole number
        (DataType.FP8, DataType.FLOAT, 0.37, True),
        (DataType.FP8, DataType.FLOAT, 1e36, False),
        (DataType.INT4, DataType.HALF, 0.02, True),
        (DataType.FP4, DataType.BF16, 0.3, True),
    ],
)
def test_a_pair_goes_only_where_every_code_comes_back(dtype, real, scale, cancels):
    network, x = network_with_input(dtype)
    again = quantize(network, dequantize(network, x, "dq", scale, dtype=real), "q", scale, dtype=dtype)
    network.mark_output(dequantize(network, again, "end", 1.0))
    found = CancelQuantizations().run(network, PassFindings())
    assert found.changed == cancels
    if not cancels:
        assert "does not give back every code" in found.rewrites.of("q")[0].reason


@pytest.mark.parametrize(
    ("dtype", "count", "low", "high"),
    [
        (DataType.INT8, 256, -128, 127),
        (DataType.UINT8, 256, 0, 255),
        (DataType.INT4, 16, -8, 7),
        (DataType.FP8, 254, -448, 448),  # all but two NaNs
        (DataType.FP4, 16, -6, 6),
    ],
)
def test_every_code_of_a_type_is_tried(dtype, count, low, high):
    codes = all_codes(dtype).astype(np.float32)
    assert codes.size == count
    assert (codes.min(), codes.max()) == (low, high)
    assert np.isfinite(codes).all()


@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.INT4, DataType.FP8, DataType.FP4])
def test_weights_are_quantized_once_and_shared(dtype):
    """By two readers; what the engine holds is narrow."""
    network, _ = network_with_input()
    weights = constant(network, np.linspace(-1, 1, 16).reshape(4, 4, 1, 1), "w")
    codes = quantize(network, weights, "w.q", 0.15, dtype=dtype)
    for name in ("one", "two"):
        network.mark_output(relu(network, dequantize(network, codes, f"{name}.dq", 0.15), name))
    rewritten, journal = optimized(network)
    assert not any(layer.kind == "quantize" for layer in rewritten)
    constants = [layer for layer in rewritten if layer.kind == "constant" and layer.outputs[0].dtype is dtype]
    assert [layer.outputs[0].name for layer in constants] == ["w.q"]
    assert [(step.action, step.over) for step in journal.of("w.q")] == [(RewriteAction.FOLDED, ("w",))]


@pytest.mark.parametrize(("zero_point", "cancels"), [(131, True), (7, False)])
def test_a_pair_with_equal_zero_points_goes_too(zero_point, cancels):
    network, x = network_with_input(DataType.UINT8)
    scale = constant(network, 0.1, "scale")
    first = network.add_dequantize(x, scale)
    first.set_input(2, constant(network, 131, "first zero", np.uint8))
    second = network.add_quantize(first.get_output(0), scale, DataType.UINT8)
    second.set_input(2, constant(network, zero_point, "second zero", np.uint8))
    network.mark_output(dequantize(network, second.get_output(0), "end"))
    rewritten, _ = optimized(network)
    assert (chain(rewritten) == ["end"]) == cancels
