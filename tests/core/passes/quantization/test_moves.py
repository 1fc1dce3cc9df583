"""Where quantizations and dequantizations go, what stops them, and the names that stay."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.passes.quantization.small_qdq import (
    SHAPE,
    chain,
    constant,
    convolution,
    dequantize,
    network_with_input,
    optimized,
    pair,
    pooling,
    quantize,
    relu,
    steps,
    transposed,
)
from tests.core.passes.quantized_networks import named

from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.matrix import MatrixOperation
from dryfit.network.layers.reduction import CumulativeOperation
from dryfit.network.layers.window_layer import PoolingType
from dryfit.quantization.rewrites import RewriteAction


def test_the_chapters_drawing_of_maximum_pooling():
    """DQ moves forward over one pooling, Q backward over another, and each ends beside a convolution."""
    network, x = network_with_input()
    y = convolution(network, pooling(network, pair(network, x, "a"), "before"), "conv")
    network.mark_output(pair(network, pooling(network, y, "after"), "b"))
    rewritten, journal = optimized(network)
    assert sorted(chain(rewritten)) == sorted(["a.q", "before", "conv.w.dq", "a.dq", "conv", "b.q", "after", "b.dq"])
    assert rewritten.tensor("before [INT8]").dtype is DataType.INT8
    assert rewritten.layer("after").inputs[0].producer.name == "b.q"
    assert rewritten.layer("conv").inputs[0].producer.name == "a.dq"
    assert steps(journal, "a.dq") == [("MOVED", ("before",))]
    assert steps(journal, "b.q") == [("MOVED", ("after",))]
    assert steps(journal, "a.q") == []


def test_tensors_keep_their_names_where_their_values_stay():
    """A pooling's real result and a quantization's codes are found under the names that the user gave."""
    network, x = network_with_input()
    y = pooling(network, pair(network, x, "a"), "first")
    network.mark_output(y)
    codes = quantize(network, pooling(network, convolution(network, y, "conv"), "second"), "b.q")
    network.mark_output(codes)
    rewritten, _ = optimized(network)
    assert [tensor.name for tensor in rewritten.outputs] == ["first", "b.q"]
    assert rewritten.tensor("first").producer.name == "a.dq"
    assert rewritten.tensor("b.q").producer.name == "second"


def test_a_dequantization_that_others_read_stays_and_a_copy_moves():
    network, x = network_with_input()
    y = pair(network, x, "a")
    total = network.add_elementwise(y, pooling(network, y, "pool"), ElementWiseOperation.SUM)
    network.mark_output(named(total, "sum"))
    rewritten, journal = optimized(network)
    assert [tensor.producer.name for tensor in rewritten.layer("sum").inputs] == ["a.dq", "a.dq after pool"]
    assert journal.origin("a.dq after pool") == "a.dq"


def test_a_chain_is_moved_over_at_once_and_each_step_is_told():
    network, x = network_with_input()
    y = transposed(network, pooling(network, pair(network, x, "a"), "pool"), "turn")
    network.mark_output(convolution(network, y, "conv"))
    rewritten, journal = optimized(network)
    assert rewritten.layer("conv").inputs[0].producer.name == "a.dq"
    assert steps(journal, "a.dq") == [("MOVED", ("pool",)), ("MOVED", ("turn",))]


def product(network, x, y):
    return named(network.add_matrix_multiply(x, MatrixOperation.NONE, y, MatrixOperation.NONE), "product")


def joined(network, tensors, name="joined"):
    layer = network.add_concatenation(tensors)
    layer.axis = 1
    return named(layer, name)


def test_equal_scales_move_over_a_concatenation_and_are_remembered_by_name():
    network, x = network_with_input()
    y = joined(network, [pair(network, x, "a"), pair(network, x, "b"), pair(network, pooling(network, x, "p"), "c")])
    network.mark_output(relu(network, y, "r"))
    rewritten, journal = optimized(network)
    assert [tensor.dtype for tensor in rewritten.layer("joined").inputs] == [DataType.INT8] * 3
    (moved,) = journal.of("a.dq")
    assert moved.compared_scales == ("a.dq_scale", "c.dq_scale")
    (merged,) = journal.of("c.dq")
    assert (merged.action, merged.over) == (RewriteAction.MERGED, ("a.dq",))
    assert [step.compared_scales for step in journal.of("b.q")] == [("a.q_scale", "b.q_scale")]


def test_unequal_scales_stop_at_a_concatenation_and_both_are_named():
    network, x = network_with_input()
    y = joined(network, [pair(network, x, "a", 0.1), pair(network, x, "b", 0.2)])
    network.mark_output(relu(network, y, "r"))
    _, journal = optimized(network)
    (stop,) = journal.of("a.dq")
    assert (stop.action, stop.over) == (RewriteAction.STOPPED, ("joined",))
    assert "scale 0.1" in stop.reason
    assert "0.2" in stop.reason
    assert "'b.dq'" in stop.reason


def test_a_quantization_moves_to_every_input_of_a_concatenation():
    network, x = network_with_input()
    branches = [convolution(network, x, "left"), convolution(network, x, "right")]
    network.mark_output(quantize(network, joined(network, branches), "q"))
    rewritten, journal = optimized(network)
    producers = [tensor.producer for tensor in rewritten.layer("joined").inputs]
    assert [layer.name for layer in producers] == ["q", "q before joined input 1"]
    assert [layer.inputs[0].producer.name for layer in producers] == ["left", "right"]
    assert steps(journal, "q") == [("MOVED", ("joined",))]


def test_quantizations_of_all_parts_of_a_split_become_one_before_it():
    network, x = network_with_input()
    y = convolution(network, x, "conv")
    for number in range(2):
        part = network.add_slice(y, (0, 2 * number, 0, 0), (1, 2, 4, 4), (1, 1, 1, 1))
        network.mark_output(quantize(network, named(part, f"part{number}"), f"q{number}"))
    rewritten, journal = optimized(network)
    quantizes = [layer for layer in rewritten if layer.kind == "quantize"]
    assert [layer.inputs[0].producer.name for layer in quantizes] == ["conv"]
    assert [tensor.name for tensor in rewritten.outputs] == ["q0", "q1"]
    assert {step.action for step in (*journal.of("q0"), *journal.of("q1"))} == {
        RewriteAction.MOVED,
        RewriteAction.MERGED,
    }


def test_another_reader_of_the_real_numbers_stops_a_quantization():
    network, x = network_with_input()
    y = pooling(network, convolution(network, x, "conv"), "pool")
    network.mark_output(quantize(network, y, "q"))
    network.mark_output(named(network.add_softmax(y), "soft"))
    rewritten, journal = optimized(network)
    assert rewritten.layer("q").inputs[0].producer.name == "pool"
    (stop,) = journal.of("q")
    assert (stop.action, stop.over) == (RewriteAction.STOPPED, ("pool",))
    assert stop.reason == "'soft' reads 'pool' in floating point"


def test_a_layer_that_does_not_commute_stops_both_with_its_reason():
    network, x = network_with_input()
    axis, operation = constant(network, 1, "axis", np.int64), CumulativeOperation.SUM
    y = named(network.add_cumulative(pair(network, x, "a"), axis, operation, False, False), "sum")
    network.mark_output(quantize(network, y, "q"))
    _, journal = optimized(network)
    for name in ("a.dq", "q"):
        (stop,) = journal.of(name)
        assert stop.over == ("sum",)
        assert "does not commute: sums of codes leave their range" in stop.reason


def test_average_pooling_between_q_and_dq_stays_a_group():
    network, x = network_with_input()
    y = pooling(network, pair(network, x, "a"), "mean", PoolingType.AVERAGE)
    network.mark_output(quantize(network, y, "q"))
    rewritten, journal = optimized(network)
    assert chain(rewritten) == ["a.q", "a.dq", "mean", "q"]
    assert len(journal) == 0


def test_a_maximum_between_different_scales_stays_a_group():
    network, x = network_with_input()
    y = pooling(network, pair(network, x, "a", 0.1), "pool")
    network.mark_output(quantize(network, y, "q", 0.3))
    rewritten, _ = optimized(network)
    assert chain(rewritten) == ["a.q", "a.dq", "pool", "q"]


def test_relu_between_q_and_dq_goes_back_into_the_group_of_the_convolution():
    network, x = network_with_input()
    y = pair(network, convolution(network, x, "first"), "a")
    network.mark_output(convolution(network, relu(network, y, "r"), "second"))
    rewritten, journal = optimized(network)
    assert rewritten.layer("r").inputs[0].producer.name == "first"
    assert rewritten.layer("a.q").inputs[0].producer.name == "r"
    assert rewritten.layer("second").inputs[0].producer.name == "a.dq"
    assert steps(journal, "a.q") == [("MOVED", ("r",))]
    assert rewritten.layer("second").inputs[0].name == "r"


def test_a_quantization_goes_over_relu_only_on_its_way_over_a_pooling():
    network, x = network_with_input()
    network.mark_output(quantize(network, relu(network, convolution(network, x, "conv"), "r"), "q"))
    rewritten, journal = optimized(network)
    assert rewritten.layer("q").inputs[0].producer.name == "r"
    assert steps(journal, "q") == []
    network, x = network_with_input()
    y = relu(network, pooling(network, convolution(network, x, "conv"), "pool"), "r")
    network.mark_output(quantize(network, y, "q"))
    rewritten, journal = optimized(network)
    assert rewritten.layer("q").inputs[0].producer.name == "conv"
    assert steps(journal, "q") == [("MOVED", ("r",)), ("MOVED", ("pool",))]


def test_a_quantization_does_not_go_where_it_has_more_to_do():
    """One row of many is quantized, unless the layer before can give all of them quantized."""
    network, x = network_with_input()
    picked = named(network.add_gather(x, constant(network, [1], "rows", np.int64), 1), "row")
    network.mark_output(quantize(network, picked, "q"))
    rewritten, journal = optimized(network)
    assert chain(rewritten) == ["row", "q"]
    (stop,) = journal.of("q")
    assert "'x' has more elements than are needed" in stop.reason


def test_scales_of_an_axis_follow_it_through_a_transpose_of_weights():
    network, x = network_with_input(shape=(3, 4))
    weights = constant(network, np.linspace(-2, 3, 20).reshape(5, 4), "w")
    scales = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    codes = quantize(network, weights, "w.q", scales, axis=0)
    real = transposed(network, dequantize(network, codes, "w.dq", scales, axis=0), "turn", (1, 0))
    network.mark_output(product(network, x, real))
    rewritten, journal = optimized(network)
    assert chain(rewritten) == ["w.dq", "product"]
    dequantization = rewritten.layer("w.dq")
    assert dequantization.axis == 1
    assert dequantization.inputs[0].producer.kind == "constant"
    assert dequantization.inputs[0].shape == (4, 5)
    assert steps(journal, "w.q") == [("FOLDED", ("w",))]
    assert steps(journal, "w.dq") == [("MOVED", ("turn",))]


def test_scales_of_blocks_follow_a_transpose_of_weights():
    network, x = network_with_input(shape=(3, 4))
    weights = constant(network, np.linspace(-2, 3, 20).reshape(5, 4), "w")
    scales = np.linspace(0.3, 0.9, 10).reshape(5, 2)
    codes = quantize(network, weights, "w.q", scales, dtype=DataType.INT4)
    real = transposed(network, dequantize(network, codes, "w.dq", scales), "turn", (1, 0))
    network.mark_output(product(network, x, real))
    rewritten, _ = optimized(network)
    dequantization = rewritten.layer("w.dq")
    assert [tensor.shape for tensor in dequantization.inputs] == [(4, 5), (2, 5)]
    assert dequantization.inputs[0].dtype is DataType.INT4
    assert chain(rewritten) == ["w.dq", "product"]


def test_scales_of_an_axis_stop_where_it_does_not_survive():
    network, x = network_with_input()
    codes = quantize(network, x, "q", [0.1, 0.2, 0.3, 0.4], axis=1)
    flat = network.add_shuffle(dequantize(network, codes, "dq", [0.1, 0.2, 0.3, 0.4], axis=1))
    flat.reshape_dims = (1, 64)
    network.mark_output(named(flat, "flat"))
    _, journal = optimized(network)
    (stop,) = journal.of("dq")
    assert stop.reason == "its scales follow axis 1, which the layer does not keep"


def test_a_zero_point_keeps_its_place():
    network, x = network_with_input()
    scale, zero = constant(network, 0.1, "scale"), constant(network, 3, "zero", np.int8)
    first = network.add_quantize(x, scale)
    first.set_input(2, zero)
    second = network.add_dequantize(first.get_output(0), scale)
    second.set_input(2, zero)
    network.rename_layer(second, "dq")
    network.mark_output(pooling(network, second.get_output(0), "pool"))
    _, journal = optimized(network)
    (stop,) = journal.of("dq")
    assert "zero point" in stop.reason


def test_a_type_that_is_asked_for_keeps_a_layer_in_real_numbers():
    network, x = network_with_input()
    network.mark_output(pooling(network, pair(network, x, "a"), "pool"))
    network.layer("pool").precision = DataType.FLOAT
    _, journal = optimized(network)
    assert [step.action for step in journal.of("a.dq")] == [RewriteAction.STOPPED]


def test_what_the_device_does_not_compute_on_codes_is_not_moved_over():
    asked = []

    def judge(layer, specs, real):
        asked.append((layer.name, specs[0].dtype, real[0].dtype))
        return "the device has no bytes"

    network, x = network_with_input()
    network.mark_output(pooling(network, pair(network, x, "a"), "pool"))
    _, journal = optimized(network, judge=judge)
    assert asked == [("pool", DataType.INT8, DataType.FLOAT)]
    (stop,) = journal.of("a.dq")
    assert stop.reason == "the device has no bytes"


@pytest.mark.parametrize(("fill", "moves"), [(0.0, True), (0.5, True), (0.55, False)])
def test_a_constant_beside_dequantized_values_has_to_be_a_code(fill, moves):
    """0.5 is code 4 of the scale 0.125; 0.55 is none."""
    network, x = network_with_input()
    beside = constant(network, np.full(SHAPE, fill), "beside")
    network.mark_output(relu(network, joined(network, [pair(network, x, "a", 0.125), beside]), "r"))
    rewritten, _ = optimized(network)
    assert (rewritten.layer("joined").inputs[1].dtype is DataType.INT8) == moves


def test_new_layers_name_the_onnx_nodes_of_those_that_they_stand_for():
    network, x = network_with_input()
    y = pair(network, x, "a")
    for layer in network.layers:
        layer.onnx_nodes = (f"node of {layer.name}",)
    network.mark_output(convolution(network, pooling(network, y, "pool"), "conv"))
    network.mark_output(relu(network, y, "r"))
    rewritten, _ = optimized(network)
    assert rewritten.layer("a.dq after pool").onnx_nodes == ("node of a.dq",)


def test_casts_of_an_fp16_model_become_part_of_q_and_dq():
    """x in FP16 is cast to FP32, quantized and dequantized, and cast back: Q reads FP16, DQ gives it."""
    network, x = network_with_input(DataType.HALF)
    wide = named(network.add_cast(x, DataType.FLOAT), "there")
    back = named(network.add_cast(pooling(network, pair(network, wide, "a"), "pool"), DataType.HALF), "back")
    network.mark_output(named(network.add_softmax(back), "soft"))
    rewritten, journal = optimized(network)
    assert chain(rewritten) == ["a.q", "pool", "a.dq", "soft"]
    assert rewritten.layer("a.q").inputs[0].name == "x"
    assert rewritten.layer("a.dq").to_type is DataType.HALF
    assert rewritten.layer("soft").inputs[0].name == "back"
    assert steps(journal, "a.dq") == [("MOVED", ("pool",)), ("MOVED", ("back",))]
    assert steps(journal, "a.q") == [("MOVED", ("there",))]


def test_a_cast_that_rounds_what_is_quantized_stays():
    network, x = network_with_input()
    network.mark_output(quantize(network, named(network.add_cast(x, DataType.HALF), "narrow"), "q"))
    rewritten, journal = optimized(network)
    assert chain(rewritten) == ["narrow", "q"]
    assert "does not commute: it rounds" in journal.of("q")[0].reason


def test_a_bias_in_whole_numbers_is_reshaped_while_building():
    """No device has codes of INT32, but of a constant nothing is left to compute."""
    network, x = network_with_input()
    bias = constant(network, [5, -6, 7, 8], "bias", np.int32)
    for number, source in enumerate((bias, network.add_input("codes", DataType.INT32, (4,)))):
        shaped = network.add_shuffle(dequantize(network, source, f"dq{number}", 0.01))
        shaped.reshape_dims = (1, 4, 1, 1)
        twice = transposed(network, named(shaped, f"shaped{number}"), f"turned{number}")
        x = network.add_elementwise(x, twice, ElementWiseOperation.SUM).get_output(0)
    network.mark_output(named(x.producer, "sum"))
    rewritten, journal = optimized(network)
    assert steps(journal, "dq0") == [("MOVED", ("shaped0",)), ("MOVED", ("turned0",))]
    assert rewritten.layer("dq0").inputs[0].producer.kind == "constant"
    (stop,) = journal.of("dq1")
    assert stop.reason == "no device computes on INT32 codes"


def test_a_dynamic_batch_changes_nothing():
    network, x = network_with_input(shape=(-1, 4, 4, 4))
    network.mark_output(convolution(network, pooling(network, pair(network, x, "a"), "pool"), "conv"))
    rewritten, journal = optimized(network)
    assert rewritten.tensor("pool").shape == (-1, 4, 4, 4)
    assert steps(journal, "a.dq") == [("MOVED", ("pool",))]
