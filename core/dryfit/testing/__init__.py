"""Conformance kits that third parties run against their own targets, layer plugins, calibrators and quantize methods.

`TargetConformance` has levels, each of which is a kit too: a young target can begin with `TargetDeclaration`.
Each is loaded at first use: the pytest plugin beside them is loaded by every pytest of an environment with dryfit.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dryfit.testing.calibrator_conformance import CalibratorConformance
    from dryfit.testing.layer_plugin_conformance import LayerPluginConformance
    from dryfit.testing.quantize_method_conformance import QuantizeMethodConformance
    from dryfit.testing.target_conformance import TargetConformance
    from dryfit.testing.target_levels.arithmetic import TargetArithmetic
    from dryfit.testing.target_levels.declaration import TargetDeclaration
    from dryfit.testing.target_levels.formats import TargetFormats
    from dryfit.testing.target_levels.kernels import TargetKernels
    from dryfit.testing.target_levels.limits import TargetLimits
    from dryfit.testing.target_levels.memory_pools import TargetMemoryPools
    from dryfit.testing.target_levels.networks import TargetNetworks
    from dryfit.testing.target_levels.segments import TargetSegments

_MODULES = {
    "CalibratorConformance": "calibrator_conformance",
    "LayerPluginConformance": "layer_plugin_conformance",
    "QuantizeMethodConformance": "quantize_method_conformance",
    "TargetArithmetic": "target_levels.arithmetic",
    "TargetConformance": "target_conformance",
    "TargetDeclaration": "target_levels.declaration",
    "TargetFormats": "target_levels.formats",
    "TargetKernels": "target_levels.kernels",
    "TargetLimits": "target_levels.limits",
    "TargetMemoryPools": "target_levels.memory_pools",
    "TargetNetworks": "target_levels.networks",
    "TargetSegments": "target_levels.segments",
}

__all__ = [
    "CalibratorConformance",
    "LayerPluginConformance",
    "QuantizeMethodConformance",
    "TargetArithmetic",
    "TargetConformance",
    "TargetDeclaration",
    "TargetFormats",
    "TargetKernels",
    "TargetLimits",
    "TargetMemoryPools",
    "TargetNetworks",
    "TargetSegments",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'dryfit.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"dryfit.testing.{_MODULES[name]}"), name)
