"""A layer plugin that takes quantized tensors stands for the DQ before it and the Q after it, and its neighbours fuse.

The networks are those of TensorRT's "Working with Quantized Types", Q/DQ interaction with plugins: the plugin between
two convolutions, with the DQ_i and the Q_o around it, and after the user took them out by hand.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tests.core.builder.networks import named, weights

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder, assess
from dryfit.engine.engine import Engine
from dryfit.errors import BuildError
from dryfit.network import plugin_table
from dryfit.network.creation_flags import NetworkDefinitionCreationFlag
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network
from dryfit.network.plugin_function import layer_plugin
from dryfit.reference.executor import run_reference

FLOAT, INT8, FP8 = DataType.FLOAT, DataType.INT8, DataType.FP8
SHAPE = (1, 4, 5, 5)
LARGEST = {INT8: 127, FP8: 448}


def narrow(real, scale, dtype):
    """Real numbers in a quantized type, by the definition: saturate, round to nearest even."""
    if dtype is INT8:
        return np.clip(np.rint(real / scale), -128, 127).astype(np.int8)
    return np.clip(real / scale, -448, 448).astype(ml_dtypes.float8_e4m3fn)


@layer_plugin("MyInt8Plugin", namespace="chapter", takes_quantized=True)
def doubled(x, *, input_scales: tuple = (), output_scales: tuple = ()):
    """2 x, on whatever it gets; quantized where it was told scales."""
    if x.dtype == np.float32:
        return 2 * x
    dtype = DataType.from_numpy(x.dtype)
    return narrow(2 * x.astype(np.float32) * input_scales[0], output_scales[0], dtype)


@pytest.fixture(autouse=True)
def _empty_table(monkeypatch):
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})


class Chapter:
    """Builds the chapter's network step by step: each method adds the layer that it is named after."""

    def __init__(self, dtype, flags=0):
        self.network = Network("chapter", flags)
        self.dtype = dtype

    def scale(self, value, name):
        return named(self.network.add_constant((), np.float32(value)), f"{name}.scale")

    def q(self, x, name, scale=1 / 32):
        return named(self.network.add_quantize(x, self.scale(scale, name), self.dtype), name)

    def dq(self, x, name, scale=1 / 32):
        return named(self.network.add_dequantize(x, self.scale(scale, name)), name)

    def conv(self, x, name, seed):
        values = narrow(weights(4, 4, 1, 1, seed=seed), 1 / 64, self.dtype)
        kernel = named(self.network.add_constant(values.shape, values), f"{name}.kernel")
        layer = self.network.add_convolution_nd(x, 4, (1, 1))
        layer.set_input(1, self.dq(kernel, f"{name}.w", 1 / 64))
        return named(layer, name)

    def plugin(self, x, **fields):
        return named(self.network.add_plugin([x], doubled, fields), "MyInt8Plugin")

    def first(self):
        """Input > Q -> DQ > Conv > Q ->"""
        x = self.network.add_input("Input", FLOAT, SHAPE)
        return self.q(self.conv(self.dq(self.q(x, "Q1"), "DQ1"), "Conv1", 1), "Q2")

    def last(self, x):
        """-> DQ > Conv > Output"""
        self.network.mark_output(self.conv(self.dq(x, "DQ2", 1 / 16), "Conv2", 2))
        return self.network


def with_neighbours(dtype, flags=0):
    """Input > Q -> DQ > Conv > Q -> DQ_i > MyInt8Plugin > Q_o -> DQ > Conv > Output"""
    chapter = Chapter(dtype, flags)
    real = chapter.plugin(chapter.dq(chapter.first(), "DQ_i"))
    return chapter.last(chapter.q(real, "Q_o", 1 / 16))


def by_hand(dtype):
    """Input > Q -> DQ > Conv > Q -> MyInt8Plugin -> DQ > Conv > Output"""
    chapter = Chapter(dtype)
    scales = {"input_scales": (np.array(1 / 32, "f"),), "output_scales": (np.array(1 / 16, "f"),)}
    quantized = chapter.plugin(chapter.first(), **scales)
    chapter.network.layer("MyInt8Plugin").set_output_type(0, dtype)
    return chapter.last(quantized)


def feeds():
    return {"Input": weights(*SHAPE, seed=3)}


