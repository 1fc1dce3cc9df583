"""Whether the fusions and kernels that a target declares can be told apart, and speak of layers that there are."""

from __future__ import annotations

import re
from collections import Counter

from dryfit.network.data_types import STAND_IN_TYPES
from dryfit.network.layer import LAYER_KINDS
from dryfit.plugins import registry
from dryfit.target.fusions import Fusion
from dryfit.target.kernels import EveryKind, Kernel
from dryfit.target.target import Target

_COMPUTED = frozenset(STAND_IN_TYPES)
"""Types that a device computes in only if its record lists them."""


def fusion_problems(fusion: Fusion, target: Target) -> list[str]:
    """What a fusion lacks: a name of its own, a source, layer kinds that the device has."""
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
    """What a kernel lacks: a name of its own with its package's, layer kinds, data types, one that the device has."""
    found = []
    precisions = target.precisions or registry.host().precisions
    if not re.fullmatch(r"[A-Za-z_]\w*(\.\w+)+", kernel.name):
        found.append("its name is not that of its package, a dot, and what it does")
    if Counter(one.name for one in target.kernels)[kernel.name] > 1:
        found.append("two kernels of the target have its name")
    if not target.segment_rules.is_host and any(one.name == kernel.name for one in registry.host().kernels):
        found.append("a kernel of the host has its name")
    if not isinstance(kernel.kinds, EveryKind):
        found += [f"it serves {kind!r}, which is no layer kind" for kind in sorted(kernel.kinds - set(LAYER_KINDS))]
        if not kernel.kinds:
            found.append("it serves no layer kind")
    if not kernel.data_types:
        found.append("it serves no data type")
    elif precisions and kernel.data_types <= _COMPUTED.difference(precisions):
        served = ", ".join(sorted(dtype.name for dtype in kernel.data_types))
        declared = ", ".join(dtype.name for dtype in precisions)
        found.append(f"it is never called: it serves {served}, and the device computes in {declared}")
    return [f"kernel {kernel.name}: {problem}" for problem in found]
