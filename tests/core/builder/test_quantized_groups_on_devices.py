"""Quantized groups meet what a device declares: fusions, kernels of its own, compiled segments; and named kernels."""

import json

import numpy as np
import pytest
from tests.core.builder.networks import activation, image_network, named
from tests.core.engine import compiling_target

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.window_layer import PoolingType
from dryfit.reference.executor import run_reference
from dryfit.target.fusions import Fusion
from dryfit.target.kernels import kernel

SCALE = 0.25
DEVICES = """
from dryfit.target.limits import LimitTable
from dryfit.target.target import Platform, Target

FUSIONS, KERNELS = [], []
KINDS = {"convolution", "activation", "elementwise", "quantize", "dequantize", "pooling"}
LIMITS = LimitTable("ACME_BYTES", [], supported_kinds=KINDS)
TARGET = Target(
    "ACME_BYTES",
    "Acme",
    [Platform("one", "one", "One")],
    limits_at="acme_bytes:LIMITS",
    kernels_at="acme_bytes:KERNELS",
)
FUSING = Target(
    "ACME_FUSING",
    "Acme",
    [Platform("one", "one", "One")],
    limits_at="acme_bytes:LIMITS",
    fusions_at="acme_bytes:FUSIONS",
)
"""


def constant(network, values):
    return network.add_constant(values.shape, values).get_output(0)


def scale(network, value=SCALE):
    return constant(network, np.array(value, np.float32))


def quantized(network, x, name, value=SCALE):
    """The tensor quantized and dequantized, by layers NAME.q and NAME.dq."""
    bytes_ = named(network.add_quantize(x, scale(network, value)), f"{name}.q")
    return named(network.add_dequantize(bytes_, scale(network, value)), f"{name}.dq")


def convolution(network, x, name):
    """A convolution NAME that doubles, with an INT8 weight, which NAME.w dequantizes."""
    weights = constant(network, 4 * np.eye(8, dtype=np.int8).reshape(8, 8, 1, 1))
    real = named(network.add_dequantize(weights, scale(network, 0.5)), f"{name}.w")
    return named(network.add_layer(Convolution(num_output_maps=8, kernel_size_nd=(1, 1)), [x, real]), name)


def quantized_chain():
    """c, r: a convolution and a ReLU between quantizations x and y."""
    network, x = image_network()
    y = activation(network, convolution(network, quantized(network, x, "x"), "c"), "r")
    network.mark_output(quantized(network, y, "y"))
    return network


def assert_runs_as_the_reference(engine, network):
    """Bit for bit: all numbers are multiples of the scale, whose sums FP32 holds exactly."""
    x = (np.random.default_rng(0).integers(-60, 60, (1, 8, 6, 6)) * SCALE).astype(np.float32)
    found = engine.create_execution_context(2).run({"x": x})
    for name, array in run_reference(network, {"x": x}).items():
        np.testing.assert_array_equal(found[name], array)


@pytest.fixture
def groups(install, monkeypatch):
    """A function from a network and what the device declares to the groups that the engine runs, with their kernels."""
    entries = {"acme-bytes": "acme_bytes:TARGET", "acme-fusing": "acme_bytes:FUSING"}
    install("acme_bytes", DEVICES, {"dryfit.targets": entries})
    import acme_bytes

    def run(network, *, fusions=None, kernels=(), named=None):
        config = BuilderConfig()
        config.default_device_type = "ACME_BYTES" if fusions is None else "ACME_FUSING"
        for layer, name in (named or {}).items():
            config.set_kernel(network.layer(layer), name)
        monkeypatch.setattr(acme_bytes, "FUSIONS", fusions or [])
        monkeypatch.setattr(acme_bytes, "KERNELS", list(kernels))
        engine = Builder().build_engine(network, config)
        assert_runs_as_the_reference(engine, network)
        return {tuple(one.layers): one.kernel for one in engine.plan.operations}

    return run


def test_a_host_kernel_takes_the_whole_quantized_group_of_a_device_that_declares_nothing(groups):
    assert groups(quantized_chain()) == {
        ("x.q",): "cpu.quantization",
        ("x.dq", "c.w", "c", "r", "y.q"): "cpu.integer_convolution",
        ("y.dq",): "cpu.quantization",
    }


def test_a_fusion_speaks_of_the_chain_without_what_quantizes(groups):
    fusion = Fusion("convolution-relu", ["convolution", "activation"])
    assert ("x.dq", "c.w", "c", "r", "y.q") in groups(quantized_chain(), fusions=[fusion])


