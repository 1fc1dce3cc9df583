"""Operators on images: poolings, resizing, and space to depth and back."""

from __future__ import annotations

from dryfit.network.layers.resize import InterpolationMode, Resize, ResizeCoordinateTransformation, ResizeRoundMode
from dryfit.network.layers.slice import Shuffle
from dryfit.network.layers.window_layer import Pooling, PoolingType
from dryfit_tflite.operator_view import Operator
from dryfit_tflite.operators.weighted import padding_mode
from dryfit_tflite.registry import operator


@operator("AVERAGE_POOL_2D", "MAX_POOL_2D")
def pooling(op: Operator) -> None:
    """Pooling; an average does not count padding."""
    is_maximum = op.record.name == "MAX_POOL_2D"
    layer = Pooling(
        pooling_type=PoolingType.MAX if is_maximum else PoolingType.AVERAGE,
        window_size_nd=(op.option("FilterHeight", 1), op.option("FilterWidth", 1)),
        stride_nd=(op.option("StrideH", 1), op.option("StrideW", 1)),
        padding_mode=padding_mode(op),
        average_count_excludes_padding=True,
    )
    result = op.add(layer, op.real(0, first=True))
    op.give(op.activated(result, op.option("FusedActivationFunction")), first=True)


@operator("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resize(op: Operator) -> None:
    """Resize to the extents of input 1."""
    is_linear = op.record.name == "RESIZE_BILINEAR"
    extents = op.ints(1, "The new extents")
    if op.rank(0) != 4 or len(extents) != 2:
        raise op.refusal("Only images are resized", found=op.shape(0), remedy="Convert the model with images")
    batch, _, _, channels = op.shape(0)
    place = ResizeCoordinateTransformation.ASYMMETRIC
    if op.option("AlignCorners"):
        place = ResizeCoordinateTransformation.ALIGN_CORNERS
    elif op.option("HalfPixelCenters"):
        place = ResizeCoordinateTransformation.HALF_PIXEL
    is_rounded = place is not ResizeCoordinateTransformation.ASYMMETRIC
    layer = Resize(
        shape=(batch, channels, *extents),
        resize_mode=InterpolationMode.LINEAR if is_linear else InterpolationMode.NEAREST,
        coordinate_transformation=place,
        nearest_rounding=ResizeRoundMode.HALF_UP if is_rounded else ResizeRoundMode.FLOOR,
    )
    op.give(op.add(layer, op.real(0, first=True)), first=True)


@operator("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def space_and_depth(op: Operator) -> None:
    """Reshape, transpose, reshape: the channels of a block of pixels lie behind each other, row by row."""
    size = op.option("BlockSize", 1)
    batch, height, width, channels = op.shape(0)
    if op.record.name == "SPACE_TO_DEPTH":
        split = (batch, height // size, size, width // size, size, channels)
        joined: tuple[int, ...] = (batch, height // size, width // size, size * size * channels)
    else:
        split = (batch, height, width, size, size, channels // (size * size))
        joined = (batch, height * size, width * size, channels // (size * size))
    parts = op.add(
        Shuffle(reshape_dims=split, second_transpose=(0, 1, 3, 2, 4, 5), zero_is_placeholder=False), op.codes(0)
    )
    op.give_codes(op.add(Shuffle(reshape_dims=joined, zero_is_placeholder=False), parts))


@operator("L2_POOL_2D")
def l2_pooling(op: Operator) -> None:
    """Square root of the average of squares."""
    from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation, Unary, UnaryOperation

    x = op.real(0, first=True)
    layer = Pooling(
        pooling_type=PoolingType.AVERAGE,
        window_size_nd=(op.option("FilterHeight", 1), op.option("FilterWidth", 1)),
        stride_nd=(op.option("StrideH", 1), op.option("StrideW", 1)),
        padding_mode=padding_mode(op),
    )
    average = op.add(layer, op.add(Elementwise(op=ElementWiseOperation.PROD), x, x))
    result = op.add(Unary(op=UnaryOperation.SQRT), average)
    op.give(op.activated(result, op.option("FusedActivationFunction")), first=True)
