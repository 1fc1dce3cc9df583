"""Shuffle on the DLA, which takes it apart: a transpose, a reshape and a transpose, each within the limits.

The extents of C, H and W of the parts are those of the layer's input or output in another order, as long as the batch
stays where it is; so `dla.extents` and the rules below judge every part.
"""

from __future__ import annotations

from typing import Any

import attrs

from dryfit.target.checks import Quantity, check, each, equals, software_is_at_least
from dryfit.target.limits import Finding, Question, rule, rules
from dryfit_dla import quantities
from dryfit_dla.limits.documents import FALL_BACK, LAYERS, OPERATORS, REPORTS, RESHAPE
from dryfit_dla.quantities import input_shape

_SHUFFLE = f"{LAYERS}: Shuffle layer"
_JOINING = ("concatenation", "slice")


@attrs.frozen
class Part:
    """One of the operations that a shuffle is taken apart into.

    Attributes:
        name: `first_transpose`, `reshape_dims` or `second_transpose`.
        before, after: the shapes.
        moves_batch: whether it is a transpose that puts another axis first.
    """

    name: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    moves_batch: bool = False


def parts_of(question: Question) -> list[Part]:
    """The operations that change something, in order."""
    layer: Any = question.layer
    shape = input_shape(question)
    first = _transposed(shape, layer.first_transpose)
    output = question.spec(question.outputs[0]).shape
    # The last transpose only reorders, so the shape before it follows from the output.
    order = layer.second_transpose
    reshaped = tuple(output[order.index(axis)] for axis in range(len(output))) if order else output
    found = [
        Part("first_transpose", shape, first, _moves_batch(layer.first_transpose)),
        Part("reshape_dims", first, reshaped),
        Part("second_transpose", reshaped, output, _moves_batch(order)),
    ]
    return [part for part in found if part.before != part.after or not _is_in_order(layer, part.name)]


def _transposed(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(shape[axis] for axis in order) if order else shape


def _moves_batch(order: tuple[int, ...]) -> bool:
    return bool(order) and order[0] != 0


def _is_in_order(layer: Any, name: str) -> bool:
    """Whether a part is no transpose, or one that keeps the order."""
    order = () if name == "reshape_dims" else getattr(layer, name)
    return tuple(order) == tuple(range(len(order)))


@check("batch")
def batch_is_untouched(question: Question) -> Finding | None:
    """The batch takes no part in the reshape or in a transpose."""
    touched = [
        f"{part.name} {part.before} to {part.after}"
        for part in parts_of(question)
        if part.moves_batch or part.before[:1] != part.after[:1]
    ]
    return Finding(", ".join(touched), "the same first axis before and after each of them") if touched else None


def _reshaped_ranks(question: Question) -> list[int]:
    return [len(part.after) for part in parts_of(question) if part.name == "reshape_dims"]


reshaped_rank = Quantity(
    "rank after the reshape", _reshaped_ranks, lambda question: ", ".join(map(str, _reshaped_ranks(question)))
)
"""None where there is no reshape."""


@check("reshape")
def reshapes(question: Question) -> Finding | None:
    """The layer reshapes, and does not only transpose."""
    return None if any(part.name == "reshape_dims" for part in parts_of(question)) else Finding("none", "some")


@check("neighbour")
def neighbours_join_nothing(question: Question) -> Finding | None:
    """No slice and no concatenation is before or behind it."""
    producer = question.inputs[0].producer
    neighbours = [*([producer] if producer else []), *(layer for layer, _ in question.outputs[0].consumers)]
    found = [f"{layer.kind} {layer.name!r}" for layer in neighbours if layer.kind in _JOINING]
    return Finding(", ".join(found), "other layers") if found else None


SHUFFLE = rules(
    "shuffle",
    rule(
        "shuffle.software",
        software_is_at_least("8.5"),
        source=f"{REPORTS}: none of 8.4 or older puts a shuffle on the DLA, and the 8.4 guide lists none",
        fidelity="inferred",
        remedy="Use software 8.5 or newer",
    ),
    rule("shuffle.rank", each(quantities.input_rank, equals(4)), source=_SHUFFLE, remedy=RESHAPE),
    rule(
        "shuffle.reshaped_rank",
        each(reshaped_rank, equals(4)),
        source=f"{_SHUFFLE}, of the last of its parts; {OPERATORS}: Flatten, Squeeze and Unsqueeze fall back",
        fidelity="inferred",
        remedy="Keep the tensor 4-D. A Flatten before a fully connected layer can be dropped if that layer becomes a "
        "convolution",
    ),
    rule("shuffle.batch", batch_is_untouched, source=_SHUFFLE, remedy=FALL_BACK),
    rule(
        "shuffle.neighbours",
        neighbours_join_nothing,
        when=reshapes,
        families="orin",
        since="8.5",
        until="8.6",
        source=f"{REPORTS} of 8.5.2 and 8.6: a reshape beside a slice or a concatenation is refused",
        fidelity="inferred",
        remedy="Slice or concatenate before reshaping, or use software 10",
    ),
)
