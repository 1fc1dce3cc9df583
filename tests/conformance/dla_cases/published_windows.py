"""Published cases of products, windows and resizes, and of what holds for every layer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from tests.conformance.dla_cases.case import (
    IMAGE,
    XAVIER_8_2,
    XAVIER_8_4,
    one,
    one_convolution,
    refused,
    runs,
    scales,
)
from tests.conformance.dla_cases.onnx_models import model, node, weights


def flattened_dense(channels: int, extent: int) -> Callable[[], onnx.ModelProto]:
    return lambda: model(
        [node("Flatten", "x", "flat"), node("Gemm", "flat w", "y", transB=1)],
        {"x": (1, channels, extent, extent)},
        {"w": weights(8, channels * extent * extent)},
    )


def deconvolution(kernel: int, stride: int, **attributes: object) -> Callable[[], onnx.ModelProto]:
    return one(
        "ConvTranspose",
        (IMAGE,),
        (weights(16, 8, kernel, kernel),),
        kernel_shape=[kernel] * 2,
        strides=[stride] * 2,
        **attributes,
    )


CASES = [
    # Products.
    refused(
        "attention's product of two tensors",
        "log: a convolution is proposed",
        one("MatMul", ((1, 8, 64, 32), (1, 8, 32, 64))),
        "dla.matrix_multiply.constant",
    ),
    refused(
        "VGG's first linear layer",
        "log: VGG, 25088 inputs",
        flattened_dense(512, 7),
        "dla.fully_connected.flattened",
        **XAVIER_8_2,
    ),
    runs(
        "VGG's second linear layer",
        "log: VGG, 4096 inputs",
        flattened_dense(4096, 1),
        kind="fully_connected",
        **XAVIER_8_2,
    ),
    # Pooling.
    runs("a window of 8", "guide 10", one("AveragePool", kernel_shape=[8, 8])),
    refused("a window of 9", "guide 10", one("MaxPool", kernel_shape=[9, 9]), "dla.pooling.window"),
    refused(
        "SPP's window of 13",
        "log: YOLO with SPP, Xavier",
        one("MaxPool", kernel_shape=[13, 13], pads=[6, 6, 6, 6]),
        "dla.pooling.window",
        **XAVIER_8_4,
    ),
    refused(
        "padding that is not counted, Xavier",
        "header 7.1",
        one("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        "dla.pooling.count_includes_padding",
        **XAVIER_8_4,
    ),
    runs(
        "padding that is not counted, Orin",
        "header 8.4",
        one("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        software="8.4",
    ),
    # Resize and LRN.
    runs("nearest by 2", "guide 10", one("Upsample", (IMAGE,), (scales(2),), mode="nearest", opset=9)),
    refused(
        "nearest by 1.5",
        "guide 10: whole scales",
        one("Upsample", (IMAGE,), (scales(1.5),), mode="nearest", opset=9),
        "dla.resize.nearest_scales",
    ),
    refused(
        "linear by 8",
        "guide 10: 1 to 4",
        one("Resize", (IMAGE,), (np.zeros(0, np.float32), scales(8)), mode="linear", opset=11),
        "dla.resize.linear_scales",
    ),
    runs("LRN over 5 channels", "guide 10", one("LRN", size=5)),
    refused("LRN over 11 channels", "guide 10: 3, 5, 7, 9", one("LRN", size=11), "dla.lrn.window"),
    # Convolution and deconvolution.
    refused(
        "a kernel of 63", "header 6.0: kINVALID_STATE", one_convolution(1, 1, 63, (128, 128)), "dla.convolution.kernel"
    ),
    runs("a kernel of 32", "guide 10", one_convolution(8, 8, 32, (64, 64))),
    refused("a stride of 9", "guide 10", one_convolution(8, 8, 3, (64, 64), stride=9), "dla.convolution.stride"),
    refused(
        "a dilation of 33", "guide 10", one_convolution(8, 8, 3, (128, 128), dilation=33), "dla.convolution.dilation"
    ),
    runs("deconvolution without padding", "guide 10", deconvolution(2, 2)),
    refused(
        "Keras' `same` deconvolution",
        "log: k 3, s 2, padded",
        deconvolution(3, 2, pads=[0, 0, 1, 1]),
        "dla.deconvolution.padding",
    ),
    refused(
        "a deconvolution kernel of 23",
        "guide 10: 23 to 32 are switched off",
        deconvolution(23, 2),
        "dla.deconvolution.square_kernel",
    ),
    refused(
        "grouped deconvolution",
        "guide 10",
        one("ConvTranspose", (IMAGE,), (weights(16, 1, 2, 2),), kernel_shape=[2, 2], strides=[2, 2], group=16),
        "dla.deconvolution.groups",
    ),
    # Platforms, shapes, precision.
    refused("Orin Nano has no DLA", "product page", one("Relu"), "dla.platform.cores", platform="orin-nano"),
    refused("FP32", "log: FP16 and INT8 only", one("Relu"), "dla.precision", precision="FP32"),
    refused(
        "an open batch",
        "log: profile with another minimum than maximum",
        one("Relu", ((-1, 3, 8, 8),)),
        "dla.dynamic_dimensions",
    ),
    refused("an axis of 8193", "log: number and size of the axis", one("Relu", ((1, 1, 1, 8193),)), "dla.extents"),
    runs("a batch of 4096", "guide 10", one("Relu", ((4096, 1, 1, 1),))),
    refused(
        "a batch of 4097", "log: combined volume and the largest batch", one("Relu", ((4097, 1, 1, 1),)), "dla.batch"
    ),
]
