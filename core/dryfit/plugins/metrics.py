"""Metrics of installed packages, found by name and loaded when they are asked for.

An entry point in the group `dryfit.metrics` names a `dryfit.quantization.metric.Metric`. The entry point's name is the
metric's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryfit.errors import PluginError, UnknownNameError
from dryfit.plugins import registry
from dryfit.plugins.discovery import METRICS

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from dryfit.quantization.metric import Metric


def metric(name: str) -> Metric:
    """The metric of a name, or of a user's function: `module:function` or `file.py:function`.

    Raises:
        UnknownNameError: no installed package brings it.
        PluginError: two packages do, or the one that does is switched off or broken.
        CalibrationError: there is no such function.
    """
    if ":" in name:
        from dryfit.quantization.metric import metric_of_function

        return metric_of_function(name)
    entry = registry.entry(METRICS, name)
    if entry is None:
        raise UnknownNameError("metric", name, {one.name for one in registry.entries(METRICS)}, where="--metric")
    found: Metric = registry.require(entry, _prepare(entry), f"The metric {name!r} could not be loaded")
    return found


def _prepare(entry: EntryPoint) -> Any:
    """The function that checks what an entry point names."""

    def prepare(loaded: Any) -> Metric:
        from dryfit.quantization.metric import Metric

        if not isinstance(loaded, Metric) or loaded.name != entry.name:
            raise PluginError(
                "The entry point must name a metric of the same name",
                found=repr(getattr(loaded, "name", type(loaded).__name__)),
                allowed=f"a Metric named {entry.name!r}",
                remedy="Let the entry point name one",
            )
        return loaded

    return prepare
