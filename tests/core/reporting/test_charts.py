"""Parts about time, cost, copies, memory, reasons and variants: their numbers are those of the answers."""

from __future__ import annotations

import itertools
import re
from typing import Any

import attrs
import pytest

import dryfit
from dryfit.answers.text import Table
from dryfit.estimate_text import duration
from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.figures import Part, percent
from dryfit.reporting.parts import copies, cost, matrix, memory, overlap, reasons, roofline, timeline
from dryfit.reporting.report import ReportAnswer

pytest.importorskip("vl_convert", reason="needs vl-convert: pip install 'dryfit[report]'")

MODEL = "examples/digits/digits.onnx"
SHAPE = {"image": (2, 1, 8, 8)}
OPTIONS: dict[str, Any] = {"platform": "agx-orin-64", "shape": SHAPE}


@pytest.fixture(scope="module")
def report() -> ReportAnswer:
    answer: ReportAnswer = dryfit.report(
        MODEL, platform=["agx-orin-64", "xavier-nx"], precision=["fp16", "int8"], software="8.5", shape=SHAPE
    )
    return answer


@pytest.fixture(scope="module")
def data(report: ReportAnswer) -> dict[str, Any]:
    """The answers as `--json` has them."""
    return report.to_dict()


@pytest.fixture(scope="module")
def facts(report: ReportAnswer) -> ReportFacts:
    return report.facts


def part(report: ReportAnswer, name: str) -> Part:
    return next(one for one in report.parts if one.name == name)


def table(found: Part, title: str) -> Table:
    tables = [one for one in (*found.blocks, *found.details) if isinstance(one, Table)]
    return next(one for one in tables if one.title.startswith(title))


def test_every_part_has_a_finding_and_pictures_with_descriptions(report: ReportAnswer) -> None:
    names = [one.name for one in report.parts]
    for name in ("timeline", "reasons", "copies", "memory", "matrix", "cost"):
        assert name in names
        found = part(report, name)
        assert found.finding.endswith(".")
        assert found.figures
        for figure in found.figures:
            assert figure.description
            assert figure.svg.startswith("<svg")


def test_colors_are_those_of_the_theme(report: ReportAnswer) -> None:
    for one in report.parts:
        for figure in one.figures:
            assert not re.findall(r'(?:fill|stroke)="(#[0-9a-fA-F]{3,8}|rgb[^"]*)"', figure.svg), figure.name


# Timeline -------------------------------------------------------------------------------------------------------------


def test_the_timeline_is_as_long_as_the_estimated_latency(facts: ReportFacts, data: dict[str, Any]) -> None:
    estimate = data["variants"][0]["estimate"]
    assert facts.estimate is not None
    tracks = timeline.times_by_track([one for one in facts.estimate.course.slices if one.category != "step"])
    assert sum(tracks.values()) / 1000 == pytest.approx(estimate["network"]["latency_microseconds"], abs=0.01)
    for device in estimate["devices"]:
        own = sum(one["microseconds"] for one in estimate["segments"] if one["device"] == device)
        assert tracks[device] / 1000 == pytest.approx(own, abs=0.01)
    copied = sum(one["microseconds"] for one in estimate["transfers"])
    assert tracks["copies"] / 1000 == pytest.approx(copied, abs=0.01)


def test_the_timeline_lists_segments_and_throughput_by_cores(report: ReportAnswer, data: dict[str, Any]) -> None:
    estimate = data["variants"][0]["estimate"]
    found = part(report, "timeline")
    rows = table(found, "Segments").rows
    assert [(row[0], row[1], row[2], row[5]) for row in rows] == [
        (one["id"], one["device"], one["layers"], one["text"]) for one in estimate["segments"]
    ]
    rates = table(found, "Throughput at batch 2").rows
    assert len(rates) == len(estimate["network"]["throughput"]) + 1
    assert "2 cores of DLA alone" in [row[0] for row in rates]


