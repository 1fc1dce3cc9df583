"""Compiled segments in an engine: one operation each, whose only packed array is the program.

The operation is like any other: its kernel, `<device>.segment`, binds the result of the target's loader for the
program. Therefore an engine file needs no other place for programs, and their digests are checked with those of all
arrays.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dryfit.engine.plan import PROGRAM, Operation, segment_kernel_name
from dryfit.errors import DryfitError, EngineFileError, PluginError
from dryfit.forking import ForkSafeLock
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.tensor import TensorSpec
from dryfit.target.group import LayerGroup, SegmentGroup
from dryfit.target.kernels import Array, Binding, EveryKind, Kernel
from dryfit.target.segments import LoadedSegment, SegmentBinding
from dryfit.target.target import Target

_LAYER_WEIGHTS = ("kernel", "bias", "scale", "shift", "power")
"""Parameters that a program has in itself, as packed weights of kernels have them."""

_loaded: weakref.WeakKeyDictionary[Operation, LoadedSegment] = weakref.WeakKeyDictionary()
_lock = ForkSafeLock()


def operation_group(operation: Operation, layers: Mapping[str, Layer]) -> LayerGroup:
    """Return the layers of an operation.

    Args:
        operation: operation of a plan.
        layers: layers of the plan's network, by name.
    """
    members = [layers[name] for name in operation.layers]
    return SegmentGroup(members) if operation.is_compiled else LayerGroup(members)


def segment_kernel(device: str, load: Callable[[Array], LoadedSegment]) -> Kernel:
    """Return the kernel of a device's compiled segments.

    Args:
        device: device of the segments.
        load: function that converts a program to an object that can be bound.
    """
    return Kernel(
        name=segment_kernel_name(device),
        kinds=EveryKind(),
        data_types=frozenset(DataType),
        bind=lambda binding: bind_segment(load(binding.weights[PROGRAM]), binding),
        packed_parameters=_LAYER_WEIGHTS,
    )


def bind_segment(loaded: LoadedSegment, binding: Binding) -> Callable[[], None]:
    """Return a step that runs all steps of a loaded segment.

    Raises:
        EngineFileError: The program was created for other tensors.
        PluginError: The loader does not provide steps.
    """
    group, arrays = binding.group, binding.arrays
    # What was known when the program was made is in it; what is known only now that shapes are is still an input.
    inputs = {tensor.name: arrays[tensor.name] for tensor in group.inputs if tensor.spec.value is None}
    outputs = {tensor.name: arrays[tensor.name] for tensor in group.outputs}
    _require_tensors(loaded, {**inputs, **outputs}, group.name)
    steps: Sequence[Any] = loaded.bind(SegmentBinding(inputs, outputs, binding.num_threads)) or ()
    functions = [getattr(step, "run", step) for step in steps]
    if not functions or not all(map(callable, functions)):
        raise PluginError(
            "A loaded segment's `bind` must return steps, or functions without arguments, that compute the outputs",
            where=f"engine layer {group.name!r}",
            found=", ".join(type(step).__name__ for step in steps) or "none",
            remedy="Return a sequence of steps or functions from `bind`",
        )

    def run() -> None:
        for function in functions:
            function()

    return run


def _require_tensors(loaded: LoadedSegment, arrays: Mapping[str, Array], name: str) -> None:
    """Reject a program that declares other tensors than the engine binds it to."""
    told: Mapping[str, TensorSpec] | None = getattr(loaded, "tensors", None)
    if told is None:
        return
    misfits = [name for name in told.keys() | arrays.keys() if not _fits(told.get(name), arrays.get(name))]
    if misfits:
        raise EngineFileError(
            "The program of a compiled segment does not match its tensors",
            where=f"engine layer {name!r}",
            found=", ".join(f"{one!r} {told[one].dtype.text} {told[one].shape}" for one in sorted(told)),
            allowed=", ".join(f"{one!r} {arrays[one].dtype} {arrays[one].shape}" for one in sorted(arrays)),
            remedy="Build the engine again",
        )


def _fits(spec: TensorSpec | None, array: Array | None) -> bool:
    if spec is None or array is None or array.ndim != spec.rank or array.dtype != spec.dtype.numpy:
        return False
    return all(extent in (-1, found) for extent, found in zip(spec.shape, array.shape, strict=True))


def program_array(program: bytes) -> Array:
    """Return a program as an array for an engine."""
    return np.frombuffer(program, dtype=np.uint8)


def load_program(operation: Operation, target: Target) -> LoadedSegment:
    """Load an operation's program with the target's loader, once for all contexts of an engine.

    Raises:
        PluginError: The installed target has no loader.
        EngineFileError: The loader rejects the program.
    """
    with _lock:
        found = _loaded.get(operation)
        if found is None:
            found = _loaded[operation] = _load(operation, target)
        return found


def _load(operation: Operation, target: Target) -> LoadedSegment:
    where = f"segment {operation.segment} of {operation.device}"
    load_segment = target.load_segment
    if load_segment is None:
        raise PluginError(
            "The installed target cannot load the engine's compiled segment",
            where=where,
            found=f"no load_segment_at in the target {target.device}",
            remedy="Install the version of the target that the engine was built with, or build the engine again",
        )
    try:
        loaded = load_segment(operation.weights[PROGRAM].tobytes())
    except PluginError:
        raise
    except Exception as error:  # the loader is a stranger's, and the program may come from anywhere
        raise EngineFileError(
            "The program of a compiled segment could not be loaded",
            where=where,
            found=str(error) if isinstance(error, DryfitError) else f"{type(error).__name__}: {error}",
            remedy="Build the engine again with the installed version of the target",
        ) from error
    if not callable(getattr(loaded, "bind", None)):
        raise PluginError(
            "A target's loader must return an object with a method `bind`",
            where=f"target {target.device}, {target.load_segment_at}",
            found=type(loaded).__name__,
            remedy="Return an object with a method `bind(binding)` from the loader",
        )
    return loaded