def assert_runs_as_the_reference(network, engine):
    """To a code of the result's neighbours: sums of products are exact in neither, and rounded in between."""
    expected = run_reference(network, feeds())["Conv2"]
    found = engine.create_execution_context().run(feeds())["Conv2"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def groups(engine):
    return [tuple(operation.layers) for operation in engine.plan.operations]


def test_int8_neighbours_fuse_as_the_chapter_draws_it():
    network = with_neighbours(INT8)
    engine = Builder().build_engine(network, BuilderConfig())
    assert groups(engine) == [
        ("Q1",),
        ("DQ1", "Conv1.w", "Conv1", "Q2"),
        ("MyInt8Plugin",),
        ("DQ2", "Conv2.w", "Conv2"),
    ]
    assert_runs_as_the_reference(network, engine)


def test_int8_neighbours_of_a_plugin_that_was_fused_by_hand_fuse_alike():
    network = by_hand(INT8)
    engine = Builder().build_engine(network, BuilderConfig())
    assert groups(engine) == groups(Builder().build_engine(with_neighbours(INT8), BuilderConfig()))
    assert_runs_as_the_reference(network, engine)
    assert_runs_as_the_reference(with_neighbours(INT8), engine)


def test_a_strongly_typed_network_fuses_alike():
    network = with_neighbours(INT8, 1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    network.layer("MyInt8Plugin").set_output_type(0, INT8)
    engine = Builder().build_engine(network, BuilderConfig())
    assert groups(engine) == groups(Builder().build_engine(with_neighbours(INT8), BuilderConfig()))
    assert_runs_as_the_reference(network, engine)


@pytest.mark.parametrize("dtype", [INT8, FP8])
@pytest.mark.parametrize("make", [with_neighbours, by_hand])
def test_the_plugin_gets_quantized_tensors_and_their_scales(dtype, make, tmp_path):
    network = make(dtype)
    engine = Builder().build_engine(network, BuilderConfig())
    plugin = engine.plan.network.layer("MyInt8Plugin")
    assert [tensor.dtype for tensor in (*plugin.inputs, *plugin.outputs)] == [dtype, dtype]
    assert (float(plugin.fields["input_scales"][0]), float(plugin.fields["output_scales"][0])) == (1 / 32, 1 / 16)
    assert not any({"DQ_i", "Q_o"} & set(layers) for layers in groups(engine))
    assert_runs_as_the_reference(network, engine)
    engine.save(tmp_path / "plugin.engine")
    assert_runs_as_the_reference(network, Engine.load(tmp_path / "plugin.engine"))


@pytest.mark.parametrize("dtype", [INT8, FP8])
def test_an_output_type_says_that_the_neighbours_are_to_be_absorbed(dtype):
    network = with_neighbours(dtype)
    network.layer("MyInt8Plugin").set_output_type(0, dtype)
    [placed] = [one for one in assess(network, BuilderConfig()).layers if one.layer == "MyInt8Plugin"]
    assert "takes quantized tensors (in place of 'MyInt8Plugin', 'Q_o', 'DQ_i')" in placed.cause


@pytest.mark.parametrize(
    ("dtype", "asked", "why"),
    [
        (
            INT8,
            FP8,
            "its output 0 was set to FP8, and is FLOAT, and cannot be: its output 0 was set to FP8, and is INT8",
        ),
        (
            FP8,
            INT8,
            "its output 0 was set to INT8, and is FLOAT, and cannot be: its output 0 was set to INT8, and is FP8",
        ),
    ],
)
def test_an_output_type_that_the_quantization_behind_does_not_have_is_refused(dtype, asked, why):
    network = with_neighbours(dtype)
    network.layer("MyInt8Plugin").set_output_type(0, asked)
    with pytest.raises(
        BuildError, match="Plugin layers do not support the quantized types that their outputs were set to"
    ) as caught:
        Builder().build_plan(network, BuilderConfig())
    assert why in str(caught.value)
    [refusal] = assess(network, BuilderConfig()).refusals
    assert why in refusal


def without_quantization_behind():
    chapter = Chapter(INT8)
    real = chapter.plugin(chapter.dq(chapter.first(), "DQ_i"))
    chapter.network.mark_output(named(chapter.network.add_activation(real, ActivationType.RELU), "Conv2"))
    return chapter.network


def test_without_a_quantization_behind_it_the_plugin_computes_real_numbers_and_that_is_told():
    network = without_quantization_behind()
    engine = Builder().build_engine(network, BuilderConfig())
    plugin = engine.plan.network.layer("MyInt8Plugin")
    assert [tensor.dtype for tensor in (*plugin.inputs, *plugin.outputs)] == [FLOAT, FLOAT]
    [warning] = engine.plan.warnings
    assert (
        "takes quantized tensors, but not these: its output 'MyInt8Plugin' is read in floating point by 'Conv2'"
        in warning
    )
    assert_runs_as_the_reference(network, engine)
    network.layer("MyInt8Plugin").set_output_type(0, INT8)
    with pytest.raises(BuildError, match="is read in floating point by 'Conv2'"):
        Builder().build_plan(network, BuilderConfig())


def test_a_plugin_without_dequantizations_before_it_is_told_what_is_missing():
    chapter = Chapter(INT8)
    x = chapter.network.add_input("Input", FLOAT, SHAPE)
    network = chapter.last(chapter.q(chapter.plugin(x), "Q_o"))
    [warning] = assess(network, BuilderConfig()).warnings
    assert "its input 'Input' is not dequantized" in warning


def test_a_plugin_in_a_network_without_quantization_is_told_nothing():
    chapter = Chapter(INT8)
    x = chapter.network.add_input("Input", FLOAT, SHAPE)
    chapter.network.mark_output(chapter.plugin(x))
    assert assess(chapter.network, BuilderConfig()).warnings == []


def test_a_dequantization_that_others_read_stays_for_them():
    chapter = Chapter(INT8)
    shared = chapter.dq(chapter.first(), "DQ_i")
    chapter.network.mark_output(named(chapter.network.add_activation(shared, ActivationType.TANH), "tanh"))
    network = chapter.last(chapter.q(chapter.plugin(shared), "Q_o", 1 / 16))
    engine = Builder().build_engine(network, BuilderConfig())
    assert engine.plan.network.layer("MyInt8Plugin").inputs[0].name == "Q2"
    assert (
        "takes quantized tensors (in place of 'MyInt8Plugin', 'Q_o')"
        in {one.layer: one.cause for one in engine.plan.layers}["MyInt8Plugin"]
    )
    assert_runs_as_the_reference(network, engine)
    tanh = engine.create_execution_context().run(feeds())["tanh"]
    np.testing.assert_allclose(tanh, run_reference(network, feeds())["tanh"], rtol=1e-5)


def swapped_outputs(x, y, **_):
    return y, x


@layer_plugin("SumAndDifference", namespace="chapter", takes_quantized=True, outputs=swapped_outputs)
def sum_and_difference(x, y, *, input_scales: tuple = (), output_scales: tuple = ()):
    if x.dtype == np.float32:
        return x + y, x - y
    a, b = (one.astype(np.float32) * scale for one, scale in zip((x, y), input_scales, strict=True))
    dtype = DataType.from_numpy(x.dtype)
    return tuple(narrow(real, scale, dtype) for real, scale in zip((a + b, a - b), output_scales, strict=True))


@pytest.mark.parametrize("dtype", [INT8, FP8])
def test_several_inputs_and_outputs_each_have_their_scale(dtype):
    chapter = Chapter(dtype)
    x = chapter.network.add_input("Input", FLOAT, SHAPE)
    real = [chapter.dq(chapter.q(x, f"Q{scale}", scale), f"DQ{scale}", scale) for scale in (1 / 32, 1 / 8)]
    layer = chapter.network.add_plugin(real, sum_and_difference)
    for index, (name, scale) in enumerate((("sum", 1 / 4), ("difference", 1 / 64))):
        chapter.network.mark_output(chapter.q(layer.get_output(index), name, scale))
    engine = Builder().build_engine(chapter.network, BuilderConfig())
    [plugin] = [one for one in engine.plan.network.layers if one.kind == "plugin"]
    assert {tensor.dtype for tensor in (*plugin.inputs, *plugin.outputs)} == {dtype}
    assert [float(scale) for scale in plugin.fields["input_scales"]] == [1 / 32, 1 / 8]
    assert [float(scale) for scale in plugin.fields["output_scales"]] == [1 / 4, 1 / 64]
    found = engine.create_execution_context().run(feeds())
    for name, expected in run_reference(chapter.network, feeds()).items():
        assert found[name].dtype == dtype.numpy
        np.testing.assert_array_equal(found[name].view(np.uint8), expected.view(np.uint8))


def test_the_plugin_computes_real_numbers_when_one_of_its_outputs_is_wanted_in_them():
    chapter = Chapter(INT8)
    x = chapter.network.add_input("Input", FLOAT, SHAPE)
    real = chapter.dq(chapter.q(x, "Q1"), "DQ1")
    layer = chapter.network.add_plugin([real, real], sum_and_difference)
    chapter.network.mark_output(chapter.q(layer.get_output(0), "sum"))
    chapter.network.mark_output(layer.get_output(1))
    [warning] = assess(chapter.network, BuilderConfig()).warnings
    assert "is an output of the network" in warning
