"""Random layers as TFLite operators, with values on each side of each limit of Arm's NPUs."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from tflite_writer import Operator, Tensor

SAME, VALID = 0, 1
NO_ACTIVATION, RELU, RELU_N1_TO_1, RELU6 = 0, 1, 2, 3
Draw = Callable[[random.Random], Operator]


def _type(draw: random.Random, types: Sequence[str] = ("int8",) * 8 + ("uint8", "int16", "int16", "int32")) -> str:
    return draw.choice(types)


def _zero(draw: random.Random, kind: str) -> int:
    """A zero point of a type; INT16 has none in TFLite."""
    low, high = {"int8": (-128, 127), "uint8": (0, 255)}.get(kind, (0, 0))
    return draw.choice((0, low, high, draw.randint(low, high)))


def _tensor(draw: random.Random, shape: Sequence[int], kind: str, like: Tensor | None = None) -> Tensor:
    if like is not None:
        return Tensor(tuple(shape), kind, like.scale, like.zero_point)
    return Tensor(tuple(shape), kind, draw.choice((0.007, 0.02, 0.05, 0.11)), _zero(draw, kind))


def _extent(draw: random.Random) -> int:
    return draw.choice((1, 2, 3, 5, 8, 9, 16, 17, 24, 32))


def _output(extent: int, window: int, stride: int, padding: int) -> int:
    return -(-extent // stride) if padding == SAME else (extent - window) // stride + 1


def _integers(values: object, kind: str = "int32") -> Tensor:
    array = np.asarray(values, kind)
    return Tensor(array.shape, kind, None, values=array)


def _image(draw: random.Random, batches: Sequence[int] = (1, 1, 1, 1, 2, 3)) -> tuple[int, ...]:
    return draw.choice(batches), _extent(draw), _extent(draw), _extent(draw)


def _shape(draw: random.Random) -> tuple[int, ...]:
    rank = draw.choice((1, 2, 3, 4, 4, 4, 4, 5))
    return (
        *(draw.choice((1, 1, 1, 2)),) * (rank in {4, 5}),
        *(_extent(draw) for _ in range(min(rank, 4) - (rank >= 4))),
        *((2,) * (rank == 5)),
    )


def _weights(draw: random.Random, shape: tuple[int, ...], channels: int, axis: int, kind: str = "int8") -> Tensor:
    size = math.prod(shape)
    largest = 127 if kind == "int8" else 255
    if draw.random() < 0.2:
        values = np.full(shape, largest)
    else:
        values = (
            np.random.default_rng(draw.getrandbits(32))
            .integers(-largest * (kind == "int8"), largest + 1, size)
            .reshape(shape)
        )
    scale = [0.01] * channels if kind == "int8" and draw.random() < 0.6 else 0.01
    return Tensor(shape, kind, scale, 0 if kind == "int8" else 128, axis, values)


def _bias(draw: random.Random, x: Tensor, weights: Tensor, channels: int) -> Tensor | None:
    if draw.random() < 0.15:
        return None
    kind = "int64" if x.type == "int16" else "int32"
    values = np.arange(channels)
    if kind == "int64" and draw.random() < 0.2:
        values = values + draw.choice(
            ((1 << 40) - (1 << 20), (1 << 40) + (1 << 20), 1 << 41, 1 << 47)
        )  # FP32 tells these apart
    scale = np.asarray(weights.scale, np.float32) * np.float32(x.scale)
    return Tensor((channels,), kind, scale, values=values)


def _window(
    draw: random.Random, shape: tuple[int, ...], limits: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """(kernel, stride, padding) of a window that fits."""
    padding = draw.choice((SAME, VALID))
    kernel = tuple(
        draw.choice([size for size in limits if padding == SAME or size <= extent] or [1]) for extent in shape[1:3]
    )
    stride = draw.choice((1, 1, 1, 2, 2, 3, 4, 5))
    return kernel, (stride, stride if draw.random() < 0.7 else draw.choice((1, 2, 3, 4))), padding


def convolution(draw: random.Random) -> Operator:
    kind = _type(draw, ("int8",) * 6 + ("uint8", "int16", "int16"))
    shape = _image(draw)
    if draw.random() < 0.12:
        shape = (1, *draw.choice(((70, 70), (4, 70), (65, 66))), draw.choice((1, 2, 16)))
    kernel, stride, padding = _window(draw, shape, (1, 1, 2, 3, 3, 5, 7, 63, 64, 65))
    dilation = (1, 1) if draw.random() < 0.7 else (draw.choice((1, 2, 3)), draw.choice((1, 2)))
    extents = [(size - 1) * step + 1 for size, step in zip(kernel, dilation, strict=True)]
    if padding == VALID and any(one > extent for one, extent in zip(extents, shape[1:3], strict=True)):
        dilation, extents = (1, 1), list(kernel)
    channels = _extent(draw)
    groups = draw.choice([one for one in (1, 1, 1, 1, 2) if shape[3] % one == 0 and channels % one == 0])
    x = _tensor(draw, shape, kind)
    weights = _weights(
        draw, (channels, *kernel, shape[3] // groups), channels, 0, "uint8" if kind == "uint8" else "int8"
    )
    spatial = [_output(*one, padding) for one in zip(shape[1:3], extents, stride, strict=True)]
    y = _tensor(draw, (shape[0], *spatial, channels), kind)
    options = {"padding": padding, "strideH": stride[0], "strideW": stride[1], "dilationHFactor": dilation[0]}
    options |= {"dilationWFactor": dilation[1], "fusedActivationFunction": draw.choice((0, 0, 1, 2, 3))}
    return Operator("CONV_2D", [x, weights, _bias(draw, x, weights, channels)], [y], options)


def depthwise(draw: random.Random) -> Operator:
    kind = _type(draw, ("int8",) * 6 + ("uint8", "int16", "int16"))
    shape = _image(draw)
    kernel, stride, padding = _window(draw, shape, (1, 2, 3, 3, 3, 5, 7))
    if draw.random() < 0.5:
        stride = (stride[0], stride[0])
    multiplier = draw.choice((1, 1, 1, 1, 2, 3))
    dilation = (1, 1) if draw.random() < 0.8 or stride != (1, 1) else (2, 2)
    extents = [(size - 1) * step + 1 for size, step in zip(kernel, dilation, strict=True)]
    if padding == VALID and any(one > extent for one, extent in zip(extents, shape[1:3], strict=True)):
        dilation, extents = (1, 1), list(kernel)
    channels = shape[3] * multiplier
    x = _tensor(draw, shape, kind)
    weights = _weights(draw, (1, *kernel, channels), channels, 3, "uint8" if kind == "uint8" else "int8")
    spatial = [_output(*one, padding) for one in zip(shape[1:3], extents, stride, strict=True)]
    y = _tensor(draw, (shape[0], *spatial, channels), kind)
    options = {"padding": padding, "strideH": stride[0], "strideW": stride[1], "depthMultiplier": multiplier}
    options |= {
        "dilationHFactor": dilation[0],
        "dilationWFactor": dilation[1],
        "fusedActivationFunction": draw.choice((0, 1, 3)),
    }
    return Operator("DEPTHWISE_CONV_2D", [x, weights, _bias(draw, x, weights, channels)], [y], options)


def transposed_convolution(draw: random.Random) -> Operator:
    kind = _type(draw, ("int8",) * 5 + ("int16",))
    shape = _image(draw)
    if draw.random() < 0.2:
        shape = (1, 1, shape[2], shape[3])
    stride = (draw.choice((1, 2, 2, 3)), draw.choice((1, 2, 2, 3)))
    if draw.random() < 0.6:
        stride = (stride[0], stride[0])
    kernel = (1 if shape[1] == 1 else draw.choice((1, 2, 3, 4)), draw.choice((1, 2, 3, 4)))
    kernel = tuple(max(one) for one in zip(kernel, stride, strict=True)) if draw.random() < 0.8 else kernel
    padding = draw.choice((SAME, VALID))
    spatial = [
        extent * step if padding == SAME else extent * step + max(size - step, 0)
        for extent, step, size in zip(shape[1:3], stride, kernel, strict=True)
    ]
    channels = _extent(draw)
    x = _tensor(draw, shape, kind)
    weights = _weights(draw, (channels, *kernel, shape[3]), channels, 0)
    y = _tensor(draw, (shape[0], *spatial, channels), kind)
    inputs = [_integers(y.shape), weights, x]
    bias = _bias(draw, x, weights, channels)
    return Operator(
        "TRANSPOSE_CONV",
        inputs + ([bias] if bias else []),
        [y],
        {"padding": padding, "strideH": stride[0], "strideW": stride[1]},
    )


def fully_connected(draw: random.Random) -> Operator:
    kind = _type(draw, ("int8",) * 6 + ("uint8", "int16"))
    rows, inputs, outputs = (
        draw.choice((1, 1, 1, 2, 7)),
        draw.choice((1, 8, 64, 100, 1000)),
        draw.choice((1, 10, 16, 100)),
    )
    if draw.random() < 0.08:
        inputs, outputs = draw.choice((65536, 65537, 70000)), 2
    leading = (draw.choice((1, 2)), rows) if draw.random() < 0.25 else (rows,)
    x = _tensor(draw, (*leading, inputs), kind)
    weights = _weights(draw, (outputs, inputs), outputs, 0, "uint8" if kind == "uint8" else "int8")
    y = _tensor(draw, (*leading, outputs), kind)
    options = {"fusedActivationFunction": draw.choice((0, 0, 1, 3)), "keepNumDims": len(leading) > 1}
    return Operator("FULLY_CONNECTED", [x, weights, _bias(draw, x, weights, outputs)], [y], options)


def pooling(name: str) -> Draw:
    def draw_it(draw: random.Random) -> Operator:
        kind = _type(draw, ("int8",) * 5 + ("uint8", "int16"))
        shape = _image(draw)
        if draw.random() < 0.15:
            shape = (1, *draw.choice(((257, 3), (260, 4), (256, 2), (3, 300))), 2)
        kernel, stride, padding = _window(draw, shape, (1, 2, 2, 3, 3, 7, 8, 9, 10, 255, 256, 257))
        x = _tensor(draw, shape, kind)
        spatial = [_output(*one, padding) for one in zip(shape[1:3], kernel, stride, strict=True)]
        y = _tensor(draw, (shape[0], *spatial, shape[3]), kind, x)
        options = {"padding": padding, "strideH": stride[0], "strideW": stride[1], "filterHeight": kernel[0]}
        options |= {"filterWidth": kernel[1], "fusedActivationFunction": draw.choice((0, 0, 0, 1, 3))}
        return Operator(name, [x], [y], options)

    return draw_it


def binary(name: str, types: Sequence[str] = ("int8",) * 5 + ("uint8", "int16", "int16", "int32")) -> Draw:
    def draw_it(draw: random.Random) -> Operator:
        kind, shape = _type(draw, types), _shape(draw)
        other = shape
        if draw.random() < 0.5:
            other = tuple(draw.choice((1, extent)) for extent in shape)
            other = other[draw.randint(0, len(other) - 1) :] if draw.random() < 0.4 else other
        a = _tensor(draw, shape, kind)
        b = _tensor(draw, other, kind, a if draw.random() < 0.5 else None)
        if draw.random() < 0.3:
            b = Tensor(b.shape, kind, b.scale, b.zero_point, values=np.full(b.shape, 3))
        y = _tensor(draw, shape, kind, a if draw.random() < 0.6 else None)
        has_options = name in ("ADD", "SUB", "MUL")
        options = {"fusedActivationFunction": draw.choice((0, 0, 1, 3)) * (kind != "int32")} if has_options else {}
        return Operator(name, [a, b] if draw.random() < 0.8 else [b, a], [y], options)

    return draw_it


def unary(name: str, types: Sequence[str] = ("int8",) * 5 + ("uint8", "int16", "int32"), **options: object) -> Draw:
    def draw_it(draw: random.Random) -> Operator:
        kind, shape = _type(draw, types), _shape(draw)
        x = _tensor(draw, shape, kind)
        return Operator(name, [x], [_tensor(draw, shape, kind, x if draw.random() < 0.5 else None)], dict(options))

    return draw_it


def prelu(draw: random.Random) -> Operator:
    kind, shape = _type(draw, ("int8", "int8", "uint8", "int16")), _image(draw)
    x, alpha = _tensor(draw, shape, kind), _tensor(draw, (1, 1, shape[3]), kind)
    alpha = Tensor(alpha.shape, kind, alpha.scale, alpha.zero_point, values=np.arange(shape[3]) % 100)
    return Operator("PRELU", [x, alpha], [_tensor(draw, shape, kind)])


def softmax(draw: random.Random) -> Operator:
    kind, shape = _type(draw, ("int8", "int8", "uint8", "int16")), _shape(draw)
    if draw.random() < 0.15:
        shape = draw.choice(((1, 256, 256, 2), (1, 255, 257, 2), (65535, 2), (65536, 2), (70000, 3), (1, 65536, 1, 1)))
    low, scale = {"int8": (-128, 1 / 256), "uint8": (0, 1 / 256), "int16": (0, 1 / 32768)}[kind]
    return Operator("SOFTMAX", [_tensor(draw, shape, kind)], [Tensor(shape, kind, scale, low)], {"beta": 1.0})


def reduction(name: str, types: Sequence[str] = ("int8",) * 4 + ("uint8", "int16", "int32")) -> Draw:
    def draw_it(draw: random.Random) -> Operator:
        kind, shape = _type(draw, types), _shape(draw)
        if draw.random() < 0.12:
            shape = draw.choice(((1, 4095, 2, 3), (1, 4096, 1, 3), (1, 4097, 1, 3), (1, 2, 4096, 2), (1, 300, 300, 2)))
        axes = sorted(draw.sample(range(len(shape)), draw.randint(1, len(shape))))
        if len(shape) == 4 and draw.random() < 0.6:
            axes = draw.choice(([1, 2], [1, 2], [1], [2], [3]))
        keep = draw.random() < 0.6
        kept = [1 if axis in axes else extent for axis, extent in enumerate(shape) if keep or axis not in axes]
        x = _tensor(draw, shape, kind)
        y = _tensor(draw, kept, kind, x if draw.random() < 0.5 or name.startswith("REDUCE") else None)
        return Operator(name, [x, _integers(axes)], [y], {"keepDims": keep})

    return draw_it


def concatenation(draw: random.Random) -> Operator:
    kind, shape = _type(draw), _shape(draw)
    axis = draw.randrange(len(shape))
    a = _tensor(draw, shape, kind)
    shapes = [(*shape[:axis], _extent(draw), *shape[axis + 1 :]) for _ in range(draw.randint(1, 3))]
    inputs = [a, *(_tensor(draw, one, kind, a if draw.random() < 0.7 else None) for one in shapes)]
    total = sum(one.shape[axis] for one in inputs)
    y = _tensor(draw, (*shape[:axis], total, *shape[axis + 1 :]), kind, a)
    return Operator("CONCATENATION", inputs, [y], {"axis": axis, "fusedActivationFunction": 0})


def reshape(draw: random.Random) -> Operator:
    kind, shape = _type(draw), _shape(draw)
    size = math.prod(shape)
    new = draw.choice(((size,), (1, size), (size, 1), (1, 1, 1, size), (1, size, 1)))
    x = _tensor(draw, shape, kind)
    return Operator("RESHAPE", [x, _integers(new)], [_tensor(draw, new, kind, x)], {"newShape": list(new)})


def padding(name: str) -> Draw:
    def draw_it(draw: random.Random) -> Operator:
        kind, shape = _type(draw), _image(draw)
        pads = [(0, 0), (draw.randint(0, 3), draw.randint(0, 3)), (draw.randint(0, 3), draw.randint(0, 2)), (0, 0)]
        if draw.random() < 0.3:
            pads[draw.choice((0, 3))] = (draw.randint(0, 2), draw.randint(0, 2))
        if name == "MIRROR_PAD":
            pads = [tuple(min(one, extent - 1) for one in pair) for pair, extent in zip(pads, shape, strict=True)]
        x = _tensor(draw, shape, kind)
        new = [extent + sum(pair) for extent, pair in zip(shape, pads, strict=True)]
        inputs = [x, _integers(pads, draw.choice(("int32", "int32", "int64")))]
        if name == "PADV2":
            inputs.append(Tensor((1,), kind, x.scale, x.zero_point, values=np.asarray([x.zero_point])))
        return Operator(name, inputs, [_tensor(draw, new, kind, x)], {"mode": 0} if name == "MIRROR_PAD" else {})

    return draw_it


def transpose(draw: random.Random) -> Operator:
    kind, shape = _type(draw, ("int8",) * 4 + ("uint8", "int16", "int32", "int32")), _shape(draw)
    order = list(range(len(shape)))
    draw.shuffle(order)
    if len(shape) == 4 and draw.random() < 0.5:
        order = draw.choice(([0, 2, 1, 3], [0, 1, 3, 2], [0, 3, 1, 2], [0, 2, 3, 1], [0, 3, 2, 1], [0, 1, 2, 3]))
        if draw.random() < 0.4:
            shape = draw.choice(
                ((1, 1, 65536, 2), (1, 65537, 2, 1), (1, 2, 3, 16385), (1, 1, 65537, 2), (1, 4, 5, 16384))
            )
    x = _tensor(draw, shape, kind)
    return Operator("TRANSPOSE", [x, _integers(order)], [_tensor(draw, [shape[i] for i in order], kind, x)])


def slice_(draw: random.Random) -> Operator:
    kind, shape = _type(draw), _shape(draw)
    begin = [draw.randrange(extent) for extent in shape]
    size = [draw.randint(1, extent - start) for extent, start in zip(shape, begin, strict=True)]
    x = _tensor(draw, shape, kind)
    return Operator("SLICE", [x, _integers(begin), _integers(size)], [_tensor(draw, size, kind, x)])


def strided_slice(draw: random.Random) -> Operator:
    kind, shape = _type(draw), _shape(draw)
    steps = [draw.choice((1, 1, 1, 2)) for _ in shape]
    begin = [draw.randrange(extent) for extent in shape]
    end = [draw.randint(start + 1, extent) for extent, start in zip(shape, begin, strict=True)]
    new = [-(-(last - first) // step) for first, last, step in zip(begin, end, steps, strict=True)]
    x = _tensor(draw, shape, kind)
    options = {"beginMask": 0, "endMask": 0, "ellipsisMask": 0, "newAxisMask": 0, "shrinkAxisMask": 0}
    inputs = [x, _integers(begin), _integers(end), _integers(steps)]
    return Operator("STRIDED_SLICE", inputs, [_tensor(draw, new, kind, x)], options)


def split(draw: random.Random) -> Operator:
    kind, shape = _type(draw), list(_shape(draw))
    axis, parts = draw.randrange(len(shape)), draw.randint(2, 3)
    part = shape[axis]
    shape[axis] = part * parts
    x = _tensor(draw, shape, kind)
    new = [*shape[:axis], part, *shape[axis + 1 :]]
    outputs = [_tensor(draw, new, kind, x) for _ in range(parts)]
    return Operator("SPLIT", [_integers(axis), x], outputs, {"numSplits": parts})


def resize(name: str) -> Draw:
    def draw_it(draw: random.Random) -> Operator:
        kind = _type(draw, ("int8",) * 4 + ("uint8", "int16"))
        shape = (draw.choice((1, 1, 2)), *(draw.choice((1, 2, 3, 5, 8)) for _ in range(2)), draw.choice((1, 3, 16)))
        corners = draw.random() < 0.3
        centers = not corners and draw.random() < 0.3
        factor = draw.choice((1, 2, 2, 3, 4, 8, 16))
        new = [(extent - 1) * factor + 1 if corners else extent * factor for extent in shape[1:3]]
        if draw.random() < 0.2:
            new[1] = draw.choice((1, new[1] + 1, shape[2] * 2))
        x = _tensor(draw, shape, kind)
        y = _tensor(draw, (shape[0], *new, shape[3]), kind, x)
        return Operator(name, [x, _integers(new)], [y], {"alignCorners": corners, "halfPixelCenters": centers})

    return draw_it


def quantize(draw: random.Random) -> Operator:
    shape, kinds = _shape(draw), ("int8", "uint8", "int16", "int32", "float32")
    to = draw.choice(kinds[:3])
    source = draw.choice(kinds)
    x = Tensor(shape, source, None) if source == "float32" else _tensor(draw, shape, source)
    return Operator("QUANTIZE", [x], [_tensor(draw, shape, to)])


def dequantize(draw: random.Random) -> Operator:
    shape = _shape(draw)
    return Operator(
        "DEQUANTIZE", [_tensor(draw, shape, _type(draw, ("int8", "int8", "uint8")))], [Tensor(shape, "float32", None)]
    )


def arg_max(draw: random.Random) -> Operator:
    kind, shape = _type(draw, ("int8", "int8", "uint8", "int16")), list(_image(draw))
    shape[3] = draw.choice((2, 16, 127, 128, 200))
    axis = draw.choice((3, 3, 3, -1, 2, 1))
    kept = [extent for index, extent in enumerate(shape) if index != axis % 4]
    y = Tensor(tuple(kept), draw.choice(("int32", "int64")), None)
    return Operator(
        "ARG_MAX", [_tensor(draw, shape, kind), _integers(axis)], [y], {"outputType": {"int32": 2, "int64": 4}[y.type]}
    )


def matrix_product(draw: random.Random) -> Operator:
    kind = _type(draw, ("int8", "int8", "int8", "uint8", "int16"))
    rows, inner, columns = _extent(draw), _extent(draw), _extent(draw)
    batch = draw.choice(((1,), (2,), (1, 3), (2, 2)))
    turned = draw.random() < 0.3
    a = _tensor(draw, (*batch, rows, inner), kind)
    b = _tensor(draw, (*batch, columns, inner) if turned else (*batch, inner, columns), kind)
    y = _tensor(draw, (*batch, rows, columns), kind)
    return Operator("BATCH_MATMUL", [a, b], [y], {"adjX": False, "adjY": turned, "asymmetricQuantizeInputs": False})


def expand_dims(draw: random.Random) -> Operator:
    kind, shape = _type(draw), _shape(draw)[:4]
    axis = draw.randint(0, len(shape))
    x = _tensor(draw, shape, kind)
    return Operator("EXPAND_DIMS", [x, _integers(axis)], [_tensor(draw, (*shape[:axis], 1, *shape[axis:]), kind, x)])


def squeeze(draw: random.Random) -> Operator:
    kind, shape = _type(draw), (1, *_shape(draw)[:3])
    x = _tensor(draw, shape, kind)
    return Operator("SQUEEZE", [x], [_tensor(draw, shape[1:], kind, x)], {"squeezeDims": [0]})


NARROW = ("int8", "int8", "int8", "uint8", "int16")
KINDS: Mapping[str, Draw] = {
    "CONV_2D": convolution,
    "DEPTHWISE_CONV_2D": depthwise,
    "TRANSPOSE_CONV": transposed_convolution,
    "FULLY_CONNECTED": fully_connected,
    "AVERAGE_POOL_2D": pooling("AVERAGE_POOL_2D"),
    "MAX_POOL_2D": pooling("MAX_POOL_2D"),
    **{name: binary(name) for name in ("ADD", "SUB", "MUL", "MINIMUM", "MAXIMUM", "SQUARED_DIFFERENCE")},
    "DIV": binary("DIV", ("int8", "int32")),
    "ABS": unary("ABS"),
    "LEAKY_RELU": unary("LEAKY_RELU", NARROW, alpha=0.1),
    **{name: unary(name, NARROW) for name in ("RELU", "RELU6", "RELU_N1_TO_1", "LOGISTIC", "TANH", "HARD_SWISH")},
    **{name: unary(name, NARROW) for name in ("ELU", "EXP", "LOG", "GELU", "RSQRT", "NEG", "SQRT", "FLOOR")},
    "PRELU": prelu,
    "SOFTMAX": softmax,
    **{name: reduction(name) for name in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")},
    "CONCATENATION": concatenation,
    "RESHAPE": reshape,
    **{name: padding(name) for name in ("PAD", "PADV2", "MIRROR_PAD")},
    "TRANSPOSE": transpose,
    "SLICE": slice_,
    "STRIDED_SLICE": strided_slice,
    "SPLIT": split,
    "RESIZE_BILINEAR": resize("RESIZE_BILINEAR"),
    "RESIZE_NEAREST_NEIGHBOR": resize("RESIZE_NEAREST_NEIGHBOR"),
    "QUANTIZE": quantize,
    "DEQUANTIZE": dequantize,
    "ARG_MAX": arg_max,
    "BATCH_MATMUL": matrix_product,
    "EXPAND_DIMS": expand_dims,
    "SQUEEZE": squeeze,
}
WEIGHTS = {
    "CONV_2D": 6,
    "DEPTHWISE_CONV_2D": 4,
    "FULLY_CONNECTED": 3,
    "AVERAGE_POOL_2D": 3,
    "MAX_POOL_2D": 3,
    "TRANSPOSE_CONV": 3,
}


def drawn(seed: int) -> Operator:
    """Return the layer with this number."""
    draw = random.Random(seed)  # noqa: S311  layers, no secrets
    name = draw.choices(list(KINDS), [WEIGHTS.get(one, 1) for one in KINDS])[0]
    return KINDS[name](draw)
