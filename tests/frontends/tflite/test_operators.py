"""Each operator of TFLite as a model of its own, against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest
from tests.frontends.tflite.running import outputs_of
from tests.tflite_models import TfliteModel, litert_outputs

import dryfit
from dryfit.answers.asked import import_model
from dryfit.plugins.contributions import ImportOptions

pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed: pip install dryfit[dev]")

X, Y = (0.05, -3), (0.04, 5)
TYPES = ("int8", "uint8", "int16", "float32")


def grid(dtype, scale_and_zero_point):
    """A grid of a type; none of floating point. The zero points of UINT8 are 128 higher, those of INT16 are 0."""
    scale, zero_point = scale_and_zero_point
    if dtype == "float32":
        return {}
    if dtype == "int16":
        return {"scale": scale / 128, "zero_point": 0}
    return {"scale": scale, "zero_point": zero_point + (128 if dtype == "uint8" else 0)}


def drawn(shape, dtype, seed=1):
    """Random values of a type: all codes, or numbers from -4 to 4."""
    random = np.random.default_rng(seed)
    if dtype == "float32":
        return random.uniform(-4, 4, shape).astype(np.float32)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max + 1, shape).astype(dtype)


def every_code(dtype):
    """All codes of a type, -32,767 in the place of the lowest of INT16, whose magnitude is no code."""
    limits = np.iinfo(dtype)
    codes = np.arange(limits.min, limits.max + 1).astype(dtype)
    return np.maximum(codes, -limits.max) if dtype == "int16" else codes


def agree(data, *inputs):
    """Whether dryfit gives what LiteRT gives: codes bit for bit, real numbers but for their last bits."""
    expected = litert_outputs(data, list(inputs))
    found = outputs_of(data, *inputs, **({"device": "CPU"} if inputs[0].dtype == np.float32 else {}))
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        if other.dtype == np.float32:
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)
        else:
            np.testing.assert_array_equal(one, other)


def of_one(operator, shape, out, dtype, options="", *, x=X, y=Y, constants=(), version=None, **fields):
    """A model of one operator of one input, with constants behind it."""
    model = TfliteModel()
    inputs = [model.input("x", shape, dtype, **grid(dtype, x))]
    inputs += [model.constant(f"c{index}", one) for index, one in enumerate(constants)]
    output = model.tensor("y", out, dtype, **grid(dtype, y))
    model.operator(operator, inputs, [output], options, version=version, **fields)
    return model.to_bytes([output])


CONVOLUTION = {"padding": 0, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}


def weighted(operator, options, dtype, shape, kernel, out, *, axis=0, per_channel=True, bias=True, **fields):
    """A model of an operator with weights: per channel for INT8."""
    random = np.random.default_rng(5)
    model = TfliteModel()
    x = model.input("x", shape, dtype, **grid(dtype, X))
    maps = kernel[axis]
    if dtype == "float32":
        weights = model.constant("w", random.normal(0, 0.3, kernel).astype(np.float32))
        added = model.constant("b", random.normal(0, 1, maps).astype(np.float32)) if bias else None
    else:
        of_weights = "uint8" if dtype == "uint8" else "int8"
        is_channel = per_channel and of_weights == "int8"
        scale = random.uniform(0.002, 0.01, maps).astype(np.float32) if is_channel else np.float32(0.006)
        low = -127 if of_weights == "int8" else 0
        zero_point = 0 if of_weights == "int8" else 120
        codes = random.integers(low, low + 255, kernel).astype(of_weights)
        weights = model.constant("w", codes, scale=scale, zero_point=zero_point, axis=axis if is_channel else 0)
        values = random.integers(-3000, 3000, maps).astype(np.int32)
        if dtype == "int16":
            values = values.astype(np.int64) * 1000
        added = model.constant("b", values, scale=scale * np.float32(grid(dtype, X)["scale"])) if bias else None
    y = model.tensor("y", out, dtype, **grid(dtype, (0.1, 3)))
    model.operator(operator, [x, weights, added], [y], options, **fields)
    return model.to_bytes([y])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("activation", "stride", "padding"), [(0, 1, 0), (1, 2, 0), (3, 2, 1), (2, 1, 1)])
def test_convolution(dtype, activation, stride, padding):
    extent = -(-9 // stride) if padding == 0 else (9 - 3) // stride + 1
    fields = {**CONVOLUTION, "strideH": stride, "strideW": stride, "padding": padding}
    out = (2, extent, extent, 6)
    options = {"fusedActivationFunction": activation, **fields}
    agree(
        weighted("CONV_2D", "Conv2DOptions", dtype, (2, 9, 9, 4), (6, 3, 3, 4), out, **options),
        drawn((2, 9, 9, 4), dtype),
    )


def test_dilated_and_grouped_convolutions():
    fields = {**CONVOLUTION, "dilationHFactor": 2, "dilationWFactor": 2}
    data = weighted("CONV_2D", "Conv2DOptions", "int8", (1, 9, 9, 4), (6, 3, 3, 4), (1, 9, 9, 6), **fields)
    agree(data, drawn((1, 9, 9, 4), "int8"))
    data = weighted(
        "CONV_2D", "Conv2DOptions", "int8", (1, 9, 9, 4), (6, 3, 3, 2), (1, 9, 9, 6), version=6, **CONVOLUTION
    )
    agree(data, drawn((1, 9, 9, 4), "int8"))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("multiplier", [1, 2])
def test_depthwise_convolution(dtype, multiplier):
    kernel = (1, 3, 3, 5 * multiplier)
    options = {**CONVOLUTION, "depthMultiplier": multiplier, "strideH": 2, "strideW": 2}
    data = weighted(
        "DEPTHWISE_CONV_2D",
        "DepthwiseConv2DOptions",
        dtype,
        (1, 8, 7, 5),
        kernel,
        (1, 4, 4, kernel[3]),
        axis=3,
        **options,
    )
    agree(data, drawn((1, 8, 7, 5), dtype))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("bias", [True, False])
def test_fully_connected(dtype, bias):
    data = weighted(
        "FULLY_CONNECTED", "FullyConnectedOptions", dtype, (3, 2, 8), (7, 16), (3, 7), per_channel=False, bias=bias
    )
    agree(data, drawn((3, 2, 8), dtype))
    data = weighted(
        "FULLY_CONNECTED", "FullyConnectedOptions", dtype, (3, 2, 8), (7, 8), (3, 2, 7),
        per_channel=False, bias=bias, keepNumDims=True,
    )  # fmt: skip
    agree(data, drawn((3, 2, 8), dtype))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("padding", "out"), [(0, (10, 8)), (1, (11, 9))])
def test_transposed_convolution(dtype, padding, out):
    random = np.random.default_rng(5)
    model = TfliteModel()
    shape = model.constant("shape", np.asarray((1, *out, 3), np.int32))
    x = model.input("x", (1, 5, 4, 2), dtype, **grid(dtype, X))
    if dtype == "float32":
        weights = model.constant("w", random.normal(0, 0.3, (3, 3, 3, 2)).astype(np.float32))
    else:
        codes = random.integers(0, 120, (3, 3, 3, 2)).astype("uint8" if dtype == "uint8" else "int8")
        weights = model.constant("w", codes, scale=0.01, zero_point=60 if dtype == "uint8" else 0)
    y = model.tensor("y", (1, *out, 3), dtype, **grid(dtype, (0.1, 3)))
    model.operator(
        "TRANSPOSE_CONV", [shape, weights, x], [y], "TransposeConvOptions", strideH=2, strideW=2, padding=padding
    )
    agree(model.to_bytes([y]), drawn((1, 5, 4, 2), dtype))


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
@pytest.mark.parametrize(("turned_x", "turned_y"), [(False, False), (True, False), (False, True)])
def test_batch_matmul(dtype, turned_x, turned_y):
    model = TfliteModel()
    shapes = [(2, 4, 3) if turned_x else (2, 3, 4), (2, 5, 4) if turned_y else (2, 4, 5)]
    inputs = [model.input(name, shape, dtype, **grid(dtype, X)) for name, shape in zip("ab", shapes, strict=True)]
    y = model.tensor("y", (2, 3, 5), dtype, **grid(dtype, (0.1, 3)))
    model.operator("BATCH_MATMUL", inputs, [y], "BatchMatMulOptions", adjX=turned_x, adjY=turned_y)
    agree(model.to_bytes([y]), *(drawn(shape, dtype) for shape in shapes))


POOL = {"padding": 0, "strideH": 2, "strideW": 2, "filterHeight": 3, "filterWidth": 3}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("operator", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
@pytest.mark.parametrize("activation", [0, 3])
def test_pooling(operator, dtype, activation):
    data = of_one(
        operator, (1, 7, 7, 3), (1, 4, 4, 3), dtype, "Pool2DOptions", y=X, fusedActivationFunction=activation, **POOL
    )
    agree(data, drawn((1, 7, 7, 3), dtype))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("operator", "options"),
    [("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions"),
     ("DIV", "DivOptions"), ("SQUARED_DIFFERENCE", "SquaredDifferenceOptions"),
     ("MAXIMUM", "MaximumMinimumOptions"), ("MINIMUM", "MaximumMinimumOptions")],
)  # fmt: skip
@pytest.mark.parametrize("other", [(1, 4, 4, 3), (3,), (1, 1, 1, 1)])
def test_two_operands(operator, options, dtype, other):
    if operator == "SQUARED_DIFFERENCE" and dtype in ("uint8", "int16"):
        pytest.skip("LiteRT has no such kernel")
    model = TfliteModel()
    is_extreme = operator.endswith("IMUM")
    x = model.input("x", (1, 4, 4, 3), dtype, **grid(dtype, X))
    values = drawn(other, dtype, 3)
    if operator == "DIV":  # a divisor of 0 has no result to rely on
        values = np.where(values == grid(dtype, (0.02, 7)).get("zero_point"), 1, values).astype(dtype)
    b = model.constant("b", values, **grid(dtype, X if is_extreme else (0.02, 7)))
    y = model.tensor("y", (1, 4, 4, 3), dtype, **grid(dtype, X if is_extreme else Y))
    fields = {} if is_extreme or operator == "SQUARED_DIFFERENCE" else {"fusedActivationFunction": 1}
    model.operator(operator, [x, b], [y], options, **fields)
    agree(model.to_bytes([y]), drawn((1, 4, 4, 3), dtype))


NARROW = ("int8", "uint8", "float32")
UNARY = [
    ("RELU", "", {}, X, TYPES), ("RELU6", "", {}, X, TYPES), ("TANH", "", {"y": (1 / 128, 0)}, X, NARROW),
    ("RELU_N1_TO_1", "", {}, X, NARROW), ("RELU_0_TO_1", "", {}, X, NARROW),
    ("LOGISTIC", "", {"y": (1 / 256, -128)}, X, NARROW), ("HARD_SWISH", "HardSwishOptions", {}, X, NARROW),
    ("LEAKY_RELU", "LeakyReluOptions", {"alpha": 0.2}, X, TYPES), ("GELU", "GeluOptions", {}, X, TYPES),
    ("GELU", "GeluOptions", {"approximate": True}, X, TYPES), ("EXP", "ExpOptions", {}, X, ("int8", "float32")),
    ("ABS", "AbsOptions", {}, X, ("int8", "int16", "float32")), ("LOG", "", {}, (0.05, -128), ("int8", "int16")),
    ("LOGISTIC", "", {"y": (1 / 256, 0)}, X, ("int16",)), ("TANH", "", {"y": (1 / 256, 0)}, X, ("int16",)),
    ("TANH", "", {"y": (1 / 256, 0)}, (1 / 32, 0), ("int16",)), ("EXP", "ExpOptions", {}, (0.01, 0), ("int16",)),
    ("SQRT", "", {}, (0.05, -128), ("int8", "int16")), ("FLOOR", "", {}, X, ("float32",)),
    ("NEG", "NegOptions", {}, X, ("int8", "int16", "float32")), ("RSQRT", "", {}, (0.05, -128), ("int8", "int16")),
    ("SIN", "", {}, X, ("float32",)), ("SQUARE", "SquareOptions", {}, X, ("float32",)),
    ("L2_NORMALIZATION", "L2NormOptions", {"y": (1 / 128, 0)}, X, NARROW),
    ("LOG_SOFTMAX", "LogSoftmaxOptions", {"y": (1 / 16, 127)}, X, NARROW),
]  # fmt: skip
ONE_VERSION = ("HARD_SWISH", "RELU_N1_TO_1", "RELU_0_TO_1")


@pytest.mark.parametrize(
    ("operator", "options", "fields", "x", "dtype"),
    [(operator, options, fields, x, dtype) for operator, options, fields, x, types in UNARY for dtype in types],
)
def test_functions_of_one_number(operator, options, fields, x, dtype):
    version = 1 if operator in ONE_VERSION else None
    shape = (64, 1024) if dtype == "int16" else (4, 64)
    data = of_one(operator, shape, shape, dtype, options, x=x, version=version, **fields)
    values = drawn(shape, dtype) if dtype == "float32" else every_code(dtype).reshape(shape)
    agree(data, np.abs(values) if dtype == "int16" and operator in ("LOG", "SQRT", "RSQRT") else values)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("beta", [1.0])
def test_softmax(dtype, beta):
    y = (1 / 256, -128)
    data = of_one("SOFTMAX", (3, 20), (3, 20), dtype, "SoftmaxOptions", y=y, beta=beta)
    agree(data, drawn((3, 20), dtype))


@pytest.mark.parametrize("dtype", NARROW)
def test_parametric_relu(dtype):
    model = TfliteModel()
    x = model.input("x", (1, 4, 4, 3), dtype, **grid(dtype, X))
    slopes = model.constant("a", drawn((1, 1, 3), dtype, 3), **grid(dtype, (0.01, 3)))
    y = model.tensor("y", (1, 4, 4, 3), dtype, **grid(dtype, Y))
    model.operator("PRELU", [x, slopes], [y], version=1)
    agree(model.to_bytes([y]), drawn((1, 4, 4, 3), dtype))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("axes", "keeps"), [((1, 2), True), ((1, 2), False), ((3,), True), ((1,), False), ((0, 1, 2, 3), True)]
)
def test_mean(dtype, axes, keeps):
    shape = (2, 5, 6, 4)
    out = [1 if axis in axes else extent for axis, extent in enumerate(shape) if keeps or axis not in axes]
    data = of_one("MEAN", shape, out, dtype, "ReducerOptions", constants=[np.asarray(axes, np.int32)], keepDims=keeps)
    agree(data, drawn(shape, dtype))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("operator", ["REDUCE_MAX", "REDUCE_MIN"])
def test_extremes_over_axes(operator, dtype):
    data = of_one(
        operator, (2, 5, 6, 4), (2, 5, 6), dtype, "ReducerOptions", y=X, constants=[np.asarray([3], np.int32)]
    )
    agree(data, drawn((2, 5, 6, 4), dtype))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("operator", ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
@pytest.mark.parametrize("place", [{}, {"halfPixelCenters": True}, {"alignCorners": True}])
@pytest.mark.parametrize("out", [(8, 6), (3, 5)])
def test_resize(operator, dtype, place, out):
    options = {"RESIZE_BILINEAR": "ResizeBilinearOptions"}.get(operator, "ResizeNearestNeighborOptions")
    data = of_one(
        operator, (1, 4, 3, 2), (1, *out, 2), dtype, options, y=X, constants=[np.asarray(out, np.int32)], **place
    )
    agree(data, drawn((1, 4, 3, 2), dtype))


MOVED = [
    ("RESHAPE", "ReshapeOptions", (2, 3, 4), (6, 4), [np.asarray([6, -1], np.int32)], {}),
    ("SQUEEZE", "SqueezeOptions", (2, 1, 4, 1), (2, 4), [], {}),
    ("SQUEEZE", "SqueezeOptions", (2, 1, 4, 1), (2, 4, 1), [], {"squeezeDims": [1]}),
    ("EXPAND_DIMS", "ExpandDimsOptions", (2, 4), (2, 1, 4), [np.asarray([1], np.int32)], {}),
    ("TRANSPOSE", "TransposeOptions", (2, 3, 4), (4, 2, 3), [np.asarray([2, 0, 1], np.int32)], {}),
    ("PAD", "PadOptions", (2, 3, 4), (3, 6, 4), [np.asarray([[1, 0], [1, 2], [0, 0]], np.int32)], {}),
    ("MIRROR_PAD", "MirrorPadOptions", (2, 3, 4), (2, 6, 5), [np.asarray([[0, 0], [1, 2], [0, 1]], np.int32)], {}),
    ("SLICE", "SliceOptions", (4, 5), (2, 4), [np.asarray([1, 1], np.int32), np.asarray([2, -1], np.int32)], {}),
    ("STRIDED_SLICE", "StridedSliceOptions", (4, 5), (5,),
     [np.asarray([-1, 9], np.int32), np.asarray([9, 0], np.int32), np.asarray([1, -1], np.int32)],
     {"shrinkAxisMask": 1, "beginMask": 2, "endMask": 2}),
    ("TILE", "TileOptions", (2, 3), (4, 9), [np.asarray([2, 3], np.int32)], {}),
    ("SPACE_TO_DEPTH", "SpaceToDepthOptions", (1, 4, 6, 3), (1, 2, 3, 12), [], {"blockSize": 2}),
    ("DEPTH_TO_SPACE", "DepthToSpaceOptions", (1, 2, 3, 12), (1, 4, 6, 3), [], {"blockSize": 2}),
    ("SPACE_TO_BATCH_ND", "SpaceToBatchNDOptions", (1, 3, 4, 2), (4, 2, 3, 2),
     [np.asarray([2, 2], np.int32), np.asarray([[0, 1], [1, 1]], np.int32)], {}),
    ("BATCH_TO_SPACE_ND", "BatchToSpaceNDOptions", (4, 2, 3, 2), (1, 3, 4, 2),
     [np.asarray([2, 2], np.int32), np.asarray([[0, 1], [1, 1]], np.int32)], {}),
    ("REVERSE_V2", "ReverseV2Options", (2, 3, 4), (2, 3, 4), [np.asarray([1], np.int32)], {}),
    ("GATHER", "GatherOptions", (4, 5), (4, 3), [np.asarray([4, 0, 2], np.int32)], {"axis": 1}),
    ("GATHER_ND", "GatherNdOptions", (4, 5), (2,), [np.asarray([[0, 1], [3, 4]], np.int32)], {}),
    ("BROADCAST_TO", "BroadcastToOptions", (1, 3), (2, 2, 3), [np.asarray([2, 2, 3], np.int32)], {}),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize(("operator", "options", "shape", "out", "constants", "fields"), MOVED)
def test_moved_values(operator, options, shape, out, constants, fields, dtype):
    agree(of_one(operator, shape, out, dtype, options, y=X, constants=constants, **fields), drawn(shape, dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_parts_and_concatenations(dtype):
    model = TfliteModel()
    x = model.input("x", (1, 4, 4, 6), dtype, **grid(dtype, X))
    axis = model.constant("axis", np.asarray(3, np.int32))
    halves = [model.tensor(f"half{index}", (1, 4, 4, 3), dtype, **grid(dtype, X)) for index in range(2)]
    model.operator("SPLIT", [axis, x], halves, "SplitOptions", numSplits=2)
    joined = model.tensor("joined", (1, 4, 8, 3), dtype, **grid(dtype, X))
    model.operator("CONCATENATION", halves, [joined], "ConcatenationOptions", axis=2)
    packed = model.tensor("packed", (1, 2, 4, 4, 3), dtype, **grid(dtype, X))
    model.operator("PACK", halves, [packed], "PackOptions", axis=1, valuesCount=2)
    parts = [model.tensor(f"part{index}", (1, 4, 4, 3), dtype, **grid(dtype, X)) for index in range(2)]
    model.operator("UNPACK", [packed], parts, "UnpackOptions", axis=1, num=2)
    agree(model.to_bytes([joined, packed, *parts]), drawn((1, 4, 4, 6), dtype))


@pytest.mark.parametrize(
    ("dtype", "to_type"), [("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("float32", "int8")]
)
def test_quantize(dtype, to_type):
    model = TfliteModel()
    x = model.input("x", (4, 64), dtype, **grid(dtype, X))
    y = model.tensor("y", (4, 64), to_type, **grid(to_type, Y))
    model.operator("QUANTIZE", [x], [y], "QuantizeOptions", version=1)
    z = model.tensor("z", (4, 64), "float32")
    model.operator("DEQUANTIZE", [y], [z], "DequantizeOptions", version=2)
    agree(model.to_bytes([y, z]), drawn((4, 64), dtype))


def test_largest_elements_and_their_places():
    model = TfliteModel()
    x = model.input("x", (3, 20), "float32")
    count, axis = model.constant("k", np.asarray(4, np.int32)), model.constant("axis", np.asarray([1], np.int32))
    values, indices = model.tensor("values", (3, 4)), model.tensor("indices", (3, 4), "int32")
    model.operator("TOPK_V2", [x, count], [values, indices], "TopKV2Options")
    most = model.tensor("most", (3,), "int64")
    model.operator("ARG_MAX", [x, axis], [most], "ArgMaxOptions", outputType=4)
    sums = model.tensor("sums", (3, 20))
    model.operator("CUMSUM", [x, axis], [sums], "CumsumOptions", exclusive=True, version=1)
    agree(model.to_bytes([values, indices, most, sums]), drawn((3, 20), "float32"))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("operator", ["EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"])
def test_comparisons_of_codes(operator, dtype):
    model = TfliteModel()
    inputs = [model.input(name, (16, 64), dtype, **grid(dtype, one)) for name, one in (("x", X), ("y", (X[0] / 2, 5)))]
    answer = model.tensor("answer", (16, 64), "bool")
    options = f"{operator.title().replace('_', '')}Options"
    model.operator(operator, inputs, [answer], options, version=2)
    x = drawn((16, 64), dtype)
    agree(model.to_bytes([answer]), x, np.clip(x * 2, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype))


def test_a_sum_of_int16_by_powers_of_two_is_refused():
    model = TfliteModel()
    inputs = [model.input(name, (2, 4), "int16", scale=scale) for name, scale in (("x", 2**-10), ("y", 2**-12))]
    output = model.tensor("z", (2, 4), "int16", scale=2**-10)
    model.operator("ADD", inputs, [output], "AddOptions", potScaleInt16=True)
    with pytest.raises(dryfit.DryfitError, match=r"pot_scale_int16.*is not supported.*0.0009765625, 0.000244140625"):
        outputs_of(model.to_bytes([output]), *(drawn((2, 4), "int16") for _ in range(2)))


@pytest.mark.parametrize("operator", ["LOG_SOFTMAX", "L2_NORMALIZATION", "RSQRT", "SQUARED_DIFFERENCE"])
def test_without_a_method_operators_are_layers_that_devices_have(operator):
    model = TfliteModel()
    inputs = [model.input("x", (2, 4), "int8", **grid("int8", X))]
    if operator == "SQUARED_DIFFERENCE":
        inputs.append(model.input("x2", (2, 4), "int8", **grid("int8", X)))
    output = model.tensor("y", (2, 4), "int8", **grid("int8", Y))
    model.operator(operator, inputs, [output])
    data = model.to_bytes([output])
    plain, on_codes = (
        import_model(data, ImportOptions(quantize_method=method)).network for method in ("none", "tflite")
    )
    assert not any(layer.is_host_only for layer in plain.layers if not layer.is_quantization)
    assert sum(layer.is_host_only for layer in on_codes.layers if not layer.is_quantization) == 1


def test_comparisons_and_selection():
    model = TfliteModel()
    x, y = model.input("x", (3, 20)), model.input("y", (1, 20))
    names = ["EQUAL", "GREATER", "LESS", "GREATER_EQUAL", "LESS_EQUAL", "NOT_EQUAL"]
    answers = [model.tensor(name, (3, 20), "bool") for name in names]
    for name, answer in zip(names, answers, strict=True):
        model.operator(name, [x, y], [answer], f"{name.title().replace('_', '')}Options")
    chosen = model.tensor("chosen", (3, 20))
    model.operator("SELECT_V2", [answers[1], x, y], [chosen], "SelectV2Options")
    agree(model.to_bytes([*answers, chosen]), drawn((3, 20), "float32"), drawn((1, 20), "float32", 2))
