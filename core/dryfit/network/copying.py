"""Copies of networks that share weight arrays, optionally with the types on the caller's side.

In a weakly typed network, the type set on an input or output is the type in which the caller provides or reads it, and
affects nothing else: a network of FLOAT tensors whose input is provided in HALF still returns FLOAT, unless the type of
the output is also set.

Source: TensorRT `ITensor::setType`, which defines how inputs and outputs are exchanged; trtexec `--inputIOFormats` and
`--outputIOFormats`.
"""

from __future__ import annotations

from dryfit.network.control_flow import collected, has_boundaries
from dryfit.network.data_types import DataType
from dryfit.network.layer_copies import copy_layer, copy_tensor
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor


def copy_network(network: Network) -> Network:
    """Return a network with the same layers, tensors, names and notes. Weights are shared, not copied.

    Loops and conditionals that are written with boundary layers become one layer each.

    Raises:
        NetworkError: The shapes of the network cannot be inferred.
    """
    network = collected(network)
    network.refresh_shapes()
    copy = Network(network.name, network.flags)
    copy.metadata.update(network.metadata)
    copy.quantize_method = network.quantize_method
    copies = {id(tensor): copy_tensor(tensor, copy) for tensor in network.tensors}
    layers = [copy_layer(layer) for layer in network.layers]
    for layer, new in zip(network.layers, layers, strict=True):
        inputs = [None if tensor is None else copies[id(tensor)] for tensor in layer.inputs]
        outputs = [copies[id(tensor)] for tensor in layer.outputs]
        vars(new).update(inputs=inputs, outputs=outputs, network=copy, index=layer.index)
        for output in outputs:
            vars(output)["producer"] = new
        for index, tensor in enumerate(inputs):
            if tensor is not None:
                tensor.consumers.append((new, index))
    copy._fill([copies[id(tensor)] for tensor in network.inputs], layers)  # noqa: SLF001  a network is filled by its copying only
    copy.outputs = [copies[id(tensor)] for tensor in network.outputs]
    for tensor in network.debug_tensors:
        copy.mark_debug(copies[id(tensor)])
    if network.has_unfused_debug_tensors:
        copy.mark_unfused_tensors_as_debug_tensors()
    return copy


def with_network_types(network: Network) -> Network:
    """Return the network with inputs in its computation types: a copy, or itself if they already are."""
    if not given_types(network) and not has_boundaries(network):
        return network
    copy = copy_network(network)
    for tensor in copy.inputs:
        tensor.io_dtype = None
    return copy


def io_type(tensor: Tensor) -> DataType:
    """Return the type in which the caller provides an input of a network, or reads an output.

    For an output: the type set on it, otherwise the type set on its layer, otherwise the inferred type.
    """
    stated = tensor.producer and tensor.producer.output_types.get(tensor.output_index)
    return tensor.io_dtype or stated or tensor.dtype


def given_types(network: Network) -> dict[str, DataType]:
    """Return name to type for inputs that the caller provides in another type than the computation type."""
    return {tensor.name: tensor.io_dtype for tensor in network.inputs if tensor.io_dtype is not None}
