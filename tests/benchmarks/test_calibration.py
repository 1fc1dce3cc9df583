"""The bars of calibration: what is printed of them follows from what was measured."""

from __future__ import annotations

import numpy as np

import calibration
from calibration import FEW, Spent, verdicts
from measuring.calibration_models import pictures


def spent(cpu_seconds, peak_mib=400.0, search_ms=5.0):
    return Spent(cpu_seconds, cpu_seconds, search_ms, peak_mib)


def test_each_bar_is_met_or_missed_by_the_median_of_the_rounds():
    found = {
        "plain": [spent(10.0), spent(5.0), spent(10.0)],
        "dryfit": [spent(13.0), spent(9.0), spent(13.0, 601.0)],
        "onnxruntime": [spent(26.0)],
        FEW: [spent(1.0)],
    }
    assert verdicts(found) == [
        "1.30 times the CPU of plain inference (at most 1.3): met",
        "2.0 times less CPU than ONNX Runtime (at least 3): MISSED",
        "5.0 ms of search a tensor (at most 5 ms): met",
        "601 MiB at the peak (at most 600 MiB): MISSED",
        "201 MiB more than with a quarter of the images (at most 16): MISSED",
    ]
    assert verdicts({"plain": [spent(1.0)]}) == []


def test_the_page_has_a_place_for_the_results():
    text = calibration.table(calibration.COLUMNS, [calibration.row("dryfit", 64, [spent(2.0), spent(3.0)])])
    assert "| dryfit | 64 | 2.0 s | 2.0 s | 400 MiB |" in text


def test_pictures_are_those_of_a_camera_in_imagenet_s_range():
    first, second = pictures(2)
    assert (first.shape, first.dtype) == ((1, 3, 224, 224), np.float32)
    assert -2.2 < first.min() < first.max() < 2.7
    assert len(np.unique(first[0, 0])) <= 256
    assert not np.array_equal(first, second)
