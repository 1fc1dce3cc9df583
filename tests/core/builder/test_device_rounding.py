"""Quantized layers round as the device that they run on does, and as its software version does."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import dryfit
from dryfit.engine.engine import Engine
from dryfit.errors import EngineFileError, PluginError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import Convolution
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.quantization.rounding import RoundingFunction, RoundingMode, round_values
from dryfit.target.arithmetic import Arithmetic
from dryfit.testing.arithmetic_checks import rounding_problems

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


# A function of the device's own ---------------------------------------------------------------------------------------

OWN_ROUNDING = """
import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.quantization.rounding import RoundingMode
from dryfit.target.arithmetic import Arithmetic
from dryfit.target.limits import LimitTable
from dryfit.target.target import Platform, Target

LIMITS = LimitTable("ACME_FLOOR", [], supported_kinds={"convolution", "quantize", "dequantize", "activation"})
INT8 = Arithmetic(DataType.INT8, DataType.INT32, "group", np.floor, "documented", "Acme manual, 5")
TARGET = Target(
    "ACME_FLOOR", "Acme", [Platform("one", "one", "One")], limits_at="acme_floor:LIMITS",
    arithmetic_at="acme_floor:ARITHMETIC",
)
ARITHMETIC = {DataType.INT8: INT8}
"""


@pytest.fixture
def floor_device(install):
    install("acme_floor", OWN_ROUNDING, {"dryfit.targets": {"acme-floor": "acme_floor:TARGET"}})
    return "ACME_FLOOR"


@pytest.mark.parametrize("network", [convolution_of_ties, quantization_of_ties])
def test_a_device_may_round_by_a_function(floor_device, tmp_path, network, caplog):
    with caplog.at_level("INFO", "dryfit"):
        engine = built(network(), floor_device)
    found = codes(engine, tmp_path / "floor.engine")
    assert found.tolist() == np.floor(VALUES / STEP).astype(int).tolist()
    assert "ACME_FLOOR rounds by the function floor" in caplog.text


def implicit_network():
    network = Network()
    x = network.add_input("x", DataType.FLOAT, (1, 1, 1, VALUES.size))
    layer = network.add_convolution_nd(x, 2, (1, 1), np.ones((2, 1, 1, 1), np.float32))
    network.mark_output(network.add_activation(layer.get_output(0), dryfit.ActivationType.RELU).get_output(0))
    for one in network.layers:
        one.precision = DataType.INT8
    for tensor in network.tensors:
        tensor.set_dynamic_range(-127.0 * STEP, 127.0 * STEP)
    return network


def test_an_implicitly_quantized_network_rounds_by_the_function_too(floor_device):
    builder = dryfit.Builder()
    config = builder.create_builder_config()
    config.default_device_type = floor_device
    config.set_flag(dryfit.BuilderFlag.INT8)
    config.set_flag(dryfit.BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
    engine = builder.build_engine(implicit_network(), config)
    assert {one.precision for one in engine.plan.layers} == {DataType.INT8}
    found = next(iter(engine.create_execution_context(1).run({"x": VALUES.reshape(1, 1, 1, -1)}).values()))
    expected = np.maximum(np.floor(VALUES / STEP) * STEP, 0)
    np.testing.assert_array_equal(found[0, 0, 0], expected)


def test_an_unknown_rounding_is_refused_with_the_closest():
    with pytest.raises(UnknownNameError, match="half_to_even") as caught:
        arithmetic("half_to_evem")
    assert caught.value.remedy == "Did you mean 'half_to_even'?"
    assert arithmetic("HALF_UP").rounding is RoundingMode.HALF_UP
    with pytest.raises(PluginError, match="a mode or a function"):
        arithmetic(3)


def arithmetic(rounding, precision=DataType.INT8):
    return Arithmetic(precision, DataType.INT32, "group", rounding, "documented", "s")


def test_only_int8_is_rounded_by_a_function():
    with pytest.raises(PluginError, match="Only INT8"):
        arithmetic(np.floor, DataType.HALF)


@pytest.mark.parametrize("function", [lambda x: x, lambda x: x[:1], lambda x: 1 / 0])
def test_a_function_that_does_not_round_is_named(function):
    with pytest.raises(PluginError, match="rounding"):
        round_values(np.array([0.5, 1.5], np.float32), RoundingFunction(function, "odd"))


def test_what_is_not_finite_stays():
    found = round_values(np.array([np.inf, -np.inf, np.nan, -0.5], np.float32), RoundingFunction(np.floor))
    np.testing.assert_array_equal(found, [np.inf, -np.inf, np.nan, -1])


def test_the_kit_looks_at_a_function():
    assert rounding_problems(RoundingFunction(np.floor)) == []
    assert rounding_problems(RoundingMode.HALF_UP) == []
    (problem,) = rounding_problems(RoundingFunction(lambda x: np.rint(x) + 3, "three"))
    assert "rounding three" in problem
