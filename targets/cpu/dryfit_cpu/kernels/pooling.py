"""Pooling over one to three spatial axes, and reductions over all of them.

INT8 images whose channels lie together have their own functions: maxima of bytes, and averages by sums of bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.window_layer import Pooling, PoolingType
from dryfit.network.tensor import TensorSpec
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Kernel, Specs, kernel
from dryfit_cpu import codes
from dryfit_cpu.codes import FLOATS, INT8
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.compiler.window_variants import AVERAGES, LEAST_CHANNELS, MAXIMA
from dryfit_cpu.descriptors import Function, SampleSteps, WindowAxis, WordTable
from dryfit_cpu.kernels.copying import NO_FUNCTION, chunks_for
from dryfit_cpu.kernels.dense_operands import Images
from dryfit_cpu.kernels.epilogues import activation_code
from dryfit_cpu.kernels.operands import ImageOperand, bound_array, input_of, require_extents
from dryfit_cpu.kernels.window_panels import Limits, block_table, outside_of, packed_panel

_MAX_POOL = NativeFunction("pooling", "max_pool")
_AVERAGE_POOL = NativeFunction("pooling", "average_pool")
_LOWEST = outside_of(-128)
_ZERO = outside_of(0)
_NO_LIMITS = Limits((0.0, 0.0), 1.0, (0.0, 0.0))
_MOST_WEIGHTS = 1024
"""Of a window whose weights are worth having, though all are 1."""


def has_whole_blocks(source: ImageOperand) -> bool:
    """Whether bytes of channels lie together and fill a block."""
    return source.kind == INT8 and source.has_dense_channels and source.shape[1] >= LEAST_CHANNELS


def can_sum_bytes(source: ImageOperand, rows: WindowAxis, columns: WindowAxis) -> bool:
    """Whether averages over a window are sums of bytes."""
    return has_whole_blocks(source) and rows.extent * columns.extent <= _MOST_WEIGHTS


def byte_maxima_work(
    chunks: int, source: ImageOperand, output: ImageOperand, rows: WindowAxis, columns: WindowAxis
) -> tuple[Work, object]:
    """Work that writes maxima as they are, to channels that lie together; and what it reads, which has to be kept."""
    blocks = block_table(MAXIMA, output.shape[1], rows, columns)
    work = _MAX_POOL.work(chunks, **_arguments(source, output, rows, columns, blocks, _LOWEST))
    return work, blocks


def byte_averages_work(
    chunks: int,
    source: ImageOperand,
    output: ImageOperand,
    rows: WindowAxis,
    columns: WindowAxis,
    steps: SampleSteps,
    *,
    counts_padding: bool,
) -> tuple[Work, object]:
    """Work that divides sums by counts and requantizes; and what it reads, which has to be kept."""
    panels = {
        width: packed_panel(
            np.ones((rows.extent, columns.extent, width), np.int8),
            np.zeros(width, np.int32),
            np.ones(width, np.float32),
            _NO_LIMITS,
        )
        for width in AVERAGES.widths
    }
    of_blocks = [panels[width] for _, width in AVERAGES.blocks(output.shape[1])]
    blocks = block_table(AVERAGES, output.shape[1], rows, columns, of_blocks)
    arguments = _arguments(source, output, rows, columns, blocks, _ZERO)
    work = _AVERAGE_POOL.work(chunks, **arguments, counts_padding=int(counts_padding), steps=steps)
    return work, (blocks, of_blocks)


def _arguments(
    source: ImageOperand, output: ImageOperand, rows: WindowAxis, columns: WindowAxis, blocks: Array, outside: Array
) -> dict[str, Any]:
    return {
        "source": source.image,
        "outside": outside.ctypes.data,
        "blocks": WordTable(blocks.ctypes.data, len(blocks)),
        "output": output.image,
        "window_rows": rows,
        "window_columns": columns,
    }


_POOL = NativeFunction("pooling", "pool")
_SPATIAL_AXES = 0b1100
_AS_THEY_ARE = SampleSteps()


@frozen
class PoolingEnd:
    """Where pooled values come from, and what happens to them.

    Attributes:
        source: name of the input. activation: of the results. steps: the multiplier of maxima and averages, before the
        activation, which is their limits; rounding mode and zero
            points of INT8.
    """

    source: str
    activation: Function = NO_FUNCTION
    steps: SampleSteps = _AS_THEY_ARE

    @property
    def keeps_bytes(self) -> bool:
        """Whether INT8 maxima are the results."""
        zero_point = self.steps.zero_point
        is_same_grid = self.steps.multiplier == 1.0 and self.steps.source_zero == zero_point
        return is_same_grid and self.activation == PoolingEnd.of_codes(self.source, zero_point).activation

    @classmethod
    def of_codes(cls, source: str, zero_point: float) -> PoolingEnd:
        """Of INT8 maxima that stay the codes that they are."""
        every_code = Function(codes.CLIP, -128.0 - zero_point, 127.0 - zero_point)
        return cls(source, every_code, SampleSteps(zero_point, zero_point=zero_point))

    @classmethod
    def of(cls, group: LayerGroup) -> PoolingEnd:
        """Of a group of real numbers."""
        activation = NO_FUNCTION
        if group.outputs[0].dtype is DataType.INT8:
            activation = Function(codes.CLIP, -128.0, 127.0)
        for layer in group.epilogue:
            activation = activation_code(layer) or NO_FUNCTION
        return cls(input_of(group).name, activation)


def bind_pooling(binding: Binding, ending: PoolingEnd) -> NativeStep:
    """A step that pools images, or one volume after the other."""
    layer, images = cast("Pooling", binding.group.main), Images.of(binding, ending.source)
    paddings = layer.paddings(images.source.shape[2:])
    given = zip(layer.window_size_nd, layer.stride_nd, layer.dilation_nd, *zip(*paddings, strict=True), strict=True)
    axes = [WindowAxis(*axis) for axis in given]
    # Of a volume the slices are images, over which the window goes on; a row is an image of one row.
    slices, rows, columns = [WindowAxis()] * (3 - len(axes)) + axes
    works = [
        _work(
            ending,
            (batch.source, batch.output),
            binding.num_threads,
            (slices, rows, columns),
            is_average=layer.pooling_type is PoolingType.AVERAGE,
            counts_padding=not layer.average_count_excludes_padding,
        )
        for batch in images.batches()
    ]
    return NativeStep(binding.group.name, [work for work, _ in works], [binding, images, works])


def bind_reduction(binding: Binding, ending: PoolingEnd) -> NativeStep:
    """A step that pools over the whole image."""
    layer = cast("Reduce", binding.group.main)
    x, y = bound_array(binding, ending.source), bound_array(binding, binding.group.outputs[0].name)
    work, keeps = _work(
        ending,
        (x, y if y.ndim == x.ndim else y[:, :, None, None]),
        binding.num_threads,
        (WindowAxis(), WindowAxis(x.shape[2]), WindowAxis(x.shape[3])),
        is_average=layer.op is ReduceOperation.AVG,
        counts_padding=False,
    )
    return NativeStep(binding.group.name, [work], [binding, keeps])


def _work(
    ending: PoolingEnd,
    arrays: tuple[Array, Array],
    threads: int,
    window: tuple[WindowAxis, WindowAxis, WindowAxis],
    *,
    is_average: bool,
    counts_padding: bool,
) -> tuple[Work, object]:
    """The work, and what it reads, which has to be kept."""
    source, output = ImageOperand.of(arrays[0]), ImageOperand.of(arrays[1])
    slices, rows, columns = window
    is_flat = slices == WindowAxis()
    first = 0 if is_flat else 1
    require_extents(output.shape[first:2], source.shape[first:2], "output of a pooling")
    code, low, high = ending.activation
    chunks = chunks_for(arrays[1].size * slices.extent * rows.extent * columns.extent, threads)
    if is_average and code == codes.CLIP and is_flat and can_sum_bytes(source, rows, columns):
        steps = ending.steps._replace(low=low, high=high)
        return byte_averages_work(chunks, source, output, rows, columns, steps, counts_padding=counts_padding)
    keeps_bytes = ending.keeps_bytes and is_flat
    # Maxima of one grid are codes, and stay codes: 64 channels an instruction instead of 16 numbers.
    if not is_average and keeps_bytes and has_whole_blocks(source) and has_whole_blocks(output):
        return byte_maxima_work(chunks, source, output, rows, columns)
    work = _POOL.work(
        chunks,
        source=source.image,
        output=output.image,
        window_images=slices,
        window_rows=rows,
        window_columns=columns,
        is_average=int(is_average),
        counts_padding=int(counts_padding),
        multiplier=ending.steps.multiplier,
        function=ending.activation,
        rounding=ending.steps.rounding,
        source_zero=ending.steps.source_zero,
        zero_point=ending.steps.zero_point,
    )
    return work, None


def _fuses(group: LayerGroup, layer: Layer) -> bool:
    return len(group.layers) == 1 and activation_code(layer) is not None


def _is_maximum(layer: Layer) -> bool:
    """Whether a layer gives values of its input, so that quantized ones keep their scale."""
    if isinstance(layer, Pooling):
        return layer.pooling_type is PoolingType.MAX
    return isinstance(layer, Reduce) and layer.op is ReduceOperation.MAX


def can_pool(layer: Layer, x: TensorSpec) -> bool:
    """Whether a layer pools as the native function does."""
    del x
    return (
        isinstance(layer, Pooling)
        and layer.pooling_type in (PoolingType.MAX, PoolingType.AVERAGE)
        and not layer.returns_indices
    )


def can_reduce(layer: Layer, x: TensorSpec) -> bool:
    """Whether a layer reduces the image to one value as the native function does."""
    return (
        isinstance(layer, Reduce)
        and x.rank == 4
        and layer.axes == _SPATIAL_AXES
        and layer.op in (ReduceOperation.AVG, ReduceOperation.MAX)
        and 0 not in x.shape
    )


def _pooling(
    name: str,
    kind: str,
    bind_to: Callable[[Binding, PoolingEnd], NativeStep],
    can_run: Callable[[Layer, TensorSpec], bool],
) -> Kernel:
    """The kernel of a kind of layer that pools."""

    def accepts(group: LayerGroup, specs: Specs) -> bool:
        x = specs[input_of(group).name]
        if x.dtype is DataType.INT8 and not (len(group.layers) == 1 and _is_maximum(group.main)):
            return False
        has_known_end = len(group.layers) <= 2 and all(activation_code(layer) is not None for layer in group.epilogue)
        return has_known_end and can_run(group.main, x)

    @kernel(
        name,
        kinds=kind,
        data_types=FLOATS | {DataType.INT8},
        accepts=accepts,
        fuses=_fuses,
        layout=HostLayout.CHANNELS_LAST,
    )
    def pool(binding: Binding) -> NativeStep:
        """A step that pools."""
        return bind_to(binding, PoolingEnd.of(binding.group))

    return pool


pool = _pooling("cpu.pooling", "pooling", bind_pooling, can_pool)
pool_images = _pooling("cpu.global_pooling", "reduce", bind_reduction, can_reduce)
