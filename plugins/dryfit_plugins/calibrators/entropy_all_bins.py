"""The entropy calibration of the GTC 2017 slides to the letter: bin 0 counts like any other bin.

It is here to reproduce what was published with it. A ReLU makes half of the values zero, and all of them fall into bin
0, so that the search cuts off most of the range (20 dB lost on the ReLU of a normal distribution): `entropy2` leaves
bin 0 out.
"""

from __future__ import annotations

from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.histogram import BINS, Histogram
from dryfit_plugins.calibrators.entropy2 import least_divergent


def solve(histogram: Histogram) -> Solution:
    """The range with the smallest relative entropy; among equal ones the smallest range.

    From 128 to 2047 bins are kept. The threshold is the middle of the bin after the last kept one, and the largest
    magnitude at most. The bins are those of the histogram, whose width is a power of two, where the slides divide the
    largest magnitude by 2048.
    """
    return least_divergent(histogram, histogram.counts, most_kept=BINS - 1)


CALIBRATOR = Calibrator(
    name="entropy-all-bins",
    title="the smallest relative entropy, bin 0 included",
    solve=solve,
    source="S. Migacz, 8-bit inference with TensorRT, GTC 2017: the pseudocode of the calibration",
)
