"""Fifth level: how the target says that it computes."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.testing import arithmetic_checks
from dryfit.testing.kit import declared, require_none
from dryfit.testing.target_levels.target_kit import TargetKit, precision_cases

_NONE = "arithmetic of the target's own"


class TargetArithmetic(TargetKit):
    """Arithmetic of each precision."""

    cases = {"precision": precision_cases}

    def test_a_precision_says_how_it_computes(self, precision: DataType | None) -> None:
        """Accumulator, rounding, fidelity, source."""
        declared(self.own("arithmetic"), _NONE)
        require_none(arithmetic_checks.arithmetic_problems(declared(precision, "precision"), self.complete))

    def test_only_precisions_have_an_arithmetic(self) -> None:
        """Nothing is left over."""
        declared(self.own("arithmetic"), _NONE)
        require_none(arithmetic_checks.superfluous_arithmetic(self.complete))
