"""The passes over the shared Q/DQ models: what they do, and that not one bit of any result changes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dryfit.network.copying import copy_network
from dryfit.onnx.importer import network_from_onnx
from dryfit.passes.canonical import own_passes, specialise
from dryfit.passes.pipeline import Pipeline
from dryfit.reference.executor import run_reference

MODELS = {
    # Weights in real numbers with Q and DQ, as a training framework exports them.
    "mnist_resnet_qat_qdq": {"folded": 5},
    # Three maximum poolings between pairs of one scale; concatenations of different scales stay groups.
    "squeezenet1.1-int8-qdq-sym": {"moved": 3, "cancelled": 6},
    # The flattening before the classifier stands between pairs of one scale.
    "clothing_mobilenetv2_int8-qdq-sym": {"moved": 1, "cancelled": 2},
}


@pytest.mark.parametrize("name", MODELS)
def test_what_moves_is_counted_and_results_are_the_same_bits(name, shared: Path):
    network = network_from_onnx(shared / "models" / f"{name}.onnx")
    dynamic = {tensor.name: tensor.shape for tensor in network.inputs if -1 in tensor.shape}
    network = specialise(network, {one: tuple(abs(extent) for extent in shape) for one, shape in dynamic.items()})
    optimized = copy_network(network)
    journal = Pipeline(own_passes()).run(optimized).found.rewrites
    done = Counter(step.action.value for step in journal)
    del done["stopped"]
    assert done == MODELS[name]
    (image,) = network.inputs
    feeds = {image.name: np.random.default_rng(0).standard_normal(image.shape).astype(np.float32)}
    expected, found = run_reference(network, feeds), run_reference(optimized, feeds)
    for output, array in expected.items():
        np.testing.assert_array_equal(found[output], array)
