"""Where Q/DQ go, and what keeps them alone, in minimal models."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.onnx.models import model, numbers

from dryfit.answers.quantization_trace import QuantizationTrace, trace_quantizations
from dryfit.answers.traced_quantization import TracedQuantization
from dryfit.building import Builder, design_for_assessment
from dryfit.onnx.importer import network_from_onnx

KERNEL = numbers(4, 4, 1, 1)
WEIGHTS = {
    "w": KERNEL,
    "ws": np.abs(KERNEL).max(axis=(1, 2, 3)) / np.float32(127),
    "s": np.float32(0.5),
    "t": np.float32(0.1),
    "z": np.int8(0),
    "z4": np.zeros(4, np.int8),
    "z3": np.int8(3),
}


def pair(x: str, y: str, scale: str = "s", zero: str = "z", axis: int = 1) -> str:
    """Q/DQ of x; `y` is what both give."""
    return (
        f"{y}_q = QuantizeLinear<axis={axis}>({x}, {scale}, {zero}) "
        f"{y} = DequantizeLinear<axis={axis}>({y}_q, {scale}, {zero}) "
    )


CONV = pair("x", "d") + pair("w", "k", "ws", "z4", 0) + "c = Conv(d, k) "
TYPE = "float[1,4,8,8]"


def traced(body: str, outputs: str = f"{TYPE} y", device: str = "GPU") -> QuantizationTrace:
    """The trace of a model with inputs `x` and `x2`; nodes are named after what they give."""
    parsed = model(body, inputs=f"{TYPE} x, {TYPE} x2", outputs=outputs, weights=WEIGHTS)
    for node in parsed.graph.node:
        node.name = node.output[0]
    network = network_from_onnx(parsed)
    config = Builder().create_builder_config()
    config.default_device_type = device
    return trace_quantizations(network, design_for_assessment(network, config), config)


def one(trace: QuantizationTrace, name: str) -> TracedQuantization:
    """What became of the layer of a name."""
    (found,) = [traced for traced in trace.quantizations if traced.layer.name == name]
    return found


def test_quantizations_around_a_convolution_become_part_of_it() -> None:
    trace = traced(CONV + pair("c", "e", "t") + "y = Conv(e, k)")
    found = {one.layer.name: (one.outcome.value, one.steps, one.part) for one in trace.quantizations}
    assert found == {
        "d_q": ("alone", (), ""),
        "d": ("fused", ("c",), "input"),
        "k_q": ("folded", ("w",), ""),
        "k": ("fused", ("c", "y"), "input"),
        "e_q": ("fused", ("c",), "output"),
        "e": ("fused", ("y",), "input"),
    }
    assert one(trace, "d_q").reason == "The caller gives 'x' in floating point"
    assert trace.macs_by_type == {"INT8": 2 * 4 * 4 * 64}
    assert trace.computed_in == {"c": "INT8", "y": "INT8"}


def test_what_moved_over_a_maximum_pooling_and_met_its_opposite_is_told_with_both() -> None:
    body = CONV + pair("c", "e") + "p = MaxPool<kernel_shape=[1, 1]>(e) " + pair("p", "f") + "y = Conv(f, k)"
    trace = traced(body)
    assert one(trace, "e").outcome.value == "cancelled"
    assert one(trace, "e").steps == ("f_q",)
    assert ("p",) in [step.over for step in one(trace, "e").rewrites]
    assert one(trace, "f").outcome.value == "fused"
    assert trace.macs_by_type == {"INT8": 2 * 4 * 4 * 64}


def test_a_quantization_that_moved_over_a_concatenation_is_part_of_all_that_it_joins() -> None:
    body = CONV + "b = Conv(d, k) j = Concat<axis=1>(c, b) " + pair("j", "y", "t")
    trace = traced(body, outputs="float[1,8,8,8] y")
    found = one(trace, "y_q")
    assert (found.outcome.value, set(found.steps), found.part) == ("fused", {"c", "b"}, "output")
    assert [(step.action.value, step.over) for step in found.rewrites] == [("moved", ("j",))]


def test_of_two_equal_quantizations_of_a_tensor_one_is_merged_into_the_other() -> None:
    trace = traced(CONV + pair("c", "e") + pair("c", "f") + "g = Conv(e, k) h = Conv(f, k) y = Add(g, h)")
    found = {name: one(trace, name) for name in ("e_q", "f_q")}
    assert {traced.outcome.value for traced in found.values()} == {"merged", "fused"}
    (merged,) = [traced for traced in found.values() if traced.outcome.value == "merged"]
    assert set(merged.steps) <= {"e_q", "f_q"}
    assert merged.steps != (merged.layer.name,)


ALONE = [
    (
        "another layer needs the real numbers",
        CONV + "r = Sigmoid(c) " + pair("c", "e", "t") + "f = Conv(e, k) y = Add(r, f)",
        "e_q",
        "'r' also reads 'c' in floating point",
    ),
    (
        "the scales before and behind it differ",
        pair("x", "d") + pair("d", "y", "t"),
        "y_q",
        "The scales of 'd' (0.5) and 'y_q' (0.1) differ, so codes are rescaled between them",
    ),
    (
        "another scale quantizes the same tensor",
        "a = Sigmoid(x) " + pair("a", "d") + pair("a", "e", "t") + "y = Concat<axis=1>(d, e)",
        "d_q",
        "The scales of 'd_q' (0.5) and 'e_q' (0.1) differ, which quantize the same tensor",
    ),
    (
        "nothing quantizes what the normalization gives",
        pair("x", "d") + "a = LRN<size=3>(d) y = Sigmoid(a)",
        "d",
        "No quantization follows 'a', so its output is floating point",
    ),
    (
        "the other operand is real",
        pair("x", "d") + "a = Div(d, x2) " + pair("a", "y"),
        "d",
        "'a' also reads 'x2' in floating point",
    ),
    (
        "the weights are real",
        pair("x", "d") + "y = Conv(d, w)",
        "d",
        "The weights of 'y' are not quantized",
    ),
    (
        "what it quantizes is computed from real numbers",
        "a = AveragePool<kernel_shape=[2, 2]>(x) " + pair("a", "y"),
        "y_q",
        "'a' is computed in floating point, as is its input 'x'",
    ),
    ("the caller wants real numbers", CONV + pair("c", "y"), "y", "The caller gets 'y' in floating point"),
]


@pytest.mark.parametrize(("body", "name", "reason"), [case[1:] for case in ALONE], ids=[case[0] for case in ALONE])
def test_what_is_alone_says_why(body: str, name: str, reason: str) -> None:
    found = one(traced(body, outputs="float[N,C,H,W] y"), name)
    assert (found.outcome.value, found.reason) == ("alone", reason)


def test_a_caller_that_wants_the_real_numbers_too_keeps_a_quantization_alone() -> None:
    trace = traced(CONV + pair("c", "e", "t") + "y = Conv(e, k)", outputs=f"{TYPE} y, {TYPE} c")
    assert one(trace, "e_q").reason == "The caller also gets 'c' in floating point"


def test_a_dequantization_with_a_quantized_and_a_real_reader_is_partly_fused() -> None:
    trace = traced(CONV + "r = LRN<size=3>(d) y = Add(c, r)")
    found = one(trace, "d")
    assert (found.outcome.value, found.steps, found.part) == ("partly fused", ("c",), "input")
    assert found.reason == "No quantization follows 'r', so its output is floating point"


def test_layers_without_a_place_leave_quantizations_unplaced() -> None:
    trace = traced(pair("x", "d", zero="z3") + "y = Sigmoid(d)")
    assert {one.outcome.value for one in trace.quantizations} == {"unplaced"}
    assert trace.macs_by_type == {}


def test_a_zero_point_is_told_on_a_device_that_takes_it() -> None:
    trace = traced(pair("x", "d", zero="z3") + "y = Sigmoid(d)", device="CPU")
    assert one(trace, "d_q").reason == "It has a zero point"


def test_multiply_accumulates_count_by_the_type_of_what_is_multiplied() -> None:
    trace = traced(CONV + "y = Conv(c, w)")
    assert trace.macs_by_type == {"FLOAT": 4 * 4 * 64, "INT8": 4 * 4 * 64}


def test_a_network_without_quantizations_has_its_precisions_only() -> None:
    trace = traced("y = Conv(x, w)")
    assert (trace.quantizations, trace.macs_by_type) == ((), {"FLOAT": 4 * 4 * 64})
