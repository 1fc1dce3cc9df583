"""What cases are drawn for and how many: the one argument of every function that draws cases."""

from __future__ import annotations

import attrs
import numpy as np

from dryfit.testing.oracles.habits import Habits


@attrs.frozen(eq=False)
class Trial:
    """How cases are drawn.

    Attributes:
        habits: of the library that is to answer.
        random: generator.
        count: how many rounds.
        is_exhaustive: sums of all 65,536 pairs of codes, and every half code of 8 bits in each weighted case with ties;
            else a share of them, for files that stay small.
    """

    habits: Habits
    random: np.random.Generator
    count: int
    is_exhaustive: bool = True
