"""Runs one layer group by a host kernel, in any layout, and compares it with the references of its layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import TensorSpec
from dryfit.quantization.rounding import RoundingMode
from dryfit.target.group import LayerGroup, is_repeatable
from dryfit.target.kernels import Binding, Kernel
from dryfit.target.memory import aligned_bytes, is_watched
from dryfit_cpu.kernels import KERNELS
from dryfit_cpu.schedule import create_schedule

Array = np.ndarray[Any, Any]

LAYOUTS = ("linear", "channels_last", "strided", "part")
"""How an array may lie: `strided` has gaps on every axis, `part` are some of the channels of larger pixels."""

_BEFORE, _BESIDE = 8, 20
"""Channels of those pixels before the array's, and all that are not the array's."""

_CANARY = 0xA5


@attrs.frozen(eq=False)
class Guarded:
    """An array inside a larger piece of memory, which must not change anywhere else."""

    memory: Array
    array: Array

    @classmethod
    def new(cls, shape: Sequence[int], dtype: Any, layout: str) -> Guarded:
        """Undefined contents, 64 bytes of canaries on both sides, and canaries in all gaps."""
        rank, size = len(shape), np.dtype(dtype).itemsize
        order = list(range(rank))
        if layout in ("channels_last", "part") and rank >= 3:
            order = [0, *range(2, rank), 1]
        spread = [2 * extent + 1 for extent in shape] if layout == "strided" else list(shape)
        if layout == "part" and rank >= 3:
            spread[1] += _BESIDE
        if layout == "strided":
            order = order[::-1]
        count = int(np.prod(spread)) * size
        if is_watched():
            memory, start = aligned_bytes(count), 0
        else:
            memory = np.full(count + 192, _CANARY, np.uint8)
            start = -memory.ctypes.data % 64 + 64
        whole = memory[start : start + count].view(dtype).reshape([spread[axis] for axis in order])
        whole = whole.transpose(np.argsort(order))
        if layout == "strided":
            whole = whole[(..., *(slice(1, None, 2) for _ in shape))]
        if layout == "part" and rank >= 3:
            whole = whole[:, _BEFORE : _BEFORE + shape[1]]
        return cls(memory, whole)

    def is_intact(self) -> bool:
        """Whether nothing but the array has been written."""
        mask = np.zeros_like(self.memory)
        start = self.array.ctypes.data - self.memory.ctypes.data
        if self.array.size:
            inside = np.ndarray(self.array.shape, self.array.dtype, mask.data, start, self.array.strides)
            inside.view(np.uint8 if self.array.itemsize == 1 else f"u{self.array.itemsize}")[...] = (
                -1 % 256**self.array.itemsize
            )
        return bool((self.memory[mask == 0] == _CANARY).all())


def specs_of(network: Network) -> dict[str, TensorSpec]:
    """Specs of all tensors that the layers touch."""
    tensors = [tensor for layer in network.layers for tensor in [*layer.inputs, *layer.outputs] if tensor is not None]
    return {tensor.name: tensor.spec for tensor in tensors}


def chosen_kernel(network: Network, layers: Sequence[Layer]) -> Kernel:
    """The kernel of the highest priority that accepts a group, the first by name of several."""
    group, specs = LayerGroup(layers), specs_of(network)
    dtype = specs[group.main.outputs[0].name].dtype
    fitting = [k for k in KERNELS if group.main.kind in k.kinds and dtype in k.data_types and k.accepts(group, specs)]
    return min(fitting, key=lambda kernel: (-kernel.priority, kernel.name))


def run_group(
    network: Network,
    layers: Sequence[Layer],
    feeds: Mapping[str, Array],
    *,
    kernel: Kernel | None = None,
    layout: str = "channels_last",
    threads: int = 1,
    rounding: RoundingMode = RoundingMode.HALF_TO_EVEN,
    is_checked_by_layer: bool = True,
) -> Array:
    """The group's output. The kernel has to have asked for the epilogue layers, and to leave all other memory alone.

    A group that holds a fork is not checked layer by layer: its kernel need not take the beginning of the fork.
    """
    kernel = kernel or chosen_kernel(network, layers)
    group, specs = LayerGroup(layers), specs_of(network)
    for end in range(layers.index(group.main) + 1 if is_checked_by_layer else len(layers) - 1, len(layers)):
        if kernel.name != "cpu.reference" and not is_repeatable(layers[end]):
            assert kernel.fuses(LayerGroup(layers[:end]), layers[end]), (
                f"{kernel.name} does not fuse {layers[end].kind}"
            )
    spec = specs[group.outputs[0].name]
    output = Guarded.new(spec.shape, spec.dtype.numpy, layout)
    room = kernel.workspace_bytes(group, specs, threads)
    workspace = Guarded.new((room,), np.uint8, "linear")
    weights = {name: _aligned_copy(value) for name, value in kernel.pack(group).items()}
    arrays = {**feeds, spec_name(group): output.array}
    before = {name: array.copy() for name, array in feeds.items()}
    step = kernel.bind(Binding(group, specs, arrays, weights, workspace.array, threads, rounding=rounding))
    create_schedule([step], threads).run()
    assert output.is_intact(), "memory beside the output has changed"
    assert workspace.is_intact(), "memory beside the workspace has changed"
    for name, array in feeds.items():
        np.testing.assert_array_equal(_wide(array), _wide(before[name]), err_msg="an input has changed")
    return output.array.copy()


def spec_name(group: LayerGroup) -> str:
    """The name of the group's output."""
    return group.outputs[0].name


