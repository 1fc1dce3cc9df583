"""Nodes behind refused ones: they are looked at as far as can be said without the values that do not exist.

So one import names all that has to be changed in a model, and not only the first node of each chain. Such a node is
tried in a network of its own. What it asks of a value that nothing is known of stops the trial; what it refuses before
that, it would refuse with any value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, cast

import attrs
from onnx import TensorProto, ValueInfoProto

from dryfit.network.data_types import DataType
from dryfit.network.layers.generators import Constant
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.onnx.operand import Array, Operand
from dryfit.onnx.problems import ErrorCode, NodeRefusedError
from dryfit.onnx.tensors import DATA_TYPES

GUESSED_RANKS = (4, 3, 2)
"""Numbers of axes that a value of unknown shape is tried with, to see the attributes that are read after its shape."""


class UnseenValueError(Exception):
    """A node asked for the shape, type or contents of a value that is not known. It never leaves the importer."""


class _UnknownSpec:
    """In the place of the spec of a value that nothing is known of."""

    def __getattr__(self, name: str) -> NoReturn:
        raise UnseenValueError(name)


@attrs.define(eq=False)
class UnseenOperand(Operand):
    """A value behind a refused node. Its tensor is in no network; asking an unknown one for its spec's facts raises."""


def unseen_operand(name: str, spec: TensorSpec | None) -> UnseenOperand:
    """A value behind a refused node; `spec` is what can be said of it.

    A short list of integers may be a shape or axes, whose contents decide: it stays unknown, whatever its spec.
    """
    decides = spec is not None and spec.value is None and spec.rank < 2 and spec.dtype.is_integer
    return UnseenOperand(name, cast("TensorSpec", _UnknownSpec()) if spec is None or decides else spec)


def stated_spec(info: ValueInfoProto) -> TensorSpec | None:
    """What a model says of one of its values, or None where it does not say type and number of axes."""
    kind = info.type.tensor_type
    if not info.type.HasField("tensor_type") or not kind.HasField("shape") or kind.elem_type not in DATA_TYPES:
        return None
    extents = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim]
    return TensorSpec(tuple(max(extent, -1) for extent in extents), DATA_TYPES[kind.elem_type])


class TrialNetwork:
    """The network that one node behind a refused one is tried in.

    Args:
        read: the contents of a tensor of the model.
    """

    def __init__(self, read: Callable[[TensorProto], Array]) -> None:
        self.network = Network("trial")
        self._read = read
        self._tensors: dict[int, Tensor] = {}
        self._operands: list[Operand] = []

    def array_of(self, tensor: TensorProto) -> Array:
        """The contents of a tensor of the model."""
        return self._read(tensor)

    def tensor_of(self, operand: Operand) -> Tensor:
        """A tensor of this network for an operand from anywhere."""
        if operand.tensor is not None and operand.tensor.network is self.network:
            return operand.tensor
        if id(operand) not in self._tensors:
            self._operands.append(operand)  # keeps its identity from being given to another
            if operand.value is not None:
                constant = self.network.add_layer(Constant(weights=operand.value, shape=operand.shape), [])
                self._tensors[id(operand)] = constant.outputs[0]
            else:
                name = self.network.free_tensor_name(operand.name)
                self._tensors[id(operand)] = self.network.add_input(name, operand.dtype, operand.shape)
        return self._tensors[id(operand)]


Trial = Callable[[Sequence[Operand | None]], Sequence[Operand]]
"""Imports the node with these inputs into a new `TrialNetwork`."""


def looked_at_behind(trial: Trial, inputs: Sequence[Operand | None]) -> list[UnseenOperand]:
    """The results of a node some of whose inputs are unseen.

    Raises:
        UnseenValueError: it could not be looked at to the end.
        DryfitError: it cannot be imported, whatever it would have been given.
    """
    unseen = {operand.name for operand in inputs if isinstance(operand, UnseenOperand)}
    try:
        results = trial(inputs)
    except NodeRefusedError as error:
        # What the missing node would have made may be known, and may have no dynamic dimension.
        if error.code is ErrorCode.UNSUPPORTED_NODE_DYNAMIC or error.needs_constants & unseen:
            raise UnseenValueError(str(error)) from error
        raise
    except UnseenValueError:
        _try_guesses(trial, inputs)
        raise
    return [
        operand if isinstance(operand, UnseenOperand) else unseen_operand(operand.name, operand.spec)
        for operand in results
    ]


def _try_guesses(trial: Trial, inputs: Sequence[Operand | None]) -> None:
    """Raise what a node refuses of its attributes with made-up values; everything else comes of making them up."""
    for rank in GUESSED_RANKS:
        guess = TensorSpec((-1,) * rank, DataType.FLOAT)
        try:
            trial([_guessed(operand, guess) for operand in inputs])
        except NodeRefusedError as error:
            if error.code is ErrorCode.UNSUPPORTED_NODE_ATTR:
                raise
        except Exception:  # noqa: BLE001, S112  of a value that does not exist, anything may be wrong
            continue


def _guessed(operand: Operand | None, guess: TensorSpec) -> Operand | None:
    is_unknown = operand is not None and isinstance(operand.spec, _UnknownSpec)
    return Operand(operand.name, guess) if operand is not None and is_unknown else operand
