"""Convolution and fully connected layers on the DLA."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dryfit.network.data_types import DataType
from dryfit.target.checks import Quantity, between, check, each, equals, parameter
from dryfit.target.limits import Finding, Question, Rule, rule, rules
from dryfit_dla import quantities
from dryfit_dla.convolution_buffer import BANKS, BufferUse
from dryfit_dla.limits.documents import FALL_BACK, GUIDE, LAYERS, OPERATORS, REPORTS, RESHAPE
from dryfit_dla.quantities import (
    input_shape,
    is_hwc4,
    paddings,
)

RuleOfKinds = Callable[[frozenset[str]], Rule]
"""What `rule` returns: a rule once its kinds are known."""

_CONVOLUTION = f"{LAYERS}: Convolution and Fully Connected layers"


@check("kernel")
def weights_are_constant(question: Question) -> Finding | None:
    """The kernel must be known at build time."""
    layer: Any = question.layer
    connected = question.layer.inputs[1:]
    computed = [repr(t.name) for t in connected if t is not None and not question.is_constant(t)]
    if computed:
        return Finding(f"computed: {', '.join(computed)}", "constant weights")
    if layer.kernel is None and not any(t is not None for t in connected[:1]):
        return Finding("missing", "constant weights")
    return None


@check("padding")
def padding_is_smaller_than_kernel(question: Question) -> Finding | None:
    """The padding must be smaller than the kernel on each axis."""
    layer: Any = question.layer
    pairs = layer.paddings(input_shape(question)[2:])
    if all(max(pair) < extent for pair, extent in zip(pairs, layer.kernel_size_nd, strict=True)):
        return None
    return Finding(str(pairs), f"each less than the kernel size {layer.kernel_size_nd}")


@check("input format")
def input_is_hwc4(question: Question) -> Finding | None:
    """The input has the format DLA_HWC4."""
    return None if is_hwc4(question.inputs[0]) else Finding("another format", "DLA_HWC4")


@check("input format")
def input_is_not_hwc4(question: Question) -> Finding | None:
    """The input has a format other than DLA_HWC4."""
    return Finding("DLA_HWC4", "another format") if is_hwc4(question.inputs[0]) else None


_LARGEST_WINDOW, _MOST_CHANNELS = 32, 8192


def _has_window(shape: Sequence[int], largest: int = _LARGEST_WINDOW) -> bool:
    """Whether a fully connected layer on this input is a convolution whose kernel is the input's height and width."""
    return max(shape[-2:]) <= largest


@check("origin")
def comes_from_onnx(question: Question) -> Finding | None:
    """The layer is an ONNX model's Gemm, whose input TensorRT's parser flattens."""
    return None if question.layer.onnx_nodes else Finding("a layer added by the API", "a Gemm of an ONNX model")


flattened_inputs = Quantity(
    "C * H * W of the input", lambda question: math.prod(extent for extent in input_shape(question)[-3:] if extent >= 0)
)


@check("height and width of the input")
def window_fits(
    question: Question, *, largest: int = _LARGEST_WINDOW, most_inputs: int = _MOST_CHANNELS
) -> Finding | None:
    """The input's height and width must be at most {largest} each, or C * H * W at most {most_inputs}."""
    shape = input_shape(question)
    if _has_window(shape, largest) or math.prod(shape[-3:]) <= most_inputs:
        return None
    return Finding(str(shape[-2:]), f"at most {largest} each, or C * H * W at most {most_inputs}")


