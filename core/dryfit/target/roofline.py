"""A roofline as a target's cost function, for devices with known peaks only."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.target.cost import CostEstimate, CostQuestion, StepCost
from dryfit.target.layer_steps import LayerStep, StepRules, data_inputs, layer_steps

FOLLOWING = frozenset({"activation", "elementwise", "parametric_relu", "scale", "unary"})
"""Kinds that run with the layer before them. An assumption about devices of which nothing is known, no trait of the
kinds: many others work element by element too."""


@frozen
class Roofline:
    """A cost function: a step takes the longer of its arithmetic and its memory time at peak, plus a startup time.

    No run can beat a time at these peaks, and few reach it. A target can name a roofline in `estimate_cost_at`.

    Attributes:
        macs_per_cycle: computation type to multiply-accumulates per cycle of the whole device.
        clock_hz: cycles per second.
        bytes_per_second: memory bandwidth.
        step_seconds: startup time of a step, independent of its size.
        source: source of the peaks.
        basis: how the time is calculated, in one sentence.
        is_nominal: as `CostEstimate.is_nominal`.

    Example:
        >>> peaks = Roofline(lambda precision: 1024, 800e6, 12.8e9, 2e-6, source="ACME NPU manual, 2.1")
        >>> peaks(question).is_lower_bound
        True
    """

    macs_per_cycle: Callable[[DataType], float]
    clock_hz: float
    bytes_per_second: float
    step_seconds: float
    source: str
    basis: str = "the longer of compute and memory time at the device's peak rates, plus a launch per step"
    is_nominal: bool = False

    def __call__(self, question: CostQuestion) -> CostEstimate:
        """Return the estimate of a segment, step by step."""
        rules = StepRules(
            leads=lambda layer: layer.sums_products,
            follows=lambda layer: layer.kind in FOLLOWING,
            is_free=lambda layer: layer.kind == "shape",
        )
        steps = [self._cost(step, question) for step in layer_steps(question.layers, rules)]
        return CostEstimate(
            microseconds=sum(step.microseconds for step in steps),
            bytes_moved=sum(step.bytes_moved for step in steps),
            macs=sum(step.macs for step in steps),
            basis=self.basis,
            source=self.source,
            steps=steps,
            is_lower_bound=True,
            is_nominal=self.is_nominal,
        )

    def _cost(self, step: LayerStep, question: CostQuestion) -> StepCost:
        macs = sum(layer.multiply_accumulates(question.specs) for layer in step.layers)
        cycles = macs / self.macs_per_cycle(question.precision(step.layers[0]))
        moved = _bytes_moved(step, question)
        return StepCost(
            layers=tuple(layer.name for layer in step.layers),
            compute_microseconds=cycles / self.clock_hz * 1e6,
            memory_microseconds=moved / self.bytes_per_second * 1e6,
            overhead_microseconds=self.step_seconds * 1e6,
            cycles=math.ceil(cycles),
            bytes_moved=moved,
            macs=macs,
            overlaps=True,
        )


def _bytes_moved(step: LayerStep, question: CostQuestion) -> int:
    tensors = [*(tensor for _, tensor in step.inputs), *step.outputs]
    specs = [question.specs[tensor.name] for tensor in tensors]
    features = sum(spec.dtype.bytes_of(math.prod(spec.shape)) for spec in specs)
    return features + sum(_weight_bytes(layer, question) for layer in step.layers)


def _weight_bytes(layer: Layer, question: CostQuestion) -> int:
    """Bytes of a layer's parameters and constant inputs in the type that it computes in."""
    arrays = [getattr(layer, field.name) for field in layer.parameters()]
    elements = sum([one.size for one in arrays if isinstance(one, np.ndarray)])
    flowing = {tensor.name for tensor in data_inputs(layer)}
    constants = [one for one in layer.connected_inputs if one.name not in flowing]
    elements += sum([math.prod(question.specs[one.name].shape) for one in constants])
    return question.precision(layer).bytes_of(elements) if elements else 0
