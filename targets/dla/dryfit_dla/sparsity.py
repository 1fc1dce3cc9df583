"""Structured sparsity of the DLA: for which convolutions the zeros of 2:4 weights are skipped, and why not for others.

Source: TensorRT 10 developer guide, Working with DLA: Sparsity on DLA. That chapter speaks of what the DLA can gain; a
layer that gains nothing runs dense, wherever it was placed.
"""

from __future__ import annotations

import math
from typing import Any

from dryfit.network.data_types import DataType
from dryfit.quantization.int8_weights import SparsePattern
from dryfit.target.checks import (
    ParameterCheck,
    Quantity,
    at_least,
    at_most,
    check,
    equals,
    one_of,
    parameter,
    platform_is,
)
from dryfit.target.limits import Finding, LimitTable, Question, Rule, rule, rules
from dryfit.target.sparsity import Sparsity, zeros_follow
from dryfit_dla.limits.convolution import input_is_not_hwc4
from dryfit_dla.limits.documents import GUIDE
from dryfit_dla.quantities import input_shape

_SPARSITY = f"{GUIDE}: Sparsity on DLA, Structured Sparsity"
_README = "NVIDIA Deep-Learning-Accelerator-SW, README"
_GAINS = (
    f"{_README}: SSD-ResNet-34, whose 3x3 convolutions have 589,824 weights, is 1.24 times as fast with 2:4 weights"
)

_GAINS_OF_64 = (
    f"{_README}: the ResNet-34 backbone is 1.35 to 1.45 times as fast; with its 64-channel convolutions dense, "
    "we estimate 1.28 to 1.34 even if all others were twice as fast"
)

PATTERN = SparsePattern(kept=2, group=4, axis=1)
"""Of each four input channels, the weights of two are 0: for every output map and every place in the window."""

LARGEST_WEIGHTS = 256 * 1024
"""256K quantized weights, of one byte each; K is read as 1024."""

MAPS_BESIDE_64 = (0, 1, 2, 4, 8, 16, 32)
"""What may be left of the number of output maps when it is divided by 64."""


