"""Device assignment, with TensorRT's meaning.

A layer's own device wins over the default. The default puts on the device every layer that can run there. A layer that
cannot run where it was put goes to the fallback device, with a warning; without fallback it is refused. Where fallback
is allowed, plugins may vote that a layer without a device of its own goes there though it need not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig, DeviceType
from dryfit.builder.config.computation_type import computes_on_codes
from dryfit.builder.placement.roles import LayerRole, layer_roles
from dryfit.errors import PlacementError
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.plugins import facade, registry
from dryfit.plugins.contributions import BuildObserver
from dryfit.short_text import count_text, grouped
from dryfit.target.target import Target
from dryfit.target.verdict import Verdict

if TYPE_CHECKING:
    from dryfit.plugins.contributions import PlacementVote
    from dryfit.plugins.hook_modules import Owned


NOWHERE = ""
"""The device of a layer that was refused."""

DEFAULT_DEVICE, OWN_DEVICE = "the default device", "its own device"
"""Causes of layers of which there is nothing more to tell."""


@frozen
class Assignment:
    """The device of each layer, with the reasons.

    Attributes:
        roles: layer name to role; the other attributes speak of layers whose role is work.
        devices: layer name to device; `NOWHERE` for a refused layer.
        causes: layer name to why it is there.
        verdicts: layer name to device to verdict, for the devices that were asked.
        refused: verdicts of the layers that can run neither on their device nor on the fallback device.
        warnings: one sentence a layer that fell back, and one for votes of a plugin that had no effect.
        targets: device to its target with the overlays of the build, for the devices that were asked.
    """

    roles: Mapping[str, LayerRole]
    devices: Mapping[str, str]
    causes: Mapping[str, str]
    verdicts: Mapping[str, Mapping[str, Verdict]]
    refused: Sequence[Verdict]
    warnings: Sequence[str]
    targets: Mapping[str, Target] = attrs.field(factory=dict)

    def lines(self) -> Iterator[str]:
        """Each layer with its device and the reason."""
        for layer, device in self.devices.items():
            yield f"{layer}: {device} ({self.causes[layer]})"

    def carries_data(self, tensor: Tensor) -> bool:
        """Whether a tensor is neither a constant nor the result of a shape computation."""
        producer = tensor.producer
        return producer is None or self.roles[producer.name] is LayerRole.WORK

    def target(self, layer: Layer) -> Target:
        """The device that a layer is looked at for: its own, and the host's for a refused one."""
        device = self.devices[layer.name]
        if device == NOWHERE:
            return registry.host()
        return self.targets[device] if device in self.targets else registry.target(device)


def placement_error(
    refusals: Sequence[Verdict | str],
    fallback_device: str | None,
    default_device: str = DeviceType.DLA,
    *,
    is_explicit: bool = False,
    has_zero_points: bool = False,
    may_fall_back: bool = True,
) -> PlacementError:
    """One error for everything that could not be placed. Layers that fail the same rules are told of once.

    Args:
        refusals: of layers, and of segments in words.
        fallback_device: the one that was allowed.
        default_device: the one that most layers were put on.
        is_explicit: whether the network has quantize and dequantize layers.
        has_zero_points: whether one of these has a zero point that is not 0.
        may_fall_back: whether fallback could be allowed; what stands alone has none.
    """
    translation = _quantization_remedy(default_device, has_zero_points=has_zero_points) if is_explicit else ""
    remedy = _fallback_remedy(default_device) if fallback_device is None else ""
    if not may_fall_back:
        remedy = f"A standalone build for {default_device} has no fallback: change the listed layers"
    verdicts = [refusal for refusal in refusals if not isinstance(refusal, str)]
    parts = {verdict.layer for verdict in verdicts} | {refusal for refusal in refusals if isinstance(refusal, str)}
    devices = dict.fromkeys(verdict.device for verdict in verdicts) or {default_device: None}
    named = " or ".join([*devices, *([] if fallback_device in (None, *devices) else [str(fallback_device)])])
    also = " and fallback is disabled" if fallback_device is None else ""
    what = count_text(len(parts), "layer" if len(verdicts) == len(refusals) else "network part")
    lines = grouped([_entry(refusal) for refusal in refusals])
    return PlacementError(
        f"{what} cannot run on {named}{also}",
        found="\n  " + "\n  ".join(lines) + "\n",
        remedy=". ".join(filter(None, (translation, remedy))) or None,
    )


