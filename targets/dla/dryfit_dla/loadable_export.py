"""Writes loadables: what a segment of the DLA needs, as one file. The same segment gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from dryfit import __version__
from dryfit.engine.container import Array, chunks, describe, json_text
from dryfit.engine.records import record_to_plain
from dryfit.errors import BuildError
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.serialization import network_to_dict
from dryfit.network.tensor import Tensor
from dryfit.target.memory_pools import WeightsOfLayer
from dryfit.target.segments import PlannedSegment
from dryfit_dla.formats import INPUT_FORMATS, OUTPUT_FORMATS
from dryfit_dla.loadable import LoadableLayer, LoadableTensor, StoredWeights
from dryfit_dla.loadable_file import LOADABLE, LoadableManifest, array_name
from dryfit_dla.weight_layouts import WeightRole, layout_of, stored_shape, weight_role

_FORMAT_RANK = 4
"""Axes of a tensor in the DLA's own formats."""


def export_segment(segment: PlannedSegment) -> bytes:
    """The bytes of a segment's loadable.

    Raises:
        BuildError: a tensor at its border has no format or no shape that a DLA can have, or it is not known how the
            host runs it.
    """
    where = f"segment {segment.index} of {segment.device}"
    if segment.host_run is None:
        raise BuildError(
            "The segment does not record how the host runs it", where=where, remedy="Build the engine again"
        )
    _require_static(segment, where)
    network, arrays = network_to_dict(segment.network)
    weights, contents = _weights(segment, arrays)
    described = [describe(array_name(index), array) for index, array in enumerate(contents)]
    manifest = LoadableManifest(
        written_by=f"dryfit {__version__}",
        simulated=_simulated(),
        device=segment.device,
        name=segment.network.name,
        platform=segment.platform.name,
        software=segment.software,
        segment=segment.index,
        inputs=[_border(tensor, segment, is_input=True) for tensor in segment.network.inputs],
        outputs=[_border(tensor, segment, is_input=False) for tensor in segment.network.outputs],
        origins=segment.origins,
        layers=[_layer(layer, segment) for layer in segment.network.layers if layer.kind != "constant"],
        weights=weights,
        pools=segment.pools,
        pool_limits=segment.pool_limits,
        arrays=[entry for entry, _ in described],
        network=network,
        network_arrays={name: name for name in arrays},
        precisions=segment.precisions,
        host_run=segment.host_run,
    )
    text = json_text(record_to_plain(manifest))
    return b"".join(chunks(text, manifest.arrays, [plain for _, plain in described], LOADABLE))


def _simulated() -> str:
    from dryfit_dla import TARGET

    return TARGET.simulated


def _require_static(segment: PlannedSegment, where: str) -> None:
    dynamic = [
        tensor.name for tensor in (*segment.network.inputs, *segment.network.outputs) if not tensor.spec.is_static
    ]
    if dynamic:
        raise BuildError(
            "A loadable must have fixed shapes",
            where=where,
            found=", ".join(map(repr, dynamic)),
            allowed="static dimensions",
            remedy="Build with fixed shapes, or a profile with minimum = optimum = maximum",
            source="TensorRT 10 developer guide, Working with DLA: general restrictions",
        )


def _border(tensor: Tensor, segment: PlannedSegment, *, is_input: bool) -> LoadableTensor:
    formats = segment.input_formats if is_input else segment.output_formats
    known = (INPUT_FORMATS if is_input else OUTPUT_FORMATS).get(tensor.dtype, ())
    # Where the caller's device has a format of this name too, the cut may have taken that one.
    own = {one.name: one for one in known}.get(formats[tensor.name].name)
    if own is None:
        raise BuildError(
            "An input or output of a loadable must have a DLA type and format",
            where=f"segment {segment.index} of {segment.device}, tensor {tensor.name!r}",
            found=f"{tensor.dtype.text} {formats[tensor.name].name}",
            allowed=", ".join(one.name for one in known) or "FP16 or INT8",
            source="TensorRT 10 developer guide, Working with DLA: I/O Formats on DLA",
            remedy=None
            if tensor.spec.rank >= _FORMAT_RANK
            else f"DLA formats have four axes and the tensor has shape {tuple(tensor.shape)}: reshape it to rank 4 in "
            "the network, replace a matrix product by a 1x1 convolution (`dryfit explain --apply` does this), or "
            "place the layer on the GPU",
        )
    scale = None
    if tensor.dtype is DataType.INT8:
        scale = _scale_of(tensor, is_input=is_input)
    return LoadableTensor.of(tensor.name, tensor.dtype, tensor.shape, own, segment.platform.family, scale)


