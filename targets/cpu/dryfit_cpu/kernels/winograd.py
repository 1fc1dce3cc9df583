"""Convolution with a 3 x 3 window of stride 1 by Winograd's minimal filtering: rivals of the direct convolution.

An output tile of 2 x 2 takes 16 products where the direct convolution takes 36, one of 4 x 4 takes 36 for 144. What is
saved goes in part into the transforms, so shapes and machine decide: the builder measures. They add up in another
order, on transformed values: docs/decisions/winograd.md says how results differ, and how to forbid it.

Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015: F(2x2, 3x3) and F(4x4, 3x3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import Convolution
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Kernel, Specs, kernel
from dryfit_cpu.codes import FP32, PANEL_CHANNELS
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.kernels import epilogues
from dryfit_cpu.kernels.branches import summed_weights
from dryfit_cpu.kernels.constants import has_constant_weights
from dryfit_cpu.kernels.convolution import window_of
from dryfit_cpu.kernels.dense_operands import DenseOperands
from dryfit_cpu.kernels.matrix_products import Axis, MatrixProduct, pack_panels
from dryfit_cpu.kernels.operands import (
    ImageOperand,
    Workspace,
    aligned_empty,
    bound_array,
    image_of,
    input_of,
    pixels_at,
    require_extents,
)
from dryfit_cpu.kernels.window_products import stage_work
from dryfit_cpu.kernels.windows import WindowGeometry
from dryfit_cpu.kernels.winograd_tiling import Tiling
from dryfit_cpu.native.winograd_matrices import KERNEL_TRANSFORMS
from dryfit_cpu.tactics import PANELS

CHANNEL_MULTIPLE = 16
"""Channels come in whole vectors of every tier."""
_LEAST_EXTENT = {2: 8, 4: 10}
"""Narrower images are left to the direct convolution: with so few tiles the transformed windows are most of what is
read, and in a network they come from memory, though they came from the cache when they were measured alone."""
_NO_PADDING = ((0, 0), (0, 0))


def _convolve(size: int, functions: tuple[NativeFunction, NativeFunction], binding: Binding) -> NativeStep:
    """A step that convolves strip by strip: transform, multiply, transform back."""
    threads, workspace = binding.num_threads, Workspace(binding)
    window = window_of(binding.group, binding.specs)
    C, K = window.input[1], window.output[1]
    require_tiles(window, CHANNEL_MULTIPLE)
    tiling = Tiling(size, window, C, threads)
    source = ImageOperand.of(bound_array(binding, input_of(binding.group).name))
    work: list[Work] = []
    keeps: list[object] = [binding]
    if not source.has_dense_channels:
        # Memory of the step's own: the kernel asks for dense channels, so this is rare.
        bare = attrs.evolve(window, padding=_NO_PADDING)
        staged = aligned_empty(bare.staged_shape, np.float32)
        work.append(stage_work(bare, source, staged, threads))
        source = ImageOperand.of(staged[..., :C].transpose(0, 3, 1, 2))
    transformed, products = map(workspace.take, tiling.plane_shapes)
    panels = binding.weight("positions", (tiling.positions, -(-K // PANEL_CHANNELS), C, PANEL_CHANNELS))
    # Each position is a matrix product of its own, with the register block of the direct convolution: 16 or 36 groups
    # of one product for each part of a strip, in one call.
    # The sums at each position begin at nothing: the bias is added behind the transform.
    zeros = aligned_empty((panels.shape[1] * PANEL_CHANNELS,), np.float32)
    zeros[...] = 0
    bias = binding.weight("bias", (K,))
    epilogue = epilogues.required_epilogue(binding)
    dense = DenseOperands.of(binding, epilogue)
    require_extents(dense.output.shape, window.output, "output of a window")
    work += dense.before
    output, residual = dense.output, dense.residual
    bypasses = epilogue.clamps is None or residual is not None or output.kind != FP32
    finish = epilogue.finish(bypasses=bypasses)
    added = image_of(residual, output.kind)
    results = {"bias": bias.ctypes.data, "output": output.image, "residual": added, "finish": finish}
    for strip in tiling.strips():
        work.append(tiling.input_work(functions[0], source, transformed, strip))
        product, tables = _multiply_positions(tiling, strip[1], transformed, (panels, zeros), products).work(threads)
        work.append(product)
        keeps += tables
        work.append(tiling.output_work(functions[1], products, strip, results))
    keeps += [source, transformed, products, panels, zeros, bias, dense]
    return NativeStep(binding.group.name, [*work, *dense.after], keeps)


def _multiply_positions(
    tiling: Tiling, tiles: int, transformed: Array, weights: tuple[Array, Array], products: Array
) -> MatrixProduct:
    """`[positions, tiles, C] x [positions, C, K]`: a position of a part is a group, its tiles are the pixels."""
    panels, zeros = weights
    return MatrixProduct(
        axes=[Axis(tiles, transformed.strides[2], products.strides[2])],
        input=transformed.ctypes.data,
        output=pixels_at(products),
        segment_length=panels.shape[2],
        weights=panels.ctypes.data,
        bias=zeros.ctypes.data,
        group_outputs=tiling.window.output[1],
        group_offsets=[
            (
                at * panels.strides[0],
                0,
                part * transformed.strides[0] + at * transformed.strides[1],
                part * products.strides[0] + at * products.strides[1],
                0,
            )
            for part in range(tiling.parts)
            for at in range(panels.shape[0])
        ],
        tactic=PANELS if tiling.parts > 1 else "",
    )


def suits(layer: Convolution, channels: int, multiple: int) -> bool:
    """Whether the window is the one that the matrices are for, and input and output channels come in such multiples."""
    return (
        tuple(layer.kernel_size_nd) == (3, 3)
        and set(layer.stride_nd) == set(layer.dilation_nd) == {1}
        and layer.num_groups == 1
        and channels % multiple == layer.num_output_maps % multiple == 0
    )


def require_tiles(window: WindowGeometry, multiple: int) -> None:
    """Refuse a geometry that does not suit.

    Raises:
        ExecutionError: native functions would go beyond arrays.
    """
    found = (*window.kernel, *window.stride, *window.dilation, window.groups)
    require_extents(found, (3, 3, 1, 1, 1, 1, 1), "window, stride, dilation and groups of tiles")
    channels = window.input[1] % multiple, window.output[1] % multiple
    require_extents(channels, (0, 0), f"channels of tiles beyond multiples of {multiple}")


def _accepts(group: LayerGroup, specs: Specs, size: int) -> bool:
    """A dense window that the matrices are for, on images of some tiles, whose weights are known at build time."""
    layer = group.main
    return (
        isinstance(layer, Convolution)
        and suits(layer, specs[input_of(group).name].shape[1], CHANNEL_MULTIPLE)
        and min(specs[layer.outputs[0].name].shape[2:]) >= _LEAST_EXTENT[size]
        and has_constant_weights(layer, specs)
        and epilogues.epilogue_of(group) is not None
    )


def _pack(group: LayerGroup, size: int) -> dict[str, Array]:
    """The window at each position, transformed in FP64 and rounded once, as panels; and the bias."""
    # In FP64: the windows are transformed once, and what is rounded here would be rounded for every pixel.
    transform = np.array(KERNEL_TRANSFORMS[size])
    weights, bias = epilogues.folded(group, *summed_weights(group))
    K, C = weights.shape[:2]
    # Two products of matrices: [positions along an axis, 3] x [3, all that is left].
    rows = np.tensordot(transform, weights.astype(np.float64), (1, 2))
    positions = np.tensordot(transform, rows, (1, 3)).swapaxes(0, 1).reshape(-1, K, C)
    packed = pack_panels(positions.astype(np.float32).reshape(-1, C), np.zeros(len(positions) * K), len(positions))
    return {"positions": packed["panels"], "bias": bias.astype(np.float32)}


def _unpack(group: LayerGroup, packed: Mapping[str, Array], size: int) -> dict[str, Array]:
    """The window from its transforms, of which there are more than it has values: least squares in FP64."""
    back = np.linalg.pinv(np.array(KERNEL_TRANSFORMS[size]))
    K = cast("Convolution", group.main).num_output_maps
    panels = packed["positions"]
    positions = panels.swapaxes(2, 3).reshape(size + 2, size + 2, -1, panels.shape[2])[:, :, :K].astype(np.float64)
    rows = np.tensordot(back, positions, (1, 0))
    kernel = np.tensordot(back, rows, (1, 1)).transpose(2, 3, 1, 0)
    return {"kernel": kernel, "bias": packed["bias"]}


def _kernel_in_tiles_of(size: int) -> Kernel:
    functions = (
        NativeFunction("winograd", f"transform_input_{size}"),
        NativeFunction("winograd", f"transform_output_{size}"),
    )

    def workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
        window = window_of(group, specs)
        return Tiling(size, window, window.input[1], num_threads).workspace_bytes

    def bind(binding: Binding) -> NativeStep:
        return _convolve(size, functions, binding)

    return kernel(
        f"cpu.winograd_{size}",
        kinds="convolution",
        data_types=DataType.FLOAT,
        accepts=lambda group, specs: _accepts(group, specs, size),
        fuses=epilogues.fuses,
        fuses_forks=True,
        pack=lambda group: _pack(group, size),
        packed_parameters=("kernel", "bias", "scale", "shift", "power"),
        unpack=lambda group, packed: _unpack(group, packed, size),
        workspace_bytes=workspace_bytes,
        layout=HostLayout.CHANNELS_LAST,
        spreads_nan=True,
        # Tiles of 2 x 2 have shorter sums than the direct convolution, and so smaller errors; larger tiles have not.
        unmeasured_priority=int(size == 2),
    )(bind)


convolve_in_tiles_of_2, convolve_in_tiles_of_4 = (_kernel_in_tiles_of(size) for size in KERNEL_TRANSFORMS)
