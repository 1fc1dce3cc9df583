"""Plugin layers in engine files: fields to the type and bit, and plugins that are missing or of another version."""

from __future__ import annotations

import logging
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dryfit.building import Builder
from dryfit.engine import engine_file, packages
from dryfit.engine.engine import Engine
from dryfit.errors import ExecutionError, NetworkError, PluginError
from dryfit.network import plugin_table
from dryfit.network.data_types import DataType
from dryfit.network.layer_plugin import LayerPlugin
from dryfit.network.layers.plugin import Plugin
from dryfit.network.tensor import TensorSpec
from dryfit.plugins import registry
from dryfit.plugins.discovery import HOOKS
from dryfit.plugins.plugin_registry import PluginRegistry
from dryfit.testing.layer_plugin_conformance import field_problems

X = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)


class Kept(LayerPlugin):
    """Adds a field; `configured` has the shapes that it was configured for."""

    plugin_name, plugin_namespace = "Kept", "test"

    def __init__(self):
        self.configured: list[Any] = []

    def output_specs(self, fields, inputs):
        return [TensorSpec(inputs[0].shape, inputs[0].dtype)]

    def configure(self, fields, inputs, outputs):
        self.configured.append((inputs[0].shape, outputs[0].shape))
        return {"sum": fields.get("bias", 0.0)}

    def enqueue(self, fields, inputs):
        if fields["sum"] == "fails":
            raise KeyError("lost")
        return [inputs[0] + np.float32(fields["sum"])]


@pytest.fixture
def plugin(monkeypatch):
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})
    return Kept()


def engine_of(plugin, fields=None, shape=(1, 1, 2, 3)):
    builder = Builder()
    network, config = builder.create_network(), builder.create_builder_config()
    x = network.add_input("x", DataType.FLOAT, shape)
    layer = network.add_plugin([x], plugin, fields)
    layer.name = "kept"
    network.rename_tensor(layer.outputs[0], "y")
    network.mark_output(layer.outputs[0])
    if -1 in shape:
        profile = builder.create_optimization_profile()
        profile.set_shape("x", (1, 1, 2, 3), (1, 1, 2, 3), (4, 1, 2, 3))
        config.add_optimization_profile(profile)
    return builder.build_engine(network, config)


def fields_of(engine):
    (layer,) = [layer for layer in engine.plan.network.layers if isinstance(layer, Plugin)]
    return layer.fields


@st.composite
def arrays(draw):
    dtype = draw(st.sampled_from(sorted(DataType, key=lambda one: one.name)))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    codes = draw(st.binary(min_size=64, max_size=64))
    count = int(np.prod(shape, dtype=int))
    whole = np.resize(np.frombuffer(codes, np.uint8), count * dtype.numpy.itemsize)
    if dtype.bits < 8 or dtype is DataType.BOOL:
        whole = whole % (1 << min(dtype.bits, 1))
    return whole.view(dtype.numpy)[:count].reshape(shape)


SCALARS = st.one_of(
    st.booleans(), st.integers(), st.integers(2**63, 2**80), st.floats(), st.text(max_size=8), st.binary(max_size=8)
)
ITEMS = st.recursive(
    st.one_of(SCALARS, st.none(), arrays()), lambda one: st.lists(one, max_size=3).map(tuple), max_leaves=6
)
VALUES = st.one_of(SCALARS, arrays(), st.lists(ITEMS, max_size=3).map(tuple))


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.dictionaries(st.text(min_size=1, max_size=6), VALUES, max_size=12))
def test_any_field_comes_back_from_an_engine_file_as_it_was(fields):
    engine = engine_of(Kept(), fields)
    loaded = engine_file.load(engine.serialize())
    assert field_problems(fields, fields_of(Engine(loaded))) == []


