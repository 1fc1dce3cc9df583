"""Names of ONNX values for the tensors of a network."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.onnx.operand import Operand


def named_results(
    network: Network, operands: Sequence[Operand | None], outputs: Sequence[str], prefix: str, node_name: str
) -> list[Operand | None]:
    """The results of a node under their ONNX names, which the tensors that it made take too.

    Names inside a function carry the path of the call, because the function can be called again.
    """
    named: list[Operand | None] = []
    for operand, output in zip(operands, outputs, strict=False):
        if operand is None or not output:
            named.append(operand)
            continue
        if operand.tensor is not None and _is_made_by(operand.tensor, node_name):
            claim_name(network, operand.tensor, prefix + output)
        named.append(attrs.evolve(operand, name=prefix + output))
    return named


def claim_name(network: Network, tensor: Tensor, name: str) -> None:
    """Name a tensor as ONNX does; a tensor that has the name by chance gets another."""
    if tensor.name == name:
        return
    holder = network.find_tensor(name)
    if holder is not None:
        number = 1
        while network.find_tensor(f"{name}_{number}") is not None:
            number += 1
        network.rename_tensor(holder, f"{name}_{number}")
    network.rename_tensor(tensor, name)


def _is_made_by(tensor: Tensor, node_name: str) -> bool:
    """Whether a tensor is new from a node, or from a node inside a function whose call's path ends in a slash."""
    names = tensor.producer.onnx_nodes if tensor.producer is not None else ()
    return node_name in names or (node_name.endswith("/") and any(name.startswith(node_name) for name in names))
