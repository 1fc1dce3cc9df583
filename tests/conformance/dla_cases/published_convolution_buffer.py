"""Published cases of the convolution buffer: what the validator accepts, by the table of its formula."""

from __future__ import annotations

from tests.conformance.dla_cases.case import (
    FP16,
    INT8,
    Case,
    one_convolution,
)

# Input channels, kernel, (height, width), dilation, precision, whether the validator accepts it.
_BUFFER = [
    (1024, 3, (14, 14), 1, INT8, True),
    (1024, 3, (32, 32), 1, FP16, True),
    (2048, 3, (7, 7), 1, FP16, True),
    (512, 3, (80, 160), 1, INT8, True),
    (512, 3, (80, 160), 1, FP16, True),
    (512, 3, (80, 161), 1, FP16, False),
    (256, 3, (96, 160), 1, FP16, True),
    (3, 7, (64, 1280), 1, INT8, True),
    (3, 7, (64, 2192), 1, FP16, True),
    (3, 7, (64, 2193), 1, INT8, False),
    (3, 7, (64, 3840), 1, FP16, False),
    (32, 3, (64, 8192), 1, INT8, False),
    (32, 1, (64, 8192), 1, INT8, True),
    (32, 1, (64, 8192), 1, FP16, False),
    (64, 1, (64, 8192), 1, INT8, False),
    (8192, 1, (1, 1), 1, FP16, True),
    (8192, 3, (7, 7), 1, FP16, True),
    (8192, 7, (7, 7), 1, INT8, False),
    (512, 7, (7, 7), 1, FP16, True),
    (128, 32, (64, 64), 1, INT8, True),
    (128, 32, (64, 64), 1, FP16, False),
    (1024, 3, (32, 64), 6, INT8, False),
    (2048, 3, (33, 33), 12, INT8, False),
    (256, 3, (640, 640), 1, INT8, True),
    (256, 3, (640, 641), 1, INT8, False),
    (1024, 3, (160, 160), 1, INT8, True),
    (1024, 3, (160, 161), 1, INT8, False),
]


def _buffer_case(
    channels: int, kernel: int, extent: tuple[int, int], dilation: int, precision: str, fits: bool
) -> Case:
    """The number of kernels does not enter the validator's formula: one is enough."""
    return Case(
        f"{channels} channels, {kernel}x{kernel} dilated {dilation}, {extent[0]}x{extent[1]}, {precision}",
        "guide 8.4: wtBanksForOneKernel + minDataBanks",
        one_convolution(channels, 1, kernel, extent, dilation=dilation),
        {} if fits else {"y": "dla.convolution.cbuf"},
        ["y"] if fits else [],
        precision=precision,
    )


CASES = [_buffer_case(*row) for row in _BUFFER]
