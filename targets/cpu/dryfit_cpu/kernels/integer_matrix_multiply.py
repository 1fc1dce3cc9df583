"""Matrix products of quantized values with constant weights: a convolution over rows that are pixels."""

from __future__ import annotations

import math
from typing import cast

from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.tensor import Shape, Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Array, Binding, HostLayout, Specs
from dryfit_cpu.compiler.native import NativeStep, Work
from dryfit_cpu.kernels.copying import copy_work
from dryfit_cpu.kernels.dense_operands import Images
from dryfit_cpu.kernels.integer_products import bind_integer_window, integer_workspace_bytes
from dryfit_cpu.kernels.integer_weights import (
    accepted_weights,
    integer_weights,
    pack_integer_panels,
    packed_runs,
)
from dryfit_cpu.kernels.operands import aligned_empty
from dryfit_cpu.kernels.requantization import (
    bound_requantization,
    integer_kernel,
    requantization_of,
)
from dryfit_cpu.kernels.windows import WindowGeometry


def _pack(group: LayerGroup) -> dict[str, Array]:
    weights = accepted_weights(group)
    runs = packed_runs(weights.kernel[:, None, :])
    return pack_integer_panels(group, runs)


def _accepts(group: LayerGroup, specs: Specs) -> bool:
    layer = group.main
    if not isinstance(layer, MatrixMultiply) or layer.op0 is not MatrixOperation.NONE:
        return False
    x, weights = (specs[cast("Tensor", tensor).name] for tensor in layer.inputs)
    return (
        layer.op1 is not MatrixOperation.VECTOR
        and x.rank >= 2
        and all(extent == 1 for extent in weights.shape[:-2])
        and 0 not in (*x.shape, *weights.shape)
        and integer_weights(group) is not None
        and requantization_of(group) is not None
    )


def _workspace_bytes(group: LayerGroup, specs: Specs, num_threads: int) -> int:
    del num_threads
    x, y = (specs[cast("Tensor", tensor).name].shape for tensor in (group.main.inputs[0], group.main.outputs[0]))
    rows = math.prod(x[:-1])
    return integer_workspace_bytes(window_of_rows((1, x[-1], 1, rows), (1, y[-1], 1, rows)))


@integer_kernel(
    "cpu.integer_matrix_multiply",
    kinds="matrix_multiply",
    accepts=_accepts,
    pack=_pack,
    packs_constants=True,
    workspace_bytes=_workspace_bytes,
    layout=HostLayout.LINEAR,
)
def multiply_integers(binding: Binding) -> NativeStep:
    """A step that multiplies rows by the weights."""
    source, steps = accepted_weights(binding.group).source, bound_requantization(binding)
    given, threads = Images.of(binding, source.tensor.name, steps.residual), binding.num_threads
    x, before = pixels_of_rows(given.source, threads, is_read=True)
    y, after = pixels_of_rows(given.output, threads, is_read=False)
    residual = None
    if given.residual is not None:
        residual, work = pixels_of_rows(given.residual, threads, is_read=True)
        before += work
    step = bind_integer_window(binding, window_of_rows(x.shape, y.shape), Images(x, y, residual), steps)
    return NativeStep(step.name, [*before, *step.work, *after], [given, *step.keeps])


def window_of_rows(x: Shape, y: Shape) -> WindowGeometry:
    """Pixels `[1, K, 1, rows]` under a window of one."""
    (N, C, H, W), (_, K, _, _) = x, y
    return WindowGeometry((N, C, H, W), (N, K, H, W), (1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)), 1)


def pixels_of_rows(array: Array, threads: int, *, is_read: bool) -> tuple[Array, list[Work]]:
    """Rows `[..., K]` as pixels `[1, K, 1, rows]`, and the work that copies them where they do not lie together."""
    rows, work = array, list[Work]()
    if not array.flags.c_contiguous:
        rows = aligned_empty(array.shape, array.dtype)
        work = copy_work(array, rows, threads) if is_read else copy_work(rows, array, threads)
    return rows.reshape(-1, rows.shape[-1]).T[None, :, None, :], work
