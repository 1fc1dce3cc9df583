"""The tables of the published formulas, integer-exact."""

import pytest

from dryfit_dla.convolution_buffer import BANKS, BufferUse

INT8, FP16 = 1, 2
FAIL = "does not fit"

# Input channels, output maps, (kernel height, width), (input height, width), dilation, bytes ->
# validator weight + data banks; banks of one kernel group and of all weights; banks of the least and of all rows.
TABLE = [
    (1024, 1024, (3, 3), (14, 14), 1, INT8, (1, 2), (9, 288), (2, 7), "whole input, one kernel group"),
    (1024, 1024, (3, 3), (14, 14), 1, FP16, (1, 3), (9, 576), (3, 13), "part of the rows, one kernel group"),
    (1024, 1024, (3, 3), (32, 32), 1, INT8, (1, 3), (9, 288), (3, 32), "part of the rows, one kernel group"),
    (1024, 1024, (3, 3), (32, 32), 1, FP16, (1, 6), (9, 576), (6, 64), "part of the rows, one kernel group"),
    (2048, 2048, (3, 3), (7, 7), 1, INT8, (1, 2), (18, 1152), (2, 4), FAIL),
    (2048, 2048, (3, 3), (7, 7), 1, FP16, (2, 3), (18, 2304), (3, 7), FAIL),
    (512, 512, (3, 3), (7, 7), 1, INT8, (1, 1), (5, 72), (1, 1), "whole input, two kernel groups"),
    (512, 512, (3, 3), (7, 7), 1, FP16, (1, 1), (5, 144), (1, 2), "whole input, two kernel groups"),
    (512, 256, (3, 3), (80, 160), 1, INT8, (1, 8), (5, 36), (8, 200), "part of the rows, one kernel group"),
    (512, 256, (3, 3), (80, 160), 1, FP16, (1, 15), (5, 72), (15, 400), FAIL),
    (256, 256, (3, 3), (96, 160), 1, INT8, (1, 4), (3, 18), (4, 120), "part of the rows, two kernel groups"),
    (256, 256, (3, 3), (96, 160), 1, FP16, (1, 8), (3, 36), (8, 240), "part of the rows, two kernel groups"),
    (64, 64, (3, 3), (300, 300), 1, INT8, (1, 2), (1, 2), (2, 176), "part of the rows, all weights"),
    (64, 64, (3, 3), (300, 300), 1, FP16, (1, 4), (1, 3), (4, 352), "part of the rows, all weights"),
    (32, 32, (3, 3), (64, 8192), 1, INT8, (1, 24), (1, 1), (24, 512), FAIL),
    (32, 32, (3, 3), (64, 8192), 1, FP16, (1, 48), (1, 1), (48, 1024), FAIL),
    (32, 32, (1, 1), (64, 8192), 1, INT8, (1, 8), (1, 1), (8, 512), "part of the rows, all weights"),
    (32, 32, (1, 1), (64, 8192), 1, FP16, (1, 16), (1, 1), (16, 1024), FAIL),
    (64, 64, (1, 1), (64, 8192), 1, INT8, (1, 16), (1, 1), (16, 1024), FAIL),
    (8192, 8192, (1, 1), (1, 1), 1, INT8, (1, 1), (8, 2048), (1, 1), "whole input, one kernel group"),
    (8192, 8192, (1, 1), (1, 1), 1, FP16, (1, 1), (8, 4096), (1, 1), "whole input, one kernel group"),
    (8192, 64, (3, 3), (7, 7), 1, INT8, (3, 6), (72, 144), (6, 13), FAIL),
    (8192, 64, (3, 3), (7, 7), 1, FP16, (5, 11), (72, 288), (11, 25), FAIL),
    (512, 4096, (7, 7), (7, 7), 1, INT8, (1, 1), (25, 3136), (1, 1), FAIL),
    (512, 4096, (7, 7), (7, 7), 1, FP16, (2, 2), (25, 6272), (2, 2), FAIL),
    (128, 128, (32, 32), (64, 64), 1, INT8, (4, 8), (128, 512), (8, 16), FAIL),
    (128, 128, (32, 32), (64, 64), 1, FP16, (8, 16), (128, 1024), (16, 32), FAIL),
]

