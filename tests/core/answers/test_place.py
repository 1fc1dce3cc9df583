"""`dryfit.place`: the proposal as fields, for files, networks and configs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.core.answers.placement_search import acme_costs
from tests.core.builder.networks import chain

import dryfit
from dryfit.errors import ConfigError, UnknownNameError

FAST, PLAIN = "ACME_FAST", "ACME_PLAIN"


@pytest.fixture
def network(install: Any) -> dryfit.Network:
    """A chain for two devices with stated costs, of which one has no ELU."""
    install("acme_costs", acme_costs.module(), {"dryfit.targets": acme_costs.ENTRY_POINTS})
    return chain("c", "e", "r", "e", "c")


def test_a_network_keeps_its_layers_on_the_devices_that_a_build_proposes(network: dryfit.Network) -> None:
    answer = dryfit.place(network, device=FAST, fallback=PLAIN, precision="fp32")
    assert answer.placement == {"r2": PLAIN}
    assert [(change.layers, change.source, change.destination) for change in answer.changes] == [(["r2"], FAST, PLAIN)]
    assert answer.after.value < answer.before.value == answer.options[0].value
    assert answer.after.segments_by_device == {FAST: 2, PLAIN: 1}
    assert "for latency" in repr(answer)


def test_a_config_is_asked_as_it_is_and_stays_so(network: dryfit.Network) -> None:
    config = dryfit.BuilderConfig()
    config.default_device_type = FAST
    config.allow_fallback(PLAIN)
    before = config.settings(network)
    answer = dryfit.place(network, config)
    assert config.settings(network) == before
    by_options = dryfit.place(network, device=FAST, fallback=PLAIN, precision="fp32")
    assert (answer.placement, answer.options) == (by_options.placement, by_options.options)


def test_a_file_is_written_and_not_overwritten(network: dryfit.Network, tmp_path: Path) -> None:
    output = tmp_path / "placement.json"
    asked: Any = {"device": FAST, "fallback": PLAIN, "precision": "fp32", "output": output}
    answer = dryfit.place(network, **asked)
    assert json.loads(output.read_text(encoding="utf-8")) == answer.placement
    assert answer.output == str(output)
    with pytest.raises(ConfigError, match="The file already exists"):
        dryfit.place(network, **asked)
    assert dryfit.place(network, force=True, **asked).placement == answer.placement


def test_an_objective_that_does_not_exist_is_answered_with_the_closest(network: dryfit.Network) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'latency'"):
        dryfit.place(network, device=FAST, fallback=PLAIN, objective="latencey")
