"""Random networks through the whole: built for a device, saved, loaded, run, and compared with the reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.engine.test_binding_properties import CHANNELS, networks

from dryfit.builder.config.builder_config import BuilderFlag, DeviceType
from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.network.network import Network
from dryfit.reference.executor import run_reference

MOST_ROWS = 3


def built(network: Network, device: str, flags: tuple[BuilderFlag, ...] = ()) -> Engine:
    builder = Builder()
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    config.default_device_type = device
    for flag in flags:
        config.set_flag(flag)
    profile.set_shape("x", *((rows, CHANNELS, 2, 2) for rows in (0, 1, MOST_ROWS)))
    config.add_optimization_profile(profile)
    return Engine.load(builder.build_engine(network, config).serialize())


def outputs_of(engine: Engine, rows: int, threads: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The outputs for small whole numbers, with which sums are exact in any order and any precision."""
    x = np.random.default_rng(rows).integers(-3, 4, (rows, CHANNELS, 2, 2)).astype(np.float32)
    return engine.create_execution_context(threads).run(x), x


@given(networks(), st.integers(0, MOST_ROWS), st.integers(1, 2))
@settings(max_examples=30)
def test_a_built_engine_gives_what_the_network_means(drawn, rows, threads):
    network, _ = drawn
    found, x = outputs_of(built(network, DeviceType.GPU), rows, threads)
    expected = run_reference(network, {"x": x})
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize("device", [DeviceType.GPU, DeviceType.CPU])
@given(drawn=networks(), rows=st.integers(0, MOST_ROWS))
@settings(max_examples=15)
def test_half_precision_of_small_whole_numbers_is_exact(device, drawn, rows):
    network, _ = drawn
    found, x = outputs_of(built(network, device, (BuilderFlag.FP16,)), rows, 2)
    for name, value in run_reference(network, {"x": x}).items():
        np.testing.assert_array_equal(found[name], value)
