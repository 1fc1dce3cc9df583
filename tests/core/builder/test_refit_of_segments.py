"""Refits of engines whose segments their target compiles: the programs are compiled anew."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.builder.networks import activation, convolution, image_network
from tests.core.builder.refittable_networks import give_all
from tests.core.engine import compiling_target

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.refit.refitter import Refitter
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.network.network import Network


@pytest.fixture(autouse=True)
def _acme(install):
    """The compiling targets, installed."""
    install("acme_compilers", "", compiling_target.ENTRY_POINTS)


def small(kernel: np.ndarray | None = None) -> Network:
    network, x = image_network()
    network.mark_output(activation(network, convolution(network, x, "c"), "r"))
    if kernel is not None:
        network.layer("c").kernel = kernel
    return network


def built(network: Network, *flags: BuilderFlag) -> Engine:
    config = BuilderConfig()
    config.default_device_type = "ACME_COMPILER"
    config.allow_fallback("GPU")
    for flag in flags:
        config.set_flag(flag)
    return Builder().build_engine(network, config)


@pytest.mark.parametrize("flags", [(), (BuilderFlag.STRIP_PLAN,)])
def test_a_program_is_that_of_the_new_weights(flags):
    old = small()
    kernel = np.random.default_rng(5).standard_normal(old.layer("c").kernel.shape).astype(np.float32)
    engine = Engine.load(built(old, BuilderFlag.REFIT, *flags).serialize())
    fresh = built(small(kernel), BuilderFlag.REFIT)
    assert bool(engine.plan.programs) == (not flags)
    refitter = Refitter(engine)
    give_all(refitter, small(kernel))
    refitter.refit_cuda_engine()
    assert engine.plan.programs == fresh.plan.programs
    x = np.random.default_rng(1).standard_normal((1, 8, 6, 6)).astype(np.float32)
    found, expected = (one.create_execution_context(1).run({"x": x}) for one in (engine, fresh))
    for name, array in expected.items():
        assert found[name].tobytes() == array.tobytes()
