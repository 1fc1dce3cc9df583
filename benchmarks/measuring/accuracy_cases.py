"""The shared networks with pictures to calibrate them and others to judge them by, as each of them wants them."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from dryfit.network.tensor import Tensor
from dryfit.quantization.picture_preparation import PicturePreparation

Array = np.ndarray[Any, Any]

SHARED = Path(__file__).parents[3] / "shared"

NUM_CALIBRATION_DIGITS = 500
NUM_JUDGED_DIGITS = 1000
DIGIT_BATCH = 100

UNJUDGED_PHOTOS = "kodim"
"""Photos whose names begin so are calibrated with; no picture is on both sides."""


@attrs.frozen(eq=False)
class Pictures:
    """What a network is shown.

    Attributes:
        calibration: arrays of the input's shape.
        judged: the same, of other pictures.
        labels: the right class of each judged picture, in order; None where nobody says.
    """

    calibration: Sequence[Array]
    judged: Sequence[Array]
    labels: Array | None = None


@attrs.frozen
class AccuracyCase:
    """A network and how it is judged.

    Attributes:
        file: the model.
        pictures: makes the pictures for an input, from the folder of pictures.
        has_classes: whether it tells one class of each picture, by the largest output.
        batch: of the input where that is dynamic.
        origin: for a network that is quantized explicitly, the FP32 model that it was made from.
    """

    file: str
    pictures: Callable[[Path, Tensor], Pictures]
    has_classes: bool = True
    batch: int = 1
    origin: str = ""


def clothes(preparation: PicturePreparation) -> Callable[[Path, Tensor], Pictures]:
    """Pictures of clothes, whose classes are known."""

    def make(folder: Path, tensor: Tensor) -> Pictures:
        with (folder / "clothing" / "test_labels.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        judged = [folder / "clothing" / "test" / row["file"] for row in rows]
        return Pictures(
            _prepared(preparation, _jpegs(folder / "clothing" / "calib"), tensor),
            _prepared(preparation, judged, tensor),
            np.array([int(row["class_index"]) for row in rows]),
        )

    return make


def photos(
    preparation: PicturePreparation, *, with_clothes: bool = True, unpadded: bool = False
) -> Callable[[Path, Tensor], Pictures]:
    """Pictures of clothes and of everything, for networks that know other classes, or none.

    Args:
        preparation: of each picture.
        with_clothes: whether clothes are judged too; they are calibrated with in any case.
        unpadded: whether pictures to calibrate with are cut to the input's size where the others are filled up: what is
            filled in is one value over and over, which makes the relative entropy cut off everything else.
    """

    def make(folder: Path, tensor: Tensor) -> Pictures:
        unjudged, judged = photo_paths(folder)
        judged += _jpegs(folder / "clothing" / "test") if with_clothes else []
        calibration = [*_jpegs(folder / "clothing" / "calib"), *unjudged]
        shown = attrs.evolve(preparation, resize="crop") if unpadded else preparation
        return Pictures(_prepared(shown, calibration, tensor), _prepared(preparation, judged, tensor))

    return make


def photo_paths(folder: Path) -> tuple[list[Path], list[Path]]:
    """The photos to calibrate with, and those to judge by."""
    every = sorted(one for one in (folder / "photos").iterdir() if one.suffix in {".png", ".jpg"})
    unjudged = [one for one in every if one.name.startswith(UNJUDGED_PHOTOS)]
    return unjudged, [one for one in every if one not in unjudged]


def digits(largest: float, *, noise: float = 0.0) -> Callable[[Path, Tensor], Pictures]:
    """Handwritten digits whose classes are known.

    Args:
        largest: what a white pixel becomes.
        noise: standard deviation of what is added, cut to -1 and 2; the classes are then not told.
    """

    def make(folder: Path, tensor: Tensor) -> Pictures:
        with gzip.open(folder / "mnist" / "images-idx3-ubyte.gz") as file:
            pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
        with gzip.open(folder / "mnist" / "labels-idx1-ubyte.gz") as file:
            labels = np.frombuffer(file.read(), np.uint8, offset=8)
        values = pixels.astype(np.float32) * np.float32(largest / 255)
        if noise:
            added = np.random.default_rng(0).standard_normal(values.shape, np.float32) * np.float32(noise)
            values = np.clip(values + added, -1, 2)
        batch = tensor.shape[0]
        return Pictures(
            _batches(values[:NUM_CALIBRATION_DIGITS], batch),
            _batches(values[-NUM_JUDGED_DIGITS:], batch),
            None if noise else labels[-NUM_JUDGED_DIGITS:].astype(np.int64),
        )

    return make


def _jpegs(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.jpg"))


def _prepared(preparation: PicturePreparation, paths: Sequence[Path], tensor: Tensor) -> list[Array]:
    dtype = tensor.dtype.numpy
    return [preparation.array(path, tensor)[np.newaxis].astype(dtype) for path in paths]


def _batches(values: Array, batch: int) -> list[Array]:
    return np.split(values, len(values) // batch)


_MOBILENET = PicturePreparation(mean=127, scale=0.0078431377)
_SQUEEZENET = PicturePreparation(channels="BGR", mean=(104, 117, 123))
_CIFAR = PicturePreparation(
    mean=(123.675, 116.28, 103.53), scale=tuple(1 / (255 * deviation) for deviation in (0.229, 0.224, 0.225))
)

CASES = (
    AccuracyCase("clothing_mobilenetv2_fp32.onnx", clothes(_MOBILENET)),
    AccuracyCase("mnist-8.onnx", digits(255)),
    AccuracyCase("mnist_lrn_fp32.onnx", digits(1), batch=DIGIT_BATCH),
    AccuracyCase("mnist_vit_fp32.onnx", digits(1), batch=DIGIT_BATCH),
    AccuracyCase("mobilenetv2-fp32.onnx", photos(_MOBILENET)),
    AccuracyCase("resnet20_cifar10.onnx", photos(_CIFAR)),
    AccuracyCase("squeezenet1.1-fp32.onnx", photos(_SQUEEZENET)),
    AccuracyCase("squeezenet1.1-fp16-opset7.onnx", photos(_SQUEEZENET)),
    AccuracyCase("mnist_denoise_deconv_in_fp32.onnx", digits(1, noise=0.4), has_classes=False, batch=DIGIT_BATCH),
    AccuracyCase(
        "super-resolution-10.onnx", photos(PicturePreparation(scale=1 / 255), with_clothes=False), has_classes=False
    ),
    AccuracyCase(
        "yolox_nano_416.onnx",
        photos(PicturePreparation(channels="BGR", resize="pad", fill=114), with_clothes=False),
        has_classes=False,
    ),
    AccuracyCase(
        "yunet_n_320.onnx",
        photos(PicturePreparation(channels="BGR", resize="pad"), with_clothes=False, unpadded=True),
        has_classes=False,
    ),
)
"""Networks without scales of their own."""

EXPLICIT_CASES = (
    AccuracyCase(
        "clothing_mobilenetv2_int8-qdq-sym.onnx", clothes(_MOBILENET), origin="clothing_mobilenetv2_fp32.onnx"
    ),
    AccuracyCase("squeezenet1.1-int8-qdq-sym.onnx", photos(_SQUEEZENET), origin="squeezenet1.1-fp32.onnx"),
)
"""Networks that say themselves what is quantized, and what they were made from: the same with another tool's scales."""
