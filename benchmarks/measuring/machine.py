"""What a result was measured on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

PACKAGES = ("dryfit", "numba", "llvmlite", "numpy", "onnxruntime", "openvino")


def cpu_name() -> str:
    """The CPU, as the system calls it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def machine_text() -> str:
    """The CPU, how many of it there are, and the tier of the kernels."""
    from dryfit_cpu.compiler.tier import current_tier

    return f"{cpu_name()}, {os.cpu_count()} CPUs, tier {current_tier().name}"


def versions_text() -> str:
    """Versions of the packages that take part; those that are not installed are told too."""
    return ", ".join(f"{name} {_version(name)}" for name in PACKAGES)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"