def test_a_time_that_no_target_estimates_is_not_drawn(facts: ReportFacts) -> None:
    silent = without_times(facts)
    found = timeline.part(silent)
    assert found is not None
    assert found.finding == "No latency is estimated: the target of DLA does not estimate time."
    assert found.figures == []
    assert {row[5] for row in table(found, "Segments").rows if row[1] == "DLA"} == {"none"}


def test_several_inferences_share_the_cores_and_keep_their_order(facts: ReportFacts) -> None:
    assert facts.estimate is not None
    pieces = [one for one in facts.estimate.course.slices if one.category != "step"]
    placed = overlap.overlapped(pieces, {"DLA": 2}, 4)
    assert len(placed) == 4 * len(pieces)
    for row in {one.row for one in placed}:
        own = sorted((one.begin, one.end) for one in placed if one.row == row)
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(own))
    for run in range(4):
        mine = [one for one in placed if one.run == run]
        assert [one.piece for one in mine] == pieces
        assert all(first.end <= second.begin for first, second in itertools.pairwise(mine))
    alone = overlap.overlapped(pieces, {"DLA": 2}, 1)
    assert max(one.end for one in alone) == max(one.end for one in pieces)
    assert max(one.end for one in placed) < 4 * max(one.end for one in pieces)


def without_times(facts: ReportFacts) -> ReportFacts:
    """Facts as if the DLA's target had no cost model."""
    known = facts.estimate
    assert known is not None
    segments = [attrs.evolve(one, estimate=None) if one.device == "DLA" else one for one in known.segments]
    estimate = attrs.evolve(
        known,
        segments=segments,
        layers=[one for one in known.layers if one.device != "DLA"],
        network=attrs.evolve(
            known.network,
            latency_microseconds=None,
            pipeline_images_per_second=None,
            energy=None,
            throughput=[attrs.evolve(one, images_per_second=None) for one in known.network.throughput],
            without_time=["DLA"],
        ),
    )
    return attrs.evolve(facts, variants=[attrs.evolve(facts.variants[0], estimate=estimate), *facts.variants[1:]])


# Copies ---------------------------------------------------------------------------------------------------------------


def test_bytes_of_copies_are_those_of_the_reformats(report: ReportAnswer, facts: ReportFacts, data: Any) -> None:
    reformats = data["variants"][0]["check"]["reformats"]
    assert reformats
    by_rule = copies.bytes_by(facts.check.reformats, lambda one: one.rule)
    for rule, size in by_rule.items():
        assert size == sum(one["bytes"] for one in reformats if one["rule"] == rule)
    assert sum(by_rule.values()) == data["variants"][0]["check"]["summary"]["reformat_bytes"]
    rows = table(part(report, "copies"), "Causes").rows
    assert sum(int(str(row[1])) for row in rows) == len(reformats)
    assert len(table(part(report, "copies"), "Copies").rows) == len(reformats)


def test_times_of_copies_are_those_of_the_transfers(report: ReportAnswer, data: Any) -> None:
    transfers = data["variants"][0]["estimate"]["transfers"]
    by_tensor = {one["tensor"]: duration(one["microseconds"]) for one in transfers}
    shown = {str(row[0]): str(row[4]) for row in table(part(report, "copies"), "Copies").rows}
    assert {name: time for name, time in shown.items() if time != "-"} == by_tensor


def test_a_model_without_copies_says_so(facts: ReportFacts) -> None:
    check = attrs.evolve(facts.check, reformats=[])
    found = copies.part(attrs.evolve(facts, variants=[attrs.evolve(facts.variants[0], check=check)]))
    assert found is not None
    assert found.finding == "No tensor is copied between types, formats or devices."
    assert not found.figures


# Memory ---------------------------------------------------------------------------------------------------------------


def test_the_memory_of_segments_is_that_of_check(report: ReportAnswer, data: Any) -> None:
    pools = {
        (one["id"], pool): size
        for one in data["variants"][0]["check"]["segments"]
        for pool, size in one["pools"].items()
    }
    assert {(one["segment"], one["pool"]): one["needed_bytes"] for one in data["memory"]["pools"]} == pools
    assert len(table(part(report, "memory"), "Memory pools").rows) == len(pools)