def _quantization_remedy(device: str, *, has_zero_points: bool) -> str:
    """What can be done about a network that is quantized explicitly; "" where the device takes it as it is."""
    if computes_on_codes(registry.target(device)):
        return ""
    if has_zero_points:
        return (
            f"The network is quantized with zero points, which {device} does not support. --quantize-method onnx (or "
            "tflite, xnnpack, ...: `dryfit quantize-methods`) runs it on this machine's CPU with the arithmetic of "
            f"that library; for {device}, start from the model before it was quantized"
        )
    limits = registry.target(device).limits
    if limits is None or not limits.lacks("quantize"):
        return ""
    return (
        f"The network is quantized explicitly, which {device} does not support: `dryfit translate MODEL --to "
        "implicit` makes ranges, a calibration cache and layer precisions of its scales"
    )


def _entry(refusal: Verdict | str) -> tuple[object, str, str]:
    """A refusal for `grouped`: a layer's is like another's by device and rules, and a segment's like none."""
    if isinstance(refusal, str):
        return refusal, refusal, refusal
    return (refusal.device, tuple(one.rule for one in refusal.violations)), refusal.layer, str(refusal)


def _fallback_remedy(default_device: str) -> str:
    """What a fallback would have to be: what the GPU refuses, only the host can run."""
    host = registry.host().device
    if default_device == DeviceType.GPU:
        return f'Add --fallback {host} (or config.allow_fallback("{host}")), or change the listed layers'
    return "Add --fallback GPU (or set the flag GPU_FALLBACK), or change the listed layers"


def assign_devices(
    network: Network, config: BuilderConfig, own_devices: Mapping[str, str], observer: BuildObserver | None = None
) -> Assignment:
    """The device of each layer.

    Args:
        network: as it is built, after canonicalisation.
        config: default and fallback device, precision, platforms.
        own_devices: layer name to device, for the layers that have one of their own.
        observer: is told of every verdict.
    """
    roles = layer_roles(network)
    placer = _Placer(config, own_devices, observer or BuildObserver())
    for layer in network.layers:
        if roles[layer.name] is LayerRole.WORK:
            placer.place(layer)
    warnings = [*placer.warnings, *placer.votes.warnings]
    return Assignment(roles, placer.devices, placer.causes, placer.verdicts, placer.refused, warnings, placer.targets)


class _Placer:
    """Places one layer after another."""

    def __init__(self, config: BuilderConfig, own_devices: Mapping[str, str], observer: BuildObserver) -> None:
        self._config = config
        self._own_devices = own_devices
        self._observer = observer
        self._default, self._fallback = config.default_device_type, config.fallback_device
        self._verdict_on: dict[str, Callable[[Layer], Verdict]] = {}
        self.votes = PlacementVotes()
        self.targets: dict[str, Target] = {}
        self.devices: dict[str, str] = {}
        self.causes: dict[str, str] = {}
        self.verdicts: dict[str, dict[str, Verdict]] = {}
        self.refused: list[Verdict] = []
        self.warnings: list[str] = []

    def place(self, layer: Layer) -> None:
        own, fallback = self._own_devices.get(layer.name), self._fallback
        device = own or self._default
        verdict = self._ask(layer, device)
        if not own and (elected := self._elected(layer, device)):
            self._put(layer, *elected)
        elif verdict:
            self._put(layer, device, OWN_DEVICE if own else DEFAULT_DEVICE)
        elif fallback is None or fallback == device:
            self._put(layer, NOWHERE, str(verdict))
            self.refused.append(verdict)
        elif second := self._ask(layer, fallback):
            self._put(layer, fallback, str(verdict))
            self.warnings.append(f"{verdict}. It runs on {fallback}")
        else:
            self._put(layer, NOWHERE, str(verdict))
            self.refused += [verdict, second]

    def _put(self, layer: Layer, device: str, cause: str) -> None:
        self.devices[layer.name] = device
        self.causes[layer.name] = cause

    def _elected(self, layer: Layer, default: str) -> tuple[str, str] | None:
        """The device that plugins voted for, and the cause; None where there is no choice, or no vote decides it."""
        fallback = self._fallback
        if fallback is None or fallback == default or not self.votes.is_held:
            return None
        return self.votes.elect(layer, {device: self._ask(layer, device) for device in (default, fallback)})

    def _ask(self, layer: Layer, device: str) -> Verdict:
        asked = self.verdicts.setdefault(layer.name, {})
        if device not in asked:
            if device not in self._verdict_on:
                self.targets[device] = self._config.target(device)
                self._verdict_on[device] = verdicts_of(device, self._config, self._own_devices)
            asked[device] = self._verdict_on[device](layer)
            self._observer.verdict_given(asked[device])
        return asked[device]


