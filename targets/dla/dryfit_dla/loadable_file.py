"""The file format of a loadable: its manifest, and reading untrusted files.

The outer shape is that of an engine file (`dryfit.engine.container`): arrays and one text in the safetensors format,
each with a SHA-256. The arrays are weights in the device's layouts, `uint8[bytes]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from dryfit.attrs_classes import frozen
from dryfit.engine.container import Array, ArrayEntry, FileKind
from dryfit.engine.container_reader import read_arrays, read_manifest
from dryfit.engine.engine import Engine
from dryfit.engine.file_source import EngineSource, file_bytes
from dryfit.engine.records import RecordError, record_from_plain
from dryfit.errors import ConfigError, DryfitError, EngineFileError
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.serialization import network_from_dict
from dryfit.network.tensor import Tensor
from dryfit.plugins import registry
from dryfit.target.segments import HostRun, PlannedSegment
from dryfit_dla.loadable import Loadable, LoadableLayer, LoadableTensor, StoredWeights
from dryfit_dla.weight_layouts import LAYOUTS

LOADABLE = FileKind("loadable", "dryfit-dla-loadable", 1, "Export the loadable again")
"""What the header of the file says."""


@frozen
class LoadableManifest:
    """The text of the file.

    Attributes:
        written_by: distribution and version that wrote the file; for people.
        device: `DLA`.
        arrays: every array, in the order of the file: one for each of `weights`, by its place there.
        network: what `dryfit.network.serialization` makes of the segment.
        network_arrays: its names of arrays, to names of `weights`.
        precisions: layer name to computation type.
        host_run: how the host runs it.
        the others: as in `Loadable`.
    """

    written_by: str
    simulated: str
    device: str
    name: str
    platform: str
    software: tuple[int, ...]
    segment: int
    inputs: Sequence[LoadableTensor]
    outputs: Sequence[LoadableTensor]
    origins: Mapping[str, str]
    layers: Sequence[LoadableLayer]
    weights: Sequence[StoredWeights]
    pools: Mapping[str, int]
    pool_limits: Mapping[str, int | None]
    arrays: Sequence[ArrayEntry]
    network: Mapping[str, Any]
    network_arrays: Mapping[str, str]
    precisions: Mapping[str, DataType]
    host_run: HostRun


def array_name(index: int) -> str:
    """Name in the file of the array of the weights at a place of `LoadableManifest.weights`."""
    return f"weights/{index}"


def read_loadable(source: EngineSource) -> Loadable:
    """Read a loadable from a path or from a file's bytes.

    Args:
        source: path, or anything with the buffer protocol.

    Raises:
        EngineFileError: the file does not exist; it is damaged, truncated, of another format or version; or its
            content does not describe a loadable.
    """
    data, where = file_bytes(source, LOADABLE)
    text, fields = read_manifest(data, where, LOADABLE)
    try:
        manifest = record_from_plain(LoadableManifest, fields, "manifest")
        stored = _stored(manifest, read_arrays(data, text, manifest.arrays, where, LOADABLE), where)
        values = {one.name: _values(one, stored[one.name], where) for one in manifest.weights}
        network = network_from_dict(
            dict(manifest.network), {name: values[weights] for name, weights in manifest.network_arrays.items()}
        )
        return _loadable(manifest, network, stored, where)
    except EngineFileError:
        raise
    except (DryfitError, RecordError, KeyError, ValueError) as error:
        raise EngineFileError(
            "This version of dryfit cannot read the loadable's manifest",
            where=where,
            found=f"no weights {error}" if isinstance(error, KeyError) else str(error)[:1000],
            remedy=LOADABLE.again,
        ) from error


def loadable_engine(path: Path) -> Engine:
    """An engine of the loadable in a file; see `Loadable.create_engine`.

    Raises:
        EngineFileError: as `read_loadable` and `Loadable.create_engine` raise it.
    """
    return read_loadable(path).create_engine()


def _stored(manifest: LoadableManifest, arrays: Mapping[str, Array], where: str) -> dict[str, Array]:
    """Name of weights to their bytes."""
    if len({one.name for one in manifest.weights}) != len(manifest.weights) or len(arrays) != len(manifest.weights):
        raise EngineFileError(
            "The loadable's weights must match the arrays in its file",
            where=where,
            found=f"{len(arrays)} arrays",
            allowed=f"one for each of {len(manifest.weights)} names",
            remedy=LOADABLE.again,
        )
    return {one.name: arrays[array_name(index)] for index, one in enumerate(manifest.weights)}


def _values(weights: StoredWeights, memory: Array, where: str) -> Array:
    """Weights as the layer has them."""
    place = f"{where}: weights {weights.name[:200]!r}"
    layout = LAYOUTS.get(weights.layout)
    if layout is None:
        raise EngineFileError(
            "The layout of the weights is unknown",
            where=place,
            found=weights.layout[:100],
            allowed=", ".join(LAYOUTS),
            remedy=LOADABLE.again,
        )
    if weights.stored.bits % 8 or any(extent < 0 for extent in weights.shape):
        found = f"{weights.stored.name} {weights.shape}"
        raise EngineFileError(
            "Weights must have whole bytes and a valid shape", where=place, found=found, remedy=LOADABLE.again
        )
    expected = layout.size_bytes(weights.shape, weights.stored)
    if memory.dtype != "uint8" or memory.shape != (expected,) or weights.size_bytes != expected:
        raise EngineFileError(
            "The size of the weights does not match their shape",
            where=place,
            found=f"{memory.dtype} {memory.shape}, specified as {weights.size_bytes} bytes",
            allowed=f"{expected} bytes",
            remedy=LOADABLE.again,
        )
    return layout.unpack(memory, weights.shape, weights.stored).astype(weights.dtype.numpy)


def _loadable(manifest: LoadableManifest, network: Network, stored: Mapping[str, Array], where: str) -> Loadable:
    target = registry.target("DLA")
    if manifest.device != target.device:
        raise EngineFileError(
            "The loadable is for another device",
            where=where,
            found=manifest.device[:100],
            allowed=target.device,
            remedy=f"Export a loadable of a {target.device} segment",
        )
    platform = target.platform(manifest.platform)
    for stated, tensors in ((manifest.inputs, network.inputs), (manifest.outputs, network.outputs)):
        _check_border(stated, tensors, platform.family, where)
    planned = PlannedSegment(
        device=target.device,
        platform=platform,
        software=manifest.software,
        index=manifest.segment,
        network=network,
        input_formats={tensor.name: tensor.layout for tensor in manifest.inputs},
        output_formats={tensor.name: tensor.layout for tensor in manifest.outputs},
        precisions=manifest.precisions,
        pool_limits=manifest.pool_limits,
        pools=manifest.pools,
        host_run=manifest.host_run,
        origins=manifest.origins,
    )
    shared = {field.name for field in attrs.fields(Loadable)} & {field.name for field in attrs.fields(LoadableManifest)}
    return Loadable(
        **{name: getattr(manifest, name) for name in shared}, family=platform.family, planned=planned, arrays=stored
    )


def _check_border(stated: Sequence[LoadableTensor], tensors: Sequence[Tensor], family: str, where: str) -> None:
    """Refuse inputs or outputs that do not match the network or their format."""
    if [tensor.name for tensor in stated] != [tensor.name for tensor in tensors]:
        raise EngineFileError(
            "The loadable's inputs and outputs do not match its layers",
            where=where,
            found=[tensor.name for tensor in stated][:10],
            allowed=[tensor.name for tensor in tensors][:10],
            remedy=LOADABLE.again,
        )
    for one, tensor in zip(stated, tensors, strict=True):
        try:
            expected = LoadableTensor.of(one.name, tensor.dtype, tensor.shape, one.layout, family, one.scale)
        except ConfigError as error:
            raise EngineFileError(
                "An input or output of the loadable has an unsupported format",
                where=where,
                found=str(error),
                remedy=LOADABLE.again,
            ) from error
        if one != expected:
            raise EngineFileError(
                "The memory layout of an input or output does not match its format",
                where=f"{where}: tensor {one.name!r}",
                found=str(one)[:500],
                allowed=str(expected)[:500],
                remedy=LOADABLE.again,
            )
