"""What the processor of this machine is called: times that were measured on another are not true here."""

from __future__ import annotations

import functools
import os
import platform
from pathlib import Path

TIER_VARIABLE = "DRYFIT_CPU_TIER"
"""The environment variable that makes the CPU target's kernels use fewer instructions than the processor has."""


@functools.cache
def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or platform.machine()


def processor_name() -> str:
    """The processor's name, with the instruction set tier where one is asked for."""
    tier = os.environ.get(TIER_VARIABLE)
    return f"{_model()}, tier {tier}" if tier else _model()
