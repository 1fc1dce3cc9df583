"""What can go wrong in the runtime, by cuDLA's numbers, so that a program's handling of errors can be tried here.

Source: cuDLA API reference, Data types used by cuDLA driver: cudlaStatus. Which status a mistake gets is cuDLA's where
its documents say so, and our choice elsewhere.
"""

from __future__ import annotations

import enum
from typing import Any, Self

from dryfit.errors import DryfitError, ExecutionError


class Status(enum.IntEnum):
    """How a call or a submission ended: those of `cudlaStatus` that happen here, and CANCELLED, which is ours."""

    SUCCESS = 0
    INVALID_PARAM = 1
    OUT_OF_RESOURCES = 2
    INVALID_ADDRESS = 4
    INVALID_DEVICE = 8
    INCOMPATIBLE_DLA_SW_VERSION = 10
    MEMORY_REGISTERED = 11
    INVALID_MODULE = 12
    UNSUPPORTED_OPERATION = 13
    DLA_PROCESSOR_BUSY = 0x40000004
    UNKNOWN = 0x7FFFFFFF
    CANCELLED = -1


class DlaError(ExecutionError):
    """The runtime rejects a call, or a submission did not complete.

    Attributes:
        status: cuDLA's name and number of it.
    """

    def __init__(self, status: Status, message: str, **facts: Any) -> None:
        self.status = status
        super().__init__(message, **facts)

    @classmethod
    def chained(cls, status: Status, error: DryfitError) -> Self:
        """The same as another error, with a status."""
        facts = {name: getattr(error, name) for name in ("where", "found", "allowed", "source", "remedy")}
        return cls(status, error.message, **facts)
