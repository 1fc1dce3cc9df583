"""Deconvolution on the DLA."""

from __future__ import annotations

from typing import Any

from dryfit.network.data_types import DataType
from dryfit.target.checks import check, each, either, equals, outside, parameter
from dryfit.target.limits import Finding, Question, rule, rules
from dryfit_dla import quantities
from dryfit_dla.convolution_buffer import BANKS, BufferUse
from dryfit_dla.limits.convolution import (
    estimated_use,
    has_two_axes,
    input_channels_fit,
    output_maps_fit,
    weights_are_known,
)
from dryfit_dla.limits.documents import FALL_BACK, HEADERS, LAYERS, OPERATORS
from dryfit_dla.quantities import input_shape

_DECONVOLUTION = f"{LAYERS}: Deconvolution layer"
_LARGEST, _LONG = 32, (64, 96, 128)


def _unsupported_extents(values: tuple[int, ...], largest: int, long: tuple[int, ...]) -> Finding | None:
    """A window or stride that the device does not support."""
    least, most = min(values), max(values)
    if (least >= 1 and most <= largest) or (len(values) == 2 and least == 1 and most in long):
        return None
    return Finding(str(values), f"each 1 to {largest}, or 1 on one axis and {either(long)} on the other")


@check("kernel_size_nd")
def kernel_extents_are_supported(
    question: Question, *, largest: int = _LARGEST, long: tuple[int, ...] = _LONG
) -> Finding | None:
    """The kernel must be 1 to {largest} on each axis, or 1 on one axis and {long} on the other."""
    layer: Any = question.layer
    return _unsupported_extents(layer.kernel_size_nd, largest, long)


@check("stride_nd")
def strides_are_supported(
    question: Question, *, largest: int = _LARGEST, long: tuple[int, ...] = _LONG
) -> Finding | None:
    """The stride must be 1 to {largest} on each axis, or 1 on one axis and {long} on the other."""
    layer: Any = question.layer
    return _unsupported_extents(layer.stride_nd, largest, long)


@check("kernel_size_nd")
def kernel_is_square(question: Question) -> Finding | None:
    """The kernel is square."""
    layer: Any = question.layer
    return None if len(set(layer.kernel_size_nd)) == 1 else Finding(str(layer.kernel_size_nd), "a square")


@check("stride_nd")
def stride_is_square(question: Question) -> Finding | None:
    """The stride is the same on both axes."""
    layer: Any = question.layer
    return None if len(set(layer.stride_nd)) == 1 else Finding(str(layer.stride_nd), "a square")


@check("stride_nd")
def stride_is_the_kernel(question: Question) -> Finding | None:
    """The stride must equal the kernel size on each axis."""
    layer: Any = question.layer
    if layer.stride_nd == layer.kernel_size_nd:
        return None
    return Finding(str(layer.stride_nd), f"{layer.kernel_size_nd}, the kernel size")


def buffer_use(question: Question) -> BufferUse | None:
    """What the open compiler puts into the convolution buffer; None where the shape is not known.

    It splits a deconvolution into one convolution of stride 1 for each place in a stride; their kernels are the
    kernel's extents divided by the stride, rounded up.
    """
    layer: Any = question.layer
    shape = input_shape(question)
    if len(shape) != 4 or min(shape[1:]) < 1:
        return None
    kernel = [-(-extent // stride) for extent, stride in zip(layer.kernel_size_nd, layer.stride_nd, strict=True)]
    return BufferUse(
        channels=shape[1],
        height=shape[2],
        width=shape[3],
        kernel_height=kernel[0],
        kernel_width=kernel[1],
        output_maps=layer.num_output_maps,
        element_bytes=1 if question.precision is DataType.INT8 else 2,
    )


@check("use of the convolution buffer")
def compiler_estimate_fits(question: Question, *, banks: int = BANKS) -> Finding | None:
    """The open NVDLA compiler must be able to fit the kernel's parts and the input into its {banks} banks."""
    use = buffer_use(question)
    return None if use is None else estimated_use(use, banks)


DECONVOLUTION = rules(
    "deconvolution",
    has_two_axes("deconvolution", _DECONVOLUTION),
    rule("deconvolution.kernel", kernel_extents_are_supported, source=_DECONVOLUTION, remedy=FALL_BACK),
    rule("deconvolution.stride", strides_are_supported, source=_DECONVOLUTION, remedy=FALL_BACK),
    rule(
        "deconvolution.square_kernel",
        each("kernel_size_nd", outside(23, 32)),
        when=kernel_is_square,
        since="8.2",
        source=f"{_DECONVOLUTION}: disabled because compilation takes long",
        remedy="Resize and convolve instead, or zero-pad one side of the kernel",
    ),
    rule(
        "deconvolution.square_stride",
        each("stride_nd", outside(23, 32)),
        when=stride_is_square,
        since="8.2",
        source=f"{_DECONVOLUTION}: disabled because compilation takes long",
        remedy="Resize in steps, then convolve",
    ),
    rule(
        "deconvolution.stride_is_kernel_8_3",
        stride_is_the_kernel,
        since="8.2",
        until="8.3",
        source=f"{HEADERS} of 8.2, IDeconvolutionLayer; dropped from those of 8.4",
        remedy="Use software 8.4 or newer",
    ),
    rule(
        "deconvolution.padding",
        each(quantities.paddings, equals(0)),
        source=_DECONVOLUTION,
        remedy="Deconvolve without padding, then crop the border with a slice",
    ),
    rule(
        "deconvolution.groups",
        parameter("num_groups", equals(1)),
        source=_DECONVOLUTION,
        remedy="Use one kernel with zeros between the groups, or one deconvolution per group",
    ),
    rule(
        "deconvolution.dilation",
        each("dilation_nd", equals(1)),
        source=_DECONVOLUTION,
        remedy="Write the dilation into the kernel as zeros",
    ),
    output_maps_fit("deconvolution", _DECONVOLUTION),
    input_channels_fit("deconvolution", _DECONVOLUTION),
    weights_are_known("deconvolution", f"{OPERATORS}: documented for convolutions", "inferred"),
    rule(
        "deconvolution.cbuf_estimate",
        compiler_estimate_fits,
        source="nvdla/sw, the open compiler's deconvolution: one convolution per stride position",
        severity="warning",
        fidelity="inferred",
        remedy="The loadable may fail to compile: use fewer channels or a smaller kernel",
    ),
)
