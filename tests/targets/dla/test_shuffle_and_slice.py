"""The rules on shuffles and slices that are functions."""

import numpy as np
import pytest
from tests.targets.dla.questions import network_with, one_violation, shuffle, verdict, violated, window, with_ranges

from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.slice import SampleMode


@pytest.mark.parametrize(
    "parts",
    [
        {"first": (0, 2, 3, 1)},
        {"reshape": (1, 32, 8, 4)},
        {"reshape": (1, 16, 64, 1), "second": (0, 2, 1, 3)},
        {"first": (0, 2, 3, 1), "reshape": (1, 64, 4, 4), "second": (0, 3, 1, 2)},
        {"first": (0, 1, 2, 3), "reshape": (1, 16, 8, 8)},
        {},
    ],
)
def test_a_shuffle_of_c_h_and_w_runs(parts):
    assert violated(shuffle(**parts)) == []


@pytest.mark.parametrize(
    ("parts", "actual"),
    [
        ({"shape": (2, 16, 8, 8), "first": (1, 0, 2, 3)}, "first_transpose (2, 16, 8, 8) to (16, 2, 8, 8)"),
        ({"shape": (2, 16, 8, 8), "reshape": (4, 8, 8, 8)}, "reshape_dims (2, 16, 8, 8) to (4, 8, 8, 8)"),
        ({"shape": (2, 16, 8, 8), "second": (3, 1, 2, 0)}, "second_transpose (2, 16, 8, 8) to (8, 16, 8, 2)"),
        ({"shape": (1, 1, 8, 8), "first": (1, 0, 2, 3)}, "first_transpose (1, 1, 8, 8) to (1, 1, 8, 8)"),
        (
            {"shape": (2, 16, 8, 8), "first": (1, 0, 2, 3), "second": (1, 0, 2, 3)},
            "first_transpose (2, 16, 8, 8) to (16, 2, 8, 8), second_transpose (16, 2, 8, 8) to (2, 16, 8, 8)",
        ),
    ],
)
def test_each_part_of_a_shuffle_leaves_the_batch_alone(parts, actual):
    found = one_violation(verdict(shuffle(**parts)))
    assert (found.rule, found.actual) == ("dla.shuffle.batch", actual)


def test_flattening_is_refused_for_its_rank():
    found = one_violation(verdict(shuffle(reshape=(1, 1024))))
    assert (found.rule, found.fidelity) == ("dla.shuffle.reshaped_rank", "inferred")
    assert (found.parameter, found.actual, found.allowed) == ("rank after the reshape", "2", "each 4")


def test_a_shuffle_through_rank_five_is_refused_although_input_and_output_have_rank_four():
    # A channel shuffle: the middle has rank 5, so it takes two layers, and neither can run.
    network, x = network_with((1, 16, 8, 8))
    split = network.add_shuffle(x)
    split.reshape_dims, split.second_transpose = (1, 2, 8, 8, 8), (0, 2, 1, 3, 4)
    joined = network.add_shuffle(split.get_output(0))
    joined.reshape_dims = (1, 16, 8, 8)
    assert violated(split) == ["shuffle.reshaped_rank"]
    assert violated(joined) == ["shuffle.rank"]


@pytest.mark.parametrize(("software", "allowed"), [("8.4", False), ("8.5", True), ("10.3", True)])
def test_shuffles_came_with_8_5(software, allowed):
    layer = shuffle(reshape=(1, 32, 8, 4))
    assert violated(layer, software=software) == ([] if allowed else ["shuffle.software"])
    for one in verdict(layer, software=software).violations:
        assert (one.parameter, one.actual, one.allowed) == ("software version", software, "8.5 or newer")


def beside(kind, *, before, transpose=False):
    """A shuffle with a slice or concatenation before or behind it."""
    network, x = network_with((1, 16, 8, 8))

    def other(tensor):
        if kind == "slice":
            return network.add_slice(tensor, (0, 0, 0, 0), tensor.shape, (1, 1, 1, 1)).get_output(0)
        return network.add_concatenation([tensor, tensor]).get_output(0)

    layer = network.add_shuffle(other(x) if before else x)
    if transpose:
        layer.first_transpose = (0, 2, 1, 3)
    else:
        layer.reshape_dims = (1, 32, -1, 4)
    if not before:
        other(layer.get_output(0))
    return layer


