"""What a target may say of the cost of layers: always an estimate, never a measurement."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from dryfit.errors import PluginError
from dryfit.target.rule import FIDELITIES

if TYPE_CHECKING:
    from dryfit.network.layer import Layer
    from dryfit.network.tensor import TensorSpec
    from dryfit.target.target import Platform


@attrs.frozen
class CostEstimate:
    """What some layers are thought to cost in one run as one segment. No number of it was measured here.

    Attributes:
        microseconds: the time; None where the target estimates none.
        bytes_moved: bytes that the device reads and writes in its memories.
        macs: multiply-accumulates.
        basis: how it was reckoned, in one sentence; shown with every number.
        source: document and section of the figures that it rests on.
        fidelity: `documented`, `inferred` or `confirmed`.

    Raises:
        PluginError: a number is negative or not finite, there is no basis, or the fidelity is no such word.
        TypeError: a count is no whole number.
    """

    microseconds: float | None = attrs.field(converter=attrs.converters.optional(float))
    bytes_moved: int = attrs.field(converter=operator.index)
    macs: int = attrs.field(converter=operator.index)
    basis: str
    source: str
    fidelity: str = "inferred"

    def __attrs_post_init__(self) -> None:
        numbers = (0.0 if self.microseconds is None else self.microseconds, self.bytes_moved, self.macs)
        if not all(math.isfinite(number) and number >= 0 for number in numbers):
            raise PluginError(
                "A cost estimate has numbers that no cost can have",
                found=f"{self.microseconds} microseconds, {self.bytes_moved} bytes, {self.macs} multiply-accumulates",
                allowed="finite numbers, at least 0",
            )
        if not self.basis:
            raise PluginError("A cost estimate says how it was reckoned", found="no basis")
        if self.fidelity not in FIDELITIES:
            raise PluginError(
                "A cost estimate has an unknown fidelity", found=self.fidelity, allowed=", ".join(FIDELITIES)
            )


EstimateCost = Callable[["Sequence[Layer]", "Mapping[str, TensorSpec]", "Platform", tuple[int, ...]], CostEstimate]
"""(layers of a segment in execution order, tensor name to spec, platform, software version) -> estimate."""
