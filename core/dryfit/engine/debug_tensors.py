"""Debug tensors of an execution context: which of them a listener receives, and the calls of the listener."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from dryfit.engine.plan import Plan
from dryfit.errors import ExecutionError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.tensor import Array, Shape


class DebugListener(Protocol):
    """Receives the debug tensors of a run; TensorRT's `IDebugListener`."""

    def process_debug_tensor(self, name: str, array: Array, dtype: DataType, shape: Shape) -> bool | None:
        """Process a tensor that was just computed.

        Args:
            name: name of the tensor.
            array: its contents, a copy that the listener may keep.
            dtype: its type.
            shape: its shape.

        Returns:
            False to fail the run; anything else, None included, to continue.
        """
        ...


DebugFunction = Callable[[str, Array, DataType, Shape], Any]
"""A function with the arguments and the result of `DebugListener.process_debug_tensor`."""


class DebugStates:
    """The debug states of the tensors of an engine, all off at first, and the listener.

    Attributes:
        listener: an object with `process_debug_tensor`, a function like it, or None.
        shows_unfused: whether the listener also receives every other tensor that the engine stores.
    """

    def __init__(self) -> None:
        self.listener: DebugListener | DebugFunction | None = None
        self.shows_unfused = False
        self._active: set[str] = set()

    def is_active(self) -> bool:
        """Return whether a run has to show tensors."""
        return self.listener is not None and (self.shows_unfused or bool(self._active))

    def get(self, plan: Plan, name: str) -> bool:
        """Return the state of a tensor.

        Raises:
            UnknownNameError: The tensor is not marked as a debug tensor.
        """
        self._check(plan, name)
        return name in self._active

    def set(self, plan: Plan, name: str, *, is_on: bool) -> None:
        """Set the state of a tensor.

        Raises:
            UnknownNameError: The tensor is not marked as a debug tensor.
        """
        self._check(plan, name)
        if is_on:
            self._active.add(name)
        else:
            self._active.discard(name)

    def set_unfused(self, plan: Plan, *, is_on: bool) -> None:
        """Set whether the listener also receives every other tensor that the engine stores.

        Raises:
            ExecutionError: The network was built without `mark_unfused_tensors_as_debug_tensors`.
        """
        if is_on and not plan.has_unfused_debug_tensors:
            raise ExecutionError(
                "The unfused tensors of the engine are not marked as debug tensors",
                where=f"engine {plan.network.name!r}",
                remedy="Call `Network.mark_unfused_tensors_as_debug_tensors` before the build",
            )
        self.shows_unfused = is_on

    def show(self, plan: Plan, name: str, array: Array) -> None:
        """Pass a tensor to the listener if its state is on.

        Raises:
            ExecutionError: The listener returned False.
        """
        tensor = plan.network.find_tensor(name)
        if tensor is None or self.listener is None:
            return
        is_computed = tensor.producer is not None and not tensor.is_constant
        if name not in self._active and not (self.shows_unfused and is_computed):
            return
        listener: Any = self.listener
        process: DebugFunction = getattr(listener, "process_debug_tensor", listener)
        result = process(name, np.array(array, order="C"), tensor.dtype, array.shape)
        if result is not None and not result:
            raise ExecutionError(
                "The debug listener stopped the run",
                where=f"engine {plan.network.name!r}, tensor {name!r}",
                found=f"process_debug_tensor returned {result!r}",
                remedy="Return True from the listener, or switch the tensor's debug state off",
            )

    @staticmethod
    def _check(plan: Plan, name: str) -> None:
        if name not in plan.debug_tensors:
            raise UnknownNameError("debug tensor", name, plan.debug_tensors, where=f"engine {plan.network.name!r}")
