"""Layers that are kept in FP16: the cheapest that bring a quantized network to a wanted metric.

What a tensor's rounding costs is gone if none of its readers computes in INT8, because the layer that gives it then
writes real numbers. So the unit of choice is a tensor with its readers: it brings what the rounding of the tensor alone
causes at the outputs, and what these readers' rounded weights cause, and costs the time that the device is estimated to
take longer for them in FP16. Where the target estimates no time, and where the multiply-accumulates are what limits the
choice, it costs those and the values that they move. One choice is made after another, the one that brings most for
its cost. What counts is the output that suffers most: the noise of each output is weighted by the square of its ratio
to the signal, with what was chosen so far. How many choices are needed is searched for with the device's engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from dryfit.answers.sample_gains import Probability, signal_and_noise
from dryfit.answers.sensitivity.measurement import LayerProbe
from dryfit.answers.tuning.judge import Candidate, Judge
from dryfit.attrs_classes import frozen
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.network import Network
from dryfit.network.tensor import Array
from dryfit.quantization.sample_arrays import Feeds

LEAST_MICROSECONDS = 1e-3
"""What a choice costs at least in us: some take no longer in FP16, by the estimate."""
MACS_PER_VALUE = 1
"""Multiply-accumulates that count like a value that moves in two bytes instead of one. Our choice: a depthwise layer,
with nine multiply-accumulates a value, is the cheapest way to keep a tensor from being rounded."""


@frozen
class Choice:
    """A tensor that is not rounded any more.

    Attributes:
        tensor: its name.
        layers: names of the network's layers that read it, and go to FP16.
        macs: multiply-accumulates of these layers.
        cost: what they cost, in us or multiply-accumulates.
    """

    tensor: str
    layers: frozenset[str]
    macs: int
    cost: float


@frozen(eq=False)
class Noise:
    """What each rounding alone causes at the outputs.

    Attributes:
        readers: for each rounding, names of the layers that all have to be in FP16 for it to vanish.
        ratios: noise over signal, float64[roundings, outputs].
    """

    readers: Sequence[frozenset[str]]
    ratios: Array


def noise_of(probe: LayerProbe, samples: Sequence[Feeds], probabilities: Mapping[str, Probability]) -> Noise:
    """Return the noise of the rounding of each tensor, and of each layer's weights.

    Args:
        probe: engines of the quantized network.
        samples: inputs.
        probabilities: what gives the outputs that count by their logits, by name.
    """
    reading = readers_of(probe)
    readers = [reading.get(name, frozenset()) for name in probe.tensors]
    readers += [frozenset(layer.layers) for layer in probe.layers]
    kinds = {name: probabilities.get(name) for name in probe.outputs}
    signal = np.zeros(len(probe.outputs))
    noise = np.zeros((len(readers), len(probe.outputs)))
    for feeds in samples:
        exact = {name: array.copy() for name, array in probe.run(feeds).items()}
        signal += [signal_and_noise(exact[name], exact[name], kinds[name])[0] for name in probe.outputs]
        for index in range(len(readers)):
            if index < len(probe.tensors):
                found = probe.outputs_by_tensor(list(probe.tensors)[index])
            else:
                found = probe.outputs_by_weights(probe.layers[index - len(probe.tensors)])
            noise[index] += [signal_and_noise(exact[name], found[name], kinds[name])[1] for name in probe.outputs]
    return Noise(readers, noise / np.where(signal > 0, signal, np.inf))


def choices(
    network: Network,
    probe: LayerProbe,
    noise: Noise,
    macs: Mapping[str, int],
    start: frozenset[str],
    most_macs: float,
    microseconds: Mapping[str, float] | None = None,
    kept: Collection[str] = (),
) -> list[Choice]:
    """Return the choices in the order in which they bring most for their cost, as many as are affordable.

    Args:
        network: the network of the probe.
        probe: engines of the quantized network.
        noise: what its roundings cause.
        macs: multiply-accumulates by layer name.
        start: names of layers that are in FP16 already.
        most_macs: largest number of multiply-accumulates in FP16.
        microseconds: name of each tensor to the estimated time that its readers take longer in FP16, in us; None to
            count multiply-accumulates and moved values instead.
        kept: names of layers that stay what they are.
    """
    shapes = {tensor.name: tensor.shape for tensor in network.tensors}
    waiting = []
    for name, layers in readers_of(probe).items():
        if not layers.isdisjoint(kept):
            continue
        sum_macs = sum(macs.get(one, 0) for one in layers)
        if microseconds is None:
            outputs = [layer.output for layer in probe.layers if name in layer.inputs]
            cost = sum_macs + MACS_PER_VALUE * float(sum(math.prod(shapes[one]) for one in (name, *outputs)))
        else:
            cost = max(microseconds[name], LEAST_MICROSECONDS)
        waiting.append(Choice(name, layers, sum_macs, cost))
    rows_of: dict[str, list[int]] = {}
    for row, readers in enumerate(noise.readers):
        for name in readers:
            rows_of.setdefault(name, []).append(row)
    chosen: list[Choice] = []
    half = start
    is_left = np.array([not one or not one <= half for one in noise.readers])

    def gone(one: Choice) -> list[int]:
        """Return the roundings that vanish with a choice."""
        rows = {row for name in one.layers - half for row in rows_of.get(name, ())}
        return sorted(row for row in rows if is_left[row] and noise.readers[row] <= half | one.layers)

    while waiting:
        spent = sum(macs.get(name, 0) for name in half)
        waiting = [
            one
            for one in waiting
            if one.layers - half and spent + sum(macs.get(name, 0) for name in one.layers - half) <= most_macs
        ]
        left = noise.ratios[is_left].sum(axis=0)
        weights = (left / left.max()) ** 2 if left.max(initial=0.0) > 0 else np.ones(len(left))
        worths = [float(noise.ratios[gone(one)].sum(axis=0) @ weights) / one.cost for one in waiting]
        if max(worths, default=0.0) <= 0:
            break
        best = waiting[int(np.argmax(worths))]
        is_left[gone(best)] = False
        chosen.append(best)
        half |= best.layers
    return chosen


def readers_of(probe: LayerProbe) -> dict[str, frozenset[str]]:
    """Return the names of the network's layers that read each tensor; those that none reads are left out."""
    found = {
        name: frozenset(one for layer in probe.layers if name in layer.inputs for one in layer.layers)
        for name in probe.tensors
    }
    return {name: layers for name, layers in found.items() if layers}


