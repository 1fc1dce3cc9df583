"""Arm's Ethos-U55, U65 and U85 as a target of dryfit.

Everything is a fact of Arm's documents or of its compiler Vela, with the place; none of it is measured on a device.
"""

from dryfit.network.data_types import DataType
from dryfit.target.target import SegmentRules, Target
from dryfit_ethos_u.machines import PLATFORMS

DRYFIT_API_LEVEL = 1

TARGET = Target(
    device="ETHOS_U",
    title="Arm Ethos-U neural processing unit",
    platforms=PLATFORMS,
    precisions=[DataType.INT8, DataType.UINT8, DataType.INT16, DataType.INT32],
    default_precision=None,
    limits_at="dryfit_ethos_u.limits:LIMITS",
    input_formats_at="dryfit_ethos_u.memory:FORMATS",
    output_formats_at="dryfit_ethos_u.memory:FORMATS",
    memory_pools_at="dryfit_ethos_u.memory:POOLS",
    arithmetic_at="dryfit_ethos_u.memory:ARITHMETIC",
    fusions_at="dryfit_ethos_u.memory:FUSIONS",
    estimate_cost_at="dryfit_ethos_u.cost:estimate_cost",
    estimate_transfer_at="dryfit_ethos_u.cost:estimate_transfer",
    segment_rules=SegmentRules(source="Vela 5.2.0: consecutive operators of the NPU are one command stream"),
    simulated="placement, limits, formats and memory of an Ethos-U; results are computed on this machine",
)