def _kernel_shape(question: Question) -> tuple[int, ...]:
    layer: Any = question.layer
    return (layer.num_output_maps, input_shape(question)[1] // max(layer.num_groups, 1), *layer.kernel_size_nd)


_channels = Quantity("input channels of a kernel", lambda question: _kernel_shape(question)[1])
_weights = Quantity("number of quantized weights", lambda question: math.prod(_kernel_shape(question)))
_maps = Quantity("number of output maps modulo 64", lambda question: _kernel_shape(question)[0] % 64)
_beside_128 = Quantity("input channels of a kernel modulo 128", lambda question: _kernel_shape(question)[1] % 128)


@check("layer kind")
def is_convolution(question: Question) -> Finding | None:
    """The layer must be a convolution."""
    kind = question.layer.kind
    return None if kind == "convolution" else Finding(kind, "convolution")


@check("precision")
def is_int8(question: Question) -> Finding | None:
    """The layer must run in INT8."""
    return None if question.precision is DataType.INT8 else Finding(question.precision.text, "INT8")


_INPUT_CHANNELS, _WEIGHT_SIZE, _OUTPUT_MAPS = (
    parameter(_channels, at_least(65)),
    parameter(_weights, at_most(LARGEST_WEIGHTS)),
    parameter(_maps, one_of(*MAPS_BESIDE_64)),
)
_RESTRICTIONS: tuple[ParameterCheck, ...] = (_INPUT_CHANNELS, _WEIGHT_SIZE, _OUTPUT_MAPS)


@check("restrictions of older releases")
def restrictions_hold(question: Question) -> Finding | None:
    """The layer must meet the limits on channels, weights and output maps, which newer releases may have dropped."""
    broken = [(one, finding) for one in _RESTRICTIONS if (finding := one(question)) is not None]
    if not broken:
        return None
    found = "; ".join(f"{one.parameter} {finding.actual}" for one, finding in broken)
    return Finding(
        found,
        "; ".join(f"{one.parameter} {one.allowed}" for one, _ in broken),
        message=f"the latest DLA releases may still skip zeros here ({found})",
    )


DENSE = "The layer stays on the device and runs dense, with all its multiplications"

_REQUIRED = [
    *rules((), rule("sparsity.kind", is_convolution, source=_SPARSITY, number="SS-01", remedy=DENSE)),
    *rules(
        "convolution",
        rule(
            "sparsity.platform",
            platform_is("orin"),
            source=_SPARSITY,
            number="SS-01",
            remedy="Build for an Orin platform; the DLA of Xavier does not skip zeros",
        ),
        rule(
            "sparsity.precision",
            is_int8,
            source=_SPARSITY,
            number="SS-01",
            remedy="Run the layer in INT8 (--int8, with scales for its tensors)",
        ),
        rule(
            "sparsity.input_format",
            input_is_not_hwc4,
            source=f"{_SPARSITY}: only in formats other than NHWC",
            text="the input must have a format other than DLA_HWC4",
            number="SS-01",
            remedy="Allow an input format other than DLA_HWC4",
        ),
        rule(
            "sparsity.input_channels",
            _INPUT_CHANNELS,
            source=f"{_SPARSITY}: the channel size (our reading: a group's) is greater than 64",
            until="8.4",
            number="SS-02",
            remedy="Widen the preceding layer, or leave this one dense",
        ),
        rule(
            "sparsity.input_channels_newer",
            parameter(_channels, at_least(64)),
            source=f"{_SPARSITY}: the channel size (our reading: a group's) is greater than 64; but {_GAINS_OF_64}",
            since="8.5",
            fidelity="inferred",
            number="SS-02",
            remedy="Widen the preceding layer, or leave this one dense",
        ),
        rule(
            "sparsity.pattern",
            zeros_follow(PATTERN),
            source=_SPARSITY,
            number="SS-03",
            remedy="Train with 2:4 sparsity, or prune by magnitude (`dryfit sparsity prune`) and retrain",
        ),
        rule(
            "sparsity.weight_size",
            _WEIGHT_SIZE,
            source=f"{_SPARSITY}: at most 256K quantized INT8 weights (K read as 1024), and in practice perhaps fewer",
            until="8.4",
            number="SS-04",
            remedy="Split the output maps across several layers, and concatenate",
        ),
        rule(
            "sparsity.output_maps",
            _OUTPUT_MAPS,
            source=_SPARSITY,
            number="SS-05",
            remedy="Pad the output maps with zeros to a multiple of 64, and slice them off",
        ),
    ),
]


@check("multiplications")
def zeros_are_skipped(question: Question) -> Finding | None:
    """The zeros of the weights should be skipped; otherwise the layer runs dense, on the same device."""
    broken = [one for one in _REQUIRED if one.applies_to(question) and one.check(question) is not None]
    if not broken:
        return None
    numbers = ", ".join(dict.fromkeys(one.number for one in broken))
    return Finding(
        "all", "only those of nonzero weights", message=f"the layer runs dense, without a speedup ({numbers})"
    )


_TOLD: list[Rule] = rules(
    "convolution",
    rule(
        "sparsity.weight_size_newer",
        _WEIGHT_SIZE,
        source=f"{_SPARSITY}: at most 256K quantized INT8 weights (K read as 1024); but {_GAINS}",
        since="8.5",
        severity="warning",
        fidelity="inferred",
        number="SS-04",
        remedy="Measure the speedup on the board before relying on it",
    ),
    rule(
        "sparsity.input_channels_documented",
        _INPUT_CHANNELS,
        source=f"{_SPARSITY}: the channel size is greater than 64; but {_GAINS_OF_64}",
        since="8.5",
        severity="warning",
        fidelity="inferred",
        number="SS-02",
        remedy="Measure the speedup on the board before relying on it",
    ),
    rule(
        "sparsity.full_gain",
        parameter(_beside_128, equals(0)),
        source=f"{_SPARSITY}: the gain is largest for compute-bound layers whose channels are a multiple of 128",
        severity="note",
        number="SS-06",
        remedy="Use a multiple of 128 input channels",
    ),
    rule(
        "sparsity.newer_releases",
        restrictions_hold,
        source=f"{_README}: the listed restrictions may no longer apply in the most recent releases",
        families="orin",
        severity="note",
        fidelity="inferred",
        number="SS-07",
    ),
) + rules(
    (),
    rule(
        "sparsity.dense",
        zeros_are_skipped,
        source=f"{_SPARSITY}: it lists the layers that can gain and rejects none (our reading)",
        severity="note",
        fidelity="inferred",
        number="SS-08",
    ),
)

SPARSITY = Sparsity(
    pattern=PATTERN,
    rules=LimitTable(device="DLA", rules=[*_REQUIRED, *_TOLD], source=_SPARSITY),
    pattern_rule="dla.sparsity.pattern",
)


def is_sparse_eligible(question: Question) -> bool:
    """Whether the DLA would skip the zeros of a layer's weights if they had the pattern 2:4."""
    return SPARSITY.is_eligible(question)
