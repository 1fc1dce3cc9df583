"""Layers that move data on the DLA: shuffle, slice and concatenation.

A shuffle is decomposed into a transpose, a reshape and a transpose, each within the limits. As long as the batch stays
in place, the C, H and W extents of these steps are those of the layer's input or output in another order; so
`dla.extents` and the rules below cover every step. A slice is static, along C, H and W, without strides.
"""

from __future__ import annotations

from typing import Any

from dryfit.attrs_classes import frozen
from dryfit.target.checks import Quantity, at_least, check, each, equals, one_of, parameter, software_is_at_least
from dryfit.target.limits import Finding, Question, rule, rules
from dryfit_dla import quantities
from dryfit_dla.limits import int8
from dryfit_dla.limits.documents import FALL_BACK, HEADERS, INT8, LAYERS, OPERATORS, REPORTS, RESHAPE
from dryfit_dla.quantities import input_shape

_SHUFFLE = f"{LAYERS}: Shuffle layer"
_JOINING = ("concatenation", "slice")


@frozen
class Part:
    """One of the steps that a shuffle is decomposed into.

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
    """The reshape and the transposes must not change the batch."""
    touched = [
        f"{part.name} {part.before} to {part.after}"
        for part in parts_of(question)
        if part.moves_batch or part.before[:1] != part.after[:1]
    ]
    return Finding(", ".join(touched), "the same first axis before and after each step") if touched else None


def _reshaped_ranks(question: Question) -> list[int]:
    return [len(part.after) for part in parts_of(question) if part.name == "reshape_dims"]


reshaped_rank = Quantity(
    "rank after the reshape", _reshaped_ranks, lambda question: ", ".join(map(str, _reshaped_ranks(question)))
)
"""None where there is no reshape."""


@check("reshape")
def reshapes(question: Question) -> Finding | None:
    """The layer reshapes its input."""
    return None if any(part.name == "reshape_dims" for part in parts_of(question)) else Finding("none", "some")


@check("neighbour")
def neighbours_join_nothing(question: Question) -> Finding | None:
    """The layers before and after it must not be slices or concatenations."""
    producer = question.inputs[0].producer
    neighbours = [*([producer] if producer else []), *(layer for layer, _ in question.outputs[0].consumers)]
    found = [f"{layer.kind} {layer.name!r}" for layer in neighbours if layer.kind in _JOINING]
    return Finding(", ".join(found), "layers of other kinds") if found else None


SHUFFLE = rules(
    "shuffle",
    rule(
        "shuffle.software",
        software_is_at_least("8.5"),
        source=f"{REPORTS}: 8.4 and older never place a shuffle on the DLA; the 8.4 guide does not list it",
        fidelity="inferred",
        remedy="Use software 8.5 or newer",
    ),
    rule("shuffle.rank", each(quantities.input_rank, equals(4)), source=_SHUFFLE, remedy=RESHAPE),
    rule(
        "shuffle.reshaped_rank",
        each(reshaped_rank, equals(4)),
        source=f"{_SHUFFLE}, the last step; {OPERATORS}: Flatten, Squeeze and Unsqueeze fall back",
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
        source=f"{REPORTS} of 8.5.2 and 8.6: a reshape next to a slice or concatenation is refused",
        fidelity="inferred",
        remedy="Slice or concatenate before reshaping, or use software 10",
    ),
)


_SLICE = f"{LAYERS}: Slice layer"
_HEADER = "ISliceLayer"
_BOUNDS = {1: "start", 2: "shape", 3: "stride", 5: "axes"}


@check("bounds")
def bounds_are_constant(question: Question) -> Finding | None:
    """Start, shape, stride and axes are known at build time."""
    inputs = question.layer.inputs
    given = {name: inputs[index] for index, name in _BOUNDS.items() if index < len(inputs)}
    computed = [
        f"{name} {tensor.name!r}"
        for name, tensor in given.items()
        if tensor is not None and question.spec(tensor).value is None
    ]
    return Finding(f"computed: {', '.join(computed)}", "constants") if computed else None


def _window(question: Question) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """(start, shape, stride), one value an axis of the input."""
    layer: Any = question.layer
    specs = [None if tensor is None else question.spec(tensor) for tensor in layer.inputs]
    found: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] = layer.window(input_shape(question), specs)
    return found


strides = Quantity("stride", lambda question: _window(question)[2])


@check("batch")
def batch_is_whole(question: Question) -> Finding | None:
    """The first axis must be kept whole."""
    start, shape, _ = _window(question)
    batch = input_shape(question)[:1]
    if not batch or (start[0] == 0 and shape[0] == batch[0]):
        return None
    return Finding(f"elements {start[0]} to {start[0] + shape[0] - 1} of {batch[0]}", "all elements")


@check("fill value")
def fill_is_zero(question: Question) -> Finding | None:
    """The fill value must be 0, from a constant that no other layer uses, or be omitted."""
    allowed = "0, from a constant used by this layer only"
    fill = question.layer.inputs[4] if len(question.layer.inputs) > 4 else None
    if fill is None:
        return None
    value = question.spec(fill).value
    if value is None:
        return Finding(f"computed: {fill.name!r}", allowed)
    if value.any():
        return Finding(f"{float(value.flat[0]):g}", allowed)
    return Finding(f"0, used by {len(fill.consumers)} layers", allowed) if len(fill.consumers) > 1 else None


SLICE = rules(
    "slice",
    rule(
        "slice.software",
        software_is_at_least("8.4"),
        source=f"{HEADERS} of 8.4, {_HEADER}",
        remedy="Use software 8.4 or newer",
    ),
    rule(
        "slice.bounds",
        bounds_are_constant,
        source=_SLICE,
        text="start, shape, stride and axes must be known at build time",
        remedy="Set the bounds as parameters or constants",
    ),
    rule("slice.rank", each(quantities.input_rank, equals(4)), source=_SLICE, remedy=RESHAPE),
    rule("slice.batch", batch_is_whole, when=bounds_are_constant, source=_SLICE, remedy=FALL_BACK),
    rule(
        "slice.stride",
        each(strides, equals(1)),
        when=bounds_are_constant,
        source=f"{HEADERS} since 8.4, {_HEADER}",
        remedy="Replace the strided slice with a 1x1 pooling or convolution with that stride",
    ),
    rule(
        "slice.mode",
        parameter("mode", one_of("STRICT_BOUNDS", "WRAP", "FILL")),
        source=f"{HEADERS} of 10.5, {_HEADER}",
        remedy="Pad in the convolution or pooling that follows",
    ),
    rule(
        "slice.mode_10_4",
        parameter("mode", one_of("STRICT_BOUNDS")),
        until="10.4",
        source=f"{HEADERS} of 8.4, 10.0 and 10.5, {_HEADER}: WRAP and FILL were added in 10.5",
        remedy="Use software 10.5 or newer, or pad in the convolution or pooling that follows",
    ),
    rule(
        "slice.fill",
        fill_is_zero,
        when=parameter("mode", equals("FILL")),
        source=f"{HEADERS} of 10.5, {_HEADER}",
        remedy="Fill with 0, from a constant used by this layer only, or by default",
    ),
)


_CONCATENATION = f"{LAYERS}: Concatenation layer"


@check("axis")
def joins_channels(question: Question) -> Finding | None:
    """Tensors must be concatenated along C, the third axis from the last."""
    layer: Any = question.layer
    rank = len(input_shape(question))
    return None if layer.axis % rank == rank - 3 else Finding(f"{layer.axis} of rank {rank}", f"{rank - 3}")


@check("shape of the inputs")
def spatial_extents_are_equal(question: Question) -> Finding | None:
    """All inputs must have the same H and W."""
    shapes = [question.spec(tensor).shape for tensor in question.inputs]
    return None if len({shape[-2:] for shape in shapes}) <= 1 else Finding(", ".join(map(str, shapes)), "equal H and W")


CONCATENATION = rules(
    "concatenation",
    rule("concatenation.axis", joins_channels, source=_CONCATENATION, remedy=FALL_BACK),
    rule(
        "concatenation.inputs",
        parameter(quantities.number_of_inputs, at_least(2)),
        source=_CONCATENATION,
        remedy="Remove the layer: with one input it has no effect",
    ),
    rule(
        "concatenation.spatial",
        spatial_extents_are_equal,
        source=_CONCATENATION,
        remedy="Resize or pad the inputs first",
    ),
    rule(
        "concatenation.rank",
        each(quantities.ranks, at_least(4)),
        source=f"{REPORTS}: lower-rank tensors are reshaped by a layer that the DLA does not support",
        fidelity="inferred",
        remedy=RESHAPE,
    ),
    rule(
        "concatenation.ranges",
        int8.all_are_equal,
        source=_CONCATENATION,
        precisions=INT8,
        remedy="Set the inputs and the output to the widest of their dynamic ranges",
    ),
)
