"""Windows whose places lie so far apart that most of them fall into the padding.

A 3 x 3 window with a dilation of 12 over an image of 16 x 16 has two and a quarter of its nine places inside the image
on average, and with 16 and more only the one in the middle. Such windows end segmentation networks. What is left out
here are products with zeros.

In FP32 each place of the window is a matrix product of its own, over the outputs for which it lies inside the image;
it goes on with the sums that the places before it left in the output:

    dilation 12, 16 rows     upper place      rows 12 to 15
                             middle place     rows 0 to 15
                             lower place      rows 0 to 3

So weights are read once, and where they were packed. INT8 outputs cannot hold sums. There the outputs are cut into
rectangles that have the same places inside the image, and each is convolved with these places alone, without padding:

    dilation 12, 16 rows     rows 0 to 3      middle and lower place
                             rows 4 to 11     middle place
                             rows 12 to 15    upper and middle place

Rectangles need panels of their own, with the weights of their places, which are copied when an engine is loaded; and
what sums begin at is for the weights that are left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.network.data_types import DataType
from dryfit.target.kernels import Array, Binding
from dryfit_cpu.codes import FIRST, PANEL_CHANNELS, SUM
from dryfit_cpu.compiler.native import NativeStep, Work
from dryfit_cpu.compiler.tier import current_tier
from dryfit_cpu.kernels.copying import copy_work, pointwise_work
from dryfit_cpu.kernels.dense_operands import DenseOperands, Images
from dryfit_cpu.kernels.epilogues import Epilogue, required_epilogue
from dryfit_cpu.kernels.integer_products import Repeated, bind_integer_window, integer_workspace_bytes
from dryfit_cpu.kernels.integer_weights import REPEATED, UNIT, accepted_weights
from dryfit_cpu.kernels.matrix_products import MatrixProduct
from dryfit_cpu.kernels.operands import ImageOperand, Workspace, aligned_empty, pixels_at
from dryfit_cpu.kernels.requantization import bound_requantization
from dryfit_cpu.kernels.window_products import bind_window, needs_staging, pixel_axes, stage_work
from dryfit_cpu.kernels.windows import WindowGeometry

_WORTHWHILE = 0.5
"""The part of the products that may be left. Our choice: short rows and small tiles cost some of what is won."""


@frozen
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
    def outputs_count(self) -> int:
        """How many outputs."""
        return int(self.outputs.stop - self.outputs.start)


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


@frozen
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


def _inside(window: WindowGeometry, axis: int, place: int) -> slice:
    """The outputs along an axis for which a place of the window lies inside the image, for a stride of 1."""
    first = window.padding[axis][0] - place * window.dilation[axis]
    start = max(0, first)
    return slice(start, max(start, min(window.output[2 + axis], window.input[2 + axis] + first)))


def is_mostly_padding(window: WindowGeometry) -> bool:
    """Whether so many places fall into the padding that leaving them out is worthwhile."""
    if max(window.dilation) == 1 or window.stride != (1, 1) or not window.slices.is_one or 0 in window.output:
        return False
    left = 1.0
    for axis in range(2):
        outputs = [_inside(window, axis, place) for place in range(window.kernel[axis])]
        left *= sum(one.stop - one.start for one in outputs) / (window.output[2 + axis] * window.kernel[axis])
    return left <= _WORTHWHILE


def rectangles(window: WindowGeometry) -> Sequence[Rectangle]:
    """The rectangles that the outputs of a quantized window are cut into.

    None where it is better convolved as a whole, and where the weights of a place are no whole units.
    """
    if not is_mostly_padding(window) or window.input[1] // window.groups % UNIT:
        return ()
    N, C, *image = window.input
    axes = [
        _bands(
            image[axis], window.output[2 + axis], window.kernel[axis], window.dilation[axis], window.padding[axis][0]
        )
        for axis in range(2)
    ]
    if not all(sum(band.outputs_count for band in bands) == window.output[2 + axis] for axis, bands in enumerate(axes)):
        return ()
    room = integer_workspace_bytes(window)
    found = []
    for rows in axes[0]:
        for columns in axes[1]:
            extents = tuple(band.inputs.stop - band.inputs.start for band in (rows, columns))
            one = attrs.evolve(
                window,
                input=(N, C, *extents),
                output=(*window.output[:2], rows.outputs_count, columns.outputs_count),
                kernel=(rows.places.stop - rows.places.start, columns.places.stop - columns.places.start),
                padding=((0, 0), (0, 0)),
            )
            if integer_workspace_bytes(one) > room:
                return ()
            found.append(Rectangle(rows, columns, one))
    return found


@frozen
class _Place:
    """A place of a window, and the outputs for which it lies inside the image.

    Attributes:
        number: of the place, row by row.
        outputs: rows and columns.
        inputs: rows and columns that they read.
    """

    number: int
    outputs: tuple[slice, slice]
    inputs: tuple[slice, slice]


def _places(window: WindowGeometry) -> Iterator[_Place]:
    """The places that are inside the image for some outputs."""
    for number in range(math.prod(window.kernel)):
        outputs, inputs = [], []
        for axis, place in enumerate(divmod(number, window.kernel[1])):
            inside = _inside(window, axis, place)
            shift = place * window.dilation[axis] - window.padding[axis][0]
            outputs.append(inside)
            inputs.append(slice(inside.start + shift, inside.stop + shift))
        if all(one.start < one.stop for one in outputs):
            yield _Place(number, (outputs[0], outputs[1]), (inputs[0], inputs[1]))


def bind_places(binding: Binding, window: WindowGeometry, source: str) -> NativeStep:
    """A step that convolves images place by place of the window."""
    outputs, places = window.output[1] // window.groups, list(_places(window))
    count, depth = -(-outputs // PANEL_CHANNELS), math.prod(window.kernel) * (window.input[1] // window.groups)
    panels = binding.weight("panels", (window.groups, count, depth, PANEL_CHANNELS))
    whole = tuple(slice(0, extent) for extent in window.output[2:])
    if [(one.outputs, one.inputs) for one in places] == [(whole, whole)] and window.input[2:] == window.output[2:]:
        by_place = panels.reshape(window.groups, count, math.prod(window.kernel), -1, PANEL_CHANNELS)
        own = aligned_empty((window.groups, count, *by_place.shape[3:]), panels.dtype)
        own[...] = by_place[:, :, places[0].number]
        weights = {**binding.weights, "panels": own}
        return bind_window(attrs.evolve(binding, weights=weights), _unpadded(window), source)
    epilogue = required_epilogue(binding)
    residual = epilogue.residual.name if epilogue.residual is not None else ""
    bias = binding.weight("bias", (window.groups, count * PANEL_CHANNELS))[:, :outputs].reshape(-1, 1, 1)
    steps = [
        _places_step(binding, window, images, places, (panels, bias), epilogue)
        for images in Images.of(binding, source, residual).batches()
    ]
    return NativeStep.joined(binding.group.name, steps)


def _places_step(
    binding: Binding,
    window: WindowGeometry,
    images: Images,
    places: Sequence[_Place],
    weights: tuple[Array, Array],
    epilogue: Epilogue,
) -> NativeStep:
    """Sums that begin at the bias, a product for each place, and what follows the sums."""
    (panels, bias), threads, workspace = weights, binding.num_threads, Workspace(binding)
    dense = DenseOperands.between(images.output, images.residual, threads, np.float32)
    image, work = _staged_once(window, images.source, workspace, threads)
    sums = output = dense.output.array
    if output.dtype != np.float32 or window.output[1] // window.groups % current_tier().lanes:
        # The last vector of a pixel is loaded whole, also that of the last pixel.
        spare, (N, K, H, W) = current_tier().lanes, window.output
        sums = workspace.take((N * H * W * K + spare,))[:-spare].reshape(N, H, W, K).transpose(0, 3, 1, 2)
    work, keeps = [*work, *copy_work(bias, sums, threads)], list[object]([binding, image, sums, panels, bias])
    for place in places:
        main, tables = _place_product(window, place, image, sums, panels, binding.tactic).work(threads)
        work.append(main)
        keeps.append(tables)
    if sums is not output or epilogue != Epilogue(epilogue.scales):
        added = [] if dense.residual is None else [dense.residual.array]
        code = SUM if added else FIRST
        work += pointwise_work(code, [sums, *added], output, threads, epilogue.outer, epilogue.inner)
    return dense.around([NativeStep(binding.group.name, work, keeps)])


def _place_product(
    window: WindowGeometry, place: _Place, image: Array, sums: Array, panels: Array, tactic: str
) -> MatrixProduct:
    """The product that adds what a place gives."""
    cut, target = ImageOperand.of(image[:, :, *place.inputs]), ImageOperand.of(sums[:, :, *place.outputs])
    part = attrs.evolve(_unpadded(window), input=cut.shape, output=target.shape)
    inputs, outputs = window.input[1] // window.groups, window.output[1] // window.groups
    n, _, h, w = cut.strides
    return MatrixProduct(
        axes=pixel_axes(part, (n, h, w), target, None),
        input=cut.address,
        output=pixels_at(target),
        segment_length=inputs,
        weights=panels.ctypes.data + place.number * inputs * panels.strides[2],
        bias=0,
        group_outputs=outputs,
        group_offsets=[
            (group * panels.strides[0], 0, group * inputs * 4, group * outputs * 4, 0) for group in range(window.groups)
        ],
        tactic=tactic,
        panel_depth=panels.shape[2],
        continues=True,
    )


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


def bind_rectangles(binding: Binding, window: WindowGeometry, parts: Sequence[Rectangle]) -> NativeStep:
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
