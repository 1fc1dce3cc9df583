"""Ranges of a whole network: what keeps its largest magnitude, what shares, and what is constant."""

import numpy as np
import pytest

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network
from dryfit.quantization.calibration import collect
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.network_ranges import FULL_RANGE, SHARED_WITH, full_range_tensors, solve_network

HALF = Calibrator(name="half", title="", solve=lambda one: Solution.of_threshold(one.magnitude / 2))
AFTER_FUSION = Calibrator(name="after", title="", solve=HALF.solve, before_fusion=False)


def network():
    """`image`, reshaped; its negative joined with its double; a sigmoid and a softmax."""
    made = Network("ranges")
    image = made.add_input("image", DataType.FLOAT, (1, 4))
    shuffle = made.add_shuffle(image)
    shuffle.reshape_dims = (2, 2)
    flat = shuffle.get_output(0)
    two = made.add_constant((1, 1), np.float32([[2.0]])).get_output(0)
    double = made.add_elementwise(flat, flat, ElementWiseOperation.SUM).get_output(0)
    negative = made.add_elementwise(flat, two, ElementWiseOperation.SUB).get_output(0)
    joined = made.add_concatenation([double, negative]).get_output(0)
    sigmoid = made.add_activation(joined, ActivationType.SIGMOID).get_output(0)
    softmax = made.add_softmax(sigmoid).get_output(0)
    for tensor, name in (
        (flat, "flat"), (two, "two"), (double, "double"), (negative, "negative"), (joined, "joined"),
        (sigmoid, "sigmoid"), (softmax, "softmax"),
    ):  # fmt: skip
        made.rename_tensor(tensor, name)
    made.mark_output(softmax)
    return made


SAMPLES = [{"image": np.float32([[-1.0, 3.0, 0.5, 8.0]])}]


def ranges(calibrator=HALF, **settings):
    seen = collect(network(), calibrator, SAMPLES)
    return solve_network(network(), seen, calibrator, **settings)


def thresholds(solutions):
    return {name: one.dynamic_range.threshold for name, one in solutions.items()}


def test_inputs_and_probabilities_keep_their_largest_magnitude_and_say_so():
    found = ranges()
    assert found["image"].details == {FULL_RANGE: "a network input", SHARED_WITH: "flat"}
    assert found["image"].dynamic_range.threshold == 8.0
    assert found["softmax"].details == {FULL_RANGE: "probabilities, of a softmax"}
    assert found["sigmoid"].dynamic_range.threshold > 0.99
    assert full_range_tensors(network())["flat"] == "a network input"


def test_a_reshaped_input_keeps_its_range_too_and_others_are_left_to_the_calibrator():
    found = thresholds(ranges())
    assert (found["flat"], found["two"]) == (8.0, 1.0)
    assert found["joined"] == 8.0  # half of 16


def test_a_concatenation_decides_for_what_it_joins():
    found = ranges()
    assert {found[name].dynamic_range.threshold for name in ("double", "negative", "joined")} == {8.0}
    assert found["negative"].details[SHARED_WITH] == "joined"
    assert SHARED_WITH not in found["joined"].details


def test_a_calibrator_for_the_network_after_fusion_shares_nothing():
    found = thresholds(ranges(AFTER_FUSION))
    assert (found["double"], found["negative"], found["joined"]) == (8.0, 3.0, 8.0)


def test_told_otherwise_everything_is_left_to_the_calibrator():
    found = ranges(full_range=False)
    assert found["image"].dynamic_range.threshold == 4.0
    assert all(FULL_RANGE not in one.details for one in found.values())


def test_tensors_come_in_the_order_of_execution_and_constants_count_once():
    assert list(ranges()) == ["image", "flat", "two", "double", "negative", "joined", "sigmoid", "softmax"]
    assert "two" not in collect(network(), HALF, SAMPLES)


