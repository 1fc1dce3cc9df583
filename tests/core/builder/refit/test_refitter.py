"""Refits: what an engine computes afterwards is what an engine built from the new weights computes, to the bit."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from tests.core.builder.refittable_networks import NETWORKS, built, float_network, give_all, outputs, same, weights

from dryfit.builder.config.builder_config import BuilderFlag
from dryfit.builder.refit.refitter import Refitter
from dryfit.engine.engine import Engine
from dryfit.errors import ConfigError, EngineFileError, NetworkError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.tensor import TensorLocation
from dryfit.network.weights_role import WeightsRole


@pytest.mark.parametrize(("name", "flags"), [*((name, ()) for name in NETWORKS), ("float", (BuilderFlag.FP16,))])
def test_a_refitted_engine_is_the_engine_that_the_new_weights_give(name, flags):
    old, new = NETWORKS[name](weights(1)), NETWORKS[name](weights(2))
    fresh = built(new, BuilderFlag.REFIT, *flags)
    built_now = built(old, BuilderFlag.REFIT, *flags)
    for engine in (built_now, Engine.load(built_now.serialize())):
        before = outputs(engine)
        refitter = Refitter(engine)
        give_all(refitter, new)
        assert refitter.refit_cuda_engine()
        assert same(outputs(engine), outputs(fresh))
        assert not same(outputs(engine), before)
        assert engine.serialize() == fresh.serialize()


def test_what_is_not_given_stays_as_it_was():
    values = weights(1)
    engine = built(float_network(values), BuilderFlag.REFIT)
    refitter = Refitter(engine)
    bias = np.arange(8, dtype=np.float32)
    refitter.set_weights("conv", WeightsRole.BIAS, bias)
    assert refitter.get_missing() == ([], [])
    refitter.refit_cuda_engine()
    assert same(outputs(engine), outputs(built(float_network({**values, "bias": bias}))))
    # A second refitter begins where the first one ended.
    scale = np.full(8, 3, np.float32)
    second = Refitter(engine)
    np.testing.assert_array_equal(second.get_named_weights("conv BIAS"), bias)
    second.set_weights("norm", WeightsRole.SCALE, scale)
    second.refit_cuda_engine()
    assert same(outputs(engine), outputs(built(float_network({**values, "bias": bias, "scale": scale}))))


def test_an_engine_does_not_see_what_the_user_does_with_his_arrays():
    values = weights(1)
    engine = built(float_network(values), BuilderFlag.REFIT)
    expected = outputs(engine)
    kernel = values["kernel"].copy()
    refitter = Refitter(engine)
    for array in values.values():
        array[...] = 9
    refitter.set_weights("conv", WeightsRole.KERNEL, kernel)
    kernel[...] = 9
    refitter.refit_cuda_engine()
    assert same(outputs(engine), expected)


def test_weights_go_by_name():
    network = float_network(weights(1))
    kernel = network.layer("conv").kernel
    assert network.set_weights_name(kernel, "stem.weight")
    refitter = Refitter(built(network, BuilderFlag.REFIT))
    names = ["stem.weight", "conv BIAS", "norm SHIFT", "norm SCALE", "matrix CONSTANT", "addend CONSTANT"]
    assert refitter.get_all_weights() == names
    layers, roles = refitter.get_all()
    assert layers == ["conv", "conv", "norm", "norm", "matrix", "addend"]
    assert [role.name for role in roles] == ["KERNEL", "BIAS", "SHIFT", "SCALE", "CONSTANT", "CONSTANT"]
    prototype = refitter.get_weights_prototype("stem.weight")
    assert (prototype.dtype, prototype.shape, prototype.size) == (DataType.FLOAT, (8, 4, 3, 3), 288)
    new = np.zeros(288, np.float32)
    assert refitter.set_named_weights("stem.weight", new, TensorLocation.DEVICE)
    assert refitter.get_weights_location("stem.weight") is TensorLocation.HOST
    assert refitter.get_named_weights("stem.weight").shape == (8, 4, 3, 3)
    assert not refitter.get_named_weights("stem.weight").any()
    assert refitter.unset_named_weights("stem.weight")
    assert not refitter.unset_named_weights("stem.weight")
    np.testing.assert_array_equal(refitter.get_named_weights("stem.weight"), kernel)


def test_weights_that_layers_share_are_exchanged_in_all_of_them():
    def network(kernel):
        network = Network("tied")
        tensor = network.add_input("x", DataType.FLOAT, (1, 4, 8, 8))
        for name in ("first", "second"):
            layer = network.add_convolution_nd(tensor, 4, (1, 1), kernel, None)
            network.rename_layer(layer, name)
            tensor = layer.get_output(0)
        network.mark_output(tensor)
        return network

    rng = np.random.default_rng(0)
    old, new = (rng.standard_normal((4, 4, 1, 1)).astype(np.float32) for _ in range(2))
    engine = built(network(old), BuilderFlag.REFIT)
    refitter = Refitter(engine)
    assert len(refitter.get_all_weights()) == 1
    assert refitter.get_all()[0] == ["first", "second"]
    refitter.set_weights("second", WeightsRole.KERNEL, new)
    refitter.refit_cuda_engine()
    fresh = built(network(new), BuilderFlag.REFIT)
    assert same(outputs(engine), outputs(fresh))
    assert engine.serialize() == fresh.serialize()


# What is refused ------------------------------------------------------------------------------------------------------


def test_an_engine_that_was_built_without_the_flag_says_what_to_do():
    engine = built(float_network(weights(1)))
    assert not engine.refittable
    with pytest.raises(ConfigError, match=r"'float'.*without the flag REFIT.*BuilderFlag\.REFIT.*--refit"):
        Refitter(engine)


def test_names_and_roles_that_do_not_exist_are_answered_with_those_that_do():
    refitter = Refitter(built(float_network(weights(1)), BuilderFlag.REFIT))
    with pytest.raises(UnknownNameError, match=r"'conv SHIFT'.*allowed: addend CONSTANT, conv BIAS, conv KERNEL"):
        refitter.set_weights("conv", WeightsRole.SHIFT, np.zeros(8, np.float32))
    with pytest.raises(UnknownNameError, match="Did you mean 'conv BIAS'"):
        refitter.set_named_weights("conv BIAZ", np.zeros(8, np.float32))
    with pytest.raises(ConfigError, match=r"Unknown role of weights .found 9; allowed: .*KERNEL"):
        refitter.set_weights("conv", 9, np.zeros(8, np.float32))


@pytest.mark.parametrize("wrong", [np.zeros(8, np.float16), np.zeros(9, np.float32), np.zeros((2, 4), np.float32)])
def test_weights_of_another_type_or_number_are_refused(wrong):
    refitter = Refitter(built(float_network(weights(1)), BuilderFlag.REFIT))
    with pytest.raises(NetworkError, match=r"weights 'conv BIAS'.*allowed: FP32 \(8,\)"):
        refitter.set_weights("conv", WeightsRole.BIAS, wrong)


def test_settings_that_cannot_be_repeated_are_named():
    engine = built(float_network(weights(1)), BuilderFlag.REFIT)
    engine.plan.settings["flags"] = [*engine.plan.settings["flags"], "WARP"]
    with pytest.raises(
        EngineFileError, match=r"The engine was built with settings that this version of dryfit does not support.*WARP"
    ):
        Refitter(engine).refit_cuda_engine()


def test_passes_that_are_gone_are_named():
    engine = built(float_network(weights(1)), BuilderFlag.REFIT)
    engine.plan.settings["passes"] = [*engine.plan.settings["passes"], "pass-of-a-package"]
    with pytest.raises(
        EngineFileError, match=r"The engine must be refitted with the passes that built it.*pass-of-a-package"
    ):
        Refitter(engine).refit_cuda_engine()


def test_a_refit_does_not_tell_again_what_the_build_told(caplog):
    engine = built(
        float_network(weights(1)), BuilderFlag.REFIT, BuilderFlag.FP16, BuilderFlag.GPU_FALLBACK, device="DLA"
    )
    assert "cannot run on DLA" in caplog.text
    caplog.clear()
    Refitter(engine).refit_cuda_engine()
    assert caplog.text == ""
    built(float_network(weights(1)), BuilderFlag.FP16, BuilderFlag.GPU_FALLBACK, device="DLA")
    assert "cannot run on DLA" in caplog.text


# Threads --------------------------------------------------------------------------------------------------------------


def test_runs_see_all_of_the_new_weights_or_none():
    first, second = weights(1), weights(2)
    engine = built(float_network(first), BuilderFlag.REFIT)
    context = engine.create_execution_context(1)
    x = np.random.default_rng(7).standard_normal((1, 4, 8, 8)).astype(np.float32)
    expected = {outputs(built(float_network(values)))["y"].tobytes() for values in (first, second)}
    found, stop = [], threading.Event()

    def run() -> None:
        while not stop.is_set():
            found.append(context.run({"x": x})["y"].tobytes())

    thread = threading.Thread(target=run)
    thread.start()
    refitter = Refitter(engine)
    for values in (second, first, second):
        give_all(refitter, float_network(values))
        refitter.refit_cuda_engine()
    stop.set()
    thread.join()
    assert set(found) <= expected
    assert context.run({"x": x})["y"].tobytes() == outputs(built(float_network(second)))["y"].tobytes()


def test_threads_are_counted_from_one():
    refitter = Refitter(built(float_network(weights(1)), BuilderFlag.REFIT))
    refitter.max_threads = 2
    assert refitter.max_threads == 2
    with pytest.raises(ConfigError, match="at least one thread"):
        refitter.max_threads = 0
