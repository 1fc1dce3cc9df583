"""A board with DLA cores, simulated on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from dryfit.target.machine_code import usable_processors
from dryfit_dla import TARGET
from dryfit_dla.runtime.device import Device
from dryfit_dla.runtime.status import DlaError, Status


class Board:
    """The cores of one platform, with nothing loaded.

    Args:
        platform: name of the board, as in `dryfit targets list`; None selects the DLA's default.
        software: version of its software, such as `10.3`; None selects the newest.
        num_threads: number of threads that emulate each core; by default the CPUs are divided among the cores.

    Attributes:
        platform: the board.
        software: version of its software, as a tuple.
        num_threads: threads that emulate each core.
        devices: its cores.

    Raises:
        UnknownNameError: the platform is unknown.
        ConfigError: the platform does not have this software version.

    Example:
        >>> with Board("agx-orin-64") as board:
        ...     len(board.devices), board.max_loadables
        (2, 16)
    """

    simulated: str = TARGET.simulated

    def __init__(
        self, platform: str | None = None, software: str | None = None, *, num_threads: int | None = None
    ) -> None:
        self.platform = TARGET.platform(platform)
        self.software = TARGET.software(software, self.platform)
        shared_out = max(1, usable_processors() // max(1, self.platform.cores))
        self.num_threads = shared_out if num_threads is None else num_threads
        self.devices: Sequence[Device] = tuple(Device(self, core) for core in range(self.platform.cores))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Board {self.platform.name}, {len(self.devices)} DLA cores, simulated>"

    def device(self, core: int = 0) -> Device:
        """Return a core by its number.

        Raises:
            DlaError: the board does not have this core.
        """
        if core not in range(len(self.devices)):
            raise DlaError(
                Status.INVALID_DEVICE,
                "The board does not have this DLA core",
                where=self.platform.name,
                found=core,
                allowed=", ".join(str(one.core) for one in self.devices) or "none: the board has no DLA",
                remedy="Use one of the board's DLA cores, or another platform",
            )
        return self.devices[core]

    @property
    def max_loadables(self) -> int | None:
        """Maximum number of loadables per core at the same time; None if there is no limit."""
        return TARGET.segment_rules.segment_limit(self.software)

    def close(self) -> None:
        """Cancel submissions that have not started, wait for the others, unload all modules and free all memory."""
        for device in self.devices:
            device.close()
