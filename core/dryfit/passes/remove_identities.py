"""Layers that change nothing go; identities that change the type become casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dryfit.network.copying import copy_tensor_notes, note_origin
from dryfit.network.layer import Layer
from dryfit.network.layers.movement import Concatenation, Identity, Squeeze, Unsqueeze
from dryfit.network.layers.quantization import Cast
from dryfit.network.layers.slice import Shuffle, Slice
from dryfit.network.network import Network
from dryfit.network.tensor import TensorSpec
from dryfit.passes.pipeline import network_pass


@network_pass("cast-identities")
def cast_identities(network: Network) -> bool:
    """Put casts in the places of identities that give another type than they take, under the same names."""
    replaced: list[tuple[Layer, Cast]] = []
    for layer in list(network.layers):
        source = layer.inputs[0] if isinstance(layer, Identity) and layer.inputs else None
        to_type = None if source is None else layer.cast_type(source.dtype)  # type: ignore[attr-defined]
        if to_type is not None:
            cast = network.add_layer(Cast(to_type=to_type, precision=layer.precision), [source])
            copy_tensor_notes(layer.outputs[0], cast.outputs[0])
            cast.outputs[0].io_dtype = layer.outputs[0].io_dtype
            network.replace_uses(layer.outputs[0], cast.outputs[0])
            note_origin(cast, layer)
            replaced.append((layer, cast))
    names = [(layer.name, layer.outputs[0].name, cast) for layer, cast in replaced]
    network.remove_layers([layer for layer, _ in replaced])
    for name, output, cast in names:
        network.rename_layer(cast, name)
        network.rename_tensor(cast.outputs[0], output)
    return bool(replaced)


@network_pass("remove-identities")
def remove_identities(network: Network) -> bool:
    """Remove identities, and casts, shuffles, slices and concatenations that change nothing.

    The names of outputs stay: the tensor that takes an output's place takes its name. Where that is a network input or
    an output itself, the layer stays, since two names are needed.
    """
    network.refresh_shapes()
    identities = [layer for layer in network.layers if is_identity(layer)]
    removed = [layer for layer in identities if _bypass(network, layer)]
    network.remove_layers(removed)
    return bool(removed)


def is_identity(layer: Layer) -> bool:
    """Whether the layer's only output always equals its first input."""
    question = _QUESTIONS.get(type(layer))
    if question is None or layer.output_types or not layer.inputs or layer.inputs[0] is None:
        return False
    return question(layer, [None if tensor is None else tensor.spec for tensor in layer.inputs])


def _bypass(network: Network, layer: Layer) -> bool:
    """Let the layer's input take the place of its output, where that is possible."""
    source, output = layer.inputs[0], layer.outputs[0]
    if source is None or (output.is_network_output and (source.producer is None or source.is_network_output)):
        return False
    if output.is_network_output:
        network.replace_uses(output, source)
        name = output.name
        if source.dynamic_range is not None and output.dynamic_range is None:
            output.dynamic_range = source.dynamic_range
        copy_tensor_notes(output, source)
        network.rename_tensor(output, network.free_tensor_name(name))
        network.rename_tensor(source, name)
    else:
        network.replace_uses(output, source)
        source.dynamic_range = source.dynamic_range or output.dynamic_range
    if source.producer is not None:
        note_origin(source.producer, layer)
    return True


def _shuffle(layer: Shuffle, inputs: list[TensorSpec | None]) -> bool:
    x, target = inputs[0], inputs[1] if len(inputs) > 1 else None
    if x is None:
        return False
    dims = layer.reshape_dims
    if target is not None:
        if target.value is None:
            return False
        dims = tuple(int(dim) for dim in target.value)
    straight = tuple(range(x.rank))
    first, second = layer.first_transpose or straight, layer.second_transpose or straight
    if dims is None:
        return tuple(first[axis] for axis in second) == straight
    # One extent that is inferred is the input's own when all the others are: dims have at most one -1.
    keeps = len(dims) == x.rank and all(
        dim in (-1, extent) if dim or not layer.zero_is_placeholder else True
        for dim, extent in zip(dims, x.shape, strict=True)
    )
    return keeps and first == second == straight


def _slice(layer: Slice, inputs: list[TensorSpec | None]) -> bool:
    x = inputs[0]
    if x is None or any(spec is not None and spec.value is None for spec in inputs[1:4] + inputs[5:]):
        return False
    start, shape, stride = layer.window(x.shape, inputs)
    given = range(x.rank) if layer.axes is None else [axis % x.rank for axis in layer.axes]
    # A dynamic axis is kept whole only where it is not sliced at all.
    whole = all(extent >= 0 or (axis not in given and len(inputs) < 6) for axis, extent in enumerate(x.shape))
    return whole and shape == x.shape and not any(start) and all(step == 1 for step in stride)


_QUESTIONS: dict[type[Layer], Callable[[Any, list[TensorSpec | None]], bool]] = {
    Identity: lambda layer, inputs: True,
    Cast: lambda layer, inputs: inputs[0] is not None and layer.to_type is inputs[0].dtype,
    Concatenation: lambda layer, inputs: len(inputs) == 1,
    Shuffle: _shuffle,
    Slice: _slice,
    Squeeze: lambda layer, inputs: inputs[1] is not None and inputs[1].shape == (0,),
    Unsqueeze: lambda layer, inputs: inputs[1] is not None and inputs[1].shape == (0,),
}
