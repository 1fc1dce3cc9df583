"""The record of a calibrator: what it takes, its options, and what a solver may give."""

import pytest

from dryfit.errors import PluginError, UnknownNameError
from dryfit.quantization.calibrator import Calibrator, Solution
from dryfit.quantization.collector import Collector
from dryfit.quantization.histogram import Histogram
from dryfit.quantization.int8_steps import DynamicRange


def headroom(histogram, *, factor=1.25, floor=0.0):
    return Solution.of_threshold(max(histogram.magnitude * factor, floor), factor=factor)


CALIBRATOR = Calibrator(name="headroom", title="more than the largest magnitude", solve=headroom)


def seen(*values):
    histogram = Histogram("conv1")
    histogram.update(values, "s")
    return histogram


def test_a_calibrator_solves_what_its_collector_saw():
    solution = CALIBRATOR.solution(seen(1.0, -4.0))
    assert (solution.dynamic_range, solution.details) == (DynamicRange(-5.0, 5.0), {"factor": 1.25})


def test_options_are_the_keywords_of_the_solver():
    assert CALIBRATOR.option_defaults == {"factor": 1.25, "floor": 0.0}
    tuned = CALIBRATOR.with_options(factor=2.0).with_options(floor=10.0)
    assert tuned.options == {"factor": 2.0, "floor": 10.0}
    assert tuned.solution(seen(-4.0)).dynamic_range == DynamicRange(-10.0, 10.0)
    assert CALIBRATOR.options == {}


def test_an_unknown_option_is_refused_with_the_closest():
    with pytest.raises(UnknownNameError, match=r"'headroom'.*'facter'.*factor, floor.*Did you mean 'factor'"):
        CALIBRATOR.with_options(facter=1.0)


@pytest.mark.parametrize(
    ("threshold", "reason"),
    [(0.0, "every value is zero"), (2.0**-149, "too small for a binary32"), (1e300, "too large for a binary32")],
)
def test_a_threshold_without_a_scale_is_told_with_its_reason(threshold, reason):
    solution = Solution.of_threshold(threshold, kept=3)
    assert solution.dynamic_range is None
    assert reason in solution.reason
    assert solution.details == {"kept": 3}


def test_a_solver_that_fails_is_named_with_the_tensor():
    broken = Calibrator(name="broken", title="fails", solve=lambda histogram: 1 / 0)
    with pytest.raises(PluginError, match=r"calibrator 'broken', tensor 'conv1'.*ZeroDivisionError: division by zero"):
        broken.solution(seen(1.0))


def test_a_solver_that_returns_something_else_is_named():
    wrong = Calibrator(name="wrong", title="a number", solve=lambda histogram: 1.0)
    with pytest.raises(
        PluginError, match=r"calibrator 'wrong', tensor 'conv1'.*must return a Solution \(found float\)"
    ):
        wrong.solution(seen(1.0))


def test_the_state_of_another_collector_is_refused():
    class Own(Histogram):
        pass

    own = Calibrator(name="own", title="own collector", solve=headroom, collector=Own)
    with pytest.raises(PluginError, match=r"'own'.*found Histogram; allowed: Own"):
        own.solution(seen(1.0))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"collector": Histogram("x")}, "collector of a calibrator must be a class.*allowed: a subclass of"),
        ({"collector": dict}, "collector of a calibrator must be a class"),
        ({"solve": 3.0}, "`solve` of a calibrator must be a function.*found 3.0"),
    ],
)
def test_a_field_of_the_wrong_kind_is_refused(fields, message):
    with pytest.raises(PluginError, match=f"calibrator 'acme'.*{message}"):
        Calibrator(**{"name": "acme", "title": "Acme", "solve": headroom, **fields})


def test_a_collector_needs_its_methods():
    with pytest.raises(TypeError, match=r"abstract"):
        Collector("x")
