"""The clocks that a board runs at, as its power modes set them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.errors import PluginError
from dryfit.rule import FIDELITIES


@attrs.frozen
class PowerMode:
    """One setting of a platform's clocks.

    Attributes:
        name: as the board's maker has it, such as `MAXN` or `30W`.
        clock_hz: of the device.
        memory_clock_hz: of the memory that the device shares with the board.
        source: document and section, or from which published figures the clocks follow.
        fidelity: `documented`, `inferred` or `confirmed`.
        aliases: other names.

    Raises:
        PluginError: a clock stands still, or the fidelity is no such word.
    """

    name: str
    clock_hz: float
    memory_clock_hz: float
    source: str = ""
    fidelity: str = "documented"
    aliases: Sequence[str] = ()

    def __attrs_post_init__(self) -> None:
        if not (self.clock_hz > 0 and self.memory_clock_hz > 0):
            raise PluginError(
                "The clock frequencies of a power mode must be greater than 0",
                where=f"power mode {self.name!r}",
                found=f"clock_hz={self.clock_hz}, memory_clock_hz={self.memory_clock_hz}",
                allowed="numbers greater than 0",
                remedy="Give the clock frequencies in Hz",
            )
        if self.fidelity not in FIDELITIES:
            raise PluginError(
                "A power mode has an unknown fidelity",
                where=f"power mode {self.name!r}",
                found=self.fidelity,
                allowed=", ".join(FIDELITIES),
                remedy="Set `fidelity` to one of these",
            )
