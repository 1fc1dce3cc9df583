"""Plugins follow builds and assessments; what they raise is recorded and stops nothing."""

import sys

import pytest
from tests.core.builder.networks import chain, dla_config

from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder, assess
from dryfit.engine.progress import ProgressMonitor
from dryfit.errors import BuildError, PlacementError
from dryfit.plugins import registry

WATCHER = """
from dryfit import hookimpl
from dryfit.plugins.contributions import BuildObserver

TOLD = []

class Watcher(BuildObserver):
    def stage_finished(self, stage, index, count):
        TOLD.append(("stage", stage, index, count))

    def verdict_given(self, verdict):
        TOLD.append(("verdict", verdict.layer, verdict.device, verdict.supported))

    def build_finished(self, plan):
        TOLD.append(("finished", plan))

@hookimpl
def observe_build(network, settings):
    TOLD.append(("begun", network.name, settings["default_device_type"], settings["device_types"]))
    return Watcher()
"""

RAISING = """
from dryfit import hookimpl
from dryfit.plugins.contributions import BuildObserver

class Raising(BuildObserver):
    def {moment}:
        raise {error}

@hookimpl
def observe_build(network):
    return Raising()
"""


def told(name="acme"):
    return sys.modules[name].TOLD


def test_an_observer_is_told_of_the_whole_build_in_order(install):
    install("acme", WATCHER)
    network, config = chain("c", "e"), dla_config()
    config.set_device_type(network.layer("c0"), "DLA")
    plan = Builder().build_plan(network, config)
    assert told()[0] == ("begun", "net", "DLA", {"c0": "DLA"})
    assert told()[-1] == ("finished", plan)
    stages = [event[1:] for event in told() if event[0] == "stage"]
    assert [index for _, index, _ in stages] == list(range(10))
    assert {count for *_, count in stages} == {10}
    assert [name for name, *_ in stages][:4] == ["verify", "canonicalise", "find scales", "place"]
    verdicts = [event[1:] for event in told() if event[0] == "verdict"]
    assert verdicts == [("c0", "DLA", True), ("e1", "DLA", False), ("e1", "GPU", True)]


def test_an_observer_is_told_of_an_assessment_which_has_no_plan(install):
    install("acme", WATCHER)
    assess(chain("c", "e"), dla_config())
    assert [event[1] for event in told() if event[0] == "stage"] == [
        "verify",
        "canonicalise",
        "find scales",
        "place",
        "cut and try",
    ]
    assert told()[-1] == ("finished", None)


def test_an_observer_is_told_the_end_of_a_build_that_fails(install):
    install("acme", WATCHER)
    with pytest.raises(PlacementError):
        Builder().build_plan(chain("e"), dla_config(fallback=False))
    assert told()[-1] == ("finished", None)


def test_looking_whether_a_network_is_supported_is_no_build(install):
    install("acme", WATCHER)
    assert Builder().is_network_supported(chain("c"), dla_config())
    assert "acme" not in sys.modules or told() == []


def test_a_progress_monitor_and_an_observer_are_both_told_and_the_monitor_can_cancel(install):
    install("acme", WATCHER)

    class CancelThird(ProgressMonitor):
        def phase_start(self, phase_name, parent_phase, num_steps): ...

        def step_complete(self, phase_name, step):
            return step < 2

        def phase_finish(self, phase_name): ...

    config = dla_config()
    config.progress_monitor = CancelThird()
    with pytest.raises(BuildError, match="canceled"):
        Builder().build_plan(chain("c"), config)
    assert [event[1] for event in told() if event[0] == "stage"] == ["verify", "canonicalise", "find scales"]
    assert told()[-1] == ("finished", None)


@pytest.mark.parametrize("error", ["ValueError('odd')", "SystemExit(3)"])
@pytest.mark.parametrize(
    "moment",
    ["stage_finished(self, stage, index, count)", "verdict_given(self, verdict)", "build_finished(self, plan)"],
)
def test_an_observer_that_raises_is_recorded_and_the_build_and_the_others_go_on(install, moment, error):
    plain = Builder().build_plan(chain("c", "e"), dla_config())
    install("aaa", RAISING.format(moment=moment, error=error))
    install("acme", WATCHER)
    plan = Builder().build_plan(chain("c", "e"), dla_config())
    assert plan.layers == plain.layers
    assert told()[-1] == ("finished", plan)
    (failure,) = registry.failures()
    assert (failure.distribution, failure.hook) == ("aaa", "observe_build")
    assert error.partition("(")[0] in failure.message
    assert f"raise {error}" in failure.traceback


def test_a_hook_that_raises_instead_of_giving_an_observer_stops_nothing(install):
    install("aaa", "from dryfit import hookimpl\n@hookimpl\ndef observe_build():\n    return 'me'\n")
    install("acme", WATCHER)
    Builder().build_plan(chain("c"), BuilderConfig())
    assert told()[-1][0] == "finished"
    (failure,) = registry.failures()
    assert "found str; allowed: BuildObserver" in failure.message
