"""The GPU target: NVIDIA's GPUs as TensorRT uses them."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.target.target import Target
from dryfit_gpu.platforms import PLATFORMS

TARGET = Target(
    device="GPU",
    title="NVIDIA GPU",
    platforms=PLATFORMS,
    precisions=[DataType.INT8, DataType.HALF, DataType.BF16, DataType.FLOAT],
    default_precision=DataType.FLOAT,
    limits_at="dryfit_gpu.limits:LIMITS",
    input_formats_at="dryfit_gpu.formats:FORMATS",
    output_formats_at="dryfit_gpu.formats:FORMATS",
    memory_pools_at="dryfit_gpu.formats:POOLS",
    arithmetic_at="dryfit_gpu.arithmetic:ARITHMETIC",
    estimate_cost_at="dryfit_gpu.cost:estimate_cost",
    cost_parameters_at="dryfit_gpu.cost:PARAMETERS",
    simulated=(
        "placement, data types, tensor formats and memory pools of a GPU; results are computed on this machine "
        "with the arithmetic that the target declares"
    ),
)
