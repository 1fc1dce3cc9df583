"""What the flags for refits make of an engine: weights that are marked, weights that are the same, and none."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.builder.refittable_networks import NETWORKS, built, float_network, give_all, outputs, same, weights

from dryfit.builder.config.builder_config import BuilderFlag
from dryfit.builder.refit.refitter import Refitter
from dryfit.engine.engine import Engine
from dryfit.errors import ConfigError, ExecutionError, NetworkError, UnknownNameError
from dryfit.network.creation_flags import NetworkDefinitionCreationFlag
from dryfit.network.data_types import DataType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.layers.resize import InterpolationMode
from dryfit.network.network import Network
from dryfit.network.weights_role import WeightsRole


def test_only_marked_weights_are_exchanged_individually():
    network = float_network(weights(1))
    with pytest.raises(
        ConfigError, match=r"REFIT_INDIVIDUAL requires weights that are marked as refittable.*mark_weights_refittable"
    ):
        built(network, BuilderFlag.REFIT_INDIVIDUAL)
    assert network.mark_weights_refittable("conv BIAS")
    assert network.mark_weights_refittable("conv KERNEL")
    assert network.unmark_weights_refittable("conv KERNEL")
    with pytest.raises(ConfigError, match=r"REFIT_INDIVIDUAL.*found REFIT.*Clear"):
        built(network, BuilderFlag.REFIT_INDIVIDUAL, BuilderFlag.REFIT)
    engine = built(network, BuilderFlag.REFIT_INDIVIDUAL)
    assert Refitter(engine).get_all_weights() == ["conv BIAS"]
    refitter = Refitter(engine)
    with pytest.raises(UnknownNameError, match="conv KERNEL"):
        refitter.set_weights("conv", WeightsRole.KERNEL, weights(2)["kernel"])
    refitter.set_weights("conv", WeightsRole.BIAS, weights(2)["bias"])
    refitter.refit_cuda_engine()
    assert same(outputs(engine), outputs(built(float_network({**weights(1), "bias": weights(2)["bias"]}))))


@pytest.mark.parametrize("flags", [(BuilderFlag.STRIP_PLAN,), (BuilderFlag.REFIT_IDENTICAL, BuilderFlag.STRIP_PLAN)])
@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_a_stripped_engine_comes_back_by_its_own_weights_and_no_others(make, flags):
    network = make(weights(1))
    whole = built(network)
    engine = Engine.load(built(network, *flags).serialize())
    assert engine.is_stripped
    assert engine.refittable
    with pytest.raises(ExecutionError, match=r"The engine has no weights.*dryfit refit ENGINE.*OnnxParserRefitter"):
        engine.create_execution_context()
    refitter = Refitter(engine)
    assert refitter.get_missing_weights() == refitter.get_all_weights()
    with pytest.raises(ConfigError, match=f"Weights are missing.*{refitter.get_all_weights()[0]}"):
        refitter.refit_cuda_engine()
    with pytest.raises(NetworkError, match="The engine is stripped, and these weights have not been set yet"):
        refitter.get_named_weights(refitter.get_all_weights()[0])
    give_all(refitter, make(weights(2)))
    with pytest.raises(NetworkError, match=r"The weights must be the ones that the engine was built with.*conv BIAS"):
        refitter.refit_cuda_engine()
    give_all(refitter, network)
    assert refitter.get_missing() == ([], [])
    refitter.refit_cuda_engine()
    assert not engine.is_stripped
    assert same(outputs(engine), outputs(whole))
    assert [one.weights.keys() for one in engine.plan.operations] == [
        one.weights.keys() for one in whole.plan.operations
    ]


def test_a_stripped_engine_for_any_weights_takes_others():
    stripped = built(float_network(weights(1)), BuilderFlag.STRIP_PLAN, BuilderFlag.REFIT)
    data = stripped.serialize()
    assert len(data) < len(built(float_network(weights(1)), BuilderFlag.REFIT).serialize())
    for name, values in weights(1).items():
        assert values.tobytes() not in data, name
    engine = Engine.load(data)
    assert engine.serialize() == data
    refitter = Refitter(engine)
    give_all(refitter, float_network(weights(2)))
    refitter.refit_cuda_engine()
    assert same(outputs(engine), outputs(built(float_network(weights(2)))))


def test_weights_validation_can_be_left_out():
    engine = built(float_network(weights(1)), BuilderFlag.REFIT_IDENTICAL)
    refitter = Refitter(engine)
    assert refitter.weights_validation
    give_all(refitter, float_network(weights(2)))
    with pytest.raises(NetworkError, match="The weights must be the ones that the engine was built with"):
        refitter.refit_cuda_engine()
    refitter.weights_validation = False
    refitter.refit_cuda_engine()
    assert same(outputs(engine), outputs(built(float_network(weights(2)))))


def test_constants_that_decide_on_shapes_are_no_weights():
    network = Network("resized")
    x = network.add_input("x", DataType.FLOAT, (1, 4, 8, 8))
    resize = network.add_resize(x)
    resize.resize_mode = InterpolationMode.NEAREST
    resize.scales = (1.0, 1.0, 2.0, 2.0)
    shift = network.add_constant((1, 4, 1, 1), np.ones((1, 4, 1, 1), np.float32))
    network.rename_layer(shift, "shift")
    extents = network.add_constant((3,), np.array([1, 4, 256], np.int32))
    flat = network.add_shuffle(resize.get_output(0))
    flat.set_input(1, extents.get_output(0))
    network.mark_output(flat.get_output(0))
    network.mark_output(network.add_elementwise(x, shift.get_output(0), ElementWiseOperation.SUM).get_output(0))
    engine = Engine.load(built(network, BuilderFlag.STRIP_PLAN).serialize())
    assert Refitter(engine).get_all_weights() == ["shift CONSTANT"]


def test_a_stripped_engine_keeps_the_weights_that_are_not_marked():
    network = float_network(weights(1))
    network.mark_weights_refittable("conv KERNEL")
    engine = Engine.load(built(network, BuilderFlag.STRIP_PLAN, BuilderFlag.REFIT_INDIVIDUAL).serialize())
    refitter = Refitter(engine)
    assert refitter.get_missing_weights() == ["conv KERNEL"]
    refitter.set_named_weights("conv KERNEL", weights(2)["kernel"])
    refitter.refit_cuda_engine()
    expected = built(float_network({**weights(1), "kernel": weights(2)["kernel"]}))
    assert same(outputs(engine), outputs(expected))


def test_a_strongly_typed_network_stays_so():
    def network(seed):
        network = Network("strong", flags=1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED)
        x = network.add_input("x", DataType.FLOAT, (1, 4, 8, 8))
        half = network.add_cast(x, DataType.HALF)
        kernel = weights(seed)["kernel"].astype(np.float16)
        convolution = network.add_convolution_nd(half.get_output(0), 8, (3, 3), kernel, None)
        network.rename_layer(convolution, "conv")
        network.mark_output(network.add_cast(convolution.get_output(0), DataType.FLOAT).get_output(0))
        return network

    engine = Engine.load(built(network(1), BuilderFlag.REFIT).serialize())
    refitter = Refitter(engine)
    assert refitter.network.is_strongly_typed
    give_all(refitter, network(2))
    refitter.refit_cuda_engine()
    fresh = built(network(2), BuilderFlag.REFIT)
    assert same(outputs(engine), outputs(fresh))
    assert engine.serialize() == fresh.serialize()