def test_the_finding_names_the_fullest_pool_that_is_no_cache(report: ReportAnswer, facts: ReportFacts) -> None:
    fullest = memory.fullest(facts.memory.pools)
    assert fullest is not None
    assert fullest.holds != "cache"
    assert f"{fullest.pool} of segment {fullest.segment}" in part(report, "memory").finding


# Reasons --------------------------------------------------------------------------------------------------------------


def test_rules_have_their_layers_and_the_time_of_their_steps(report: ReportAnswer, data: Any) -> None:
    causes, steps = data["explanation"]["causes"], data["variants"][0]["estimate"]["layers"]
    rows = table(part(report, "reasons"), "Rules").rows
    assert [(row[0], row[1]) for row in rows] == [(one["rule"], len(one["layers"])) for one in causes]
    for row, cause in zip(rows, causes, strict=True):
        time = sum(one["microseconds"] for one in steps if set(one["layers"]) & set(cause["layers"]))
        assert str(row[3]).startswith(duration(time))
        assert percent(cause["macs_share"], 1) in str(row[2])


def test_the_time_of_a_rule_is_unknown_if_a_segment_has_no_estimate(facts: ReportFacts) -> None:
    estimate = facts.estimate
    assert estimate is not None
    blind = attrs.evolve(estimate, segments=[attrs.evolve(one, estimate=None) for one in estimate.segments], layers=[])
    silent = attrs.evolve(facts, variants=[attrs.evolve(facts.variants[0], estimate=blind)])
    assert all(reasons.rule_time(silent, one) is None for one in facts.explanation.causes)


def test_each_edit_is_shown_before_and_after(report: ReportAnswer, data: Any) -> None:
    edits = data["explanation"]["edits"]
    assert edits
    rows = table(part(report, "reasons"), "Edits").rows
    for row, edit in zip(rows, edits, strict=True):
        before, after = edit["before"]["refused_layers"], edit["after"]["refused_layers"]
        assert row[3] == (f"{before} -> {after}" if before != after else str(before))
    assert [one.name for one in part(report, "reasons").figures] == ["rules", "edits"]


def test_edits_that_were_not_searched_for_are_not_said_to_be_useless(facts: ReportFacts) -> None:
    none = attrs.evolve(facts, explained=attrs.evolve(facts.explanation, edits=[], together=None))
    searched, skipped = reasons.part(none), reasons.part(attrs.evolve(none, are_edits_searched=False))
    assert searched is not None
    assert skipped is not None
    assert "no known edit of the model helps" in searched.finding
    assert "edit" not in skipped.finding


# Variants -------------------------------------------------------------------------------------------------------------


def test_the_matrix_has_a_row_for_each_variant(report: ReportAnswer, data: Any) -> None:
    rows = table(part(report, "matrix"), "Variants").rows
    assert len(rows) == len(data["variants"]) == 4
    for row, one in zip(rows, data["variants"], strict=True):
        assert row[1] == ("yes" if one["precision"] == "fp16" else "with INT8 scales")
        layers = one["check"]["summary"]["layers_by_device"].get("DLA", 0)
        assert str(row[2]).startswith(f"{layers} (")
        assert row[4] == one["check"]["summary"]["segments"]
        assert row[6] == one["estimate"]["network"]["latency_text"]


def test_changes_are_layers_that_differ_between_two_answers(facts: ReportFacts, data: Any) -> None:
    first, second = facts.variants[0], facts.variants[1]
    assert (first.precision, second.precision) == ("fp16", "int8")
    changed = {name for group in matrix.changes(first, second) for name in group.layers}
    before = {one["name"]: one for one in data["variants"][0]["check"]["layers"]}
    after = {one["name"]: one for one in data["variants"][1]["check"]["layers"]}
    moved = {name for name in before if any(before[name][key] != after[name][key] for key in ("device", "precision"))}
    assert moved
    assert moved <= changed
    assert not matrix.changes(first, first)


