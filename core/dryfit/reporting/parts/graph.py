"""The network as a graph: layers in the color of their device, segments framed, copies on the edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape

from dryfit.answers.placement import LayerAnswer
from dryfit.answers.text import Table, bytes_text, cell_text, type_text
from dryfit.engine.plan import Reformat
from dryfit.reporting.facts import ReportFacts
from dryfit.reporting.figures import Figure, Part, device_color
from dryfit.reporting.folding import Group, Item, folded, interval, writers_first
from dryfit.reporting.graph_layout import MARGIN, Box, Edge, End, GraphLayout, Level, Line
from dryfit.short_text import count_text, printable, short_name

UNPLACED = "unplaced"
LEAST_HEIGHT = 10
"""Pixels of height below which a node is a point, which needs no arrow."""
LEGEND = 30
"""Pixels above the graph for the names of the devices."""


def part(facts: ReportFacts) -> Part | None:
    """The part about the graph; None if all of the network is constant."""
    if not facts.check.layers:
        return None
    graph = _Graph(facts)
    summary = facts.check.summary
    where = ", ".join(
        f"{count} {'' if device == UNPLACED else 'on '}{device}" for device, count in graph.counted(graph.layers)
    )
    is_folded = any(isinstance(one, Group) for one in graph.items)
    return Part(
        name="graph",
        title="The network",
        finding=f"{count_text(summary.layers, 'layer')} ({where}) in {count_text(summary.segments, 'segment')}, with "
        f"{_copies_text(facts.check.reformats)}."
        + (
            f" Repeated layers are folded, so that the graph begins with {len(graph.items)} nodes." if is_folded else ""
        ),
        figures=[graph.figure()],
        details=[graph.table()],
    )


def _copies_text(copies: Sequence[Reformat]) -> str:
    if not copies:
        return "no copies"
    number = "1 copy" if len(copies) == 1 else f"{len(copies)} copies"
    return f"{number} of {bytes_text(sum(one.size for one in copies))}"


class _Graph:
    """The graph of a report: layers in an order in which writers come before readers, folded, and laid out."""

    def __init__(self, facts: ReportFacts) -> None:
        found = facts.check
        self._devices = facts.devices
        self._copies = found.reformats
        self._labeled: set[int] = set()
        self._segments = {segment.index: segment for segment in found.segments}
        self._shapes = {edge.tensor: edge.shape for edge in found.edges}
        self._listed = found.layers
        numbers = {layer.name: index for index, layer in enumerate(found.layers)}
        sources: dict[int, list[int]] = {}
        for one in found.edges:
            if one.source in numbers and one.destination in numbers:
                sources.setdefault(numbers[one.destination], []).append(numbers[one.source])
        self._order = writers_first(len(found.layers), sources)
        self.layers = [found.layers[number] for number in self._order]
        places: dict[str | None, int] = {layer.name: index for index, layer in enumerate(self.layers)}
        self.edges = [
            Edge(
                one.tensor,
                places.get(one.source),
                places.get(one.destination),
                list(self._copies_on(one.tensor, places.get(one.destination))),
            )
            for one in found.edges
        ]
        inside: dict[int, list[int]] = {}
        for edge in self.edges:
            if edge.source is not None and edge.destination is not None:
                inside.setdefault(edge.destination, []).append(edge.source)
        self.items = folded([(one.kind, one.device, one.precision) for one in self.layers], inside)

    def _copies_on(self, tensor: str, place: int | None) -> Iterator[int]:
        """Copies of a tensor that a layer reads, or None for an output of the network: those to its device."""
        reader = None if place is None else self.layers[place]
        for index, one in enumerate(self._copies):
            is_output = one.rule == "reformat.network_output"
            to_reader = reader is not None and one.destination.partition(" ")[0] == reader.device
            if one.tensor == tensor and (is_output if reader is None else to_reader and not is_output):
                yield index

    def counted(self, layers: Sequence[LayerAnswer]) -> list[tuple[str, int]]:
        """Number of layers by device, in the order of the report's devices."""
        counts = Counter(layer.device or UNPLACED for layer in layers)
        return [(device, counts[device]) for device in (*self._devices, UNPLACED) if device in counts]

    def table(self) -> Table:
        """The table to which the nodes lead."""
        rows = []
        for layer in self._listed:
            violated = dict.fromkeys(one.rule for found in layer.verdicts.values() for one in found.violations)
            rows.append(
                (
                    layer.name,
                    layer.kind,
                    layer.onnx_nodes,
                    layer.device or UNPLACED,
                    layer.segment,
                    type_text(layer.precision),
                    layer.cause,
                    list(violated),
                )
            )
        columns = ["layer", "kind", "ONNX nodes", "device", "segment", "precision", "cause", "violated rules"]
        return Table("Layers", columns, rows, [f"layer-{index}" for index in range(len(rows))])

    # Drawing ----------------------------------------------------------------------------------------------------------

    def figure(self) -> Figure:
        """The picture."""
        segments = [layer.segment for layer in self.layers]
        level = GraphLayout(self.edges, segments).level(self.items)
        devices = self.counted(self.layers)
        width, height = max(level.width, 100 * len(devices) + MARGIN), level.height + LEGEND
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" viewBox="0 0 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}" font-family="system-ui, sans-serif" font-size="11" '
            f'fill="var(--text)">{self._legend([device for device, _ in devices])}'
            f"{self._level(level, f'translate(0,{LEGEND})')}</svg>"
        )
        said = ", ".join(f"{count} of {len(self.layers)} layers: {device}" for device, count in devices)
        return Figure(
            name="network",
            title="Layers in the color of their device, segments framed, copies on the edges",
            description=f"{said}. The table of layers in the details has all of them.",
            svg=svg,
            is_map=True,
        )

    def _color(self, device: str | None) -> str:
        return device_color(None if device == UNPLACED else device, self._devices)

    def _legend(self, devices: Sequence[str]) -> str:
        return (
            '<g class="legend">'
            + "".join(
                f'<rect x="{MARGIN + 100 * place}" y="9" width="12" height="12" rx="2" fill="{self._color(device)}"/>'
                f'<text x="{MARGIN + 18 + 100 * place}" y="19">{_text(device)}</text>'
                for place, device in enumerate(devices)
            )
            + "</g>"
        )

    def _level(self, level: Level, place: str = "", *, is_hidden: bool = False) -> str:
        attributes = ' display="none"' if is_hidden else f' transform="{place}"'
        frames = "".join(self._frame(segment, box) for segment, box in level.frames.items())
        lines = "".join(self._line(level, line) for line in level.lines)
        nodes = "".join(
            self._node(level, index, node, box)
            for index, (node, box) in enumerate(zip(level.nodes, level.boxes, strict=True))
        )
        return (
            f'<g class="level" data-size="{level.width:g} {level.height:g}"{attributes}>'
            f'<g class="frames">{frames}</g><g class="lines">{lines}</g><g class="nodes">{nodes}</g></g>'
        )

    def _frame(self, index: int, box: Box) -> str:
        segment = self._segments.get(index)
        device = segment.device if segment else None
        color = self._color(device)
        return (
            f'<g class="frame" {_place(box)}>{_rectangle(box, "none", color, 6, dash="5 3")}'
            f'<text x="8" y="13" fill="{color}">segment {index}, {_text(device or UNPLACED)}</text></g>'
        )

    def _line(self, level: Level, line: Line) -> str:
        copies = [self._copies[index] for index in line.copies]
        color = "var(--warning)" if copies else "var(--muted)"
        path = "M" + "L".join(f"{x:g} {y:g}" for x, y in line.points)
        end = level.boxes[line.destination]
        x, y = line.points[-1]
        arrow = "" if end.height < LEAST_HEIGHT else f'<path class="arrow" d="M{x:g} {y:g}l-3.5 -6h7z" fill="{color}"/>'
        label = said = ""
        if copies and line.label is not None:
            label = self._label(line, *line.label, color)
            said = "".join(f"; copy {one.source} to {one.destination}, {bytes_text(one.size)}" for one in copies)
        tensors = ", ".join(f"{tensor} {cell_text(tuple(self._shapes[tensor]))}" for tensor in line.tensors)
        return (
            f'<g class="line" data-ends="{line.source} {line.destination}"><title>{_text(tensors + said)}</title>'
            f'<path class="way" d="{path}" fill="none" stroke="{color}" stroke-width="{2 if copies else 1}"/>'
            f"{arrow}{label}</g>"
        )

    def _label(self, line: Line, x: float, y: float, color: str) -> str:
        """The size of the copies; one that several layers read is labeled once."""
        new = [index for index in line.copies if index not in self._labeled]
        self._labeled.update(new)
        if not new:
            return ""
        size = bytes_text(sum(self._copies[index].size for index in new))
        text = size if len(new) == 1 else f"{len(new)}: {size}"
        return (
            f'<text class="copies" x="{x:g}" y="{y + 4:g}" text-anchor="middle" font-size="10" '
            f'fill="{color}" stroke="var(--background)" stroke-width="8" stroke-linejoin="round" paint-order="stroke">'
            f"\u21c4 {text}</text>"
        )

    def _node(self, level: Level, index: int, node: Item | End, box: Box) -> str:
        if isinstance(node, End):
            return self._end(node, box)
        if isinstance(node, Group):
            return self._group(node, level.insides[index], box)
        layer, number = self.layers[node], self._order[node]
        color, device = self._color(layer.device), layer.device or UNPLACED
        thickness = 2 if any(found.violations for found in layer.verdicts.values()) else 1
        return (
            f'<a class="node layer" href="#layer-{number}" data-layer="{number}" {_place(box)}>'
            f"<title>{_text(layer.name)}</title>{_rectangle(box, color, color, 4, thickness=thickness, opacity=0.16)}"
            f'<rect width="5" height="{box.height:g}" rx="2" fill="{color}"/>'
            f'<text x="11" y="15" font-weight="600">{_text(_cut(layer.kind, 16))}</text>'
            f'<text x="{box.width - 6:g}" y="15" text-anchor="end" font-size="9.5">{_text(_cut(device, 9))}</text>'
            f'<text x="11" y="30">{_text(short_name(layer.name, 23))}</text></a>'
        )

    def _end(self, node: End, box: Box) -> str:
        if box.height < LEAST_HEIGHT:
            other = "the border of the network" if node.layer is None else self.layers[node.layer].name
            said = f"{node.tensor}, {'from' if node.is_input else 'to'} {other}"
            circle = '<circle cx="4" cy="4" r="4" fill="var(--muted)"/>'
            return f'<g class="node end" {_place(box)}><title>{_text(said)}</title>{circle}</g>'
        said = f"{'input' if node.is_input else 'output'} {node.tensor}"
        return (
            f'<g class="node end" {_place(box)}><title>{_text(said)}</title>'
            f"{_rectangle(box, 'var(--surface)', 'var(--line)', 13)}"
            f'<text x="{box.width / 2:g}" y="17" text-anchor="middle">{_text(short_name(said, 24))}</text></g>'
        )

    def _group(self, group: Group, inside: Level, box: Box) -> str:
        layers = self.layers[slice(*interval(group))]
        parts = self.counted(layers)
        color = self._color(parts[0][0])
        first = group.children[0]
        size = first.stop - first.start if isinstance(first, Group) else 1
        title = count_text(size if group.is_repeat else len(layers), "layer")
        title = f"{len(group.children)} \u00d7 {title}" if group.is_repeat else title
        where = ", ".join(f"{count} {device}" for device, count in parts)
        short = _cut(where, 32 - len(title))
        kinds = ", ".join(kind for kind, _ in Counter(layer.kind for layer in layers).most_common())
        said = _cut(kinds, 30) if group.is_repeat else short_name(f"from {layers[0].name}", 30)
        shadow = f'<rect x="4" y="4" width="{box.width:g}" height="{box.height:g}" rx="4" fill="var(--line)"/>'
        return (
            f'<g class="node group" {_place(box)}><g class="fold">'
            f"<title>{_text(f'{title}, {layers[0].name} to {layers[-1].name}: {kinds}; {where}')}</title>"
            f"{shadow}{_rectangle(box, 'var(--surface)', color, 4, kind='card')}{self._strip(parts, box)}"
            f'<text x="10" y="17" font-weight="600">{_text(title)}</text>'
            f'<text x="{box.width - 8:g}" y="17" text-anchor="end" font-size="9.5">{_text(short)}</text>'
            f'<text x="10" y="34">{_text(said)}</text></g>{self._level(inside, is_hidden=True)}</g>'
        )

    def _strip(self, parts: Sequence[tuple[str, int]], box: Box) -> str:
        """The shares of the devices as a bar at the bottom of a group."""
        total, start, bars = sum(count for _, count in parts), 0.0, []
        for device, count in parts:
            width = box.width * count / total
            place = f'x="{start:.1f}" y="{box.height - 6:g}" width="{width:.1f}" height="6"'
            bars.append(f'<rect {place} fill="{self._color(device)}"/>')
            start += width
        return "".join(bars)


def _place(box: Box) -> str:
    numbers = f"{box.x:g} {box.y:g} {box.width:g} {box.height:g}"
    return f'data-box="{numbers}" transform="translate({box.x:g},{box.y:g})"'


def _rectangle(
    box: Box,
    fill: str,
    stroke: str,
    radius: int,
    *,
    kind: str = "",
    thickness: int = 1,
    opacity: float = 1.0,
    dash: str = "",
) -> str:
    given = {
        "class": kind,
        "width": f"{box.width:g}",
        "height": f"{box.height:g}",
        "rx": radius,
        "fill": fill,
        "fill-opacity": "" if opacity == 1 else opacity,
        "stroke": stroke,
        "stroke-width": "" if thickness == 1 else thickness,
        "stroke-dasharray": dash,
    }
    attributes = " ".join(f'{name}="{value}"' for name, value in given.items() if value != "")
    return f"<rect {attributes}/>"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "\u2026"


def _text(text: str) -> str:
    return escape(printable(text, kept=""))
