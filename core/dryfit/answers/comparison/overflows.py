"""FP16 overflow found by running samples, as reported by `dryfit compare` and `dryfit build --data`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dryfit.answers.comparison.compare import Comparison, compare, declared_types
from dryfit.answers.comparison.sides import DEFINITION, EngineSide, Feeds, compared_sides
from dryfit.answers.json_data import Amount, Count
from dryfit.answers.text import Block, Entries
from dryfit.attrs_classes import frozen
from dryfit.engine.plan import Plan
from dryfit.network.network import Network
from dryfit.short_text import count_text

LISTED = 5
"""Layers that overflow and are named. Our choice: much of what follows from the first overflows, too."""
REMEDY = "Compute it in FP32 on the GPU or CPU (--layer-precisions NAME:fp32), or scale its inputs or weights down"


@frozen
class Overflow:
    """An FP16 tensor whose own layer overflows.

    Attributes:
        engine_layer: name of the engine layer.
        layers: layers of the model in the engine layer.
        tensor: name of the tensor in the model.
        overflowed: number of elements that the layer turns into NaN, infinity or an end of the FP16 range.
        elements: number of elements of the tensor.
        overflowed_to: largest magnitude of these elements on the other side, where it is finite.
    """

    engine_layer: str
    layers: Sequence[str]
    tensor: str
    overflowed: Count
    elements: Count
    overflowed_to: Amount

    def text(self, side: str) -> str:
        """The overflow in words, with the value on a side that does not overflow."""
        return (
            f"{self.overflowed} of {self.elements} elements of {self.tensor!r} overflow "
            f"(FP16 holds 65504, {side} has up to {self.overflowed_to:.6g})"
        )


def overflows_of(found: Comparison, side: str) -> list[Overflow]:
    """Return the FP16 tensors whose layers overflow although a side does not, in computation order."""
    return [
        Overflow(
            engine_layer=one.engine_layer,
            layers=one.layers,
            tensor=one.tensor,
            overflowed=difference.overflowed,
            elements=difference.elements,
            overflowed_to=difference.overflowed_to,
        )
        for one in found.overflows(side)
        if (difference := one.differences[side]) is not None
    ]


def found_overflows(network: Network, plan: Plan, samples: Iterable[tuple[str, Feeds]]) -> list[Overflow]:
    """Return the tensors of an engine that overflow on samples but not in FP32.

    Raises:
        ExecutionError: There are no samples, or one does not match the network's inputs.
    """
    declared = declared_types(network)
    sides = compared_sides([DEFINITION], network, plan, declared)
    found = compare(EngineSide(network.name, plan, declared, None), sides, samples)
    return overflows_of(found, DEFINITION)


def overflow_title(found: Sequence[Overflow]) -> str:
    """Return the number of layers that overflow, and a remedy."""
    return f"FP16 overflows in {count_text(len(found), 'layer')}, in the order of execution. {REMEDY}"


def overflow_blocks(found: Sequence[Overflow], side: str) -> Iterator[Block]:
    """Return the first layers that overflow, in execution order; empty without overflow."""
    yield Entries(overflow_title(found), [(one.engine_layer, one.text(side), "") for one in found[:LISTED]])
