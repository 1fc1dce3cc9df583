"""The page `dla-cost-model.md`: the formula, its parameters, and how far it is off the published figures.

All numbers of the page are computed from what the model uses.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from docs.pages.dla_cost.energy_page import energy_section
from docs.pages.dla_cost.fit import fit, mean_error
from docs.pages.dla_cost.published import (
    BOARD,
    LAYERS,
    LAYERS_CLOCK_HZ,
    ROWS,
    estimated_images_per_second,
    published_steps,
)

from dryfit.network.data_types import DataType
from dryfit.target.platform import Platform
from dryfit_dla.cost.estimate import TRANSFER_SOURCE
from dryfit_dla.cost.formula import step_cost
from dryfit_dla.cost.parameters import FITTED, FITTED_ON, PARAMETERS
from dryfit_dla.platforms import PLATFORMS

_INTRODUCTION = """# The DLA's cost model

`dryfit estimate MODEL --platform agx-orin-64 --power-mode MAXN` estimates the latency of a model. **Every figure is
an estimate by the formula below. Nothing was measured on a board.**

This page is generated from the numbers that the model uses.

## Formula

A segment is a sequence of steps. A step is a convolution (or deconvolution, fully connected layer, or product with a
constant matrix) with all that runs after its multipliers: bias, batch normalization, scale, activation, and the sum
with a second tensor. Every other layer is a step of its own. Concatenation along C at whole blocks of channels, and
conversions of the type in which a tensor is stored, take no time.

```
cycles   = positions * R * S * C' * K' / rate              (sparse convolution: cycles / gain)
bytes    = weights + sum over inputs, output, residual of max(0, size - 1 MiB)
time     = cycles / f  +  bytes / (BW * memory clock / reference clock)  +  t0 + c0 / f
segment  = sum of its steps
images/s = cores * batch / segment
```

* `positions` are those of the output in the whole batch, of a deconvolution those of its input.
* `C'` is the number of input channels of a group, rounded up to the block that the multipliers work on together; `K'`
  the number of output maps, rounded up to theirs. A grouped or depthwise convolution thus fills the block with one
  group. For an image of 3 or 4 channels (DLA_HWC4) `C' * S` is `4 * S` rounded up to the block, or to half of it for a
  window of 3 or less.
* `size` is that of the tensor with its channels rounded up; 1 MiB of each tensor stays on the chip.
* `gain` of a convolution with 2:4 sparse weights depends on what bounds it. Multipliers that skip zeros have twice the
  peak, which is published and not fitted. They reach it as long as the weights (up to 256K of them, the documented
  limit) or the input (up to 1 MiB) stay on the chip while the other passes: such a layer is bound by compute, or by
  one traffic alone, which is in `bytes`. Where neither stays, weights or activations are fetched again and again, the
  multipliers wait, and the gain is `s`.
* `f` is the clock of the power mode. Multipliers, memory and overhead are added: the longest of them alone fits
  worse.
* Times are for one core while the board's other cores are busy as well, like the published figures. How much faster a
  core is on its own is unknown.
"""

_LIMITS = """## What it does not know

* Pooling and elementwise layers are estimated from the bytes that they move: their rates are not published, and in
  the sample of single layers above the estimate is too low for pooling and too high for the first convolution.
* FP16 on Orin is based on a single published time: its estimates are good for an order of magnitude only.
* Xavier's overhead per step is Orin's, as no figures are published; its rates and clocks are.
* How much two cores slow each other down, and how much memory bandwidth a busy GPU takes.
* Joules: no watts of a DLA or of these GPUs are published, only how they compare. The watts in a power mode's name are
  the whole module's budget. For Xavier, AGX Orin 32 GB and Orin NX 8 GB not even the comparison is published, and no
  energy is estimated.
* The power of the CPU, the memory, the rest of the board and idle devices.
* Times are those of JetPack 5.1.1. The published latency of ResNet-50 with TensorRT 10.3 on AGX Orin, at
  batch 1 with its last pooling on the GPU, is 1.278 ms; the model gives {batch_1:.2f} ms for a single image.
"""


def cost_page() -> str:
    """The page's text."""
    parts = [
        _INTRODUCTION,
        *_rates(),
        *_fitted(),
        *_boards(),
        *_published(),
        *_single_layers(),
        *_transfers(),
        energy_section(),
        _LIMITS.format(batch_1=_batch_1_milliseconds()),
    ]
    return "\n".join(parts)


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return [*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows), ""]


def _rates() -> list[str]:
    rows = []
    for board, family in (("agx-orin-64", "Orin"), ("agx-xavier", "Xavier")):
        for dtype, rate in PARAMETERS[board].rates.items():
            blocks = (rate.channel_block, rate.map_block, rate.feature_block)
            rows.append((family, dtype.text, rate.macs_per_cycle, *blocks, f"{rate.fidelity}: {rate.source}"))
    columns = ["family", "type", "rate, MAC/cycle", "block of C", "of K", "of C in memory", "basis"]
    return ["## Rates and blocks of one core", "", *_table(columns, rows)]


def _fitted() -> list[str]:
    found = fit([row for row in ROWS if row.is_fitted], PARAMETERS[BOARD.name])
    words = {
        "bytes_per_second": ("BW", "GB/s per core", 1e-9),
        "step_seconds": ("t0", "us", 1e6),
        "step_cycles": ("c0", "cycles", 1.0),
        "refetching_sparse_gain": ("s", "times", 1.0),
    }
    rows = []
    for name in FITTED:
        letter, unit, factor = words[name]
        in_use, fitted = getattr(PARAMETERS[BOARD.name], name) * factor, getattr(found, name) * factor
        rows.append((letter, f"`{name}`", f"{in_use:.4g}", f"{fitted:.4g}", unit))
    return [
        "## Fitted numbers",
        "",
        f"Four numbers, by least squares of the logarithm of the throughput, on {sum_of_figures()} published figures:",
        f"{FITTED_ON}.",
        "`python benchmarks/dla_cost_fit.py` repeats the fit.",
        "",
        *_table(["", "parameter", "in use", "found by the fit", "unit"], rows),
    ]


