"""What a device is to dryfit: declared limits, formats, memory, arithmetic, cost and kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

STABLE_NAMES: Mapping[str, Sequence[str]] = {
    "dryfit.target.target": ("Target", "Platform", "SegmentRules"),
    "dryfit.target.power_mode": ("PowerMode",),
    "dryfit.target.limits": ("LimitTable", "Rule", "rule", "rules"),
    "dryfit.target.question": ("Question", "Finding"),
    "dryfit.target.checks": (
        "at_least",
        "at_most",
        "between",
        "check",
        "each",
        "equals",
        "one_of",
        "outside",
        "parameter",
        "platform_is",
        "quantity",
        "Quantity",
        "software_is_at_least",
        "whole_between",
    ),
    "dryfit.target.verdict": ("Verdict", "Violation"),
    "dryfit.target.formats": ("TensorFormat", "LINEAR"),
    "dryfit.target.memory_pools": ("MemoryPool", "WeightsOfLayer"),
    "dryfit.target.arithmetic": ("Arithmetic", "Approximation"),
    "dryfit.quantization.rounding": ("RoundingMode", "RoundingFunction", "round_values"),
    "dryfit.target.fusions": ("Fusion",),
    "dryfit.target.kernels": ("kernel", "Kernel", "Binding", "HostLayout", "is_activation"),
    "dryfit.target.group": ("LayerGroup",),
    "dryfit.target.cost": ("CostQuestion", "TransferQuestion", "CostEstimate", "StepCost", "Energy"),
    "dryfit.target.segments": ("PlannedSegment", "SegmentBinding", "LoadedSegment", "HostRun", "HostOperation"),
    "dryfit.target.sparsity": ("Sparsity", "zeros_follow"),
    "dryfit.quantization.int8_weights": ("SparsePattern",),
}
"""Module to the names that a target is declared with. They change only as other public names do."""
