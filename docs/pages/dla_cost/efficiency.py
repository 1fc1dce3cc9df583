"""The published efficiency that the GPU's powers are fitted on and held against, and what the model says of it.

A figure is how many times as many images a second and watt both DLAs make as the GPU, each by its own power: what the
GPU draws for an image by what a DLA draws. The GPU's target is handed in, so that this package knows no other.

Source: NVIDIA Deep-Learning-Accelerator-SW, README, DLA Performance per Watt: Jetson AGX Orin 64 GB, JetPack 5.1.1,
INT8, power of the accelerators only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from docs.pages.dla_cost.networks import (
    int8_specs,
    layers_that_can_be_sparse,
    resnet_34_backbone,
    resnet_50,
    ssd_mobilenet_v1,
    ssd_resnet_34,
)
from docs.pages.dla_cost.published import BOARD, SOFTWARE

from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.target.cost import CostEstimate, CostQuestion
from dryfit.target.target import Platform, Target
from dryfit_dla import TARGET

Vector = np.ndarray[Any, Any]


@attrs.frozen(eq=False)
class EfficiencyRow:
    """The efficiency of the DLA on one network, by that of the GPU.

    Attributes:
        title: of the network.
        ratios: power mode to the figure.
        draw: makes the network; None where its layers are not known here, so that nothing is estimated of it.
        batch: images a run of the DLA.
        gpu_batch: images a run of the GPU.
        is_sparse: whether its weights were pruned to 2:4.
        is_fitted: whether the powers are fitted on it; else it is a check, or stands for itself.
    """

    title: str
    ratios: Mapping[str, float]
    draw: Callable[[int], Network] | None
    batch: int
    gpu_batch: int
    is_sparse: bool
    is_fitted: bool


def _row(
    title: str,
    ratios: Sequence[float],
    draw: Callable[[int], Network] | None = None,
    batches: tuple[int, int] = (1, 1),
    *,
    sparse: bool = False,
    fit: bool = False,
) -> EfficiencyRow:
    modes = [mode.name for mode in BOARD.power_modes]
    return EfficiencyRow(title, dict(zip(modes, ratios, strict=True)), draw, *batches, sparse, fit)


ROWS = (
    _row("ResNet-50 v1.5, 224x224", (3.5, 2.9, 2.6, 3.9), resnet_50, (2, 256), fit=True),
    _row("SSD-ResNet-34, 1200x1200", (3.7, 3.0, 2.7, 4.1), ssd_resnet_34, fit=True),
    _row("ResNet-34 backbone, 1280x768", (4.3, 3.7, 3.4, 4.9), resnet_34_backbone),
    _row("SSD-MobileNetV1, 300x300", (4.2, 3.6, 3.2, 5.0), ssd_mobilenet_v1, (2, 128)),
    _row("RetinaNet ResNeXt-50, 800x800", (3.8, 3.1, 2.8, 4.2)),
    _row("RetinaNet ResNet-34, 1280x768", (4.2, 3.5, 3.1, 4.6)),
    _row("SSD-ResNet-34, 1200x1200, 2:4 sparse", (3.5, 3.3, 2.9, 4.3), ssd_resnet_34, sparse=True),
    _row("ResNet-34 backbone, 1280x768, 2:4 sparse", (3.4, 3.0, 2.7, 4.1), resnet_34_backbone, sparse=True),
    _row("RetinaNet ResNeXt-50, 800x800, 2:4 sparse", (4.7, 4.1, 3.7, 5.6), sparse=True),
    _row("RetinaNet ResNet-34, 1280x768, 2:4 sparse", (3.5, 2.9, 2.6, 3.9), sparse=True),
)
"""All rows of the page."""

FITTED = tuple(row for row in ROWS if row.is_fitted)
CHECKS = tuple(row for row in ROWS if row.draw is not None and not row.is_fitted and not row.is_sparse)
"""Dense networks that the powers were not fitted on. Sparse rows are no check: the GPU's estimate skips no zeros."""

NEAREST = {("orin-nx-16", "MAXN"): "15W"}
"""Another board and power mode to the mode of the measured board whose figures stand in for its own.

Source: the same page: at its largest clock the DLA of Orin NX 16 GB equals that of AGX Orin 64 GB at 15 W.
"""


def fitted_powers(rows: Sequence[EfficiencyRow], gpu: Target, board: Platform, mode: str, published: str) -> Vector:
    """What the GPU's multipliers and its memory draw, in powers of one working core of the DLA.

    Two rows are met exactly, more with the least sum of squared relative errors.

    Args:
        rows: to fit.
        gpu: the GPU's target, for its times.
        board: that the powers are for.
        mode: of the board.
        published: the power mode whose published figures are taken.

    Returns:
        float64[2].
    """
    times = []
    for row in rows:
        steps = image_estimate(row, gpu, board, mode, row.gpu_batch).steps
        multipliers = sum(step.compute_microseconds for step in steps)
        memory = sum(step.memory_microseconds + step.overhead_microseconds for step in steps)
        dla = image_estimate(row, TARGET, board, mode, row.batch).microseconds or 0.0
        drawn = row.ratios[published] * dla / row.batch
        times.append([multipliers / row.gpu_batch / drawn, memory / row.gpu_batch / drawn])
    found: Vector = np.linalg.lstsq(np.array(times), np.ones(len(times)), rcond=None)[0]
    return found


def image_estimate(row: EfficiencyRow, target: Target, board: Platform, mode: str, batch: int) -> CostEstimate:
    """What a device is estimated to take for one run of a row's network.

    Raises:
        ValueError: the network is not known, or nothing is estimated.
    """
    if row.draw is None or target.estimate_cost is None:
        raise ValueError(f"the layers of {row.title} are not known")
    network = row.draw(batch)
    platform = target.platform(board.name)
    found = target.estimate_cost(
        CostQuestion(
            layers=network.layers,
            specs=int8_specs(network),
            platform=platform,
            precisions={layer.name: DataType.INT8 for layer in network.layers},
            sparse_layers=layers_that_can_be_sparse(network, BOARD, SOFTWARE) if row.is_sparse else frozenset(),
            power_mode=platform.power_mode(mode),
        )
    )
    if found is None:
        raise ValueError(f"nothing is estimated of {platform.title}")
    return found


def estimated_efficiency(row: EfficiencyRow, gpu: Target, mode: str) -> float:
    """What the model says of a row on the board that was measured: the GPU's energy of an image by that of the DLA."""
    energies = [
        image_estimate(row, target, BOARD, mode, batch).energy
        for target, batch in ((gpu, row.gpu_batch), (TARGET, row.batch))
    ]
    of_gpu, of_dla = (energy.amount for energy in energies if energy is not None)
    return of_gpu / row.gpu_batch / (of_dla / row.batch)


def mean_efficiency_error(rows: Sequence[EfficiencyRow], gpu: Target, mode: str) -> float:
    """The mean absolute logarithmic error in one power mode."""
    errors = [abs(math.log(estimated_efficiency(row, gpu, mode) / row.ratios[mode])) for row in rows]
    return sum(errors) / len(errors)
