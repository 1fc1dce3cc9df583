"""The calibrator that saturates nothing passes the kit that every calibrator is held to."""

from dryfit.testing.calibrator_conformance import CalibratorConformance
from dryfit_plugins.calibrators.minmax import CALIBRATOR


class TestMinmax(CalibratorConformance):
    calibrator = CALIBRATOR