def _scale_of(tensor: Tensor, *, is_input: bool) -> float | None:
    """The scale of an INT8 tensor, as the layers that quantize or dequantize it have it; None where none does."""
    around = [layer for layer, _ in tensor.consumers] if is_input else [tensor.producer]
    for layer in around:
        if layer is not None and layer.kind in ("quantize", "dequantize"):
            scale = layer.inputs[1]
            if scale is not None and scale.spec.value is not None and scale.spec.value.size == 1:
                return float(scale.spec.value.reshape(-1)[0])
    return None


def _layer(layer: Layer, segment: PlannedSegment) -> LoadableLayer:
    precision = segment.precisions.get(layer.name, layer.outputs[0].dtype)
    return LoadableLayer(layer.name, layer.kind, precision, tuple(layer.onnx_nodes))


def _weights(segment: PlannedSegment, arrays: dict[str, Array]) -> tuple[list[StoredWeights], list[Array]]:
    """What is told of all weights, and their bytes, in the order of the network's arrays."""
    owners = {id(array): owner for array, owner in _owners(segment)}
    told, contents = [], []
    for name, array in arrays.items():
        owner = owners[id(array)]
        layout, stored = layout_of(owner)
        shape = stored_shape(owner)
        memory = layout.pack(np.ascontiguousarray(array, stored.numpy).reshape(shape))
        told.append(StoredWeights(name, owner.layer.name, layout.name, stored, owner.dtype, shape, memory.nbytes))
        contents.append(memory)
    return told, contents


def _owners(segment: PlannedSegment) -> Iterator[tuple[Array, WeightsOfLayer]]:
    """Each array of the network with whose weights they are. An array of two layers counts as the first one's."""
    found: set[int] = set()
    for layer in segment.network.layers:
        for field in layer.parameters():
            array = getattr(layer, field.name)
            if isinstance(array, np.ndarray) and id(array) not in found:
                found.add(id(array))
                yield array, _owner(layer, field.name, array, segment)


def _owner(layer: Layer, parameter: str, array: Array, segment: PlannedSegment) -> WeightsOfLayer:
    """A constant belongs to the layer that reads it, by way of what dequantizes it."""
    index, reader = -1, layer
    if layer.kind == "constant":
        parameter, (reader, index) = "", _reader(layer)
    dtype = DataType.from_numpy(array.dtype)
    precision = segment.precisions.get(reader.name, reader.outputs[0].dtype)
    owner = WeightsOfLayer(reader, parameter, index, tuple(array.shape), dtype, precision, segment.platform.family)
    if weight_role(owner) is WeightRole.KERNEL and precision is DataType.INT8 and dtype is not DataType.INT8:
        # It was not quantized; what the layer reads says what it multiplies in.
        source = reader.inputs[0]
        return attrs.evolve(owner, precision=dtype if source is None else source.dtype)
    return owner


def _reader(constant: Layer) -> tuple[Layer, int]:
    """The layer that reads a constant, and by which input; the constant itself where nobody does."""
    readers = constant.outputs[0].consumers
    if not readers:
        return constant, -1
    layer, index = readers[0]
    if layer.kind == "dequantize" and index == 0 and layer.outputs[0].consumers:
        return layer.outputs[0].consumers[0]
    return layer, index
