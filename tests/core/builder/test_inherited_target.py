import numpy as np
import pytest
from tests.core.builder.networks import activation, add, convolution, image_network

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.plugins import registry

DEVICE = """
from dryfit.target.limits import LimitTable
from dryfit.target.target import Platform, Target

LIMITS = LimitTable("ACME_BARE", [], supported_kinds={"convolution", "activation", "elementwise"})
TARGET = Target("ACME_BARE", "Acme", [Platform("one", "one", "One")], limits_at="acme_bare:LIMITS")
"""


@pytest.fixture(autouse=True)
def _acme(install):
    """A device that declares its limits and nothing else, installed."""
    install("acme_bare", DEVICE, {"dryfit.targets": {"acme-bare": "acme_bare:TARGET"}})


def built(device, *flags):
    network, x = image_network()
    first = convolution(network, x, "c")
    network.mark_output(add(network, activation(network, first, "r"), x, "sum"))
    config = BuilderConfig()
    config.default_device_type = device
    for flag in flags:
        config.set_flag(flag)
    return Builder().build_engine(network, config)


@pytest.mark.parametrize("flags", [(), (BuilderFlag.FP16,), (BuilderFlag.BF16,)], ids=["fp32", "fp16", "bf16"])
def test_a_device_with_limits_only_computes_what_the_cpu_computes(flags):
    x = np.random.default_rng(0).standard_normal((1, 8, 6, 6)).astype(np.float32)
    own, hosts = built("ACME_BARE", *flags), built("CPU", *flags)
    assert {operation.device for operation in own.plan.operations if operation.segment >= 0} == {"ACME_BARE"}
    assert [one.precision for one in own.plan.operations] == [one.precision for one in hosts.plan.operations]
    for engine in (own, Engine.load(own.serialize())):
        found = engine.create_execution_context(2).run({"x": x})["sum"]
        np.testing.assert_array_equal(found, hosts.create_execution_context(1).run({"x": x})["sum"])


def test_the_record_says_what_was_inherited():
    target, host = registry.target("ACME_BARE"), registry.host()
    assert target.precisions == host.precisions
    assert target.arithmetic == host.arithmetic
    assert target.kernels == ()