def sum_of_figures() -> int:
    """How many published figures the fit sees."""
    return sum(len(row.images_per_second) for row in ROWS if row.is_fitted)


def _boards() -> list[str]:
    rows = []
    for platform in PLATFORMS:
        parameters = PARAMETERS[platform.name]
        for mode in platform.power_modes:
            bandwidth = parameters.bytes_per_second * mode.memory_clock_hz / parameters.memory_clock_hz
            rows.append(
                (
                    f"`{platform.name}`",
                    platform.cores,
                    mode.name,
                    f"{mode.clock_hz / 1e6:.0f}",
                    f"{mode.memory_clock_hz / 1e6:.0f}",
                    f"{bandwidth / 1e9:.1f}",
                    f"{mode.fidelity}: {mode.source}",
                )
            )
    columns = ["platform", "cores", "power mode", "clock, MHz", "memory, MHz", "BW, GB/s a core", "basis of the clocks"]
    sources = [
        f"* `{platform.name}`: {PARAMETERS[platform.name].source}. Times may be off by a factor of {_errors(platform)}."
        for platform in PLATFORMS
        if platform.cores
    ]
    return [
        "## Boards and power modes",
        "",
        "The first mode of a platform is its default.",
        "",
        *_table(columns, rows),
        *sources,
        "",
    ]


def _errors(platform: Platform) -> str:
    """How far estimates may be off, as reports print it."""
    factors = PARAMETERS[platform.name].error_factors
    return " and ".join(f"{factor:g} ({dtype.text})" for dtype, factor in factors.items())


def _published() -> list[str]:
    parameters = PARAMETERS[BOARD.name]
    fitted = [row for row in ROWS if row.is_fitted]
    rows = []
    for row in ROWS:
        cells = [
            f"{published} / {estimated_images_per_second(row, mode, parameters):.0f}"
            for mode, published in row.images_per_second.items()
        ]
        left_out = mean_error([row], fit([one for one in fitted if one is not row], parameters))
        error = f"{mean_error([row], parameters):.1%}"
        told = f"{left_out:.1%}" if row.is_fitted else "never in the fit"
        rows.append((row.title, row.batch, "fit" if row.is_fitted else "check", *cells, error, told))
    modes = [f"{mode.name}, published / estimate" for mode in BOARD.power_modes]
    columns = ["network", "batch", "use", *modes, "mean abs. log error", "left out of the fit"]
    return [
        "## Published throughput and estimates",
        "",
        "Images a second of both DLAs of a Jetson AGX Orin 64 GB, INT8, JetPack 5.1.1, SRAM pool of 1 MiB, inputs in",
        "DLA_HWC4, outputs in CHW32 (NVIDIA Deep-Learning-Accelerator-SW, README).",
        "",
        *_table(columns, rows),
        "The last column shows what each row is needed for: without ResNet-50 the overhead of a step is not known, and",
        "without the sparse row neither is the gain of layers that fetch again, and the fit then keeps what it began",
        "with. The backbone is published without a word on its last stage; it is taken without it, as its figures",
        "suggest. One gain for all sparse layers, fitted to SSD, left the sparse backbone 11 to 14 % too slow.",
        "",
    ]


def _single_layers() -> list[str]:
    steps = published_steps(next(row for row in ROWS if not row.is_fitted))
    mode = attrs.evolve(BOARD.power_modes[0], name="1152 MHz", clock_hz=LAYERS_CLOCK_HZ)
    rows = []
    for title, index, published in LAYERS:
        found = step_cost(steps[index], PARAMETERS[BOARD.name], mode)
        rows.append((title, f"{published:.3f}", f"{found.microseconds / 1000:.3f}", found.bound))
    return [
        "## Published times of single layers",
        "",
        "ResNet-34 backbone at 1280x768, INT8, one DLA at 1152 MHz (cuDLA's layerwise statistics), not fitted.",
        "",
        *_table(["step", "published, ms", "estimate, ms", "bound by"], rows),
    ]


def _transfers() -> list[str]:
    rows = [
        (
            f"`{one.name}`",
            f"{PARAMETERS[one.name].copy_seconds * 1e3:.1f}",
            f"{PARAMETERS[one.name].handover_seconds * 1e3:.1f}",
        )
        for one in PLATFORMS
        if one.cores
    ]
    return [
        "## Copies between GPU and DLA",
        "",
        "Each tensor that crosses takes a reformatting copy and half of a handover, whatever its size. Both count",
        "toward the latency of the network, not in a DLA's throughput.",
        "",
        *_table(["platform", "copy, ms", "handover there and back, ms"], rows),
        f"Source: {TRANSFER_SOURCE}.",
        "",
    ]


def _batch_1_milliseconds() -> float:
    from docs.pages.dla_cost.networks import int8_specs, resnet_50

    from dryfit.target.cost import CostQuestion
    from dryfit_dla.cost.estimate import estimate_cost

    network = resnet_50(batch=1)
    precisions = {layer.name: DataType.INT8 for layer in network.layers}
    found = estimate_cost(CostQuestion(network.layers, int8_specs(network), BOARD, precisions=precisions))
    return (found.microseconds or 0.0) / 1000
