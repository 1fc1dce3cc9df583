"""Fits the numbers of the DLA's cost model on the published rows, and says how far the model is off.

`python benchmarks/dla_cost_fit.py` prints the numbers that stand in `dryfit_dla/cost/parameters.py`, the error of each
row, and its error when it is left out of the fit; then the powers in `dryfit_gpu/cost.py` and the error of the
networks that they were not fitted on. Nothing is measured: the rows are published.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the published figures lie beside the page of docs about them

from docs.pages.dla_cost.efficiency import CHECKS, NEAREST, fitted_powers, mean_efficiency_error
from docs.pages.dla_cost.efficiency import FITTED as FITTED_EFFICIENCY
from docs.pages.dla_cost.fit import fit, mean_error
from docs.pages.dla_cost.published import BOARD, ROWS

from dryfit_dla.cost.parameters import FITTED, PARAMETERS
from dryfit_dla.platforms import PLATFORMS
from dryfit_gpu import TARGET
from dryfit_gpu.cost import POWERS


def main() -> None:
    """Print the fits."""
    print_times()
    print_powers()


def print_times() -> None:
    """The four numbers of the times."""
    in_use = PARAMETERS[BOARD.name]
    fitted = [row for row in ROWS if row.is_fitted]
    found = fit(fitted, in_use)
    for name in FITTED:
        print(f"{name:18} {getattr(found, name):.4g}, in use {getattr(in_use, name):.4g}")
    for row in ROWS:
        left_out = fit([one for one in fitted if one is not row], in_use)
        print(
            f"{row.title:38} {'fitted' if row.is_fitted else 'check '}"
            f"  mean |log error| {mean_error([row], found):6.1%}, left out {mean_error([row], left_out):6.1%}"
        )


def print_powers() -> None:
    """The powers of the GPU's multipliers and memory, of each board and power mode."""
    for (name, mode), in_use in POWERS.items():
        board = next(one for one in PLATFORMS if one.name == name)
        found = fitted_powers(FITTED_EFFICIENCY, TARGET, board, mode, NEAREST.get((name, mode), mode))
        error = f", mean |log error| of the checks {mean_efficiency_error(CHECKS, TARGET, mode):.1%}"
        print(
            f"{name:12} {mode:5} powers {found[0]:.4g} and {found[1]:.4g}, in use {in_use.multipliers:.4g} and "
            f"{in_use.memory:.4g}{error if board is BOARD else ''}"
        )


if __name__ == "__main__":
    main()
