"""What this machine's processor is estimated to take: a roofline of its vector units and of a usual memory.

Cores, vectors and, where the system states it, the clock are this machine's; the rest is assumed, and said with each
figure. Nothing is measured and nothing fitted: real kernels do not reach a roofline.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.target.cost import CostEstimate, CostQuestion
from dryfit.target.machine_code import usable_processors
from dryfit.target.roofline import Roofline
from dryfit_cpu.compiler.tier import Tier, current_tier

ASSUMED_CLOCK_HZ = 3e9
"""Where the system states no clock. Our choice."""
MEMORY_BYTES_PER_SECOND = 42.7e9
"""Two channels of DDR4-2667, at their peak. Our choice: systems do not state what memory they have."""
STEP_SECONDS = 1e-6
"""To start a kernel on all threads. Our choice."""
VECTOR_UNITS = 2
"""That multiply and add in each cycle: usual in processors with AVX2, AVX-512 or NEON. Our choice."""
_DESCRIPTION = Path("/proc/cpuinfo")
_LARGEST_CLOCK = Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")


@frozen
class Machine:
    """What an estimate rests on.

    Attributes:
        threads: that this process may use.
        clock_hz: of a core.
        clock_source: where that is from.
        tier: the vectors.
    """

    threads: int
    clock_hz: float
    clock_source: str
    tier: Tier

    def macs_per_cycle(self, precision: DataType) -> float:
        """Multiply-accumulates of one core in a cycle; of FP16 and BF16 as of FP32, in which they are computed."""
        floats = VECTOR_UNITS * self.tier.lanes
        if precision is DataType.INT8:
            return floats * (4 if self.tier.has_byte_products else 2)
        return floats / 2 if precision is DataType.DOUBLE else floats


@functools.cache
def this_machine() -> Machine:
    """This machine."""
    return Machine(usable_processors(), *_clock(), current_tier())


def _clock() -> tuple[float, str]:
    """The largest clock that the system states, or the one in the processor's name; the present one varies."""
    try:
        return float(_LARGEST_CLOCK.read_text()) * 1e3, "cpuinfo_max_freq"
    except (OSError, ValueError):
        pass
    try:
        named = re.search(r"model name.*@ ([0-9.]+)GHz", _DESCRIPTION.read_text())
    except OSError:
        named = None
    if named is not None:
        return float(named[1]) * 1e9, "the processor's name"
    return ASSUMED_CLOCK_HZ, "assumed"


def estimate_cost(question: CostQuestion) -> CostEstimate:
    """The estimate of a segment on all threads."""
    machine = this_machine()
    roofline = Roofline(
        lambda precision: machine.threads * machine.macs_per_cycle(precision),
        machine.clock_hz,
        MEMORY_BYTES_PER_SECOND,
        STEP_SECONDS,
        source="cores, clock and instruction set as reported by the system; vector units, memory and launch overhead "
        "are our assumptions; not fitted",
        basis="roofline of this machine: the slower of multiply-accumulates and bytes at their peaks, plus "
        f"{STEP_SECONDS * 1e6:.0f} us per step; {machine.threads} threads at {machine.clock_hz / 1e9:.2g} GHz "
        f"({machine.clock_source}), {VECTOR_UNITS} vector units of {machine.tier.lanes} FP32 lanes "
        f"({machine.tier.name}), {MEMORY_BYTES_PER_SECOND / 1e9:.1f} GB/s",
        is_nominal=True,
    )
    return roofline(question)
