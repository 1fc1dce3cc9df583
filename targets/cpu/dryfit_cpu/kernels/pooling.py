"""Pooling over one or two spatial axes, and reductions over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.pooling import Pooling, PoolingType
from dryfit.network.layers.reduce import Reduce, ReduceOperation
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.kernels.copying import NO_ACTIVATION, chunks_for
from dryfit_cpu.kernels.epilogues import activation_code
from dryfit_cpu.kernels.operands import Operand, bound_array
from dryfit_cpu.steps import NativeStep, Work

_POOL = NativeFunction("pooling", "pool")
_SPATIAL_AXES = 0b1100


def _arrays(binding: Binding) -> tuple[Array, Array]:
    x = cast("Tensor", binding.group.main.inputs[0])
    return bound_array(binding, x.name), bound_array(binding, binding.group.outputs[0].name)


def _pair(values: Sequence[int]) -> tuple[int, int]:
    return (1, values[0]) if len(values) == 1 else (values[0], values[1])


def _work(
    binding: Binding,
    arrays: tuple[Array, Array],
    *,
    window: tuple[int, int],
    step: tuple[int, int],
    dilation: tuple[int, int],
    paddings: Sequence[tuple[int, int]],
    is_average: bool,
    counts_padding: bool,
) -> Work:
    source, output = Operand.of(arrays[0]), Operand.of(arrays[1])
    activation, alpha, beta = NO_ACTIVATION
    for layer in binding.group.epilogue:
        activation, alpha, beta = activation_code(layer) or NO_ACTIVATION
    (top, bottom), (left, right) = paddings
    return _POOL.work(
        chunks_for(arrays[1].size * window[0] * window[1], binding.num_threads),
        source=source.address,
        image_stride=source.strides[0],
        row_stride=source.strides[2],
        pixel_stride=source.strides[3],
        channel_stride=source.strides[1],
        kind=source.kind,
        source_rows=source.shape[2],
        source_columns=source.shape[3],
        **output.output_fields(),
        window_rows=window[0],
        window_columns=window[1],
        row_step=step[0],
        column_step=step[1],
        row_dilation=dilation[0],
        column_dilation=dilation[1],
        top=top,
        bottom=bottom,
        left=left,
        right=right,
        is_average=int(is_average),
        counts_padding=int(counts_padding),
        activation=activation,
        alpha=alpha,
        beta=beta,
    )


def _fuses(group: LayerGroup, layer: Layer) -> bool:
    return len(group.layers) == 1 and activation_code(layer) is not None


def _has_known_epilogue(group: LayerGroup) -> bool:
    return len(group.layers) <= 2 and all(activation_code(layer) is not None for layer in group.epilogue)


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    del specs
    layer = group.main
    return (
        isinstance(layer, Pooling)
        and len(layer.window_size_nd) <= 2
        and layer.pooling_type in (PoolingType.MAX, PoolingType.AVERAGE)
        and not layer.returns_indices
        and _has_known_epilogue(group)
    )


def _accepts_reduction(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    x = specs[cast("Tensor", layer.inputs[0]).name]
    return (
        isinstance(layer, Reduce)
        and x.rank == 4
        and layer.axes == _SPATIAL_AXES
        and layer.op in (ReduceOperation.AVG, ReduceOperation.MAX)
        and 0 not in x.shape
        and _has_known_epilogue(group)
    )


@kernel(
    "cpu.pooling",
    kinds="pooling",
    data_types=[DataType.FLOAT, DataType.HALF],
    accepts=_accepts,
    fuses=_fuses,
    layout=HostLayout.CHANNELS_LAST,
)
def pool(binding: Binding) -> NativeStep:
    """A step that pools."""
    layer = cast("Pooling", binding.group.main)
    x, y = _arrays(binding)
    paddings = [*[(0, 0)] * (4 - x.ndim), *layer.paddings(x.shape[2:])]
    work = _work(
        binding,
        (x, y),
        window=_pair(layer.window_size_nd),
        step=_pair(layer.stride_nd),
        dilation=_pair(layer.dilation_nd),
        paddings=paddings,
        is_average=layer.pooling_type is PoolingType.AVERAGE,
        counts_padding=not layer.average_count_excludes_padding,
    )
    return NativeStep(binding.group.name, [work], [binding])


@kernel(
    "cpu.global_pooling",
    kinds="reduce",
    data_types=[DataType.FLOAT, DataType.HALF],
    accepts=_accepts_reduction,
    fuses=_fuses,
    layout=HostLayout.CHANNELS_LAST,
)
def pool_images(binding: Binding) -> NativeStep:
    """A step that pools over the whole image."""
    layer = cast("Reduce", binding.group.main)
    x, y = _arrays(binding)
    work = _work(
        binding,
        (x, y if y.ndim == x.ndim else y[:, :, None, None]),
        window=(x.shape[2], x.shape[3]),
        step=(1, 1),
        dilation=(1, 1),
        paddings=[(0, 0), (0, 0)],
        is_average=layer.op is ReduceOperation.AVG,
        counts_padding=False,
    )
    return NativeStep(binding.group.name, [work], [binding])
