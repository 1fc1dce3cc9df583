"""Engine files: a plan saved as one file, and loaded without executing anything in it.

The text of a file, its manifest, is the plan without the contents of its arrays. Each array is written once, under a
name that is valid in a file. For the byte format see `container` and docs/reference/engine-file.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from dryfit.atomic_file import write_atomically
from dryfit.attrs_classes import frozen
from dryfit.engine.container import Array, ArrayEntry, chunks, describe, is_array_name, json_text
from dryfit.engine.container_reader import read_arrays, read_manifest
from dryfit.engine.file_source import EngineSource, file_bytes
from dryfit.engine.plan import BuildRecord, Operation, Plan
from dryfit.engine.plan_check import check_plan
from dryfit.engine.records import RecordError, fields_of, record_from_plain, record_to_plain
from dryfit.engine.refit_record import RefitEntry, StandInEntry, entry_of, record_of, stand_ins_of
from dryfit.errors import DryfitError, EngineFileError
from dryfit.network.data_types import DataType
from dryfit.network.packed_elements import is_stand_in
from dryfit.network.serialization import network_from_dict, network_to_dict
from dryfit.version import __version__


@frozen
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


@frozen(kw_only=True)
class Manifest(BuildRecord):
    """The record of a plan, with array names for its network and operations, and data about the file.

    Attributes:
        written_by: distribution and version that wrote the file; informational.
        arrays: all arrays, in file order.
        network: network as written by `dryfit.network.serialization`.
        network_arrays: array name in the file by array name in the network.
        operations: engine layers.
        refit: data for exchanging weights; None if refit is not supported.
        arrays_left_out: omitted arrays by the names they would have: constants that kernels packed, and weights that a
            refit of a stripped engine provides.
    """

    written_by: str
    arrays: Sequence[ArrayEntry]
    network: Mapping[str, Any]
    network_arrays: Mapping[str, str]
    operations: Sequence[OperationRecord]
    refit: RefitEntry | None
    arrays_left_out: Mapping[str, StandInEntry]


class FileArrays:
    """Collects arrays, and assigns the names by which the manifest refers to them.

    Attributes:
        entries: manifest entry of each array, in file order.
        contents: arrays as stored in the file.
        stand_ins: omitted arrays, by the names they would have.
    """

    def __init__(self) -> None:
        self.entries: list[ArrayEntry] = []
        self.contents: list[Array] = []
        self.stand_ins: dict[str, StandInEntry] = {}
        self._shared: dict[tuple[str, tuple[int, ...], str], str] = {}
        self._packed: dict[int, str] = {}

    def add_all(self, folder: str, arrays: Mapping[str, Array]) -> dict[str, str]:
        """Add the arrays of a network under a folder, and return array name in the file by array name in the network.

        Arrays are numbered if one of their names is not valid in a file.
        """
        readable = all(is_array_name(f"{folder}/{name}") for name in arrays)
        return {
            name: self.add(f"{folder}/{name if readable else index}", array)
            for index, (name, array) in enumerate(arrays.items())
        }

    def add(self, name: str, array: Array) -> str:
        """Add an array, and return its name in the file.

        Raises:
            EngineFileError: A file cannot contain this name.
            UnknownNameError: Networks do not support the array's type.
        """
        if is_stand_in(array):
            self.stand_ins[name] = StandInEntry(DataType.from_numpy(array.dtype), array.shape)
            return name
        entry, plain = describe(name, array)
        # Each array that is there stands for one more at most, so that two never become one.
        known = self._shared.pop((entry.dtype, entry.shape, entry.sha256), None)
        if known is None:
            self.entries.append(entry)
            self.contents.append(plain)
        return known or name

    def add_packed(self, name: str, array: Array) -> str:
        """Add an array that several operations may have, which is stored once."""
        known = self._packed.get(id(array))
        if known is None:
            known = self._packed[id(array)] = self.add(name, array)
        return known

    def share(self) -> None:
        """Use an array that was already added for later arrays with the same contents."""
        self._shared = {(entry.dtype, entry.shape, entry.sha256): entry.name for entry in reversed(self.entries)}


_AS_IN_THE_OPERATION = [field.name for field in attrs.fields(Operation) if field.name != "weights"]


def save(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write a plan as an engine file. The same plan gives the same bytes.

    The file is written under a temporary name and renamed: on failure, nothing is left behind, and an existing file is
    not changed.

    Raises:
        EngineFileError: The file cannot be written, or the plan contains something that a file cannot represent.
    """
    try:
        write_atomically(path, _chunks(plan))
    except OSError as error:
        raise EngineFileError(
            "The engine file cannot be written",
            where=f"file {os.fspath(path)!r}",
            found=error.strerror,
            remedy="Choose an existing, writable folder with enough free space",
        ) from error


