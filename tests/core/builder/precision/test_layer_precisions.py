import pytest
from tests.core.builder.designs import designed
from tests.core.builder.networks import chain, convolution, dla_config, fp16_config, image_network, named, weights

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType

FLOAT, HALF, BF16, INT32 = DataType.FLOAT, DataType.HALF, DataType.BF16, DataType.INT32


def precisions(network, config):
    return designed(network, config).precisions


def test_without_flags_layers_are_computed_in_the_types_that_they_have():
    assert precisions(chain("c", "r"), BuilderConfig()).layers == {"c0": FLOAT, "r1": FLOAT}
    network, x = image_network()
    half = named(network.add_cast(x, HALF), "cast")
    network.mark_output(named(network.add_activation(half, ActivationType.RELU), "relu"))
    assert precisions(network, BuilderConfig()).layers == {"cast": HALF, "relu": HALF}


@pytest.mark.parametrize(("flag", "expected"), [(BuilderFlag.FP16, HALF), (BuilderFlag.BF16, BF16)])
def test_a_flag_allows_a_narrower_type(flag, expected):
    config = BuilderConfig()
    config.set_flag(flag)
    assert precisions(chain("c", "r"), config).layers == {"c0": expected, "r1": expected}


def test_a_layer_of_its_own_precision_keeps_it():
    network = chain("c", "r")
    network.layer("r1").precision = FLOAT
    assert precisions(network, fp16_config()).layers == {"c0": HALF, "r1": FLOAT}


def test_a_layer_that_asks_for_fp32_leaves_the_dla():
    network = chain("c", "r")
    network.layer("r1").precision = FLOAT
    design = designed(network, dla_config())
    assert design.assignment.devices == {"c0": "DLA", "r1": "GPU"}
    assert design.precisions.layers == {"c0": HALF, "r1": FLOAT}


def test_a_layer_that_the_device_promotes_is_computed_in_the_wider_type():
    network, x = image_network()
    sum_of_many = convolution(network, x, "convolution")
    network.mark_output(named(network.add_activation(sum_of_many, ActivationType.SIGMOID), "sigmoid"))
    for tensor in network.tensors:
        tensor.set_dynamic_range(-1, 1)
    config = dla_config()
    config.set_flag(BuilderFlag.INT8)
    assert precisions(network, config).layers == {"convolution": DataType.INT8, "sigmoid": HALF}


def test_what_is_no_arithmetic_on_floating_point_keeps_its_types():
    network, x = image_network((1, 8))
    cast = named(network.add_cast(x, INT32), "cast")
    network.mark_output(named(network.add_cast(cast, FLOAT), "back"))
    chosen = precisions(network, fp16_config())
    assert chosen.layers == {"cast": INT32, "back": FLOAT}
    assert chosen.converted == frozenset()
    assert chosen.input_type(network.layer("cast"), 0) is FLOAT


def test_the_places_of_a_resampling_stay_exact():
    network, x = image_network((1, 8, 4, 4))
    grid = network.add_input("grid", FLOAT, (1, 4, 4, 2))
    network.mark_output(named(network.add_grid_sample(x, grid), "sample"))
    chosen = precisions(network, fp16_config())
    layer = network.layer("sample")
    assert (chosen.input_type(layer, 0), chosen.input_type(layer, 1)) == (HALF, FLOAT)


def test_constant_weights_that_are_inputs_stay_fp32_until_they_are_packed():
    network, x = image_network((1, 8, 4, 4))
    layer = network.add_convolution_nd(x, 8, (1, 1))
    layer.set_input(1, network.add_constant((8, 8, 1, 1), weights(8, 8, 1, 1)).get_output(0))
    network.mark_output(named(layer, "convolution"))
    chosen = precisions(network, fp16_config())
    assert (chosen.input_type(layer, 0), chosen.input_type(layer, 1)) == (HALF, FLOAT)


def test_a_precision_that_the_device_lacks_is_a_warning_or_where_it_must_be_obeyed_a_problem():
    network = chain("c", "r")
    network.layer("r1").precision = DataType.DOUBLE
    prefers, obeys = fp16_config(), fp16_config()
    prefers.set_flag(BuilderFlag.PREFER_PRECISION_CONSTRAINTS)
    obeys.set_flag(BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
    words = "layer 'r1' asks for precision FP64, which GPU does not have (INT8, FP16, BF16, FP32)"
    assert precisions(network, prefers).warnings == [words]
    assert precisions(network, prefers).problems == []
    assert precisions(network, obeys).problems == [words]


def test_an_output_type_that_the_user_asks_for_is_what_others_find():
    network = chain("c", "r")
    network.layer("c0").set_output_type(0, FLOAT)
    chosen = precisions(network, fp16_config())
    layer = network.layer("c0")
    assert (chosen.produced_type(layer, 0), chosen.stored_type(layer, 0)) == (HALF, FLOAT)


def test_an_output_type_that_engines_do_not_have_is_told():
    network = chain("c", "r")
    network.layer("c0").set_output_type(0, DataType.DOUBLE)
    assert precisions(network, fp16_config()).warnings == ["layer 'c0' cannot give output 0 as DOUBLE on GPU"]


def test_integers_are_not_touched_by_a_wish_for_their_type():
    network, x = image_network((4, 4))
    layer = network.add_cast(x, INT32)
    layer.set_output_type(0, HALF)
    network.mark_output(named(layer, "cast"))
    assert precisions(network, fp16_config()).output_types == {}


def test_an_absent_input_has_no_type():
    layer = chain("c").layer("c0")
    layer.inputs.append(None)
    chosen = precisions(chain("c"), BuilderConfig())
    with pytest.raises(NetworkError, match="Input 1 is not connected"):
        chosen.input_type(layer, 1)
