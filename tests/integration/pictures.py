"""The shared pictures as the shared networks want them: sizes, orders and offsets of the models' README."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import attrs
import numpy as np
from PIL import Image

PHOTOS = (
    "astronaut.png",
    "cat.png",
    "chelsea.png",
    "coffee.png",
    "hot_dog.jpg",
    "kodim05.png",
    "kodim23.png",
    "parrot.jpg",
    "pets.jpg",
    "sunflower.png",
)


@attrs.frozen
class Case:
    """One model: what it is fed, and how its output is compared.

    Attributes:
        file: the model.
        batches: makes the inputs from the folder of pictures.
        has_classes: whether the last axis of the output is a score for each class.
        tolerance: error that is allowed, as a part of the output's range.
        agreement: part of the pictures whose best class must be the same.
    """

    file: str
    batches: Callable[[Path], list[np.ndarray]]
    has_classes: bool = True
    tolerance: float = 1e-4
    agreement: float = 1.0


def _rgb(path: Path, size: int) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB").resize((size, size), Image.Resampling.BILINEAR), np.float32)


def _nchw(pixels: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])


def _photos(
    prepare: Callable[[Path], np.ndarray], names: tuple[str, ...] = PHOTOS
) -> Callable[[Path], list[np.ndarray]]:
    return lambda folder: [prepare(folder / "photos" / name) for name in names]


def _mobilenet(path: Path) -> np.ndarray:
    return _nchw((_rgb(path, 224) - 127) * np.float32(0.0078431377))


def _squeezenet(path: Path) -> np.ndarray:
    return _nchw(_rgb(path, 224)[..., ::-1] - np.array([104, 117, 123], np.float32))


def _cifar(path: Path) -> np.ndarray:
    mean, deviation = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)
    return _nchw((_rgb(path, 32) / 255 - mean) / deviation)


def _luma(path: Path) -> np.ndarray:
    picture = Image.open(path).convert("YCbCr").resize((224, 224), Image.Resampling.BICUBIC).split()[0]
    return np.asarray(picture, np.float32)[None, None] / 255


def _letterboxed(size: int, border: int) -> Callable[[Path], np.ndarray]:
    def prepare(path: Path) -> np.ndarray:
        picture = Image.open(path).convert("RGB")
        ratio = min(size / picture.width, size / picture.height)
        small = picture.resize((int(picture.width * ratio), int(picture.height * ratio)), Image.Resampling.BILINEAR)
        canvas = np.full((size, size, 3), border, np.float32)
        canvas[: small.height, : small.width] = np.asarray(small, np.float32)
        return _nchw(canvas[..., ::-1])

    return prepare


def _clothes(folder: Path) -> list[np.ndarray]:
    return [_mobilenet(path) for path in sorted((folder / "clothing" / "test").rglob("*.jpg"))[::12]]


def _digits(scale: float, count: int, batch: int) -> Callable[[Path], list[np.ndarray]]:
    def make(folder: Path) -> list[np.ndarray]:
        with gzip.open(folder / "mnist" / "images-idx3-ubyte.gz") as file:
            pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
        chosen = pixels[-count:].astype(np.float32) / np.float32(scale)
        return [chosen[start : start + batch] for start in range(0, count, batch)]

    return make


CASES = (
    Case("clothing_mobilenetv2_fp32.onnx", _clothes),
    Case("mnist-8.onnx", _digits(1, 40, 1)),
    Case("mnist_denoise_deconv_in_fp32.onnx", _digits(255, 40, 20), has_classes=False),
    Case("mnist_lrn_fp32.onnx", _digits(255, 200, 100)),
    Case("mnist_vit_fp32.onnx", _digits(255, 200, 100)),
    Case("mobilenetv2-fp32.onnx", _photos(_mobilenet)),
    Case("resnet20_cifar10.onnx", _photos(_cifar)),
    Case("squeezenet1.1-fp32.onnx", _photos(_squeezenet)),
    Case("super-resolution-10.onnx", _photos(_luma, ("kodim08.png",)), has_classes=False),
    # Its sizes of boxes are exponentials, which enlarge what the order of FP32 sums makes: 1.3e-4 was measured.
    Case(
        "yolox_nano_416.onnx",
        _photos(_letterboxed(416, 114), ("pets.jpg", "cat.png")),
        has_classes=False,
        tolerance=2e-4,
    ),
    Case("yunet_n_320.onnx", _photos(_letterboxed(320, 0), ("astronaut.png", "cat.png")), has_classes=False),
)
"""Networks in FP32."""

NARROW_CASES = (
    Case("squeezenet1.1-fp16-opset7.onnx", _photos(lambda path: _squeezenet(path).astype(np.float16)), tolerance=0.02),
    Case("clothing_mobilenetv2_int8-qdq-sym.onnx", _clothes, tolerance=0.15, agreement=0.9),
    Case("squeezenet1.1-int8-qdq-sym.onnx", _photos(_squeezenet), tolerance=0.15, agreement=0.9),
    Case("mnist_resnet_qat_qdq.onnx", _digits(255, 200, 100), tolerance=0.06, agreement=0.99),
    Case(
        "mobilenetv2-int8-qdq-asym-tflite.onnx",
        _photos(lambda path: _rgb(path, 224).astype(np.uint8)[None]),
        tolerance=0.08,
        agreement=0.9,
    ),
)
"""Networks whose values are rounded on the way: a sum in another order can move a value to the next code, and the
code to the next layer. How far that carries is not how right a layer is: each layer by itself is compared too."""
