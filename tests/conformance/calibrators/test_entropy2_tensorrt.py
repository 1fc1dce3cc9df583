"""The calibrator passes the kit, which is told that order and batches matter to it and that it may reach beyond."""

from dryfit.testing.calibrator_conformance import CalibratorConformance
from dryfit_plugins.calibrators.entropy2_tensorrt import CALIBRATOR


class TestEntropy2TensorRT(CalibratorConformance):
    calibrator = CALIBRATOR
    may_exceed_values = True
