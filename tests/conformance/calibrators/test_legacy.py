"""The calibrator passes the kit that every calibrator is held to."""

from dryfit.testing.calibrator_conformance import CalibratorConformance
from dryfit_plugins.calibrators.legacy import CALIBRATOR


class TestLegacy(CalibratorConformance):
    calibrator = CALIBRATOR
