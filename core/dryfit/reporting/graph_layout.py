"""Positions of a folded graph: each level, the whole network or the inside of a group, is laid out by itself.

Equal blocks are laid out once, so that a network of 2,000 layers takes as long as its different blocks.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError
from dryfit.reporting.folding import Group, Item, interval

LAYER, GROUP, BORDER, POINT = (156, 38), (196, 50), (156, 26), (8, 8)
"""Sizes of nodes in pixels: of layers, of groups, of the network's inputs and outputs, and of tensors that enter or
leave a group."""
COPY = (62, 14)
"""Size of the label of copies on an edge."""
MARGIN = 12
OPTIONS = {
    "direction": "topbottom",
    "spacing": {
        "layer_gap": 22.0,
        "node_gap": 18.0,
        "dummy_gap": 14.0,
        "port_gap": 12.0,
        "stub": 8.0,
        "isolated_gap": 18.0,
        "edge_label_margin": 6.0,
        "compound_padding": 10.0,
        "compound_header": 18.0,
    },
}


@frozen
class Edge:
    """A tensor between two layers.

    Attributes:
        tensor: name of the tensor.
        source, destination: indices of the layers; None for the network's input or output.
        copies: indices of the copies of the tensor on this edge.
    """

    tensor: str
    source: int | None
    destination: int | None
    copies: Sequence[int] = ()


@frozen
class End:
    """A tensor that enters or leaves a level.

    Attributes:
        tensor: name of the tensor.
        is_input: whether it enters.
        layer: the layer outside that writes it, or one that reads it; None for the network's input or output.
    """

    tensor: str
    is_input: bool
    layer: int | None


@frozen
class Box:
    """A rectangle: its left upper corner and size, in pixels."""

    x: float
    y: float
    width: float
    height: float


@frozen
class Line:
    """An edge between two nodes of a level.

    Attributes:
        source, destination: indices of the nodes.
        points: corners of the line.
        tensors: names of the tensors.
        copies: indices of the copies.
        label: center of the label of the copies; None without copies.
    """

    source: int
    destination: int
    points: Sequence[tuple[float, float]]
    tensors: Sequence[str]
    copies: Sequence[int]
    label: tuple[float, float] | None


@frozen
class Level:
    """A laid out level.

    Attributes:
        nodes: the nodes: layers and groups, then tensors that enter or leave.
        boxes: their places.
        frames: place of each segment that does not fill the level.
        lines: the edges.
        insides: the level inside each group, by the group's index among the nodes.
        width, height: size in pixels.
    """

    nodes: Sequence[Item | End]
    boxes: Sequence[Box]
    frames: Mapping[int, Box]
    lines: Sequence[Line]
    insides: Mapping[int, Level]
    width: float
    height: float


class GraphLayout:
    """Lays out the levels of one graph."""

    def __init__(self, edges: Sequence[Edge], segments: Sequence[int | None]) -> None:
        """Prepare the layout.

        Args:
            edges: all edges of the graph.
            segments: segment of each layer.
        """
        self._segments = segments
        self._borders = [edge for edge in edges if edge.source is None and edge.destination is None]
        self._edges: dict[int, list[Edge]] = {}
        for edge in edges:
            for layer in dict.fromkeys((edge.source, edge.destination)):
                if layer is not None:
                    self._edges.setdefault(layer, []).append(edge)
        self._known: dict[str, Any] = {}

    def level(self, items: Sequence[Item], *, is_whole: bool = True) -> Level:
        """Lay out a level and all that is inside its groups.

        Args:
            items: layers and groups of the level.
            is_whole: whether this is the whole network.

        Raises:
            ConfigError: graphlay is not installed.
        """
        nodes: list[Item | End] = list(items)
        place = {layer: index for index, item in enumerate(items) for layer in range(*interval(item))}
        ends: dict[Hashable, int] = {}

        def end(edge: Edge, layer: int | None, *, is_input: bool) -> int:
            if (edge.tensor, is_input) not in ends:
                ends[edge.tensor, is_input] = len(nodes)
                nodes.append(End(edge.tensor, is_input, layer))
            return ends[edge.tensor, is_input]

        joined: dict[tuple[int, int], list[Edge]] = {}
        own = dict.fromkeys(id(edge) for layer in place for edge in self._edges.get(layer, ()))
        by_id = {id(edge): edge for layer in place for edge in self._edges.get(layer, ())}
        for edge in (by_id[one] for one in own):
            source = None if edge.source is None else place.get(edge.source)
            destination = None if edge.destination is None else place.get(edge.destination)
            start = end(edge, edge.source, is_input=True) if source is None else source
            stop = end(edge, edge.destination, is_input=False) if destination is None else destination
            if start != stop:
                joined.setdefault((start, stop), []).append(edge)
        frames = self._frames(nodes)
        drawn = self._drawn(nodes, joined, frames, is_whole=is_whole)
        insides = {
            index: self.level(item.children, is_whole=False)
            for index, item in enumerate(nodes)
            if isinstance(item, Group)
        }
        return _level(nodes, joined, list(frames), insides, drawn)

    def _frames(self, nodes: Sequence[Item | End]) -> dict[int, list[int]]:
        """Nodes of each segment, unless one segment has all of them."""
        frames: dict[int, list[int]] = {}
        outside = 0
        for index, node in enumerate(nodes):
            if isinstance(node, End):
                continue
            found = {self._segments[layer] for layer in range(*interval(node))}
            segment = found.pop() if len(found) == 1 else None
            if segment is None:
                outside += 1
            else:
                frames.setdefault(segment, []).append(index)
        return frames if outside or len(frames) > 1 else {}

    def _drawn(
        self,
        nodes: Sequence[Item | End],
        joined: Mapping[tuple[int, int], Sequence[Edge]],
        frames: Mapping[int, Sequence[int]],
        *,
        is_whole: bool,
    ) -> Any:
        parents = {node: parent for parent, members in enumerate(frames.values()) for node in members}
        request_nodes: list[dict[str, Any]] = [{"width": 1.0, "height": 1.0} for _ in frames]
        for index, node in enumerate(nodes):
            width, height = _size(node, is_whole=is_whole)
            parent = {"parent": parents[index]} if index in parents else {}
            request_nodes.append({"width": width, "height": height, **parent})
        request_edges = [
            {
                "source": source + len(frames),
                "target": destination + len(frames),
                "copies": any(e.copies for e in edges),
            }
            for (source, destination), edges in joined.items()
        ]
        key = json.dumps([request_nodes, request_edges])
        if key not in self._known:
            self._known[key] = _graphlay(request_nodes, request_edges)
        return self._known[key]


def _size(node: Item | End, *, is_whole: bool) -> tuple[float, float]:
    if isinstance(node, End):
        return BORDER if is_whole else POINT
    return GROUP if isinstance(node, Group) else LAYER


def _graphlay(nodes: Sequence[Mapping[str, Any]], edges: Sequence[Mapping[str, Any]]) -> Any:
    try:
        import graphlay
    except ImportError as error:
        raise ConfigError(
            "Reports need graphlay, which lays out graphs",
            found=str(error),
            remedy="Run: pip install 'dryfit[report]'",
        ) from error
    graph = graphlay.Graph()
    for index, node in enumerate(nodes):
        graph.node(index, **node)
    for edge in edges:
        label: dict[str, Any] = {"label_size": {"width": COPY[0], "height": COPY[1]}} if edge["copies"] else {}
        graph.edge(edge["source"], edge["target"], **label)
    return graphlay.layout(graph, options=OPTIONS)


def _level(
    nodes: Sequence[Item | End],
    joined: Mapping[tuple[int, int], Sequence[Edge]],
    segments: Sequence[int],
    insides: Mapping[int, Level],
    drawn: Any,
) -> Level:
    corner = drawn.bounds["min"]
    left, top = corner["x"] - MARGIN, corner["y"] - MARGIN

    def boxes(found: Sequence[Any]) -> Iterator[Box]:
        for one in found:
            center, size = one["center"], one["size"]
            yield Box(
                round(center["x"] - size["width"] / 2 - left, 1),
                round(center["y"] - size["height"] / 2 - top, 1),
                round(size["width"], 1),
                round(size["height"], 1),
            )

    def line(source: int, destination: int, edges: Sequence[Edge], one: Any) -> Line:
        points = [(round(point["x"] - left, 1), round(point["y"] - top, 1)) for point in one["points"]]
        copies = list(dict.fromkeys(copy for edge in edges for copy in edge.copies))
        anchor = one["label_anchor"]
        middle = points[len(points) // 2 - 1], points[len(points) // 2]
        label = tuple(sum(ends) / 2 for ends in zip(*middle, strict=True))
        if anchor is not None:
            label = (anchor["x"] - left, anchor["y"] - top)
        tensors = list(dict.fromkeys(edge.tensor for edge in edges))
        place = (round(label[0], 1), round(label[1], 1)) if copies else None
        return Line(source, destination, points, tensors, copies, place)

    return Level(
        nodes=nodes,
        boxes=list(boxes(drawn.nodes[len(segments) :])),
        frames=dict(zip(segments, boxes(drawn.nodes[: len(segments)]), strict=True)),
        lines=[line(*ends, edges, one) for (ends, edges), one in zip(joined.items(), drawn.edges, strict=True)],
        insides=insides,
        width=round(drawn.bounds["max"]["x"] - left + MARGIN, 1),
        height=round(drawn.bounds["max"]["y"] - top + MARGIN, 1),
    )
