"""The answers of one network from all engines that are compared, and how they compare."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

import dryfit
from dryfit.quantization.calibration_cache import CalibrationCache
from measuring.accuracy import BUILDS, Measured, calibrated, classes, measured, network_of, sqnr, worst_sqnr
from measuring.accuracy_cases import SHARED, AccuracyCase, Pictures

CALIBRATORS = ("entropy2", "minmax", "percentile", "mean-squared-error")
"""The first is the default."""

ENOUGH = 0.95
"""The part of the pictures whose class INT8 should not change."""


@attrs.frozen
class Comparison:
    """The answers of one network.

    Attributes:
        case: the network, and how it is judged.
        network: itself.
        pictures: what it was shown.
        cache: the scales of the default calibrator.
        engines: name in `BUILDS` to answers, calibrated by the default.
        others: (name in `BUILDS`, calibrator) to answers, for all calibrators.
    """

    case: AccuracyCase
    network: dryfit.Network
    pictures: Pictures
    cache: CalibrationCache
    engines: Mapping[str, Measured]
    others: Mapping[tuple[str, str], Measured]

    @property
    def reference(self) -> Measured:
        """The answers in FP32."""
        return self.engines["FP32"]

    def agreement(self, found: Measured) -> float:
        """The part of the pictures of which the same class is told as in FP32."""
        return float((classes(found.answers) == classes(self.reference.answers)).mean())

    @property
    def is_lossy(self) -> bool:
        """Whether it tells no classes, or too few of them in INT8 as in FP32."""
        return not self.case.has_classes or any(self.agreement(found) < ENOUGH for found in self.narrow.values())

    @property
    def narrow(self) -> Mapping[str, Measured]:
        """The answers in other types."""
        return {name: found for name, found in self.engines.items() if name != "FP32"}

    def noise(self, found: Measured, output: str) -> float:
        """SQNR of an output in dB."""
        return sqnr(self.reference.answers[output], found.answers[output])

    def worst_noise(self, found: Measured) -> float:
        """SQNR of the output that has the least."""
        return worst_sqnr(self.reference.answers, found.answers)


def compare(case: AccuracyCase) -> Comparison:
    """All answers of a network."""
    network = network_of(case, SHARED / "models")
    pictures = case.pictures(SHARED / "images", network.inputs[0])
    caches = calibrated(network, pictures, CALIBRATORS)
    engines, others = dict[str, Measured](), dict[tuple[str, str], Measured]()
    for name, build in BUILDS.items():
        if not build.is_int8:
            engines[name] = measured(network, build, pictures)
            continue
        for calibrator, cache in caches.items():
            others[name, calibrator] = measured(network, build, pictures, cache)
        engines[name] = others[name, CALIBRATORS[0]]
    return Comparison(case, network, pictures, caches[CALIBRATORS[0]], engines, others)
