"""Deconvolution: each pixel times the whole kernel, then each output collects what falls on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.deconvolution import Deconvolution
from dryfit.network.tensor import Shape, Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.codes import FP32, PANEL_CHANNELS
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.kernels import epilogues
from dryfit_cpu.kernels.constants import constant_weights, has_constant_weights
from dryfit_cpu.kernels.copying import chunks_for
from dryfit_cpu.kernels.epilogues import Epilogue
from dryfit_cpu.kernels.matrix_products import Axis, Product, pack_panels
from dryfit_cpu.kernels.operands import Operand, Workspace, bound_array, fp32_bytes
from dryfit_cpu.kernels.window_products import needs_staging, stage_work
from dryfit_cpu.kernels.windows import Window
from dryfit_cpu.steps import NativeStep, Work

_COLLECT = NativeFunction("deconvolution", "collect")


def _collect_work(layer: Deconvolution, binding: Binding, source: Operand, output: Operand, products: Array) -> Work:
    N, C, H, W = output.shape
    bias = binding.weight("bias", (1, -(-C // PANEL_CHANNELS) * PANEL_CHANNELS))
    paddings = [*[(0, 0)] * (2 - len(layer.kernel_size_nd)), *layer.paddings(layer.kernel_size_nd)]
    activation, alpha, beta = epilogues.required_epilogue(binding).outer
    window = _pair(layer.kernel_size_nd)
    return _COLLECT.work(
        chunks_for(N * C * H * W * window[0] * window[1], binding.num_threads),
        products=products.ctypes.data,
        source_rows=source.shape[2],
        source_columns=source.shape[3],
        bias=bias.ctypes.data,
        **output.output_fields(),
        window_rows=window[0],
        window_columns=window[1],
        row_step=_pair(layer.stride_nd)[0],
        column_step=_pair(layer.stride_nd)[1],
        row_dilation=_pair(layer.dilation_nd)[0],
        column_dilation=_pair(layer.dilation_nd)[1],
        top=paddings[0][0],
        left=paddings[1][0],
        activation=activation,
        alpha=alpha,
        beta=beta,
    )


def _pair(values: Sequence[int]) -> tuple[int, int]:
    return (1, values[0]) if len(values) == 1 else (values[0], values[1])


def _image(shape: Shape) -> tuple[int, int, int, int]:
    return (shape[0], shape[1], *_pair(shape[2:]))


def _pixels(shape: Shape) -> Window:
    """The input as a window of one pixel sees it, for staging."""
    image = _image(shape)
    return Window(image, image, (1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)), 1)


def _products_shape(layer: Deconvolution, shape: Shape) -> tuple[int, int]:
    N, _, H, W = _image(shape)
    window = _pair(layer.kernel_size_nd)
    return (N * H * W, window[0] * window[1] * layer.num_output_maps)


def _pack(group: LayerGroup) -> dict[str, Array]:
    """Panels of `[window row, window column, K]` columns, zeros to begin their sums with, and the bias."""
    layer = cast("Deconvolution", group.main)
    kernel, bias = constant_weights(layer)
    C, K = kernel.shape[:2]
    weights, offsets = epilogues.folded(group, kernel.swapaxes(0, 1), bias)
    columns = np.moveaxis(weights.reshape(K, C, -1), 0, -1)
    packed = pack_panels(columns.reshape(C, -1).T, np.zeros(columns[0].size, np.float32), 1)
    padded = pack_panels(np.zeros((K, 1), np.float32), offsets, 1)
    return {"panels": packed["panels"], "zeros": packed["bias"], "bias": padded["bias"]}


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    epilogue = epilogues.epilogue_of(group)
    return (
        isinstance(layer, Deconvolution)
        and len(layer.kernel_size_nd) <= 2
        and layer.num_groups == 1
        and has_constant_weights(layer, specs)
        and epilogue is not None
        and epilogue.residual is None
    )


def _fuses(group: LayerGroup, layer: Layer) -> bool:
    return layer.kind != "elementwise" and epilogues.fuses(group, layer)


def _workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    del num_threads
    layer = cast("Deconvolution", group.main)
    x = specs[cast("Tensor", layer.inputs[0]).name]
    staged = fp32_bytes(_pixels(x.shape).staged_shape) if x.dtype is DataType.HALF else 0
    return staged + fp32_bytes(_products_shape(layer, x.shape))


@kernel(
    "cpu.deconvolution",
    kinds="deconvolution",
    data_types=[DataType.FLOAT, DataType.HALF],
    accepts=_accepts,
    fuses=_fuses,
    pack=_pack,
    packed_parameters=("kernel", "bias", "scale", "shift", "power"),
    workspace_bytes=_workspace_bytes,
    layout=HostLayout.CHANNELS_LAST,
)
def deconvolve(binding: Binding) -> NativeStep:
    """A step of staging where it is needed, the product, and the collection."""
    layer, threads = cast("Deconvolution", binding.group.main), binding.num_threads
    workspace, work = Workspace(binding), list[Work]()
    source = Operand.of(bound_array(binding, cast("Tensor", layer.inputs[0]).name))
    output = Operand.of(bound_array(binding, binding.group.outputs[0].name))
    products = workspace.take(_products_shape(layer, source.shape))
    keeps: list[object] = [binding, source, output, products]
    strides, address = (source.strides[0], source.strides[2], source.strides[3]), source.address
    pixels = _pixels(source.shape)
    if needs_staging(pixels, source):
        staged = workspace.take(pixels.staged_shape)
        work.append(stage_work(pixels, source, staged, threads))
        address, strides = staged.ctypes.data, (staged.strides[0], staged.strides[1], staged.strides[2])
        keeps.append(staged)

    N, C, H, W = source.shape
    count = -(-products.shape[1] // PANEL_CHANNELS)
    panels = binding.weight("panels", (1, count, C, PANEL_CHANNELS))
    zeros = binding.weight("zeros", (1, count * PANEL_CHANNELS))
    pitch = products.strides[0]
    product = Product(
        axes=[
            Axis(N, strides[0], H * W * pitch),
            Axis(H, strides[1], W * pitch),
            Axis(W, strides[2], pitch),
        ],
        input=address,
        output=products.ctypes.data,
        residual=0,
        output_kind=FP32,
        residual_kind=FP32,
        segments=[0],
        segment_length=C,
        weights=panels.ctypes.data,
        bias=zeros.ctypes.data,
        group_outputs=products.shape[1],
        group_offsets=[(0, 0, 0, 0, 0)],
        epilogue=Epilogue(),
    )
    main, tables = product.work(threads)
    collect = _collect_work(layer, binding, source, output, products)
    return NativeStep(binding.group.name, [*work, main, collect], [*keeps, *tables])
