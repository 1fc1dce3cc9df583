"""What LLVM says of this machine's processor, asked once and kept: asking costs a process LLVM's library.

What is kept is found by how Linux describes the processor, feature by feature. Where no such description is, LLVM is
asked in each process.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

import attrs

from dryfit.target import kept_files
from dryfit.target.cache_folder import cache_folder

FOLDER = "processors"
"""In the folder of all caches."""
_DESCRIPTION = Path("/proc/cpuinfo")
_FEATURES = frozenset({"flags", "Features"})
_TELLING = _FEATURES | {
    *("vendor_id", "cpu family", "model", "model name", "stepping"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part"),
}
"""Lines of the description that do not change from minute to minute: of x86, and of Arm."""


@attrs.frozen
class Processor:
    """The machine that code is made for, in LLVM's words.

    Attributes:
        llvm: version of LLVM.
        triple: architecture, vendor and system.
        cpu: name of the processor.
        features: name to whether the processor has it; empty where LLVM cannot tell.
    """

    llvm: str
    triple: str
    cpu: str
    features: Mapping[str, bool]

    def __str__(self) -> str:
        return f"{self.llvm} {self.triple} {self.cpu} {feature_string(self.features)}"


def feature_string(features: Mapping[str, bool]) -> str:
    """Features as LLVM takes them: `+` or `-` and a name, with commas between, sorted."""
    return ",".join(f"{'+' if has else '-'}{name}" for name, has in sorted(features.items()))


@functools.cache
def this_processor() -> Processor:
    """The processor of this machine."""
    path = _path()
    contents = kept_files.read(path) if path else None
    if contents is not None:
        return Processor(**json.loads(contents))
    found = _ask_llvm()
    if path:
        # It is asked again then. The cache of machine code tells of a folder that cannot be written to.
        with contextlib.suppress(OSError):
            kept_files.write(path, json.dumps(attrs.asdict(found)).encode())
    return found


def _path() -> Path | None:
    """Where it is kept; None when there is nothing to tell processors apart by."""
    try:
        lines = _DESCRIPTION.read_text(errors="replace").splitlines()
    except OSError:
        return None
    pairs = {(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines)}
    telling = sorted(pair for pair in pairs if pair[0] in _TELLING)
    if not _FEATURES & {name for name, _ in telling}:
        return None
    process = (importlib.metadata.version("llvmlite"), platform.machine(), sys.maxsize)
    key = hashlib.sha256(repr((process, telling)).encode()).hexdigest()[:32]
    return cache_folder() / FOLDER / f"{key}.json"


def _ask_llvm() -> Processor:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    try:
        features = dict(llvm.get_host_cpu_features())
    except RuntimeError:
        features = {}
    version = ".".join(map(str, llvm.llvm_version_info))
    return Processor(version, llvm.get_process_triple(), llvm.get_host_cpu_name(), features)
