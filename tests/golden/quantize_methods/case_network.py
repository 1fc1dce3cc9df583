"""The cases of a golden file as one network: a quantized operator a case, each with inputs and an output of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.testing.operator_cases.operator_case import OperatorCase

Array = np.ndarray[Any, Any]
WEIGHTED = ("convolution", "deconvolution", "inner_product")


def network_of(cases: Sequence[OperatorCase], method: str) -> tuple[Network, dict[str, Array]]:
    """A network and what it is fed; output i is case i's."""
    network, feeds = Network("golden"), {}
    for index, case in enumerate(cases):
        tensors = []
        for position, values in enumerate(case.inputs):
            if position and case.operator in WEIGHTED:
                tensors.append(network.add_constant(values.shape, values).get_output(0))
                continue
            name = f"case{index}_input{position}"
            tensors.append(network.add_input(name, DataType.from_numpy(values.dtype), values.shape))
            feeds[name] = values
        layer = attrs.evolve(case.layer, name=f"case{index}", method=method)
        network.mark_output(network.add_layer(layer, tensors).get_output(0))
    return network, feeds
