"""The calibrator passes the kit that every calibrator is held to."""

from dryfit.testing.calibrator_conformance import CalibratorConformance
from dryfit_plugins.calibrators.entropy2 import ENTROPY


class TestEntropy(CalibratorConformance):
    calibrator = ENTROPY