def output_givers(probe: LayerProbe) -> list[frozenset[str]]:
    """Return the names of the network's layers that give each tensor in INT8 that no INT8 layer reads: outputs."""
    read = readers_of(probe)
    return [frozenset(one.layers) for one in probe.layers if one.output in probe.tensors and one.output not in read]


def sums_past_int8(network: Network, half: Collection[str], kept: Collection[str] = ()) -> frozenset[str]:
    """Return the layers of sums that would read more exact numbers in FP16, although INT8 layers read the same tensor.

    These are sums that read a sum or a layer in FP16 which others read too, as in a chain of residual blocks, and the
    sums that they read; each with its activation. They have no multiply-accumulates.

    Args:
        network: the network.
        half: names of the layers that are in FP16 already.
        kept: names of layers that stay what they are.
    """
    found: set[str] = set()
    steps: dict[str, list[str]] = {}
    for layer in network.layers:
        if not isinstance(layer, Elementwise) or layer.op is not ElementWiseOperation.SUM:
            continue
        names, output = [layer.name], layer.outputs[0]
        while len(output.consumers) == 1 and (after := output.consumers[0][0]).kind == "activation":
            names.append(after.name)
            output = after.outputs[0]
        steps[output.name] = names
        for tensor in layer.inputs:
            if tensor is None or tensor.producer is None or len(tensor.consumers) == 1:
                continue
            if tensor.producer.name in half or tensor.name in steps:
                found.update(names, steps.get(tensor.name, ()))
    return frozenset(found.difference(half, kept))


def mixed(
    judge: Judge, start: Candidate, affordable: Sequence[Choice], is_enough: Callable[[Candidate], bool]
) -> Candidate:
    """Return the network with the fewest choices that is good enough; the one with most if none is.

    A choice that makes the engine consist of more segments than before is left out: a device such as the DLA has to
    hand over its data at each border.

    Args:
        judge: builds the engines.
        start: network to begin with.
        affordable: choices, the best first.
        is_enough: whether a network meets what is wanted.
    """
    if not affordable:
        return start
    segments = len(judge.engine(start).plan.segments)

    def with_first(count: int) -> Candidate:
        layers = start.half.union(*(one.layers for one in affordable[:count]))
        return judge.with_half(start, layers)

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
        tried = judge.with_half(found, found.half | one.layers)
        if len(judge.engine(tried).plan.segments) <= segments:
            found = tried
    return found
