"""Layers that need not run: what is known before a run is computed once, and what changes nothing or nobody reads goes.

Identities that change the type become casts.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import numpy as np

from dryfit.network.layer import Layer
from dryfit.network.layer_copies import copy_tensor_notes, note_origin
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.movement import Concatenation, Identity, Squeeze, Unsqueeze
from dryfit.network.layers.quantization import Cast
from dryfit.network.layers.shape_inference import known_ints
from dryfit.network.layers.slice import Shuffle, Slice
from dryfit.network.network import Network
from dryfit.network.tensor import Array, Tensor, TensorSpec
from dryfit.passes.pipeline import network_pass
from dryfit.reference.executor import needed_layers
from dryfit.reference.inference import infer_with_values

LARGEST_FOLDED_ELEMENTS = 2**28
"""A result that is larger is computed by the engine instead. Our choice: real constants are smaller, and a network of
a few bytes can ask for any number."""

_KEPT = frozenset({"constant", "quantize", "dequantize", "dynamic_quantize", "plugin"})
"""Kinds that are not folded: a quantized weight stays quantized, and a plugin is not called at build time."""


@network_pass("fold-constants")
def fold_constants(network: Network) -> bool:
    """Replace every layer whose inputs are all known, and the shape of a static tensor, by constants.

    Tensors keep their names. A constant that nothing uses any more is left to `remove-dead-layers`.
    """
    return bool(fold_layers(network, _KEPT))


def fold_layers(network: Network, kept: Container[str]) -> Sequence[Layer]:
    """Replace layers whose inputs are all known by constants, but for some kinds; returns the layers that went.

    Args:
        network: is changed.
        kept: kinds that stay as they are; what reads them is not known either.
    """
    network.refresh_shapes()
    changed: dict[str, TensorSpec] = {}  # of tensors of which more is known now
    folded: list[Layer] = []
    values: dict[str, Array] = {}
    for layer in network.layers:
        is_open = is_changed = False
        for tensor in layer.inputs:
            if tensor is not None and tensor.name in changed:
                is_changed = True
            elif tensor is not None and tensor.spec.value is None:
                is_open = True
        outputs: Sequence[TensorSpec] = [tensor.spec for tensor in layer.outputs]
        # A layer that reads just what its outputs were inferred from gives the same again.
        if is_changed or not is_open:
            inputs = [None if tensor is None else changed.get(tensor.name) or tensor.spec for tensor in layer.inputs]
            outputs = infer_with_values(layer, inputs, 0 if layer.kind in kept else LARGEST_FOLDED_ELEMENTS)
            changed.update((tensor.name, spec) for tensor, spec in zip(layer.outputs, outputs, strict=True))
        if outputs and outputs[0].value is None:
            continue  # most layers
        known = {t.name: spec.value for t, spec in zip(layer.outputs, outputs, strict=True) if spec.value is not None}
        if layer.kind not in kept and 0 < len(outputs) == len(known):
            folded.append(layer)
            values.update(known)
    replace_by_constants(network, folded, values)
    network.refresh_shapes()  # and with them the order: the new constants stand at the end
    return folded


def replace_by_constants(network: Network, folded: Sequence[Layer], values: Mapping[str, Array]) -> None:
    """Put constants in the places of layers.

    Args:
        network: of the layers.
        folded: layers that read constants and each other only.
        values: name of each of their outputs to its contents.
    """
    gone = {id(layer) for layer in folded}
    replaced: list[tuple[Constant, str, str]] = []
    for layer in folded:
        for tensor in layer.outputs:
            if tensor.is_network_output or any(id(consumer) not in gone for consumer, _ in tensor.consumers):
                constant = _constant(network, layer, tensor, values[tensor.name])
                replaced.append((constant, layer.name, tensor.name))
    network.remove_layers(folded)
    for constant, layer_name, tensor_name in replaced:
        network.rename_layer(constant, layer_name)
        network.rename_tensor(constant.get_output(0), tensor_name)


def _constant(network: Network, layer: Layer, tensor: Tensor, value: Array) -> Constant:
    """A constant with the value in the tensor's place; the names follow when the layer is gone."""
    weights = np.ascontiguousarray(value).reshape(value.shape)
    constant = Constant(
        name=layer.name, metadata=layer.metadata, onnx_nodes=layer.onnx_nodes, shape=value.shape, weights=weights
    )
    network.add_layer(constant, [])
    output = constant.get_output(0)
    copy_tensor_notes(tensor, output)
    network.replace_uses(tensor, output)
    return constant


@network_pass("absorb-dimensions")
def absorb_dimensions(network: Network) -> bool:
    """Put the constant dimension inputs of shuffles, slices, resizes and fills into their parameters.

    The constants are left to `remove-dead-layers` where nothing else uses them.
    """
    changed = False
    for layer in network.layers:
        for index, parameter in layer.parameter_inputs.items():
            values = _constant_values(layer.get_input(index))
            if values is not None:
                setattr(layer, parameter, values)
                layer.set_input(index, None)
                changed = True
    return changed


def _constant_values(tensor: Tensor | None) -> tuple[int, ...] | None:
    if tensor is None or not isinstance(tensor.producer, Constant):
        return None
    return known_ints(tensor.producer.infer_outputs([])[0])


@network_pass("remove-dead-layers")
def remove_dead_layers(network: Network) -> bool:
    """Remove every layer that no output depends on. Inputs stay, also those that nothing uses."""
    if not network.outputs:
        return False
    needed = {id(layer) for layer in needed_layers(network)}
    dead = [layer for layer in network.layers if id(layer) not in needed]
    network.remove_layers(dead)
    return bool(dead)


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
