"""An attribute that does not exist is refused, read or set, with the closest name or with what serves in its place."""

import pickle
import re

import pytest

import dryfit
from dryfit.errors import DryfitError, UnknownAttributeError, UnknownSettingError
from dryfit.network.attribute_names import dir_of
from dryfit.network.layers.convolution import Convolution
from dryfit.network.tensorrt_names import INSTEAD

CLASSES = {name: getattr(dryfit, name) for name in INSTEAD if name in dryfit.__all__}


@pytest.fixture(scope="module")
def held():
    """One object of each class that users hold, by the name of its class."""
    builder = dryfit.Builder()
    network, config = builder.create_network(), builder.create_builder_config()
    config.set_flag(dryfit.BuilderFlag.REFIT)
    x = network.add_input("x", dryfit.DataType.FLOAT, (1, 2, 4, 4))
    layer = network.add_pooling_nd(x, dryfit.PoolingType.MAX, (2, 2))
    network.mark_output(layer.get_output(0))
    engine = builder.build_engine(network, config)
    objects = (
        *(builder, network, config, x, layer, engine, engine.create_execution_context(), dryfit.Runtime()),
        *(builder.create_optimization_profile(), dryfit.OnnxParser(network), dryfit.Refitter(engine)),
        engine.create_engine_inspector(),
    )
    return {type(one).__name__: one for one in objects}


@pytest.mark.parametrize(
    ("holder", "name", "word"),
    [
        ("Builder", "max_batch_size", "add_input"),
        ("Builder", "set_device_type", "BuilderConfig.set_device_type"),
        ("BuilderConfig", "max_workspace_size", "set_memory_pool_limit"),
        ("Network", "add_convolution", "add_convolution_nd"),
        ("Tensor", "broadcast_across_batch", "add_input"),
        ("Pooling", "window_size", "window_size_nd"),
        ("Pooling", "stride", "stride_nd"),
        ("Engine", "num_bindings", "num_io_tensors"),
        ("ExecutionContext", "execute_v2", "run"),
        ("ExecutionContext", "execute_async_v3", "run"),
        ("ExecutionContext", "set_tensor_address", "set_tensor"),
        ("Runtime", "max_threads", "create_execution_context"),
        ("OptimizationProfile", "extra_memory_target", "memory"),
        ("OnnxParser", "supports_model", "get_error"),
        ("Refitter", "refit_cuda_engine_async", "refit_cuda_engine"),
    ],
)
def test_a_name_of_tensorrt_is_refused_with_what_serves_here(held, holder, name, word):
    for attempt in (lambda: getattr(held[holder], name), lambda: setattr(held[holder], name, 4)):
        with pytest.raises(AttributeError) as error:
            attempt()
        assert word in error.value.remedy
        assert error.value.name == name
    assert name not in dir(held[holder])


def test_every_class_refuses_a_misspelt_name_and_offers_the_closest(held):
    for holder, one in held.items():
        assert not hasattr(one, "no_such_thing"), holder
        with pytest.raises(UnknownSettingError):
            one.no_such_thing = 1
        known = min(name for name in dir_of(type(one)) if len(name) > 3)
        with pytest.raises(UnknownAttributeError) as error:
            getattr(one, f"{known}e")
        assert repr(known) in error.value.remedy


def test_the_module_refuses_unknown_names_read_or_set():
    for name, word in (("float16", "DataType.HALF"), ("Logger", "Builder"), ("INetworkDefinition", "Network")):
        with pytest.raises(AttributeError) as error:
            getattr(dryfit, name)
        assert word in error.value.remedy
    with pytest.raises(AttributeError, match="Did you mean 'Builder'"):
        _ = dryfit.Bilder
    with pytest.raises(AttributeError, match="can be set"):
        dryfit.default_device_type = "DLA"
    assert dir(dryfit) == sorted(dryfit.__all__)


def test_every_remedy_names_what_exists():
    missing = []
    for holder, remedies in INSTEAD.items():
        for name, remedy in remedies.items():
            cls = CLASSES.get(holder)
            known = dir_of(cls) if cls is not None else frozenset(dryfit.__all__)
            if name in known:
                missing.append(f"{holder}.{name} exists, and is refused all the same")
            for quoted in re.findall(r"`([^`]+)`", remedy):
                first, _, member = quoted.partition(".")
                owner = getattr(dryfit, first, None) if first in dryfit.__all__ else None
                exists = quoted in known if owner is None else not member or member in dir_of(owner)
                if not exists:
                    missing.append(f"{holder}.{name}: {quoted}")
    assert missing == []


def test_what_is_told_of_a_name_is_put_together_when_it_is_read():
    with pytest.raises(UnknownAttributeError) as found:
        _ = dryfit.Builder().num_dla_cores
    assert "facts" not in vars(found.value)
    assert found.value.facts.known
    assert not isinstance(found.value, DryfitError)


@pytest.mark.parametrize("access", [lambda one: one.num_dla_cores, lambda one: setattr(one, "num_dla_cores", 2)])
def test_the_errors_survive_another_process(access):
    with pytest.raises(AttributeError) as found:
        access(dryfit.Builder())
    again = pickle.loads(pickle.dumps(found.value))  # noqa: S301  our own bytes
    assert (type(again), str(again), again.name, again.remedy) == (
        type(found.value),
        str(found.value),
        "num_dla_cores",
        found.value.remedy,
    )


def test_what_fails_inside_a_property_is_told_as_it_is(monkeypatch):
    monkeypatch.setattr(dryfit.Builder, "num_DLA_cores", property(lambda builder: builder.wrong_inside))
    with pytest.raises(AttributeError, match="wrong_inside"):
        _ = dryfit.Builder().num_DLA_cores


def test_a_class_of_the_users_own_has_attributes_of_its_own():
    class Mine(dryfit.OptimizationProfile):
        pass

    mine = Mine()
    mine.note = "mine"
    assert mine.note == "mine"


def test_what_can_only_be_read_cannot_be_set():
    with pytest.raises(UnknownSettingError, match="num_layers"):
        dryfit.Network().num_layers = 3
    layer = Convolution(num_output_maps=1, kernel_size_nd=(1, 1))
    with pytest.raises(UnknownSettingError) as error:
        layer.window = (3, 3)
    assert "kernel_size_nd" in error.value.known
    assert "inputs" not in error.value.known
