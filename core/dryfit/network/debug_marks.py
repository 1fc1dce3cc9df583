"""Debug tensors: tensors of a network whose contents a listener of the execution context receives in each run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryfit.errors import NetworkError

if TYPE_CHECKING:
    from dryfit.network.tensor import Tensor


class DebugMarks:
    """The tensors of a network that are marked as debug tensors.

    A marked tensor is materialized: it is not fused away, as if it were a network output. Unfused debug tensors do not
    change the engine: they are the tensors that it stores anyway.
    """

    def __init__(self) -> None:
        self._debug_tensors: dict[int, Tensor] = {}
        self._has_unfused_debug_tensors = False

    @property
    def debug_tensors(self) -> list[Tensor]:
        """Tensors marked with `mark_debug`, in the order in which they were marked."""
        return list(self._debug_tensors.values())

    @property
    def has_unfused_debug_tensors(self) -> bool:
        """Whether `mark_unfused_tensors_as_debug_tensors` was called."""
        return self._has_unfused_debug_tensors

    def mark_debug(self, tensor: Tensor) -> None:
        """Mark a tensor as a debug tensor; TensorRT's `mark_debug`. See `ExecutionContext.set_debug_listener`.

        Raises:
            NetworkError: The tensor belongs to another network.
        """
        owner: Any = self
        if tensor.network is not owner:
            raise NetworkError(
                "The tensor belongs to another network",
                where=f"tensor {tensor.name!r}",
                remedy="Pass a tensor of this network",
            )
        self._debug_tensors[id(tensor)] = tensor

    def unmark_debug(self, tensor: Tensor) -> None:
        """Undo `mark_debug`."""
        self._debug_tensors.pop(id(tensor), None)

    def is_debug_tensor(self, tensor: Tensor) -> bool:
        """Return whether a tensor is marked with `mark_debug`."""
        return id(tensor) in self._debug_tensors

    def mark_unfused_tensors_as_debug_tensors(self) -> None:
        """Let the debug listener also receive each tensor that the engine stores, without preventing any fusion."""
        self._has_unfused_debug_tensors = True

    def unmark_unfused_tensors_as_debug_tensors(self) -> None:
        """Undo `mark_unfused_tensors_as_debug_tensors`."""
        self._has_unfused_debug_tensors = False
