"""What stands outside a tensor's bounds, shared by slice and grid sample."""

from __future__ import annotations

import enum


class SampleMode(enum.Enum):
    """How an index outside the input is answered; TensorRT's `SampleMode`."""

    STRICT_BOUNDS = "strict_bounds"
    WRAP = "wrap"
    CLAMP = "clamp"
    FILL = "fill"
    REFLECT = "reflect"
