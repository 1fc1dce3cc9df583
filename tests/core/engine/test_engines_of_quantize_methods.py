"""An engine with quantized operators: it computes the same from its file, and says which method it misses."""

import importlib
import shutil

import numpy as np
import pytest
from tests.core.passes.quantized_operators.method_package import CODE, ENTRIES
from tests.core.passes.quantized_operators.networks import convolution_network, feeds, relu6

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.errors import PluginError
from dryfit.plugins import registry
from dryfit.plugins.plugin_registry import PluginRegistry
from dryfit.reference.executor import run_reference


def built(install):
    install("acme", CODE, ENTRIES)
    network = convolution_network(activation=relu6(), bias=np.array([8.0, -4.0, 2.0], np.float32))
    network.quantize_method = "acme"
    config = BuilderConfig()
    config.default_device_type = "CPU"
    return network, Builder().build_engine(network, config)


def test_an_engine_computes_by_its_methods_also_from_its_file(install, tmp_path):
    network, engine = built(install)
    given = feeds(network)
    expected = run_reference(network, given)["y"]
    np.testing.assert_array_equal(engine.create_execution_context().run(given)["y"], expected)
    assert engine.plan.packages["quantize_method acme"] == "acme 1.0"
    assert "computed by the quantize method 'acme'" in {one.layer: one.cause for one in engine.plan.layers}["conv"]
    engine.save(tmp_path / "made.engine")
    loaded = Engine.load(tmp_path / "made.engine")
    np.testing.assert_array_equal(loaded.create_execution_context().run(given)["y"], expected)


def test_an_engine_whose_method_is_not_installed_says_which_package_brings_it(install, tmp_path, monkeypatch):
    _, engine = built(install)
    engine.save(tmp_path / "made.engine")
    for record in (tmp_path / "strangers").glob("*.dist-info"):
        shutil.rmtree(record)
    monkeypatch.setattr(registry, "__dict__", vars(PluginRegistry()))
    importlib.invalidate_caches()
    loaded = Engine.load(tmp_path / "made.engine")
    with pytest.raises(PluginError, match="The quantize methods of the engine must be installed") as refused:
        loaded.create_execution_context()
    assert refused.value.where == "layer 'x_codes'"
    assert refused.value.found == "no acme"
    assert "pip install acme (the engine was built with 1.0)" in str(refused.value.remedy)
