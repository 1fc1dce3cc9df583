"""The calibrator passes the kit."""

from dryfit.testing.calibrator_conformance import CalibratorConformance
from dryfit_plugins.calibrators.entropy2 import ENTROPY_ALL_BINS


class TestEntropyAllBins(CalibratorConformance):
    calibrator = ENTROPY_ALL_BINS
