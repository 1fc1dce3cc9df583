"""An engine run in parts gives what a whole run gives with the same contents."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.onnx.models import model, numbers

import dryfit
from dryfit.builder.build import build_plan
from dryfit.calibration.executor import tapped_network, whole_network_config
from dryfit.engine.partial_runs import PartialRuns
from dryfit.errors import ExecutionError

X = numbers(1, 4, 6, 6)


@pytest.fixture
def runs():
    """Two branches of one tensor that are added: `b` does not depend on `c`."""
    network = dryfit.network_from_onnx(
        model(
            "a = Relu(x) b = Conv(a, v) c = Conv(a, w) y = Add(b, c) z = Relu(b)",
            inputs="float[1,4,6,6] x",
            outputs="float[1,4,6,6] y, float[1,4,6,6] z",
            weights={"v": numbers(4, 4, 1, 1), "w": numbers(4, 4, 3, 3)[:, :, 1:2, 1:2].copy()},
        )
    )
    tapped = tapped_network(network, [], ["a", "b", "c", "y", "z"])
    return PartialRuns(build_plan(tapped, whole_network_config(tapped, {"x": X})), {"x": X.shape}, 1)


def test_only_what_depends_on_a_changed_tensor_changes(runs):
    whole = runs.run({"x": X})
    doubled = runs.run_after({"c": runs.array("c") * 2}, ["y", "z"])
    np.testing.assert_allclose(doubled["y"], whole["y"] + runs.array("c"), rtol=1e-5)
    np.testing.assert_array_equal(doubled["z"], whole["z"])


def test_a_change_is_gone_after_the_next_one(runs):
    whole = runs.run({"x": X})
    runs.run_after({"a": np.zeros_like(X)})
    again = runs.run_after({"c": runs.array("c")}, ["y", "z", "b"])
    np.testing.assert_array_equal(again["y"], whole["y"])
    np.testing.assert_array_equal(again["b"], whole["b"])


def test_outputs_that_follow_from_shapes_are_given_and_can_be_changed():
    nodes = "s = Shape(x) f = Cast<to=1>(s) k = Reshape(f, t) y = Add(x, k)"
    weights = {"t": np.asarray([1, 4, 1, 1], np.int64)}
    network = dryfit.network_from_onnx(
        model(nodes, inputs="float[N,4,6,6] x", outputs="float[N,4,6,6] y", weights=weights)
    )
    network.inputs[0].shape = X.shape
    tapped = tapped_network(network, [], ["k", "y"])
    runs = PartialRuns(build_plan(tapped, whole_network_config(tapped, {"x": X})), {"x": X.shape}, 1)
    whole = runs.run({"x": X})
    np.testing.assert_array_equal(whole["k"].ravel(), X.shape)
    np.testing.assert_array_equal(whole["y"], X + whole["k"])
    changed = runs.run_after({"k": np.zeros_like(whole["k"])}, ["k", "y"])
    np.testing.assert_array_equal(changed["k"], 0)
    np.testing.assert_array_equal(runs.run({"x": X})["k"], whole["k"])


def test_a_whole_run_comes_first(runs):
    with pytest.raises(ExecutionError, match="only after a whole run"):
        runs.run_after({"a": X})
