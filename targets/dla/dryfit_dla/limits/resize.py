"""Resize on the DLA: whole-number scales of H and W."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dryfit.network.data_types import DataType
from dryfit.target.checks import Quantity, check, each, equals, one_of, parameter, software_is_at_least, whole_between
from dryfit.target.limits import Finding, Question, rule, rules
from dryfit_dla import quantities
from dryfit_dla.limits.documents import FALL_BACK, HEADERS, INT8, LAYERS, RESHAPE
from dryfit_dla.limits.int8 import runs_in_fp16
from dryfit_dla.quantities import input_shape, range_of

_RESIZE = f"{LAYERS}: Resize layer"
_SAMPLING = "IResizeLayer: coordinate transformation, selector and rounding"
_SAMPLING_8_2 = ("ASYMMETRIC", "FORMULA", "FLOOR")
_NEAREST = (_SAMPLING_8_2, ("HALF_PIXEL", "FORMULA", "HALF_DOWN"), ("HALF_PIXEL", "FORMULA", "HALF_UP"))
_LINEAR = (("HALF_PIXEL", "FORMULA"), ("HALF_PIXEL", "UPPER"))
_is_nearest = parameter("resize_mode", equals("NEAREST"))
_is_linear = parameter("resize_mode", equals("LINEAR"))


def scales_of(question: Question) -> list[float]:
    """Output extent divided by input extent, one an axis; the layer's scales where they are given. [] if not known.

    Extents that were given instead of scales count by their ratio: a whole one is the same resize.
    """
    layer: Any = question.layer
    given = question.layer.inputs[2] if len(question.layer.inputs) > 2 else None
    if given is not None and question.spec(given).value is not None:
        return [float(scale) for scale in question.spec(given).value.reshape(-1)]  # type: ignore[union-attr]
    if layer.scales:
        return [float(scale) for scale in layer.scales]
    extents, resized = input_shape(question), question.spec(question.outputs[0]).shape
    if min(extents, default=0) < 1 or min(resized) < 0:
        return []
    return [output / extent for output, extent in zip(resized, extents, strict=True)]


def _shown(scales: Sequence[float]) -> str:
    return f"({', '.join(f'{scale:g}' for scale in scales)})"


scale_count = Quantity("number of scales", lambda question: len(scales_of(question)))
spatial_scales = Quantity(
    "scale of H and W", lambda question: scales_of(question)[2:], lambda question: _shown(scales_of(question)[2:])
)
outer_scales = Quantity(
    "scale of batch and channels",
    lambda question: scales_of(question)[:2],
    lambda question: _shown(scales_of(question)[:2]),
)


def _sampling(question: Question) -> tuple[str, ...]:
    layer: Any = question.layer
    words = (layer.coordinate_transformation, layer.selector_for_single_pixel, layer.nearest_rounding)
    return tuple(word.name for word in words)


def _listed(combinations: tuple[tuple[str, ...], ...]) -> str:
    return " or ".join(" ".join(words) for words in combinations)


@check("sampling")
def nearest_sampling_is_supported(question: Question) -> Finding | None:
    """Sampling must be ASYMMETRIC FORMULA FLOOR, or HALF_PIXEL FORMULA with HALF_DOWN or HALF_UP."""
    found = _sampling(question)
    return None if found in _NEAREST else Finding(" ".join(found), _listed(_NEAREST))


@check("sampling")
def linear_sampling_is_supported(question: Question) -> Finding | None:
    """Sampling must be HALF_PIXEL with FORMULA or UPPER."""
    found = _sampling(question)[:2]
    return None if found in _LINEAR else Finding(" ".join(found), _listed(_LINEAR))


@check("sampling")
def sampling_is_that_of_8_2(question: Question) -> Finding | None:
    """Sampling must be ASYMMETRIC FORMULA FLOOR."""
    found = _sampling(question)
    return None if found == _SAMPLING_8_2 else Finding(" ".join(found), " ".join(_SAMPLING_8_2))


@check("output size")
def size_is_given_once(question: Question) -> Finding | None:
    """The output size must be given by scales or by extents, not by both."""
    layer: Any = question.layer
    if not (layer.shape and layer.scales):
        return None
    return Finding(f"extents {layer.shape} and scales {_shown(layer.scales)}", "one of them")


@check("dynamic range")
def input_range_is_larger(question: Question) -> Finding | None:
    """The dynamic range of the input is larger than that of the output."""
    before, after = range_of(question.inputs[0]), range_of(question.outputs[0])
    if before is not None and after is not None and before > after:
        return None
    return Finding(f"{before} to {after}", "a larger spatial size before the layer")


RESIZE = rules(
    "resize",
    rule(
        "resize.software",
        software_is_at_least("8.2"),
        source=f"{HEADERS} of 8.2, IResizeLayer; those of 7.1 do not support it on the DLA",
        remedy="Use software 8.2 or newer",
    ),
    rule("resize.rank", each(quantities.input_rank, equals(4)), source=_RESIZE, remedy=RESHAPE),
    rule(
        "resize.scales",
        parameter(scale_count, equals(4)),
        source=_RESIZE,
        remedy="Specify scales, or output extents that are known at build time",
    ),
    rule("resize.outer_scales", each(outer_scales, equals(1)), source=_RESIZE, remedy=FALL_BACK),
    rule("resize.mode", parameter("resize_mode", one_of("NEAREST", "LINEAR")), source=_RESIZE, remedy=FALL_BACK),
    rule(
        "resize.mode_8_3",
        parameter("resize_mode", one_of("NEAREST")),
        until="8.3",
        source=f"{HEADERS} of 8.2 and 8.4, IResizeLayer",
        remedy="Use software 8.4 or newer",
    ),
    rule(
        "resize.nearest_scales",
        each(spatial_scales, whole_between(1, 32)),
        when=_is_nearest,
        source=_RESIZE,
        remedy="Use whole-number scales; downsample with pooling",
    ),
    rule(
        "resize.linear_scales",
        each(spatial_scales, whole_between(1, 4)),
        when=_is_linear,
        source=_RESIZE,
        remedy="Use whole-number scales of at most 4, in several steps if needed; downsample with pooling",
    ),
    rule(
        "resize.nearest_sampling",
        nearest_sampling_is_supported,
        when=_is_nearest,
        since="8.4",
        source=f"{HEADERS} since 8.4, {_SAMPLING}",
        remedy="For whole-number scales, ASYMMETRIC with FLOOR selects the same elements as HALF_PIXEL with HALF_DOWN",
    ),
    rule(
        "resize.linear_sampling",
        linear_sampling_is_supported,
        when=_is_linear,
        since="8.4",
        source=f"{HEADERS} since 8.4, {_SAMPLING}",
        remedy="Export the model with half-pixel coordinates (without align_corners)",
    ),
    rule(
        "resize.sampling_8_3",
        sampling_is_that_of_8_2,
        when=_is_nearest,
        until="8.3",
        source=f"{HEADERS} of 8.2, {_SAMPLING}",
        remedy="Use ASYMMETRIC with FLOOR, or software 8.4 or newer",
    ),
    rule(
        "resize.one_size",
        size_is_given_once,
        source="TensorRT IResizeLayer accepts only one of them",
        remedy="Specify scales or output extents, not both",
    ),
    rule(
        "resize.antialias",
        parameter("antialias", equals(False)),
        source="TensorRT IResizeLayer has no antialiasing",
        remedy="Turn antialias off",
    ),
    rule(
        "resize.int8_promotion",
        runs_in_fp16,
        when=(_is_linear, input_range_is_larger),
        precisions=INT8,
        source=_RESIZE,
        severity="note",
        promotes_to=DataType.HALF,
        remedy="If latency matters, set the output's dynamic range to the input's",
    ),
)
