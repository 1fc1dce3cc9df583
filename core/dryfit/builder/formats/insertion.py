"""The format of each tensor on each device, and the copies between them, chosen to move the fewest bytes.

A device works in its native format (`TargetVariant.native_format`); what it reads or writes in another one it converts
itself, which moves the tensor once more. Where that costs as much as a copy, there is a copy, as TensorRT makes it.
Where a type changes inside one loadable, the device converts the numbers on their way, and there is none.
Because the inside of a segment is thereby fixed, the choice at one tensor's borders does not touch another's, and the
best choice for each tensor is the best for the whole network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.formats.choice import choose_forms
from dryfit.builder.formats.forms import TensorForms
from dryfit.builder.formats.sides import Sides
from dryfit.builder.placement.partition import Partition
from dryfit.builder.placement.target_variant import Specs, TargetVariant
from dryfit.builder.precision.chosen import Precisions
from dryfit.engine.plan import Reformat
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor, TensorLocation


@attrs.frozen
class Formats:
    """The choice for a network.

    Attributes:
        forms: tensor name to forms, for tensors that carry data between devices or at the border of the engine, and
            for those inside a segment; constants and shape tensors have none.
        reformats: every copy, with its cause.
        problems: copies that may not be made.
        converted_bytes: bytes that devices move inside, where they read or write another format than their own.
    """

    forms: Mapping[str, TensorForms]
    reformats: Sequence[Reformat]
    problems: Sequence[str]
    converted_bytes: int = 0

    @property
    def moved_bytes(self) -> int:
        """All bytes that are moved because types, formats or devices differ: what the choice makes least."""
        return self.converted_bytes + sum(one.size for one in self.reformats)


NO_FORMATS = Formats({}, [], [])
"""Of a network of which parts have no place."""


def choose_formats(
    network: Network,
    partition: Partition,
    precisions: Precisions,
    variants: Mapping[str, TargetVariant],
    specs: Specs,
    config: BuilderConfig,
) -> Formats:
    """Formats of all tensors of a network that was cut into segments.

    The caller of the engine keeps inputs and outputs on `caller_device`, LINEAR unless the tensor's `allowed_formats`
    say otherwise.

    Args:
        network: as it was cut.
        partition: its segments.
        precisions: computation types.
        variants: device name to target, also for the caller's device.
        specs: tensor name to spec at the shapes that count.
        config: fallback device, flags.
    """
    chooser = _Chooser(partition, precisions, variants, specs, config)
    for tensor in network.tensors:
        is_data = tensor.producer is None or tensor.producer.name in partition.segments
        if is_data and tensor.location is TensorLocation.DEVICE:
            chooser.choose(tensor)
    return Formats(chooser.forms, chooser.reformats, chooser.problems, chooser.converted_bytes)


class _Chooser:
    """Chooses for one tensor after another."""

    def __init__(
        self,
        partition: Partition,
        precisions: Precisions,
        variants: Mapping[str, TargetVariant],
        specs: Specs,
        config: BuilderConfig,
    ) -> None:
        self._sides = Sides(partition, precisions, variants, specs, config)
        self.forms: dict[str, TensorForms] = {}
        self.reformats: list[Reformat] = []
        self.problems: list[str] = []
        self.converted_bytes = 0

    def choose(self, tensor: Tensor) -> None:
        giver = self._sides.giver(tensor)
        takers = self._sides.takers(tensor, giver)
        choice = choose_forms(giver, takers, lambda form: self._sides.size_bytes(tensor, form))
        produced = choice.produced
        given = next((form for side, form in zip(takers, choice.taken, strict=True) if side.segment < 0), None)
        inside = self._sides.types_inside(tensor, giver)
        self.forms[tensor.name] = TensorForms(produced, [*choice.copies, *inside], given)
        self.converted_bytes += choice.converted_bytes
        copied = {}
        for taker, form in zip(takers, choice.taken, strict=True):
            if form.memory == produced.memory:
                continue
            cause = f"{giver.who} gives {produced.words}, {taker.who} takes {form.words}"
            if form.memory not in copied:
                rule = self._sides.rule(giver, taker).id
                size = self._sides.size_bytes(tensor, form)
                copied[form.memory] = Reformat(tensor.name, str(produced), str(form), size, cause, rule)
            reason = giver.forbids_copy or taker.forbids_copy
            if reason:
                self.problems.append(f"tensor {tensor.name!r}: {cause}, but {reason}")
        self.reformats += copied.values()
