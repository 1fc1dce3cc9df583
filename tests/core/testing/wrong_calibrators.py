"""A small sound calibrator with a collector of its own, as a third party would write it, and wrong ones."""

import itertools
import json

import numpy as np

from dryfit.errors import CalibrationError
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.collector import Collector
from dryfit.quantization.histogram import Histogram, HistogramSide
from dryfit.quantization.int8_steps import DynamicRange


class Peaks(Collector):
    """The largest magnitude of each sample, by its name."""

    state_name = "acme peaks"
    is_per_sample = True

    def __init__(self, tensor="", **options):
        super().__init__(tensor, **options)
        self.peaks = {}

    def add(self, values, sample):
        self.peaks[sample] = max(self.peaks.get(sample, 0.0), float(np.abs(values).max()))

    def absorb(self, other):
        for sample, peak in other.peaks.items():
            self.peaks[sample] = max(self.peaks.get(sample, 0.0), peak)

    def payload(self):
        return json.dumps(self.peaks, sort_keys=True).encode()

    def restore(self, payload):
        try:
            self.peaks = json.loads(payload)
        except ValueError as error:
            raise CalibrationError("no peaks", where=f"state of tensor {self.tensor!r}", found=str(error)) from None


def middle(collector):
    """The middle one of the samples' largest magnitudes that are not zero."""
    peaks = sorted(peak for peak in collector.peaks.values() if peak)
    return Solution.of_threshold(peaks[len(peaks) // 2] if peaks else 0.0)


SOUND = Calibrator(name="acme", title="the middle peak", solve=middle, collector=Peaks)


class FirstComes(Peaks):
    """Numbers samples in the order in which they come."""

    def add(self, values, sample):
        self.peaks[f"{len(self.peaks)}"] = float(np.abs(values).max())


class Undeclared(Peaks):
    """Does not say that it matters which values come together."""

    is_per_sample = False


class Overwriting(Peaks):
    """Merges by forgetting what it had."""

    def absorb(self, other):
        self.peaks = dict(other.peaks)


class Sharing(Peaks):
    """Goes on writing into what it merged."""

    def absorb(self, other):
        other.peaks.update(self.peaks)
        self.peaks = other.peaks


class Forgetful(Peaks):
    """Its bytes are not all that it knows."""

    def __init__(self, tensor="", **options):
        super().__init__(tensor, **options)
        self.factor = 1.0

    def add(self, values, sample):
        self.factor *= 0.5
        self.peaks[sample] = float(np.abs(values).max()) * self.factor


class Restless(Peaks):
    """Has other bytes each time."""

    def payload(self):
        return json.dumps({**self.peaks, "time": next(TICKS)}).encode()


class Credulous(Peaks):
    """Takes what is not finite."""

    def update(self, array, sample):
        self.add(np.asarray(array), sample)


class Swallowing(Peaks):
    """Leaves out what is not finite, and tells nobody."""

    def update(self, array, sample):
        super().update(np.asarray(array)[np.isfinite(array)], sample)


class Trusting(Peaks):
    """Restores anything."""

    def restore(self, payload):
        self.peaks = json.loads(payload)


class Writing(Histogram):
    """Works in the memory of its input."""

    def add(self, values, sample):
        np.abs(values, out=values)
        super().add(values, sample)


TICKS = itertools.count()


def emptying(histogram):
    """Empties the lower bins of the collector's own tables."""
    histogram.positive, histogram.negative = (
        HistogramSide(side.exponent, np.where(np.arange(side.counts.size) < 1500, 0, side.counts))
        for side in (histogram.positive, histogram.negative)
    )
    return Solution.of_threshold(histogram.magnitude)


def rounded(histogram):
    """A threshold on a grid that does not grow with the values."""
    return Solution.of_threshold(np.ceil(histogram.magnitude * 10) / 10)


def without_care(histogram):
    """Divides by the number of values that are not zero."""
    return Solution.of_threshold(histogram.magnitude * (histogram.count // (histogram.count - histogram.zeros)))


def histogram_calibrator(solve):
    return Calibrator(name="acme", title="wrong", solve=solve)


def collector_calibrator(collector):
    return Calibrator(name="acme", title="wrong", solve=middle, collector=collector)


WIDE = histogram_calibrator(lambda one: Solution.of_threshold(one.magnitude * 1.5))
ONE = histogram_calibrator(lambda one: Solution(DynamicRange(-1.0, 1.0)))
NEVER = histogram_calibrator(lambda one: Solution(None))
RANDOM = histogram_calibrator(lambda one: Solution.of_threshold(one.magnitude / (1 + next(TICKS))))
UNTOLD = histogram_calibrator(lambda one: Solution.of_threshold(one.magnitude, share=float("nan")))
