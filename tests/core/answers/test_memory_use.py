"""The memory of a network's segments: equal to what `check` reports, within the limits, and live as laid out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dryfit.answers.check import check
from dryfit.answers.estimate import estimate
from dryfit.answers.memory_use import CALLER, memory_use

OPTIONS: dict[str, Any] = {"platform": "orin-nx-16", "precision": "fp16", "shape": {"image": (1, 1, 8, 8)}}


def test_needs_of_pools_are_those_of_the_segments_that_check_reports(digits_model: Path) -> None:
    found = memory_use(digits_model, **OPTIONS)
    told = {
        (one.index, pool): size for one in check(digits_model, **OPTIONS).segments for pool, size in one.pools.items()
    }
    assert {(one.segment, one.pool): one.needed_bytes for one in found.pools} == told
    assert told
    limits = {one.pool: one.limit_bytes for one in found.pools}
    assert limits["DLA_LOCAL_DRAM"] == 1 << 30


def test_live_tensors_of_a_pool_peak_at_most_at_what_the_segments_need(digits_model: Path) -> None:
    found = memory_use(digits_model, **OPTIONS)
    need = max(one.needed_bytes for one in found.pools if one.holds == "activations")
    (local,) = [one for one in found.live if one.pool == "DLA_LOCAL_DRAM"]
    assert 0 < local.peak_bytes <= need
    assert all(len(one.live_bytes) == len(found.steps) for one in found.live)
    (caller,) = [one for one in found.live if one.pool == CALLER]
    assert caller.live_bytes[0] >= 8 * 8 * 4  # the input, in FP32


def test_a_network_with_unplaced_layers_has_no_live_tensors(digits_model: Path) -> None:
    found = memory_use(digits_model, **OPTIONS, fallback="none")
    assert not found.steps
    assert not found.live


def test_the_padding_of_channels_is_in_the_estimate(digits_model: Path) -> None:
    steps = [one for one in estimate(digits_model, **OPTIONS).layers if one.device == "DLA" and one.macs]
    assert steps
    for one in steps:
        assert one.padded_macs is not None
        assert one.padded_macs >= one.macs
    assert {one.padded_macs for one in estimate(digits_model, **OPTIONS).layers if one.device == "GPU"} == {None}