def test_a_variant_that_cannot_be_asked_about_is_shown_with_its_error() -> None:
    answer = dryfit.report(
        MODEL, platform=["orin-nx-16", "xavier-nx"], software="10.3", precision="fp16", shape=SHAPE, edits=False
    )
    found = part(answer, "matrix")
    assert [row[1] for row in table(found, "Variants").rows] == ["yes", "no"]
    assert table(found, "Variants").rows[1][6] == "-"
    text = "".join(str(block) for block in found.blocks)
    assert "no rules for this software version" in text


def test_one_variant_needs_no_matrix(facts: ReportFacts) -> None:
    assert matrix.part(attrs.evolve(facts, variants=facts.variants[:1])) is None


def test_int8_without_scales_is_assumed_to_have_them(facts: ReportFacts) -> None:
    assert [one.assumes_scales for one in facts.variants] == [False, True, False, True]
    found = matrix.part(facts)
    assert found is not None
    assert "--assume-scales" in found.basis
    int8 = facts.variants[1].check
    assert int8 is not None
    assert "INT8" in int8.summary.precisions_by_device["DLA"]


# Cost -----------------------------------------------------------------------------------------------------------------


def test_cost_lists_all_steps_with_their_times(report: ReportAnswer, data: Any) -> None:
    steps = data["variants"][0]["estimate"]["layers"]
    rows = table(part(report, "cost"), "All steps").rows
    assert [row[3] for row in rows] == [duration(one["microseconds"]) for one in steps]
    assert [row[5] for row in rows] == [f"{one['macs']:,}" for one in steps]


def test_cycles_on_padding_follow_from_the_padded_multiply_accumulates(facts: ReportFacts, data: Any) -> None:
    assert facts.estimate is not None
    steps = [one for one in data["variants"][0]["estimate"]["layers"] if one["padded_macs"]]
    lost = sum(one["mac_cycles"] * (1 - one["macs"] / one["padded_macs"]) for one in steps)
    assert steps
    share = cost.idle_share(facts.estimate.layers)
    assert share == pytest.approx(lost / sum(one["mac_cycles"] for one in steps))
    found = cost.part(facts)
    assert found is not None
    assert share is not None
    assert f"Padding of channels takes {percent(share)} of the multipliers' cycles." in found.finding


def test_roofs_are_the_rates_of_the_estimate(facts: ReportFacts) -> None:
    assert facts.estimate is not None
    dla = [one for one in facts.estimate.layers if one.device == "DLA"]
    (peak,) = roofline.peaks(dla)
    for one in dla:
        assert one.macs <= 1.001 * peak * max(one.compute_microseconds, one.microseconds)
    assert roofline.peaks([]) == []
    assert roofline.memory_rate([]) is None


def test_steps_without_an_estimate_are_named(facts: ReportFacts) -> None:
    found = cost.part(without_times(facts))
    assert found is not None
    assert "The target of DLA estimates no time of steps." in found.finding
    rows = {row[0]: row for row in table(found, "Devices").rows}
    assert rows["DLA"][2] == "none"
    assert any("Energy is not estimated" in str(block) for block in found.blocks)


def test_pictures_are_the_same_each_time_and_names_cannot_leave_them(facts: ReportFacts) -> None:
    estimate = facts.estimate
    assert estimate is not None
    named = [attrs.evolve(one, layers=["<script>&\x1b[31m" + "x" * 90]) for one in estimate.layers]
    wild = attrs.evolve(estimate, layers=named)
    changed = attrs.evolve(facts, variants=[attrs.evolve(facts.variants[0], estimate=wild)])
    first, second = cost.part(changed), cost.part(changed)
    assert first == second
    assert first is not None
    for figure in first.figures:
        assert "<script" not in figure.markup
        assert "\x1b" not in figure.markup