def ask(layer: Layer, device: str, config: BuilderConfig, own_devices: Mapping[str, str]) -> Verdict:
    """The verdict on one layer; see `verdicts_of`."""
    return verdicts_of(device, config, own_devices)(layer)


def verdicts_of(device: str, config: BuilderConfig, own_devices: Mapping[str, str]) -> Callable[[Layer], Verdict]:
    """Gives the verdict on a layer of the network that is built, which is a copy of the user's.

    Args:
        device: the one that is asked about.
        config: precision, platform.
        own_devices: name of each layer to which the user gave a device, to that device.
    """
    target = config.target(device)

    def is_put_here(one: Layer) -> bool:
        return own_devices.get(one.name) == device

    question = config.questions(target, is_put_here=is_put_here)
    verdict = target.repeated_verdicts()
    return lambda layer: verdict(question(layer))


LISTED_LAYERS = 4
"""How many layers a warning names. Our choice: the rest is like them."""


class PlacementVotes:
    """Counts the votes on one layer after another, and remembers those without effect.

    Attributes:
        is_held: whether any plugin votes: where none does, no verdict need be made for it.
    """

    def __init__(self) -> None:
        self.is_held = facade.is_implemented("vote_on_placement")
        self._idle: dict[tuple[str, str, str], list[str]] = {}

    def elect(self, layer: Layer, verdicts: Mapping[str, Verdict]) -> tuple[str, str] | None:
        """The device with the largest sum of votes, and the votes in words; None where no vote decides anything.

        Args:
            layer: one without a device of its own.
            verdicts: of the default device and the fallback device, in this order. A layer that the default device
                cannot run is not voted on: it has one place to go.
        """
        cast = [vote for vote in facade.placement_votes(layer, verdicts) if self._counts(layer, vote, verdicts)]
        default, fallback = verdicts
        if not cast or not verdicts[default]:
            return None
        sums = {device: sum(one.value.weight for one in cast if _device(one.value) == device) for device in verdicts}
        wins = sums[fallback] > sums[default]
        elected, other = (fallback, default) if wins else (default, fallback)
        outcome = f"elected with {sums[elected]:g} to {sums[other]:g} votes" if sums[elected] > sums[other] else "a tie"
        return elected, f"{'the fallback' if wins else 'the default'} device, {outcome}: {'; '.join(map(_told, cast))}"

    @property
    def warnings(self) -> list[str]:
        """One sentence for all votes of a plugin that had no effect for one reason."""
        return [
            f"{plugin} voted for {device} without effect, since {why}: {_listed(layers)}"
            for (plugin, device, why), layers in self._idle.items()
        ]

    def _counts(self, layer: Layer, vote: Owned[PlacementVote], verdicts: Mapping[str, Verdict]) -> bool:
        why = _without_effect(vote.value, verdicts)
        if why:
            self._idle.setdefault((str(vote.plugin), _device(vote.value), why), []).append(layer.name)
        return not why


def _without_effect(vote: PlacementVote, verdicts: Mapping[str, Verdict]) -> str:
    """Why a vote counts for nothing; "" where it counts."""
    device = _device(vote)
    if device not in verdicts:
        return f"it is neither the default nor the fallback device ({', '.join(verdicts)})"
    if not isinstance(vote.weight, int | float) or not math.isfinite(vote.weight):
        return f"the weight {vote.weight!r} must be a finite number"
    return "" if verdicts[device] else "it does not support these layers"


def _device(vote: PlacementVote) -> str:
    return str(vote.device).upper()


def _told(vote: Owned[PlacementVote]) -> str:
    reason = " ".join(str(vote.value.reason).split())
    return f"{vote.plugin} for {_device(vote.value)} with weight {vote.value.weight:g}, {reason}"


def _listed(layers: Sequence[str]) -> str:
    shown = ", ".join(map(repr, layers[:LISTED_LAYERS]))
    return shown if len(layers) <= LISTED_LAYERS else f"{shown} and {len(layers) - LISTED_LAYERS} more"
