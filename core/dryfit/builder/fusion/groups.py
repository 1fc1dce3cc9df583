"""The results of fusing: layers that run as one, and where."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.builder.placement.roles import LayerRole
from dryfit.network.data_types import DataType
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Kernel


@attrs.frozen
class LayerPlace:
    """Where a layer of the engine's network runs.

    Attributes:
        device: its device; the host for a shape computation.
        segment: index of its segment; -1 for none.
        precision: the type it is computed in.
        role: what part it plays.
    """

    device: str
    segment: int
    precision: DataType
    role: LayerRole = LayerRole.WORK

    def is_beside(self, other: LayerPlace | None) -> bool:
        """Whether two places differ in precision at most."""
        return other is not None and attrs.evolve(other, precision=self.precision) == self


@attrs.frozen(eq=False)
class JoinedGroup:
    """Layers that run as one, by a kernel that is still to be chosen.

    Attributes:
        group: the layers.
        candidates: the kernels of the highest rank that can run them; at least one.
        place: where; of a compiled segment that of its first layer, whose precision need not be that of the others. A
            group that reads quantized activations is computed in their type, whatever its layers are.
        fusion: name of the device's fusion that joined them; "" for a single layer (with what quantizes around it), for
            a compiled segment, and where the device declares no fusions.
    """

    group: LayerGroup
    candidates: Sequence[Kernel]
    place: LayerPlace
    fusion: str = ""


@attrs.frozen(eq=False)
class FusedGroup:
    """Layers that run as one.

    Attributes:
        group: the layers.
        kernel: what runs them.
        place: as in `JoinedGroup`.
        reason: why by this kernel, in words.
        fusion: as in `JoinedGroup`.
    """

    group: LayerGroup
    kernel: Kernel
    place: LayerPlace
    reason: str = ""
    fusion: str = ""

    def __str__(self) -> str:
        joined = f", fusion {self.fusion}" if self.fusion else ""
        reason = f", {self.reason}" if self.reason else ""
        return f"{self.group.name}: {self.kernel.name} on {self.place.device}{joined}{reason}"
