"""NPQRS: the DLA's batch is N * P, and Q, R, S are its channels, height and width."""

import numpy as np
import pytest
from tests.core.builder.designs import designed
from tests.core.builder.networks import dla_config, image_network, weights
from tests.targets.dla.questions import activation, elementwise, parametric_relu, scale, violated

from dryfit.builder.config.builder_config import BuilderFlag
from dryfit.building import Builder
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType, ScaleMode
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.reference.executor import run_reference
from dryfit_dla.loadable_file import read_loadable

SHAPE = (2, 3, 5, 4, 6)


def clip(network, x):
    layer = network.add_activation(x, ActivationType.CLIP)
    layer.alpha, layer.beta = 0.0, 1.0
    return layer


LAYERS = {
    "relu": lambda network, x: network.add_activation(x, ActivationType.RELU),
    "sigmoid": lambda network, x: network.add_activation(x, ActivationType.SIGMOID),
    "clip": clip,
    "sum": lambda network, x: network.add_elementwise(x, x, ElementWiseOperation.SUM),
    "sum NC11": lambda network, x: _with_constant(network, x, (2, 3, 5, 1, 1)),
    "sum N111": lambda network, x: _with_constant(network, x, (2, 3, 1, 1, 1)),
    "scale of channels": lambda network, x: _scale(network, x, ScaleMode.CHANNEL, 5),
    "scale of elements": lambda network, x: _scale(network, x, ScaleMode.ELEMENTWISE, 5 * 4 * 6),
    "uniform scale": lambda network, x: network.add_scale(x, ScaleMode.UNIFORM, None, weights(1)),
    "parametric relu": lambda network, x: network.add_parametric_relu(
        x, network.add_constant((1, 1, 5, 1, 1), weights(1, 1, 5, 1, 1)).get_output(0)
    ),
}


def _with_constant(network, x, shape):
    other = network.add_constant(shape, weights(*shape)).get_output(0)
    return network.add_elementwise(x, other, ElementWiseOperation.SUM)


def _scale(network, x, mode, count):
    return network.add_scale_nd(x, mode, weights(count, seed=1), weights(count), None, 2)


def on_dla(kind, flag):
    network, x = image_network(SHAPE)
    layer = LAYERS[kind](network, x)
    network.mark_output(layer.get_output(0))
    for tensor in network.tensors:
        if tensor.producer is None or tensor.producer.kind != "constant":
            tensor.dynamic_range = (-8.0, 8.0)
    config = dla_config(fallback=True, fp16=flag == "FP16")
    config.set_flag(BuilderFlag[flag])
    return network, layer, config


@pytest.mark.parametrize("flag", ["FP16", "INT8"])
@pytest.mark.parametrize("kind", LAYERS)
def test_a_layer_of_rank_5_runs_on_the_dla_and_gives_what_the_reference_gives(kind, flag):
    network, layer, config = on_dla(kind, flag)
    assert designed(network, config).assignment.devices[layer.name] == "DLA"
    x = weights(*SHAPE, seed=2)
    (expected,) = run_reference(network, {"x": x}).values()
    (found,) = Builder().build_engine(network, config).create_execution_context().run({"x": x}).values()
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=0.05 if flag == "FP16" else 0.3)


@pytest.mark.parametrize(("flag", "native"), [("FP16", "CHW16"), ("INT8", "CHW32")])
@pytest.mark.parametrize("is_planar", [False, True])
def test_a_loadable_of_rank_5_has_vectors_of_q(flag, native, is_planar):
    network, _, config = on_dla("scale of channels", flag)
    x = weights(*SHAPE, seed=2)
    (expected,) = run_reference(network, {"x": x}).values()
    for tensor in (network.inputs[0], network.outputs[0]):
        tensor.dtype = DataType.HALF if flag == "FP16" else DataType.INT8
        tensor.allowed_formats = frozenset({"DLA_LINEAR" if is_planar else native})
    loadable = read_loadable(Builder().build_loadables(network, config).files[0])
    (read,), (written,) = loadable.inputs, loadable.outputs
    assert read.format == ("DLA_LINEAR" if is_planar else native)
    buffer, scale_of = bytearray(read.size_bytes), np.float32(read.scale or 1)
    read.write(buffer, (x if flag == "FP16" else np.rint(x / scale_of)).astype(read.dtype.numpy))
    found = loadable.create_engine().create_execution_context(1).run({read.name: read.read(buffer)})[written.name]
    real = found.astype(np.float32) * np.float32(written.scale or 1)
    np.testing.assert_allclose(real, expected, rtol=2e-2, atol=0.05 if flag == "FP16" else 0.3)


@pytest.mark.parametrize("make", [activation, elementwise, scale, parametric_relu])
def test_a_lower_rank_is_refused(make):
    shapes = {"a": (16, 8, 8), "b": (16, 8, 8)} if make is elementwise else {"shape": (16, 8, 8)}
    if make is scale:
        shapes["channel_axis"] = 0
    assert f"{make.__name__}.rank" in violated(make(**shapes))


def test_the_channels_of_rank_5_are_the_third_axis_from_the_last():
    assert violated(scale("CHANNEL", SHAPE, channel_axis=1)) == ["scale.channel_axis"]
    assert violated(scale("CHANNEL", SHAPE, channel_axis=2)) == []
    assert violated(activation(shape=(64, 64, 3, 8, 8))) == []
    assert violated(activation(shape=(64, 65, 3, 8, 8))) == ["batch"]
