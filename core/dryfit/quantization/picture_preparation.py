"""Preparation of a picture as a network input: explicit size, channels, mean and scale."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import CalibrationError
from dryfit.network.data_types import EXCHANGED_TYPES, DataType
from dryfit.network.tensor import Array, Tensor

if TYPE_CHECKING:
    from PIL.Image import Image

CHANNEL_ORDERS = {"RGB": 3, "BGR": 3, "GRAY": 1}
"""Name to number of channels."""

RESIZE_RULES = ("stretch", "crop", "pad")


def _numbers(values: Sequence[float] | float) -> tuple[float, ...]:
    return tuple(map(float, values)) if isinstance(values, (tuple, list)) else (float(values),)  # type: ignore[arg-type]


@frozen
class PicturePreparation:
    """Converts a picture file to a network input: `(pixel - mean) * scale`, for pixels of 0 to 255.

    Attributes:
        mean: one number, or one per channel, in channel order.
        scale: one number, or one per channel, in channel order.
        channels: `RGB`, `BGR` or `GRAY`. "": RGB, or GRAY if the input has one channel.
        resize: `stretch` to the input's size; `crop`, which keeps the aspect ratio and crops both sides equally; or
            `pad`, which keeps the whole picture and pads on the right and at the bottom.
        short_side: with `crop`, length of the picture's shorter side before cropping, in pixels. 0: the smallest that
            covers the input.
        fill: with `pad`, value of the padding pixels.

    Resizing uses Pillow's bilinear filter, which averages when a picture is reduced.

    Raises:
        CalibrationError: A name is unknown.

    Example:
        >>> PicturePreparation(mean=(123.675, 116.28, 103.53), scale=(0.0171, 0.0175, 0.0174), resize="crop").channels
        ''
    """

    mean: tuple[float, ...] = attrs.field(default=(0.0,), converter=_numbers)
    scale: tuple[float, ...] = attrs.field(default=(1.0,), converter=_numbers)
    channels: str = ""
    resize: str = "stretch"
    short_side: int = 0
    fill: int = 0

    def __attrs_post_init__(self) -> None:
        for what, value, allowed in (
            ("channels", self.channels, ("", *CHANNEL_ORDERS)),
            ("resize", self.resize, RESIZE_RULES),
        ):
            if value not in allowed:
                raise CalibrationError(
                    f"Picture preparation is not supported: {what}",
                    found=repr(value),
                    allowed=", ".join(one for one in allowed if one),
                    remedy="Choose one of these",
                )

    @property
    def text(self) -> str:
        """One line with all settings that affect the values."""
        return ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in attrs.fields(type(self)))

    def array(self, path: Path, tensor: Tensor) -> Array:
        """Return the picture in the shape and type of the input, without the batch.

        Raises:
            CalibrationError: The file is not a picture, the input is not a picture input, or the input requires
                integers and the prepared pixels are not integers or are out of range.
        """
        channel_axis, height, width = picture_axes(tensor)
        count = tensor.shape[channel_axis]
        order = self.channels or ("GRAY" if count == 1 else "RGB")
        stated = {"channels": CHANNEL_ORDERS[order], "mean": len(self.mean), "scale": len(self.scale)}
        for what, numbers in stated.items():
            if numbers != count and (what == "channels" or numbers != 1):
                raise CalibrationError(
                    "The preparation must match the number of input channels",
                    where=f"input {tensor.name!r}",
                    found=f"{what} for {numbers}",
                    allowed=f"{count}",
                    remedy="Specify one value per channel",
                )
        picture = self._resized(_opened(path, "L" if order == "GRAY" else "RGB"), height, width)
        pixels = np.asarray(picture, np.float32).reshape(height, width, count)
        if order == "BGR":
            pixels = pixels[:, :, ::-1]
        values = (pixels - np.array(self.mean, np.float32)) * np.array(self.scale, np.float32)
        values = self._in_type(values, tensor, path)
        return np.ascontiguousarray(values.transpose(2, 0, 1) if channel_axis == 1 else values)

    def _in_type(self, values: Array, tensor: Tensor, path: Path) -> Array:
        """The values in the input's type: rounded to a real one, and only as they are to any other."""
        dtype = tensor.dtype
        if dtype in EXCHANGED_TYPES:
            return values.astype(dtype.numpy, copy=False)
        with np.errstate(invalid="ignore"):
            cast = values.astype(dtype.numpy)
        if dtype is not DataType.BOOL and np.array_equal(cast.astype(np.float64), values):
            return cast
        least, largest = values.min(), values.max()
        raise CalibrationError(
            f"The prepared pictures must fit the input type {dtype.text}",
            where=f"{path}, input {tensor.name!r}",
            found=f"floating-point values from {least:g} to {largest:g} (mean {self.mean}, scale {self.scale})",
            allowed=f"values that {dtype.text} represents exactly"
            + (", such as pixels of 0 to 255 (mean 0, scale 1)" if dtype is DataType.UINT8 else ""),
            remedy="Set mean and scale (on the command line: --mean, --scale), or pass arrays of the input's type",
        )

    def _resized(self, picture: Image, height: int, width: int) -> Image:
        if self.resize == "stretch":
            return _scaled(picture, width, height)
        ratios = (width / picture.width, height / picture.height)
        if self.resize == "pad":
            return self._padded(picture, min(ratios), height, width)
        ratio = max(*ratios, self.short_side / min(picture.size))
        scaled = _scaled(picture, *(max(1, round(side * ratio)) for side in picture.size))
        left, top = (scaled.width - width) // 2, (scaled.height - height) // 2
        return scaled.crop((left, top, left + width, top + height))

    def _padded(self, picture: Image, ratio: float, height: int, width: int) -> Image:
        from PIL import Image

        sides = (min(width, max(1, round(picture.width * ratio))), min(height, max(1, round(picture.height * ratio))))
        whole = Image.new(picture.mode, (width, height), (self.fill,) * len(picture.getbands()))
        whole.paste(_scaled(picture, *sides), (0, 0))
        return whole


