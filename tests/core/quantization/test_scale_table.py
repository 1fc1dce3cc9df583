"""Scales with their origins: by hand, calibrated, shared, propagated, missing."""

from __future__ import annotations

import pytest
from tests.core.builder.networks import activation, chain, convolution, image_network, named

from dryfit.network.layers.window_layer import PoolingType
from dryfit.quantization.calibrator import Solution
from dryfit.quantization.int8_steps import DynamicRange
from dryfit.quantization.scale_table import RangeOrigin, scale_table


def solutions(**thresholds):
    return {name: Solution.of_threshold(threshold) for name, threshold in thresholds.items()}


def joined_network():
    """a and b, joined; the result goes through a ReLU to the output."""
    network, x = image_network()
    layer = network.add_concatenation([convolution(network, x, "a"), convolution(network, x, "b")])
    layer.axis = 1
    network.mark_output(activation(network, named(layer, "both"), "out"))
    return network


def told(table):
    return {
        name: (entry.origin.value, entry.dynamic_range and entry.dynamic_range.threshold)
        for name, entry in table.entries.items()
    }


def test_a_range_that_was_set_by_hand_wins_over_calibration():
    network = chain("c", "r")
    network.tensor("c0").dynamic_range = (-2, 5)
    table = scale_table(network, solutions(x=1.0, c0=3.0, r1=3.0))
    assert told(table) == {"x": ("calibrated", 1.0), "c0": ("by hand", 5.0), "r1": ("calibrated", 3.0)}
    assert table.entries["c0"].dynamic_range == DynamicRange(-2, 5)


def test_what_nobody_found_is_missing_and_the_layers_that_wait_for_it_are_named():
    table = scale_table(chain("c", "r"), {**solutions(x=1.0), "c0": Solution.of_threshold(0.0)})
    assert [(one.tensor, one.reason, list(one.needed_by)) for one in table.missing] == [
        ("c0", "every value is zero", ["c0", "r1"]),
        ("r1", "no range was set or calibrated", ["r1"]),
    ]


def test_calibrated_tensors_of_a_group_take_the_range_of_its_representative():
    table = scale_table(joined_network(), solutions(x=1.0, a=2.0, b=3.0, both=2.5, out=2.5))
    assert told(table)["a"] == ("shared", 2.5)
    assert told(table)["b"] == ("shared", 2.5)
    assert told(table)["both"] == ("calibrated", 2.5)
    assert table.entries["a"].words == "shared with 'both' by concatenation"


def test_ranges_found_after_fusion_are_not_shared():
    table = scale_table(joined_network(), solutions(x=1.0, a=2.0, b=3.0, both=2.5, out=2.5), shares_ranges=False)
    assert told(table)["a"] == ("calibrated", 2.0)


def test_a_range_by_hand_stays_in_its_group_and_the_contradiction_is_told():
    network = joined_network()
    network.tensor("a").dynamic_range = (-1.27, 1.27)
    table = scale_table(network, solutions(x=1.0, b=2.54, both=2.54, out=2.54))
    assert told(table)["a"] == ("by hand", 1.27)
    assert [str(conflict) for conflict in table.conflicts] == [
        "tensor 'a' has the scale 0.01 by hand, and 'both', which shares its range by concatenation, 0.02"
    ]


def test_the_inputs_of_a_concatenation_follow_from_its_output():
    network = joined_network()
    network.tensor("both").dynamic_range = (-4, 4)
    table = scale_table(network)
    assert told(table)["a"] == ("propagated", 4.0)
    assert table.entries["b"].words == "propagated from 'both' by concatenation"


def test_the_output_of_a_concatenation_follows_only_from_all_of_its_inputs():
    network = joined_network()
    network.tensor("a").dynamic_range = (-4, 1)
    assert told(scale_table(network))["both"] == ("missing", None)
    network.tensor("b").dynamic_range = (-1, 6)
    table = scale_table(network)
    assert table.entries["both"].dynamic_range == DynamicRange(-4, 6)
    assert list(table.entries["both"].sources) == ["a", "b"]


def test_the_whole_does_not_follow_from_a_part_of_it():
    network, x = image_network()
    a = convolution(network, x, "a")
    cut = named(network.add_slice(a, (0, 0, 0, 0), (1, 4, 6, 6), (1, 1, 1, 1)), "cut")
    network.mark_output(activation(network, cut, "out"))
    network.tensor("cut").dynamic_range = (-1, 1)
    assert told(scale_table(network))["a"] == ("missing", None)


def test_no_range_is_handed_on_to_a_network_output():
    network, x = image_network()
    network.mark_output(named(network.add_pooling_nd(convolution(network, x, "a"), PoolingType.MAX, (2, 2)), "out"))
    network.tensor("a").dynamic_range = (-1, 1)
    assert told(scale_table(network))["out"] == ("missing", None)


def test_ranges_of_tensors_that_the_network_does_not_have_are_named():
    assert scale_table(chain("c"), solutions(x=1.0, stranger=2.0)).unknown == ["stranger"]


def test_a_table_gives_its_ranges_to_a_copy_that_has_fewer_tensors():
    table = scale_table(chain("c", "r"), solutions(x=1.0, c0=2.0, r1=3.0))
    smaller = chain("c")
    table.apply_to(smaller)
    assert [tensor.dynamic_range for tensor in smaller.tensors] == [(-1.0, 1.0), (-2.0, 2.0)]


@pytest.mark.parametrize("origin", RangeOrigin)
def test_every_origin_has_its_word(origin):
    assert origin.value == origin.name.lower().replace("_", " ")
