"""Matrix products of a tensor with constant weights, or of two tensors, over batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.tensor import Shape, Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.codes import FLOATS, PANEL_CHANNELS
from dryfit_cpu.compiler.native import NativeStep, Work
from dryfit_cpu.kernels import epilogues
from dryfit_cpu.kernels.copying import copy_work
from dryfit_cpu.kernels.matrix_products import Axis, MatrixProduct, pack_panels
from dryfit_cpu.kernels.operands import (
    Workspace,
    aligned_empty,
    bound_array,
    fp32_bytes,
    input_of,
    pixels_at,
    require_extents,
)
from dryfit_cpu.kernels.windows import pixel_pitch, share_sets

_MOST_BATCH_AXES = 2
"""Batch axes of the first operand beside its rows, where the second operand is the same for all."""


def _as_rows(array: Array, op: MatrixOperation) -> Array:
    """The first operand as `[*batch, M, K]`."""
    if op is MatrixOperation.VECTOR:
        return array[..., None, :]
    return array.swapaxes(-1, -2) if op is MatrixOperation.TRANSPOSE else array


def _as_columns(array: Array, op: MatrixOperation) -> Array:
    """The second operand as `[*batch, K, N]`."""
    if op is MatrixOperation.VECTOR:
        return array[..., :, None]
    return array.swapaxes(-1, -2) if op is MatrixOperation.TRANSPOSE else array


def _as_output(array: Array, layer: MatrixMultiply) -> Array:
    """The output as `[*batch, M, N]`."""
    if layer.op1 is MatrixOperation.VECTOR:
        array = array[..., None]
    return array[..., None, :] if layer.op0 is MatrixOperation.VECTOR else array


def _stride(array: Array, axis: int) -> int:
    """Bytes along an axis; an axis of one element lies as one would wish."""
    return array.itemsize if array.shape[axis] == 1 else array.strides[axis]


def _dense_shape(rows: Shape) -> Shape:
    """The shape of a copy of the first operand `[*batch, M, K]`, whose rows are apart in the cache."""
    return (*rows[:-1], pixel_pitch(rows[-1], 4))


def _share_sets(rows: Shape, distance: int, outputs: int) -> bool:
    """Whether rows so many bytes apart are better copied."""
    return share_sets(math.prod(rows[:-1]), distance, outputs)


def _panels_shape(columns: Shape) -> Shape:
    """The shape of packed panels for a second operand `[*batch, K, N]`."""
    *batch, K, N = columns
    return (*batch, -(-N // PANEL_CHANNELS), K, PANEL_CHANNELS)


def _packing(columns: Array, panels: Array, threads: int) -> list[Work]:
    """Work that writes `[*batch, K, N]` as panels.

    What a last panel lacks is left as it is: those sums are not stored.
    """
    *batch, K, N = columns.shape
    whole, rest = divmod(N, PANEL_CHANNELS)
    work = []
    if whole:
        split = columns[..., : whole * PANEL_CHANNELS].reshape((*batch, K, whole, PANEL_CHANNELS))
        work += copy_work(split.swapaxes(-2, -3), panels[..., :whole, :, :], threads)
    if rest:
        work += copy_work(columns[..., whole * PANEL_CHANNELS :], panels[..., whole, :, :rest], threads)
    return work


def _axes(extents: Sequence[int], rows: Array, output: Array, residual: Array | None) -> list[Axis]:
    """The rows of the output, batch axes first."""
    count = len(extents)
    added = residual.strides[-count - 1 : -1] if residual is not None else (0,) * count
    strides = zip(extents, rows.strides[-count - 1 : -1], output.strides[-count - 1 : -1], added, strict=True)
    return [Axis(*axis) for axis in strides]


def _offsets(
    batch: Shape, panels: Array, rows: Array, output: Array, residual: Array | None
) -> list[tuple[int, int, int, int, int]]:
    """Where each matrix of the batch begins, in weights, bias, input, output and residual."""
    arrays = [panels, None, rows, output, residual]
    offsets = []
    for index in np.ndindex(*batch):
        starts = [
            0 if array is None else sum(i * s for i, s in zip(index, array.strides[: len(batch)], strict=True))
            for array in arrays
        ]
        offsets.append((starts[0], starts[1], starts[2], starts[3], starts[4]))
    return offsets


def _constant_columns(group: LayerGroup) -> Array | None:
    """A view of the second operand `[K, N]`, where it is a constant without batch axes of its own."""
    value = cast("Tensor", group.main.inputs[1]).spec.value
    if value is None:
        return None
    columns = _as_columns(value, cast("MatrixMultiply", group.main).op1)
    is_single = all(extent == 1 for extent in columns.shape[:-2])
    return columns[(0,) * (columns.ndim - 2)] if is_single else None


def _pack(group: LayerGroup) -> dict[str, Array]:
    columns = _constant_columns(group)
    if columns is None:
        return {}
    return pack_panels(*epilogues.folded(group, columns.T.astype(np.float32), None), 1)


def _can_take(group: LayerGroup, epilogue: epilogues.Epilogue | None) -> bool:
    """Whether the epilogue suits a product whose columns may be computed, or one vector."""
    if epilogue is None or (len(group.layers) > 1 and cast("MatrixMultiply", group.main).op1 is MatrixOperation.VECTOR):
        return False
    return not epilogue.scales or _constant_columns(group) is not None


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    if not isinstance(layer, MatrixMultiply) or not _can_take(group, epilogues.epilogue_of(group)):
        return False
    return all(0 not in specs[tensor.name].shape for tensor in [*layer.inputs, *layer.outputs] if tensor is not None)


def _fuses(group: LayerGroup, layer: Layer) -> bool:
    longer = LayerGroup((*group.layers, layer))
    return _can_take(longer, epilogues.epilogue_of(longer))


def _workspace_bytes(group: LayerGroup, specs: Specs, _num_threads: int) -> int:
    layer = cast("MatrixMultiply", group.main)
    x, y = (specs[cast("Tensor", tensor).name] for tensor in layer.inputs)
    nothing = np.empty((), np.float32)
    rows = _as_rows(np.broadcast_to(nothing, x.shape), layer.op0)
    columns = _as_columns(np.broadcast_to(nothing, y.shape), layer.op1)
    is_moved = x.dtype is not DataType.FLOAT or layer.op0 is MatrixOperation.TRANSPOSE
    is_moved |= _share_sets(rows.shape, 4 * rows.shape[-1], columns.shape[-1])
    room = fp32_bytes(_dense_shape(rows.shape)) if is_moved else 0
    if _constant_columns(group) is None:
        room += fp32_bytes(_panels_shape(columns.shape))
    return room


@kernel(
    "cpu.matrix_multiply",
    kinds="matrix_multiply",
    data_types=FLOATS,
    accepts=_accepts,
    fuses=_fuses,
    fuses_forks=True,
    pack=_pack,
    packed_parameters=("scale", "shift", "power"),
    workspace_bytes=_workspace_bytes,
    layout=HostLayout.LINEAR,
)
def multiply(binding: Binding) -> NativeStep:
    """A step that brings operands that do not lie right into the workspace, multiplies, and copies if it has to."""
    layer, threads = cast("MatrixMultiply", binding.group.main), binding.num_threads
    workspace, work = Workspace(binding), list[Work]()
    rows = _as_rows(bound_array(binding, input_of(binding.group).name), layer.op0)
    given = bound_array(binding, binding.group.outputs[0].name)
    output = target = _as_output(given, layer)
    is_dense = rows.dtype == np.float32 and _stride(rows, -1) == rows.itemsize
    if not is_dense or _share_sets(rows.shape, rows.strides[-2], output.shape[-1]):
        dense = workspace.take(_dense_shape(rows.shape))[..., : rows.shape[-1]]
        work += copy_work(rows, dense, threads)
        rows = dense
    keeps: list[object] = [binding, rows]

    after: list[Work] = []
    if _stride(target, -1) != target.itemsize:
        target = aligned_empty(output.shape, np.float32)
        after = copy_work(target, output, threads)
    batch, (M, N) = target.shape[:-2], target.shape[-2:]
    require_extents(rows.shape[-2:-1], (M,), "rows of a matrix product")
    rows = np.broadcast_to(rows, (*batch, *rows.shape[-2:]))

    # Not "where panels are packed": without them what was folded into them would be left out.
    if _constant_columns(binding.group) is not None:
        panels = binding.weight("panels", _panels_shape((1, rows.shape[-1], N)))
        bias = binding.weight("bias", (1, panels.shape[1] * PANEL_CHANNELS))
    else:
        columns = _as_columns(bound_array(binding, cast("Tensor", layer.inputs[1]).name), layer.op1)
        require_extents(columns.shape[-2:], (rows.shape[-1], N), "columns of a matrix product")
        panels = workspace.take(_panels_shape(columns.shape))
        work += _packing(columns, panels, threads)
        bias = np.zeros((1, panels.shape[-3] * PANEL_CHANNELS), np.float32)
    keeps += [panels, bias, target]

    epilogue = epilogues.required_epilogue(binding)
    residual = None
    if epilogue.residual is not None:
        residual = np.broadcast_to(_as_output(bound_array(binding, epilogue.residual.name), layer), target.shape)
        if _stride(residual, -1) != residual.itemsize:
            dense = aligned_empty(target.shape, np.float32)
            work += copy_work(residual, dense, threads)
            residual = dense
        keeps.append(residual)

    batched = panels.ndim > 3 and panels.shape[:-3] != (1,) * (panels.ndim - 3)
    spread = np.broadcast_to(panels, (*batch, *panels.shape[-3:])) if batched else panels
    outer = [*batch, M] if not batched else [M]
    if not batched and len(batch) > _MOST_BATCH_AXES:
        batched, outer, spread = True, [M], np.broadcast_to(panels, (*batch, *panels.shape[-3:]))
    product = MatrixProduct(
        axes=_axes(outer, rows, target, residual),
        input=rows.ctypes.data,
        output=pixels_at(target),
        residual=pixels_at(residual),
        segment_length=rows.shape[-1],
        weights=panels.ctypes.data,
        bias=bias.ctypes.data,
        group_outputs=N,
        group_offsets=_offsets(batch, spread, rows, target, residual) if batched else [(0, 0, 0, 0, 0)],
        epilogue=epilogue,
    )
    # The same register block as convolution's: rows are its pixels, and columns of the second matrix its channels.
    main, tables = product.work(threads)
    return NativeStep(binding.group.name, [*work, main, *after], [*keeps, *tables])
