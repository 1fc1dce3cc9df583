"""From decisions to a plan: the engine's network, its groups and kernels, packed weights, and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.builder.assessment import segment_records
from dryfit.builder.builder_config import BuilderConfig
from dryfit.builder.canonicalise import profile_shapes
from dryfit.builder.design import Design
from dryfit.builder.device_memory import DeviceMemory, plan_device_memory
from dryfit.builder.fusion import FusedGroup, LayerPlace, fuse_layers
from dryfit.builder.host_layouts import choose_host_layouts
from dryfit.builder.layer_roles import LayerRole
from dryfit.builder.lowering import LoweredNetwork, lower_network
from dryfit.builder.settings_without_effect import exceeded_workspaces, unused_settings
from dryfit.builder.stages import Stages, logger
from dryfit.engine.plan import Operation, Plan, Segment
from dryfit.network.network import Network
from dryfit.network.printing import network_text
from dryfit.plugins import registry
from dryfit.target.kernels import HostLayout

NUM_STAGES = 5


def link(network: Network, design: Design, config: BuilderConfig, stages: Stages) -> Plan:
    """The plan of a design in which everything has its place.

    Args:
        network: the user's.
        design: the decisions about it.
        config: what it is built with.
        stages: log and progress.

    Raises:
        BuildError: no kernel runs a layer, or the progress monitor cancelled the build.
        NetworkError: a layer does not take the types that were chosen.
    """
    lowered = stages.run(
        "convert types",
        lambda: lower_network(design.network, design.assignment.roles, design.partition, design.precisions),
        lambda result: [network_text(result.network)],
    )
    groups = stages.run(
        "fuse and choose kernels",
        lambda: fuse_layers(lowered.network, _places(design, lowered)),
        lambda result: [f"{one.group.name}: {one.kernel.name} on {one.place.device}" for one in result],
    )
    layouts = choose_host_layouts(lowered.network, groups)
    operations = stages.run("pack weights", lambda: _pack(groups, lowered, stages))
    memory = stages.run(
        "plan memory",
        lambda: _plan_memory(design, lowered, groups, layouts),
        lambda result: [
            f"{one.tensor}: {one.size} bytes at {one.offset} of {one.device}/{one.pool}"
            for one in result.placements.values()
        ],
    )
    unused = [*unused_settings(config, design), *exceeded_workspaces(config, design, lowered, groups)]
    for warning in unused:
        logger.warning("%s", warning)
    _drop_packed(groups)
    segments = segment_records(design, memory.segment_pools)
    return stages.run(
        "write the plan",
        lambda: Plan(
            network=lowered.network,
            operations=operations,
            segments=segments,
            reformats=design.formats.reformats,
            placements=memory.placements,
            verdicts=design.assignment.verdicts,
            profiles=profile_shapes(lowered.network, config),
            pool_sizes=_pool_sizes(memory, segments),
            settings=config.settings(network),
            plugins=registry.active_plugins(),
            layers=design.layer_placements(),
            warnings=[*design.warnings, *unused],
        ),
    )


def _places(design: Design, lowered: LoweredNetwork) -> dict[str, LayerPlace]:
    """Where each layer of the engine's network runs. Constants are nowhere."""
    host = registry.host().device
    places: dict[str, LayerPlace] = {}
    for layer in lowered.network.layers:
        role = design.assignment.roles.get(layer.name)
        if layer.kind == "constant" or role is LayerRole.CONSTANT:
            continue
        dtype = layer.outputs[0].dtype
        if layer.name in lowered.reformats:
            places[layer.name] = LayerPlace(design.caller, -1, dtype)
        elif role is LayerRole.SHAPE:
            places[layer.name] = LayerPlace(host, -1, dtype, LayerRole.SHAPE)
        else:
            places[layer.name] = LayerPlace(
                design.assignment.devices[layer.name],
                design.partition.segments[layer.name],
                design.precisions.layers[layer.name],
            )
    for layer in lowered.network.layers:
        # A change of type inside a segment is that segment's own work.
        if layer.name in lowered.reformats:
            source = layer.inputs[0].producer if layer.inputs[0] is not None else None
            around = {places[source.name] if source is not None else None}
            around |= {places[reader.name] for reader, _ in layer.outputs[0].consumers}
            segments = {place.segment if place is not None else -1 for place in around}
            if len(segments) == 1 and not layer.outputs[0].is_network_output:
                inner = next(iter(around))
                if inner is not None and inner.segment >= 0:
                    places[layer.name] = attrs.evolve(places[layer.name], device=inner.device, segment=inner.segment)
    return places


def _pack(groups: Sequence[FusedGroup], lowered: LoweredNetwork, stages: Stages) -> list[Operation]:
    operations = []
    with stages.steps("Packing weights", list(groups)) as each:
        for fused in each:
            layers = fused.group.layers
            operations.append(
                Operation(
                    name=fused.group.name,
                    layers=[layer.name for layer in layers],
                    kernel=fused.kernel.name,
                    device=fused.place.device,
                    segment=fused.place.segment,
                    precision=fused.place.precision,
                    source_layers=[layer.name for layer in layers if layer.name not in lowered.reformats],
                    onnx_nodes=list(dict.fromkeys(node for layer in layers for node in layer.onnx_nodes)),
                    weights=dict(fused.kernel.pack(fused.group)),
                )
            )
    return operations


def _drop_packed(groups: Sequence[FusedGroup]) -> None:
    """Forget the parameters that were packed: the engine does not need them twice."""
    for fused in groups:
        for layer in fused.group.layers:
            names = {field.name for field in layer.parameters()}
            for name in fused.kernel.packed_parameters:
                if name in names:
                    setattr(layer, name, None)


def _pool_sizes(memory: DeviceMemory, segments: Sequence[Segment]) -> dict[str, int]:
    """`device/pool` to bytes, over all segments; also for pools that hold weights."""
    sizes = dict(memory.pool_sizes)
    for segment in segments:
        for pool, size in segment.pools.items():
            key = f"{segment.device}/{pool}"
            if key not in memory.pool_sizes:
                sizes[key] = sizes.get(key, 0) + size
    return dict(sorted(sizes.items()))


def _plan_memory(
    design: Design, lowered: LoweredNetwork, groups: Sequence[FusedGroup], layouts: Mapping[str, HostLayout]
) -> DeviceMemory:
    return plan_device_memory(
        lowered, groups, design.formats, layouts, design.variants, design.specs, len(design.partition.runs)
    )
