"""The metrics, and those of users."""

from __future__ import annotations

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
