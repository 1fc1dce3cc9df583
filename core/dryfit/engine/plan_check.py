"""Check whether a plan can run: its operations cover its network, in a valid order.

The builder creates valid plans, but a file can contain any data. Everything that execution relies on is checked here,
including that only dispensable arrays are omitted: constants that kernels packed, or weights that a refit provides.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NoReturn

import numpy as np

from dryfit.engine.plan import PROGRAM, Operation, Plan, ProfileShapes, TensorPlacement
from dryfit.errors import EngineFileError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer, with_bodies
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.quantized_operator import WEIGHTS_INPUT, QuantizedOperator
from dryfit.network.network import Network
from dryfit.network.packed_elements import is_stand_in
from dryfit.target.forks import fork_at
from dryfit.target.group import is_repeatable


def check_left_out(plan: Plan) -> None:
    """Reject a plan that lacks an array required by a run. A stripped plan lacks them until a refit.

    Raises:
        EngineFileError: An array is missing; the message names the layer or the operation.
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
            "Only a stripped engine may leave out arrays",
            found=", ".join(lacking[:10]),
            remedy="Build the engine again",
        )


def _lacking(network: Network) -> Iterator[tuple[Layer, str]]:
    """Return layers and parameter names with a stand-in."""
    for layer in with_bodies(network.layers):
        for field in layer.parameters():
            value = getattr(layer, field.name)
            if isinstance(value, np.ndarray) and is_stand_in(value):
                yield layer, field.name