@pytest.mark.parametrize(
    ("kind", "alpha", "beta"),
    [
        (ActivationType.SIGMOID, 0.0, 0.0),
        (ActivationType.HARD_SIGMOID, 0.2, 0.5),
        (ActivationType.TANH, 0.0, 0.0),
        (ActivationType.SCALED_TANH, 1.7, 0.6),
        (ActivationType.SOFTSIGN, 0.0, 0.0),
        (ActivationType.CLIP, 0.0, 6.0),
    ],
)
def test_what_a_function_bounds_keeps_its_largest_magnitude_and_so_does_a_multiple_of_it(kind, alpha, beta):
    made = Network("gate")
    x = made.add_input("x", DataType.FLOAT, (1, 4))
    shifted = made.add_elementwise(x, x, ElementWiseOperation.SUM).get_output(0)
    layer = made.add_activation(shifted, kind)
    layer.alpha, layer.beta = alpha, beta
    sixth = made.add_constant((1, 1), np.float32([[6.0]])).get_output(0)
    gate = made.add_elementwise(layer.get_output(0), sixth, ElementWiseOperation.DIV).get_output(0)
    made.mark_output(made.add_elementwise(gate, x, ElementWiseOperation.PROD).get_output(0))
    reasons = full_range_tensors(made)
    assert kind.name in reasons[layer.get_output(0).name]
    assert reasons[gate.name] == reasons[layer.get_output(0).name]
    assert set(reasons) == {"x", layer.get_output(0).name, gate.name}


@pytest.mark.parametrize(("kind", "beta"), [(ActivationType.RELU, 0.0), (ActivationType.CLIP, 3.4e38)])
def test_a_function_with_one_bound_leaves_its_range_to_the_calibrator(kind, beta):
    made = Network("open")
    x = made.add_input("x", DataType.FLOAT, (1, 4))
    layer = made.add_activation(x, kind)
    layer.beta = beta
    made.mark_output(layer.get_output(0))
    assert set(full_range_tensors(made)) == {"x"}


def test_what_a_concatenation_joins_keeps_the_largest_magnitude_of_its_gate():
    made = Network("heads")
    x = made.add_input("x", DataType.FLOAT, (1, 4))
    sigmoid = made.add_activation(x, ActivationType.SIGMOID).get_output(0)
    other = made.add_elementwise(x, x, ElementWiseOperation.SUM).get_output(0)
    tenth = made.add_elementwise(other, sigmoid, ElementWiseOperation.PROD).get_output(0)
    both = made.add_concatenation([sigmoid, tenth]).get_output(0)
    made.mark_output(both)
    samples = [{"x": np.float32([[0.1, 0.2, -0.1, 0.3]])}]
    found = solve_network(made, collect(made, HALF, samples), HALF)
    largest = float(1 / (1 + np.exp(-np.float32(0.3))))
    assert found[both.name].dynamic_range.threshold == pytest.approx(largest)
    assert found[both.name].details[SHARED_WITH] == sigmoid.name


def test_what_an_average_and_its_reshape_read_is_not_clipped_to_their_range():
    made = Network("head")
    x = made.add_input("x", DataType.FLOAT, (1, 1, 4, 4))
    relu = made.add_activation(x, ActivationType.RELU).get_output(0)
    average = made.add_pooling_nd(relu, PoolingType.AVERAGE, (4, 4)).get_output(0)
    shuffle = made.add_shuffle(average)
    shuffle.reshape_dims = (1, 1)
    made.mark_output(shuffle.get_output(0))
    spike = np.zeros((1, 1, 4, 4), np.float32)
    spike[0, 0, 1, 2] = 20.9
    whole = Calibrator(name="whole", title="", solve=lambda one: Solution.of_threshold(one.magnitude))
    found = thresholds(solve_network(made, collect(made, whole, [{"x": spike}]), whole))
    assert found[relu.name] == found[average.name] == found[shuffle.get_output(0).name] == pytest.approx(20.9)
