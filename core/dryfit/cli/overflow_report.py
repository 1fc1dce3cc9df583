"""FP16 overflow that samples show in an engine: what `dryfit compare` and `dryfit build --data` tell of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dryfit.cli.console import print_list, print_note
from dryfit.short_text import printable

if TYPE_CHECKING:
    from dryfit.answers.comparison.compare import Comparison
    from dryfit.cli.sample_options import SampleOptions
    from dryfit.engine.plan import Plan
    from dryfit.network.network import Network

Report = dict[str, Any]

LISTED = 5
"""So many layers that overflow are named. Our choice: much of what follows from the first overflows, too."""
REMEDY = "Compute it in FP32 on the GPU or CPU (--layer-precisions NAME:fp32), or scale its inputs or weights down"


def overflow_data(found: Comparison, side: str) -> list[Report]:
    """The FP16 tensors whose layers overflow where a side does not, in the order in which they are computed."""
    return [
        {
            "engine_layer": one.operation.name,
            "layers": list(one.operation.source_layers),
            "tensor": one.tensor,
            "overflowed": difference.overflowed,
            "elements": difference.elements,
            "overflowed_to": difference.overflowed_to,
        }
        for one in found.overflows(side)
        if (difference := one.differences[side]) is not None
    ]


def found_overflows(network: Network, plan: Plan, samples: SampleOptions) -> list[Report] | None:
    """What overflows in an engine on samples and not in FP32; None without samples.

    Args:
        network: the user's.
        plan: of the engine.
        samples: as the options have it.

    Raises:
        CalibrationError, ExecutionError: samples cannot be read, or do not fit the network.
    """
    if samples.data is None:
        return None
    from dryfit.answers.comparison.compare import compare, declared_types
    from dryfit.answers.comparison.sides import DEFINITION, EngineSide, compared_sides

    declared = declared_types(network)
    sides = compared_sides([DEFINITION], network, plan, declared)
    return overflow_data(
        compare(EngineSide(network.name, plan, declared, None), sides, samples.samples(network)), DEFINITION
    )


def print_overflows(found: Sequence[Report], side: str) -> None:
    """A list of the first layers that overflow, the very first one first; nothing where there are none."""
    print_list(_title(found), [(one["engine_layer"], _text(one, side), "") for one in found[:LISTED]])


def note_overflows(found: Sequence[Report], side: str) -> None:
    """The same on stderr, as a warning."""
    if found:
        print_note(f"Warning: {_title(found)}")
    for one in found[:LISTED]:
        print_note(f"  {printable(one['engine_layer'], kept='')}: {_text(one, side)}")


def _title(found: Sequence[Report]) -> str:
    count = len(found)
    return f"FP16 overflows in {count} layer{'' if count == 1 else 's'}, in the order of execution. {REMEDY}"


def _text(one: Report, side: str) -> str:
    return (
        f"{one['overflowed']} of {one['elements']} elements of {one['tensor']!r} overflow "
        f"(FP16 holds 65504, {side} has up to {one['overflowed_to']:.6g})"
    )
