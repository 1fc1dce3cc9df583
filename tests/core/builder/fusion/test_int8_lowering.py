"""An implicitly quantized network in the form that explicitly quantized ones have."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.builder.designs import designed, lowered
from tests.core.builder.networks import activation, add, chain, convolution, dla_config, elu, image_network, named

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.building import Builder
from dryfit.network.data_types import DataType
from dryfit.network.layers.window_layer import PoolingType
from dryfit.quantization.int8_steps import int8_scale
from dryfit.reference.executor import run_reference

FLOAT, HALF, INT8 = DataType.FLOAT, DataType.HALF, DataType.INT8


def int8_config(*flags):
    config = BuilderConfig()
    for flag in (BuilderFlag.INT8, *flags):
        config.set_flag(flag)
    return config


def ranged(network, **thresholds):
    for tensor in network.tensors:
        if tensor.dtype.is_floating_point and (tensor.producer is None or tensor.producer.kind != "constant"):
            bound = thresholds.get(tensor.name, 2)
            tensor.dynamic_range = (-bound, bound)
    return network


def int8_output(network):
    network.layers[-1].set_output_type(0, INT8)
    return network


def kinds(result):
    return [layer.kind for layer in result.network.layers if layer.kind != "constant"]


def test_a_step_reads_dequantized_values_and_weights_and_rounds_once_at_its_end():
    result = lowered(int8_output(ranged(chain("c", "r"), r1=5)), int8_config())
    assert kinds(result) == ["quantize", "dequantize", "dequantize", "convolution", "activation", "quantize"]
    quantize = result.network.layers[-1]
    assert quantize.inputs[1].spec.value == np.float32(int8_scale(5))
    weights = result.network.layer("c0").inputs[1].producer
    assert (weights.kind, weights.axis, weights.inputs[0].dtype) == ("dequantize", 0, INT8)
    assert result.network.layer("c0").kernel is None
    assert [(tensor.name, tensor.dtype) for tensor in result.network.outputs] == [("r1", INT8)]


def test_what_is_part_of_a_step_runs_where_its_layer_runs():
    network, config = int8_output(ranged(chain("c", "r"))), int8_config()
    cut = designed(network, config).cut
    result, places = cut.lowered, cut.places
    assert set(result.owners.values()) == {"c0", "r1"}
    assert all(places[name] == places[owner] for name, owner in result.owners.items())


def test_one_quantization_and_one_dequantization_serve_all_readers_of_a_segment():
    network, x = image_network()
    sum_of_two = add(network, convolution(network, x, "a"), convolution(network, x, "b"), "sum")
    network.mark_output(sum_of_two)
    result = lowered(int8_output(ranged(network)), int8_config())
    reading_x = [layer for layer in result.network.layers if layer.kind == "quantize" and layer.inputs[0].name == "x"]
    assert len(reading_x) == 1
    assert len(reading_x[0].outputs[0].consumers) == 1


def test_each_segment_dequantizes_for_itself():
    config = dla_config(fp16=False)
    config.set_flag(BuilderFlag.INT8)
    network, x = image_network()
    first = convolution(network, x, "first")
    network.mark_output(add(network, elu(network, first, "on_gpu"), first, "sum"))
    plan = Builder().build_plan(int8_output(ranged(network)), config)
    assert {segment.device for segment in plan.segments} == {"DLA", "GPU"}


def test_a_real_reader_beside_an_int8_one_gets_the_rounded_values():
    network, x = image_network()
    relu = activation(network, convolution(network, x, "first"), "relu")
    network.mark_output(convolution(network, relu, "second"))
    network.mark_output(elu(network, relu, "real"))
    for name in ("first", "relu", "second"):
        network.layer(name).precision = INT8
    ranged(network)
    network.layer("real").precision = FLOAT
    result = lowered(network, int8_config())
    source = result.network.layer("real").inputs[0]
    assert source.producer.kind == "dequantize"
    assert result.origins[source.name] == ("relu", FLOAT)


def test_fp16_beside_int8_is_dequantized_to_fp16_at_once():
    network = ranged(chain("c", "r", "e", "c"))
    network.tensor("e2").dynamic_range = None
    network.mark_output(network.tensor("r1"))
    for name in ("c0", "r1"):
        network.layer(name).precision = INT8
    network.layer("r1").set_output_type(0, INT8)
    result = lowered(network, int8_config(BuilderFlag.FP16)).network
    source = result.layer("e2").inputs[0]
    assert (source.producer.kind, source.dtype) == ("dequantize", HALF)


def test_an_int8_input_is_taken_as_it_is():
    network = int8_output(ranged(chain("c", "r")))
    network.inputs[0].dtype = INT8
    result = lowered(network, int8_config()).network
    assert result.inputs[0].dtype is INT8
    assert [reader.kind for reader, _ in result.inputs[0].consumers] == ["dequantize"]


def test_a_shuffle_between_equal_scales_moves_whole_numbers_and_between_others_requantizes():
    for other, expected in ((2, ["shuffle"]), (3, ["dequantize", "shuffle", "quantize"])):
        network, x = image_network()
        x.dtype = INT8
        shuffle = network.add_shuffle(x)
        shuffle.first_transpose = (0, 2, 3, 1)
        shuffle.precision = INT8
        network.mark_output(named(shuffle, "turned"))
        x.dynamic_range = (-2, 2)
        network.tensor("turned").dynamic_range = (-other, other)
        assert kinds(lowered(int8_output(network), int8_config())) == expected


@pytest.mark.parametrize("kind", ["slice", "padding", "resize"])
def test_other_layers_that_commute_move_whole_numbers_too(kind):
    network, x = image_network()
    if kind == "slice":
        layer = network.add_slice(x, (0, 0, 0, 0), (1, 4, 6, 6), (1, 1, 1, 1))
    elif kind == "padding":
        layer = network.add_padding_nd(x, (1, 1), (0, 0))
    else:
        layer = network.add_resize(x)
        layer.shape = (1, 8, 12, 12)
    layer.precision = INT8
    network.mark_output(named(layer, "moved"))
    result = lowered(int8_output(ranged(network)), int8_config())
    assert kinds(result) == ["quantize", kind]


def test_maximum_pooling_stays_between_its_scales():
    """Kernels take its maxima from one scale to another in one step, so that nothing is gained by moving."""
    network, x = image_network()
    layer = network.add_pooling_nd(x, PoolingType.MAX, (2, 2))
    layer.precision = INT8
    network.mark_output(named(layer, "pooled"))
    assert kinds(lowered(int8_output(ranged(network)), int8_config())) == [
        "quantize",
        "dequantize",
        "pooling",
        "quantize",
    ]


@pytest.mark.parametrize("kinds_of_layers", ["cr", "cerc", "rcrcr", "crec"])
def test_the_engines_network_computes_what_the_users_does_up_to_int8(kinds_of_layers):
    network = chain(*kinds_of_layers)
    x = np.random.default_rng(0).standard_normal((1, 8, 6, 6)).astype(np.float32)
    seen = {}
    expected = run_reference(network, {"x": x}, lambda tensor, array: seen.update({tensor.name: array}))
    for tensor in network.tensors:
        bound = float(np.abs(seen.get(tensor.name, x)).max())
        tensor.dynamic_range = (-bound, bound)
    result = lowered(network, int8_config()).network
    assert any(layer.kind == "quantize" for layer in result.layers) or "c" not in kinds_of_layers[:-2]
    for name, array in run_reference(result, {"x": x}).items():
        # Each step rounds to 127 levels; a few of them stand one after another.
        np.testing.assert_allclose(array, expected[name], atol=0.05 * np.abs(expected[name]).max())


def test_engine_layers_are_called_by_the_users_layers():
    plan = Builder().build_plan(int8_output(ranged(chain("c", "r"))), int8_config())
    assert [operation.name for operation in plan.operations] == [
        "Reformatting CopyNode for Input Tensor 0 to c0",
        "c0 + r1",
    ]
    assert list(plan.operations[1].source_layers) == ["c0", "r1"]
