"""The runtime: engines from files, and the DLA core they run on."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from tests.core.engine.hand_built import plan_of
from tests.core.engine.small_networks import relu_network

from dryfit.engine.engine import Engine
from dryfit.engine.runtime import Runtime
from dryfit.errors import ConfigError, EngineFileError
from dryfit.plugins import registry


def test_a_runtime_loads_engines_and_logs_them(tmp_path, caplog):
    engine = Engine(plan_of(relu_network((2,))))
    engine.save(tmp_path / "a.engine")
    runtime = Runtime(logging.getLogger("test"))
    with caplog.at_level(logging.INFO, "test"):
        for load in (runtime.deserialize_engine, runtime.deserialize_cuda_engine):
            for source in (tmp_path / "a.engine", engine.serialize()):
                assert list(load(source).create_execution_context(1).run(np.float32([-1, 1]))["y"]) == [0, 1]
    assert "Loaded engine 'relu only': 1 engine layers" in caplog.text
    with pytest.raises(EngineFileError):
        runtime.deserialize_engine(b"")


def test_the_dla_core_is_one_of_the_platform(monkeypatch):
    runtime = Runtime()
    cores = registry.target("DLA").platforms[0].cores
    assert runtime.num_DLA_cores == cores
    assert runtime.DLA_core == 0
    runtime.DLA_core = cores - 1
    assert runtime.DLA_core == cores - 1
    with pytest.raises(ConfigError, match=f"found {cores}; allowed: -1 to {cores - 1}"):
        runtime.DLA_core = cores
    monkeypatch.setattr(registry, "find_target", lambda device: None)
    assert runtime.num_DLA_cores == 0
