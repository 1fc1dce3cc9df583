"""The decisions about a network as users are told them: layers, segments, copies and warnings of a design."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import attrs

from dryfit.builder.design import Design
from dryfit.builder.placement.roles import LayerRole
from dryfit.builder.placement.target_variant import Specs, TargetVariant, known_shape
from dryfit.builder.precision.chosen import Precisions
from dryfit.engine.plan import Decisions, LayerPlacement, Segment
from dryfit.errors import PluginError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.plugins import registry
from dryfit.target.cost import CostEstimate, CostQuestion, TransferQuestion, require_estimate

SHAPE_COMPUTATION = "a shape computation"
"""Cause of a layer that the host computes before the run."""


def decisions_of(design: Design, later_warnings: Sequence[str] = ()) -> Decisions:
    """What is told of a design.

    Args:
        design: the design.
        later_warnings: what turned out after it, when it was built.
    """
    return Decisions(
        layers=layer_placements(design),
        verdicts=design.assignment.verdicts,
        segments=_segments(design),
        reformats=design.formats.reformats,
        warnings=[*design.warnings, *later_warnings],
        rejected=design.partition.rejected,
    )


def layer_placements(design: Design) -> list[LayerPlacement]:
    """Where each layer runs, in the order of the network; constants are nowhere."""
    host = registry.host().device
    assignment, causes = design.assignment, design.canonical.causes
    precisions, segments = design.precisions.layers, design.partition.segments
    placements = []
    for layer in design.network.layers:
        name, role = layer.name, assignment.roles[layer.name]
        if role is LayerRole.CONSTANT:
            continue
        is_shape = role is LayerRole.SHAPE
        # Where it took the place of a quantized group, why it is there at all is told too.
        own_causes = (assignment.causes.get(name), causes.get(name))
        placements.append(
            LayerPlacement(
                layer=name,
                kind=layer.kind,
                device=host if is_shape else assignment.devices[name],
                precision=precisions.get(name) or layer.outputs[0].dtype,
                segment=segments.get(name, -1),
                cause=SHAPE_COMPUTATION if is_shape else "; ".join(filter(None, own_causes)),
                onnx_nodes=layer.onnx_nodes,
            )
        )
    return placements


def _segments(design: Design) -> list[Segment]:
    border = {tensor.name for tensor in design.network.outputs}
    records = []
    for index, run in enumerate(design.partition.runs):
        members = {layer.name for layer in run.layers}
        records.append(
            Segment(
                index=index,
                device=run.device,
                layers=[layer.name for layer in run.layers],
                inputs=_unique(
                    tensor
                    for layer in run.layers
                    for tensor in layer.inputs
                    if tensor is not None and design.assignment.carries_data(tensor) and not _is_from(tensor, members)
                ),
                outputs=_unique(
                    tensor
                    for layer in run.layers
                    for tensor in layer.outputs
                    if tensor.name in border or any(reader.name not in members for reader, _ in tensor.consumers)
                ),
                pools=design.pools(index),
                cut_cause=run.cut_cause,
                estimate=_kept_estimate(design, run.device, run.layers),
            )
        )
    return records


def _kept_estimate(design: Design, device: str, layers: Sequence[Layer]) -> CostEstimate | None:
    """A segment's estimate without its steps, which `network_cost` tells; none where it depends on this machine."""
    variant = design.variants[device]
    if variant.target.segment_rules.is_host:
        return None
    chosen, sparse = design.precisions, design.sparse_layers
    found = segment_estimate(variant, layers, design.specs, chosen, sparse, allows_nominal=False)
    return None if found is None or found.is_nominal else attrs.evolve(found, steps=())


def _is_from(tensor: Tensor, members: Collection[str]) -> bool:
    return tensor.producer is not None and tensor.producer.name in members


def _unique(tensors: Iterable[Tensor]) -> list[str]:
    return list(dict.fromkeys(tensor.name for tensor in tensors))


