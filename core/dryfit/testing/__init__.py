"""Conformance kits that third parties run against their own targets, layer plugins, calibrators and quantize methods.

`TargetConformance` consists of levels, each of which is a kit of its own: a new target can start with
`TargetDeclaration`. Each kit is loaded on first use, because the pytest plugin in this package is loaded by every
pytest run in an environment with dryfit.
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
        "dryfit.testing.target_conformance": (
            "TargetConformance TargetIntegerNetworks TargetMemoryPools TargetNetworks TargetSegments"
        ),
        "dryfit.testing.target_declaration": "TargetArithmetic TargetDeclaration TargetFormats",
        "dryfit.testing.target_kernels": "TargetKernels",
        "dryfit.testing.target_limits": "TargetLimits",
    },
)
