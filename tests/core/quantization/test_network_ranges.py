"""Ranges of a whole network: what keeps its largest magnitude, what shares, and what is constant."""

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
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
    double = made.add_elementwise(flat, two, ElementWiseOperation.PROD).get_output(0)
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
