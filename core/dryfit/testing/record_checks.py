"""Checks of a target's record: names, platforms, software ranges, precisions, declarations, kernels.

Each check returns the problems, one sentence per problem.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

import attrs

from dryfit.errors import ConfigError, DryfitError
from dryfit.network.data_types import STAND_IN_TYPES, DataType
from dryfit.network.layer import LAYER_KINDS
from dryfit.plugins import registry
from dryfit.plugins.discovery import TARGETS
from dryfit.target.fusions import Fusion
from dryfit.target.kernels import EveryKind, Kernel
from dryfit.target.target import Platform, Target, inherited

DECLARATIONS = (
    "limits",
    "input_formats",
    "output_formats",
    "memory_pools",
    "arithmetic",
    "fusions",
    "kernels",
    "compile_segment",
    "load_segment",
    "export_segment",
    "import_segment",
    "estimate_cost",
    "estimate_transfer",
    "sparsity",
    "create_schedule",
    "copy_array",
)
"""Attributes of `Target` that are imported at first use."""

HEAVY_MODULES = ("numpy", "numba", "llvmlite", "onnx", "ml_dtypes")
"""What `dryfit targets list` does not load, and so no record may."""


def name_problems(target: Target) -> list[str]:
    """Return problems of the device, title, `simulated` and the names of platforms."""
    found = []
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*", target.device):
        found.append(f"the device name {target.device!r} is not upper-case letters, digits and _")
    found += [f"`{name}` is empty" for name in ("title", "simulated") if not getattr(target, name).strip()]
    if not target.platforms:
        found.append("at least one platform is required")
    for platform in target.platforms:
        found += [
            f"platform {platform.name!r}: `{a}` is empty" for a in ("family", "title") if not getattr(platform, a)
        ]
        if platform.cores < 0:
            found.append(f"platform {platform.name!r} has {platform.cores} cores")
        modes = [name.lower() for mode in platform.power_modes for name in (mode.name, *mode.aliases)]
        found += [f"platform {platform.name!r}: two power modes are called {name!r}" for name in _repeated(modes)]
    names = [name.lower() for platform in target.platforms for name in (platform.name, *platform.aliases)]
    return found + [f"two platforms are called {name!r}" for name in _repeated(names)]


def software_problems(target: Target) -> list[str]:
    """Return problems of the versions, the platforms' version ranges and the segment limits by version."""
    found = []
    versions = list(target.software_versions)
    if versions != sorted(set(versions)):
        found.append(f"`software_versions` must increase: {', '.join(map(_text, versions))}")
    for platform in target.platforms:
        found += _range_problems(target, platform)
    for since, most in target.segment_rules.max_segments.items():
        if most < 1:
            found.append(f"`max_segments` from {_text(since)} is {most}, and must be at least 1")
    return found


def _range_problems(target: Target, platform: Platform) -> Iterable[str]:
    first, last = platform.software
    if first is not None and last is not None and first > last:
        yield f"platform {platform.name!r}: the first software version {_text(first)} is after the last {_text(last)}"
        return
    inside = [
        version
        for version in target.software_versions
        if (first is None or version >= first) and (last is None or version <= last)
    ]
    if target.software_versions and not inside:
        yield f"platform {platform.name!r} has none of the software versions"
    for version in inside:
        try:
            if target.software(_text(version), platform) != version:
                yield f"platform {platform.name!r}: version {_text(version)} is found as another"
        except ConfigError as error:
            yield f"platform {platform.name!r} refuses its own version {_text(version)}: {error}"


def precision_problems(target: Target) -> list[str]:
    """Return problems of the computation types and the default."""
    strange = [one for one in target.precisions if not isinstance(one, DataType)]
    found = [f"{one!r} is not a data type" for one in strange]
    if not target.precisions:
        found.append("at least one precision is required")
    found += [f"precision {one} is listed twice" for one in _repeated(map(str, target.precisions))]
    if target.default_precision is not None and target.default_precision not in target.precisions:
        found.append(f"the default precision {target.default_precision.text} is not one of the precisions")
    return found


def declaration(target: Target, name: str) -> tuple[Any, str]:
    """Return (loaded declaration, why it cannot be loaded); the reason is "" if it can be loaded."""
    try:
        return getattr(target, name), ""
    except Exception as error:  # noqa: BLE001  the module is the target's: it may raise anything
        return None, str(error) if isinstance(error, DryfitError) else f"{type(error).__name__}: {error}"