# Only the validator's banks are known: weights + data.
VALIDATOR = [
    (8192, (7, 7), 7, 1, INT8, 26),
    (8192, (7, 7), 7, 1, FP16, 50),
    (64, (32, 32), 64, 1, INT8, 6),
    (64, (32, 32), 64, 1, FP16, 12),
    (1024, (3, 3), 64, 6, INT8, 27),
    (1024, (3, 3), 64, 6, FP16, 53),
    (2048, (3, 3), 33, 12, INT8, 53),
    (2048, (3, 3), 33, 12, FP16, 106),
    (2048, (3, 3), 129, 18, INT8, 300),
    (2048, (3, 3), 129, 18, FP16, 599),
    (3, (7, 7), 224, 1, INT8, 3),
    (3, (7, 7), 1280, 1, FP16, 10),
    (3, (7, 7), 1920, 1, INT8, 15),
    (3, (7, 7), 2192, 1, FP16, 16),
    (3, (7, 7), 2193, 1, INT8, 17),
    (3, (7, 7), 3840, 1, INT8, 28),
    (3, (7, 7), 8192, 1, FP16, 57),
    (512, (3, 3), 160, 1, FP16, 16),
    (512, (3, 3), 161, 1, FP16, 17),
]


def use(channels, kernel, extent, element_bytes, *, maps=64, dilation=1, **others):
    return BufferUse(
        channels=channels,
        height=extent[0],
        width=extent[1],
        kernel_height=kernel[0],
        kernel_width=kernel[1],
        output_maps=maps,
        element_bytes=element_bytes,
        dilation_height=dilation,
        **others,
    )


@pytest.mark.parametrize(
    ("c", "k", "kernel", "extent", "dilation", "size", "validator", "weights", "data", "mode"), TABLE
)
def test_the_banks_are_those_of_the_table(c, k, kernel, extent, dilation, size, validator, weights, data, mode):
    one = use(c, kernel, extent, size, maps=k, dilation=dilation)
    assert (one.validator_weight_banks, one.validator_data_banks) == validator
    estimate = one.estimate()
    assert (estimate.group_weight_banks, estimate.all_weight_banks) == weights
    assert (estimate.least_data_banks, estimate.all_data_banks) == data
    assert estimate.mode == mode
    assert estimate.fits == (mode != FAIL)


@pytest.mark.parametrize(("channels", "kernel", "width", "dilation", "size", "banks"), VALIDATOR)
def test_the_validator_counts_the_banks_of_the_table(channels, kernel, width, dilation, size, banks):
    assert use(channels, kernel, (64, width), size, dilation=dilation).validator_banks == banks


@pytest.mark.parametrize(
    ("channels", "size", "extent", "maps", "rows"),
    [
        (1024, FP16, (14, 14), 1024, 8),
        (1024, INT8, (32, 32), 1024, 7),
        (1024, FP16, (32, 32), 1024, 3),
        (512, INT8, (80, 160), 256, 4),
        (256, INT8, (96, 160), 256, 8),
        (256, FP16, (96, 160), 256, 4),
    ],
)
def test_a_split_input_has_the_rows_of_the_table(channels, size, extent, maps, rows):
    assert use(channels, (3, 3), extent, size, maps=maps).estimate().rows == rows


@pytest.mark.parametrize(
    ("size", "units", "widest"),
    [(size, units, 5120 // units) for size in (INT8, FP16) for units in (1, 2, 4, 8, 16, 32, 64)],
)
def test_the_widest_3x3_that_passes_is_that_of_the_boundary_table(size, units, widest):
    channels = units * 32 // size
    assert use(channels, (3, 3), (64, widest), size).validator_banks <= BANKS
    assert use(channels, (3, 3), (64, widest + 4), size).validator_banks > BANKS


def test_one_kernel_takes_a_second_bank_from_3641_channels_in_int8():
    assert use(3640, (3, 3), (7, 7), INT8).validator_weight_banks == 1
    assert use(3641, (3, 3), (7, 7), INT8).validator_weight_banks == 2


def test_a_group_counts_its_own_channels_for_weights_and_all_of_them_for_data():
    one = use(8192, (3, 3), (7, 7), INT8, groups=8192)
    assert (one.validator_weight_banks, one.validator_data_banks) == (1, 6)


@pytest.mark.parametrize(
    ("width", "size", "entries", "least", "mode"),
    [
        (224, INT8, 8, 1, "whole input, all weights"),
        (224, FP16, 15, 1, "whole input, all weights"),
        (1280, INT8, 41, 2, "part of the rows, all weights"),
        (1280, FP16, 81, 3, "part of the rows, all weights"),
        (1920, FP16, 121, 4, "part of the rows, all weights"),
        (8192, FP16, 513, 15, "part of the rows, all weights"),
    ],
)
def test_pixel_input_is_held_four_channels_a_pixel(width, size, entries, least, mode):
    one = use(3, (7, 7), (width, width), size, padding_width=6, is_pixel_input=True)
    assert one.entries_per_row == entries
    assert (one.estimate().least_data_banks, one.estimate().mode) == (least, mode)


def test_three_atoms_of_channels_cost_a_full_row_in_the_estimate_but_not_in_the_validator():
    one = use(96, (1, 1), (80, 160), INT8)
    assert one.entries_per_row == 160
    assert one.validator_data_banks == 1
