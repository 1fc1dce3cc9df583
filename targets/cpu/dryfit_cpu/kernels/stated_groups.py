"""Groups whose weights and requantization are stated, in the place of what their layers would say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from dryfit.target.group import LayerGroup

if TYPE_CHECKING:
    from dryfit_cpu.kernels.integer_weights import IntegerWeights
    from dryfit_cpu.kernels.requantization import Requantization


@attrs.frozen(eq=False)
class StatedGroup(LayerGroup):
    """Dequantizations, a weighted sum and a quantization, which tell the geometry only.

    Attributes:
        weights: what it multiplies by, and the numbers that scale its sums.
        steps: what happens to the sums.
    """

    weights: IntegerWeights
    steps: Requantization
