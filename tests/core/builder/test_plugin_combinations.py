"""The builder gives a layer plugin a combination of types and formats that it names."""

from __future__ import annotations

import numpy as np
import pytest

from dryfit.builder.config.builder_config import BuilderFlag
from dryfit.building import Builder, assess
from dryfit.engine.engine import Engine
from dryfit.errors import ExecutionError, NetworkError, PluginError
from dryfit.network import plugin_table
from dryfit.network.data_types import DataType
from dryfit.network.layer_plugin import LayerPlugin
from dryfit.network.plugin_function import layer_plugin
from dryfit.network.tensor import TensorSpec
from dryfit.plugins import registry
from dryfit.target.formats import TensorFormat
from dryfit.testing.layer_plugin_checks import PluginExample, combination_problems, combinations

FLOAT, HALF, BF16, INT32 = DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.INT32
X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(1, 2, 3, 4)


class Seen(LayerPlugin):
    """The sum of its inputs; `seen` has what it got."""

    plugin_name, plugin_namespace = "Seen", "test"

    def __init__(self, *combinations):
        self.combinations = combinations
        self.seen = []

    def output_specs(self, fields, inputs):
        return [TensorSpec(inputs[0].shape, inputs[0].dtype)]

    def format_combinations(self, fields, inputs):
        return self.combinations

    def enqueue(self, fields, inputs):
        self.seen.append([(array.dtype.name, np.argmin(array.strides)) for array in inputs])
        return [sum(array.astype(inputs[0].dtype) for array in inputs)]


@pytest.fixture(autouse=True)
def _empty_table(monkeypatch):
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})


def built(plugin, *flags, dtypes=(FLOAT,), precision=None):
    builder = Builder()
    network, config = builder.create_network(), builder.create_builder_config()
    for flag in flags:
        config.set_flag(flag)
    inputs = [network.add_input(f"x{index}", dtype, X.shape) for index, dtype in enumerate(dtypes)]
    layer = network.add_plugin(inputs, plugin)
    layer.precision = precision
    network.mark_output(layer.outputs[0])
    return builder, network, config


def seen(plugin, *flags, dtypes=(FLOAT,), precision=None):
    builder, network, config = built(plugin, *flags, dtypes=dtypes, precision=precision)
    feeds = {f"x{index}": X.astype(dtype.numpy) for index, dtype in enumerate(dtypes)}
    (output,) = builder.build_engine(network, config).create_execution_context().run(feeds).values()
    assert output.dtype == dtypes[0].numpy
    np.testing.assert_allclose(output, sum(feeds.values()), rtol=1e-2)
    return plugin.seen[-1]


ROWS, CHANNELS = 3, 1
"""The axis whose elements lie next to each other."""


@pytest.mark.parametrize(
    ("combinations", "flags", "expected"),
    [
        ([[FLOAT, FLOAT], [HALF, HALF]], [], ("float32", ROWS)),
        ([[FLOAT, FLOAT], [HALF, HALF]], [BuilderFlag.FP16], ("float16", ROWS)),
        ([[HALF, HALF], [BF16, BF16], [FLOAT, FLOAT]], [BuilderFlag.BF16], ("bfloat16", ROWS)),
        ([[HALF, HALF], [FLOAT, FLOAT]], [], ("float32", ROWS)),
        ([[(FLOAT, "HWC"), (FLOAT, "HWC")], [FLOAT, FLOAT]], [], ("float32", CHANNELS)),
        ([[FLOAT, FLOAT]], [BuilderFlag.FP16], ("float32", ROWS)),
    ],
)
def test_flags_choose_among_the_combinations_and_the_first_of_equal_ones_is_taken(combinations, flags, expected):
    assert seen(Seen(*combinations), *flags) == [expected]


def test_a_network_in_fp16_is_widened_for_a_plugin_of_fp32():
    assert seen(Seen([FLOAT, FLOAT]), dtypes=(HALF,)) == [("float32", ROWS)]


def test_each_input_has_its_own_type_and_format():
    plugin = Seen([(HALF, "HWC"), INT32, HALF])
    assert seen(plugin, BuilderFlag.FP16, dtypes=(FLOAT, INT32)) == [("float16", CHANNELS), ("int32", ROWS)]


# Formats of devices ---------------------------------------------------------------------------------------------------

CHW16 = registry.target("DLA").format("CHW16")
HWC8 = TensorFormat("ACME_HWC8", [FLOAT], channels_vector=8, channels_last=True, line_alignment_bytes={"": 64})


class Doubled(Seen):
    """Twice its input, as the device's memory has it."""

    def enqueue(self, fields, inputs):
        self.seen.append(inputs[0].shape)
        assert not inputs[0].flags.writeable
        return [2 * inputs[0]]


