"""Verification that a network is complete and consistent: all problems as records, or one error that lists them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import DryfitError, NetworkError
from dryfit.network.control_flow import collected
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer, with_bodies
from dryfit.network.network import Network
from dryfit.network.operand_types import operand_type_problem
from dryfit.network.tensor import TensorSpec


@frozen
class NetworkProblem:
    """One problem of a network.

    Attributes:
        rule: stable name of the violated rule, such as `network.outputs`.
        message: description of the problem.
        where: the layer or tensor with the problem.
        found, allowed, remedy: as in `DryfitError`; None if not applicable.
    """

    rule: str
    message: str
    where: str
    found: Any = None
    allowed: Any = None
    remedy: str | None = None

    def error(self) -> NetworkError:
        """Return the problem as an exception."""
        return NetworkError(self.message, where=self.where, found=self.found, allowed=self.allowed, remedy=self.remedy)


def check(network: Network) -> None:
    """Raise an error if `verify` finds problems.

    Raises:
        NetworkError: The network has problems; the message lists all of them.
    """
    problems = verify(network)
    if len(problems) == 1:
        raise problems[0].error()
    if problems:
        lines = "".join(f"\n  {problem.error()}" for problem in problems)
        raise NetworkError(
            f"{len(problems)} problems:{lines}", where=f"network {network.name!r}", remedy="Fix the listed problems"
        )


def verify(network: Network) -> list[NetworkProblem]:
    """Return all problems that prevent the network from being built. An unused input is not a problem."""
    where = f"network {network.name!r}"
    problems = []
    if not network.outputs:
        problems.append(
            NetworkProblem("network.outputs", "The network has no output", where, remedy="Call `mark_output`")
        )
    problems += _names(network, where)
    try:
        network.sort()
    except DryfitError as error:
        return [*problems, _record("network.order", error, where)]
    wrong = [] if network.knows_shapes else list(_layers(network))
    problems += wrong or _operand_types(network)
    for layer in with_bodies(network.layers):
        problems += _weights(layer)
    problems += _dimension_names(network)
    if not problems:
        try:
            collected(network)
        except DryfitError as error:
            problems.append(_record("network.control_flow", error, where))
    return problems


def _names(network: Network, where: str) -> Iterator[NetworkProblem]:
    for what, names in (
        ("tensors", [tensor.name for tensor in network.tensors]),
        ("layers", [layer.name for layer in network.layers]),
    ):
        for name, count in Counter(names).items():
            if count > 1 or not name:
                message = f"Names of {what} must be unique" if name else f"{what} must have a name"
                yield NetworkProblem("network.names", message, where, found=name, remedy="Rename one of them")


def _layers(network: Network) -> Iterator[NetworkProblem]:
    """What inference finds, layer by layer; what follows from a problem that is told already is not told again."""
    specs: dict[int, TensorSpec] = {id(tensor): tensor._spec for tensor in network.inputs if tensor._spec}  # noqa: SLF001
    for layer in network.layers:
        where = f"layer {layer.name!r} ({layer.kind})"
        if any(tensor is not None and id(tensor) not in specs for tensor in layer.ordering_inputs):
            foreign = [t.name for t in layer.connected_inputs if t.network is not network]
            if foreign:
                yield NetworkProblem("layer.inputs", "An input belongs to another network", where, found=foreign[0])
            continue
        inputs = [None if tensor is None else specs[id(tensor)] for tensor in layer.ordering_inputs]
        try:
            outputs = layer.infer_outputs(inputs)
        except DryfitError as error:
            yield _record("layer.parameters", error, where)
            continue
        specs.update((id(tensor), spec) for tensor, spec in zip(layer.outputs, outputs, strict=True))


def _operand_types(network: Network) -> Iterator[NetworkProblem]:
    """Operands of different types in a strongly typed network, whose layers are right in all other respects."""
    for layer in network.layers if network.is_strongly_typed else ():
        problem = operand_type_problem(layer, layer.inputs)
        if problem is not None:
            yield _record("layer.operand_types", problem, layer.where)


def _weights(layer: Layer) -> Iterator[NetworkProblem]:
    """Kernels that are missing, and weights that are NaN or infinite. Constants may be: a mask holds minus infinity."""
    if layer.kind == "constant":
        return
    if vars(layer).get("kernel", layer) is None and layer.get_input(1) is None:
        where = f"layer {layer.name!r} ({layer.kind})"
        remedy = "Set `kernel`, or connect input 1"
        yield NetworkProblem("layer.weights", "The layer has no kernel", where, remedy=remedy)
    for field in layer.parameters():
        array = getattr(layer, field.name)
        if not isinstance(array, np.ndarray) or not DataType.from_numpy(array.dtype).is_floating_point:
            continue
        plain = array if array.dtype.kind == "f" else array.astype(np.float32)
        finite = np.isfinite(plain)
        if not finite.all():
            yield NetworkProblem(
                "layer.weights",
                "Weights must be finite",
                f"layer {layer.name!r} ({layer.kind}), {field.name}",
                found=f"{finite.size - np.count_nonzero(finite)} of {finite.size}, such as {plain[~finite].flat[0]}",
            )


def _dimension_names(network: Network) -> Iterator[NetworkProblem]:
    extents: dict[str, tuple[int, str]] = {}
    for tensor in network.inputs:
        for axis, name in tensor.dimension_names.items():
            shape = () if tensor._spec is None else tensor._spec.shape  # noqa: SLF001  shapes elsewhere may be wrong
            extent = shape[axis] if 0 <= axis < len(shape) else None
            where = f"input {tensor.name!r}"
            if extent is None:
                yield NetworkProblem(
                    "network.dimensions", "The named dimension is not an axis of the input", where, found=axis
                )
                continue
            other, first = extents.setdefault(name, (extent, where))
            if -1 not in (other, extent) and other != extent:
                yield NetworkProblem(
                    "network.dimensions",
                    f"Dimensions named {name!r} must be equal",
                    where,
                    found=extent,
                    allowed=f"{other}, the value in {first}",
                    remedy="Rename one of the dimensions, or give both the same extent",
                )


def _record(rule: str, error: DryfitError, where: str) -> NetworkProblem:
    return NetworkProblem(rule, error.message, error.where or where, error.found, error.allowed, error.remedy)
