"""Binding a convolution: its input made ready, its tiles and panels, its output brought into place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.target.kernels import Array, Binding
from dryfit_cpu.codes import FP32, PANEL_CHANNELS
from dryfit_cpu.compiler.native import NativeFunction, NativeStep, Work
from dryfit_cpu.descriptors import Image, Runs
from dryfit_cpu.kernels.copying import chunks_for
from dryfit_cpu.kernels.dense_operands import DenseOperands, Images
from dryfit_cpu.kernels.epilogues import Epilogue, required_epilogue
from dryfit_cpu.kernels.matrix_products import Axis, MatrixProduct
from dryfit_cpu.kernels.operands import ImageOperand, Workspace, pixels_at, require_extents
from dryfit_cpu.kernels.windows import WindowGeometry

_STAGE = NativeFunction("staging", "stage")
_GATHER_WINDOWS = NativeFunction("staging", "gather_windows")


@frozen(eq=False)
class WindowInput:
    """An image as tiles read it.

    Attributes:
        address: of the first pixel.
        strides: bytes from one output image, row and pixel to the next.
        segments: byte offsets of the runs of FP32 values of a pixel's window.
        length: values in each.
        work: what brings the image there.
        keeps: arrays that have to be kept.
    """

    address: int
    strides: tuple[int, int, int]
    segments: Sequence[int]
    length: int
    work: list[Work]
    keeps: list[object]

    @classmethod
    def of(cls, window: WindowGeometry, x: Array, workspace: Workspace, threads: int) -> WindowInput:
        """Images with axes N, C, H, W or N, C, W.

        It is staged where it is padded, no FP32 or not channels last; windows are gathered where rows are too short.
        """
        source = ImageOperand.of(x)
        require_extents(source.shape, window.input, "input of a window")
        address, strides, work, keeps = staged(window, source, workspace, threads)
        segments, length = _segments(window, strides)
        steps = window.steps(strides)
        if window.windows_shape is None:
            return cls(address, steps, segments, length, work, keeps)
        windows = workspace.take(window.windows_shape)
        table = np.array(segments, np.int64)
        work.append(gather_work(window, address, steps, table, length, windows, threads))
        pixel = windows.strides[0]
        row = window.output[3] * pixel
        steps = (window.output[2] * row, row, pixel)
        return cls(windows.ctypes.data, steps, [0], windows.shape[1], work, [*keeps, windows, table])


def bind_window(binding: Binding, window: WindowGeometry, source: str) -> NativeStep:
    """A step that convolves images, or one volume after the other.

    The input is made ready; then comes the product; then a copy where the output is not channels last.
    """
    epilogue, threads = required_epilogue(binding), binding.num_threads
    residual = epilogue.residual.name if epilogue.residual is not None else ""
    made = []
    for images in Images.of(binding, source, residual).batches():
        dense = DenseOperands.between(images.output, images.residual, threads, np.float32)
        read = WindowInput.of(window, images.source, Workspace(binding), threads)
        product = bind_product(binding, window, read, dense.output, dense.residual, epilogue)
        made.append(dense.around([product]))
    return NativeStep.joined(binding.group.name, made)


def bind_product(
    binding: Binding,
    window: WindowGeometry,
    read: WindowInput,
    target: ImageOperand,
    residual: ImageOperand | None,
    epilogue: Epilogue,
    part: str = "",
) -> NativeStep:
    """A step that brings images where tiles read them, and multiplies.

    What is written and added has its channels together; `part` ends the name of the packed panels.
    """
    require_extents(target.shape, window.output, "output of a window")
    group_inputs, group_outputs = window.input[1] // window.groups, window.output[1] // window.groups
    count, depth = -(-group_outputs // PANEL_CHANNELS), len(read.segments) * read.length
    panels = binding.weight(f"panels{part}", (window.groups, count, depth, PANEL_CHANNELS))
    bias = binding.weight("bias", (window.groups, count * PANEL_CHANNELS))
    product = MatrixProduct(
        axes=pixel_axes(window, read.strides, target, residual),
        input=read.address,
        output=pixels_at(target),
        residual=pixels_at(residual),
        segments=read.segments,
        segment_length=read.length,
        weights=panels.ctypes.data,
        bias=bias.ctypes.data,
        group_outputs=group_outputs,
        group_offsets=[
            (
                group * panels.strides[0],
                group * bias.strides[0],
                group * group_inputs * 4,
                group * group_outputs * target.size,
                group * group_outputs * residual.size if residual is not None else 0,
            )
            for group in range(window.groups)
        ],
        epilogue=epilogue,
        tactic=binding.tactic,
    )
    main, tables = product.work(binding.num_threads)
    return NativeStep(binding.group.name, [*read.work, main], [binding, *read.keeps, *tables, target, residual])


def needs_staging(window: WindowGeometry, source: ImageOperand) -> bool:
    """Whether tiles cannot read the input where it lies."""
    # Copying costs one reading and one writing; what it saves is paid for each place of the window: questions at the
    # border, conversions of type, lines of a cache set that push each other out.
    is_dense = source.kind == FP32 and source.has_dense_channels
    return window.is_padded or not is_dense or window.has_conflicts(source.strides[0], source.strides[3])


def staged(
    window: WindowGeometry, source: ImageOperand, workspace: Workspace, threads: int, *, must_copy: bool = False
) -> tuple[int, tuple[int, int, int], list[Work], list[object]]:
    """An image where tiles can read it: as it lies, or a copy in the workspace.

    Returns:
        Its address, bytes from one image, row and pixel to the next, the work that copies it, what has to be kept.
    """
    n, _, h, w = source.strides
    if not must_copy and not needs_staging(window, source):
        return source.address, (n, h, w), [], [source]
    copy = workspace.take(window.staged_shape)
    n, h, w, _ = copy.strides
    return copy.ctypes.data, (n, h, w), [stage_work(window, source, copy, threads)], [source, copy]


def stage_work(window: WindowGeometry, source: ImageOperand, copy: Array, threads: int) -> Work:
    """Work that copies the input to FP32, channels last, with its padding."""
    return _STAGE.work(
        chunks_for(copy.size, threads),
        source=source.image,
        padding=window.around,
        destination=copy.ctypes.data,
        pitch=copy.strides[2],
        fill=0,
    )


def gather_work(
    window: WindowGeometry,
    address: int,
    strides: Sequence[int],
    segments: Array,
    length: int,
    windows: Array,
    threads: int,
) -> Work:
    """Work that writes the words that each output pixel sums over one after the other.

    Strides are bytes from one output image, row and pixel to the next in the input; segments INT64 byte offsets of runs
    of so many words of four bytes. Windows are FP32 `[pixels, words]`.
    """
    N, _, H, W = window.output
    return _GATHER_WINDOWS.work(
        chunks_for(windows.size, threads),
        input=Image(address, FP32, strides[0], strides[1], strides[2], 4, N, H, W, 0),
        segments=Runs(segments.ctypes.data, len(segments), length),
        destination=windows.ctypes.data,
    )


def _segments(window: WindowGeometry, strides: Sequence[int]) -> tuple[list[int], int]:
    """Byte offsets of the runs of values of a pixel's window, and the values in each."""
    channels = window.input[1] // window.groups
    # Where pixels lie together without gaps a row of the window is one run, `columns * channels` long; else each of its
    # places is. Weights are packed in the order of the longer runs, which is that of the shorter ones too.
    if strides[2] == 4 * channels and (window.dilation[1] == 1 or window.kernel[1] == 1):
        return window.segments(strides, 1), window.kernel[1] * channels
    return window.segments(strides, window.kernel[1]), channels


def pixel_axes(
    window: WindowGeometry, strides: Sequence[int], output: ImageOperand, residual: ImageOperand | None
) -> list[Axis]:
    """The output pixels: images, rows, columns."""
    N, _, H, W = window.output
    extents = (N, H, W)
    outputs = (output.strides[0], output.strides[2], output.strides[3])
    residuals = (residual.strides[0], residual.strides[2], residual.strides[3]) if residual is not None else (0, 0, 0)
    return [Axis(*axis) for axis in zip(extents, strides, outputs, residuals, strict=True)]
