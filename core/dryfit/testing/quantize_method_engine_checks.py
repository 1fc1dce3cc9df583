"""Whether engines compute a quantize method's operators as its definitions do, bit for bit.

Each check returns what is wrong, one sentence a problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder
from dryfit.network.copying import copy_layer
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.plugins import registry
from dryfit.quantization.methods.method import QuantizeMethod
from dryfit.testing.operator_cases.operator_case import OperatorCase

Array = np.ndarray[Any, Any]
_ALL_OPERANDS = frozenset({"bias_add", "concat", "eltwise_sum"})
"""Operators whose inputs are all tensors of the network; of others all but the first are constants."""


def engine_problems(method: QuantizeMethod, cases: Sequence[OperatorCase]) -> list[str]:
    """Elements of an engine's output that are not what the definition gives.

    Args:
        method: found by its name.
        cases: that the method takes; each becomes an operator of one network.
    """
    network = Network()
    feeds: dict[str, Array] = {}
    for number, case in enumerate(cases):
        feeds |= _add(network, method, case, f"operator{number}")
    config = BuilderConfig()
    config.default_device_type = registry.host().device
    outputs = Builder().build_engine(network, config).create_execution_context().run(feeds)
    found = []
    for number, case in enumerate(cases):
        given = outputs[f"operator{number}_output"]
        (layer,) = (one for one in network.layers if one.name == f"operator{number}")
        (wanted,) = method.evaluate(layer, case.inputs)  # type: ignore[arg-type]
        if given.dtype != wanted.dtype or given.tobytes() != wanted.tobytes():
            differing = np.count_nonzero(given != wanted)
            found.append(f"{case.title}: {differing} of {wanted.size} elements of the engine differ")
    return found


def _add(network: Network, method: QuantizeMethod, case: OperatorCase, name: str) -> dict[str, Array]:
    """Add an operator, whose operands are inputs and whose weights and biases are constants; what to feed."""
    inputs: list[Tensor | None] = []
    feeds: dict[str, Array] = {}
    for index, array in enumerate(case.inputs):
        if array is None:
            inputs.append(None)
        elif index == 0 or case.operator in _ALL_OPERANDS:
            inputs.append(network.add_input(f"{name}_x{index}", DataType.from_numpy(array.dtype), array.shape))
            feeds[f"{name}_x{index}"] = array
        else:
            inputs.append(network.add_constant(array.shape, array).outputs[0])
    layer = copy_layer(case.layer)
    layer.name, layer.method = name, method.name
    network.mark_output(network.add_layer(layer, inputs).outputs[0])
    return feeds