def picture_axes(tensor: Tensor) -> tuple[int, int, int]:
    """Return the channel axis, and height and width in pixels, of an input for pictures.

    Raises:
        CalibrationError: The input is not `[N, C, H, W]` or `[N, H, W, C]` with 1 or 3 channels and a fixed size.
    """
    shape = tensor.shape
    if len(shape) == 4:
        for axis, height, width in ((1, shape[2], shape[3]), (3, shape[1], shape[2])):
            if shape[axis] in CHANNEL_ORDERS.values() and height > 0 and width > 0:
                return axis, height, width
    raise CalibrationError(
        "The input does not have the shape of a picture",
        where=f"input {tensor.name!r}",
        found=shape,
        allowed="[N, C, H, W] or [N, H, W, C] with 1 or 3 channels and a fixed height and width",
        remedy="Set a fixed shape (on the command line: --shape), or pass arrays: .npy, .npz, or a function",
    )


def _scaled(picture: Image, width: int, height: int) -> Image:
    from PIL import Image

    return picture if picture.size == (width, height) else picture.resize((width, height), Image.Resampling.BILINEAR)


def _opened(path: Path, mode: str) -> Image:
    try:
        from PIL import Image
    except ImportError as error:
        raise CalibrationError(
            "Reading pictures requires Pillow, which is not installed",
            where=str(path),
            remedy="pip install 'dryfit[images]'",
        ) from error
    try:
        with warnings.catch_warnings():
            # Pillow refuses a picture of more than twice its limit, and warns of one above it.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as picture:
                converted: Any = picture.convert(mode)
                return converted  # type: ignore[no-any-return]
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise CalibrationError(
            "The picture is too large and could be a decompression bomb",
            where=str(path),
            found=error,
            allowed=f"at most {Image.MAX_IMAGE_PIXELS} pixels (PIL.Image.MAX_IMAGE_PIXELS)",
            remedy="Scale it down",
        ) from error
    except Exception as error:  # its decoders raise many kinds of errors on damaged files
        raise CalibrationError(
            "The file is not a readable picture",
            where=str(path),
            found=error,
            remedy="Convert it, or remove it from the folder",
        ) from error
