"""Published cases of layers without weights: kinds, reductions, elementwise layers, movements, softmax."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto
from tests.conformance.dla_cases.case import (
    IMAGE,
    INT8,
    XAVIER_8_4,
    XAVIER_8_5,
    Case,
    integers,
    one,
    refused,
    runs,
)
from tests.conformance.dla_cases.onnx_models import model, node, weights


def reshape_before_concat() -> onnx.ModelProto:
    return model(
        [node("Reshape", "a shape", "reshaped"), node("Concat", "reshaped b", "y", axis=1)],
        {"a": (1, 16, 8, 8), "b": (1, 16, 4, 16)},
        {"shape": integers(1, 16, 4, 16)},
    )


def channel_shuffle() -> onnx.ModelProto:
    return model(
        [
            node("Reshape", "x grouped", "split"),
            node("Transpose", "split", "turned", perm=[0, 2, 1, 3, 4]),
            node("Reshape", "turned joined", "y"),
        ],
        {"x": IMAGE},
        {"grouped": integers(1, 2, 8, 32, 32), "joined": integers(1, 16, 32, 32)},
    )


def detection_head(*anchors: int) -> Callable[[], onnx.ModelProto]:
    """The flattened heads of a detector, joined along the axis of anchors, with one slice of them."""
    inputs = {f"head{index}": (1, 85, 1, extent) for index, extent in enumerate(anchors)}
    bounds = {"start": integers(0), "end": integers(4), "axes": integers(1)}
    nodes = [node("Concat", " ".join(inputs), "joined", axis=3), node("Slice", "joined start end axes", "boxes")]
    return lambda: model(nodes, inputs, bounds)


def swish() -> onnx.ModelProto:
    return model([node("Sigmoid", "x", "gate"), node("Mul", "x gate", "y")], {"x": IMAGE})


def split() -> onnx.ModelProto:
    return model([node("Split", "x sizes", "a b", axis=1)], {"x": IMAGE}, {"sizes": integers(8, 8)})


CASES = [
    # Layer kinds that a builder moves away, whatever their parameters are.
    refused(
        "instance normalization",
        "log: jetson_dla_tutorial, TensorRT 8.4",
        one("InstanceNormalization", (IMAGE,), (weights(16), weights(16))),
        "dla.layer.kind",
        software="8.4",
    ),
    refused("layer normalization", "operators", one("LayerNormalization", (IMAGE,), (weights(32),)), "dla.layer.kind"),
    refused("top k", "operators", one("TopK", (IMAGE,), (integers(4),)), "dla.layer.kind"),
    refused("gather", "header 8.2: IGatherLayer", one("Gather", (IMAGE,), (integers(0, 2),), axis=1), "dla.layer.kind"),
    refused(
        "scatter",
        "operators",
        one("ScatterElements", (IMAGE,), (np.zeros((1, 1, 1, 1), np.int64), weights(1, 1, 1, 1)), axis=1),
        "dla.layer.kind",
    ),
    refused(
        "einsum", "operators", one("Einsum", ((1, 1, 8, 8), (1, 1, 8, 8)), equation="nchw,nchk->ncwk"), "dla.layer.kind"
    ),
    refused(
        "padding",
        "operators; header 10.5: a fill from then on",
        one("Pad", (IMAGE,), (integers(0, 0, 1, 1, 0, 0, 1, 1),)),
        "dla.slice.mode_10_4",
    ),
    refused("cumulative sum", "operators", one("CumSum", (IMAGE,), (np.asarray(1, np.int64),)), "dla.layer.kind"),
    # Reduce.
    refused(
        "global average",
        "log: jetson_dla_tutorial, TensorRT 8.4",
        one("GlobalAveragePool"),
        "dla.reduce.operation",
        software="8.4",
    ),
    refused("mean over H and W", "operators", one("ReduceMean", axes=[2, 3]), "dla.reduce.operation"),
    refused("sum over C", "operators", one("ReduceSum", (IMAGE,), (integers(1),)), "dla.reduce.operation"),
    runs("global maximum", "operators: from 8.6.12", one("GlobalMaxPool")),
    refused(
        "global maximum before it came",
        "operators: from 8.6.12",
        one("GlobalMaxPool"),
        "dla.reduce.software",
        software="8.6",
    ),
    # Elementwise.
    runs("sum of equal shapes", "guide 10", one("Add", (IMAGE, IMAGE))),
    runs("difference on Xavier", "guide 8.4", one("Sub", (IMAGE, IMAGE)), **XAVIER_8_4),
    runs("minimum", "guide 10; header", one("Min", (IMAGE, IMAGE))),
    refused(
        "division in JetPack 6.0",
        "log: Orin, TensorRT 8.6.2",
        one("Div", (IMAGE, IMAGE)),
        "dla.elementwise.operation_8_6_11",
        software="8.6",
    ),
    refused("division in FP16", "log: Orin, TensorRT 10.3", one("Div", (IMAGE, IMAGE)), "dla.elementwise.div_types"),
    refused(
        "power in FP16",
        "log: Orin, TensorRT 10.3",
        one("Pow", (IMAGE,), (np.full((1, 1, 1, 1), 2, np.float32),)),
        "dla.elementwise.pow_operands",
    ),
    runs("one value a channel", "guide 10: NC11", one("Mul", (IMAGE, (1, 16, 1, 1)))),
    runs("one value an image", "guide 10: N111", one("Mul", (IMAGE, (1, 1, 1, 1)))),
    refused(
        "one value a column",
        "guide 10: no other broadcast",
        one("Mul", (IMAGE, (1, 1, 1, 32))),
        "dla.elementwise.broadcast",
    ),
    refused(
        "a channel constant for a batch of 32",
        "log: jetson_dla_tutorial, TensorRT 8.4: Mul_8 on the GPU",
        one("Mul", ((32, 64, 16, 16),), (np.ones((64, 1, 1), np.float32),)),
        "dla.elementwise.broadcast",
        software="8.4",
    ),
    refused(
        "a matrix as a batch of 128",
        "log: combined volume of the batch, Xavier",
        one("Add", ((128, 512), (128, 512))),
        "dla.elementwise.rank",
        **XAVIER_8_4,
    ),
    refused(
        "logical and", "operators", one("And", (IMAGE, IMAGE), input_type=TensorProto.BOOL), "dla.elementwise.operation"
    ),
    refused(
        "a product of INT32",
        "guide 10: FP16 and INT8 only",
        one("Mul", (IMAGE, IMAGE), input_type=TensorProto.INT32),
        "dla.types",
    ),
    Case("swish as a gate and a product", "log: YOLO builds, Orin", swish, runs=["gate", "y"]),
    # Activation.
    runs("leaky ReLU", "guide 10", one("LeakyRelu", alpha=0.1)),
    runs("ReLU6", "guide 10: clip at 1 to 127", one("Clip", (IMAGE,), (np.float32(0), np.float32(6)))),
    refused(
        "clip at 200",
        "guide 10: clip at 1 to 127",
        one("Clip", (IMAGE,), (np.float32(0), np.float32(200))),
        "dla.activation.clip_upper",
    ),
    refused("hard swish", "operators: up to 8.6.12", one("HardSwish"), "dla.activation.type", software="8.6.12"),
    refused("ELU", "operators", one("Elu"), "dla.activation.type"),
    refused("softplus", "operators", one("Softplus"), "dla.activation.type"),
    # Unary.
    runs("absolute value", "guide 10; header 8.4", one("Abs")),
    refused("exponential", "operators", one("Exp"), "dla.unary.operation"),
    refused("square root", "operators", one("Sqrt"), "dla.unary.operation"),
    refused("sine in FP16", "guide 10: INT8", one("Sin"), "dla.unary.int8"),
    runs("sine in INT8", "guide 10; operators: from 8.6.12", one("Sin"), precision=INT8),
    # Concatenation and slices.
    runs("concatenation along C", "guide 10", one("Concat", (IMAGE, (1, 8, 32, 32)), axis=1)),
    refused("concatenation along W", "log: axis", one("Concat", (IMAGE, IMAGE), axis=3), "dla.concatenation.axis"),
    Case("split along C", "operators: as slices", split, runs=["a"]),
    refused(
        "slice of rank 3",
        "log: rank of the slice",
        one("Slice", ((1, 8, 16),), (integers(0), integers(4), integers(1))),
        "dla.slice.rank",
    ),
    refused(
        "slice of the batch",
        "guide 10",
        one("Slice", ((4, 8, 16, 16),), (integers(0), integers(2), integers(0))),
        "dla.slice.batch",
    ),
    refused(
        "slice with steps",
        "header 8.4",
        one("Slice", (IMAGE,), (integers(0), integers(32), integers(2), integers(2))),
        "dla.slice.stride",
    ),
    Case(
        "anchors of a wide YOLO",
        "log: 1x3x576x1920, 22680 anchors",
        detection_head(17280, 4320, 1080),
        {"joined": "dla.extents", "boxes": "dla.extents"},
    ),
    Case(
        "anchors of a YOLO at 640",
        "log: 8400 anchors",
        detection_head(6400, 1600, 400),
        {"joined": "dla.concatenation.axis", "boxes": "dla.extents"},
    ),
    # Shuffles.
    runs("transposed within C, H, W", "guide 10", one("Transpose", perm=[0, 2, 3, 1])),
    refused(
        "transposed with the batch",
        "guide 10",
        one("Transpose", ((2, 16, 8, 8),), perm=[1, 0, 2, 3]),
        "dla.shuffle.batch",
    ),
    refused(
        "transposed in 8.4",
        "guide 8.4: no shuffle",
        one("Transpose", perm=[0, 2, 3, 1]),
        "dla.shuffle.software",
        software="8.4",
    ),
    Case(
        "reshape beside a concatenation",
        "log: Orin, TensorRT 8.5.2 and 8.6",
        reshape_before_concat,
        {"reshaped": "dla.shuffle.neighbours"},
        ["y"],
        software="8.5",
    ),
    Case("the same in 10.3", "log: Orin, TensorRT 10.3", reshape_before_concat, runs=["reshaped", "y"]),
    Case(
        "channel shuffle in five axes",
        "log: rank 5",
        channel_shuffle,
        {"split": "dla.shuffle.reshaped_rank", "turned": "dla.shuffle.rank", "y": "dla.shuffle.rank"},
    ),
    refused("flatten", "operators", one("Flatten"), "dla.shuffle.reshaped_rank"),
    # Softmax.
    refused(
        "softmax on Xavier",
        "guide 10: Orin only",
        one("Softmax", ((1, 10, 1, 1),), axis=1),
        "dla.softmax.platform",
        **XAVIER_8_5,
    ),
    runs("exact softmax", "guide 10: up to 8192", one("Softmax", ((1, 8192, 1, 1),), axis=1)),
    runs("optimized softmax", "guide 10: up to 1024", one("Softmax", ((1, 1024, 4, 4),), axis=1)),
    refused(
        "too wide for the optimized mode",
        "guide 10: up to 1024",
        one("Softmax", ((1, 1025, 4, 4),), axis=1),
        "dla.softmax.optimized_axis",
    ),
    refused(
        "softmax of a batch in 8.4",
        "guide 8.4: batch 1",
        one("Softmax", ((2, 10, 1, 1),), axis=1),
        "dla.softmax.batch_8_4",
        software="8.4",
    ),
    refused(
        "softmax of rank 2",
        "log: a tensor of rank 2 gets a shuffle",
        one("Softmax", ((1, 10),), axis=1),
        "dla.softmax.rank",
    ),
]
