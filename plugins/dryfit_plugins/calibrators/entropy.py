"""TensorRT's first entropy calibrator, IInt8EntropyCalibrator: the search of entropy2, for what is left after fusion.

No public source shows another criterion. What differs is which tensors are asked for, and that none share a range.
"""

from __future__ import annotations

from dryfit.quantization.calibrator import Calibrator
from dryfit_plugins.calibrators.entropy2 import solve

CALIBRATOR = Calibrator(
    name="entropy",
    title="the smallest relative entropy, after fusion",
    solve=solve,
    before_fusion=False,
    version="2",
    source="TensorRT 8 developer guide, IInt8EntropyCalibrator",
)
