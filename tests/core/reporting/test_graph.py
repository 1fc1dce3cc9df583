"""The part of a report that shows the network as a graph."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import dryfit
from dryfit.answers.text import bytes_text
from dryfit.reporting.figures import Part
from dryfit.reporting.folding import Group
from dryfit.reporting.graph_layout import Box, Edge, GraphLayout, Level

pytest.importorskip("vl_convert", reason="needs vl-convert: pip install 'dryfit[report]'")
pytest.importorskip("graphlay", reason="needs graphlay: pip install 'dryfit[report]'")


@pytest.fixture(scope="module")
def answer() -> Any:
    return dryfit.report(
        "examples/digits/digits.onnx", platform="agx-orin-64", shape={"image": (2, 1, 8, 8)}, edits=False
    )


@pytest.fixture(scope="module")
def part(answer: Any) -> Part:
    return next(one for one in answer.parts if one.name == "graph")


def test_the_finding_has_the_numbers_of_check(answer: Any, part: Part) -> None:
    summary = answer.facts.check.summary
    assert part.finding.startswith(f"{summary.layers} layers (")
    for device, count in summary.layers_by_device.items():
        assert f"{count} on {device}" in part.finding
    copies = f"{summary.reformats} copies of {bytes_text(summary.reformat_bytes)}"
    assert f"in {summary.segments} segments, with {copies}" in part.finding


def test_each_layer_has_a_node_and_a_row_with_its_number(answer: Any, part: Part) -> None:
    svg = part.figures[0].svg
    links = [int(one) for one in re.findall(r'href="#layer-(\d+)"', svg)]
    assert sorted(links) == list(range(len(answer.facts.check.layers)))
    (table,) = part.details
    assert [row[0] for row in table.rows] == [layer.name for layer in answer.facts.check.layers]
    assert list(table.anchors) == [f"layer-{number}" for number in range(len(links))]


def test_segments_are_framed_and_copies_have_their_sizes(answer: Any, part: Part) -> None:
    svg, check = part.figures[0].svg, answer.facts.check
    for segment in check.segments:
        assert f"segment {segment.index}, {segment.device}<" in svg
    labels = re.findall(r"\u21c4 ([^<]*)<", svg)
    assert sorted(labels) == sorted(bytes_text(one.size) for one in check.reformats)
    assert "#" not in re.sub(r'href="#layer-\d+"', "", svg)  # colors are those of the page


def test_the_same_report_has_the_same_graph(answer: Any, part: Part) -> None:
    from dryfit.reporting.parts import graph

    assert graph.part(answer.facts) == part


def test_edges_of_check_connect_its_layers(answer: Any) -> None:
    check = answer.facts.check
    names = {layer.name for layer in check.layers}
    assert {edge.source for edge in check.edges} <= {None, *names}
    assert {edge.destination for edge in check.edges} <= {None, *names}
    assert [edge.tensor for edge in check.edges if edge.source is None] == ["image"]
    assert check.edges[0].shape == (2, 1, 8, 8)
    assert "edges" not in check.to_dict()


def nested(level: Level) -> Iterator[Level]:
    yield level
    for inside in level.insides.values():
        yield from nested(inside)


def overlap(one: Box, other: Box) -> bool:
    across = one.x < other.x + other.width and other.x < one.x + one.width
    return across and one.y < other.y + other.height and other.y < one.y + one.height


def test_nodes_lie_in_the_frames_of_their_segments_and_apart_from_each_other() -> None:
    edges = [Edge(f"t{layer}", layer - 1 if layer else None, layer) for layer in range(8)]
    edges += [Edge("around", 0, 7), Edge("end", 7, None)]
    items = [0, 1, Group(2, 6, [Group(2, 4, [2, 3], False), Group(4, 6, [4, 5], False)], True), 6, 7]
    level = GraphLayout(edges, [0, 0, 1, 1, 1, 1, 0, 0]).level(items)
    assert sum(1 for _ in nested(level)) == 4
    for one in nested(level):
        boxes = one.boxes
        assert not any(overlap(a, b) for index, a in enumerate(boxes) for b in boxes[:index])
        assert all(box.x >= 0 and box.x + box.width <= one.width for box in boxes)
    frame = level.frames[0]
    inside = [overlap(frame, box) for box in level.boxes]
    assert inside[:2] == [True, True]
    assert set(level.frames) == {0, 1}
