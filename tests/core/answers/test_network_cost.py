"""What a placed network is estimated to cost, with two devices whose costs are stated."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from dryfit.answers.network_cost import network_cost
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import design_for_assessment
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network

MODULE = """
from dryfit.target.cost import CostEstimate, StepCost
from dryfit.target.limits import LimitTable
from dryfit.target.power_mode import PowerMode
from dryfit.target.target import Platform, Target

LIMITS = LimitTable("ACME", [], supported_kinds={"convolution", "activation"})
ANY = LimitTable("OTHER", [], supported_kinds={"softmax"})
MODES = (PowerMode("fast", 2e6, 1e6), PowerMode("slow", 1e6, 1e6))
BOARD = Platform("board", "board", "Board", cores=2, power_modes=MODES)


def cost(question):
    each = 20e6 / question.power_mode.clock_hz
    steps = [
        StepCost([one.name], each / (2 if one.name in question.sparse_layers else 1), 0, 0, 20, 1, 5)
        for one in question.layers
    ]
    return CostEstimate(sum(one.microseconds for one in steps), 1, 5, "20 cycles a layer", "manual", steps=steps)


def transfer(question):
    return CostEstimate(question.bytes_moved / 100, question.bytes_moved, 0, "100 bytes a microsecond", "manual")


def other_cost(question):
    return CostEstimate(7.0, 1, 3, "seven", "manual")


def nothing(question):
    return None


AT = "acme_board:"
ACME = Target("ACME", "Acme", [BOARD], limits_at=AT + "LIMITS", estimate_cost_at=AT + "cost",
              estimate_transfer_at=AT + "transfer")
OTHER = Target("OTHER", "Other", [Platform("plain", "p", "Plain"), Platform("board", "board", "Board")],
               limits_at=AT + "ANY", estimate_cost_at=AT + "other_cost")
SILENT = Target("SILENT", "Silent", [Platform("plain", "p", "Plain")], limits_at=AT + "ANY",
                estimate_cost_at=AT + "nothing")
"""


@pytest.fixture(autouse=True)
def _installed(install: Any) -> None:
    points = {"acme": "acme_board:ACME", "other": "acme_board:OTHER", "silent": "acme_board:SILENT"}
    install("acme_board", MODULE, {"dryfit.targets": points})


def network() -> Network:
    """Three layers of batch 4: three segments, as the device refuses the second."""
    made = Network("three")
    x = made.add_input("x", DataType.FLOAT, (4, 1, 5, 5))
    convolution = made.add_convolution_nd(x, 1, (1, 1), np.ones((1, 1, 1, 1), np.float32))
    convolution.name = "convolution"
    softmax = made.add_softmax(convolution.outputs[0])
    made.mark_output(made.add_activation(softmax.outputs[0], ActivationType.RELU).outputs[0])
    return made


def cost(fallback: str, power_mode: str | None = None, sparse: tuple[str, ...] = ()) -> Any:
    config = BuilderConfig()
    config.default_device_type = "ACME"
    config.allow_fallback(fallback)
    config.power_mode = power_mode
    design = design_for_assessment(network(), config)
    return network_cost(attrs.evolve(design, sparse_layers=frozenset(sparse)))


def test_latency_is_the_sum_of_segments_and_copies() -> None:
    found = cost("OTHER")
    assert [(one.device, one.estimate.microseconds) for one in found.segments] == [
        ("ACME", 10.0),
        ("OTHER", 7.0),
        ("ACME", 10.0),
    ]
    copies = [one.estimate.microseconds for one in found.transfers]
    assert found.latency_microseconds == pytest.approx(27 + sum(copies))


def test_the_power_mode_reaches_the_target() -> None:
    assert cost("OTHER", "slow").segments[0].estimate.microseconds == 20.0


def test_sparse_layers_reach_the_target() -> None:
    assert cost("OTHER", sparse=("convolution",)).segments[0].estimate.microseconds == 5.0


def test_each_core_of_a_device_works_at_a_run_of_its_own() -> None:
    found = cost("OTHER")
    assert found.busy_microseconds("ACME") == 20.0
    rates = [found.images_per_second("ACME", cores) for cores in (1, 2)]
    assert rates == pytest.approx([4 / 20e-6, 2 * 4 / 20e-6])
    assert found.images_per_second("CPU", 1) is None


def test_the_busiest_device_decides_where_all_work_at_once() -> None:
    found = cost("OTHER")
    busy = found.pipeline_microseconds
    assert busy["ACME"] == 10.0  # two cores
    assert busy["OTHER"] == 7.0 + sum(one.estimate.microseconds for one in found.transfers if one.copier == "OTHER")
    assert found.pipeline_images_per_second == pytest.approx(4 / max(busy.values()) * 1e6)


def test_a_device_that_estimates_nothing_leaves_the_network_without_a_time() -> None:
    found = cost("SILENT")
    assert found.without_time == ["SILENT"]
    assert found.latency_microseconds is found.pipeline_images_per_second is None
    assert found.busy_microseconds("ACME") == 20.0


def test_multiply_accumulates_are_told_by_device() -> None:
    found = cost("OTHER")
    assert (found.macs("ACME"), found.macs("OTHER"), found.macs()) == (10, 3, 13)


def test_devices_of_one_board_follow_the_board_that_was_named() -> None:
    config = BuilderConfig()
    assert config.platform("OTHER").name == "plain"
    config.set_platform("ACME", "board")
    assert config.platform("OTHER").name == "board"
    assert config.platform("SILENT").name == "plain"
