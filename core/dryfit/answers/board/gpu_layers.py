"""Engine layers on the GPU: which layers of the model a board made each of, in what precision, and how long they take.

A builder joins layers as its kernels permit, and dryfit's estimate joins them into steps. Both are compared by the ONNX
nodes behind them: engine layers and steps that share a node are one part, whose time and estimate are sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from dryfit.answers.log_comparison import GPU, layers_by_node
from dryfit.answers.network_cost import SegmentCost
from dryfit.answers.placement import LayerAnswer
from dryfit.attrs_classes import frozen
from dryfit.board.logs.layer_lists import parts_of
from dryfit.board.results import InspectedLayer, MeasuredLayer
from dryfit.builder.decisions import segment_question
from dryfit.builder.design import Design
from dryfit.network.data_types import DataType


@frozen
class GpuPrecision:
    """The computation type of an engine layer on the GPU.

    Attributes:
        name: name of the engine layer.
        board: its type on the board, such as `FP16`.
        dryfit: the type that dryfit expects of its layers.
    """

    name: str
    board: str
    dryfit: str


@frozen(eq=False)
class GpuPart:
    """Engine layers of the GPU that run the same layers of the model as some steps of an estimate.

    Attributes:
        name: names of the engine layers.
        microseconds: their measured time.
        segment: the segment of the steps.
        steps: indices of the steps in the segment's estimate.
    """

    name: str
    microseconds: float
    segment: SegmentCost
    steps: frozenset[int]

    @property
    def layers(self) -> list[str]:
        """Names of the layers of the steps."""
        return [name for index in sorted(self.steps) for name in _steps(self.segment)[index].layers]


class GpuLayers:
    """Finds the layers of the model in engine layers.

    Args:
        placed: placement of the layers of the model.
        inspected: engine layers with their ONNX nodes; empty if the results have none.
    """

    def __init__(self, placed: Sequence[LayerAnswer], inspected: Sequence[InspectedLayer]) -> None:
        self._placed = {one.name: one for one in placed}
        self._of_node: dict[str, list[str]] = {}
        for node, layers in layers_by_node(placed).items():
            for layer in layers:
                self._of_node.setdefault(node, []).append(layer.name)
                if layer.name != node:  # as an engine of dryfit names it
                    self._of_node.setdefault(layer.name, []).append(layer.name)
        self._inspected = inspected
        self._nodes = {one.name: one.nodes for one in inspected}

    def precisions(self) -> Iterator[GpuPrecision]:
        """Yield the types of engine layers that run on the GPU on the board and in dryfit."""
        for one in self._inspected:
            kind = one.computation_type
            if not kind or is_segment(one.name) or is_copy(one):
                continue
            layers = [self._placed[name] for name in self._layers(one.name)]
            if not layers or any(layer.device != GPU for layer in layers):
                continue
            # Weights decide the type of what was joined; without them, a layer that differs shows nothing.
            weighted = [layer for layer in layers if layer.kind in _WEIGHTED] or layers
            expected = {DataType[layer.precision].text for layer in weighted}
            if len(expected) == 1:
                yield GpuPrecision(one.name, kind, expected.pop())

    def parts(self, profile: Iterable[MeasuredLayer], segments: Iterable[SegmentCost]) -> Iterator[GpuPart]:
        """Yield the parts of segments on the GPU whose engine layers were measured."""
        of_layer = {
            name: (segment, index)
            for segment in segments
            if segment.device == GPU
            for index, step in enumerate(_steps(segment))
            for name in step.layers
        }
        groups: list[tuple[list[MeasuredLayer], set[tuple[int, int]]]] = []
        whole = {one.index: one for one, _ in of_layer.values()}
        for measured in profile:
            if is_segment(measured.name) or measured.name.startswith("Reformatting CopyNode"):
                continue
            names = self._layers(measured.name)
            if not names or any(name not in of_layer for name in names):
                continue
            layers, steps = [measured], {(of_layer[name][0].index, of_layer[name][1]) for name in names}
            apart = [group for group in groups if not group[1] & steps]
            for others, shared in (group for group in groups if group[1] & steps):
                layers, steps = others + layers, steps | shared
            groups = [*apart, (layers, steps)]
        for layers, steps in groups:
            indices = {index for index, _ in steps}
            found = {name for one in layers for name in self._layers(one.name)}
            if len(indices) != 1:
                continue
            part = GpuPart(
                " and ".join(one.name for one in layers),
                sum(one.microseconds for one in layers),
                whole[indices.pop()],
                frozenset(step for _, step in steps),
            )
            # A layer without a time of its own was removed, or is in an engine layer whose name does not show it.
            if set(part.layers) <= found:
                yield part

    def _layers(self, name: str) -> list[str]:
        """The layers of the model in an engine layer; empty if one of its parts is unknown."""
        parts = self._nodes.get(name) or [one for one in parts_of(name) if not one.startswith(_ADDED)]
        if any(one not in self._of_node for one in parts):
            return []
        return list(dict.fromkeys(layer for one in parts for layer in self._of_node[one]))


_WEIGHTED = ("convolution", "deconvolution", "fully_connected", "matrix_multiply")
_ADDED = ("(Unnamed Layer", "Reformatting ", "copied_")
"""Beginnings of names of parts that the builder adds."""


def _steps(segment: SegmentCost) -> Sequence[Any]:
    return () if segment.estimate is None else segment.estimate.steps


def is_segment(name: str) -> bool:
    """Whether an engine layer is a segment on the DLA."""
    return "ForeignNode" in name


def is_copy(one: InspectedLayer) -> bool:
    """Whether an engine layer copies a tensor into another form."""
    return one.type == "Reformat" or one.name.startswith("Reformatting CopyNode")


class StepTimes:
    """Estimated times of the steps of a segment, for any parameters of the cost model.

    Args:
        design: decisions about the network.
        segment: the segment.
    """

    def __init__(self, design: Design, segment: SegmentCost) -> None:
        variant, members = design.variants[segment.device], set(segment.layers)
        layers = [layer for layer in design.network.layers if layer.name in members]
        self._question = segment_question(variant, layers, design.specs, design.precisions, design.sparse_layers)
        self._function = variant.target.estimate_cost
        self._last: tuple[Any, Mapping[int, float], float] = (None, {}, 0.0)

    def whole(self, parameters: Any) -> float:
        """Return the time of the segment in us; 0 without an estimate."""
        return self._estimated(parameters)[1]

    def of(self, steps: Iterable[int], parameters: Any) -> float:
        """Return the time of some steps in us."""
        times, _ = self._estimated(parameters)
        return sum(times[index] for index in steps)

    def _estimated(self, parameters: Any) -> tuple[Mapping[int, float], float]:
        # A fit asks for each part of a segment with the same parameters.
        if self._last[0] is not parameters:
            function = self._function
            found = None if function is None else function(attrs.evolve(self._question, parameters=parameters))
            steps = {} if found is None else {index: one.microseconds for index, one in enumerate(found.steps)}
            self._last = parameters, steps, 0.0 if found is None else found.microseconds or 0.0
        return self._last[1], self._last[2]