def serialize(plan: Plan) -> bytes:
    """Return the bytes of a plan's engine file.

    Raises:
        EngineFileError: The plan contains something that a file cannot represent.
    """
    return b"".join(_chunks(plan))


def load(source: EngineSource) -> Plan:
    """Load the plan of an engine file, from a path or from bytes.

    Every length, offset, type, shape and digest is checked before use, nothing is executed, and no kernel or plugin is
    loaded. A file is memory-mapped: its arrays stay in the file, and are read again if memory is short. It must not be
    modified in place while the plan is in use; saving over it is safe. Bytes are copied once, to aligned memory.

    Raises:
        EngineFileError: The file does not exist; it is corrupt, truncated, foreign, or belongs to another version; or
            its manifest does not describe a plan that matches its arrays.
    """
    return _plan(*file_bytes(source))


def _chunks(plan: Plan) -> Iterator[bytes | memoryview]:
    network, network_arrays = network_to_dict(plan.network)
    arrays = FileArrays()
    names = arrays.add_all("network", network_arrays)
    operations = [
        OperationRecord(
            weights={
                key: arrays.add_packed(f"operations/{index}/{key}", array)
                for key, array in sorted(operation.weights.items())
            },
            **{name: getattr(operation, name) for name in _AS_IN_THE_OPERATION},
        )
        for index, operation in enumerate(plan.operations)
    ]
    arrays.share()
    refit = None if plan.refit is None else entry_of(plan.refit, arrays.add_all)
    manifest = Manifest(
        written_by=f"dryfit {__version__}",
        arrays=arrays.entries,
        network=network,
        network_arrays=names,
        operations=operations,
        refit=refit,
        arrays_left_out=arrays.stand_ins,
        **fields_of(BuildRecord, plan),
    )
    try:
        text = json_text(record_to_plain(manifest))
    except (TypeError, ValueError) as error:
        raise EngineFileError(
            "The plan must consist of plain data",
            found=str(error),
            remedy="Report this to the maintainers of the kernel or target whose data it is",
        ) from error
    return chunks(text, arrays.entries, arrays.contents)


def _plan(data: memoryview, where: str) -> Plan:
    text, fields = read_manifest(data, where)
    try:
        manifest = record_from_plain(Manifest, fields, "manifest")
        arrays = read_arrays(data, text, manifest.arrays, where)
        arrays |= stand_ins_of(manifest.arrays_left_out, where)
        network = network_from_dict(
            dict(manifest.network), {name: arrays[array] for name, array in manifest.network_arrays.items()}
        )
        plan = Plan(
            network=network,
            operations=[_operation(record, arrays) for record in manifest.operations],
            refit=None if manifest.refit is None else record_of(manifest.refit, arrays),
            **fields_of(BuildRecord, manifest),
        )
        network.refresh_shapes()
        check_plan(plan)
    except EngineFileError:
        raise
    except (DryfitError, RecordError, KeyError) as error:
        raise EngineFileError(
            "The engine file's manifest is not supported by this version of dryfit",
            where=where,
            found=f"no array {error}" if isinstance(error, KeyError) else str(error)[:1000],
            remedy="Build the engine again with this version of dryfit",
        ) from error
    return plan


def _operation(record: OperationRecord, arrays: Mapping[str, Array]) -> Operation:
    return Operation(
        weights={key: arrays[name] for key, name in record.weights.items()},
        **{name: getattr(record, name) for name in _AS_IN_THE_OPERATION},
    )
