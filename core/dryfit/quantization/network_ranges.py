"""The ranges of a network's tensors from what collectors saw: what is shared, and what is not left to the solver."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import DryfitError
from dryfit.network.layer import Layer
from dryfit.network.layers.activation import Activation, ActivationType
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.collector import Collector
from dryfit.quantization.histogram import BINS, Histogram
from dryfit.quantization.int8_steps import DynamicRange
from dryfit.quantization.range_sharing import constant_tensors, covering_of, floating_point_network, sharing_groups
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


# Clipped tensors ------------------------------------------------------------------------------------------------------


SMALLEST_SHARE = 0.1
"""A range below this share of the largest magnitude is reported. Our choice."""

LARGEST_LOSS = 0.01
"""A range that saturates more than this share of the values other than zero is reported. Our choice."""

Rivals = Callable[[], Iterable[Calibrator]]
"""Gives the calibrators that another one is held against."""

_WORTH_NAMING_DB = 1.0
_LARGEST_LEVEL = 127


@frozen
class Clipping:
    """How a range clips the values that were seen.

    Attributes:
        share: of the largest magnitude, that the range reaches to.
        loss: share of the values other than zero that saturate; bins that the range ends in count as inside.
        sqnr_db: energy of the values over that of the quantization error in INT8, in dB.
        better: name of the calibrator whose range has the highest SQNR of those asked; "" where none is better by 1 dB.
        better_sqnr_db: that SQNR, in dB.
    """

    share: float
    loss: float
    sqnr_db: float
    better: str = ""
    better_sqnr_db: float = math.nan

    @property
    def is_severe(self) -> bool:
        """Whether a user should hear of it."""
        return self.share < SMALLEST_SHARE or self.loss > LARGEST_LOSS

    def __str__(self) -> str:
        advice = f"; {self.better} gives {self.better_sqnr_db:.1f} dB" if self.better else ""
        return (
            f"clipped to {100 * self.share:.2g} % of the largest magnitude, {100 * self.loss:.2g} % of the nonzero "
            f"values saturate, SQNR {self.sqnr_db:.1f} dB{advice}"
        )

    def details(self) -> dict[str, float | str]:
        """What reports and caches keep of it, as `Solution.details`."""
        found: dict[str, float | str] = {
            _SHARE: self.share,
            _LOSS: self.loss,
            _SQNR: self.sqnr_db,
        }
        return found | ({_BETTER: self.better, _BETTER_SQNR: self.better_sqnr_db} if self.better else {})


_SHARE, _LOSS, _SQNR = "share of largest magnitude", "saturated share of nonzero values", "SQNR in dB"
_BETTER, _BETTER_SQNR = "better calibrator", "its SQNR in dB"


_SHOWN = 5


def clipping_text(clipped: Mapping[str, Clipping]) -> str:
    """Tensors that are clipped, by name, those with the lowest SQNR first; of many the first five and a count."""
    worst = sorted(clipped, key=lambda name: clipped[name].sqnr_db)
    shown = "; ".join(f"{name!r} is {clipped[name]}" for name in worst[:_SHOWN])
    more = f"; + {len(worst) - _SHOWN} more" if len(worst) > _SHOWN else ""
    return f"Narrow calibrated ranges: {shown}{more}"


def clipping_of(details: Mapping[str, float | str]) -> Clipping | None:
    """The clipping that a solution's details tell of; None where they tell of none."""
    share, loss, sqnr_db = (details.get(name) for name in (_SHARE, _LOSS, _SQNR))
    if not (isinstance(share, float) and isinstance(loss, float) and isinstance(sqnr_db, float)):
        return None
    return Clipping(share, loss, sqnr_db, str(details.get(_BETTER, "")), float(details.get(_BETTER_SQNR, math.nan)))


def severe_clipping(seen: Histogram, solution: Solution, rivals: Rivals) -> Clipping | None:
    """The clipping by a range, if a user should hear of it.

    Args:
        seen: the values of the tensor.
        solution: its range.
        rivals: gives calibrators that are asked where the clipping is severe. One that takes another state, or fails,
            gives no advice.
    """
    if solution.dynamic_range is None or not seen.magnitude:
        return None
    threshold = solution.dynamic_range.threshold
    if threshold >= seen.magnitude:
        return None
    found = Clipping(threshold / seen.magnitude, saturated_share(seen, threshold), math.nan)
    if not found.is_severe:
        return None
    own = sqnr_db(seen, threshold)
    ranges = {rival.name: _range(rival, seen) for rival in rivals()}
    others = {name: sqnr_db(seen, one.threshold) for name, one in ranges.items() if one is not None}
    name = max(others, default="", key=others.__getitem__)
    best = others.get(name, -math.inf)
    found = attrs.evolve(found, sqnr_db=own)
    return attrs.evolve(found, better=name, better_sqnr_db=best) if best > own + _WORTH_NAMING_DB else found


def _range(rival: Calibrator, seen: Histogram) -> DynamicRange | None:
    try:
        return rival.solution(seen).dynamic_range
    except DryfitError:
        return None


def saturated_share(seen: Histogram, threshold: float) -> float:
    """The share of the values other than zero beyond the bin that a range ends in."""
    counts = seen.counts
    counts[0] -= seen.zeros
    last = int(threshold / seen.bin_width)
    return float(counts[last + 1 :].sum() / counts.sum())


def sqnr_db(seen: Histogram, threshold: float) -> float:
    """The SQNR of INT8 in a range, in dB, for values that are not all zero.

    A bin's values are taken as its middle, zeros are exact.
    """
    counts = seen.counts
    counts[0] -= seen.zeros
    values = (np.arange(BINS) + 0.5) * seen.bin_width
    step = threshold / _LARGEST_LEVEL
    errors = values - step * np.minimum(np.round(values / step), _LARGEST_LEVEL)
    noise = float((counts * errors * errors).sum())
    # Where steps are finer than bins, middles say less than the width: values lie anywhere in a step.
    noise = max(noise, float(counts.sum()) * step * step / 12)
    return 10 * math.log10(float((counts * values * values).sum()) / noise)
