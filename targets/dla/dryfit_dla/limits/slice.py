"""Slice on the DLA: static, of C, H and W, without strides."""

from __future__ import annotations

from typing import Any

from dryfit.target.checks import Quantity, check, each, equals, one_of, parameter, software_is_at_least
from dryfit.target.limits import Finding, Question, rule, rules
from dryfit_dla import quantities
from dryfit_dla.limits.documents import FALL_BACK, HEADERS, LAYERS, RESHAPE
from dryfit_dla.quantities import input_shape

_SLICE = f"{LAYERS}: Slice layer"
_HEADER = "ISliceLayer"
_BOUNDS = {1: "start", 2: "shape", 3: "stride", 5: "axes"}


@check("bounds")
def bounds_are_constant(question: Question) -> Finding | None:
    """Start, shape, stride and axes are known when the network is built."""
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
    """The first axis is kept whole."""
    start, shape, _ = _window(question)
    batch = input_shape(question)[:1]
    if not batch or (start[0] == 0 and shape[0] == batch[0]):
        return None
    return Finding(f"elements {start[0]} to {start[0] + shape[0] - 1} of {batch[0]}", "all of them")


@check("fill value")
def fill_is_zero(question: Question) -> Finding | None:
    """The fill value is 0, of a constant that nothing else uses, or is left out."""
    allowed = "0, of a constant for this layer alone"
    fill = question.layer.inputs[4] if len(question.layer.inputs) > 4 else None
    if fill is None:
        return None
    value = question.spec(fill).value
    if value is None:
        return Finding(f"computed: {fill.name!r}", allowed)
    if value.any():
        return Finding(f"{float(value.flat[0]):g}", allowed)
    return Finding(f"0, which {len(fill.consumers)} layers use", allowed) if len(fill.consumers) > 1 else None


SLICE = rules(
    "slice",
    rule(
        "slice.software",
        software_is_at_least("8.4"),
        source=f"{HEADERS} of 8.4, {_HEADER}",
        remedy="Use software 8.4 or newer",
    ),
    rule("slice.bounds", bounds_are_constant, source=_SLICE, remedy="Give the bounds as parameters or constants"),
    rule("slice.rank", each(quantities.input_rank, equals(4)), source=_SLICE, remedy=RESHAPE),
    rule("slice.batch", batch_is_whole, when=bounds_are_constant, source=_SLICE, remedy=FALL_BACK),
    rule(
        "slice.stride",
        each(strides, equals(1)),
        when=bounds_are_constant,
        source=f"{HEADERS} since 8.4, {_HEADER}",
        remedy="A strided slice is a 1x1 pooling or convolution with that stride",
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
        source=f"{HEADERS} of 8.4, 10.0 and 10.5, {_HEADER}: WRAP and FILL came with 10.5",
        remedy="Use software 10.5 or newer, or pad in the convolution or pooling that follows",
    ),
    rule(
        "slice.fill",
        fill_is_zero,
        when=parameter("mode", equals("FILL")),
        source=f"{HEADERS} of 10.5, {_HEADER}",
        remedy="Fill with 0, and give the layer a constant of its own or none",
    ),
)
