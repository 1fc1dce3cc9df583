"""Whether the fusions and kernels that a target declares can be told apart, and speak of layers that there are."""

from __future__ import annotations

import re
from collections import Counter

from dryfit.network.layer import LAYER_KINDS
from dryfit.plugins import registry
from dryfit.target.fusions import Fusion
from dryfit.target.kernels import EveryKind, Kernel
from dryfit.target.target import Target


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
    """What a kernel lacks: a name of its own with its package's, layer kinds, data types."""
    found = []
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
    return [f"kernel {kernel.name}: {problem}" for problem in found]