def test_a_device_without_fusions_runs_a_layer_with_what_quantizes_around_it(groups):
    network, x = image_network()
    y = quantized(network, convolution(network, quantized(network, x, "x"), "c"), "y")
    network.mark_output(quantized(network, activation(network, y, "r"), "z"))
    assert list(groups(network, fusions=[])) == [
        ("x.q",), ("x.dq", "c.w", "c", "y.q"), ("y.dq", "r", "z.q"), ("z.dq",)
    ]  # fmt: skip


def test_a_quantized_beginning_of_a_fusion_is_cut_back(groups):
    longer = Fusion("longer", ["convolution", "activation", "elementwise"])
    found = groups(quantized_chain(), fusions=[longer])
    assert list(found) == [("x.q",), ("x.dq", "c.w", "c"), ("r",), ("y.q",), ("y.dq",)]
    assert found["x.dq", "c.w", "c"] == "cpu.integer_convolution"


def test_what_is_cut_off_reads_through_its_own_dequantizations(groups):
    network, x = image_network()
    y = quantized(network, convolution(network, quantized(network, x, "x"), "c"), "y")
    network.mark_output(quantized(network, activation(network, y, "r"), "z"))
    longer = Fusion("longer", ["convolution", "activation", "elementwise"])
    assert list(groups(network, fusions=[longer])) == [
        ("x.q",), ("x.dq", "c.w", "c", "y.q"), ("y.dq", "r", "z.q"), ("z.dq",)
    ]  # fmt: skip


def test_a_kernel_of_the_device_comes_before_the_hosts_integer_kernels(groups):
    @kernel(
        "acme.relu",
        kinds="activation",
        data_types="fp32",
        accepts=lambda group, specs: group.main.activation_type is ActivationType.RELU,
    )
    def rectify(binding):
        (x,), (y,) = binding.inputs, binding.outputs
        return lambda: np.maximum(x, 0, out=y)

    network, x = image_network()
    network.mark_output(quantized(network, activation(network, quantized(network, x, "x"), "r"), "y"))
    found = groups(network, kernels=[rectify])
    assert list(found) == [("x.q",), ("x.dq",), ("r",), ("y.q",), ("y.dq",)]
    assert found["r",] == "acme.relu"


def test_a_named_kernel_for_real_numbers_leaves_the_dequantizations_outside(groups):
    found = groups(quantized_chain(), named={"c": "cpu.reference"})
    assert found["c",] == "cpu.reference"
    assert {("x.dq",), ("c.w",)} <= found.keys()


def test_a_named_integer_kernel_takes_the_dequantizations(groups):
    found = groups(quantized_chain(), named={"c": "cpu.integer_convolution"})
    assert found["x.dq", "c.w", "c", "r", "y.q"] == "cpu.integer_convolution"


def test_a_group_with_a_named_kernel_joins_no_other(groups):
    network, x = image_network()
    y = quantized(network, convolution(network, quantized(network, x, "x"), "c"), "y")
    network.mark_output(quantized(network, activation(network, y, "r"), "z"))
    assert ("x.dq", "c.w", "c", "y.q", "y.dq", "r", "z.q") in groups(network)
    found = groups(network, named={"r": "cpu.integer_pointwise"})
    assert ("x.dq", "c.w", "c", "y.q") in found
    assert found["y.dq", "r", "z.q"] == "cpu.integer_pointwise"


def test_a_compiled_segment_reads_what_a_dequantization_gives(install):
    install("acme_compilers", "", compiling_target.ENTRY_POINTS)
    network, x = image_network()
    x = quantized(network, x, "x")
    network.mark_output(activation(network, x, "r"))
    pool = network.add_pooling_nd(x, PoolingType.MAX, (2, 2))
    network.mark_output(quantized(network, named(pool, "p"), "y", 2 * SCALE))
    config = BuilderConfig()
    config.default_device_type = "ACME_COMPILER"
    config.allow_fallback("CPU")
    engine = Builder().build_engine(network, config)
    layers = [tuple(operation.layers) for operation in engine.plan.operations]
    assert {("x.dq",), ("r",), ("x.dq", "p", "y.q")} <= set(layers)
    assert_runs_as_the_reference(engine, network)


def test_the_inspector_tells_what_a_quantized_group_holds():
    config = BuilderConfig()
    config.default_device_type = "CPU"
    inspector = Builder().build_engine(quantized_chain(), config).create_engine_inspector()
    layer = json.loads(inspector.get_layer_information(1))
    assert (layer["LayerType"], layer["Precision"]) == ("Convolution", "INT8")
    assert layer["Fused"] == ["DEQUANTIZE", "DEQUANTIZE", "ACTIVATION", "QUANTIZE"]
