"""The format of each tensor on each device, and the copies between them, chosen to move the fewest bytes.

A device works in its native format (`TargetVariant.native_format`); what it reads or writes in another one it converts
itself, which moves the tensor once more. Where that costs as much as a copy, there is a copy, as TensorRT makes it.
Because the inside of a segment is thereby fixed, the choice at one tensor's borders does not touch another's, and the
best choice for each tensor is the best for the whole network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dryfit.builder.builder_config import BuilderConfig
from dryfit.builder.format_sides import Side, Sides
from dryfit.builder.partition import Partition
from dryfit.builder.precisions import Precisions
from dryfit.builder.segment_pools import Specs, known_shape
from dryfit.builder.target_variant import TargetVariant
from dryfit.builder.tensor_forms import TensorForm, TensorForms, is_same_memory
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
    """

    forms: Mapping[str, TensorForms]
    reformats: Sequence[Reformat]
    problems: Sequence[str]


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
    return Formats(chooser.forms, chooser.reformats, chooser.problems)


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
        self._variants = variants
        self._specs = specs
        self.forms: dict[str, TensorForms] = {}
        self.reformats: list[Reformat] = []
        self.problems: list[str] = []

    def choose(self, tensor: Tensor) -> None:
        giver = self._sides.giver(tensor)
        takers = self._sides.takers(tensor, giver)
        best: tuple[tuple[int, int, int], TensorForm, list[TensorForm]] | None = None
        for rank, (produced, cost) in enumerate(giver.forms()):
            taken = [self._best_taken(tensor, giver, produced, taker) for taker in takers]
            copies = dict.fromkeys(form for form, _ in taken if not is_same_memory(form, produced))
            forbidden = sum(
                bool(giver.forbids_copy or taker.forbids_copy) and form in copies
                for taker, (form, _) in zip(takers, taken, strict=True)
            )
            moved = cost + sum(inside for _, inside in taken) + sum(self._bytes(tensor, form) for form in copies)
            key = (forbidden, moved, rank)
            if best is None or key < best[0]:
                best = (key, produced, [form for form, _ in taken])
        if best is None:
            return
        _, produced, forms = best
        self._record(tensor, giver, produced, list(zip(takers, forms, strict=True)))

    def _best_taken(self, tensor: Tensor, giver: Side, produced: TensorForm, taker: Side) -> tuple[TensorForm, int]:
        """The form in which someone takes a tensor that is given in this form, and the bytes that costs inside."""
        is_forbidden = bool(giver.forbids_copy or taker.forbids_copy)
        is_chosen = giver.is_chosen or taker.is_chosen

        def moved(choice: tuple[TensorForm, int]) -> tuple[bool, int, int]:
            form, inside = choice
            is_copied = not is_same_memory(form, produced)
            bytes_moved = inside + (self._bytes(tensor, form) if is_copied else 0)
            return is_copied and is_forbidden, bytes_moved, is_copied if is_chosen else inside

        return min(taker.forms(), key=moved)

    def _record(
        self, tensor: Tensor, giver: Side, produced: TensorForm, taken: Sequence[tuple[Side, TensorForm]]
    ) -> None:
        copies: dict[TensorForm, Side] = {}
        for taker, form in taken:
            if not is_same_memory(form, produced) and form not in copies:
                copies[form] = taker
        given = next((form for taker, form in taken if taker.segment < 0), None)
        self.forms[tensor.name] = TensorForms(produced, list(copies), given)
        for form, taker in copies.items():
            cause = f"{giver.who} gives {produced.words}, {taker.who} takes {form.words}"
            size = self._bytes(tensor, form)
            self.reformats.append(Reformat(tensor.name, str(produced), str(form), size, cause))
            reason = giver.forbids_copy or taker.forbids_copy
            if reason:
                self.problems.append(f"tensor {tensor.name!r}: {cause}, but {reason}")

    def _bytes(self, tensor: Tensor, form: TensorForm) -> int:
        shape = known_shape(self._specs[tensor.name])
        return self._variants[form.device].size_bytes(form.layout, shape, form.dtype)
