"""Whether an engine leaves out only what it can do without: constants that kernels packed, or what a refit brings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dryfit.engine.plan import Operation, Plan
from dryfit.errors import EngineFileError
from dryfit.network.layer import Layer
from dryfit.network.layers.constant import Constant
from dryfit.network.layers.quantized_operator import WEIGHTS_INPUT, QuantizedOperator
from dryfit.network.network import Network
from dryfit.network.stand_ins import is_stand_in
from dryfit.target.group import is_repeatable


def check_left_out(plan: Plan) -> None:
    """Refuse a plan that lacks an array which a run needs; one that is stripped lacks them until it is refitted.

    Raises:
        EngineFileError: names the layer or the operation.
    """
    if plan.is_stripped:
        return
    lacking = [
        f"{name!r} of layer {layer.name!r}" for layer, name in _lacking(plan.network) if not _is_packed(layer, plan)
    ]
    lacking += [
        f"{name!r} of engine layer {operation.name!r}"
        for operation in plan.operations
        for name, array in operation.weights.items()
        if is_stand_in(array)
    ]
    if plan.refit is not None:
        lacking += [
            f"{name!r} of layer {layer.name!r} of the user's network" for layer, name in _lacking(plan.refit.network)
        ]
    if lacking:
        raise EngineFileError(
            "Arrays are left out of an engine that is not stripped",
            found=", ".join(lacking[:10]),
            remedy="Build the engine again",
        )


def _lacking(network: Network) -> Iterator[tuple[Layer, str]]:
    """Layers and names of their parameters for which there is a stand-in."""
    for layer in network.layers:
        for field in layer.parameters():
            value = getattr(layer, field.name)
            if isinstance(value, np.ndarray) and is_stand_in(value):
                yield layer, field.name


def _is_packed(layer: Layer, plan: Plan) -> bool:
    """Whether what is lacking is packed: of a layer with what runs it, of a constant with all that reads it.

    A constant is read as weights alone: by dequantizations, each in front of layers whose weights are packed, or by
    quantized operators.
    """
    if not isinstance(layer, Constant):
        running = [operation for operation in plan.operations if layer.name in operation.layers]
        return bool(running) and all(operation.weights for operation in running)
    if layer.outputs[0].is_network_output:
        return False
    consumers = layer.outputs[0].consumers
    are_weights = all(
        index == (WEIGHTS_INPUT if isinstance(reader, QuantizedOperator) else 0)
        and (is_repeatable(reader) or isinstance(reader, QuantizedOperator))
        for reader, index in consumers
    )
    readers = {reader.name for reader, _ in consumers}
    using = [operation for operation in plan.operations if readers & set(operation.layers)]
    dequantizations = {reader.name for reader, _ in consumers if is_repeatable(reader)}
    return are_weights and bool(using) and all(_has_packed(operation, dequantizations) for operation in using)


def _has_packed(operation: Operation, dequantizations: set[str]) -> bool:
    return bool(operation.weights) and not set(operation.layers) <= dequantizations
