"""The second half of a deconvolution: each output collects what the inputs' windows lay on it."""

from __future__ import annotations

import math
from typing import cast

import attrs

from dryfit.network.layer import Layer
from dryfit.network.layers.deconvolution import Deconvolution
from dryfit.network.tensor import Shape
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding
from dryfit_cpu.compiler.native import NativeFunction
from dryfit_cpu.kernels import epilogues
from dryfit_cpu.kernels.copying import chunks_for
from dryfit_cpu.kernels.operands import Operand
from dryfit_cpu.kernels.windows import Window, images_of, pair
from dryfit_cpu.steps import Work

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


def pixels_of(shape: Shape) -> Window:
    """The input as a window of one pixel sees it, for staging."""
    images = images_of(shape)
    return Window(images, images, (1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)), 1)


def can_collect(group: LayerGroup) -> bool:
    """Whether what follows a deconvolution's sums can be done to each: no sum of branches; and its axes are two."""
    epilogue = epilogues.epilogue_of(group)
    is_flat = len(cast("Deconvolution", group.main).kernel_size_nd) <= 2
    return is_flat and epilogue is not None and epilogue.residual is None


def fuses(group: LayerGroup, layer: Layer) -> bool:
    """Scales and activations, not a sum of branches."""
    return layer.kind != "elementwise" and epilogues.fuses(group, layer)
