"""The type in which each layer is computed, and with it the type of each tensor on its way between layers.

Networks are weakly typed unless they were created otherwise, as TensorRT's are up to version 10: FLOAT in a network
means "as precise as the builder was allowed to be". Where the config's flags allow FP16, layers that work on
floating-point numbers are computed in it. What is not arithmetic on such numbers keeps the types that it has. A layer
plugin gets the combination of types, of those that it names, that suits the flags best. In a strongly typed network
nothing is chosen.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, cast

import attrs

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.config.computation_type import REDUCED_TYPES, computes_on_codes, is_strongly_typed
from dryfit.builder.config.quantization_mode import is_explicit
from dryfit.builder.placement.assign import Assignment
from dryfit.builder.precision.chosen import WEAK_TYPES, PrecisionCause, PrecisionReason, Precisions
from dryfit.builder.precision.int8_choice import Int8Candidate, RealTypes, first_reason, refused_candidates
from dryfit.builder.precision.signed_codes import signed_codes
from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.format_combinations import FormatCombination, chosen_combination
from dryfit.network.layer import Layer
from dryfit.network.layers.plugin import Plugin
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor, TensorSpec
from dryfit.quantization.int8_steps import has_scale, is_inside_step, real_tensors, tensors_without_range
from dryfit.quantization.quantized_group import code_type
from dryfit.target.arithmetic import weight_rounding
from dryfit.target.target import Target
from dryfit.target.verdict import Verdict


def choose_precisions(
    network: Network,
    assignment: Assignment,
    config: BuilderConfig,
    specs: Mapping[str, TensorSpec],
    given_types: Mapping[str, DataType] | None = None,
    wanted_types: Mapping[str, DataType] | None = None,
    segments: Mapping[str, int] | None = None,
    real_types: RealTypes | None = None,
) -> Precisions:
    """The computation type of every layer that runs on a device.

    Args:
        network: as it was placed.
        assignment: devices and verdicts.
        config: flags.
        specs: tensor name to spec at the shapes that count.
        given_types: as in `Precisions`; {} for None.
        wanted_types: the same.
        segments: layer name to segment; None: as if each device had one.
        real_types: what devices answered about this network and config before; None for nothing.

    Raises:
        NetworkError: layer plugins do not compute with any types that are permitted, or a device has no type that a
            layer can be computed in; all of them are listed.
    """
    chooser = _Chooser(config, real_types or RealTypes(config), is_explicit=is_explicit(network))
    layers = [layer for layer in network.layers if layer.name in assignment.devices]
    for layer in layers:
        verdict = assignment.verdicts.get(layer.name, {}).get(assignment.devices[layer.name])
        chooser.choose(layer, assignment.target(layer), verdict)
    if chooser.refusals:
        raise NetworkError(
            "Layer plugins must get the types that they need:\n  " + "\n  ".join(chooser.refusals),
            remedy="Add casts around these layers, or list more types in the plugins' `formats`",
        )
    chooser.choose_int8(layers, specs, wanted_types)
    _require_types_of_devices(chooser, layers, assignment)
    chosen = Precisions(
        chooser.layers,
        frozenset(chooser.converted),
        chooser.output_types,
        chooser.warnings,
        chooser.problems,
        chooser.combinations,
        chooser.reasons,
        assumes_scales=config.assume_scales,
        given_types=given_types or {},
        wanted_types=wanted_types or {},
        signed_codes=signed_codes(network, assignment),
    )
    return with_real_tensors(chosen, layers, assignment.devices if segments is None else segments, assignment, config)


def _require_types_of_devices(chooser: _Chooser, layers: Sequence[Layer], assignment: Assignment) -> None:
    """Refuse what a layer's verdict could not foresee: INT8 that is taken back, or a note that promotes a layer.

    Raises:
        NetworkError: a layer would be computed in a type that its device does not have.
    """
    foreign = [
        f"layer {layer.name!r} on {target.device} ({', '.join(dtype.text for dtype in target.precisions)}) would be "
        f"computed in {chooser.layers[layer.name].text}: {chooser.reasons[layer.name].text}"
        for layer in layers
        if layer.name in chooser.converted
        and chooser.layers[layer.name] not in (target := assignment.target(layer)).precisions
    ]
    if foreign:
        raise NetworkError(
            "Layers must be computed in types that their device supports",
            found="\n  ".join(["", *foreign]),
            remedy="Move them to another device with set_device_type, or set scales for their tensors",
        )


class _Chooser:
    """Chooses for one layer after another."""

    def __init__(self, config: BuilderConfig, real_types: RealTypes, *, is_explicit: bool) -> None:
        self._config = config
        self._real_types = real_types
        self._is_explicit = is_explicit
        self._obeys = config.get_flag(BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
        self._flagged = [dtype for flag, dtype in REDUCED_TYPES if config.get_flag(flag)]
        self.layers: dict[str, DataType] = {}
        self.converted: dict[str, None] = {}
        self.output_types: dict[tuple[str, int], DataType] = {}
        self.warnings: list[str] = []
        self.problems: list[str] = []
        self.combinations: dict[str, FormatCombination] = {}
        self.refusals: list[str] = []
        self.reasons: dict[str, PrecisionReason] = {}
        self._candidates: dict[str, Int8Candidate] = {}

    def choose(self, layer: Layer, target: Target, verdict: Verdict | None) -> None:
        tensors = [tensor for tensor in (*layer.outputs, *layer.inputs) if tensor is not None]
        own = next((tensor.dtype for tensor in tensors if tensor.dtype in WEAK_TYPES), None)
        if isinstance(layer, Plugin) and self._has_combination(layer, target, own, verdict):
            types = (*self.combinations[layer.name].output_types, *self.combinations[layer.name].input_types)
            self.layers[layer.name] = next((dtype for dtype in types if dtype in WEAK_TYPES), types[0])
        elif own is None or layer.has_fixed_types:
            self.layers[layer.name] = tensors[0].dtype if tensors else DataType.FLOAT
            self.reasons[layer.name] = _NO_ARITHMETIC
        elif is_strongly_typed(layer):
            self.layers[layer.name] = own
            self.reasons[layer.name] = _TYPED
        else:
            found = self._computation_type(layer, target, own, verdict)
            if self._is_explicit and computes_on_codes(target) and found is code_type(layer):
                # The layers around it say how the codes stand for real numbers: there is nothing to choose.
                self.layers[layer.name] = own
                self.reasons[layer.name] = _ON_CODES
            else:
                self._convert(layer, target, found, verdict)
        for index, wished in sorted(layer.output_types.items()):
            self._choose_output(layer, index, wished, target)

    def _convert(self, layer: Layer, target: Target, found: DataType, verdict: Verdict | None) -> None:
        """Record the type that a layer of a weakly typed network is computed in, and why."""
        self.layers[layer.name] = found
        self.converted[layer.name] = None
        if found is DataType.INT8:
            text = "Scales are assumed" if self._config.assume_scales else "Its tensors have scales"
            self.reasons[layer.name] = PrecisionReason(PrecisionCause.INT8, text)
            lacking = [] if self._config.assume_scales else tensors_without_range(layer)
            inside = [tensor for tensor in lacking if is_inside_step(tensor)]
            missing = [tensor.name for tensor in lacking if tensor not in inside]
            wider = self._real_types.of(layer, target)
            self._candidates[layer.name] = Int8Candidate(layer, target, wider, missing, inside)
        else:
            asked = self._config.asked_type(layer, target)
            notes = [] if verdict is None else [str(note) for note in verdict.notes]
            self.reasons[layer.name] = first_reason(
                layer, target, self._config, asked, notes, is_explicit=self._is_explicit
            )

    def choose_int8(
        self,
        layers: Sequence[Layer],
        specs: Mapping[str, TensorSpec],
        wanted_types: Mapping[str, DataType] | None = None,
    ) -> None:
        """Take back INT8 where the network as a whole speaks against it.

        Args:
            layers: all that run on devices, in topological order.
            specs: tensor name to spec.
            wanted_types: as in `choose_precisions`.
        """
        is_exchanged = functools.partial(has_scale, assumes_scales=self._config.assume_scales)
        for name, reason in refused_candidates(layers, self._candidates, specs, is_exchanged, wanted_types).items():
            one = self._candidates[name]
            self.reasons[name] = reason
            own = _own_type(one.layer)
            is_fp32 = reason.cause is PrecisionCause.NOISE_REDUCTION or one.real_type is None
            self.layers[name] = own if is_fp32 else self._not_widened(own, cast("DataType", one.real_type), one.target)
            if one.is_constrained:
                self._cannot(f"layer {name!r} asks for precision INT8, which is not possible: {reason.text}")

    def _has_combination(self, layer: Plugin, target: Target, own: DataType | None, verdict: Verdict | None) -> bool:
        """Choose among the types and formats that a layer's plugin names; False where it names none.

        FLOAT is always permitted, since it holds what narrower types hold; so is what the network has, which is all
        that a strongly typed one permits. Types that the device does not have are not.
        """
        wish = DataType.FLOAT if own is None else self._computation_type(layer, target, own, verdict)
        permitted = [*self._flagged, DataType.FLOAT]
        permitted += [tensor.dtype for tensor in layer.inputs if tensor is not None and tensor.dtype in WEAK_TYPES]
        permitted = [dtype for dtype in (wish, *permitted) if dtype in target.precisions]
        if layer.precision in WEAK_TYPES:
            permitted = [layer.precision]
        inputs = [None if tensor is None else tensor.spec for tensor in layer.inputs]
        try:
            combination = chosen_combination(
                layer.implementation(),
                layer.complete_fields(),
                inputs,
                [wish, *permitted],
                allowed=None if is_strongly_typed(layer) else list(dict.fromkeys(permitted)),
            )
        except NetworkError as error:
            self.refusals.append(f"{layer.where}: {error}")
            return False
        if combination is not None:
            self.combinations[layer.name] = combination
        return combination is not None

    def _computation_type(self, layer: Layer, target: Target, own: DataType, verdict: Verdict | None) -> DataType:
        if layer.precision is not None and layer.precision not in target.precisions:
            # The rule on the device's types lets this pass where the device has the layer's own type.
            self._cannot(
                f"layer {layer.name!r} asks for precision {layer.precision.text}, which {target.device} does not have "
                f"({', '.join(precision.text for precision in target.precisions)})"
            )
            return own
        asked = self._config.question(layer, target).precision if verdict is None else verdict.precision
        return asked if layer.precision is not None else self._not_widened(own, asked, target)

    def _not_widened(self, own: DataType, asked: DataType, target: Target) -> DataType:
        """The type of a layer that asks for none: its own where no flag asks for the other and that would widen it."""
        is_default = asked is target.default_precision and asked not in self._flagged
        return own if is_default and own in target.precisions and own.bits <= asked.bits else asked

    def _choose_output(self, layer: Layer, index: int, wished: DataType, target: Target) -> None:
        if not 0 <= index < len(layer.outputs) or layer.outputs[index].dtype not in WEAK_TYPES:
            return
        formats = target.output_formats
        has_type = wished in WEAK_TYPES or (
            wished is DataType.INT8
            and DataType.INT8 in target.precisions
            and has_scale(layer.outputs[index], self._config.assume_scales)
        )
        if not has_type or (formats and wished not in formats):
            self._cannot(f"layer {layer.name!r} cannot give output {index} as {wished.name} on {target.device}")
        else:
            self.output_types[layer.name, index] = wished

    def _cannot(self, what: str) -> None:
        (self.problems if self._obeys else self.warnings).append(what)


_TYPED = PrecisionReason(
    PrecisionCause.STRONGLY_TYPED, "The network is strongly typed: its types are those of the computation"
)
_ON_CODES = PrecisionReason(
    PrecisionCause.EXPLICIT, "The quantize and dequantize layers around it say on what codes the device computes it"
)
_NO_ARITHMETIC = PrecisionReason(
    PrecisionCause.NO_ARITHMETIC, "It does no floating-point arithmetic, or its types are part of its definition"
)


def _own_type(layer: Layer) -> DataType:
    """The first floating-point type of a layer's tensors."""
    tensors = [tensor for tensor in (*layer.outputs, *layer.inputs) if tensor is not None]
    return next((tensor.dtype for tensor in tensors if tensor.dtype in WEAK_TYPES), DataType.FLOAT)