@pytest.mark.parametrize("kind", ["slice", "concatenation"])
@pytest.mark.parametrize("before", [True, False])
def test_a_reshape_beside_a_slice_or_concatenation_is_refused_up_to_8_6(kind, before):
    layer = beside(kind, before=before)
    for software in ("8.5", "8.5.2", "8.6.2", "8.6.12"):
        found = one_violation(verdict(layer, software=software))
        assert found.rule == "dla.shuffle.neighbours"
        assert found.actual.startswith(f"{kind} ")
    assert violated(layer, software="10.0") == []
    assert violated(beside(kind, before=before, transpose=True), software="8.6") == []


def test_a_slice_keeps_the_batch_whole():
    assert violated(window(shape=(2, 16, 8, 8), extents=(2, 4, 4, 4))) == []
    found = one_violation(verdict(window((1, 0, 0, 0), (1, 16, 8, 8), shape=(2, 16, 8, 8))))
    assert found.rule == "dla.slice.batch"
    assert (found.parameter, found.actual, found.allowed) == ("batch", "elements 1 to 1 of 2", "all elements")


def test_a_slice_of_some_axes_counts_as_one_of_all():
    layer = window((4,), (8,), (1,))
    layer.axes = (1,)
    assert violated(layer) == []
    layer.axes = (0,)
    layer.start, layer.shape = (0,), (0,)
    assert "slice.batch" in violated(layer)


def test_computed_bounds_are_refused_by_name_and_constant_ones_are_not():
    layer = window()
    constant = layer.network.add_constant((4,), np.asarray([0, 0, 2, 4], np.int64))
    layer.set_input(1, constant.get_output(0))
    assert violated(with_ranges(layer)) == []
    layer.set_input(1, layer.network.add_input("start", DataType.INT64, (4,)))
    found = one_violation(verdict(layer))
    assert (found.rule, found.actual) == ("dla.slice.bounds", "computed: start 'start'")


@pytest.mark.parametrize(
    ("platform", "software", "allowed"), [("xavier", "8.2", False), ("xavier", "8.4", True), ("orin", "8.4", True)]
)
def test_slices_came_with_8_4(platform, software, allowed):
    found = violated(window(), platform=platform, software=software)
    assert found == ([] if allowed else ["slice.software"])


@pytest.mark.parametrize(
    ("mode", "software", "rules"),
    [
        ("WRAP", "10.5", []),
        ("FILL", "10.5", []),
        ("WRAP", "10.3", ["slice.mode_10_4"]),
        ("FILL", "8.4", ["slice.mode_10_4"]),
        ("CLAMP", "10.5", ["slice.mode"]),
    ],
)
def test_a_slice_past_the_bounds_depends_on_the_software(mode, software, rules):
    assert violated(window(mode=mode), software=software) == rules


def test_a_slice_fills_with_a_zero_of_its_own():
    layer = window(mode="FILL")
    network = layer.network
    layer.set_input(4, network.add_constant((1,), np.zeros(1, np.float32)).get_output(0))
    assert violated(layer) == []
    other = network.add_slice(network.inputs[0], (0, 0, 0, 0), (1, 16, 9, 9), (1, 1, 1, 1))
    other.mode = SampleMode.FILL
    other.set_input(4, layer.get_input(4))
    assert one_violation(verdict(layer)).actual == "0, used by 2 layers"
    other.set_input(4, network.add_constant((1,), np.ones(1, np.float32)).get_output(0))
    found = one_violation(verdict(other))
    assert (found.parameter, found.actual) == ("fill value", "1")
    assert found.allowed == "0, from a constant used by this layer only"
    value = network.add_activation(network.add_input("value", DataType.FLOAT, (1,)), ActivationType.RELU)
    other.set_input(4, value.get_output(0))
    found = one_violation(verdict(other))
    assert found.rule == "dla.slice.fill"
    assert found.actual == f"computed: '{value.get_output(0).name}'"