def test_a_plugin_chooses_what_the_file_keeps(plugin):
    plugin.serialized_fields = lambda fields: {"bias": fields["bias"]}
    loaded = Engine.load(engine_of(plugin, {"bias": 2.0, "table": (1, 2)}).serialize())
    assert fields_of(loaded) == {"bias": 2.0}
    np.testing.assert_array_equal(loaded.create_execution_context().run({"x": X})["y"], X + 2)
    assert loaded.serialize() == Engine.load(loaded.serialize()).serialize()


def test_an_engine_is_saved_as_it_was_where_its_plugin_is_missing(plugin, monkeypatch):
    data = engine_of(plugin, {"bias": 2.0, "table": (1, None, b"x")}).serialize()
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})
    assert Engine.load(data).serialize() == data


def test_what_a_plugin_raises_when_a_file_is_written_is_told_with_the_layers_name(plugin):
    engine = engine_of(plugin)
    plugin.serialized_fields = lambda fields: fields["nothing"]
    with pytest.raises(NetworkError, match=r"layer 'kept'.*The plugin failed in `serialized_fields`: 'nothing'"):
        engine.serialize()


def test_a_plugin_is_configured_once_for_each_shape(plugin):
    context = engine_of(plugin, shape=(-1, 1, 2, 3)).create_execution_context()
    for batch in (1, 1, 3, 3):
        context.run({"x": np.repeat(X, batch, 0)})
    assert plugin.configured == [((batch, 1, 2, 3), (batch, 1, 2, 3)) for batch in (1, 3)]


def test_what_a_plugin_raises_in_a_run_is_told_with_layer_and_plugin(plugin):
    engine = engine_of(plugin, {"bias": "fails"})
    with pytest.raises(ExecutionError, match=r"plugin 'Kept': The plugin failed in `enqueue`: 'lost'"):
        engine.create_execution_context().run({"x": X})


def test_a_missing_plugin_is_told_before_a_run_with_what_to_do(plugin, monkeypatch):
    engine = engine_of(plugin)
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})
    with pytest.raises(PluginError, match=r"found no test::Kept version 1\)\. Call register_layer_plugin before"):
        Engine.load(engine.serialize()).create_execution_context()


def packaged(engine, package):
    return Engine(attrs.evolve(engine.plan, packages={**engine.plan.packages, "layer test::Kept 1": package}))


def test_a_missing_plugin_of_a_package_is_told_with_the_package(plugin, monkeypatch):
    engine = packaged(engine_of(plugin), "acme-layers 1.2")
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})
    with pytest.raises(PluginError, match=r"pip install acme-layers \(the engine was built with 1\.2\)"):
        Engine.load(engine.serialize()).create_execution_context()


def test_a_plugin_whose_package_is_switched_off_needs_no_installing(plugin, monkeypatch, install_package):
    install_package("acme-layers", {HOOKS: {"acme": "acme_hooks"}}, {})
    monkeypatch.setattr(registry, "__dict__", vars(PluginRegistry(disabled="acme-layers")))
    engine = packaged(engine_of(plugin), "acme-layers 1.2")
    monkeypatch.setattr(plugin_table, "_REGISTERED", {})
    with pytest.raises(PluginError) as caught:
        Engine.load(engine.serialize()).create_execution_context()
    assert caught.value.remedy == (
        "acme-layers is installed, but acme 1.2 (acme-layers) is disabled by DRYFIT_DISABLE_PLUGINS=acme-layers: "
        "run again without this"
    )


@pytest.mark.parametrize(("installed", "lines"), [("acme-layers 1.3", 1), ("acme-layers 1.2", 0), ("", 0)])
def test_another_version_of_the_package_is_taken_and_logged(plugin, monkeypatch, caplog, installed, lines):
    engine = packaged(engine_of(plugin), "acme-layers 1.2")
    monkeypatch.setattr(packages, "layer_plugin_package", lambda key: installed)
    with caplog.at_level(logging.WARNING, "dryfit.engine"):
        engine.create_execution_context().run({"x": X})
    assert len(caplog.messages) == lines
    assert all(
        "comes from acme-layers 1.3; the engine was built with acme-layers 1.2" in one for one in caplog.messages
    )