def declaration_problems(target: Target) -> list[str]:
    """Return the objects named by the record that cannot be imported or are for another device."""
    found = []
    for name in DECLARATIONS:
        loaded, reason = declaration(target, name)
        if reason:
            found.append(f"`{name}` cannot be loaded: {reason}")
        elif name == "limits" and loaded is not None and loaded.device != target.device:
            found.append(f"the limit table is of the device {loaded.device!r}")
        elif name == "sparsity" and loaded is not None and loaded.rules.device != target.device:
            found.append(f"the rules on sparse weights are of the device {loaded.rules.device!r}")
    return found


def declares(target: Target, name: str) -> bool:
    """Return whether a target sets a declaration itself, rather than inheriting the host's."""
    place = getattr(target, f"{name}_at")
    return place is not None and (target.segment_rules.is_host or place != getattr(registry.host(), f"{name}_at"))


def installation_problems(target: Target) -> list[str]:
    """Return why the target is not found by its entry point, or heavy imports of its record."""
    try:
        found = registry.target(target.device)
        entry = registry.entry(TARGETS, target.device)
    except DryfitError as error:
        return [f"no usable entry point of the group {TARGETS} names this record: {error}"]
    if not _is_record_of(found, target):
        return [f"the device {target.device} is another record's"]
    heavy = [] if entry is None else _modules_after_import(entry.module)
    return [f"importing {entry.module} loads {', '.join(heavy)}"] if entry is not None and heavy else []


def _is_record_of(found: Target, target: Target) -> bool:
    """Whether what the registry gives is this record, with what it leaves out filled in."""
    expected = target if target.segment_rules.is_host else inherited(target, registry.host())
    return all(getattr(found, field.name) == getattr(expected, field.name) for field in attrs.fields(Target))


def _modules_after_import(module: str) -> list[str]:
    """The heavy modules that a fresh interpreter has loaded after importing one."""
    program = f"import sys, {module}; print('MODULES', *(name for name in {HEAVY_MODULES} if name in sys.modules))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(  # noqa: S603  this interpreter, and a module that this process has loaded
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode:
        return [f"nothing, it fails in a fresh interpreter: {done.stderr.strip().splitlines()[-1]}"]
    return done.stdout.rpartition("MODULES")[2].split()


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


_COMPUTED = frozenset(STAND_IN_TYPES)
"""Types that a device computes in only if its record lists them."""


def fusion_problems(fusion: Fusion, target: Target) -> list[str]:
    """Return what a fusion lacks: a unique name, a source, layer kinds that the device supports."""
    table = target.limits
    known = set(LAYER_KINDS) if table is None or table.supported_kinds is None else set(table.supported_kinds)
    kinds = {kind.rstrip("?") for kind in fusion.kinds}
    found = [f"it joins {kind!r}, a layer kind that the device does not have" for kind in sorted(kinds - known)]
    if not re.fullmatch(r"[a-z0-9_]+(-[a-z0-9_]+)*", fusion.name):
        found.append("its name is not of lower-case words with hyphens")
    if Counter(one.name for one in target.fusions or ())[fusion.name] > 1:
        found.append("two fusions of the target have its name")
    if not fusion.source.strip():
        found.append("`source` is empty")
    return [f"fusion {fusion.name}: {problem}" for problem in found]


def kernel_declaration_problems(kernel: Kernel, target: Target) -> list[str]:
    """Return what a kernel lacks: a unique name with its package, supported layer kinds, data types."""
    found = []
    precisions = target.precisions or registry.host().precisions
    if not re.fullmatch(r"[A-Za-z_]\w*(\.\w+)+", kernel.name):
        found.append("its name is not that of its package, a dot, and what it does")
    if Counter(one.name for one in target.kernels)[kernel.name] > 1:
        found.append("two kernels of the target have its name")
    if not target.segment_rules.is_host and any(one.name == kernel.name for one in registry.host().kernels):
        found.append("a kernel of the host has its name")
    if not isinstance(kernel.kinds, EveryKind):
        found += [f"it serves {kind!r}, which is not a layer kind" for kind in sorted(kernel.kinds - set(LAYER_KINDS))]
        if not kernel.kinds:
            found.append("it serves no layer kind")
    if not kernel.data_types:
        found.append("it serves no data type")
    elif precisions and kernel.data_types <= _COMPUTED.difference(precisions):
        served = ", ".join(sorted(dtype.text for dtype in kernel.data_types))
        declared = ", ".join(dtype.text for dtype in precisions)
        found.append(f"it is never called: it serves {served}, and the device computes in {declared}")
    return [f"kernel {kernel.name}: {problem}" for problem in found]
