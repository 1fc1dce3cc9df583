"""Programs that choose kernels: algorithm selectors, and edited timing caches."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from tests.frontends.tensorrt.test_plugins import Errors, run, sample


def convolution(trt: Any) -> tuple[Any, Any]:
    """A builder and a network whose convolution has several kernels."""
    builder = trt.Builder(Errors(trt))
    network = builder.create_network(1 if trt.__version__.startswith("8") else 0)
    x = network.add_input("x", trt.float32, (1, 16, 12, 12))
    weights = np.random.default_rng(0).normal(0, 0.1, (16, 16, 3, 3)).astype(np.float32)
    layer = network.add_convolution_nd(x, 16, (3, 3), weights, np.zeros(16, np.float32))
    layer.name = "conv"
    network.mark_output(layer.get_output(0))
    return builder, network


def selector(trt: Any, choose: Any) -> Any:
    class Selector(trt.IAlgorithmSelector):
        def __init__(self) -> None:
            trt.IAlgorithmSelector.__init__(self)
            self.seen: dict[str, Any] = {}
            self.reported: dict[str, Any] = {}

        def select_algorithms(self, context: Any, choices: Any) -> Any:
            self.seen[context.name] = (context, choices)
            return choose(context, choices)

        def report_algorithms(self, contexts: Any, choices: Any) -> None:
            self.reported = {
                context.name: choice.algorithm_variant.tactic for context, choice in zip(contexts, choices, strict=True)
            }

    return Selector()


@pytest.mark.parametrize("major", [8, 10])
def test_a_selector_chooses_the_kernel_of_each_layer(major: int) -> None:
    trt = importlib.import_module(f"dryfit_tensorrt.trt{major}")
    builder, network = convolution(trt)
    config = builder.create_builder_config()
    assert config.algorithm_selector is None
    first = selector(trt, lambda context, choices: list(range(len(choices))))
    config.algorithm_selector = first
    assert config.algorithm_selector is first
    assert builder.build_serialized_network(network, config) is not None
    context, choices = first.seen["conv"]
    assert (context.num_inputs, context.num_outputs) == (1, 1)
    assert [tuple(shape) for shape in context.get_shape(1)] == [(1, 16, 10, 10)] * 3
    assert context.get_shape(2) == []
    info = choices[0].get_algorithm_io_info(0)
    assert (info.dtype, tuple(info.strides), info.vectorized_dim) == (trt.DataType.FLOAT, (2304, 144, 12, 1), -1)
    tactics = [choice.algorithm_variant.tactic for choice in choices]
    assert len(set(tactics)) == len(tactics) > 1
    for index, tactic in enumerate(tactics):
        one = selector(trt, lambda context, choices, index=index: [index] if context.name == "conv" else [0])
        config.algorithm_selector = one
        assert builder.build_serialized_network(network, config) is not None
        assert one.reported["conv"] == tactic


def test_a_selector_that_raises_leaves_the_choice_to_the_builder(capfd: pytest.CaptureFixture[str]) -> None:
    trt = importlib.import_module("dryfit_tensorrt.trt10")
    builder, network = convolution(trt)
    config = builder.create_builder_config()

    def fail(context: Any, choices: Any) -> Any:
        raise RuntimeError("no idea")

    config.algorithm_selector = selector(trt, fail)
    assert builder.build_serialized_network(network, config) is not None
    assert "no idea" in capfd.readouterr().err
    config.algorithm_selector = selector(trt, lambda context, choices: [])
    config.set_flag(trt.BuilderFlag.REJECT_EMPTY_ALGORITHMS)
    assert builder.build_serialized_network(network, config) is None


@pytest.mark.parametrize("major", [10, 11])
def test_an_edited_timing_cache_chooses_the_kernel(major: int) -> None:
    trt = importlib.import_module(f"dryfit_tensorrt.trt{major}")
    builder, network = convolution(trt)
    config = builder.create_builder_config()
    cache = config.create_timing_cache(b"")
    assert config.set_timing_cache(cache, False)
    assert cache.queryKeys() == []
    engine = builder.build_engine_with_config(network, config)
    (key,) = cache.queryKeys()
    assert trt.TimingCacheKey.parse(str(key)) == key
    value = cache.query(key)
    assert value.timingMSec > 0
    names = {one.kernel: _tactic(trt, one.kernel) for one in cache._core.query_keys()}
    assert value.tacticHash in names.values()
    before = [operation.kernel for operation in engine._core.plan.operations]
    other = next(name for name, tactic in names.items() if tactic != value.tacticHash)
    assert cache.update(key, trt.TimingCacheValue(names[other], value.timingMSec))
    assert cache.query(key).tacticHash == names[other]
    changed = builder.build_engine_with_config(network, config)
    assert other in [operation.kernel for operation in changed._core.plan.operations]
    assert other not in before
    x = sample(1, 16, 12, 12)
    np.testing.assert_allclose(run(changed, x)[0], run(engine, x)[0], rtol=1e-4, atol=1e-4)
    assert not cache.update(key, trt.TimingCacheValue(1, 1.0))
    with pytest.raises(ValueError, match="32 hexadecimal digits"):
        trt.TimingCacheKey.parse("conv")


def _tactic(trt: Any, kernel: str) -> int:
    from dryfit_tensorrt.behaviour.algorithms import tactic_of

    return tactic_of(kernel)
