"""The section on energy of the page `dla-cost-model.md`; all its numbers are computed from what the model uses."""

from __future__ import annotations

from docs.pages.dla_cost.efficiency import (
    CHECKS,
    FITTED,
    NEAREST,
    ROWS,
    EfficiencyRow,
    estimated_efficiency,
    fitted_powers,
    mean_efficiency_error,
)
from docs.pages.dla_cost.published import BOARD

from dryfit.plugins import registry
from dryfit.target.target import Target
from dryfit_dla.cost.estimate import COPY_POWERS
from dryfit_dla.cost.estimate import SOURCE as ENERGY_SOURCE
from dryfit_dla.platforms import PLATFORMS

_TEXT = """## Energy

`dryfit place --objective energy` compares devices by energy. No watts are published, so **energy is not in joules**:
the unit is the energy of one DLA core in 1 us of its estimated work, on one board in one power mode. The
published figure is the ratio of images per second and watt of the DLA to those of the GPU, each by its own power: the
ratio of the energy of an image on the GPU to that on the DLA.

```
DLA     = time of the segment
GPU     = Pc * time of its multipliers + Pm * (time of its memory + launches)
copies  = Pm * (bytes there and back / peak of the memory + launch)
```

* The times are those of the estimates: the GPU's are at the published peaks, which real kernels do not reach, so that
  `Pc` and `Pm` make up for it. A launch is 5 us, and counts as the memory's time: our choice.
* `Pc` and `Pm` are powers of one working core of the DLA. Two rows determine them, those of the networks that the
  times are fitted to. `python benchmarks/dla_cost_fit.py` repeats the fit.
* We assume that the GPU does the copies and that the rest of a handover uses no energy.
* The figures are those of INT8. Other types use the same powers with their longer times.
"""

_AFTER = """The second figure is the estimate. Dense networks that were not fitted are the check. A GPU is inefficient
at the depthwise convolutions of SSD-MobileNetV1, which its estimate does not model: its energy is underestimated, so
such layers are moved there too readily. Sparse rows compare sparse networks on both; the GPU's estimate skips no
zeros, so they are not a check. We do not know the layers of the RetinaNets.
"""


def energy_section() -> str:
    """The section's text."""
    gpu = registry.target("GPU")
    return "\n".join([_TEXT, *_powers(gpu), *_rows(gpu), _AFTER, f"Source: {ENERGY_SOURCE}.", ""])


def _powers(gpu: Target) -> list[str]:
    lines = ["| platform | power mode | Pc | Pm | basis |", "|---|---|---|---|---|"]
    for name, mode in COPY_POWERS:
        board = next(one for one in PLATFORMS if one.name == name)
        published = NEAREST.get((name, mode), mode)
        multipliers, memory = fitted_powers(FITTED, gpu, board, mode, published)
        basis = "fitted" if board is BOARD else f"inferred: fitted to the figures of {BOARD.title} in {published}"
        lines.append(f"| `{name}` | {mode} | {multipliers:.2f} | {memory:.2f} | {basis} |")
    return [*lines, ""]


def _rows(gpu: Target) -> list[str]:
    modes = [mode.name for mode in BOARD.power_modes]
    lines = [
        f"| network | use | {' | '.join(f'{mode}, published / estimate' for mode in modes)} |",
        "|---|---|" + "---|" * len(modes),
    ]
    for row in ROWS:
        cells = [f"{row.ratios[mode]} / {_estimate(row, gpu, mode)}" for mode in modes]
        lines.append(f"| {row.title} | {_use(row)} | {' | '.join(cells)} |")
    errors = [f"{mean_efficiency_error(CHECKS, gpu, mode):.1%}" for mode in modes]
    return [*lines, f"| mean abs. log error of the checks | | {' | '.join(errors)} |", ""]


def _use(row: EfficiencyRow) -> str:
    return "fit" if row in FITTED else "check" if row in CHECKS else "shown"


def _estimate(row: EfficiencyRow, gpu: Target, mode: str) -> str:
    return "none" if row.draw is None else f"{estimated_efficiency(row, gpu, mode):.1f}"
