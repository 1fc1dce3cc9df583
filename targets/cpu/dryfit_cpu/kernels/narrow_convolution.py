"""Convolution with weights that stay FP8, INT4, FP4 or INT8 in memory: of real images, or of FP8 ones."""

from __future__ import annotations

from typing import cast

from dryfit.network.layers.convolution import Convolution
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Binding, HostLayout, Specs, kernel
from dryfit_cpu.codes import FP32
from dryfit_cpu.kernels.dense_operands import DenseOperands
from dryfit_cpu.kernels.epilogues import require_one_shape
from dryfit_cpu.kernels.narrow_groups import (
    NARROW_TYPES,
    NarrowGroup,
    accepts_narrow,
    fuses_narrow,
    narrow_group,
    pack_narrow,
)
from dryfit_cpu.kernels.narrow_products import (
    IMAGE_RANK,
    NarrowProduct,
    ending_work,
    product_bytes,
    real_input,
    real_output,
)
from dryfit_cpu.kernels.operands import Workspace, fp32_bytes, require_extents
from dryfit_cpu.kernels.window_products import WindowInput, pixel_axes
from dryfit_cpu.kernels.windows import Window
from dryfit_cpu.steps import NativeStep


def _window(group: LayerGroup, specs: Specs) -> Window:
    layer = cast("Convolution", group.main)
    return Window.of(layer, specs[cast("Tensor", layer.inputs[0]).name], specs[layer.outputs[0].name])


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    """Two spatial axes, and one group."""
    layer = group.main
    is_image = isinstance(layer, Convolution) and layer.num_groups == 1
    rank = specs[cast("Tensor", layer.inputs[0]).name].rank
    return is_image and rank == IMAGE_RANK and accepts_narrow(group, specs)


def _workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    window = _window(group, specs)
    staged = 0 if window.is_padded else fp32_bytes(window.staged_shape)
    return product_bytes(group, specs, num_threads) + window.workspace_bytes + staged


@kernel(
    "cpu.narrow_convolution",
    kinds="convolution",
    data_types=NARROW_TYPES,
    accepts=_accepts,
    fuses=fuses_narrow,
    absorbs_dequantize=True,
    pack=pack_narrow,
    packed_parameters=("bias",),
    packs_constants=True,
    workspace_bytes=_workspace_bytes,
    layout=HostLayout.CHANNELS_LAST,
)
def convolve_by_narrow_weights(binding: Binding) -> NativeStep:
    """A step that dequantizes the image, convolves, and quantizes the result, as far as the group does."""
    found, window = cast("NarrowGroup", narrow_group(binding.group)), _window(binding.group, binding.specs)
    require_one_shape(binding)
    workspace = Workspace(binding)
    x, work, keeps = real_input(binding, found, workspace)
    made = real_output(binding, found, workspace)
    read = WindowInput.of(window, x, workspace, binding.num_threads)
    dense = DenseOperands.of(binding, found.epilogue, made)
    target, residual = dense.output, dense.residual
    channels, places = window.input[1], window.kernel[0] * window.kernel[1]
    require_extents(target.shape, window.output, "output of a window")
    require_extents(found.weights.shape, (window.output[1], places, channels), "weights of a window")
    product = NarrowProduct(
        axes=pixel_axes(window, read.strides, target, residual),
        input=read.address,
        output=target.address,
        residual=residual.address if residual is not None else 0,
        output_kind=target.kind,
        residual_kind=residual.kind if residual is not None else FP32,
        # Weights lie place by place of the window; a segment may be several places that lie together.
        runs=[start + 4 * k for start in read.segments for k in range(0, read.length, channels)],
    )
    main, tables = product.work(binding, found, workspace)
    ending, kept = ending_work(binding, found, made)
    steps = [*work, *read.work, *dense.before, main, *dense.after, *ending]
    return NativeStep(binding.group.name, steps, [binding, *keeps, made, *read.keeps, dense, *tables, *kept])
