"""Quantized layers round as the device that they run on does, and as its software version does."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import dryfit
from dryfit.engine.engine import Engine
from dryfit.errors import EngineFileError
from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import Convolution
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.quantization.rounding import RoundingMode, round_values

VALUES = np.array([-7, -5, -3, -1, 1, 3, 5, 7], np.float32)
"""Odd numbers: in steps of two, each is a tie."""
STEP = 2.0

# The DLA itself takes no Q and DQ layers: a device with its arithmetic and versions does.
DEVICE = """
from dryfit.target.limits import LimitTable
from dryfit.target.target import Platform, Target

LIMITS = LimitTable("ACME_TIES", [], supported_kinds={"convolution", "quantize", "dequantize"})
TARGET = Target(
    "ACME_TIES",
    "Acme",
    [Platform("one", "one", "One")],
    limits_at="acme_ties:LIMITS",
    arithmetic_at="dryfit_dla.arithmetic:ARITHMETIC",
    software_versions=[(8, 6), (10, 3)],
)
"""


@pytest.fixture
def device(install):
    install("acme_ties", DEVICE, {"dryfit.targets": {"acme-ties": "acme_ties:TARGET"}})
    return "ACME_TIES"


def constant(network, values):
    return network.add_constant(values.shape, values).get_output(0)


def scale(network, value):
    return constant(network, np.array(value, np.float32))


def convolution_of_ties() -> Network:
    """Whole numbers, multiplied by one, in steps of two."""
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 1, 1, VALUES.size))
    whole = network.add_dequantize(network.add_quantize(x, scale(network, 1)).get_output(0), scale(network, 1))
    weights = network.add_dequantize(constant(network, np.ones((2, 1, 1, 1), np.int8)), scale(network, 1))
    layer = Convolution(num_output_maps=2, kernel_size_nd=(1, 1))
    y = network.add_layer(layer, [whole.get_output(0), weights.get_output(0)]).get_output(0)
    network.mark_output(network.add_quantize(y, scale(network, STEP)).get_output(0))
    return network


def quantization_of_ties() -> Network:
    """The same numbers, quantized by a layer that stands alone."""
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 1, 1, VALUES.size))
    network.mark_output(network.add_quantize(x, scale(network, STEP)).get_output(0))
    return network


def built(network, device, software=None) -> Engine:
    builder = dryfit.Builder()
    config = builder.create_builder_config()
    config.default_device_type = device
    if software is not None:
        config.set_software(device, software)
    return builder.build_engine(network, config)


def codes(engine, path) -> np.ndarray:
    """What an engine gives that was saved and loaded again."""
    engine.save(path)
    context = Engine.load(path).create_execution_context(num_threads=1)
    return next(iter(context.run({"x": VALUES.reshape(1, 1, 1, -1)}).values()))[0, 0].ravel()


@pytest.mark.parametrize("network", [convolution_of_ties, quantization_of_ties])
@pytest.mark.parametrize(
    ("software", "mode"),
    [("8.6", RoundingMode.HALF_AWAY_FROM_ZERO), ("10.3", RoundingMode.HALF_TO_EVEN), (None, RoundingMode.HALF_TO_EVEN)],
)
def test_ties_go_where_the_devices_software_version_sends_them(device, tmp_path, network, software, mode):
    found = codes(built(network(), device, software), tmp_path / "ties.engine")
    np.testing.assert_array_equal(found, round_values(VALUES / np.float32(STEP), mode).astype(np.int8))


def test_the_versions_of_the_dla_differ_in_ties(device, tmp_path):
    old, new = (codes(built(convolution_of_ties(), device, one), tmp_path / "a.engine") for one in ("8.6", "10.3"))
    assert old.tolist() == [-4, -3, -2, -1, 1, 2, 3, 4]
    assert new.tolist() == [-4, -2, -2, 0, 0, 2, 2, 4]


@pytest.mark.parametrize("name", ["CPU", "GPU"])
def test_this_machine_and_the_gpu_round_to_even(name, tmp_path):
    assert registry.target(name).arithmetic[DataType.INT8].rounding is RoundingMode.HALF_TO_EVEN
    assert codes(built(convolution_of_ties(), name), tmp_path / "a.engine").tolist() == [-4, -2, -2, 0, 0, 2, 2, 4]


def test_an_engine_whose_software_version_is_none_is_refused(device):
    plan = built(convolution_of_ties(), device, "8.6").plan
    settings = {**plan.settings, "software": {device: "8.x"}}
    with pytest.raises(EngineFileError, match=r"numbers with dots.*8\.x"):
        Engine(attrs.evolve(plan, settings=settings)).create_execution_context(num_threads=1)
