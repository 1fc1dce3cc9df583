"""The ranges of a network's tensors from what collectors saw: what is shared, and what is not left to the solver."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import attrs
import numpy as np

from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.clipping import Rivals, severe_clipping
from dryfit.quantization.collector import Collector
from dryfit.quantization.histogram import Histogram
from dryfit.quantization.observed_tensors import constant_tensors, floating_point_network
from dryfit.quantization.range_sharing import covering_of, sharing_groups
from dryfit.reference.executor import needed_layers

FULL_RANGE = "full range"
"""Detail of a solution that reaches to the largest magnitude whatever the calibrator is; its value says why."""

SHARED_WITH = "shared with"
"""Detail of a solution that was found for another tensor, which it names."""


def solve_network(
    network: Network,
    collectors: Mapping[str, Collector],
    calibrator: Calibrator,
    *,
    full_range: bool = True,
    rivals: Rivals = tuple,
) -> dict[str, Solution]:
    """The range of each tensor that was looked at, and of each constant, by name, in the order of execution.

    Tensors of a sharing group have the widest range of those that decide for it and of those that keep their largest
    magnitude, if the calibrator is one for the network before fusion: TensorRT's older ones share nothing.

    Args:
        network: the one that samples were shown to.
        collectors: what `collect` gave for it.
        calibrator: finds the ranges.
        full_range: whether network inputs, and tensors that a function holds within fixed bounds, keep their largest
            magnitude; see `full_range_tensors`.
        rivals: gives the calibrators that are asked about tensors that are clipped severely, so that `details` can name
            a better one.

    Raises:
        PluginError: the calibrator fails.
    """
    seen = {**_of_constants(network, calibrator), **collectors}
    reasons = full_range_tensors(network) if full_range else {}
    found: dict[str, Solution] = {}
    for name in _in_order(network):
        if name in seen:
            found[name] = _solution(seen[name], calibrator, reasons.get(name))
    for group in sharing_groups(network) if calibrator.before_fusion else ():
        kept = [name for name in group.tensors if name in reasons]
        decisive = widest([*group.deciding, *kept], found)
        for name in group.tensors:
            if decisive is not None and name in found and name != decisive:
                details = {**found[decisive].details, SHARED_WITH: decisive}
                found[name] = attrs.evolve(found[decisive], details=details)
    for name, solution in found.items():
        collector = collectors.get(name)
        if isinstance(collector, Histogram):
            clipping = severe_clipping(collector, solution, rivals)
            if clipping is not None:
                found[name] = attrs.evolve(solution, details={**solution.details, **clipping.details()})
    return found


def widest(names: Iterable[str], solutions: Mapping[str, Solution]) -> str | None:
    """The tensor whose range is the widest, of several the first; None where none has one."""
    ranges = {name: solutions[name].dynamic_range for name in names if name in solutions}
    known = {name: one.threshold for name, one in ranges.items() if one is not None}
    return max(known, key=known.__getitem__, default=None)


def full_range_tensors(network: Network) -> dict[str, str]:
    """Tensors that keep their largest magnitude, and why; also what reshapes, poolings and the like make of them.

    The values of pictures are few and equally important. A softmax, a sigmoid, a tanh or a clip is chosen for its
    bounds: most values may lie near zero, as those of probabilities and gates do, yet the few at the bound decide the
    result, and a solver that weighs values by how many there are cuts these off.

    Source: measured, the relative entropy costs 17 dB on a picture and 14 dB on a softmax, and gives the hard-sigmoid
    gates of a segmentation network 13 % of their range. In the published TensorRT 6.0.1 cache of SSD-MobileNet all 35
    outputs of ReLU6 have the scale 6 / 127 to the last bit, which the search of the relative entropy cannot give.
    """
    reasons = {tensor.name: "a network input" for tensor in network.inputs}
    for layer in network.layers:
        covering = covering_of(layer)
        multiplied = _multiplied(layer)
        if layer.kind == "softmax":
            reasons[layer.outputs[0].name] = "probabilities, of a softmax"
        elif isinstance(layer, Activation) and _is_bounded(layer):
            reasons[layer.outputs[0].name] = f"bounded by {layer.activation_type.name}"
        elif multiplied is not None and multiplied.name in reasons:
            reasons[layer.outputs[0].name] = reasons[multiplied.name]
        # What a concatenation joins has other values too.
        elif covering is not None and len(covering.covered) == 1:
            names = (covering.covering, *covering.covered)
            reason = next((reasons[name] for name in names if name in reasons), None)
            reasons.update(dict.fromkeys(names if reason is not None else (), reason or ""))
    return reasons


_BOUNDED = frozenset(
    {
        ActivationType.SIGMOID,
        ActivationType.HARD_SIGMOID,
        ActivationType.TANH,
        ActivationType.SCALED_TANH,
        ActivationType.SOFTSIGN,
    }
)

_LARGEST_FP16 = float(np.finfo(np.float16).max)


def _is_bounded(layer: Activation) -> bool:
    """Whether a function has bounds on both sides. Importers write a missing bound as the largest number."""
    if layer.activation_type is not ActivationType.CLIP:
        return layer.activation_type in _BOUNDED
    return max(abs(layer.alpha), abs(layer.beta)) < _LARGEST_FP16


def _multiplied(layer: Layer) -> Tensor | None:
    """The tensor of which a layer gives a constant multiple; None for other layers.

    A hard sigmoid that was exported as a clip has a division by 6 behind it.
    """
    if not isinstance(layer, Elementwise) or layer.op not in (ElementWiseOperation.PROD, ElementWiseOperation.DIV):
        return None
    first, second = layer.inputs
    if first is None or second is None:
        return None
    if _is_factor(second):
        return first
    return second if _is_factor(first) and layer.op is ElementWiseOperation.PROD else None


def _is_factor(tensor: Tensor) -> bool:
    return tensor.is_constant and math.prod(tensor.shape) == 1


def _solution(collector: Collector, calibrator: Calibrator, reason: str | None) -> Solution:
    if reason is None or not isinstance(collector, Histogram):
        return calibrator.solution(collector)
    return Solution.of_threshold(collector.magnitude, **{FULL_RANGE: reason})


def _of_constants(network: Network, calibrator: Calibrator) -> dict[str, Collector]:
    """A collector for each constant, which has seen its values once; masks of infinity are left out."""
    found: dict[str, Collector] = {}
    for name, value in constant_tensors(floating_point_network(network)):
        found[name] = calibrator.collector(name, skips_nonfinite=True)
        found[name].update(value, name)
    return found


def _in_order(network: Network) -> list[str]:
    layers = needed_layers(network)
    return [tensor.name for tensor in (*network.inputs, *(one for layer in layers for one in layer.outputs))]
