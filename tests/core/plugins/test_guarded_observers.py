from __future__ import annotations

import threading
from typing import Any

import pytest

from dryfit.plugins import facade, registry
from dryfit.plugins.contributions import BuildObserver, RunObserver
from dryfit.plugins.discovery import HOOKS
from dryfit.plugins.facade import GuardedBuildObservers, GuardedRunObservers

OBSERVING = """
    import dryfit
    from dryfit.plugins.contributions import BuildObserver, RunObserver

    @dryfit.hookimpl
    def observe_build(network, settings):
        return Fails() if network == "fails" else None

    class Fails(BuildObserver):
        def verdict_given(self, verdict):
            raise ValueError(verdict)
"""


class Build(BuildObserver):
    def __init__(self, fails_at: str = "") -> None:
        self.told: list[Any] = []
        self.fails_at = fails_at

    def stage_finished(self, stage: str, index: int, count: int) -> None:
        self._tell("stage_finished", stage, index, count)

    def verdict_given(self, verdict: Any) -> None:
        self._tell("verdict_given", verdict)

    def build_finished(self, plan: Any) -> None:
        self._tell("build_finished", plan)

    def _tell(self, moment: str, *arguments: Any) -> None:
        self.told.append((moment, *arguments))
        if moment == self.fails_at:
            raise RuntimeError("out of paper")


class Run(RunObserver):
    def __init__(self, wants_layer_times: bool) -> None:
        self.wants_layer_times = wants_layer_times
        self.told: list[Any] = []

    def run_started(self, input_shapes: Any) -> None:
        self.told.append(("started", input_shapes))

    def layer_finished(self, layer: str, milliseconds: float) -> None:
        self.told.append((layer, milliseconds))

    def run_finished(self, milliseconds: float) -> None:
        self.told.append(("finished", milliseconds))


def test_all_observers_are_told_and_one_that_raises_is_dropped() -> None:
    sound, broken = Build(), Build(fails_at="verdict_given")
    failed: list[tuple[str, str]] = []
    together = GuardedBuildObservers(
        [(broken, lambda *what: failed.append(what)), (sound, lambda *what: failed.append(what))]
    )
    together.stage_finished("place", 0, 2)
    together.verdict_given("no")
    together.verdict_given("yes")
    together.build_finished(None)
    expected = [
        ("stage_finished", "place", 0, 2),
        ("verdict_given", "no"),
        ("verdict_given", "yes"),
        ("build_finished", None),
    ]
    assert sound.told == expected
    assert broken.told == expected[:2]
    assert [message for message, _ in failed] == ["verdict_given: RuntimeError: out of paper"]
    assert "out of paper" in failed[0][1]


def test_layer_times_go_to_those_that_want_them() -> None:
    plain, timed = Run(wants_layer_times=False), Run(wants_layer_times=True)
    together = GuardedRunObservers([(plain, print), (timed, print)])
    assert together.wants_layer_times
    together.run_started({"x": (1, 3)})
    together.layer_finished("conv1", 0.5)
    together.run_finished(2.0)
    assert plain.told == [("started", {"x": (1, 3)}), ("finished", 2.0)]
    assert timed.told == [("started", {"x": (1, 3)}), ("conv1", 0.5), ("finished", 2.0)]
    assert not GuardedRunObservers([(plain, print)]).wants_layer_times


def test_observers_are_told_from_several_threads_while_one_of_them_fails() -> None:
    sound, broken = Build(), Build(fails_at="verdict_given")
    together = GuardedBuildObservers([(broken, lambda *what: None), (sound, lambda *what: None)])
    threads = [threading.Thread(target=lambda: [together.verdict_given(1) for _ in range(100)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sound.told) == 400
    assert len(broken.told) <= len(threads)


def test_nobody_observing_costs_a_run_nothing(install_package: Any) -> None:
    install_package("acme", {HOOKS: {"acme": "acme_hooks"}}, {"acme_hooks": OBSERVING})
    registry.begin_again(disabled="", selected="acme")
    assert facade.run_observers("engine", ["DLA"]) is None


@pytest.mark.parametrize(("network", "messages"), [("fails", ["verdict_given: ValueError: no"]), ("sound", [])])
def test_what_an_observer_raises_is_its_plugins_failure(
    install_package: Any, network: str, messages: list[str]
) -> None:
    install_package("acme", {HOOKS: {"acme": "acme_hooks"}}, {"acme_hooks": OBSERVING})
    registry.begin_again(disabled="", selected="acme")
    observer = facade.build_observers(network, {})  # type: ignore[arg-type]
    observer.verdict_given("no")
    assert [(one.hook, one.message) for one in registry.failures()] == [("observe_build", one) for one in messages]