def segment_estimate(
    variant: TargetVariant,
    layers: Sequence[Layer],
    specs: Specs,
    precisions: Precisions | None = None,
    sparse_layers: Collection[str] = (),
    *,
    allows_nominal: bool = True,
) -> CostEstimate | None:
    """The target's estimate; None where it estimates nothing, knows nothing of the platform, or fails.

    What fails is recorded, and reported when the command ends.

    Args:
        variant: the device.
        layers: of one segment, in execution order.
        specs: tensor name to spec, at the shapes that the engine is optimised for.
        precisions: computation types; None: those of the tensors.
        sparse_layers: names of the layers whose weights the device takes as sparse.
        allows_nominal: whether an estimate by the figures of a similar machine is of use.
    """
    return _asked(
        variant,
        "estimate_cost",
        lambda: segment_question(variant, layers, specs, precisions, sparse_layers, allows_nominal=allows_nominal),
    )


def segment_question(
    variant: TargetVariant,
    layers: Sequence[Layer],
    specs: Specs,
    precisions: Precisions | None = None,
    sparse_layers: Collection[str] = (),
    *,
    allows_nominal: bool = True,
) -> CostQuestion:
    """The question about a segment's cost; arguments as of `segment_estimate`."""
    return CostQuestion(
        layers=layers,
        specs=_StoredSpecs(layers, specs, precisions),
        platform=variant.platform,
        software=variant.software,
        precisions={} if precisions is None else _chosen(layers, precisions),
        sparse_layers=frozenset(sparse_layers),
        power_mode=variant.power_mode,
        allows_nominal=allows_nominal,
    )


def transfer_estimate(variant: TargetVariant, bytes_moved: int) -> CostEstimate | None:
    """What the target estimates that a tensor costs which crosses the border of a segment; None where it does not."""
    return _asked(
        variant, "estimate_transfer", lambda: TransferQuestion(bytes_moved, variant.platform, variant.power_mode)
    )


def _asked(variant: TargetVariant, part: str, question: Callable[[], object]) -> CostEstimate | None:
    """What a function of the target estimates; None, recorded, where it fails: that costs the estimate and no more."""
    try:
        function = getattr(variant.target, part)
    except PluginError as error:
        registry.fail_function(variant.device, part, error)
        return None
    if function is None:
        return None
    asked = question()
    try:
        return require_estimate(function(asked))
    except (Exception, SystemExit) as error:  # noqa: BLE001  the function is a stranger's
        registry.fail_function(variant.device, part, error)
        return None


def _chosen(layers: Sequence[Layer], precisions: Precisions) -> Mapping[str, DataType]:
    return {layer.name: precisions.layers[layer.name] for layer in layers if layer.name in precisions.layers}


class _StoredSpecs(Mapping[str, TensorSpec]):
    """Specs of the layers' tensors at known extents, in the types in which they are stored where that is known.

    They are made when the first is asked for: many targets estimate nothing, which large networks need not wait for.
    """

    def __init__(self, layers: Sequence[Layer], specs: Specs, precisions: Precisions | None) -> None:
        self._asked = layers, specs, precisions

    @functools.cached_property
    def _specs(self) -> dict[str, TensorSpec]:
        layers, specs, precisions = self._asked
        types: dict[str, DataType | None] = {}
        for layer in layers:
            for index, tensor in enumerate(layer.inputs):
                if tensor is not None and tensor.name not in types:
                    types[tensor.name] = None if precisions is None else precisions.input_type(layer, index)
            for index, output in enumerate(layer.outputs):
                types[output.name] = None if precisions is None else precisions.stored_type(layer, index)
        return {name: _stored_spec(specs[name], dtype) for name, dtype in types.items()}

    def __getitem__(self, name: str) -> TensorSpec:
        return self._specs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)


def _stored_spec(spec: TensorSpec, dtype: DataType | None) -> TensorSpec:
    if spec.is_static and dtype in (None, spec.dtype):
        return spec
    return TensorSpec(known_shape(spec), dtype or spec.dtype, spec.value)
