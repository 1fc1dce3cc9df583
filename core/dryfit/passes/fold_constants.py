"""What is known before a run is computed once: constants, dimensions that are inputs; and what nobody reads goes."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np

from dryfit.network.copying import copy_tensor_notes
from dryfit.network.layer import Layer
from dryfit.network.layers.generators import Constant
from dryfit.network.layers.shape_inference import known_ints
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
    specs: dict[str, TensorSpec] = {tensor.name: tensor.spec for tensor in network.inputs}
    folded: list[Layer] = []
    values: dict[str, Array] = {}
    for layer in network.layers:
        inputs = [None if tensor is None else specs[tensor.name] for tensor in layer.inputs]
        if any(spec is not None and spec.value is None for spec in inputs) and _is_as_stated(layer, inputs):
            outputs: Sequence[TensorSpec] = [tensor.spec for tensor in layer.outputs]
        else:
            outputs = infer_with_values(layer, inputs, 0 if layer.kind in kept else LARGEST_FOLDED_ELEMENTS)
        specs.update((tensor.name, spec) for tensor, spec in zip(layer.outputs, outputs, strict=True))
        known = {t.name: spec.value for t, spec in zip(layer.outputs, outputs, strict=True) if spec.value is not None}
        if layer.kind not in kept and len(known) == len(outputs):
            folded.append(layer)
            values.update(known)
    replace_by_constants(network, folded, values)
    network.refresh_shapes()  # and with them the order: the new constants stand at the end
    return folded


def _is_as_stated(layer: Layer, inputs: Sequence[TensorSpec | None]) -> bool:
    """Whether a layer reads just what its outputs were inferred from, so that inferring them again gives the same."""
    return all(tensor is None or tensor.spec is spec for tensor, spec in zip(layer.inputs, inputs, strict=True))


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
