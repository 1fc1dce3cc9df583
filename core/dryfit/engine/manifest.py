"""The text of an engine file: what a plan is without the contents of its arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from dryfit.engine.container import ArrayEntry
from dryfit.engine.plan import BuildRecord
from dryfit.engine.refit_entry import RefitEntry, StandInEntry
from dryfit.network.data_types import DataType


@attrs.frozen
class OperationRecord:
    """A `dryfit.engine.plan.Operation` whose weights are names of arrays in the file."""

    name: str
    layers: Sequence[str]
    kernel: str
    device: str
    segment: int
    precision: DataType
    source_layers: Sequence[str]
    onnx_nodes: Sequence[str]
    weights: Mapping[str, str]


@attrs.frozen(kw_only=True)
class Manifest(BuildRecord):
    """The record of a plan, with names in the places of its network and operations, and what belongs to the file.

    Attributes:
        written_by: distribution and version that wrote the file; for people.
        arrays: every array, in the order of the file.
        network: what `dryfit.network.serialization` makes of the network.
        network_arrays: its names of arrays, to names of arrays in the file.
        operations: engine layers.
        refit: what weights are exchanged by; None where they cannot be.
        arrays_left_out: constants that kernels packed, and what a stripped engine waits for, by the names that they
            would have.
    """

    written_by: str
    arrays: Sequence[ArrayEntry]
    network: Mapping[str, Any]
    network_arrays: Mapping[str, str]
    operations: Sequence[OperationRecord]
    refit: RefitEntry | None
    arrays_left_out: Mapping[str, StandInEntry]
