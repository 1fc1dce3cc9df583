"""The ACME NPU: an accelerator that does not exist, as a target of dryfit."""

from dryfit.network.data_types import DataType
from dryfit.target.target import Platform, Target

TARGET = Target(
    device="ACME_NPU",
    title="ACME neural processing unit",
    platforms=[Platform("board-1", "first", "ACME board 1", cores=2, source="ACME NPU manual, 1.1")],
    precisions=[DataType.HALF],
    default_precision=DataType.HALF,
    limits_at="dryfit_npu.device:LIMITS",
    input_formats_at="dryfit_npu.device:FORMATS",
    output_formats_at="dryfit_npu.device:FORMATS",
    memory_pools_at="dryfit_npu.device:POOLS",
    kernels_at="dryfit_npu.kernels:KERNELS",
    estimate_cost_at="dryfit_npu.device:ESTIMATE",
    simulated="placement, limits, memory and tensor format of an ACME NPU; results are computed on this machine",
)
