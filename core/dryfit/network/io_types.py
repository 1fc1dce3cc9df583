"""The types on the caller's side of a network, apart from those in which it computes.

In a weakly typed network the stated type of an input or output is how the caller gives or finds it, and changes nothing
else: a network of FLOAT tensors whose input is given in HALF still gives FLOAT, unless the output's own type is stated.

Source: TensorRT `ITensor::setType`, which for inputs and outputs says how they are exchanged; trtexec
`--inputIOFormats` and `--outputIOFormats`.
"""

from __future__ import annotations

from dryfit.errors import NetworkError
from dryfit.network.copying import copy_network
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor


def with_network_types(network: Network) -> Network:
    """The network in the types in which it computes: a copy, or itself where its inputs are given in no others.

    Where layers were added that only take an input in the type in which it is given, that is the network's type.
    """
    if all(tensor.network_dtype is None for tensor in network.inputs):
        return network
    copy = copy_network(network)
    for tensor in copy.inputs:
        if tensor.network_dtype is not None:
            tensor.dtype = tensor.network_dtype
    try:
        copy.refresh_shapes()
    except NetworkError:
        return network
    return copy


def io_type(tensor: Tensor) -> DataType:
    """The type in which the caller gives an input of a network, or finds an output.

    Of an output: the one that was stated for it, or else for its layer, or else the one that the network gives.
    """
    producer = tensor.producer
    if producer is None:
        return tensor.dtype
    stated = tensor.io_dtype or producer.output_types.get(tensor.output_index)
    return stated or with_network_types(tensor.network).tensor(tensor.name).dtype


def given_types(network: Network) -> dict[str, DataType]:
    """Name to type of the inputs that the caller gives in another type than the network computes on."""
    if with_network_types(network) is network:
        return {}
    return {tensor.name: tensor.dtype for tensor in network.inputs if tensor.network_dtype is not None}
