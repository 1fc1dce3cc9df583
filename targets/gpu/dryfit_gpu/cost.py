"""What a GPU is estimated to take: a roofline of published peaks, which real kernels do not reach.

Each step takes as long as its multiply-accumulates at the board's peak or its bytes at the memory's peak, whichever is
longer, and a launch. Nothing is fitted: no published figure of a network that a GPU of these boards runs alone was at
hand. It is a bound from below, and says so (`is_lower_bound`): a placement by cost then tells how much longer the GPU
may take before the proposal is worth nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layer_macs import multiply_accumulates
from dryfit.target.cost import CostEstimate, CostQuestion, StepCost
from dryfit.target.layer_steps import WEIGHTED_KINDS, LayerStep, StepRules, data_inputs, layer_steps
from dryfit.target.power_mode import PowerMode
from dryfit_gpu.energy import energy_of

LAUNCH_SECONDS = 5e-6
"""Of a kernel: our choice, in the range that launches are known to take."""

BASIS = "the longer of multiply-accumulates and bytes at the board's published peaks, and a launch for each step"
SOURCE = "published peaks of the board and its power modes; the launch is our choice; nothing is fitted"


@attrs.frozen
class Peak:
    """What a GPU can do at most, for each cycle of its clocks.

    Attributes:
        int8_macs: dense, by the tensor cores; of FP16 and BF16 half as many.
        float_macs: by the plain cores.
        memory_bytes: of the memory's clock.
    """

    int8_macs: int
    float_macs: int
    memory_bytes: int

    def macs(self, precision: DataType) -> float:
        """Multiply-accumulates a cycle."""
        if precision is DataType.INT8:
            return self.int8_macs
        return self.int8_macs / 2 if precision in (DataType.HALF, DataType.BF16) else self.float_macs


PEAKS: Mapping[str, Peak] = {
    "agx-orin-64": Peak(64 * 512, 2048, 64),
    "agx-orin-32": Peak(56 * 512, 1792, 64),
    "orin-nx-16": Peak(32 * 512, 1024, 32),
    "orin-nx-8": Peak(32 * 512, 1024, 32),
    "orin-nano": Peak(32 * 512, 1024, 32),
    "agx-xavier": Peak(64 * 128, 512, 64),
    "xavier-nx": Peak(48 * 128, 384, 32),
}
"""Platform to peak."""

FOLLOWING = frozenset({"activation", "elementwise", "parametric_relu", "scale", "unary"})
"""Kinds that run with the layer before them."""


def estimate_cost(question: CostQuestion) -> CostEstimate | None:
    """The estimate of a segment; None for a GPU that no board was named for."""
    mode = question.power_mode or question.platform.power_mode(None)
    peak = PEAKS.get(question.platform.name)
    if mode is None or peak is None:
        return None
    rules = StepRules(WEIGHTED_KINDS | {"matrix_multiply"}, FOLLOWING, lambda layer: layer.kind == "shape")
    steps = [_step_cost(step, question, peak, mode) for step in layer_steps(question.layers, rules)]
    return CostEstimate(
        microseconds=sum(step.microseconds for step in steps),
        bytes_moved=sum(step.bytes_moved for step in steps),
        macs=sum(step.macs for step in steps),
        basis=f"{BASIS}; {question.platform.title} in power mode {mode.name}",
        source=SOURCE,
        energy=energy_of(steps, question.platform.name, mode.name),
        steps=steps,
        is_lower_bound=True,
    )


def _step_cost(step: LayerStep, question: CostQuestion, peak: Peak, mode: PowerMode) -> StepCost:
    macs = sum(multiply_accumulates(layer, question.specs) for layer in step.layers)
    cycles = macs / peak.macs(_precision(step.layers[0], question))
    moved = _bytes_moved(step, question)
    return StepCost(
        layers=tuple(layer.name for layer in step.layers),
        compute_microseconds=cycles / mode.clock_hz * 1e6,
        memory_microseconds=moved / (peak.memory_bytes * mode.memory_clock_hz) * 1e6,
        overhead_microseconds=LAUNCH_SECONDS * 1e6,
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
    elements = sum(one.size for one in arrays if isinstance(one, np.ndarray))
    flowing = {tensor.name for tensor in data_inputs(layer)}
    constants = [one for one in layer.inputs if one is not None and one.name not in flowing]
    elements += sum(math.prod(question.specs[one.name].shape) for one in constants)
    return _precision(layer, question).bytes_of(elements)


def _precision(layer: Layer, question: CostQuestion) -> DataType:
    return question.precisions.get(layer.name, question.specs[layer.outputs[0].name].dtype)