def _is_packed(layer: Layer, plan: Plan) -> bool:
    """Return whether an omitted array is packed: that of a layer by its kernel, that of a constant by all its readers.

    A constant may only be read as weights: by dequantizations in front of layers with packed weights, or by quantized
    operators.
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


_CONSTANT = "constant"
"""The kind of layer that needs no operation: its outputs are known without running anything."""
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}( [A-Za-z0-9.!+_-]{1,99})?")
_LONGEST_NAME = 1000


def check_plan(plan: Plan) -> None:
    """Reject a plan with inconsistent parts.

    Raises:
        EngineFileError: Parts are inconsistent; the message states which ones, and how.
    """
    if not plan.outputs:
        _refuse("An engine must have at least one output", f"network {plan.network.name!r}", "none")
    _check_operations(plan)
    check_left_out(plan)
    _check_watched_tensors(plan)
    _check_aliased_inputs(plan)
    for name, placement in plan.placements.items():
        _check_placement(name, placement, plan.network)
    for index, profile in enumerate(plan.profiles):
        _check_profile(index, profile, plan.network)
        _check_values(index, profile, plan.network)
    for pool, size in plan.pool_sizes.items():
        if size < 0:
            _refuse("A memory pool size must not be negative", f"pool {pool!r}", size)
    for what, package in plan.packages.items():
        # Both stand in the message that says what to install.
        if not _PACKAGE.fullmatch(package) or not what.isprintable() or len(what) > _LONGEST_NAME:
            _refuse("A package must be named by distribution and version", f"package of {what[:100]!r}", package[:100])


def _check_watched_tensors(plan: Plan) -> None:
    """Check that hidden outputs, debug tensors and conditions of assertions are tensors of the network."""
    outputs = {tensor.name for tensor in plan.network.outputs}
    if set(plan.hidden_outputs) - outputs or len(set(plan.hidden_outputs)) != len(plan.hidden_outputs):
        _refuse("A hidden output must be an output of the network", "hidden_outputs", list(plan.hidden_outputs)[:10])
    border = outputs | {tensor.name for tensor in plan.network.inputs}
    for what, names in (
        ("A debug tensor", plan.debug_tensors),
        ("The condition of an assertion", [one.condition for one in plan.assertions]),
    ):
        if set(names) - border:
            _refuse(f"{what} must be an input or an output of the network", what, sorted(set(names) - border)[:10])


def _check_aliased_inputs(plan: Plan) -> None:
    inputs = {tensor.name for tensor in plan.network.inputs}
    outputs = {tensor.name for tensor in plan.outputs}
    for output, name in plan.aliased_inputs.items():
        if output not in outputs or name not in inputs:
            _refuse("An output must be aliased to an input", f"aliased input of {output[:100]!r}", name[:100])


def _check_operations(plan: Plan) -> None:
    layers = {layer.name: layer for layer in plan.network.layers}
    outputs = {tensor.name for tensor in plan.network.outputs}
    constants = [layer for layer in plan.network.layers if layer.kind == _CONSTANT]
    available = {tensor.name for tensor in (*plan.network.inputs, *(t for one in constants for t in one.outputs))}
    done: set[str] = set()
    for operation in plan.operations:
        where = f"engine layer {operation.name!r}"
        unknown = [name for name in operation.layers if name not in layers]
        if unknown or not operation.layers:
            _refuse("An operation refers to layers that do not exist", where, unknown)
        own = [layers[name] for name in operation.layers]
        once = {layer.name for layer in own if operation.is_compiled or not _is_repeated(layer, own)}
        if done & once or len(set(operation.layers)) != len(own):
            _refuse("A layer must run only once", where, list(operation.layers))
        if not -1 <= operation.segment < len(plan.segments):
            _refuse("An operation refers to a segment that does not exist", where, operation.segment)
        if operation.is_compiled:
            _check_segment(operation, where, has_program=not plan.is_stripped)
        else:
            _check_chain(own, outputs, where)
        available |= _given(own, available, where, is_all=operation.is_compiled)
        done |= once
    run = done | {name for operation in plan.operations for name in operation.layers}
    forgotten = layers.keys() - run - {layer.name for layer in constants}
    if forgotten:
        _refuse("Every layer must belong to an operation", "operations", sorted(forgotten)[:10])
    if outputs - available:
        _refuse("Every network output must be computed by an operation", "operations", sorted(outputs - available)[:10])


def _is_repeated(layer: Layer, own: Sequence[Layer]) -> bool:
    """Return whether an operation computes a layer only for itself, so that others may also compute it."""
    return is_repeatable(layer) and layer is not own[-1]


def _given(own: Sequence[Layer], available: set[str], where: str, *, is_all: bool) -> set[str]:
    """Return the outputs of an operation for later ones: those of its last layer, or of all layers."""
    inner: set[str] = set()
    for layer in own:
        needed = {tensor.name for tensor in layer.connected_inputs} - inner - available
        if needed:
            _refuse("An operation must run after its inputs are computed", where, sorted(needed))
        inner.update(tensor.name for tensor in layer.outputs)
    return inner if is_all else {tensor.name for tensor in own[-1].outputs}


def _check_chain(layers: Sequence[Layer], outputs: set[str], where: str) -> None:
    """Check that each layer alone reads the only output of the layer before it, except for dequantizations and forks.

    A dequantization may have other readers, which repeat it. All layers of a fork belong to one operation.
    """
    inside = {layer.name for layer in layers}
    for layer in layers[:-1]:
        if is_repeatable(layer) and not _readers(layer) & inside:
            _refuse("The layers of an operation must be a chain", where, f"nothing reads {layer.name!r}")
    repeated = {layer.name: layer for layer in layers if _is_repeated(layer, layers)}
    steps = [layer for layer in layers if layer.name not in repeated]
    end = fork_at(steps, 0)
    for place, (before, after) in enumerate(itertools.pairwise(steps), 1):
        end = max(end, place + fork_at(steps, place))
        if place < end:
            continue
        readers = _readers(before)
        between = [repeated[name] for name in readers if name in repeated]
        reached = {name for layer in between for name in _readers(layer)} if between else readers
        fits = len(before.outputs) == 1 and before.outputs[0].name not in outputs and len(readers) == 1
        if not fits or reached != {after.name}:
            _refuse("The layers of an operation must be a chain", where, f"{before.name!r} before {after.name!r}")


def _readers(layer: Layer) -> set[str]:
    return {consumer.name for output in layer.outputs for consumer, _ in output.consumers}


def _check_segment(operation: Operation, where: str, *, has_program: bool) -> None:
    """Check that a compiled segment is valid and has its program, unless a refit provides it."""
    if operation.segment < 0:
        _refuse("A compiled operation must belong to a segment", where, operation.segment)
    if not has_program:
        return
    program = operation.weights.get(PROGRAM)
    if program is None or (program.dtype, program.ndim) != (np.uint8, 1):
        found = "none" if program is None else f"{program.dtype} {program.shape}"
        _refuse("The program of a compiled segment must be bytes", where, found)


def _check_placement(name: str, placement: TensorPlacement, network: Network) -> None:
    where = f"placement of tensor {name!r}"
    if placement.tensor != name or not network.find_tensor(name):
        _refuse("A placement must name its own tensor", where, placement.tensor)
    if placement.offset < 0 or placement.size < 0:
        _refuse("A placement must begin inside its pool", where, (placement.offset, placement.size))


def _check_profile(index: int, profile: ProfileShapes, network: Network) -> None:
    inputs = {tensor.name: tensor.shape for tensor in network.inputs}
    for name, (minimum, optimum, maximum) in profile.shapes.items():
        where = f"optimization profile {index}, input {name!r}"
        declared = inputs.get(name)
        if declared is None or not len(minimum) == len(optimum) == len(maximum) == len(declared):
            _refuse("A profile must match the network's inputs", where, (minimum, optimum, maximum))
        for extent, low, middle, high in zip(declared, minimum, optimum, maximum, strict=True):
            if not 0 <= low <= middle <= high or (extent != -1 and not low == high == extent):
                _refuse("A profile must match the network's inputs", where, (minimum, optimum, maximum))


def _check_values(index: int, profile: ProfileShapes, network: Network) -> None:
    inputs = {tensor.name: tensor for tensor in network.inputs}
    for name, (minimum, optimum, maximum) in profile.values.items():
        where = f"optimization profile {index}, values of input {name!r}"
        tensor = inputs.get(name)
        ordered = len(minimum) == len(optimum) == len(maximum) and all(
            low <= middle <= high for low, middle, high in zip(minimum, optimum, maximum, strict=True)
        )
        if tensor is None or tensor.dtype not in (DataType.INT32, DataType.INT64) or not ordered:
            _refuse("A profile must match the network's inputs", where, (minimum, optimum, maximum))


def _refuse(message: str, where: str, found: object) -> NoReturn:
    raise EngineFileError(
        message, where=where, found=found, remedy="Build the engine again; the builder never writes such a plan"
    )
