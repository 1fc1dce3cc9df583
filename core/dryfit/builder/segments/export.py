"""Segments as their target's exporter gets them: what was planned, and how the host runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.builder.fusion.groups import FusedGroup, LayerPlace
from dryfit.builder.segments.compilation import EXPORTER, SegmentCompilation, target_bytes
from dryfit.engine.plan import Plan
from dryfit.errors import BuildError, one_error
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.target.group import SegmentGroup
from dryfit.target.kernels import HostLayout
from dryfit.target.segments import HostOperation, HostRun, PlannedSegment

Exported = Mapping[int, PlannedSegment]
"""Index of each segment that its target can write as a file to what its exporter gets."""


def planned_exports(
    network: Network, groups: Sequence[FusedGroup], layouts: Mapping[str, HostLayout], compilation: SegmentCompilation
) -> Exported:
    """What exporters need of the segments of a build, while layers still have their weights.

    Args:
        network: the engine's.
        groups: its groups, in execution order.
        layouts: tensor name to how the host keeps it.
        compilation: of the same build.
    """
    of_segment: dict[int, list[FusedGroup]] = {}
    for fused in groups:
        if fused.place.segment >= 0 and registry.target(fused.place.device).export_segment_at is not None:
            of_segment.setdefault(fused.place.segment, []).append(fused)
    found = {}
    for index, inside in of_segment.items():
        own = [*inside, *_conversions(inside, groups)]
        names = {layer.name for fused in own for layer in fused.group.layers}
        whole = SegmentGroup([layer for layer in network.layers if layer.name in names])
        planned = compilation.planned(whole, own[0].place)
        compilation.fix_shapes(planned.network)
        found[index] = attrs.evolve(planned, host_run=_host_run(planned, own, layouts))
    return found


def segment_files(plan: Plan, exported: Exported) -> tuple[dict[int, bytes], dict[int, BuildError]]:
    """Index of each segment that has a file for its device's own runtime to that file, and of others to why not.

    Files are the programs of compiled segments, and what exporters write.

    Raises:
        BuildError: no segment can be written, and there are some.
        PluginError: an exporter gave something else than bytes.
    """
    files, refused = dict(plan.programs), dict[int, BuildError]()
    for index, planned in sorted(exported.items()):
        try:
            files[index] = target_bytes(EXPORTER, attrs.evolve(planned, pools=plan.segments[index].pools))
        except BuildError as error:
            refused[index] = error
    if refused and not files:
        raise one_error("No segment can be exported", list(refused.values()))
    return dict(sorted(files.items())), refused


def _conversions(own: Sequence[FusedGroup], groups: Sequence[FusedGroup]) -> list[FusedGroup]:
    """The conversions behind a segment of what its device does not write: the device gives what comes after them.

    They belong to no segment of the engine, because any device could do them.
    """
    written = registry.target(own[0].place.device).output_formats
    strange = {tensor.name for one in own for tensor in one.group.outputs if written and tensor.dtype not in written}
    return [
        one
        for one in groups
        if one.place.segment < 0
        and one.group.main.kind in ("cast", "quantize")
        and one.group.main.inputs[0] is not None
        and one.group.main.inputs[0].name in strange
    ]


def _host_run(planned: PlannedSegment, groups: Sequence[FusedGroup], layouts: Mapping[str, HostLayout]) -> HostRun:
    known = {tensor.name for tensor in planned.network.tensors}
    return HostRun(
        [_operation(fused, fused.place) for fused in groups],
        {name: layout.name for name, layout in layouts.items() if name in known},
    )


def _operation(fused: FusedGroup, place: LayerPlace) -> HostOperation:
    return HostOperation([layer.name for layer in fused.group.layers], fused.kernel.name, place.precision)
