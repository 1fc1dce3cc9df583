"""Conformance kits that third parties run against their own targets, layer plugins, calibrators and quantize methods.

`TargetConformance` has levels, each of which is a kit too: a young target can begin with `TargetDeclaration`.
Each is loaded at first use: the pytest plugin beside them is loaded by every pytest of an environment with dryfit.
"""

from __future__ import annotations

from dryfit.front_door import public_names

public_names(
    __name__,
    {
        "dryfit.testing.calibrator_conformance": "CalibratorConformance",
        "dryfit.testing.layer_plugin_conformance": "LayerPluginConformance",
        "dryfit.testing.operator_cases.case_table": "trial_cases",
        "dryfit.testing.operator_cases.operator_case": "OperatorCase case_of",
        "dryfit.testing.quantize_method_conformance": "QuantizeMethodConformance",
        "dryfit.testing.target_conformance": "TargetConformance TargetMemoryPools TargetNetworks TargetSegments",
        "dryfit.testing.target_declaration": "TargetArithmetic TargetDeclaration TargetFormats",
        "dryfit.testing.target_kernels": "TargetKernels",
        "dryfit.testing.target_limits": "TargetLimits",
    },
)
