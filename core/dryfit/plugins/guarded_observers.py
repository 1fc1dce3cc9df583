"""Observers of plugins, told together: one that raises is recorded and dropped, and what it watched goes on."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from dryfit.plugins.contributions import BuildObserver, RunObserver

Observer = TypeVar("Observer", BuildObserver, RunObserver)
Failed = Callable[[str, str], None]
"""Records a failure: message and traceback."""


class _Audience(Generic[Observer]):
    """The observers that have not failed yet.

    A run may tell them from several threads: the tuple is replaced and never changed, so that each thread goes through
    the audience as it was.
    """

    def __init__(self, observers: Iterable[tuple[Observer, Failed]]) -> None:
        self.observers: tuple[tuple[Observer, Failed], ...] = tuple(observers)

    def tell(self, moment: str, *arguments: Any, whom: Callable[[Observer], bool] = lambda observer: True) -> None:
        """Call a method of each, or of some."""
        for observer, failed in self.observers:
            try:
                if not whom(observer):
                    continue
                getattr(observer, moment)(*arguments)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  a plugin may raise anything, even SystemExit
                failed(f"{moment}: {type(error).__name__}: {error}", traceback.format_exc())
                self.observers = tuple(one for one in self.observers if one[0] is not observer)


class GuardedBuildObservers(BuildObserver):
    """Tells several observers of a build."""

    def __init__(self, observers: Iterable[tuple[BuildObserver, Failed]]) -> None:
        self._audience = _Audience(observers)

    def stage_finished(self, stage: str, index: int, count: int) -> None:
        """See `BuildObserver`."""
        self._audience.tell("stage_finished", stage, index, count)

    def verdict_given(self, verdict: Any) -> None:
        """See `BuildObserver`."""
        self._audience.tell("verdict_given", verdict)

    def build_finished(self, plan: Any) -> None:
        """See `BuildObserver`."""
        self._audience.tell("build_finished", plan)


class GuardedRunObservers(RunObserver):
    """Tells several observers of runs; only those that want layers' times are told them."""

    def __init__(self, observers: Iterable[tuple[RunObserver, Failed]]) -> None:
        self._audience = _Audience(observers)
        self.wants_layer_times = any(one.wants_layer_times for one, _ in self._audience.observers)

    def run_started(self, input_shapes: dict[str, Sequence[int]]) -> None:
        """See `RunObserver`."""
        self._audience.tell("run_started", input_shapes)

    def layer_finished(self, layer: str, milliseconds: float) -> None:
        """See `RunObserver`."""
        self._audience.tell("layer_finished", layer, milliseconds, whom=lambda one: one.wants_layer_times)

    def run_finished(self, milliseconds: float) -> None:
        """See `RunObserver`."""
        self._audience.tell("run_finished", milliseconds)
