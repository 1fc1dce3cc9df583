"""How near packing comes to the speed of memory: pack and unpack against a plain numpy copy of the same bytes.

The copy moves the bytes of the format's memory, padding included, from one dense array to another. Each row is measured
in one run, the three in turns, and the best of a few counts; 1.00 is as quick as the copy. Each format is measured with
few channels, which leave most of a vector padding, and with whole vectors. Run: `python benchmarks/packing.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import dryfit_dla.formats
import dryfit_gpu.formats
from dryfit.network.data_types import DataType
from dryfit.target.formats import LINEAR, TensorFormat

HALF, INT8, FLOAT = DataType.HALF, DataType.INT8, DataType.FLOAT
ROUNDS = 7
FAMILY = "orin"

CASES: tuple[tuple[TensorFormat, DataType], ...] = (
    (LINEAR, FLOAT),
    (dryfit_dla.formats.DLA_LINEAR, HALF),
    (dryfit_dla.formats.DLA_LINEAR, INT8),
    (dryfit_dla.formats.DLA_HWC4, HALF),
    (dryfit_dla.formats.DLA_HWC4, INT8),
    (dryfit_dla.formats.CHW16, HALF),
    (dryfit_dla.formats.CHW32, INT8),
    (dryfit_gpu.formats.CHW2, HALF),
    (dryfit_gpu.formats.CHW4, INT8),
    (dryfit_gpu.formats.CHW32, FLOAT),
    (dryfit_gpu.formats.HWC, FLOAT),
    (dryfit_gpu.formats.HWC, INT8),
    (dryfit_gpu.formats.HWC8, HALF),
    (dryfit_gpu.formats.HWC16, HALF),
    (dryfit_gpu.formats.DHWC, FLOAT),
    (dryfit_gpu.formats.DHWC8, HALF),
    (dryfit_gpu.formats.CDHW32, INT8),
)
SIZES = (56, 224, 896)
"""Height and width."""


def shapes(layout: TensorFormat, size: int) -> list[tuple[int, ...]]:
    """An image of the size, and features of a comparable number of bytes."""
    spatial = (size, size) if layout.spatial_axes == 2 else (4, size // 2, size // 2)
    channels = [3, 4] if layout.channel_counts else [3, 64 if size < 896 else 32]
    return [(1, count, *spatial) for count in channels]


def best_times(calls: list[Callable[[], object]]) -> list[float]:
    """Seconds of the quickest of several rounds, in which the calls take turns."""
    for call in calls:
        call()
    times = [[float("inf")] for _ in calls]
    for _ in range(ROUNDS):
        for call, spent in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            spent.append(time.perf_counter() - start)
    return [min(spent) for spent in times]


def measured(layout: TensorFormat, dtype: DataType, shape: tuple[int, ...]) -> tuple[float, float, float, int]:
    """Ratios of pack and unpack to the copy, the copy's bytes a nanosecond, and its bytes."""
    tensor = np.random.default_rng(0).integers(-100, 100, shape).astype(dtype.numpy)
    memory = layout.pack(tensor, FAMILY)
    plain, back = np.empty_like(memory), np.empty_like(tensor)
    copy, pack, unpack = best_times(
        [
            lambda: np.copyto(plain, memory),
            lambda: layout.pack(tensor, FAMILY, out=memory),
            lambda: layout.unpack(memory, shape, FAMILY, out=back),
        ]
    )
    if not np.array_equal(back, tensor):
        raise SystemExit(f"{layout.name} does not give back what was packed")
    return pack / copy, unpack / copy, memory.nbytes / copy / 1e9, memory.nbytes


def main() -> None:
    """Print a table."""
    print(f"{'format':<11} {'type':<6} {'shape':<20} {'MiB':>7} {'copy GB/s':>10} {'pack':>7} {'unpack':>7}")
    for layout, dtype in CASES:
        for size in SIZES:
            for shape in shapes(layout, size):
                pack, unpack, speed, count = measured(layout, dtype, shape)
                text = "x".join(map(str, shape))
                print(
                    f"{layout.name:<11} {dtype.name:<6} {text:<20} {count / 2**20:7.1f} {speed:10.1f}"
                    f" {pack:7.2f} {unpack:7.2f}"
                )


if __name__ == "__main__":
    main()
