"""The published throughput that the cost model is fitted on and held against, and what the model says of it.

Source: NVIDIA Deep-Learning-Accelerator-SW, README: images a second of both DLAs of a Jetson AGX Orin 64 GB, JetPack
5.1.1, INT8, SRAM pool of 1 MiB, inputs in DLA_HWC4, outputs in CHW32.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence

import attrs
from docs.pages.dla_cost.networks import (
    int8_specs,
    layers_that_can_be_sparse,
    resnet_34_backbone,
    resnet_50,
    ssd_mobilenet_v1,
    ssd_resnet_34,
)

from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.target.cost import CostQuestion
from dryfit_dla.cost.formula import CostStep, step_cost
from dryfit_dla.cost.parameters import PARAMETERS, CostParameters
from dryfit_dla.cost.steps import steps_of
from dryfit_dla.platforms import PLATFORMS

BOARD = PLATFORMS[0]
"""Jetson AGX Orin 64 GB."""
SOFTWARE = (8, 5)
"""TensorRT of JetPack 5.1.1."""


@attrs.frozen(eq=False)
class PublishedRow:
    """The throughput of one network.

    Attributes:
        title: of the network.
        draw: makes it.
        batch: images a run.
        is_sparse: whether its weights were pruned to 2:4.
        images_per_second: power mode to the throughput of both DLAs.
        is_fitted: whether the parameters are fitted on it; else it is a check of them.
    """

    title: str
    draw: Callable[[], Network]
    batch: int
    is_sparse: bool
    images_per_second: Mapping[str, int]
    is_fitted: bool


def _row(
    title: str, draw: Callable[[], Network], batch: int, found: Sequence[int], *, sparse: bool = False, fit: bool = True
) -> PublishedRow:
    modes = [mode.name for mode in BOARD.power_modes]
    return PublishedRow(title, draw, batch, sparse, dict(zip(modes, found, strict=True)), fit)


ROWS = (
    _row("ResNet-50 v1.5, 224x224", resnet_50, 2, (2037, 1948, 1928, 1072)),
    _row("SSD-ResNet-34, 1200x1200", ssd_resnet_34, 1, (83, 76, 74, 36)),
    _row("SSD-ResNet-34, 1200x1200, 2:4 sparse", ssd_resnet_34, 1, (103, 97, 95, 49), sparse=True),
    _row("ResNet-34 backbone, 1280x768", resnet_34_backbone, 1, (285, 260, 255, 121), fit=False),
    _row(
        "ResNet-34 backbone, 1280x768, 2:4 sparse", resnet_34_backbone, 1, (384, 360, 354, 176), sparse=True, fit=False
    ),
    _row("SSD-MobileNetV1, 300x300", ssd_mobilenet_v1, 2, (2664, 2506, 2472, 1313), fit=False),
)
"""The rows of networks whose layers are known here; the RetinaNets' are not."""

LAYERS = (
    ("convolution 7x7 with step 2, 3 to 64 channels, and ReLU", 0, 0.704),
    ("maximum pooling 3x3 with step 2", 1, 0.581),
    ("convolution 3x3, 64 to 64 channels at 192x320", 2, 0.40),
    ("the same, with a residual and ReLU", 3, 0.416),
    ("convolution 3x3 with step 2, 64 to 128 channels", 8, 0.272),
)
"""What was run, index of the step in the ResNet-34 backbone, and published milliseconds of one DLA at 1152 MHz."""
LAYERS_CLOCK_HZ = 1.152e9


@functools.cache
def published_steps(row: PublishedRow) -> Sequence[CostStep]:
    """The steps of a row's network, computed in INT8."""
    network = row.draw()
    question = CostQuestion(
        layers=network.layers,
        specs=int8_specs(network),
        platform=BOARD,
        precisions={layer.name: DataType.INT8 for layer in network.layers},
        sparse_layers=layers_that_can_be_sparse(network, BOARD, SOFTWARE) if row.is_sparse else frozenset(),
    )
    return steps_of(question, PARAMETERS[BOARD.name])


@functools.cache
def _unlike_steps(row: PublishedRow) -> tuple[Sequence[CostStep], Sequence[int]]:
    """The steps of a row's network that differ in more than their names, and the number of its like for each step."""
    places: dict[CostStep, int] = {}
    alike = [
        attrs.evolve(one, layers=(), inputs=tuple(one.inputs), outputs=tuple(one.outputs))
        for one in published_steps(row)
    ]
    numbers = [places.setdefault(one, len(places)) for one in alike]
    return list(places), numbers


def estimated_images_per_second(row: PublishedRow, mode_name: str, parameters: CostParameters) -> float:
    """What the model says of both DLAs."""
    mode = BOARD.power_mode(mode_name)
    if mode is None:
        raise ValueError(f"{BOARD.name} has no power modes")
    steps, numbers = _unlike_steps(row)  # a fit asks ten thousand times
    costs = [step_cost(step, parameters, mode).microseconds for step in steps]
    run = sum(costs[number] for number in numbers)
    return BOARD.cores * row.batch / run * 1e6


def log_errors(rows: Sequence[PublishedRow], parameters: CostParameters) -> list[float]:
    """Logarithm of estimate by published figure, for each row and power mode."""
    return [
        math.log(estimated_images_per_second(row, mode, parameters) / published)
        for row in rows
        for mode, published in row.images_per_second.items()
    ]
