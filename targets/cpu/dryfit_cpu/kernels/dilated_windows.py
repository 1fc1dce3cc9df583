"""Windows whose places lie so far apart that most of them fall into the padding.

A 3 x 3 window with a dilation of 12 over an image of 16 x 16 has two and a quarter of its nine places inside the image
on average, and with 16 and more only the one in the middle. Such windows end segmentation networks. So the outputs are
cut into rectangles that have the same places inside the image, and each is convolved with these places alone, without
padding:

    dilation 12, 16 rows     rows 0 to 3      middle and lower place
                             rows 4 to 11     middle place
                             rows 12 to 15    upper and middle place

What is left out are products with zeros. Rectangles need panels of their own, with the weights of their places, which
are copied when an engine is loaded; and of quantized images what sums begin at is for the weights that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.target.kernels import Array, Binding
from dryfit_cpu.codes import PANEL_CHANNELS
from dryfit_cpu.compiler.native import NativeStep, Work
from dryfit_cpu.kernels.dense_operands import DenseOperands, Images
from dryfit_cpu.kernels.epilogues import required_epilogue
from dryfit_cpu.kernels.integer_products import Repeated, bind_integer_window, integer_workspace_bytes
from dryfit_cpu.kernels.integer_weights import REPEATED, UNIT, accepted_weights
from dryfit_cpu.kernels.operands import ImageOperand, Workspace, aligned_empty, fp32_bytes
from dryfit_cpu.kernels.requantization import bound_requantization
from dryfit_cpu.kernels.window_products import WindowInput, bind_product, needs_staging, stage_work
from dryfit_cpu.kernels.windows import WindowGeometry

_WORTHWHILE = 0.5
"""The part of the products that may be left. Our choice: short rows and small tiles cost some of what is won."""


@attrs.frozen
class _Band:
    """Neighbouring outputs along one axis that have the same places of the window inside the image.

    Attributes:
        outputs: the outputs.
        places: of the window.
        inputs: of the image, that they read.
    """

    outputs: slice
    places: slice
    inputs: slice

    @property
    def size(self) -> tuple[int, int]:
        """Outputs and places."""
        return self.outputs.stop - self.outputs.start, self.places.stop - self.places.start


def _bands(extent: int, outputs: int, kernel: int, dilation: int, before: int) -> Sequence[_Band]:
    """The bands along an axis, for a stride of 1; of outputs that read nothing but padding there are none."""
    bands: list[_Band] = []
    first = 0
    inside = [[place for place in range(kernel) if 0 <= o - before + place * dilation < extent] for o in range(outputs)]
    for output in range(1, outputs + 1):
        if output < outputs and inside[output] == inside[first]:
            continue
        places = inside[first]
        if places:
            begin = first - before + places[0] * dilation
            end = output - 1 - before + places[-1] * dilation + 1
            bands.append(_Band(slice(first, output), slice(places[0], places[-1] + 1), slice(begin, end)))
        first = output
    return bands


@attrs.frozen
class Rectangle:
    """Outputs that have the same places inside the image.

    Attributes:
        rows, columns: which.
        window: over the part of the image that they read.
    """

    rows: _Band
    columns: _Band
    window: WindowGeometry

    def outputs(self, images: Array) -> Array:
        """Its part of images `[N, K, H, W]`."""
        return images[:, :, self.rows.outputs, self.columns.outputs]

    def inputs(self, images: Array) -> Array:
        """What it reads of images `[N, C, H, W]`."""
        return images[:, :, self.rows.inputs, self.columns.inputs]

    def panels(self, panels: Array, kernel: tuple[int, int]) -> Array:
        """The weights of its places, of panels `[groups, panels, k, ...]` of a kernel."""
        groups, count, depth, *rest = panels.shape
        by_place = panels.reshape(groups, count, *kernel, depth // (kernel[0] * kernel[1]), *rest)
        own = by_place[:, :, self.rows.places, self.columns.places]
        copy = aligned_empty(own.shape, panels.dtype.type)
        copy[...] = own
        return copy.reshape(groups, count, -1, *rest)


def rectangles(
    window: WindowGeometry, workspace_bytes: Callable[[WindowGeometry], int] | None = None
) -> Sequence[Rectangle]:
    """The rectangles that a window's outputs are cut into; none where the window is better convolved as a whole.

    By default workspace is that of FP32 windows; with a function, what it says.
    """
    if max(window.dilation) == 1 or window.stride != (1, 1) or not window.slices.is_one or 0 in window.output:
        return ()
    N, C, *image = window.input
    axes = [
        _bands(
            image[axis], window.output[2 + axis], window.kernel[axis], window.dilation[axis], window.padding[axis][0]
        )
        for axis in range(2)
    ]
    covers = all(sum(band.size[0] for band in bands) == window.output[2 + axis] for axis, bands in enumerate(axes))
    left = 1.0
    for axis, bands in enumerate(axes):
        left *= sum(band.size[0] * band.size[1] for band in bands) / (window.output[2 + axis] * window.kernel[axis])
    if not covers or left > _WORTHWHILE:
        return ()
    staged = fp32_bytes(_unpadded(window).staged_shape)
    needs = workspace_bytes or (lambda one: staged + one.workspace_bytes + fp32_bytes(one.staged_shape))
    room = workspace_bytes(window) if workspace_bytes else window.workspace_bytes
    found = []
    for rows in axes[0]:
        for columns in axes[1]:
            extents = tuple(band.inputs.stop - band.inputs.start for band in (rows, columns))
            one = attrs.evolve(
                window,
                input=(N, C, *extents),
                output=(*window.output[:2], rows.size[0], columns.size[0]),
                kernel=(rows.size[1], columns.size[1]),
                padding=((0, 0), (0, 0)),
            )
            if needs(one) > room:
                return ()
            found.append(Rectangle(rows, columns, one))
    return found


def bind_rectangles(binding: Binding, window: WindowGeometry, parts: Sequence[Rectangle], source: str) -> NativeStep:
    """A step that convolves images rectangle by rectangle."""
    epilogue, threads = required_epilogue(binding), binding.num_threads
    residual = epilogue.residual.name if epilogue.residual is not None else ""
    count = -(-window.output[1] // window.groups // PANEL_CHANNELS)
    depth = window.input[1] // window.groups * window.kernel[0] * window.kernel[1]
    panels = binding.weight("panels", (window.groups, count, depth, PANEL_CHANNELS))
    made = []
    for images in Images.of(binding, source, residual).batches():
        dense = DenseOperands.between(images.output, images.residual, threads, np.float32)
        steps, workspace = [], Workspace(binding)
        source_image, before = _staged_once(window, images.source, workspace, threads)
        for part in parts:
            own = attrs.evolve(binding, weights={**binding.weights, "panels": part.panels(panels, window.kernel)})
            # One after the other, and so in the same scratch memory.
            read = WindowInput.of(part.window, part.inputs(source_image), workspace.branch(), threads)
            target = ImageOperand.of(part.outputs(dense.output.array))
            added = ImageOperand.of(part.outputs(dense.residual.array)) if dense.residual is not None else None
            steps.append(bind_product(own, part.window, read, target, added, epilogue))
        made.append(dense.around([NativeStep(binding.group.name, before, [source_image]), *steps]))
    return NativeStep.joined(binding.group.name, made)


def _unpadded(window: WindowGeometry) -> WindowGeometry:
    """A window of one place over the same images."""
    return attrs.evolve(window, kernel=(1, 1), dilation=(1, 1), padding=((0, 0), (0, 0)))


def _staged_once(window: WindowGeometry, images: Array, workspace: Workspace, threads: int) -> tuple[Array, list[Work]]:
    """Images that all rectangles can read, and the work that copies them where they cannot."""
    window, source = _unpadded(window), ImageOperand.of(images)
    if not needs_staging(window, source):
        return images, []
    copy = workspace.take(window.staged_shape)
    channels = copy[..., : window.input[1]].transpose(0, 3, 1, 2)
    return channels, [stage_work(window, source, copy, threads)]


def integer_rectangles(window: WindowGeometry) -> Sequence[Rectangle]:
    """The rectangles of a quantized window; none either where the weights of a place are no whole units."""
    return () if window.input[1] // window.groups % UNIT else rectangles(window, integer_workspace_bytes)


def bind_integer_rectangles(binding: Binding, window: WindowGeometry, parts: Sequence[Rectangle]) -> NativeStep:
    """A step that convolves quantized images rectangle by rectangle."""
    source, steps = accepted_weights(binding.group).source, bound_requantization(binding)
    count, places = -(-window.output[1] // window.groups // PANEL_CHANNELS), window.kernel[0] * window.kernel[1]
    units = window.input[1] // window.groups // UNIT
    repeated = Repeated.of(binding, places, units)
    depth = units * places + (len(repeated.pieces) * repeated.units if repeated is not None else 0)
    panels = binding.weight("panels", (window.groups, count, depth, PANEL_CHANNELS, UNIT), DataType.INT8)
    bias, sums = (
        binding.weight(name, (window.groups, count * PANEL_CHANNELS), DataType.INT32)
        for name in ("bias", "weight_sums")
    )
    made = []
    for images in Images.of(binding, source.tensor.name, steps.residual).batches():
        dense = DenseOperands.between(images.output, images.residual, binding.num_threads)
        done = []
        for part in parts:
            own, more = part.panels(panels[:, :, : units * places], window.kernel), {}
            if repeated is not None:
                own, more[REPEATED] = _with_repeated(part, own, panels[:, :, units * places :], repeated, window, units)
            own_sums = own.sum(axis=(2, 4), dtype=np.int32).reshape(sums.shape)
            # Of places in the padding the distances from the zero point are zero.
            starts = bias + np.int32(source.zero_point) * (sums - own_sums)
            weights = {**binding.weights, "panels": own, "weight_sums": own_sums, "bias": starts, **more}
            added = part.outputs(dense.residual.array) if dense.residual is not None else None
            cut = Images(part.inputs(images.source), part.outputs(dense.output.array), added)
            done.append(bind_integer_window(attrs.evolve(binding, weights=weights), part.window, cut, steps))
        made.append(dense.around(done))
    return NativeStep.joined(binding.group.name, made)


def _with_repeated(
    part: Rectangle, own: Array, repeats: Array, repeated: Repeated, window: WindowGeometry, units: int
) -> tuple[Array, Array]:
    """A rectangle's panels with those pieces of its places behind them that come again, and the table of these.

    A place has so many units, which whole pieces fill.
    """
    numbers = np.full(window.kernel, -1)
    inside = numbers[part.rows.places, part.columns.places]
    inside[...] = np.arange(inside.size).reshape(inside.shape)
    place, piece = np.divmod(repeated.pieces, units // repeated.units)
    number = numbers.reshape(-1)[place]
    pieces = number * (units // repeated.units) + piece
    again = repeats.reshape(*repeats.shape[:2], -1, repeated.units, *repeats.shape[3:])[:, :, number >= 0]
    panels = [own, again.reshape(*repeats.shape[:2], -1, *repeats.shape[3:])]
    joined = aligned_empty((*own.shape[:2], sum(one.shape[2] for one in panels), *own.shape[3:]), own.dtype)
    np.concatenate(panels, axis=2, out=joined)
    return joined, np.array([repeated.units, *pieces[number >= 0]], np.int32)
