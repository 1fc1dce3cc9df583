"""The kit of calibrators itself: a sound one passes, and a wrong one fails each test for its own reason."""

import inspect

import pytest
from tests.core.quantization.small_networks import doubling_network
from tests.core.quantization.test_calibration_stream import Stream, calibrator_of
from tests.core.testing import wrong_calibrators as wrong

from dryfit.errors import PluginError
from dryfit.plugins.calibrators import calibrator as installed
from dryfit.testing.calibrator_conformance import CalibratorConformance as Kit

Failed, Skipped = pytest.fail.Exception, pytest.skip.Exception


def kit_of(calibrator, **attributes):
    """The kit as a third party subclasses it."""
    return type("TestAcme", (Kit,), {"calibrator": calibrator, **attributes})()


def failures(calibrator, test, **attributes):
    """The messages of one test of the kit, over all its cases."""
    kit = kit_of(calibrator, **attributes)
    cases = [[value] for value in kit.distributions.values()] if len(inspect.signature(test).parameters) > 1 else [[]]
    found = []
    for case in cases:
        try:
            test(kit, *case)
        except Failed as failure:
            found.append(str(failure))
    return "\n".join(found)


def every_test():
    return [value for name, value in vars(Kit).items() if name.startswith("test_")]


@pytest.mark.parametrize("test", every_test(), ids=lambda test: test.__name__)
def test_sound_calibrators_pass_or_are_visibly_skipped(test):
    expected = {Kit.test_its_own_samples_calibrate_a_network: "there is no stream of the calibrator's own"}
    own_collector = {**expected, Kit.test_batches_do_not_matter: "is_per_sample: which values come together matters"}
    for calibrator, skipped in ((installed("entropy2"), expected), (wrong.SOUND, own_collector)):
        if test in skipped:
            with pytest.raises(Skipped, match=skipped[test]):
                failures(calibrator, test)
        elif calibrator is not wrong.SOUND or test is not Kit.test_the_calibrator_is_found_by_its_name:
            assert failures(calibrator, test) == ""


WRONG = [
    (Kit.test_the_order_of_samples_does_not_matter, wrong.FirstComes, "the samples backwards give another state"),
    (Kit.test_batches_do_not_matter, wrong.Undeclared, "all values as one sample give another state"),
    (Kit.test_merged_parts_are_the_whole, wrong.Overwriting, "merged from left to right give another state"),
    (Kit.test_merged_parts_are_the_whole, wrong.Sharing, "merging a part into another changes the part"),
    (Kit.test_a_state_survives_its_bytes, wrong.Forgetful, "goes on otherwise than the one that it was made from"),
    (Kit.test_a_state_survives_its_bytes, wrong.Restless, "the same state gives other bytes the second time"),
    (Kit.test_damaged_bytes_are_refused, wrong.Trusting, "raises JSONDecodeError instead of CalibrationError for half"),
    (Kit.test_values_that_are_not_finite_are_refused, wrong.Credulous, "nan is taken as a value"),
    (Kit.test_values_that_are_not_finite_are_refused, wrong.Credulous, "inf changes the state although it is refused"),
    (Kit.test_values_that_are_not_finite_are_refused, wrong.Swallowing, "-inf is taken as a value"),
    (Kit.test_values_that_are_not_finite_are_refused, wrong.Swallowing, "skipped and counted; counted were 0"),
]


@pytest.mark.parametrize(("test", "collector", "message"), WRONG)
def test_a_wrong_collector_fails_for_the_right_reason(test, collector, message):
    assert message in failures(wrong.collector_calibrator(collector), test)


def test_a_collector_that_writes_into_its_input_fails():
    calibrator = wrong.Calibrator(name="acme", title="wrong", solve=wrong.rounded, collector=wrong.Writing)
    assert "read-only" in failures(calibrator, Kit.test_values_have_a_range)


WRONG_SOLVERS = [
    (Kit.test_values_have_a_range, wrong.WIDE, "the range reaches to 4.19"),
    (Kit.test_values_have_a_range, wrong.NEVER, "no range for values other than zero: no reason is given"),
    (Kit.test_twice_the_values_have_twice_the_range, wrong.ONE, "for 2.0 times the values the range is"),
    (
        Kit.test_twice_the_values_have_twice_the_range,
        wrong.histogram_calibrator(wrong.rounded),
        "for 0.125 times the values",
    ),
    (Kit.test_the_same_state_has_the_same_range, wrong.RANDOM, "the same state gives"),
    (Kit.test_the_same_state_has_the_same_range, wrong.UNTOLD, "cannot be written as JSON"),
    (
        Kit.test_the_same_state_has_the_same_range,
        wrong.histogram_calibrator(wrong.emptying),
        "solving changes the state",
    ),
    (Kit.test_zeros_have_no_range_and_a_reason, wrong.ONE, "zeros only: there is a range"),
    (Kit.test_zeros_have_no_range_and_a_reason, wrong.NEVER, "no value: no reason is given"),
    (
        Kit.test_zeros_have_no_range_and_a_reason,
        wrong.histogram_calibrator(wrong.without_care),
        "ZeroDivisionError",
    ),
    (Kit.test_the_calibrator_is_found_by_its_name, wrong.SOUND, "Unknown calibrator: 'acme'"),
]


@pytest.mark.parametrize(("test", "calibrator", "message"), WRONG_SOLVERS)
def test_a_wrong_solver_fails_for_the_right_reason(test, calibrator, message):
    one_value = {"one_value": Kit.distributions["one_value"]}  # up to 2.8, all positive or all negative
    assert message in failures(calibrator, test, distributions=one_value)


def test_another_calibrator_of_the_same_name_is_told():
    other = wrong.Calibrator(name="minmax", title="another", solve=wrong.rounded)
    message = failures(other, Kit.test_the_calibrator_is_found_by_its_name)
    assert message == "the entry point 'minmax' names another calibrator"


def test_a_solver_may_state_that_it_exceeds_the_values():
    assert failures(wrong.WIDE, Kit.test_values_have_a_range, may_exceed_values=True) == ""


def test_a_solver_that_does_not_scale_is_skipped_when_it_says_so():
    with pytest.raises(Skipped, match="is_scaling = False"):
        failures(wrong.ONE, Kit.test_twice_the_values_have_twice_the_range, is_scaling=False)


def test_a_collector_that_cannot_be_merged_is_skipped_when_it_says_so():
    alone = type("Alone", (wrong.FirstComes,), {"is_mergeable": False})
    for test in (Kit.test_the_order_of_samples_does_not_matter, Kit.test_merged_parts_are_the_whole):
        with pytest.raises(Skipped, match="is_mergeable = False"):
            failures(wrong.collector_calibrator(alone), test)


def test_a_stream_is_tried_twice():
    test = Kit.test_its_own_samples_calibrate_a_network
    fresh = wrong.Calibrator(name="acme", title="Acme", solve=wrong.rounded, stream=type("Fresh", (Stream,), {}))
    assert failures(fresh, test, network=staticmethod(doubling_network)) == ""
    used_up = calibrator_of(type("UsedUp", (Stream,), {"write_calibration_cache": lambda self, cache: None})())
    message = failures(used_up, test, network=staticmethod(doubling_network))
    assert "CalibrationError: network 'doubling': Calibration requires at least one sample" in message


def test_a_test_is_not_replaced_without_a_reason():
    with pytest.raises(PluginError, match="test_values_have_a_range replaces a test of the kit: state why"):
        kit_of(wrong.SOUND, test_values_have_a_range=lambda self: None)
