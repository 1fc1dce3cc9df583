"""How tensors lie in memory, what memory there is, how sums are kept and rounded, and what runs as one operation."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.quantization.rounding import RoundingMode
from dryfit.target.arithmetic import Arithmetic
from dryfit.target.formats import LINEAR, TensorFormat
from dryfit.target.fusions import Fusion
from dryfit.target.memory_pools import MemoryPool, WeightsOfLayer
from dryfit_ethos_u.machines import CACHES, MODE_OF, VELA

_FORMATS = f"{VELA}, architecture_features.py: storage rounding and brick sizes of tensor formats"
TYPES = (DataType.INT8, DataType.UINT8, DataType.INT16, DataType.INT32)

NHWC = TensorFormat("NHWC", TYPES, channels_last=True, source=_FORMATS)
NHCWB16 = TensorFormat("NHCWB16", TYPES, channels_vector=16, rows_first=True, source=_FORMATS)
"""Bricks of 16 channels, [N, H, ceil(C / 16), W, 16]; a brick begins at a multiple of 16 bytes."""
FORMATS = {
    **dict.fromkeys(TYPES, (NHWC, NHCWB16, LINEAR)),
    **dict.fromkeys((DataType.BOOL, DataType.INT64), (LINEAR,)),
}
"""What the caller hands over is NHWC. Inside a command stream Vela chooses bricks where the next operation reads
them."""

SCALE_BYTES = 10
"""Scale, shift and bias of an output channel: 80 bits. Source: Vela, weight_compressor."""


def stored_bytes(weights: WeightsOfLayer) -> int:
    """Weights as they would lie uncoded; Vela's coding makes ordinary ones smaller, which depends on their values."""
    is_kernel = len(weights.shape) > 1
    channels = weights.shape[0] if is_kernel and weights.shape else 0
    return -(-weights.computed_bytes // 16) * 16 * is_kernel + -(-SCALE_BYTES * channels // 16) * 16


POOLS = (
    MemoryPool(
        "ETHOS_U_ARENA",
        {"u55": 1 << 32, "": 1 << 40},
        "activations",
        alignment_bytes=16,
        per="segment",
        source=f"{VELA}, --verbose-config: arena_cache_size defaults to the address space of an AXI port",
    ),
    MemoryPool(
        "ETHOS_U_CACHE",
        {**{name: CACHES.get(mode, 0) for name, (_, mode) in MODE_OF.items()}, "": 0},
        "cache",
        alignment_bytes=16,
        per="segment",
        source=f"{VELA}, config_files/Arm/vela.ini: arena_cache_size of the Dedicated_Sram modes",
    ),
    MemoryPool(
        "ETHOS_U_CONSTANTS",
        {"u55": 1 << 32, "": 1 << 40},
        "weights",
        alignment_bytes=16,
        per="segment",
        stored_bytes=stored_bytes,
        source=f"{VELA}, config_files/Arm/vela.ini: const_mem_area",
    ),
)


def _arithmetic(precision: DataType, accumulator: DataType) -> Arithmetic:
    return Arithmetic(
        precision,
        accumulator=accumulator,
        rounds="group",
        rounding=RoundingMode.HALF_AWAY_FROM_ZERO,
        weight_rounding=RoundingMode.HALF_TO_EVEN,
        fidelity="inferred",
        source=f"{VELA} keeps TFLite's results: the quantize method `tflite` gives them bit for bit",
    )


ARITHMETIC = {
    DataType.INT8: _arithmetic(DataType.INT8, DataType.INT32),
    DataType.UINT8: _arithmetic(DataType.UINT8, DataType.INT32),
    DataType.INT16: _arithmetic(DataType.INT16, DataType.INT64),
    DataType.INT32: _arithmetic(DataType.INT32, DataType.INT32),
}
"""Sums of INT16 have 48 bits (INT64 here); results are scaled once, at the end of an operation."""

_FUSED = f"{VELA}: an activation without other readers is the end of the operation before it"
FUSIONS = tuple(
    Fusion(f"{kind.replace('_', '-')}-activation", [kind, "activation"], source=_FUSED)
    for kind in ("convolution", "deconvolution", "fully_connected", "matrix_multiply", "pooling", "elementwise")
)
"""What a layer and the quantizations around it are; kinds as TFLite fuses them."""
