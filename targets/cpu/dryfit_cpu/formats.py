"""Tensor formats of the CPU target: one, for every data type."""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.target.formats import LINEAR

FORMATS = dict.fromkeys(DataType, (LINEAR,))
