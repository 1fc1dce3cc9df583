"""The DLA target: NVIDIA's Deep Learning Accelerator of Xavier and Orin, as TensorRT uses it."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.target.target import SegmentRules, Target
from dryfit_dla.platforms import BOARDS_WITHOUT, PLATFORMS, SOFTWARE_VERSIONS

TARGET = Target(
    device="DLA",
    title="NVIDIA Deep Learning Accelerator",
    platforms=PLATFORMS,
    boards_without=BOARDS_WITHOUT,
    software_versions=SOFTWARE_VERSIONS,
    precisions=[DataType.INT8, DataType.HALF],
    default_precision=None,
    limits_at="dryfit_dla.limits:LIMITS",
    input_formats_at="dryfit_dla.formats:INPUT_FORMATS",
    output_formats_at="dryfit_dla.formats:OUTPUT_FORMATS",
    memory_pools_at="dryfit_dla.formats:POOLS",
    exported_format="dryfit-dla-loadable",
    import_segment_at="dryfit_dla.loadable_file:loadable_engine",
    export_segment_at="dryfit_dla.loadable_export:export_segment",
    arithmetic_at="dryfit_dla.arithmetic:ARITHMETIC",
    kernels_at="dryfit_dla.kernels:KERNELS",
    estimate_cost_at="dryfit_dla.cost.estimate:estimate_cost",
    estimate_transfer_at="dryfit_dla.cost.estimate:estimate_transfer",
    cost_parameters_at="dryfit_dla.cost.parameters:PARAMETERS",
    sparsity_at="dryfit_dla.sparsity:SPARSITY",
    segment_rules=SegmentRules(
        same_batch=True,
        max_segments={(7,): 8, (8, 5): 16},
        # A candidate that runs out of memory fails as a whole, and the builder names the pool: TensorRT 10 developer
        # guide, Determining DLA Memory Pool Usage.
        cuts_to_fit=False,
        source=(
            "TensorRT 10 developer guide, Working with DLA: general restrictions (16 loadables per core); "
            "builders before TensorRT 8.5 report 8"
        ),
    ),
    simulated=(
        "placement, limits, loadables, tensor formats and memory pools of a DLA; results are computed on this "
        "machine with the arithmetic that the target declares"
    ),
)
