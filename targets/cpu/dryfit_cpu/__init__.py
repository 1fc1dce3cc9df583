"""The CPU target: the host's kernels, which run whatever another target declares no kernel for."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.target.target import Platform, SegmentRules, Target

TARGET = Target(
    device="CPU",
    title="This machine's processor",
    platforms=[Platform("host", "host", "This machine")],
    precisions=[DataType.INT8, DataType.HALF, DataType.BF16, DataType.FLOAT, DataType.DOUBLE],
    input_formats_at="dryfit_cpu.arithmetic:FORMATS",
    output_formats_at="dryfit_cpu.arithmetic:FORMATS",
    arithmetic_at="dryfit_cpu.arithmetic:ARITHMETIC",
    kernels_at="dryfit_cpu.kernels:KERNELS",
    create_schedule_at="dryfit_cpu.schedule:create_schedule",
    machine_code_at="dryfit_cpu.warm_up:machine_code",
    copy_array_at="dryfit_cpu.array_copies:copy_array",
    estimate_cost_at="dryfit_cpu.cost:estimate_cost",
    segment_rules=SegmentRules(is_host=True),
    simulated="nothing; this machine is the device",
)
