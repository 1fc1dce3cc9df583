"""The calibrator passes the kit."""

from dryfit.testing.calibrator_conformance import CalibratorConformance
from dryfit_plugins.calibrators.entropy_all_bins import CALIBRATOR


class TestEntropyAllBins(CalibratorConformance):
    calibrator = CALIBRATOR
