"""Which rows of a profile are the time of a segment on the DLA."""

from __future__ import annotations

import pytest

from dryfit.answers.board.dla_rows import DlaRow, dla_rows
from dryfit.board.results import MeasuredLayer

SEGMENT = "{ForeignNode[Conv_0...Concat_198]}"
PUBLIC = {
    "images to nvm": 85.2,
    SEGMENT: 8.5,
    "head_3 from nvm": 7693.1,
    "images copy finish": 1.7,
    "head_3 copy finish": 2.9,
    "head_2 from nvm": 7.2,
    "head_2 copy finish": 2.6,
    "head_1 from nvm": 10.7,
}
"""Means of a profile on Orin. Source: NVIDIA/TensorRT issue 3143."""


def rows(times: dict[str, float]) -> list[DlaRow]:
    return dla_rows(MeasuredLayer(name, time) for name, time in times.items())


def test_the_first_copy_back_waits_for_the_segment() -> None:
    assert rows(PUBLIC) == [
        DlaRow("images to nvm", 85.2, is_segment=False, tensor="images"),
        DlaRow(SEGMENT, pytest.approx(7701.6), is_segment=True, tensor="head_3"),
        DlaRow("head_2 from nvm", 7.2, is_segment=False, tensor="head_2"),
        DlaRow("head_1 from nvm", 10.7, is_segment=False, tensor="head_1"),
    ]


def test_without_copies_the_row_of_a_segment_is_its_time() -> None:
    found = rows({"{ForeignNode[a]}": 66.0, "gpu layer": 4.0, "{ForeignNode[b]}": 20.0})
    assert found == [
        DlaRow("{ForeignNode[a]}", 66.0, is_segment=True),
        DlaRow("{ForeignNode[b]}", 20.0, is_segment=True),
    ]


def test_segments_without_a_copy_between_them_have_no_time_of_their_own() -> None:
    found = rows({"x to nvm": 5.0, "{ForeignNode[a]}": 8.0, "{ForeignNode[b]}": 8.0, "y from nvm": 90.0})
    assert found == [DlaRow("x to nvm", 5.0, is_segment=False, tensor="x")]


def test_each_of_several_segments_has_its_own_wait() -> None:
    found = rows(
        {
            "x to nvm": 5.0,
            "{ForeignNode[a]}": 8.0,
            "a_out from nvm": 40.0,
            "a_out copy finish": 2.0,
            "softmax": 9.0,
            "s to nvm": 6.0,
            "{ForeignNode[b]}": 8.0,
            "b out from nvm": 70.0,
        }
    )
    assert [(one.name, one.microseconds, one.tensor) for one in found if one.is_segment] == [
        ("{ForeignNode[a]}", 48.0, "a_out"),
        ("{ForeignNode[b]}", 78.0, "b out"),
    ]
