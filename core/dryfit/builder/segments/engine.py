"""An engine of one segment alone, run as the engine runs it that the segment is part of: same kernels, same bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dryfit.builder.kernels.packed_weights import drop_packed_weights
from dryfit.engine.engine import Engine
from dryfit.engine.plan import LayerPlacement, Operation, Plan, Segment, TensorPlacement
from dryfit.engine.plan_check import check_plan
from dryfit.errors import EngineFileError, UnknownNameError
from dryfit.network.copying import copy_network
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.target.formats import LINEAR
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import HostLayout, Kernel, Specs
from dryfit.target.segments import HostOperation, HostRun, PlannedSegment


def segment_engine(segment: PlannedSegment) -> Engine:
    """An engine whose only segment is this one. Its inputs and outputs are the segment's.

    Args:
        segment: with its `host_run`. It is left as it is.

    Raises:
        EngineFileError: it does not say how the host runs it, or names kernels or layers that do not fit together.
        UnknownNameError: no installed package brings its device.
    """
    where = f"segment {segment.index} of {segment.device}"
    if segment.host_run is None:
        raise EngineFileError(
            "The segment must describe how the host runs it",
            where=where,
            remedy="Export it again with this version of dryfit",
        )
    network = copy_network(segment.network)
    layers = {layer.name: layer for layer in network.layers}
    kernels = _kernels(segment.device)
    specs, operations = {tensor.name: tensor.spec for tensor in network.tensors}, []
    for asked in segment.host_run.operations:
        group, kernel = _group(asked, layers, where), _kernel(asked, kernels, where)
        _require_accepted(kernel, group, specs, where)
        operations.append((asked, group, kernel, kernel.pack(group)))
    drop_packed_weights(network, [(group, kernel) for _, group, kernel, _ in operations])
    plan = Plan(
        network=network,
        operations=[
            Operation(
                name=group.name,
                layers=list(asked.layers),
                kernel=kernel.name,
                device=segment.device,
                segment=0,
                precision=asked.precision,
                source_layers=list(asked.layers),
                onnx_nodes=list(dict.fromkeys(node for layer in group.layers for node in layer.onnx_nodes)),
                weights=dict(weights),
            )
            for asked, group, kernel, weights in operations
        ],
        segments=[_record(segment, network)],
        reformats=[],
        placements=_placements(segment, segment.host_run, network),
        verdicts={},
        profiles=[],
        pool_sizes={f"{segment.device}/{pool}": size for pool, size in sorted(segment.pools.items())},
        settings=_settings(segment),
        plugins=registry.active_plugins(),
        layers=_layers(segment, network),
    )
    check_plan(plan)
    return Engine(plan)


def _kernels(device: str) -> Mapping[str, Kernel]:
    """Kernels that serve a device, by name: the host's, and its own."""
    return {kernel.name: kernel for kernel in (*registry.host().kernels, *registry.target(device).kernels)}


def _kernel(asked: HostOperation, kernels: Mapping[str, Kernel], where: str) -> Kernel:
    if asked.kernel not in kernels:
        raise EngineFileError(
            "The segment uses a host kernel that is not installed",
            where=where,
            found=str(UnknownNameError("kernel", asked.kernel, kernels)),
            remedy="Install the version of dryfit that made it, or export it again",
        )
    return kernels[asked.kernel]


def _require_accepted(kernel: Kernel, group: LayerGroup, specs: Specs, where: str) -> None:
    if (refusal := kernel.refusal(group, specs)) is not None:
        raise EngineFileError(
            "The segment uses a host kernel that does not support its layers",
            where=f"{where}, layer {group.name!r}, kernel {kernel.name!r}",
            found=refusal,
            remedy="Export it again with the installed version of dryfit",
        )


def _group(asked: HostOperation, layers: Mapping[str, Layer], where: str) -> LayerGroup:
    unknown = [name for name in asked.layers if name not in layers]
    if unknown or not asked.layers:
        raise EngineFileError(
            "The segment's host run refers to unknown layers",
            where=where,
            found=unknown,
            remedy="Export it again with this version of dryfit",
        )
    return LayerGroup([layers[name] for name in asked.layers])


def _placements(segment: PlannedSegment, run: HostRun, network: Network) -> dict[str, TensorPlacement]:
    formats = {**segment.input_formats, **segment.output_formats}
    strange = sorted(set(run.layouts.values()) - HostLayout.__members__.keys())
    if strange:
        raise EngineFileError(
            "The segment uses a layout that the host does not support",
            where=f"segment {segment.index} of {segment.device}",
            found=strange[0][:100],
            allowed=", ".join(HostLayout.__members__),
            remedy="Export it again with this version of dryfit",
        )
    placements = {}
    for tensor in network.tensors:
        if tensor.name in run.layouts:
            layout, family = formats.get(tensor.name, LINEAR), segment.platform.family
            size = layout.size_bytes(tensor.shape, tensor.dtype, family)
            placements[tensor.name] = TensorPlacement(
                tensor.name, segment.device, layout.name, "", 0, size, HostLayout[run.layouts[tensor.name]]
            )
    return placements


def _record(segment: PlannedSegment, network: Network) -> Segment:
    return Segment(
        index=0,
        device=segment.device,
        layers=_own(network),
        inputs=[tensor.name for tensor in network.inputs],
        outputs=[tensor.name for tensor in network.outputs],
        pools=segment.pools,
    )


def _own(network: Network) -> Sequence[str]:
    return [layer.name for layer in network.layers if layer.kind != "constant"]


def _layers(segment: PlannedSegment, network: Network) -> list[LayerPlacement]:
    return [
        LayerPlacement(
            layer=layer.name,
            kind=layer.kind,
            device=segment.device,
            precision=segment.precisions.get(layer.name, layer.outputs[0].dtype),
            segment=0,
            cause="it is the loadable's",
            onnx_nodes=layer.onnx_nodes,
        )
        for layer in network.layers
        if layer.kind != "constant"
    ]


def _settings(segment: PlannedSegment) -> dict[str, object]:
    """What reports and the run look up: device, platform and software version."""
    return {
        "flags": [],
        "default_device_type": segment.device,
        "fallback_device": None,
        "device_types": {},
        "platforms": {segment.device: segment.platform.name},
        "software": {segment.device: ".".join(map(str, segment.software))},
    }
