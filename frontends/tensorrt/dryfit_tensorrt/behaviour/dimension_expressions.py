"""Extents of a plugin's outputs as expressions of the extents of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dryfit_tensorrt.behaviour.objects import Base

Node = list[Any]
"""One step of an evaluation, as an engine file has it: ["constant", value], ["extent", input, axis], ["value", shape
input, index], ["size", output, opt, upper bound] or [operation, first, second]; the last numbers are indices of nodes.
"""

_OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "SUM": lambda a, b: a + b,
    "PROD": lambda a, b: a * b,
    "MAX": max,
    "MIN": min,
    "SUB": lambda a, b: a - b,
    "EQUAL": lambda a, b: int(a == b),
    "LESS": lambda a, b: int(a < b),
    "FLOOR_DIV": lambda a, b: a // b,
    "CEIL_DIV": lambda a, b: -(-a // b),
}


class IDimensionExpr(Base):
    """An extent: a number, or an expression that a build cannot evaluate."""

    def is_constant(self) -> bool:
        """Return whether the extent is a number."""
        return bool(self._kind == "constant")

    def get_constant_value(self) -> int:
        """Return the number of a constant; the smallest integer, as in TensorRT, for anything else."""
        return int(self._arguments[0]) if self.is_constant() else -(1 << 63)

    def is_size_tensor(self) -> bool:
        """Return whether an output of the plugin states the extent."""
        return bool(self._kind == "size")

    def __repr__(self) -> str:
        return f"IDimensionExpr({self._kind}, {', '.join(map(repr, self._arguments))})"


def expression(api: Any, kind: str, *arguments: Any) -> Any:
    """Return an expression; see `Node` for kinds and arguments, which are expressions where a node has indices."""
    made = object.__new__(api.IDimensionExpr)
    made._kind, made._arguments = kind, arguments
    return made


class IExprBuilder(Base):
    """Makes expressions."""

    def __init__(self) -> None:
        """Make a builder."""

    def constant(self, value: Any) -> Any:
        """Return a constant."""
        return expression(self._api, "constant", int(value))

    def operation(self, op: Any, first: Any, second: Any) -> Any:
        """Return an operation on two expressions; a constant if both are.

        Raises:
            TypeError: An operand is not an expression.
        """
        for operand in (first, second):
            if not isinstance(operand, self._api.IDimensionExpr):
                raise TypeError(
                    "operation(): incompatible function arguments: operands must be IDimensionExpr, such as "
                    f"expr_builder.constant({operand!r}) (found {type(operand).__name__})"
                )
        if first.is_constant() and second.is_constant():
            return self.constant(_computed(op.name, first.get_constant_value(), second.get_constant_value()))
        return expression(self._api, op.name, first, second)

    def declare_size_tensor(self, output_index: int, opt: Any, upper: Any) -> Any:
        """Return the extent that a scalar output of the plugin states after it ran.

        Args:
            output_index: index of that output.
            opt: extent to build for.
            upper: the largest extent, for which memory is allocated.
        """
        return expression(self._api, "size", int(output_index), opt, upper)


def _computed(name: str, first: int, second: int) -> int:
    if name.endswith("_DIV") and second == 0:
        raise ValueError(f"The dimension expression {name} divides {first} by 0")
    return _OPERATIONS[name](first, second)


class DimsExprs(Base, list[Any]):
    """The extents of a tensor as expressions: made of a rank, of expressions, or of other `DimsExprs`."""

    def __init__(self, dims: int | Iterable[Any] = 0) -> None:
        list.__init__(self, [None] * dims if isinstance(dims, int) else dims)

    def __len__(self) -> int:
        return list.__len__(self)

    def __getitem__(self, index: Any) -> Any:
        return list.__getitem__(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(value, self._api.IDimensionExpr):
            raise TypeError(
                "DimsExprs: incompatible function arguments: an extent must be an IDimensionExpr, such as "
                f"expr_builder.constant({value!r}) (found {type(value).__name__})"
            )
        list.__setitem__(self, index, value)


def extents_of(api: Any, index: int, shape: Sequence[int]) -> Any:
    """Return the extents of an input: numbers where they are known, expressions where they are -1."""
    return api.DimsExprs(
        [
            expression(api, "extent", index, axis) if extent < 0 else expression(api, "constant", int(extent))
            for axis, extent in enumerate(shape)
        ]
    )


def values_of(api: Any, index: int, shape: Sequence[int], value: Any) -> Any:
    """Return the values of a shape input: numbers where they are known."""
    count = int(np.prod(shape, dtype=np.int64))
    known = None if value is None else [int(one) for one in np.asarray(value).reshape(-1)]
    return api.DimsExprs(
        [
            expression(api, "value", index, place) if known is None else expression(api, "constant", known[place])
            for place in range(max(count, 0))
        ]
    )


def flattened(shapes: Iterable[Iterable[Any]]) -> tuple[list[Node], list[list[int]]]:
    """Return the steps that evaluate the extents of several tensors, and the index of the step of each extent."""
    nodes: list[Node] = []
    known: dict[int, int] = {}
    kept: list[Any] = []  # keeps the identities of the expressions for as long as they are keys

    def place(one: Any) -> int:
        if id(one) not in known:
            operands = [place(part) if hasattr(part, "_kind") else part for part in one._arguments]
            kept.append(one)
            nodes.append([one._kind, *operands])
            known[id(one)] = len(nodes) - 1
        return known[id(one)]

    return nodes, [[place(one) for one in shape] for shape in shapes]


def evaluated(
    nodes: Sequence[Node],
    extents: Sequence[Sequence[int]],
    values: Sequence[Any] = (),
    sizes: Mapping[int, int] | None = None,
) -> list[int | None]:
    """Return the value of each step; None where it is not known.

    Args:
        nodes: the steps.
        extents: shape of each input; -1 for an extent that is not known.
        values: array of each shape input; None where it is not known.
        sizes: index of an output to the extent that it states. None: the upper bounds are taken instead.
    """
    found: list[int | None] = []
    for kind, *arguments in nodes:
        if kind == "constant":
            found.append(int(arguments[0]))
        elif kind == "extent":
            extent = int(extents[arguments[0]][arguments[1]])
            found.append(None if extent < 0 else extent)
        elif kind == "value":
            array = values[arguments[0]] if arguments[0] < len(values) else None
            found.append(None if array is None else int(np.asarray(array).reshape(-1)[arguments[1]]))
        elif kind == "size":
            found.append(found[arguments[2]] if sizes is None else sizes.get(arguments[0]))
        else:
            first, second = found[arguments[0]], found[arguments[1]]
            found.append(None if first is None or second is None else _computed(kind, first, second))
    return found
