"""The types of layers on each device, independent of the placement: those they have if it runs everything it can.

Fused INT8 layers keep the values between them in floating point. A border through a step ends that: the tensor is then
stored in the type that its readers require.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs

from dryfit.answers.placement_search.choices import Choices
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.design import Design
from dryfit.builder.precision.chosen import Precisions
from dryfit.builder.precision.layer_precisions import choose_precisions
from dryfit.builder.segments.pools import stays_within
from dryfit.network.layer import Layer


class DeviceTypes:
    """Computation types by device."""

    def __init__(self, choices: Choices, design: Design, config: BuilderConfig) -> None:
        self._others = design.precisions
        self._layers = {layer.name: layer for layer in choices.layers}
        self._of: dict[str, Precisions] = {}
        for device in (choices.device, choices.other):
            assignment = choices.with_devices(choices.placed_on(device))
            given, wanted = design.precisions.given_types, design.precisions.wanted_types
            self._of[device] = choose_precisions(design.network, assignment, config, design.specs, given, wanted)

    def inside(self, device: str, layers: Sequence[Layer]) -> Precisions:
        """Return the types of layers that are one segment of a device."""
        precisions = self._of.get(device, self._others)
        members = dict.fromkeys(layer.name for layer in layers)
        outputs = (tensor for layer in layers for tensor in layer.outputs if tensor.name in precisions.real_tensors)
        return self._with_steps(precisions, {tensor.name for tensor in outputs if stays_within(tensor, members)})

    def apart(self, device: str) -> Precisions:
        """Return the types of tensors that layers on a device exchange with other devices."""
        return self._with_steps(self._of.get(device, self._others), ())

    def _with_steps(self, precisions: Precisions, inside: Collection[str]) -> Precisions:
        """Return the precisions with exactly these tensors inside steps."""
        ended = precisions.real_tensors.difference(inside)
        real_outputs = {
            (layer, index): dtype
            for (layer, index), dtype in precisions.real_outputs.items()
            if self._layers[layer].outputs[index].name not in ended
        }
        return attrs.evolve(precisions, real_tensors=frozenset(inside), real_outputs=real_outputs)
