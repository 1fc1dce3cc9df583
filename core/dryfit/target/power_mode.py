"""The clock frequencies of a board in its power modes."""

from __future__ import annotations

from collections.abc import Sequence

from dryfit.attrs_classes import frozen
from dryfit.errors import PluginError
from dryfit.rule import FIDELITIES


@frozen
class PowerMode:
    """Clock settings of a platform.

    Attributes:
        name: the board vendor's name, such as `MAXN` or `30W`.
        clock_hz: clock frequency of the device.
        memory_clock_hz: clock frequency of the memory that the device shares with the board.
        source: document and section, or the published figures from which the clocks are derived.
        fidelity: `documented`, `inferred` or `confirmed`.
        aliases: other names.

    Raises:
        PluginError: A clock frequency is not greater than 0, or the fidelity is invalid.
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
                remedy="Specify the clock frequencies in Hz",
            )
        if self.fidelity not in FIDELITIES:
            raise PluginError(
                "A power mode has an unknown fidelity",
                where=f"power mode {self.name!r}",
                found=self.fidelity,
                allowed=", ".join(FIDELITIES),
                remedy="Set `fidelity` to one of these",
            )
