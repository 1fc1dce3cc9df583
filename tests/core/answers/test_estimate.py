"""`dryfit.estimate`: the figures of a model as fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

import dryfit
from dryfit.errors import ConfigError, PlacementError

OPTIONS: Any = {"platform": "agx-orin-64", "precision": "int8", "shape": {"image": (2, 1, 8, 8)}}


def test_a_model_in_memory_and_a_network_have_the_figures_of_the_file(digits_model: Path) -> None:
    from_file = dryfit.estimate(digits_model, **OPTIONS)
    for model in (onnx.load(digits_model), dryfit.network_from_onnx(digits_model)):
        answer = dryfit.estimate(model, **OPTIONS)
        assert answer.network == from_file.network
        assert answer.layers == from_file.layers


def test_a_config_is_taken_as_it_is_and_stays_so(digits_model: Path) -> None:
    network = dryfit.network_from_onnx(digits_model)
    network.inputs[0].shape = (2, 1, 8, 8)
    config = dryfit.BuilderConfig()
    config.default_device_type = "DLA"
    config.set_platform("DLA", "agx-orin-64")
    config.set_flag(dryfit.BuilderFlag.INT8)
    config.assume_scales = True
    config.allow_fallback("GPU")
    before = config.settings(network)
    answer = dryfit.estimate(network, config)
    assert answer.network == dryfit.estimate(digits_model, **OPTIONS).network
    assert (answer.precisions, answer.sparsity, answer.assumed) == (["int8"], "disable", [])
    assert config.settings(network) == before
    with pytest.raises(ConfigError, match="cannot be combined"):
        dryfit.estimate(network, config, precision="fp16")


def test_the_figures_of_a_segment_are_those_of_its_steps(digits_model: Path) -> None:
    answer = dryfit.estimate(digits_model, **OPTIONS)
    assert {one.device for one in answer.segments} == {"DLA", "GPU"}
    assert sum(one.macs for one in answer.segments) == answer.network.macs
    (segment, *_) = answer.segments
    assert segment.microseconds == pytest.approx(
        sum(one.microseconds for one in answer.layers if one.segment == segment.index)
    )


def test_layers_that_can_run_nowhere_have_no_estimate(digits_model: Path) -> None:
    with pytest.raises(PlacementError, match="elu2"):
        dryfit.estimate(digits_model, device="DLA", fallback="none", shape={"image": (1, 1, 8, 8)})
