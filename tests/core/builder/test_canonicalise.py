import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.core.builder.networks import activation, chain, image_network, named

from dryfit.builder.canonicalise import canonicalise
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.optimization_profile import (
    OptimizationProfile,
    optimum_shapes,
    profile_shapes,
    require_profile,
)
from dryfit.errors import ConfigError
from dryfit.network.layers.elementwise import ElementWiseOperation


def config_with(*profiles):
    config = BuilderConfig()
    for shapes in profiles:
        profile = OptimizationProfile()
        for name, triple in shapes.items():
            profile.set_shape(name, *triple)
        config.add_optimization_profile(profile)
    return config


def dynamic_network():
    network, x = image_network((-1, 4, -1, 6))
    shuffle = network.add_shuffle(activation(network, x, "relu"))
    shuffle.set_input(1, named(network.add_shape(x), "shape"))
    network.mark_output(named(shuffle, "out"))
    return network


def test_the_users_network_stays_as_it_is():
    network, x = image_network((1, 4))
    two = network.add_constant((1, 4), np.full((1, 4), 2, np.float32)).get_output(0)
    four = named(network.add_elementwise(two, two, ElementWiseOperation.SUM), "four")
    network.mark_output(named(network.add_elementwise(x, four, ElementWiseOperation.PROD), "out"))
    before = len(network)
    work = canonicalise(network, BuilderConfig()).network
    assert len(network) == before
    assert [layer.kind for layer in work.layers] == ["constant", "elementwise"]
    assert work.outputs[0].name == "out"


def test_weights_are_shared_with_the_users_network():
    network = chain("c")
    assert canonicalise(network, BuilderConfig()).network.layer("c0").kernel is network.layer("c0").kernel


def test_a_profile_of_one_shape_makes_the_network_static():
    shape = (2, 4, 5, 6)
    work = canonicalise(dynamic_network(), config_with({"x": (shape, shape, shape)})).network
    assert work.inputs[0].shape == shape
    assert work.outputs[0].shape == shape
    assert all(layer.kind != "shape" for layer in work.layers)
    assert profile_shapes(work, config_with({"x": (shape, shape, shape)})) == []


def test_an_extent_that_all_profiles_agree_on_is_fixed():
    config = config_with(
        {"x": ((1, 4, 5, 6), (2, 4, 5, 6), (4, 4, 5, 6))}, {"x": ((8, 4, 5, 6), (8, 4, 5, 6), (8, 4, 5, 6))}
    )
    work = canonicalise(dynamic_network(), config).network
    assert work.inputs[0].shape == (-1, 4, 5, 6)
    assert [profile.shapes["x"][2] for profile in profile_shapes(work, config)] == [(4, 4, 5, 6), (8, 4, 5, 6)]
    assert optimum_shapes(work, config) == {"x": (2, 4, 5, 6)}


def test_a_profile_that_does_not_fit_is_an_error_that_lists_what_is_wrong():
    with pytest.raises(ConfigError, match="no input 'y'"):
        canonicalise(dynamic_network(), config_with({"y": ((1,), (1,), (1,))}))


def test_a_dynamic_network_without_a_profile_cannot_be_built_and_the_error_says_what_to_do():
    with pytest.raises(ConfigError) as caught:
        require_profile(dynamic_network(), BuilderConfig())
    assert "'x' (-1, 4, -1, 6)" in str(caught.value)
    assert "create_optimization_profile" in str(caught.value)
    shapes = ((1, 4, 5, 6), (2, 4, 5, 6), (4, 4, 5, 6))
    require_profile(dynamic_network(), config_with({"x": shapes}))
    require_profile(chain("c"), BuilderConfig())


def test_without_profiles_there_are_no_optimum_shapes():
    assert optimum_shapes(chain("c"), BuilderConfig()) == {}


def reshaped_to_batch(batch):
    """A network that was imported with a fixed batch: its reshape says so."""
    network, x = image_network((-1, 4))
    shuffle = network.add_shuffle(activation(network, x, "relu"))
    shuffle.reshape_dims = (batch, 2, 2)
    network.mark_output(named(shuffle, "out"))
    return network


@pytest.mark.parametrize(
    ("batches", "word", "found"), [((1, 5, 9), "minimum", 1), ((5, 6, 9), "optimum", 6), ((5, 5, 9), "maximum", 9)]
)
def test_shapes_of_a_profile_that_a_layer_cannot_take_are_refused(batches, word, found):
    whole = {"x": [(5, 4)] * 3}
    canonicalise(reshaped_to_batch(5), config_with(whole))
    canonicalise(reshaped_to_batch(-1), config_with({"x": [(batch, 4) for batch in batches]}))
    with pytest.raises(ConfigError) as caught:
        canonicalise(reshaped_to_batch(5), config_with(whole, {"x": [(batch, 4) for batch in batches]}))
    assert caught.value.where == "network 'net', profile 1"
    assert word in caught.value.message
    assert f"'x' ({found}, 4): layer " in caught.value.found
    assert f"({found}, 4) to (5, 2, 2)" in caught.value.found


def test_a_model_imported_with_a_fixed_batch_and_made_dynamic_is_refused_when_it_is_built():
    import dryfit

    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
        for name, shape in (("w1", (40, 24)), ("b1", (40,)), ("w2", (40, 13)))
    ]
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["a"], transB=1),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w2"], ["c"]),
        helper.make_node("Softmax", ["c"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, 24])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    network = dryfit.network_from_onnx(model.SerializeToString())
    network.get_input(0).shape = (-1, 24)
    config = config_with({"x": ((1, 24), (5, 24), (9, 24))})
    with pytest.raises(ConfigError, match="minimum shapes") as caught:
        dryfit.Builder().build_engine(network, config)
    assert "dynamic" in caught.value.remedy
    fixed = config_with({"x": [(5, 24)] * 3})
    outputs = (
        dryfit.Builder().build_engine(network, fixed).create_execution_context(1).run(np.ones((5, 24), np.float32))
    )
    assert outputs["y"].shape == (5, 13)
