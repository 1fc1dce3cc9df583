"""`dryfit.find_sparsity` and `dryfit.prune`: records of models and networks, and pruned copies."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tests.core.builder.networks import weights
from tests.core.builder.sparse_networks import int8_config, pruned_by_hand, wide_network
from tests.core.onnx.models import model

import dryfit
from dryfit.network.network import Network

ORIN = {"platform": "agx-orin-64", "assume_scales": True}


def one_convolution() -> onnx.ModelProto:
    parsed = model(
        "y = Conv(x, w)",
        inputs="float[1,68,4,4] x",
        outputs="float[1,32,4,4] y",
        weights={"w": weights(32, 68, 1, 1)},
    )
    parsed.graph.node[0].name = "conv"
    return parsed


def test_a_network_and_a_config_give_records():
    answer = dryfit.find_sparsity(wide_network(), int8_config(), fail_on="unpruned,dense>200%")
    found = {one.name: (one.eligible, one.has_pattern, one.sparse) for one in answer.layers}
    assert found["c0"] == (True, False, False)
    assert (answer.device, answer.pattern, answer.summary.unpruned) == ("DLA", "2:4", 1)
    assert [one.failed for one in answer.conditions] == [True, False]
    assert str(answer).splitlines()[-1] == str(answer.summary)


def test_a_model_is_pruned_in_memory():
    before = one_convolution()
    answer = dryfit.prune(before, **ORIN)
    assert isinstance(answer.pruned_model, onnx.ModelProto)
    (stored,) = (onnx.numpy_helper.to_array(one) for one in answer.pruned_model.graph.initializer)
    np.testing.assert_array_equal(stored, pruned_by_hand(weights(32, 68, 1, 1)))
    assert before == one_convolution()
    assert (answer.output, answer.before.sparse, answer.after.sparse) == (None, 0, 1)
    assert [(one.layers, one.zeroed, one.size) for one in answer.pruned] == [(["conv"], 32 * 34, 32 * 68)]


def test_a_network_is_pruned_in_a_copy_that_keeps_the_names_of_weights():
    network = wide_network()
    kernel = network.layer("c0").kernel
    network.set_weights_name(kernel, "first")
    answer = dryfit.prune(network, **ORIN)
    assert isinstance(answer.pruned_model, Network)
    np.testing.assert_array_equal(answer.pruned_model.layer("c0").kernel, pruned_by_hand(kernel))
    assert network.layer("c0").kernel is kernel
    assert [one.name for one in answer.pruned] == ["first"]
    assert (answer.before.unpruned, answer.after.unpruned, answer.after.sparse) == (1, 0, 1)


def test_a_network_is_not_written(tmp_path):
    with pytest.raises(dryfit.ConfigError, match="Pruned models can only be written for ONNX models"):
        dryfit.prune(wide_network(), tmp_path / "pruned.onnx", **ORIN)
