"""Calibrators of installed packages, found by name and loaded when they are asked for.

An entry point in the group `dryfit.calibrators` names a `dryfit.quantization.calibrator.Calibrator`, or a class of
objects with TensorRT's calibrator interface (see `dryfit.quantization.calibration_stream.CalibrationStream`), which
takes no arguments. The entry point's name is the calibrator's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryfit.errors import PluginError, UnknownNameError
from dryfit.plugins import registry
from dryfit.plugins.discovery import CALIBRATORS

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.metadata import EntryPoint

    from dryfit.quantization.calibration_stream import CalibrationStream
    from dryfit.quantization.calibrator import Calibrator


def calibrator(name: str) -> Calibrator:
    """The calibrator of a name. No other is loaded, except the one whose solver a stream asks for.

    Args:
        name: the entry point's name.

    Raises:
        UnknownNameError: no installed package brings it.
        PluginError: two packages do, or the one that does is switched off or broken.
    """
    entry = registry.entry(CALIBRATORS, name)
    if entry is None:
        raise UnknownNameError("calibrator", name, {one.name for one in registry.entries(CALIBRATORS)})
    found: Calibrator = registry.require(entry, _prepare(entry), f"The calibrator {name!r} could not be loaded")
    return found


def calibrators() -> dict[str, Calibrator]:
    """Every calibrator that can be loaded, by name, sorted. What fails or lost its name is recorded and left out."""
    return registry.load_all(CALIBRATORS, _prepare)


def solvers() -> list[Calibrator]:
    """The installed calibrators that take samples of any caller, one for each way to solve."""
    # Those before and after fusion solve alike.
    alike = {
        one.solve: one for one in reversed(calibrators().values()) if one.stream is None and not one.judges_outputs
    }
    return sorted(alike.values(), key=lambda one: one.name)


def of_stream(stream: CalibrationStream) -> Calibrator:
    """The calibrator that an object with TensorRT's interface asks for, with that object's samples.

    Raises:
        CalibrationError: it asks for none that there is.
        UnknownNameError, PluginError: the one that it asks for is not installed, switched off or broken.
    """
    import attrs

    from dryfit.quantization.calibration_stream import CALIBRATOR_NAMES, stream_algorithm

    solver = calibrator(CALIBRATOR_NAMES[stream_algorithm(stream)])
    return attrs.evolve(solver, stream=lambda: stream)


def _prepare(entry: EntryPoint) -> Callable[[Any], Calibrator]:
    """The function that makes the calibrator of an entry point from what it names."""

    def prepare(loaded: Any) -> Calibrator:
        from dryfit.quantization.calibration_stream import is_stream
        from dryfit.quantization.calibrator import Calibrator

        if isinstance(loaded, Calibrator):
            if loaded.name != entry.name:
                raise PluginError(
                    "A calibrator must have the name of its entry point",
                    found=f"{loaded.name!r}",
                    allowed=f"{entry.name!r}",
                    remedy="Rename the entry point or the calibrator",
                )
            return loaded
        if isinstance(loaded, type) and is_stream(loaded):
            return _of_stream(entry.name, loaded)
        raise PluginError(
            "The entry point must name a calibrator",
            found=loaded.__name__ if isinstance(loaded, type) else type(loaded).__name__,
            allowed="a Calibrator, or a class with the methods of TensorRT's calibrators",
            remedy="Let the entry point name one of these",
        )

    return prepare


def _of_stream(name: str, stream: type) -> Calibrator:
    """The calibrator that a stream asks for, with the stream's samples."""
    import attrs

    from dryfit.quantization.calibration_stream import CALIBRATOR_NAMES, stream_algorithm

    solver = calibrator(CALIBRATOR_NAMES[stream_algorithm(stream())])
    title = (stream.__doc__ or name).strip().splitlines()[0]
    return attrs.evolve(solver, name=name, title=title, stream=stream)