@pytest.mark.parametrize(
    ("dtype", "layout", "flags"),
    [(HALF, CHW16, [BuilderFlag.FP16]), (FLOAT, HWC8, [])],
    ids=["vectors", "padded lines"],
)
def test_a_plugin_gets_the_format_of_a_device_as_its_memory_has_it(dtype, layout, flags):
    plugin = Doubled([(dtype, layout), (dtype, layout)])
    builder, network, config = built(plugin, *flags)
    engine = builder.build_engine(network, config)
    for one in (engine, Engine.load(engine.serialize())):
        (output,) = one.create_execution_context().run({"x0": X}).values()
        np.testing.assert_allclose(output, 2 * X, rtol=1e-3)
        assert plugin.seen[-1] == layout.array_shape(X.shape, dtype)


def test_a_format_that_a_tensor_cannot_have_is_not_taken():
    plugin = Doubled([(FLOAT, CHW16), (FLOAT, CHW16)], [FLOAT, FLOAT])
    builder, network, config = built(plugin)
    (output,) = builder.build_engine(network, config).create_execution_context().run({"x0": X}).values()
    assert plugin.seen == [X.shape]
    np.testing.assert_array_equal(output, 2 * X)


def test_an_output_of_the_wrong_extents_is_told_with_those_of_the_format():
    class Cut(Doubled):
        def enqueue(self, fields, inputs):
            return [inputs[0][..., :8]]

    builder, network, config = built(Cut([(HALF, CHW16), (HALF, CHW16)]), BuilderFlag.FP16)
    context = builder.build_engine(network, config).create_execution_context()
    with pytest.raises(ExecutionError) as caught:
        context.run({"x0": X})
    assert str(CHW16.array_shape(X.shape, HALF)) in str(caught.value)


def test_a_format_by_a_name_that_needs_a_device_is_refused_with_what_to_give():
    with pytest.raises(PluginError, match="TensorFormat"):
        built(Doubled([(HALF, "CHW16"), (HALF, "CHW16")]))


def test_the_kit_gives_a_plugin_the_format_and_compares_the_tensor():
    example = PluginExample(Doubled([(FLOAT, HWC8), (FLOAT, HWC8)]), {}, [X])
    (combination,) = combinations(example)
    found = combination_problems(example, combination, lambda fields, inputs: [2 * inputs[0]], {FLOAT: 1e-6})
    assert found == []


def test_a_layers_own_precision_decides():
    plugin = Seen([FLOAT, FLOAT], [HALF, HALF])
    assert seen(plugin, precision=HALF) == [("float16", ROWS)]
    assert seen(plugin, BuilderFlag.FP16, precision=FLOAT) == [("float32", ROWS)]


def test_a_combination_whose_outputs_the_plugin_does_not_give_is_not_taken():
    assert seen(Seen([HALF, FLOAT], [FLOAT, FLOAT]), BuilderFlag.FP16) == [("float32", ROWS)]


def test_a_plugin_that_names_none_gets_what_the_network_has():
    plugin = Seen()
    plugin.combinations = None
    assert seen(plugin, BuilderFlag.FP16) == [("float32", ROWS)]


def test_a_plugin_that_takes_quantized_tensors_gets_them_and_their_scales():
    @layer_plugin("Twice", takes_quantized=True, formats=[[DataType.INT8, DataType.INT8]])
    def twice(x, *, input_scales: tuple = (), output_scales: tuple = ()):
        real = 2 * x.astype(np.float32) * input_scales[0]
        return np.clip(np.rint(real / output_scales[0]), -128, 127).astype(np.int8)

    builder = Builder()
    network, config = builder.create_network(), builder.create_builder_config()
    x = network.add_input("x", FLOAT, X.shape)
    scales = [network.add_constant((), np.float32(value)).get_output(0) for value in (0.25, 0.5)]
    quantized = network.add_quantize(x, scales[0]).get_output(0)
    real = network.add_dequantize(quantized, scales[0]).get_output(0)
    layer = network.add_plugin([real], twice)
    again = network.add_quantize(layer.get_output(0), scales[1]).get_output(0)
    network.mark_output(network.add_dequantize(again, scales[1]).get_output(0))
    engine = builder.build_engine(network, config)
    (placed,) = [one for one in engine.plan.network.layers if one.kind == "plugin"]
    assert [tensor.dtype for tensor in (*placed.inputs, *placed.outputs)] == [DataType.INT8, DataType.INT8]
    assert (placed.fields["input_scales"], placed.fields["output_scales"]) == ((0.25,), (0.5,))
    (output,) = engine.create_execution_context().run({"x": X}).values()
    np.testing.assert_array_equal(output, np.rint(2 * 0.25 * np.rint(X / 0.25) / 0.5) * 0.5)


def test_types_that_no_flag_permits_are_refused_with_all_combinations():
    builder, network, config = built(Seen([HALF, HALF], [BF16, BF16]))
    with pytest.raises(NetworkError) as caught:
        builder.build_plan(network, config)
    for words in (
        "layer '",
        "found FP32 with FP32",
        "HALF LINEAR -> HALF LINEAR; BF16 LINEAR -> BF16 LINEAR",
        "FP16",
    ):
        assert words in str(caught.value)
    config.set_flag(BuilderFlag.FP16)
    assert assess(network, config).can_be_built
