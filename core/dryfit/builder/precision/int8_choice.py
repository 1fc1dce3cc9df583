"""Which layers of an implicitly quantized network are computed in INT8, why the others are not, and what stays real.

A layer is asked about in INT8 when all its tensors have scales. Here those are taken out again that the network as a
whole speaks against: what lies near its outputs, and what would cost more in conversions than it saves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import attrs

from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.config.computation_type import REDUCED_TYPES
from dryfit.builder.precision.chosen import PrecisionCause, PrecisionReason
from dryfit.builder.precision.int8_benefit import layers_without_benefit
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.elementwise import Elementwise
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.quantization.int8_steps import missing_scales
from dryfit.quantization.int8_weights import constant_weights
from dryfit.target.target import Target

INT8_OPERATIONS = frozenset({"SUM", "SUB", "PROD", "MAX", "MIN"})
"""Operations on two tensors that are computed in INT8; quotients and powers are not."""


@frozen(eq=False)
class Int8Candidate:
    """A layer that was asked about in INT8.

    Attributes:
        layer: the layer.
        target: its device.
        real_type: the type in which it is computed otherwise; None where the device may compute it in INT8 only.
        missing: names of its tensors that have no scale.
        inside: its tensors that have none and need none, as long as the layer on the other side is INT8 too.
    """

    layer: Layer
    target: Target
    real_type: DataType | None
    missing: Sequence[str]
    inside: Sequence[Tensor] = ()

    @property
    def is_constrained(self) -> bool:
        """Whether the user set its precision to INT8."""
        return self.layer.precision is DataType.INT8

    @property
    def is_free(self) -> bool:
        """Whether it may be computed in real numbers instead."""
        return self.real_type is not None and not self.is_constrained

    @property
    def takes_part_in_noise_reduction(self) -> bool:
        """Whether the device computes in FP32, to which the heuristic goes back."""
        return self.is_free and DataType.FLOAT in self.target.precisions


class RealTypes:
    """The types of layers that are not computed in INT8; each device is asked once about a layer.

    Args:
        config: the flags. It does not change meanwhile.
    """

    def __init__(self, config: BuilderConfig) -> None:
        self._config = config
        self._of_device: dict[str, Callable[[Layer], DataType | None]] = {}
        self._found: dict[tuple[str, str], DataType | None] = {}

    def of(self, layer: Layer, target: Target) -> DataType | None:
        """The type of a layer of the network; None where its device has none for it."""
        place = layer.name, target.device
        if place not in self._found:
            if target.device not in self._of_device:
                self._of_device[target.device] = self._asked(target)
            self._found[place] = self._of_device[target.device](layer)
        return self._found[place]

    def _asked(self, target: Target) -> Callable[[Layer], DataType | None]:
        flags = (dtype for flag, dtype in REDUCED_TYPES if self._config.get_flag(flag) and dtype in target.precisions)
        found = next(flags, target.default_precision)
        question, verdict = self._config.questions(target), target.repeated_verdicts()

        def real_type(layer: Layer) -> DataType | None:
            return found if found and verdict(attrs.evolve(question(layer), precision=found)) else None

        return real_type


def refused_candidates(
    layers: Sequence[Layer],
    candidates: Mapping[str, Int8Candidate],
    specs: Mapping[str, TensorSpec],
    is_exchanged: Callable[[Tensor], bool],
    wanted_types: Mapping[str, DataType] | None = None,
) -> dict[str, PrecisionReason]:
    """The candidates that are not computed in INT8 after all, with the reasons.

    Args:
        layers: all layers that run on devices, in topological order.
        candidates: layer name to candidate.
        specs: tensor name to spec at the shapes that count.
        is_exchanged: whether a tensor is data that INT8 layers give one another in INT8.
        wanted_types: name of each network output whose type on the caller's side was stated, to that type.
    """
    if not candidates:
        return {}
    is_explicit = any(layer.is_quantization for layer in layers)
    reasons = {name: _own_reason(one, is_explicit) for name, one in candidates.items()}
    refused = {name: reason for name, reason in reasons.items() if reason is not None}
    for name in layers_near_outputs(layers, wanted_types):
        if name in candidates and name not in refused and candidates[name].takes_part_in_noise_reduction:
            refused[name] = _NOISE
    refused |= _broken_steps(candidates, refused)
    eligible = [name for name in candidates if name not in refused]
    widths = {name: (one.real_type or DataType.FLOAT).bits // 8 for name, one in candidates.items()}
    losing = layers_without_benefit(layers, eligible, widths, lambda tensor: _elements(specs, tensor), is_exchanged)
    refused.update((name, _NO_BENEFIT) for name in eligible if name in losing and candidates[name].is_free)
    return refused | _broken_steps(candidates, refused)


def _broken_steps(candidates: Mapping[str, Int8Candidate], refused: Collection[str]) -> dict[str, PrecisionReason]:
    """Layers that share a tensor without a scale with one that is not computed in INT8 beside them."""
    broken_steps: dict[str, PrecisionReason] = {}
    in_real_numbers = {*refused}
    waiting = [name for name in candidates if name not in in_real_numbers]
    while waiting:
        name = waiting.pop()
        layer = candidates[name].layer
        neighbours = {tensor.name: _other_side(tensor, layer) for tensor in candidates[name].inside}
        broken = [one for one, other in neighbours.items() if other not in candidates or other in in_real_numbers]
        if name not in in_real_numbers and broken:
            broken_steps[name] = without_scales(broken)
            in_real_numbers.add(name)
            waiting += [other for other in neighbours.values() if other in candidates and other not in in_real_numbers]
    return broken_steps


def _other_side(tensor: Tensor, layer: Layer) -> str:
    """Name of the other of the two layers that a tensor inside a step connects."""
    producer = tensor.producer
    return tensor.consumers[0][0].name if producer is layer or producer is None else producer.name


_EXPLICIT = PrecisionReason(
    PrecisionCause.EXPLICIT, "The network has quantize and dequantize layers, which alone decide what is quantized"
)
_NO_FLAG = PrecisionReason(PrecisionCause.FLAGS, "The flag INT8 is not set")
_NOISE = PrecisionReason(
    PrecisionCause.NOISE_REDUCTION, "It is near a network output, where quantization noise is not smoothed"
)
_NO_BENEFIT = PrecisionReason(
    PrecisionCause.DOES_NOT_PAY, "Conversions around it would move at least as many bytes as INT8 saves"
)


def _own_reason(candidate: Int8Candidate, is_explicit: bool) -> PrecisionReason | None:
    """Why the layer itself cannot be computed in INT8; None where it can."""
    layer = candidate.layer
    if is_explicit:
        return _EXPLICIT
    if candidate.missing:
        return without_scales(candidate.missing)
    if candidate.real_type is None:
        return None
    if layer.needs_real_numbers:
        return PrecisionReason(PrecisionCause.KIND, f"A layer of kind {layer.kind} is computed in floating point")
    if isinstance(layer, Elementwise) and layer.op.name not in INT8_OPERATIONS:
        return PrecisionReason(PrecisionCause.KIND, f"The operation {layer.op.name} is computed in floating point")
    if layer.kind == "matrix_multiply" and constant_weights(layer) is None:
        text = "Both matrices depend on the input: INT8 is supported for products with weights only"
        return PrecisionReason(PrecisionCause.KIND, text)
    ranks = [tensor.spec.rank for tensor in layer.inputs if tensor is not None]
    if layer.kind == "matrix_multiply" and any(rank != 2 for rank in ranks):
        # Source: TensorRT 8 and 10 developer guides, implicit quantization: weights of matrix products.
        text = f"Both inputs of an INT8 matrix product must be 2-D (found ranks {ranks[0]} and {ranks[1]})"
        return PrecisionReason(PrecisionCause.KIND, text)
    return None


def without_scales(missing: Sequence[str]) -> PrecisionReason:
    """The reason of a layer whose tensors lack scales."""
    text = f"No scale for {', '.join(map(repr, missing))}"
    return PrecisionReason(PrecisionCause.NO_SCALES, text, tuple(missing))


def first_reason(
    layer: Layer, target: Target, config: BuilderConfig, asked: DataType, notes: Sequence[str], *, is_explicit: bool
) -> PrecisionReason:
    """Why a layer was not even asked about in INT8, or is computed in another type than it was asked about.

    Args:
        layer: a layer that computes on real numbers.
        target: its device.
        config: the flags.
        asked: the type that it was asked about.
        notes: what the device's rules tell of it.
        is_explicit: whether the network says by quantize and dequantize layers what is quantized.
    """
    if layer.precision is not None:
        return PrecisionReason(PrecisionCause.CONSTRAINT, f"Its precision was set to {layer.precision.text}")
    if is_explicit:
        return _EXPLICIT
    if asked is DataType.INT8:
        return PrecisionReason(PrecisionCause.PROMOTED, "; ".join(notes) or f"{target.device} promotes it")
    if not config.get_flag(BuilderFlag.INT8):
        return _NO_FLAG
    if DataType.INT8 not in target.precisions:
        return PrecisionReason(PrecisionCause.DEVICE, f"{target.device} does not compute in INT8")
    return without_scales([tensor.name for tensor in missing_scales(layer)])


def _elements(specs: Mapping[str, TensorSpec], tensor: Tensor) -> int:
    return math.prod(max(extent, 1) if extent < 0 else extent for extent in specs[tensor.name].shape)


def layers_near_outputs(layers: Sequence[Layer], wanted_types: Mapping[str, DataType] | None = None) -> frozenset[str]:
    """Names of the layers on paths from a last smoothing layer, which is one of them, to a real network output.

    A path does not count that has a plugin layer, or a layer that the user constrained to INT8 by its precision or an
    output type; neither does a network output that the user wants in INT8.

    Args:
        layers: those that run on devices, in topological order.
        wanted_types: name of each network output whose type on the caller's side was stated, to that type.
    """
    wanted, near = wanted_types or {}, set[str]()
    for layer in reversed(layers):
        goes_on = any(
            reader.name in near and not reader.sums_products
            for output in layer.outputs
            for reader, _ in output.consumers
        )
        is_at_end = any(
            output.is_network_output and wanted.get(output.name) is not DataType.INT8 for output in layer.outputs
        )
        if (goes_on or is_at_end) and layer.kind != "plugin" and not _is_constrained(layer):
            near.add(layer.name)
    kept: set[str] = set()
    for layer in layers:
        sources = {tensor.producer.name for tensor in layer.inputs if tensor is not None and tensor.producer}
        # A smoothing layer begins a path anew, whatever came before it.
        if layer.name in near and (layer.sums_products or sources & kept):
            kept.add(layer.name)
    return frozenset(kept)


def _is_constrained(layer: Layer) -> bool:
    return layer.precision is DataType.INT8 or DataType.INT8 in layer.output_types.values()