def with_real_tensors(
    precisions: Precisions,
    layers: Sequence[Layer],
    segments: Mapping[str, Any],
    assignment: Assignment,
    config: BuilderConfig,
) -> Precisions:
    """The precisions with what INT8 layers keep in real numbers, and how they round their weights.

    Args:
        precisions: computation types.
        layers: that run on devices.
        segments: layer name to what it shares with the layers that it may run as one with.
        assignment: devices.
        config: software versions of the devices.
    """
    int8 = [layer for layer in layers if precisions.is_int8(layer)]
    steps: dict[Any, list[Layer]] = {}
    for layer in int8:
        steps.setdefault(segments.get(layer.name), []).append(layer)
    inside = frozenset[str]().union(*(real_tensors(members) for members in steps.values()))
    inner = attrs.evolve(precisions, real_tensors=inside)
    outputs = {}
    rounding = {}
    for layer in int8:
        target = assignment.target(layer)
        software = config.software(target.device)
        rounding[layer.name] = weight_rounding(target.arithmetic, DataType.INT8, software)
        for index, tensor in enumerate(layer.outputs):
            wanted = _types_wanted(inner, tensor)
            formats = target.output_formats
            if len(wanted) == 1 and wanted <= WEAK_TYPES and (not formats or wanted <= formats.keys()):
                outputs[layer.name, index] = next(iter(wanted))
    return attrs.evolve(inner, real_outputs=outputs, weight_rounding=rounding)


def _types_wanted(precisions: Precisions, tensor: Tensor) -> set[DataType]:
    """The types in which a tensor is read."""
    wanted = {precisions.input_type(reader, index) for reader, index in tensor.consumers}
    return wanted | ({precisions.network_output_type(tensor)} if tensor.is_network_output else set())
