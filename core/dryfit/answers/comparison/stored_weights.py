"""Recover the network of an engine with its weights from the arrays that its kernels packed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dryfit.answers.comparison.packed_places import KnownPlaces, Slot, packed_alike, unpack_places
from dryfit.attrs_classes import frozen
from dryfit.engine.plan import Operation, Plan
from dryfit.engine.progress import ProgressMonitor, stepped
from dryfit.engine.resolved_operation import resolve_operations
from dryfit.engine.segment_program import operation_group
from dryfit.network.copying import copy_network
from dryfit.network.data_types import EXCHANGED_TYPES, DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.convolution import FullyConnected
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.kernel_layer import KernelLayer
from dryfit.network.layers.quantization import Cast, Dequantize
from dryfit.network.network import Network
from dryfit.network.packed_elements import is_stand_in, stand_in
from dryfit.network.tensor import Array
from dryfit.network.weights_role import set_weights, weights_of
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Kernel

LARGEST_DEVIATION = 2.0**-18
"""How far packed weights may lie from those of what was unpacked, beside the largest of them. Our choice: some
roundings of FP32, which Winograd's transforms add up."""

_STUMBLES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a stranger's `pack` may raise of weights that it was not made for."""


@frozen(eq=False)
class NetworkWeights:
    """The network of an engine with its weights.

    Attributes:
        network: copy of the engine's network. Factors folded into weights are part of them; the original layers are
            neutral.
        unknown: reason for each layer whose weights could not be recovered, by layer name.
        rounded: names of the layers whose weights were recovered only to within a few FP32 roundings.
    """

    network: Network
    unknown: Mapping[str, str]
    rounded: Sequence[str]


def stored_weights_of(plan: Plan, progress: ProgressMonitor | None = None) -> NetworkWeights:
    """Return the network of a plan with the weights that its operations packed.

    Raises:
        ExecutionError: `progress` cancelled the work.
        PluginError: A kernel's target is not installed.
        EngineFileError: The engine uses a kernel that does not exist.
    """
    network = copy_network(plan.network)
    layers = {layer.name: layer for layer in network.layers}
    wide: dict[str, Layer] = {}
    unknown: dict[str, str] = {}
    rounded: list[str] = []
    known = KnownPlaces()
    for resolved in stepped(resolve_operations(plan), "Finding the weights that the engine stores", progress):
        operation, group = resolved.operation, operation_group(resolved.operation, layers)
        slots = _slots(group)
        if not slots:
            continue
        reason = _unpacked(operation, resolved.kernel, group, slots, known)
        if reason is not None and not operation.is_compiled:
            # What was folded into rounded weights is FP32, which a layer in FP32 alone takes as it is.
            wide = wide or {layer.name: layer for layer in _widened(plan.network).layers}
            same = operation_group(operation, wide)
            reason = _unpacked(operation, resolved.kernel, same, _slots(same), known)
            for slot in slots if reason is None else ():
                setattr(slot.layer, slot.name, getattr(wide[slot.layer.name], slot.name))
        if reason is not None:
            unknown.update((slot.layer.name, reason) for slot in slots)
        elif resolved.kernel.unpack is not None:
            rounded.append(operation.name)
    network.refresh_shapes()
    return NetworkWeights(network, unknown, rounded)


def _widened(network: Network) -> Network:
    """Return a copy of an engine's network with floating point as FP32."""
    copy = copy_network(network)
    for tensor in copy.inputs:
        if tensor.dtype in EXCHANGED_TYPES:
            tensor.dtype = DataType.FLOAT
    for layer in copy.layers:
        if isinstance(layer, (Cast, Dequantize)) and layer.to_type in EXCHANGED_TYPES:
            layer.to_type = DataType.FLOAT
        for role, array in list(weights_of(layer)):
            if DataType.from_numpy(array.dtype) in EXCHANGED_TYPES:
                is_left_out = is_stand_in(array)
                set_weights(
                    layer, role, stand_in(DataType.FLOAT, array.shape) if is_left_out else array.astype(np.float32)
                )
    copy.refresh_shapes()
    return copy


def _slots(group: LayerGroup) -> list[Slot]:
    """Return the weights of a group that the engine's network lacks, and a bias that values may be folded into."""
    found = [
        Slot(layer, field.name, DataType.from_numpy(value.dtype), value.shape)
        for layer in (*group.layers, *_constants(group))
        for field in layer.parameters()
        if isinstance(value := getattr(layer, field.name), np.ndarray) and is_stand_in(value)
    ]
    main = group.main
    has_shift = any(slot.name == "shift" and slot.layer is not main for slot in found)
    has_bias = isinstance(main, (KernelLayer, FullyConnected)) and (main.bias is not None or len(main.inputs) > 2)
    if has_shift and not has_bias and isinstance(main, (KernelLayer, FullyConnected)):
        maps = main.num_output_maps if isinstance(main, KernelLayer) else main.num_output_channels
        found.append(Slot(main, "bias", DataType.FLOAT, (maps,)))
    return found


def _constants(group: LayerGroup) -> list[Constant]:
    """Return the constants that the group dequantizes."""
    sources = [layer.inputs[0] for layer in group.prologue if layer.inputs and layer.inputs[0] is not None]
    return [one.producer for one in sources if isinstance(one.producer, Constant)]


def _unpacked(
    operation: Operation, kernel: Kernel, group: LayerGroup, slots: Sequence[Slot], known: KnownPlaces
) -> str | None:
    """Restore the weights of an operation; return why they cannot be found, or None."""
    if operation.is_compiled:
        return f"the program that {operation.device} compiled holds its weights, in a form of its own"
    try:
        if kernel.unpack is None:
            is_found = unpack_places(
                lambda: kernel.pack(group), slots, operation.weights, operation.precision, known, kernel.name
            )
        else:
            is_found = _put(kernel.unpack(group, operation.weights), slots, group.main)
            is_found = is_found and _is_close(kernel.pack(group), operation.weights)
    except _STUMBLES as error:
        return f"kernel {kernel.name!r} cannot pack other weights in their place: {type(error).__name__}: {error}"
    return None if is_found else f"kernel {kernel.name!r} does more than move weights, and has no `unpack`"


def _put(found: Mapping[str, Array], slots: Sequence[Slot], main: Layer) -> bool:
    """Set the main layer's parameters, and neutral values in other slots; return whether the former are complete."""
    for slot in slots:
        slot.clear()
        if slot.layer is main and slot.name in found:
            slot.put(found[slot.name])
    return all(slot.name in found for slot in slots if slot.layer is main)


def _is_close(found: Mapping[str, Array], packed: Mapping[str, Array]) -> bool:
    """Return whether packing the recovered weights gives nearly the engine's arrays."""
    if packed_alike(found, packed):
        return True
    return found.keys() == packed.keys() and all(_lies_beside(found[name], array) for name, array in packed.items())


def _lies_beside(found: Array, array: Array) -> bool:
    if found.shape != array.shape:
        return False
    largest = max(array.max(initial=0), -array.min(initial=0))
    difference = np.subtract(found, array, dtype=np.result_type(found, array, np.float32))
    return bool(max(difference.max(initial=0), -difference.min(initial=0)) <= LARGEST_DEVIATION * largest)
