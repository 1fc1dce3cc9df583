"""The metrics, and those of users."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from dryfit.errors import CalibrationError, ConfigError, PluginError, UnknownNameError
from dryfit.plugins.metrics import metric

EXACT = {"y": np.array([[3.0, 1.0], [0.0, 2.0]], np.float32)}
FOUND = {"y": np.array([[3.0, 1.0], [0.5, 0.25]], np.float32)}


@pytest.mark.parametrize(
    ("name", "value", "text"), [("agreement", 50.0, "50.0 %"), ("sqnr", 6.2597, "6.3 dB"), ("cosine", 0.8736, "0.8736")]
)
def test_metrics_against_fp32(name, value, text):
    found = metric(name)
    assert found.value(FOUND, EXACT) == pytest.approx(value, rel=1e-3)
    assert found.text(value) == text


def test_labels_are_counted():
    assert metric("top-1").value(FOUND, EXACT, [0, 1]) == 50.0
    with pytest.raises(ConfigError, match="a label for each sample"):
        metric("top-1").value(FOUND, EXACT)
    with pytest.raises(ConfigError, match="one label for each sample"):
        metric("top-1").value(FOUND, EXACT, [0])


def test_classes_need_one_output():
    with pytest.raises(ConfigError, match="one output"):
        metric("agreement").value({"a": FOUND["y"], "b": FOUND["y"]}, EXACT)


def test_a_function_of_the_user_is_a_metric(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def sure(outputs, labels):\n    return outputs['y'].max() - labels\n")
    assert metric(f"{path}:sure").value(FOUND, EXACT, 1) == 2.0
    with pytest.raises(CalibrationError, match="function for metrics"):
        metric(f"{path}:missing")
    with pytest.raises(PluginError, match="The metric failed"):
        metric(f"{path}:sure").value({}, EXACT, 1)


def test_an_unknown_metric_names_what_exists():
    with pytest.raises(UnknownNameError, match="agreement"):
        metric("agrement")


DETECTED = {
    "boxes": np.array([[[0, 0, 10, 10], [20, 20, 40, 40]], [[5, 5, 15, 25], [0, 0, 1, 1]]], np.float32),
    "scores": np.array([[0.9, 0.8], [0.7, 0.1]], np.float32),
    "labels": np.array([[1, 2], [1, 2]]),
}
TRUTH = [
    {"boxes": [[0, 0, 10, 10], [20, 20, 40, 40]], "labels": [1, 2]},
    {"boxes": [[5, 5, 15, 25]], "labels": [1]},
]


def test_mean_average_precision_by_pycocotools():
    pytest.importorskip("pycocotools")
    precision = metric("mean-average-precision")
    assert precision.value(DETECTED, {}, TRUTH) == pytest.approx(100)
    # Kind 1: the box of the first picture has another place, that of the second stays: half of them are found.
    moved = {**DETECTED, "boxes": DETECTED["boxes"] + np.array([[100], [0]])[:, :, np.newaxis]}
    # The right box comes second, so that of the recalls up to one half each has a precision of one half.
    by_kind = [51 / 101 * 0.5, 0.0]
    assert precision.value(moved, {}, TRUTH) == pytest.approx(100 * np.mean(by_kind))


def test_mean_average_precision_by_torchmetrics():
    pytest.importorskip("torchmetrics")
    _by_torchmetrics = pytest.importorskip("dryfit_plugins.metrics")._by_torchmetrics
    assert _by_torchmetrics(DETECTED, TRUTH) == pytest.approx(1)


def test_mean_average_precision_says_what_it_requires(monkeypatch):
    precision = metric("mean-average-precision")
    with pytest.raises(ConfigError, match="boxes, scores and labels"):
        precision.value(FOUND, EXACT, TRUTH)
    with pytest.raises(ConfigError, match="true boxes for each sample"):
        precision.value(DETECTED, {}, TRUTH[:1])
    monkeypatch.setitem(sys.modules, "pycocotools.coco", None)
    monkeypatch.setitem(sys.modules, "torchmetrics.detection", None)
    with pytest.raises(ConfigError, match="requires pycocotools or torchmetrics") as refused:
        precision.value(DETECTED, {}, TRUTH)
    assert refused.value.remedy == "pip install pycocotools"