def reference_kernel() -> Kernel:
    """The kernel that evaluates references, also of quantized groups, which engines do not give it."""
    return attrs.evolve(next(one for one in KERNELS if one.name == "cpu.reference"), absorbs_dequantize=True)


def random_feeds(
    network: Network, generator: np.random.Generator, layouts: Mapping[str, str] | str = "channels_last"
) -> dict[str, Array]:
    """Normally distributed inputs, in the given layouts."""
    feeds = {}
    for tensor in network.inputs:
        layout = layouts if isinstance(layouts, str) else layouts.get(tensor.name, "channels_last")
        array = Guarded.new(tensor.shape, tensor.dtype.numpy, layout).array
        array[...] = generator.standard_normal(tensor.shape)
        feeds[tensor.name] = array
    return feeds


def assert_like_reference(
    network: Network,
    layers: Sequence[Layer],
    feeds: Mapping[str, Array],
    *,
    kernel_name: str,
    kernel: Kernel | None = None,
    layout: str = "channels_last",
    tolerance: float = 2e-5,
    is_checked_by_layer: bool = True,
) -> None:
    """The kernel, else the chosen one, gives what the references give, the same bits for one and for three threads.

    FP32: within the tolerance, for sums of numbers of about 1 in another order. FP16, BF16: within one unit in the last
    place of the reference's FP32 result rounded once, besides that tolerance.
    """
    kernel = kernel or chosen_kernel(network, layers)
    assert kernel.name == kernel_name
    assert kernel.accepts(LayerGroup(layers), specs_of(network))
    checks = {"is_checked_by_layer": is_checked_by_layer}
    actual = run_group(network, layers, feeds, kernel=kernel, layout=layout, **checks)
    parallel = run_group(network, layers, feeds, kernel=kernel, layout=layout, threads=3, **checks)
    np.testing.assert_array_equal(_wide(actual), _wide(parallel), err_msg="the result depends on the number of threads")
    expected = run_group(network, layers, feeds, kernel=reference_kernel(), layout=layout)
    assert_close(actual, expected, tolerance)


def assert_close(actual: Array, expected: Array, tolerance: float) -> None:
    """Equal where not finite; else within the tolerance, relative above 1, and one unit of FP16 or BF16."""
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(_wide(actual[~finite]), _wide(expected[~finite]))
    wide, truth = actual[finite].astype(np.float64), expected[finite].astype(np.float64)
    allowed = tolerance * np.maximum(1, np.abs(truth))
    if actual.dtype == np.float16:
        allowed = allowed + np.spacing(np.abs(expected[finite])).astype(np.float64)
    elif actual.dtype == DataType.BF16.numpy:
        # BF16 is the upper half of FP32.
        allowed = allowed + np.spacing(np.abs(expected[finite]).astype(np.float32)).astype(np.float64) * 2**16
    difference = np.abs(wide - truth)
    assert (difference <= allowed).all(), (
        f"differs by {difference.max()}, {(difference / allowed).max():.1f} times too much"
    )


def _wide(array: Array) -> Array:
    """BF16 and narrower as FP32: numpy's comparisons do not know the NaN of a type that is not its own."""
    return array if array.dtype.isbuiltin == 1 else array.astype(np.float32)


def _aligned_copy(array: Array) -> Array:
    copy = Guarded.new(array.shape, array.dtype, "linear").array
    copy[...] = array
    return copy
