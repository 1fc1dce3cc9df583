"""Deconvolution: each pixel times the whole kernel, then each output collects what falls on it."""

from __future__ import annotations

import math
from typing import cast

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.layers.deconvolution import Deconvolution
from dryfit.network.tensor import Shape, Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs, kernel
from dryfit_cpu.codes import FLOATS, FP32, PANEL_CHANNELS
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.kernels import epilogues
from dryfit_cpu.kernels.constants import constant_weights, has_constant_weights
from dryfit_cpu.kernels.copying import chunks_for
from dryfit_cpu.kernels.epilogues import Epilogue
from dryfit_cpu.kernels.matrix_products import Axis, Product, pack_panels
from dryfit_cpu.kernels.operands import Operand, Workspace, bound_array, fp32_bytes
from dryfit_cpu.kernels.window_products import needs_staging, stage_work
from dryfit_cpu.kernels.windows import Window, pair
from dryfit_cpu.steps import NativeStep, Work

_COLLECT = NativeFunction("deconvolution", "collect")


@attrs.frozen(eq=False)
class Products:
    """What falls on the outputs of a group of channels.

    Attributes:
        address: of the first product.
        pixel_bytes, tap_bytes: from one pixel of the input to the next, and from one place in the window to the next.
        weights: address of what the products have yet to be multiplied with; 0 where they are whole.
        weight_bytes: from one place in the window to the next.
    """

    address: int
    pixel_bytes: int
    tap_bytes: int
    weights: int = 0
    weight_bytes: int = 0


def collect_work(
    layer: Deconvolution, binding: Binding, source: Operand, output: Operand, products: Products, bias: Array
) -> Work:
    """Work that sums the products, and finishes the outputs."""
    N, C, H, W = output.shape
    paddings = [*[(0, 0)] * (2 - len(layer.kernel_size_nd)), *layer.paddings(layer.kernel_size_nd)]
    activation, alpha, beta = epilogues.required_epilogue(binding).outer
    window = pair(layer.kernel_size_nd)
    return _COLLECT.work(
        chunks_for(N * C * H * W * window[0] * window[1], binding.num_threads),
        products=products.address,
        pixel_bytes=products.pixel_bytes,
        tap_bytes=products.tap_bytes,
        weights=products.weights,
        weight_bytes=products.weight_bytes,
        source_rows=source.shape[2],
        source_columns=source.shape[3],
        bias=bias.ctypes.data,
        **output.output_fields(),
        window_rows=window[0],
        window_columns=window[1],
        row_step=pair(layer.stride_nd)[0],
        column_step=pair(layer.stride_nd)[1],
        row_dilation=pair(layer.dilation_nd)[0],
        column_dilation=pair(layer.dilation_nd)[1],
        row_hop=_hop(pair(layer.stride_nd)[0], pair(layer.dilation_nd)[0]),
        column_hop=_hop(pair(layer.stride_nd)[1], pair(layer.dilation_nd)[1]),
        top=paddings[0][0],
        left=paddings[1][0],
        activation=activation,
        alpha=alpha,
        beta=beta,
    )


def _hop(step: int, dilation: int) -> int:
    """How many places apart those of a window are that fall on the same output."""
    return step // math.gcd(step, dilation)


def _image(shape: Shape) -> tuple[int, int, int, int]:
    return (shape[0], shape[1], *pair(shape[2:]))


def pixels_of(shape: Shape) -> Window:
    """The input as a window of one pixel sees it, for staging."""
    image = _image(shape)
    return Window(image, image, (1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)), 1)


def _products_shape(layer: Deconvolution, shape: Shape) -> tuple[int, int]:
    N, _, H, W = _image(shape)
    window = pair(layer.kernel_size_nd)
    return (N * H * W, window[0] * window[1] * layer.num_output_maps)


def _pack(group: LayerGroup) -> dict[str, Array]:
    """Each group's panels of `[window row, window column, K]` columns, zeros to begin their sums with, and the bias."""
    layer = cast("Deconvolution", group.main)
    kernel, bias = constant_weights(layer)
    G, K = layer.num_groups, layer.num_output_maps
    depth = kernel.shape[0] // G
    by_output = kernel.reshape(G, depth, K // G, -1).swapaxes(1, 2).reshape(K, depth, -1)
    weights, offsets = epilogues.folded(group, by_output, bias)
    columns = weights.reshape(G, K // G, depth, -1).transpose(0, 3, 1, 2).reshape(-1, depth)
    packed = pack_panels(columns, np.zeros(len(columns), np.float32), G)
    padded = pack_panels(np.zeros((K, 1), np.float32), offsets, G)
    return {"panels": packed["panels"], "zeros": packed["bias"][:1], "bias": padded["bias"]}


def accepts(group: LayerGroup, specs: Specs) -> bool:
    """One or two spatial axes, weights that are known at build time, and an epilogue of the right form."""
    layer = group.main
    epilogue = epilogues.epilogue_of(group)
    return (
        isinstance(layer, Deconvolution)
        and len(layer.kernel_size_nd) <= 2
        and has_constant_weights(layer, specs)
        and epilogue is not None
        and epilogue.residual is None
    )


def fuses(group: LayerGroup, layer: Layer) -> bool:
    """Scales and activations, not a sum of branches."""
    return layer.kind != "elementwise" and epilogues.fuses(group, layer)


def _workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    del num_threads
    layer = cast("Deconvolution", group.main)
    x = specs[cast("Tensor", layer.inputs[0]).name]
    staged = fp32_bytes(pixels_of(x.shape).staged_shape) if x.dtype is not DataType.FLOAT else 0
    return staged + fp32_bytes(_products_shape(layer, x.shape))


@kernel(
    "cpu.deconvolution",
    kinds="deconvolution",
    data_types=FLOATS,
    accepts=accepts,
    fuses=fuses,
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
    pixels = pixels_of(source.shape)
    if needs_staging(pixels, source):
        staged = workspace.take(pixels.staged_shape)
        work.append(stage_work(pixels, source, staged, threads))
        address, strides = staged.ctypes.data, (staged.strides[0], staged.strides[1], staged.strides[2])
        keeps.append(staged)

    N, C, H, W = source.shape
    G, K, pitch = layer.num_groups, output.shape[1] // layer.num_groups, products.strides[0]
    columns = products.shape[1] // G
    count = -(-columns // PANEL_CHANNELS)
    panels = binding.weight("panels", (G, count, C // G, PANEL_CHANNELS))
    zeros = binding.weight("zeros", (1, count * PANEL_CHANNELS))
    bias = binding.weight("bias", (G, -(-K // PANEL_CHANNELS) * PANEL_CHANNELS))
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
        segment_length=C // G,
        weights=panels.ctypes.data,
        bias=zeros.ctypes.data,
        group_outputs=columns,
        group_offsets=[(g * panels.strides[0], 0, g * C // G * 4, g * columns * 4, 0) for g in range(G)],
        epilogue=Epilogue(),
    )
    main, tables = product.work(threads)
    collections = []
    for g in range(G):
        part = Operand.of(output.array[:, g * K : (g + 1) * K])
        given = Products(products[:, g * columns :].ctypes.data, pitch, 4 * K)
        collections.append(collect_work(layer, binding, source, part, given, bias[g]))
    return NativeStep(binding.group.name, [*work, main, *collections], [*keeps, *tables])