def buffer_use(question: Question) -> BufferUse | None:
    """What a convolution or fully connected layer asks of the convolution buffer; None for what has other rules."""
    layer: Any = question.layer
    shape = input_shape(question)
    element_bytes = 1 if question.precision is DataType.INT8 else 2
    if len(shape) < 3 or min(shape[-3:]) < 1:
        return None
    if layer.kind == "fully_connected":
        channels, height, width = shape[-3:] if _has_window(shape) else (math.prod(shape[-3:]), 1, 1)
        return BufferUse(
            channels=channels,
            height=height,
            width=width,
            kernel_height=height,
            kernel_width=width,
            output_maps=layer.num_output_channels,
            element_bytes=element_bytes,
        )
    if len(layer.kernel_size_nd) != 2:
        return None
    return BufferUse(
        channels=shape[-3],
        height=shape[-2],
        width=shape[-1],
        kernel_height=layer.kernel_size_nd[0],
        kernel_width=layer.kernel_size_nd[1],
        output_maps=layer.num_output_maps,
        element_bytes=element_bytes,
        dilation_height=layer.dilation_nd[0],
        groups=layer.num_groups,
        stride_height=layer.stride_nd[0],
        padding_width=sum(paddings(question)[-2:]),
        is_pixel_input=is_hwc4(question.inputs[0]),
    )


@check("use of the convolution buffer")
def buffer_fits(question: Question, *, banks: int = BANKS) -> Finding | None:
    """One kernel (wtBanksForOneKernel) and the input's rows (minDataBanks) must fit into {banks} banks together."""
    use = buffer_use(question)
    if use is None or use.validator_banks <= banks:
        return None
    return Finding(
        f"{use.validator_banks} banks ({use.validator_weight_banks} for one kernel, "
        f"{use.validator_data_banks} for the input's rows)",
        f"at most {banks} banks",
    )


@check("use of the convolution buffer")
def compiler_estimate_fits(question: Question, *, banks: int = BANKS) -> Finding | None:
    """The open NVDLA compiler must be able to fit weights and input into its {banks} banks."""
    use = buffer_use(question)
    return None if use is None or use.validator_banks > banks else estimated_use(use, banks)


def estimated_use(use: BufferUse, banks: int = BANKS) -> Finding | None:
    """What the open compiler's estimate finds; None where weights and input fit."""
    estimate = use.estimate(banks)
    if estimate.fits:
        return None
    return Finding(
        f"an estimated {estimate.group_weight_banks + estimate.least_data_banks} banks "
        f"({estimate.group_weight_banks} for {use.kernels_per_group} kernels, "
        f"{estimate.least_data_banks} for the input's rows)",
        f"at most {banks} banks",
    )


@check("precision")
def has_the_main_multipliers(question: Question) -> Finding | None:
    """FP16 convolutions can take up to twice as long on Orin."""
    return Finding(question.precision.text, "INT8", message="in FP16 it can take up to twice as long on Orin")


def has_two_axes(kind: str, source: str) -> RuleOfKinds:
    """The rule that the kernel of a layer has two axes."""
    return rule(f"{kind}.spatial_axes", parameter(quantities.kernel_axes, equals(2)), source=source, remedy=RESHAPE)


def output_maps_fit(kind: str, source: str, name: str = "output_maps", field: str = "num_output_maps") -> RuleOfKinds:
    """The rule that a layer with a kernel has at most 8192 output maps."""
    remedy = "Split the layer into several with fewer output maps, and concatenate"
    return rule(f"{kind}.{name}", parameter(field, between(1, _MOST_CHANNELS)), source=source, remedy=remedy)


def input_channels_fit(kind: str, source: str, name: str = "input_channels") -> RuleOfKinds:
    """The rule that a layer with a kernel has at most 8192 input channels."""
    channels = each(quantities.input_channels, between(1, _MOST_CHANNELS))
    remedy = "Split the input channels, and add the results"
    return rule(f"{kind}.{name}", channels, source=source, remedy=remedy)


def weights_are_known(kind: str, source: str, fidelity: str = "documented") -> RuleOfKinds:
    """The rule that the kernel of a layer is constant."""
    remedy = "Use constant weights; fold a Q/DQ pair into scales"
    return rule(f"{kind}.constant_weights", weights_are_constant, source=source, fidelity=fidelity, remedy=remedy)


