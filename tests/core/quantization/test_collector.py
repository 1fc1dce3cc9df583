"""What all collectors have in common, seen on a small one."""

import json
import math
import pickle

import numpy as np
import pytest

from dryfit.errors import CalibrationError
from dryfit.quantization.collector import Collector, require_mergeable
from dryfit.quantization.histogram import Histogram


class Largest(Collector):
    """The largest magnitude of each sample."""

    state_name = "largest"
    is_per_sample = True

    def __init__(self, tensor="", **options):
        super().__init__(tensor, **options)
        self.by_sample = {}

    def add(self, values, sample):
        self.by_sample[sample] = float(np.abs(values).max())

    def absorb(self, other):
        self.by_sample.update(other.by_sample)

    def payload(self):
        return json.dumps(self.by_sample, sort_keys=True).encode()

    def restore(self, payload):
        self.by_sample = json.loads(payload)


class Latest(Largest):
    """Depends on the order, and says so."""

    state_name = "latest"
    is_mergeable = False


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_errors_with_tensor_and_sample(bad):
    collector = Largest("conv1")
    collector.update([1.0], "first")
    with pytest.raises(CalibrationError, match=r"tensor 'conv1', sample 'second'.* infinite of 3 values"):
        collector.update([1.0, bad, 2.0], "second")
    assert collector.by_sample == {"first": 1.0}


def test_an_error_counts_nan_and_infinity_apart():
    with pytest.raises(CalibrationError, match=r"2 NaN and 1 infinite of 4 values"):
        Largest("x").update([math.nan, math.nan, -math.inf, 0.0], "s")


def test_values_to_be_skipped_are_counted():
    collector = Largest("conv1", skips_nonfinite=True)
    collector.update([1.0, math.nan, -3.0, math.inf], "first")
    collector.update([math.nan], "second")
    assert (collector.skipped, collector.by_sample) == (3, {"first": 3.0})


@pytest.mark.parametrize("array", [[True], [1j], ["one"]])
def test_only_real_numbers_are_taken(array):
    with pytest.raises(CalibrationError, match=r"tensor 'mask', sample 's'.*Values must be real numbers"):
        Largest("mask").update(np.array(array), "s")


def test_states_are_merged_with_what_was_skipped():
    parts = [Largest("x", skips_nonfinite=True) for _ in range(2)]
    parts[0].update([1.0, math.nan], "a")
    parts[1].update([2.0, math.nan, math.nan], "b")
    parts[0].merge(parts[1])
    assert (parts[0].skipped, parts[0].by_sample) == (3, {"a": 1.0, "b": 2.0})


def test_a_collector_that_is_not_mergeable_refuses_it_by_name():
    with pytest.raises(CalibrationError, match=r"tensor 'x'.*Latest, which declares is_mergeable = False.*one process"):
        Latest("x").merge(Latest("x"))
    with pytest.raises(CalibrationError, match=r"calibrator 'acme'"):
        require_mergeable(Latest, where="calibrator 'acme'")


def test_different_collectors_are_not_merged():
    with pytest.raises(CalibrationError, match=r"found Largest and Histogram"):
        Largest("x").merge(Histogram("x"))


def test_a_mergeable_collector_without_absorb_says_so():
    class Forgetful(Latest):
        is_mergeable = True
        absorb = Collector.absorb

    with pytest.raises(NotImplementedError, match=r"Forgetful is declared mergeable but does not define `absorb`"):
        Forgetful("x").merge(Forgetful("x"))


def test_a_collector_can_be_sent_to_another_process():
    collector = Largest("x")
    collector.update([2.0], "a")
    arrived = pickle.loads(pickle.dumps(collector))  # noqa: S301  our own bytes
    assert (arrived.tensor, arrived.to_bytes()) == ("x", collector.to_bytes())


def test_a_state_goes_through_bytes():
    collector = Largest("x", skips_nonfinite=True)
    collector.update([1.0, math.nan], "a")
    restored = Largest.from_bytes(collector.to_bytes(), "y")
    assert (restored.tensor, restored.skipped, restored.by_sample) == ("y", 1, {"a": 1.0})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"", "not the state of a collector"),
        (lambda data: data[1:], "not the state of a collector"),
        (lambda data: data.replace(b'"skipped"', b'"dropped"'), "not the state of a collector"),
        (lambda data: data.replace(b'"skipped": 0', b'"skipped": -1'), "not the state of a collector"),
        (lambda data: b"dryfit collector 1\n[]\n", "not the state of a collector"),
        (lambda data: b"dryfit collector 1\n\xff\n", "not the state of a collector"),
        (lambda data: data.replace(b'"largest"', b'"smallest"'), "found smallest; allowed: largest"),
        (lambda data: data.replace(b"2.0", b"3.0"), "digest does not match"),
        (lambda data: data.replace(b'"skipped": 0', b'"skipped": 9'), "digest does not match"),
        (lambda data: data[:-1], "digest does not match"),
    ],
)
def test_damaged_and_foreign_bytes_are_refused(change, message):
    collector = Largest("x")
    collector.update([2.0], "a")
    with pytest.raises(CalibrationError, match=f"state of tensor 'conv1'.*{message}"):
        Largest.from_bytes(change(collector.to_bytes()), "conv1")
