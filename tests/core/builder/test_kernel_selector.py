"""A user's kernel selector is asked about each engine layer, and told what was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import dryfit


def network() -> dryfit.Network:
    made = dryfit.Network()
    x = made.add_input("x", dryfit.DataType.FLOAT, (1, 16, 12, 12))
    weights = np.random.default_rng(0).normal(0, 0.1, (16, 16, 3, 3)).astype(np.float32)
    conv = made.add_convolution_nd(x, 16, (3, 3), weights)
    conv.name = "conv"
    softmax = made.add_softmax(conv.outputs[0])
    softmax.name = "softmax"
    made.mark_output(softmax.outputs[0])
    return made


class Selector(dryfit.KernelSelector):
    """Takes the kernels that a function chooses, and keeps what it is told."""

    def __init__(self, choose: Any) -> None:
        self.choose = choose
        self.asked: dict[str, Sequence[str]] = {}
        self.reported: dict[str, str] = {}

    def select(self, layer: Any, kernels: Sequence[str]) -> Sequence[str]:
        group = layer.group
        assert layer.smallest[group.outputs[0].name] == layer.usual[group.outputs[0].name]
        self.asked[group.name] = kernels
        return self.choose(group, kernels)  # type: ignore[no-any-return]

    def report(self, choices: Any) -> None:
        assert self.reported == {}
        self.reported = {one.layer.group.name: one.kernel for one in choices}


def built(selector: Any, *flags: dryfit.BuilderFlag) -> dryfit.Engine:
    builder = dryfit.Builder()
    config = builder.create_builder_config()
    config.kernel_selector = selector
    for flag in flags:
        config.set_flag(flag)
    return builder.build_engine(network(), config)


def test_each_engine_layer_gets_a_kernel_that_was_selected() -> None:
    everything = Selector(lambda group, kernels: kernels)
    built(everything)
    assert list(everything.asked) == ["conv", "softmax"]
    assert len(everything.asked["conv"]) > 1
    for name in everything.asked["conv"]:
        one = Selector(lambda group, kernels, name=name: [name] if group.name == "conv" else kernels)
        engine = built(one)
        assert one.reported["conv"] == name
        assert {operation.name: operation.kernel for operation in engine.plan.operations} == one.reported


def test_no_selection_leaves_the_choice_to_the_builder_unless_a_flag_forbids_it() -> None:
    nothing = Selector(lambda group, kernels: [])
    built(nothing)
    assert set(nothing.reported) == {"conv", "softmax"}
    with pytest.raises(dryfit.BuildError, match=r"layer 'conv': .*some of the kernels.*REJECT_EMPTY_ALGORITHMS"):
        built(nothing, dryfit.BuilderFlag.REJECT_EMPTY_ALGORITHMS)


def test_what_a_selector_must_not_do_is_an_error() -> None:
    with pytest.raises(dryfit.BuildError, match=r"found acme\.unknown; allowed: cpu"):
        built(Selector(lambda group, kernels: ["acme.unknown"]))

    def fail(group: Any, kernels: Any) -> Any:
        raise RuntimeError("no idea")

    with pytest.raises(dryfit.BuildError, match=r"layer 'conv': The kernel selector failed: no idea.*method `select`"):
        built(Selector(fail))


def test_a_failing_report_is_an_error() -> None:
    class Failing(dryfit.KernelSelector):
        def report(self, choices: Any) -> None:
            raise RuntimeError("no room")

    with pytest.raises(dryfit.BuildError, match=r"failed: no room.*method `report`"):
        built(Failing())
