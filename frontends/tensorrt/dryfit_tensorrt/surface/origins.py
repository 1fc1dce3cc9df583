"""Where the behaviour of a member of TensorRT's surface comes from."""

from __future__ import annotations

import enum


class Origin(enum.Enum):
    """Where the behaviour of a member comes from."""

    OWN = "works"
    FORWARDED = "works, as in dryfit"
    STORED = "accepted without effect"
    REFUSED = "not supported"
