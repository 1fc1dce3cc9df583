"""What a segment, and a tensor that crosses its border, are estimated to cost, as their target reckons it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import attrs

from dryfit.builder.placement.target_variant import Specs, TargetVariant, known_shape
from dryfit.builder.precision.chosen import Precisions
from dryfit.errors import PluginError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.tensor import TensorSpec
from dryfit.plugins import registry
from dryfit.target.cost import CostEstimate, CostQuestion, TransferQuestion, require_estimate


def segment_estimate(
    variant: TargetVariant,
    layers: Sequence[Layer],
    specs: Specs,
    precisions: Precisions | None = None,
    sparse_layers: Collection[str] = (),
) -> CostEstimate | None:
    """The target's estimate; None where it estimates nothing, knows nothing of the platform, or fails.

    What fails is recorded, and reported when the command ends.

    Args:
        variant: the device.
        layers: of one segment, in execution order.
        specs: tensor name to spec, at the shapes that the engine is optimised for.
        precisions: computation types; None: those of the tensors.
        sparse_layers: names of the layers whose weights the device takes as sparse.
    """

    def question() -> CostQuestion:
        return CostQuestion(
            layers=layers,
            specs=_stored_specs(layers, specs, precisions),
            platform=variant.platform,
            software=variant.software,
            precisions={} if precisions is None else _chosen(layers, precisions),
            sparse_layers=frozenset(sparse_layers),
            power_mode=variant.power_mode,
        )

    return _asked(variant, "estimate_cost", question)


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


def _stored_specs(layers: Sequence[Layer], specs: Specs, precisions: Precisions | None) -> dict[str, TensorSpec]:
    """The specs of the layers' tensors at known extents, in the types in which they are stored where that is known."""
    found: dict[str, TensorSpec] = {}
    for layer in layers:
        for one in (*layer.inputs, *layer.outputs):
            if one is not None:
                found.setdefault(one.name, attrs.evolve(specs[one.name], shape=known_shape(specs[one.name])))
    if precisions is not None:
        for layer in layers:
            for index, tensor in enumerate(layer.inputs):
                if tensor is not None:
                    found[tensor.name] = attrs.evolve(found[tensor.name], dtype=precisions.input_type(layer, index))
        for layer in layers:
            for index, tensor in enumerate(layer.outputs):
                found[tensor.name] = attrs.evolve(found[tensor.name], dtype=precisions.stored_type(layer, index))
    return found