def is_fast_in_int8_on_orin(kind: str) -> RuleOfKinds:
    """The note on layers that run in FP16 on Orin."""
    return rule(
        f"{kind}.fp16_on_orin",
        has_the_main_multipliers,
        families="orin",
        precisions=(DataType.HALF,),
        source=f"{GUIDE}: Inference on NVIDIA Orin",
        severity="note",
        remedy="Run it in INT8 if the accuracy allows",
    )


CONVOLUTION = rules(
    "convolution",
    has_two_axes("convolution", _CONVOLUTION),
    rule("convolution.kernel", each("kernel_size_nd", between(1, 32)), source=_CONVOLUTION, remedy=FALL_BACK),
    rule("convolution.padding", each(quantities.paddings, between(0, 31)), source=_CONVOLUTION, remedy=FALL_BACK),
    rule(
        "convolution.padding_below_kernel",
        padding_is_smaller_than_kernel,
        source=_CONVOLUTION,
        remedy="Zero-pad the kernel, or let this layer run on a fallback device",
    ),
    rule("convolution.stride", each("stride_nd", between(1, 8)), source=_CONVOLUTION, remedy=FALL_BACK),
    rule("convolution.dilation", each("dilation_nd", between(1, 32)), source=_CONVOLUTION, remedy=FALL_BACK),
    output_maps_fit("convolution", _CONVOLUTION),
    input_channels_fit("convolution", _CONVOLUTION),
    rule(
        "convolution.groups",
        parameter("num_groups", between(1, 8192)),
        when=input_is_not_hwc4,
        source=_CONVOLUTION,
        remedy="Split the groups into several layers, and concatenate",
    ),
    rule(
        "convolution.groups_hwc4",
        parameter("num_groups", between(1, 4)),
        when=input_is_hwc4,
        source=_CONVOLUTION,
        remedy="Allow an input format other than DLA_HWC4",
    ),
    weights_are_known("convolution", OPERATORS),
    rule(
        "convolution.cbuf",
        buffer_fits,
        source=f"{_CONVOLUTION}; the formulas: TensorRT 8.4 developer guide, the same chapter",
        remedy="Use a smaller kernel or dilation, fewer channels, or a narrower input",
    ),
    rule(
        "convolution.cbuf_estimate",
        compiler_estimate_fits,
        source="nvdla/sw, the open compiler's convolution core; NVIDIA/TensorRT issue 3499 is such a case",
        severity="warning",
        fidelity="inferred",
        remedy="The layer passes TensorRT's own check, but the loadable may fail to compile: use fewer channels",
    ),
    is_fast_in_int8_on_orin("convolution"),
)

FULLY_CONNECTED = rules(
    "fully_connected",
    output_maps_fit("fully_connected", _CONVOLUTION, "outputs", "num_output_channels"),
    input_channels_fit("fully_connected", _CONVOLUTION, "inputs"),
    rule(
        "fully_connected.flattened",
        parameter(flattened_inputs, between(1, _MOST_CHANNELS)),
        when=comes_from_onnx,
        source=f"{REPORTS}: VGG's first Gemm, 25088 inputs, was refused; {OPERATORS}: a Gemm is a 1x1 convolution",
        fidelity="inferred",
        remedy="Use a convolution whose kernel is the input's height and width (`dryfit explain --apply` does this)",
    ),
    rule(
        "fully_connected.window",
        window_fits,
        source=f"{_CONVOLUTION}: it runs as a convolution of the input's height and width, or flattened as a 1x1 one",
        fidelity="inferred",
        remedy="Pool or slice the input to a smaller height and width before the layer",
    ),
    weights_are_known("fully_connected", OPERATORS),
    rule("fully_connected.cbuf", buffer_fits, source=_CONVOLUTION, remedy="Use fewer inputs"),
    is_fast_in_int8_on_orin("fully_connected"),
)
