"""The types on the caller's side of a network, apart from those in which it computes.

In a weakly typed network the stated type of an input or output is how the caller gives or finds it, and changes nothing
else: a network of FLOAT tensors whose input is given in HALF still gives FLOAT, unless the output's own type is stated.

Source: TensorRT `ITensor::setType`, which for inputs and outputs says how they are exchanged; trtexec
`--inputIOFormats` and `--outputIOFormats`.
"""

from __future__ import annotations

from dryfit.network.copying import copy_network
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor


def with_network_types(network: Network) -> Network:
    """The network with inputs in the types in which it computes: a copy, or itself where they are given in those."""
    if not given_types(network):
        return network
    copy = copy_network(network)
    for tensor in copy.inputs:
        tensor.io_dtype = None
    return copy


def io_type(tensor: Tensor) -> DataType:
    """The type in which the caller gives an input of a network, or finds an output.

    Of an output: the one that was stated for it, or else for its layer, or else the one that the network gives.
    """
    stated = tensor.producer and tensor.producer.output_types.get(tensor.output_index)
    return tensor.io_dtype or stated or tensor.dtype


def given_types(network: Network) -> dict[str, DataType]:
    """Name to type of the inputs that the caller gives in another type than the network computes on."""
    return {tensor.name: tensor.io_dtype for tensor in network.inputs if tensor.io_dtype is not None}
