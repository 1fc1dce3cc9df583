"""The one simulated GPU: what programs ask CUDA about it. Its memory is this machine's."""

from __future__ import annotations

import functools
import os

from dryfit.attrs_classes import frozen
from dryfit_tensorrt.cuda.results import CudaCallError
from dryfit_tensorrt.memory import statistics
from dryfit_tensorrt.settings import Settings

CUDA_VERSION = 12090
"""Version of CUDA whose functions the modules have: 12.9."""

BOARDS = {
    "agx-orin-64": ("Orin", (8, 7), 16),
    "agx-orin-32": ("Orin", (8, 7), 14),
    "orin-nx-16": ("Orin", (8, 7), 8),
    "orin-nx-8": ("Orin", (8, 7), 8),
    "orin-nano": ("Orin", (8, 7), 8),
    "agx-xavier": ("Xavier", (7, 2), 8),
    "xavier-nx": ("Xavier", (7, 2), 6),
}
"""Board to the GPU's name, compute capability and number of multiprocessors. Source: NVIDIA's Jetson data sheets."""

ALIASES = {"orin": "agx-orin-64", "agx-orin": "agx-orin-64", "orin-nx": "orin-nx-16", "xavier": "agx-xavier"}

GENERIC = ("NVIDIA GPU", (9, 0), 132)
"""A GPU that is not on a board: compute capability 9.0 is the first with all types up to FP8."""


@frozen
class SimulatedDevice:
    """The GPU of the chosen board.

    Attributes:
        name: as CUDA reports it.
        capability: compute capability.
        multiprocessors: number of streaming multiprocessors.
        total_bytes: memory of this machine.
        is_integrated: whether it shares the memory of the host, as on a Jetson.
    """

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    total_bytes: int
    is_integrated: bool

    @property
    def free_bytes(self) -> int:
        """Memory that the program has not allocated."""
        return max(self.total_bytes - statistics().live_bytes, 0)


@functools.cache
def device(platform: str | None) -> SimulatedDevice:
    """Return the GPU of a board; a generic one for None and for boards without facts."""
    board = (platform or "").lower()
    name, capability, count = BOARDS.get(ALIASES.get(board, board), GENERIC)
    known = hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if known else 8 << 30
    return SimulatedDevice(f"{name} (simulated by dryfit)", capability, count, total, name != GENERIC[0])


def current_device() -> SimulatedDevice:
    """Return the GPU of the board that the run simulates."""
    return device(Settings.from_environment().platform)


def check_ordinal(ordinal: object) -> int:
    """Return the number of a device.

    Raises:
        CudaCallError: there is no such device.
    """
    if int(ordinal) != 0:  # type: ignore[call-overload]
        raise CudaCallError(101, "Unknown device", found=ordinal, remedy="Use device 0, the only one")
    return 0


ATTRIBUTES = {
    "MaxThreadsPerBlock": (1, 1024),
    "MaxBlockDimX": (2, 1024),
    "MaxBlockDimY": (3, 1024),
    "MaxBlockDimZ": (4, 64),
    "MaxSharedMemoryPerBlock": (8, 49152),
    "WarpSize": (10, 32),
    "MultiProcessorCount": (16, 0),
    "Integrated": (18, 0),
    "CanMapHostMemory": (19, 1),
    "ConcurrentKernels": (31, 1),
    "UnifiedAddressing": (41, 1),
    "ComputeCapabilityMajor": (75, 0),
    "ComputeCapabilityMinor": (76, 0),
    "ManagedMemory": (83, 1),
    "ConcurrentManagedAccess": (89, 1),
    "MemoryPoolsSupported": (115, 1),
}
"""Name of a device attribute to its number and value, where the board has none. Source: CUDA's API reference."""


def attribute(number: int) -> int:
    """Return an attribute of the device.

    Raises:
        CudaCallError: dryfit has no value for it.
    """
    found, gpu = {value: name for name, (value, _) in ATTRIBUTES.items()}.get(int(number)), current_device()
    if found is None:
        raise CudaCallError(1, "The device attribute is not simulated", found=int(number), remedy="Do without it")
    own = {
        "MultiProcessorCount": gpu.multiprocessors,
        "Integrated": int(gpu.is_integrated),
        "ComputeCapabilityMajor": gpu.capability[0],
        "ComputeCapabilityMinor": gpu.capability[1],
    }
    return own.get(found, ATTRIBUTES[found][1])
