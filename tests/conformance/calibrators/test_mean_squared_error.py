"""The calibrator passes the kit that every calibrator is held to."""

from dryfit.testing.calibrator_conformance import CalibratorConformance
from dryfit_plugins.calibrators.mean_squared_error import CALIBRATOR


class TestMeanSquaredError(CalibratorConformance):
    calibrator = CALIBRATOR
