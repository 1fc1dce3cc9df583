"""Fits the four numbers of the DLA's cost model on the published rows, and says how far the model is off.

`python benchmarks/dla_cost_fit.py` prints the numbers that stand in `dryfit_dla/cost/parameters.py`, the error of each
row, and its error when it is left out of the fit. Nothing is measured: the rows are published.
"""

from __future__ import annotations

from dryfit_dla.cost.fit import fit, mean_error
from dryfit_dla.cost.parameters import FITTED, PARAMETERS
from dryfit_dla.cost.published import BOARD, ROWS


def main() -> None:
    """Print the fit."""
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


if __name__ == "__main__":
    main()
