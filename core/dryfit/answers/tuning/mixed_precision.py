"""Layers that are kept in FP16: the cheapest that bring a quantized network to a wanted metric.

What a tensor's rounding costs is gone if none of its readers computes in INT8, because the layer that gives it then
writes real numbers. So the unit of choice is a tensor with its readers: it brings what the rounding of the tensor alone
causes at the outputs, and what these readers' rounded weights cause, and costs their multiply-accumulates and the bytes
that they move. The choices that bring most for their cost come first; how many are needed is searched for with the
device's engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import attrs
import numpy as np

from dryfit.answers.sensitivity.measurement import LayerProbe, Measurement
from dryfit.answers.tuning.judge import Candidate, Judge
from dryfit.network.network import Network
from dryfit.reference.inference import infer_specs

MACS_PER_VALUE = 16
"""Multiply-accumulates that take as long as a value that moves in two bytes instead of one. Our choice: about the ratio
of a DLA's or a GPU's arithmetic to its memory."""

MOST_CHOICES = 48
"""Choices that are considered. Our choice: a network that needs more is no INT8 network."""


@attrs.frozen
class Choice:
    """A tensor that is not rounded any more.

    Attributes:
        tensor: its name.
        layers: names of the network's layers that read it, and go to FP16.
        benefit: noise over signal that it takes away at the outputs.
        macs: multiply-accumulates of these layers.
        cost: what they cost, in multiply-accumulates.
    """

    tensor: str
    layers: frozenset[str]
    benefit: float
    macs: int
    cost: float


def choices(network: Network, probe: LayerProbe, measured: Measurement, macs: Mapping[str, int]) -> list[Choice]:
    """Return the choices, those first that bring most for their cost.

    Args:
        network: the network of the probe.
        probe: engines of the quantized network.
        measured: what its layers and tensors cause.
        macs: multiply-accumulates by layer name.
    """
    signal = measured.arrays["signal"].sum(axis=0)
    noise = measured.arrays["tensors"].sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(signal > 0, noise / signal, 0.0).sum(axis=1)
    shapes = {tensor.name: tensor.shape for tensor in network.tensors}
    found = []
    for index, name in enumerate(probe.tensors):
        readers = [layer for layer in probe.layers if name in layer.inputs]
        layers = frozenset(one for layer in readers for one in layer.layers)
        if not layers:
            continue
        sum_macs = sum(macs.get(one, 0) for one in layers)
        values = math.prod(shapes[name]) + sum(math.prod(shapes[layer.output]) for layer in readers)
        found.append(Choice(name, layers, float(ratios[index]), sum_macs, sum_macs + MACS_PER_VALUE * values))
    return sorted(found, key=lambda one: -one.benefit / one.cost)[:MOST_CHOICES]


def multiply_accumulates(network: Network) -> dict[str, int]:
    """Return the multiply-accumulates of each layer."""
    specs = infer_specs(network)
    return {layer.name: layer.multiply_accumulates(specs) for layer in network.layers}


def mixed(
    judge: Judge,
    start: Candidate,
    ordered: Sequence[Choice],
    most_macs: float,
    macs: Mapping[str, int],
    is_enough: Callable[[Candidate], bool],
) -> Candidate:
    """Return the network with the fewest choices that is good enough; the one with most if none is.

    A choice that makes the engine consist of more segments than before is left out: a device such as the DLA has to
    hand over its data at each border.

    Args:
        judge: builds the engines.
        start: network to begin with.
        ordered: choices, the best first.
        most_macs: share of the multiply-accumulates that may be in FP16.
        macs: multiply-accumulates by layer name.
        is_enough: whether a network meets what is wanted.
    """
    affordable: list[Choice] = []
    layers: frozenset[str] = start.half
    for one in ordered:
        if sum(macs.get(name, 0) for name in layers | one.layers) <= most_macs * sum(macs.values()):
            affordable.append(one)
            layers |= one.layers
    if not affordable:
        return start
    segments = len(judge.engine(start).plan.segments)

    def with_first(count: int) -> Candidate:
        layers = start.half.union(*(one.layers for one in affordable[:count]))
        return attrs.evolve(start, half=layers)

    count = 1
    while count < len(affordable) and not is_enough(with_first(count)):
        count *= 2
    high = min(count, len(affordable))
    low = count // 2
    while high - low > 1:
        middle = (low + high) // 2
        if is_enough(with_first(middle)):
            high = middle
        else:
            low = middle
    chosen = with_first(high)
    if len(judge.engine(chosen).plan.segments) > segments:
        chosen = _without_cuts(judge, start, affordable[:high], segments)
    return chosen


def _without_cuts(judge: Judge, start: Candidate, kept: Sequence[Choice], segments: int) -> Candidate:
    """Return the network with those choices that leave the number of segments alone."""
    found = start
    for one in kept:
        tried = attrs.evolve(found, half=found.half | one.layers)
        if len(judge.engine(tried).plan.segments) <= segments:
            found = tried
    return found
