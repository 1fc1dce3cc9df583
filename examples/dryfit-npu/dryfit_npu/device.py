"""What the ACME NPU can do, as its manual says it."""

from dryfit.network.data_types import DataType
from dryfit.target.checks import between, each
from dryfit.target.formats import TensorFormat
from dryfit.target.limits import LimitTable, rule, rules
from dryfit.target.memory_pools import MemoryPool
from dryfit.target.roofline import Roofline

MANUAL = "ACME NPU manual"

LIMITS = LimitTable(
    "ACME_NPU",
    rules(
        "convolution",
        rule(
            "convolution.kernel",
            each("kernel_size_nd", between(1, 7)),
            source=f"{MANUAL}, 3.2",
            remedy="Convolve in two steps with smaller kernels",
        ),
    ),
    supported_kinds=frozenset({"activation", "convolution", "elementwise", "plugin", "pooling", "scale"}),
    source=f"{MANUAL}, 3.1",
)

# A pixel's channels lie together, and a row of pixels takes a multiple of 48 bytes.
ACME_HWC = TensorFormat(
    "ACME_HWC", [DataType.HALF], channels_last=True, line_alignment_bytes={"": 48}, source=f"{MANUAL}, 4.1"
)
FORMATS = {DataType.HALF: (ACME_HWC,)}

SRAM = MemoryPool("ACME_SRAM", {"": 4 << 20}, "activations", minimum_bytes=4096, per="segment", source=f"{MANUAL}, 4.2")
POOLS = (SRAM,)

# 1,024 multiply-accumulates a cycle at 800 MHz, 12.8 GB/s of memory, 2 us to start a step.
ESTIMATE = Roofline(lambda precision: 1024, 800e6, 12.8e9, 2e-6, source=f"{MANUAL}, 2.1")
