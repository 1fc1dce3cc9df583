"""The ranges of a network's tensors from what collectors saw: what is shared, and what is not left to the solver."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.network import Network
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.collector import Collector
from dryfit.quantization.histogram import Histogram
from dryfit.quantization.observed_tensors import constant_tensors, floating_point_network
from dryfit.quantization.range_sharing import coverings, sharing_groups
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
) -> dict[str, Solution]:
    """The range of each tensor that was looked at, and of each constant, by name, in the order of execution.

    Tensors of a sharing group have the range of the group's representative, if the calibrator is one for the network
    before fusion: TensorRT's older ones share nothing.

    Args:
        network: the one that samples were shown to.
        collectors: what `collect` gave for it.
        calibrator: finds the ranges.
        full_range: whether network inputs, and the outputs of softmax and sigmoid, keep their largest magnitude. The
            values of pictures are few and equally important, and those of probabilities are mostly near zero, so that
            calibrators cut off what matters. Source: measured, 17 dB lost on a picture and 14 dB on a softmax by the
            relative entropy.

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
        solution = found.get(group.representative)
        for name in group.tensors:
            if solution is not None and name in found and name != group.representative:
                details = {**solution.details, SHARED_WITH: group.representative}
                found[name] = attrs.evolve(solution, details=details)
    return found


def full_range_tensors(network: Network) -> dict[str, str]:
    """Tensors that keep their largest magnitude, and why; also what reshapes, poolings and the like make of them."""
    reasons = {tensor.name: "a network input" for tensor in network.inputs}
    for layer in network.layers:
        if layer.kind == "softmax":
            reasons[layer.outputs[0].name] = "probabilities, of a softmax"
        elif isinstance(layer, Activation) and layer.activation_type is ActivationType.SIGMOID:
            reasons[layer.outputs[0].name] = "probabilities, of a sigmoid"
    for one in coverings(network):
        names = [*one.covered, one.covering]
        reason = next((reasons[name] for name in names if name in reasons), None)
        # What a concatenation joins has other values too.
        if reason is not None and len(names) == 2:
            reasons.update(dict.fromkeys(names, reason))
    return reasons


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
