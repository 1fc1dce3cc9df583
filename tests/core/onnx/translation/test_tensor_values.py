"""The tensors inside an engine can be looked at without changing what it computes."""

from __future__ import annotations

import numpy as np

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.window_layer import PoolingType
from dryfit.network.network import Network
from dryfit.onnx.translation.agreement import tensor_values
from dryfit.reference.executor import run_reference


def test_every_stored_tensor_has_the_value_that_the_reference_computes() -> None:
    network = Network("test")
    x = network.add_input("x", DataType.FLOAT, (1, 4, 6, 6))
    pooled = network.add_pooling_nd(x, PoolingType.MAX, (2, 2)).get_output(0)
    softmax = network.add_softmax(pooled).get_output(0)
    result = network.add_activation(softmax, ActivationType.RELU).get_output(0)
    for tensor, name in ((pooled, "pooled"), (softmax, "softmax"), (result, "y")):
        network.rename_tensor(tensor, name)
    network.mark_output(result)
    config = BuilderConfig()
    config.builder_optimization_level = 0
    engine = Builder().build_engine(network, config)
    feeds = {"x": np.random.default_rng(0).standard_normal((1, 4, 6, 6)).astype(np.float32)}
    values = tensor_values(engine, feeds, num_threads=1)
    outputs = engine.create_execution_context(1).run(feeds)
    np.testing.assert_array_equal(values["y"], outputs["y"])
    expected = run_reference(network, feeds)
    np.testing.assert_allclose(values["y"], expected["y"], rtol=1e-5)
    stored = {one for operation in engine.plan.operations for one in operation.layers}
    assert {"x", "y", "pooled"} <= values.keys()
    assert len(values) <= 2 + len(stored)
    windows = np.lib.stride_tricks.sliding_window_view(feeds["x"], (2, 2), axis=(2, 3)).max(axis=(4, 5))
    kept = windows if values["pooled"].shape == windows.shape else windows[:, :, ::2, ::2]
    np.testing.assert_array_equal(values["pooled"], kept)
