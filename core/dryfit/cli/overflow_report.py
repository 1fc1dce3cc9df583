"""FP16 overflow that samples show in an engine that was built, as a warning on stderr."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dryfit.cli.console import print_note
from dryfit.short_text import printable

if TYPE_CHECKING:
    from dryfit.answers.comparison.overflows import Overflow
    from dryfit.cli.sample_options import SampleOptions
    from dryfit.engine.plan import Plan
    from dryfit.network.network import Network


def found_overflows(network: Network, plan: Plan, samples: SampleOptions) -> list[Overflow] | None:
    """What overflows in an engine on samples and not in FP32; None without samples."""
    if samples.data is None:
        return None
    from dryfit.answers.comparison import overflows

    return overflows.found_overflows(network, plan, samples.samples(network))


def note_overflows(found: Sequence[Overflow], side: str) -> None:
    """The first layers that overflow; nothing where there are none."""
    from dryfit.answers.comparison.overflows import LISTED, overflow_title

    if found:
        print_note(f"Warning: {overflow_title(found)}")
    for one in found[:LISTED]:
        print_note(f"  {printable(one.engine_layer, kept='')}: {one.text(side)}")
