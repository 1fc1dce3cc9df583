"""An activation on codes goes back before the quantization that gives them.

A dequantization that moved over an activation leaves it alone between a quantization and what follows. Before the
quantization it is part of the group of the layer that gives the real numbers, and costs nothing.
"""

from __future__ import annotations

from dryfit.network.layer import Layer
from dryfit.network.layers.quantize import Quantize
from dryfit.network.network import Network
from dryfit.network.tensor import TensorSpec
from dryfit.passes.quantization.commutation import commutation_of
from dryfit.passes.quantization.moving import Movement
from dryfit.passes.quantization.scale_numbers import numbers_of
from dryfit.quantization.rewrites import RewriteAction, RewriteJournal

NAME = "move-activations"


class MoveActivations:
    """The pass. The quantization may serve nobody else.

    Args:
        journal: is told what became of each quantization.
    """

    def __init__(self, journal: RewriteJournal) -> None:
        self._journal = journal

    def __call__(self, network: Network) -> bool:
        """Move what can move; returns whether anything did."""
        movement = Movement(NAME, network, self._journal)
        for layer in list(network.layers):
            quantize = _quantization_of_its_own(layer, movement)
            if quantize is not None:
                _move(layer, quantize, movement)
        return movement.finish()


def _quantization_of_its_own(layer: Layer, movement: Movement) -> Quantize | None:
    """What quantizes the input of a layer that ends groups, for this layer alone."""
    row = commutation_of(layer)
    source = layer.inputs[0] if row.ends_groups else None
    producer = source.producer if source is not None else None
    if source is None or not isinstance(producer, Quantize) or row.obstacle(layer, movement.specs):
        return None
    is_private = len(source.consumers) == 1 and source not in movement.outputs
    is_symmetric = numbers_of(producer, movement.specs).zero_point is None
    before = producer.inputs[0].producer if producer.inputs[0] is not None else None
    is_taken = before is not None and commutation_of(before).is_quantizable
    return producer if is_private and is_symmetric and is_taken else None


def _move(layer: Layer, quantize: Quantize, movement: Movement) -> None:
    """Let the layer read real numbers, and quantize what it gives."""
    output, source = layer.outputs[0], quantize.connected_input(0)
    codes, readers = movement.specs[output], list(output.consumers)
    layer.set_input(0, source)
    movement.specs[output] = TensorSpec(codes.shape, movement.specs[source].dtype)
    after = movement.add_copy(quantize, f"after {layer.name}", output, codes)
    movement.redirect(readers, output, after.outputs[0])
    movement.hand_name(output, after.outputs[0], f"{layer.name} of {source.name}")
    reason = f"{commutation_of(layer).reason}; there it ends the group of the layer before"
    movement.record(quantize, RewriteAction.MOVED, [layer.name], reason)
    movement.retire(quantize, after)
