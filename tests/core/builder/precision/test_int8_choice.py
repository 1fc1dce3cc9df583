"""Which layers are computed in INT8 by the ranges of their tensors, and why the others are not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.builder.designs import designed
from tests.core.builder.networks import activation, chain, convolution, dla_config, image_network, named, weights

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.precision.chosen import PrecisionCause
from dryfit.building import Builder, assess
from dryfit.errors import BuildError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType, ScaleMode
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.matrix import MatrixOperation

FLOAT, HALF, INT8 = DataType.FLOAT, DataType.HALF, DataType.INT8


def int8_config(*flags):
    config = BuilderConfig()
    for flag in (BuilderFlag.INT8, *flags):
        config.set_flag(flag)
    return config


def ranged(network, without=()):
    for tensor in network.tensors:
        is_constant = tensor.producer is not None and tensor.producer.kind == "constant"
        if tensor.dtype.is_floating_point and not is_constant and tensor.name not in without:
            tensor.dynamic_range = (-2, 2)
    return network


def decided(network, config):
    """Layer to (type, cause)."""
    found = designed(network, config).precisions
    return {name: (dtype, found.reasons[name].cause.name) for name, dtype in found.layers.items()}


def test_layers_with_scales_are_int8_up_to_the_last_sum_before_the_output():
    assert decided(ranged(chain("c", "r", "c", "r")), int8_config()) == {
        "c0": (INT8, "INT8"),
        "r1": (INT8, "INT8"),
        "c2": (FLOAT, "NOISE_REDUCTION"),
        "r3": (FLOAT, "NOISE_REDUCTION"),
    }


def test_noise_reduction_goes_back_to_fp32_whatever_else_is_permitted():
    found = decided(ranged(chain("c", "r", "c")), int8_config(BuilderFlag.FP16))
    assert found["c2"] == (FLOAT, "NOISE_REDUCTION")


def test_a_layer_without_scales_is_fp16_beside_int8_where_that_is_permitted_and_names_what_it_lacks():
    network = ranged(chain("c", "r", "e", "c", "c"), without=("e2",))
    found = designed(network, int8_config(BuilderFlag.FP16)).precisions
    assert [found.layers[name] for name in ("c0", "r1", "e2", "c3")] == [INT8, INT8, HALF, HALF]
    assert found.reasons["e2"].text == "No scale for 'e2'"
    assert list(found.reasons["c3"].tensors) == ["e2"]


def test_a_cheap_layer_between_real_ones_does_not_pay():
    network = ranged(chain("c", "r", "c", "c"))
    for name in ("c0", "c2"):
        network.layer(name).precision = FLOAT
    assert decided(network, int8_config())["r1"] == (FLOAT, "DOES_NOT_PAY")
    assert decided(network, int8_config())["c0"] == (FLOAT, "CONSTRAINT")


def test_a_precision_that_the_user_set_wins_over_both_heuristics():
    network = ranged(chain("c", "r", "c"))
    network.layer("c2").precision = INT8
    assert decided(network, int8_config())["c2"] == (INT8, "INT8")
    alone = ranged(chain("e"))
    alone.layer("e0").precision = INT8
    assert decided(alone, int8_config())["e0"] == (INT8, "INT8")


def test_int8_that_was_asked_for_without_scales_is_a_warning_or_where_it_must_be_obeyed_an_error():
    words = "layer 'c0' asks for precision INT8, which is not possible: No scale for 'x'"
    network = chain("c", "r")
    network.layer("c0").precision = INT8
    prefers = designed(network, int8_config(BuilderFlag.PREFER_PRECISION_CONSTRAINTS))
    assert list(prefers.precisions.warnings) == [words]
    assert prefers.precisions.layers["c0"] is FLOAT
    with pytest.raises(BuildError, match="No scale for 'x'"):
        Builder().build_plan(network, int8_config(BuilderFlag.OBEY_PRECISION_CONSTRAINTS))


def test_an_int8_output_that_was_asked_for_lifts_noise_reduction_and_is_what_the_caller_gets():
    network = ranged(chain("c", "r"))
    network.layer("r1").set_output_type(0, INT8)
    design = designed(network, int8_config())
    assert set(design.precisions.layers.values()) == {INT8}
    assert design.precisions.network_output_type(design.network.tensor("r1")) is INT8


def test_a_network_output_that_is_taken_in_int8_lifts_noise_reduction():
    network = ranged(chain("c", "r", "c"))
    for name, bound in (("x", 4), ("c0", 40), ("r1", 40), ("c2", 400)):
        network.tensor(name).dynamic_range = (-bound, bound)
    assert decided(network, int8_config())["c2"] == (FLOAT, "NOISE_REDUCTION")
    network.outputs[0].dtype = INT8
    assert decided(network, int8_config())["c2"] == (INT8, "INT8")
    x = weights(1, 8, 6, 6)
    (found,) = Builder().build_engine(network, int8_config()).create_execution_context().run({"x": x}).values()
    network.outputs[0].dtype = FLOAT
    (real,) = Builder().build_engine(network, int8_config()).create_execution_context().run({"x": x}).values()
    assert found.dtype == np.int8
    assert np.abs(found - np.clip(real / np.float32(400 / 127), -128, 127)).max() <= 3


def test_another_output_of_the_network_keeps_noise_reduction():
    network = ranged(chain("c", "r", "c", "r"))
    network.mark_output(network.tensor("c2"))
    network.tensor("r3").dtype = INT8
    assert decided(network, int8_config())["c2"] == (FLOAT, "NOISE_REDUCTION")


def test_an_int8_output_of_a_real_layer_needs_a_scale():
    network = ranged(chain("e", "r"), without=("e0",))
    network.layer("e0").set_output_type(0, INT8)
    assert list(designed(network, int8_config()).precisions.warnings) == [
        "layer 'e0' cannot give output 0 as INT8 on GPU"
    ]


def test_what_is_inside_a_step_needs_no_scale():
    assert decided(ranged(chain("c", "r", "c", "c"), without=("c0",)), int8_config())["c0"] == (INT8, "INT8")


def test_a_step_without_a_scale_inside_is_int8_as_a_whole_or_not_at_all():
    network = ranged(chain("c", "r", "c", "c"), without=("c0",))
    network.layer("r1").precision = FLOAT
    reasons = designed(network, int8_config()).precisions.reasons
    assert (reasons["c0"].cause, list(reasons["c0"].tensors)) == (PrecisionCause.NO_SCALES, ["c0"])


def test_a_normalization_between_tensors_without_scales_is_part_of_the_step_around_it():
    network, x = image_network()
    first = convolution(network, x, "first")
    scale = network.add_scale(first, ScaleMode.UNIFORM, scale=np.full(1, 2, np.float32))
    relu = activation(network, named(scale, "normalized"), "relu")
    network.mark_output(convolution(network, relu, "last"))
    found = decided(ranged(network, without=("first", "normalized")), int8_config())
    assert [found[name] for name in ("first", "normalized", "relu")] == [(INT8, "INT8")] * 3


def test_quotients_are_computed_in_real_numbers_and_sums_are_not():
    found = {}
    for operation in (ElementWiseOperation.SUM, ElementWiseOperation.DIV):
        network, x = image_network()
        a, b = convolution(network, x, "a"), convolution(network, x, "b")
        both = named(network.add_elementwise(a, b, operation), "both")
        network.mark_output(convolution(network, both, "last"))
        found[operation.name] = decided(ranged(network), int8_config())["both"]
    assert found == {"SUM": (INT8, "INT8"), "DIV": (FLOAT, "KIND")}


def test_softmax_and_products_of_two_inputs_are_computed_in_real_numbers():
    network, x = image_network((1, 4, 6, 6))
    first = convolution(network, x, "first", maps=4)
    scores = network.add_matrix_multiply(first, MatrixOperation.NONE, first, MatrixOperation.TRANSPOSE)
    soft = network.add_softmax(named(scores, "scores"))
    network.mark_output(convolution(network, named(soft, "softmax"), "last"))
    found = decided(ranged(network), int8_config())
    assert (found["scores"], found["softmax"]) == ((FLOAT, "KIND"), (FLOAT, "KIND"))


def test_a_product_with_weights_is_int8():
    network, x = image_network((4, 8))
    matrix = named(network.add_constant((8, 8), weights(8, 8)), "k")
    product = named(network.add_matrix_multiply(x, MatrixOperation.NONE, matrix, MatrixOperation.NONE), "product")
    again = network.add_matrix_multiply(product, MatrixOperation.NONE, matrix, MatrixOperation.NONE)
    network.mark_output(named(again, "again"))
    found = decided(ranged(network), int8_config())
    assert (found["product"], found["again"]) == ((INT8, "INT8"), (FLOAT, "NOISE_REDUCTION"))


@pytest.mark.parametrize("matrix_shape", [(1, 8, 8), (2, 8, 8)])
def test_a_product_with_weights_that_is_not_2_d_is_computed_in_real_numbers(matrix_shape):
    network, x = image_network((2, 4, 8))
    matrix = named(network.add_constant(matrix_shape, weights(*matrix_shape)), "k")
    product = named(network.add_matrix_multiply(x, MatrixOperation.NONE, matrix, MatrixOperation.NONE), "product")
    again = network.add_matrix_multiply(product, MatrixOperation.NONE, matrix, MatrixOperation.NONE)
    network.mark_output(named(again, "again"))
    assert decided(ranged(network), int8_config())["product"] == (FLOAT, "KIND")


def test_a_device_that_computes_in_int8_only_is_left_no_choice():
    config = dla_config(fp16=False)
    config.set_flag(BuilderFlag.INT8)
    assert decided(ranged(chain("c", "r")), config) == {"c0": (INT8, "INT8"), "r1": (INT8, "INT8")}


def test_what_the_dla_promotes_is_told_with_its_rule():
    network, x = image_network()
    sigmoid = activation(network, convolution(network, x, "first"), "sigmoid", ActivationType.SIGMOID)
    network.mark_output(convolution(network, sigmoid, "last"))
    config = dla_config()
    config.set_flag(BuilderFlag.INT8)
    reason = designed(ranged(network), config).precisions.reasons["sigmoid"]
    assert reason.cause is PrecisionCause.PROMOTED
    assert "dla.activation.int8_promotion" in reason.text


def test_a_device_without_int8_says_so():
    config = int8_config()
    config.default_device_type = "CPU"
    from dryfit.plugins import registry

    if INT8 in registry.target("CPU").precisions:
        pytest.skip("the CPU target computes in INT8")
    assert decided(ranged(chain("c", "r")), config)["c0"] == (FLOAT, "DEVICE")


def test_without_the_flag_ranges_change_nothing():
    assert decided(ranged(chain("c", "r")), BuilderConfig()) == {"c0": (FLOAT, "FLAGS"), "r1": (FLOAT, "FLAGS")}


def test_an_explicitly_quantized_network_says_itself_what_is_quantized():
    network, x = image_network()
    scale = named(network.add_constant((), np.array(0.1, np.float32)), "scale")
    quantized = named(network.add_quantize(x, scale), "q")
    real = named(network.add_dequantize(quantized, scale), "dq")
    network.mark_output(activation(network, convolution(network, real, "c"), "r"))
    assumes = int8_config()
    assumes.assume_scales = True
    for config in (BuilderConfig(), int8_config(), assumes):
        assert decided(network, config)["c"] == (FLOAT, "EXPLICIT")


def test_what_nobody_reads_in_int8_is_given_in_real_numbers():
    design = designed(ranged(chain("c", "r", "e", "c"), without=("e2",)), int8_config())
    layer = design.network.layer("r1")
    assert design.precisions.layers["r1"] is INT8
    assert design.precisions.stored_type(layer, 0) is FLOAT


def test_the_dla_which_has_no_fp32_stores_int8_for_an_fp32_reader():
    config = dla_config(fp16=False)
    config.set_flag(BuilderFlag.INT8)
    design = designed(ranged(chain("c", "r", "e")), config)
    assert design.assignment.devices == {"c0": "DLA", "r1": "DLA", "e2": "GPU"}
    assert design.precisions.stored_type(design.network.layer("r1"), 0) is INT8


def test_an_assessment_gives_the_reasons_and_the_scales():
    assessment = assess(ranged(chain("c", "r", "c"), without=("c2",)), int8_config())
    assert assessment.reasons["c2"].cause is PrecisionCause.NO_SCALES
    assert [entry.tensor for entry in assessment.scales.missing] == ["c2"]
