"""The rules on deconvolutions that are functions."""

import numpy as np
import pytest
from tests.targets.dla.questions import deconvolution, one_violation, verdict, violated, with_ranges

from dryfit.network.data_types import DataType
from dryfit.network.layers.window_layer import PaddingMode


@pytest.mark.parametrize(
    ("kernel", "allowed"),
    [
        ((1, 1), True),
        ((32, 31), True),
        ((1, 64), True),
        ((96, 1), True),
        ((1, 128), True),
        ((33, 1), False),
        ((1, 65), False),
        ((2, 64), False),
        ((64, 64), False),
        ((33, 33), False),
    ],
)
def test_a_kernel_is_within_32_or_long_on_one_axis(kernel, allowed):
    layer = deconvolution(kernel=kernel, stride_nd=(1, 1))
    assert violated(layer) == ([] if allowed else ["deconvolution.kernel"])
    for one in verdict(layer).violations:
        assert one.actual == str(kernel)
        assert one.allowed == "each 1 to 32, or 1 on one axis and 64, 96 or 128 on the other"


@pytest.mark.parametrize(
    ("stride", "allowed"), [((1, 1), True), ((32, 31), True), ((1, 96), True), ((128, 1), True), ((33, 1), False)]
)
def test_a_stride_is_within_32_or_long_on_one_axis(stride, allowed):
    layer = deconvolution((1, 4, 4, 4), stride_nd=stride)
    assert violated(layer) == ([] if allowed else ["deconvolution.stride"])
    assert all(str(stride) in one.message for one in verdict(layer).violations)


def test_large_squares_are_switched_off_and_other_large_windows_are_not():
    assert violated(deconvolution((1, 4, 4, 4), kernel=(23, 23))) == [
        "deconvolution.square_kernel",
        "deconvolution.square_stride",
    ]
    assert violated(deconvolution((1, 4, 4, 4), kernel=(23, 24))) == []
    assert violated(deconvolution((1, 4, 4, 4), kernel=(22, 22))) == []


def test_padding_moves_out_of_the_layer():
    found = one_violation(verdict(deconvolution(kernel=(3, 3), stride_nd=(2, 2), pre_padding=(1, 1))))
    assert found.rule == "dla.deconvolution.padding"
    assert found.actual == "(1, 0, 1, 0)"
    assert "slice" in found.remedy


def test_the_padding_of_a_mode_counts_as_padding():
    same = deconvolution(kernel=(3, 3), stride_nd=(2, 2), padding_mode=PaddingMode.SAME_UPPER)
    assert violated(same) == ["deconvolution.padding"]
    assert violated(deconvolution(padding_mode=PaddingMode.SAME_UPPER)) == []


def test_on_8_2_the_stride_is_the_kernel():
    layer = deconvolution(kernel=(4, 4), stride_nd=(2, 2))
    found = one_violation(verdict(layer, platform="xavier", software="8.2"))
    assert found.rule == "dla.deconvolution.stride_is_kernel_8_3"
    assert (found.parameter, found.actual, found.allowed) == ("stride_nd", "(2, 2)", "(4, 4), the kernel size")
    assert violated(layer, platform="xavier", software="8.4") == []
    assert violated(deconvolution(kernel=(4, 4)), platform="xavier", software="8.2") == []


def test_a_computed_kernel_is_refused_and_a_constant_one_is_not():
    layer = deconvolution()
    layer.kernel = None
    weights = np.zeros((16, 8, 2, 2), np.float32)
    layer.set_input(1, layer.network.add_constant(weights.shape, weights).get_output(0))
    assert violated(with_ranges(layer), flags=("INT8",)) == []
    layer.set_input(1, layer.network.add_input("weights", DataType.FLOAT, weights.shape))
    found = one_violation(verdict(layer))
    assert (found.rule, found.actual) == ("dla.deconvolution.constant_weights", "computed: 'weights'")


def test_what_only_the_open_compiler_refuses_is_a_warning():
    answer = verdict(deconvolution((1, 8192, 2, 2), kernel=(6, 6), stride_nd=(2, 2)))
    assert answer.supported
    assert [one.rule for one in answer.warnings] == ["dla.deconvolution.cbuf_estimate"]
    # 3x3 parts: 8192 * 9 * 16 kernels * 2 bytes = 72 banks; 2 columns of 8192 FP16 channels are 256 entries a row.
    assert answer.warnings[0].actual == "an estimated 75 banks (72 for 16 kernels, 3 for the input's rows)"
    assert verdict(deconvolution((1, 512, 8, 8), kernel=(4, 4), stride_nd=(2, 2))).warnings == ()
