"""The rules on convolution, fully connected and pooling layers that are functions."""

import numpy as np
from tests.targets.dla.questions import (
    convolution,
    fully_connected,
    network_with,
    one_violation,
    pooling,
    verdict,
    violated,
    with_ranges,
)

from dryfit.network.data_types import DataType

INT8 = ("INT8", "FP16")


def test_padding_is_smaller_than_the_kernel():
    assert violated(convolution(kernel=(3, 3), pre_padding=(2, 0), post_padding=(0, 2))) == []
    found = one_violation(verdict(convolution(kernel=(3, 5), pre_padding=(3, 4))))
    assert found.rule == "dla.convolution.padding_below_kernel"
    assert (found.parameter, found.actual) == ("padding", "[(3, 0), (4, 0)]")
    assert found.allowed == "each less than the kernel size (3, 5)"


def test_a_computed_kernel_is_refused_and_a_constant_one_is_not():
    network, x = network_with()
    layer = network.add_convolution_nd(x, 8, (3, 3))
    assert violated(layer) == ["convolution.constant_weights"]
    layer.set_input(1, network.add_constant((8, 16, 3, 3), np.zeros((8, 16, 3, 3), np.float32)).get_output(0))
    assert violated(layer) == []
    layer.set_input(1, network.add_input("weights", DataType.FLOAT, (8, 16, 3, 3)))
    assert "'weights'" in one_violation(verdict(layer)).actual


def test_the_convolution_buffer_decides_by_precision():
    layer = convolution((1, 512, 80, 161), maps=256)
    found = one_violation(verdict(layer))
    assert found.rule == "dla.convolution.cbuf"
    assert found.actual == "17 banks (1 for one kernel, 16 for the input's rows)"
    assert found.allowed == "at most 16 banks"
    assert violated(with_ranges(layer), flags=INT8) == []


def test_what_only_the_open_compiler_refuses_is_a_warning():
    answer = verdict(convolution((1, 512, 80, 160), maps=256))
    assert answer.supported
    assert [one.rule for one in answer.warnings] == ["dla.convolution.cbuf_estimate"]
    assert answer.warnings[0].fidelity == "inferred"
    assert "20 banks (5 for 16 kernels, 15 for the input's rows)" in answer.warnings[0].actual
    assert verdict(convolution((1, 64, 80, 160))).warnings == ()


def test_an_image_in_hwc4_is_estimated_as_pixels():
    layer = convolution((1, 3, 16, 2192), kernel=(7, 7))
    layer.pre_padding = layer.post_padding = (3, 3)
    assert [one.rule for one in verdict(layer).warnings] == []
    layer.get_input(0).allowed_formats = frozenset({"DLA_HWC4"})
    assert [one.rule for one in verdict(layer).warnings] == []


def test_a_fully_connected_layer_has_the_limits_of_the_convolution_that_it_is():
    # The first two of VGG; the convolution of the same kernel is taken too.
    assert violated(fully_connected((1, 512, 7, 7), outputs=4096)) == []
    assert violated(convolution((1, 512, 7, 7), kernel=(7, 7), maps=4096)) == []
    assert violated(fully_connected((1, 4096, 1, 1), outputs=4096)) == []
    found = {one.rule: one.actual for one in verdict(fully_connected((1, 25088, 1, 1), outputs=4096)).violations}
    assert "25088" in found["dla.fully_connected.inputs"]


def test_a_fully_connected_layer_on_large_images_is_flattened():
    assert violated(fully_connected((1, 2, 64, 64))) == []
    assert violated(fully_connected((1, 3, 64, 64))) == ["fully_connected.window"]
    assert violated(fully_connected((1, 64, 32, 32))) == []
    assert violated(fully_connected((1, 1024, 32, 32))) == ["fully_connected.cbuf"]


def test_a_fully_connected_layer_with_a_computed_kernel_is_refused():
    network, x = network_with((1, 16, 1, 1))
    layer = network.add_fully_connected(x, 10)
    assert violated(layer) == ["fully_connected.constant_weights"]


def test_a_fully_connected_layer_within_the_limits_of_channels_fits_the_buffer():
    assert "fully_connected.cbuf" not in violated(fully_connected((1, 8192, 1, 1)))
    assert violated(fully_connected((1, 8192, 16, 4))) == ["fully_connected.cbuf"]


def test_xavier_averages_over_the_padding_and_orin_takes_both():
    exclusive = pooling(kind="AVERAGE", pre_padding=(1, 1))
    assert violated(exclusive) == []
    assert violated(exclusive, platform="xavier") == ["pooling.count_includes_padding"]
    assert violated(pooling(kind="AVERAGE"), platform="xavier") == []
    assert violated(pooling(kind="MAX", pre_padding=(1, 1)), platform="xavier") == []


def test_a_window_larger_than_eight_is_refused_with_a_remedy():
    found = one_violation(verdict(pooling((1, 16, 14, 14), window=(14, 14), kind="AVERAGE")))
    assert (found.parameter, found.actual, found.allowed) == ("window_size_nd", "(14, 14)", "each 1 to 8")
    assert found.remedy == "Pool in two steps with smaller windows"


def test_pooling_in_int8_keeps_its_scale():
    layer = pooling()
    assert violated(with_ranges(layer), flags=INT8) == []
    found = one_violation(verdict(with_ranges(layer, output=2.0), flags=INT8))
    assert found.rule == "dla.pooling.ranges"
    assert "'x': 1" in found.actual
    assert violated(layer) == []
