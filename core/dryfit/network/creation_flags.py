"""The creation flags of a network, as in TensorRT."""

from __future__ import annotations

import enum

from dryfit.errors import NetworkError


class NetworkDefinitionCreationFlag(enum.IntEnum):
    """Creation flags of a network; TensorRT 10's names and numbers. A mask has the bit `1 << flag`.

    Only STRONGLY_TYPED has an effect: the batch is always explicit, and layer plugins are always Python.
    """

    EXPLICIT_BATCH = 0
    STRONGLY_TYPED = 1
    PREFER_JIT_PYTHON_PLUGINS = 2
    PREFER_AOT_PYTHON_PLUGINS = 3


class CreationFlags:
    """The part of a network that holds its creation flags, which are immutable.

    Args:
        flags: bit mask, `1 << flag` each.

    Raises:
        NetworkError: A bit is not a flag.
    """

    def __init__(self, flags: int = 0) -> None:
        known = sum(1 << flag for flag in NetworkDefinitionCreationFlag)
        if type(flags) is not int or flags & ~known:
            meant = flags.name if isinstance(flags, NetworkDefinitionCreationFlag) else None
            raise NetworkError(
                "Not a mask of creation flags",
                found=bin(flags) if type(flags) is int else repr(flags),
                allowed=", ".join(f"1 << NetworkDefinitionCreationFlag.{flag.name}" for flag in _FLAGS),
                remedy=f"Write 1 << NetworkDefinitionCreationFlag.{meant}" if meant else None,
            )
        self._flags = flags

    @property
    def flags(self) -> int:
        """The creation flags as a bit mask, `1 << flag` each."""
        return self._flags

    def get_flag(self, flag: NetworkDefinitionCreationFlag) -> bool:
        """Return whether the network was created with a flag."""
        return bool(self._flags >> NetworkDefinitionCreationFlag(flag) & 1)

    @property
    def is_strongly_typed(self) -> bool:
        """Whether the network alone defines all types: the builder computes every layer in its network types."""
        return self._flags & _STRONGLY_TYPED != 0


_FLAGS = tuple(NetworkDefinitionCreationFlag)
_STRONGLY_TYPED = 1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED
"""The bit itself: it is asked for several times for each layer."""
