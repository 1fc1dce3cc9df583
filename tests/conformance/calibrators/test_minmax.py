"""The calibrator that saturates nothing passes the kit that every calibrator is held to."""

from dryfit.testing.calibrator_conformance import CalibratorConformance
from dryfit_plugins.calibrators.percentile import MINMAX


class TestMinmax(CalibratorConformance):
    calibrator = MINMAX
