"""Integers are not computed in their own type where a layer multiplies by fractions or takes a function."""

import numpy as np
import onnx.reference
import pytest
from onnx import helper

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ParametricRelu
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation, Unary, UnaryOperation
from dryfit.network.layers.generators import Fill, FillOperation
from dryfit.network.layers.indexing import Scatter, ScatterMode, ScatterReduction
from dryfit.network.layers.matrix import MatrixMultiply
from dryfit.network.layers.reduction import Reduce, ReduceOperation
from dryfit.network.layers.resize import GridSample, InterpolationMode, Resize, ResizeCoordinateTransformation
from dryfit.network.layers.slice import SampleMode
from dryfit.network.layers.window_layer import Pooling, PoolingType
from dryfit.network.network import Network
from dryfit.reference.executor import run_reference
from dryfit.testing.example_layers import EXAMPLES, add_example

from .oracle import onnx_runtime, run

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
SIGNED = ("int8", "int16", "int32", "int64")
LINEAR, CUBIC, NEAREST = InterpolationMode.LINEAR, InterpolationMode.CUBIC, InterpolationMode.NEAREST
Coordinates = ResizeCoordinateTransformation


def integers(dtype, shape, *, seed=0, low=None, high=None):
    """Every value of the type, or of a smaller range."""
    limits = np.iinfo(dtype)
    low, high = limits.min if low is None else max(low, limits.min), limits.max if high is None else high
    return np.random.default_rng(seed).integers(low, min(high, limits.max), shape, dtype=dtype, endpoint=True)


def assert_rounded(integer, real):
    """The integers are the real numbers, rounded and saturated."""
    limits = np.iinfo(integer.dtype)
    assert np.abs(integer.astype(np.float64) - np.clip(real, float(limits.min), float(limits.max))).max() <= 0.501


# Every kind ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    "kind", sorted(set(EXAMPLES) - {"assertion", "cast", "fill", "nms", "one_hot", "histogram", "shape"})
)
def test_every_kind_gives_what_it_gives_for_the_same_real_numbers(kind, dtype):
    compared = 0
    for seed in range(4):
        results = []
        x = integers(dtype, (1, 2, 4, 4), seed=seed, low=0, high=9)
        for element in (DataType.from_numpy(dtype), DataType.DOUBLE):
            network = Network()
            layer = add_example(kind, network, network.add_input("x", element, x.shape), np.random.default_rng(seed))
            if layer is None:
                break
            network.mark_output(layer.get_output(0))
            results += run_reference(network, {"x": x.astype(element.numpy)}).values()
        is_of_the_type = len(results) == 2 and results[0].dtype == np.dtype(dtype)
        is_negated = kind == "unary" and layer.op is UnaryOperation.NEG and dtype not in SIGNED
        if not is_of_the_type or is_negated:
            continue
        real = np.asarray(results[1], np.float64)
        drops = isinstance(layer, (Resize, GridSample)) or (
            isinstance(layer, Reduce) and layer.op is ReduceOperation.AVG
        )
        assert_rounded(results[0], np.trunc(real) if drops else real)
        compared += 1
    if not compared:
        pytest.skip(f"a {kind} layer takes or gives no {dtype}")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_weights_keep_their_fractions(dtype):
    x = integers(dtype, (1, 2, 5, 5), low=-100, high=100)
    slopes = np.full((1, 2, 1, 1), 3, dtype)
    layers = [
        (Pooling(pooling_type=PoolingType.AVERAGE, window_size_nd=(2, 2)),),
        (Pooling(pooling_type=PoolingType.MAX_AVERAGE_BLEND, window_size_nd=(2, 2), blend_factor=0.25),),
        (ParametricRelu(), slopes),
    ]
    for layer, *others in layers:
        real = run(layer, x.astype(np.float64), *(other.astype(np.float64) for other in others))[0]
        assert_rounded(run(layer, x, *others)[0], real)


def test_a_linear_fill_keeps_the_fraction_of_its_step():
    layer = Fill(shape=(5,), operation=FillOperation.LINSPACE, to_type=DataType.INT32, alpha=0.0, beta=0.75)
    assert run(layer)[0].tolist() == [0, 0, 1, 2, 3]


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_integers_that_are_only_picked_keep_every_bit(dtype):
    x = integers(dtype, (1, 1, 4, 4), low=2**60) + np.dtype(dtype).type(1)
    picked = (1 << 62) + 1
    x[0, 0, 0, 0] = picked
    layers = [
        Pooling(pooling_type=PoolingType.MAX, window_size_nd=(1, 1)),
        Resize(scales=(1, 1, 1, 1), resize_mode=NEAREST),
    ]
    for layer in layers:
        np.testing.assert_array_equal(run(layer, x)[0], x)


# Resize and grid sample ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
@pytest.mark.parametrize(
    "kind", [Coordinates.HALF_PIXEL, Coordinates.ASYMMETRIC, Coordinates.ALIGN_CORNERS, Coordinates.PYTORCH_HALF_PIXEL]
)
@pytest.mark.parametrize("scales", [(2, 2), (3, 1.5), (1, 0.5), (2.5, 1)])
def test_linear_resizes_are_those_of_onnx_runtime(dtype, kind, scales):
    x = integers(dtype, (2, 3, 4, 6), low=-5000, high=5000)
    layer = Resize(scales=(1, 1, *scales), resize_mode=LINEAR, coordinate_transformation=kind)
    sizes = np.array((1, 1, *scales), np.float32)
    attributes = {"mode": "linear", "coordinate_transformation_mode": kind.value}
    (expected,) = onnx_runtime("Resize", [x, None, sizes], opset=19, **attributes)
    np.testing.assert_array_equal(run(layer, x)[0], expected)


@pytest.mark.parametrize("dtype", ["uint8", "int32"])
def test_antialiased_resizes_are_at_most_one_beside_onnx_runtime(dtype):
    # ONNX Runtime rounds once an axis, ONNX's reference and this once; its INT8 takes negative values for 0.
    x = integers(dtype, (1, 2, 8, 8), low=-5000, high=5000)
    for mode in (LINEAR, CUBIC):
        layer = Resize(
            scales=(1, 1, 0.5, 0.5),
            resize_mode=mode,
            coordinate_transformation=Coordinates.HALF_PIXEL,
            antialias=True,
            exclude_outside=True,
            cubic_coeff=-0.5,
        )
        sizes = np.array((1, 1, 0.5, 0.5), np.float32)
        attributes = {"cubic_coeff_a": -0.5, "exclude_outside": 1, "antialias": 1}
        (expected,) = onnx_runtime("Resize", [x, None, sizes], opset=19, mode=mode.value, **attributes)
        assert np.abs(run(layer, x)[0].astype(np.int64) - expected).max() <= 1


def reference_of_onnx(operator, inputs, **attributes):
    names = [f"i{index}" if array is not None else "" for index, array in enumerate(inputs)]
    feeds = {name: array for name, array in zip(names, inputs, strict=True) if array is not None}
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feeds.items()
    ]
    node = helper.make_node(operator, names, ["o"], **attributes)
    graph = helper.make_graph([node], "one node", values, [helper.make_empty_tensor_value_info("o")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    return onnx.reference.ReferenceEvaluator(model).run(None, feeds)[0]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_cubic_resizes_are_those_of_onnx_s_reference(dtype):
    x = integers(dtype, (1, 2, 4, 5), low=-200, high=255)
    layer = Resize(scales=(1, 1, 2, 2), resize_mode=CUBIC, coordinate_transformation=Coordinates.HALF_PIXEL)
    expected = reference_of_onnx("Resize", [x, None, np.array((1, 1, 2, 2), np.float32)], mode="cubic")
    assert np.abs(run(layer, x)[0].astype(np.float64) - expected).max() <= 1  # a tie may be rounded to either side
    assert np.mean(run(layer, x)[0] != expected) < 0.02


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("mode", InterpolationMode)
def test_grid_samples_are_those_of_onnx_s_reference(dtype, mode):
    x = integers(dtype, (1, 2, 4, 4), low=-200, high=255 if mode is not CUBIC else 60)
    # Places of quarters are exact in both.
    grid = np.random.default_rng(1).integers(-3, 4, (1, 3, 3, 2)).astype(np.float32) / 4
    words = {NEAREST: "nearest", LINEAR: "linear", CUBIC: "cubic"}
    layer = GridSample(interpolation_mode=mode, sample_mode=SampleMode.CLAMP, align_corners=False)
    # ONNX's reference makes zeros of integers that it blends: it is asked for the real numbers.
    real = reference_of_onnx(
        "GridSample", [x.astype(np.float64), grid], mode=words[mode], padding_mode="border", align_corners=0
    )
    y, limits = run(layer, x, grid)[0].astype(np.float64), np.iinfo(dtype)
    expected = np.trunc(np.clip(np.round(real, 9), float(limits.min), float(limits.max)))
    np.testing.assert_array_equal(y, expected)


def test_booleans_are_picked_from_a_grid_and_never_blended():
    x, grid = np.array([True, False]).reshape(1, 1, 1, 2), np.array([-0.5, 0, 0.5, 0], np.float32).reshape(1, 1, 2, 2)
    assert run(GridSample(interpolation_mode=NEAREST), x, grid)[0].ravel().tolist() == [True, False]
    network = Network()
    places = network.add_constant(grid.shape, grid).get_output(0)
    with pytest.raises(NetworkError, match="NEAREST"):
        _ = network.add_grid_sample(network.add_input("x", DataType.BOOL, x.shape), places).get_output(0).shape


# What is exact in the type itself ---------------------------------------------------------------------------------

OPERATORS = {
    "Add": ElementWiseOperation.SUM,
    "Sub": ElementWiseOperation.SUB,
    "Mul": ElementWiseOperation.PROD,
    "Div": ElementWiseOperation.DIV,
    "Mod": ElementWiseOperation.MOD,
    "Max": ElementWiseOperation.MAX,
    "Min": ElementWiseOperation.MIN,
    "Less": ElementWiseOperation.LESS,
    "Greater": ElementWiseOperation.GREATER,
    "Equal": ElementWiseOperation.EQUAL,
    "BitwiseAnd": ElementWiseOperation.BITWISE_AND,
    "BitwiseOr": ElementWiseOperation.BITWISE_OR,
    "BitwiseXor": ElementWiseOperation.BITWISE_XOR,
}


def compared_with_onnx_runtime(layer, operator, inputs, others=(), **attributes):
    try:
        (expected,) = onnx_runtime(operator, [*inputs, *others], **attributes)
    except Exception as error:
        if "NOT_IMPLEMENTED" not in str(error) and "Type Error" not in str(error):
            raise
        pytest.skip(f"ONNX Runtime has no {operator} of {inputs[0].dtype}")
    np.testing.assert_array_equal(run(layer, *inputs)[0], expected)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_pairs_of_integers_wrap_as_in_onnx_runtime(operator, dtype):
    x, y = integers(dtype, (300,)), integers(dtype, (300,), seed=1)
    if operator in ("Div", "Mod"):
        y = np.where((y == 0) | (y.astype(np.float64) == -1), 3, y).astype(dtype)
    compared_with_onnx_runtime(Elementwise(op=OPERATORS[operator]), operator, [x, y])


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("operator", ["Abs", "Neg", "Sign", "BitwiseNot"])
def test_single_integers_are_those_of_onnx_runtime(operator, dtype):
    x = integers(dtype, (300,), low=np.iinfo(dtype).min + 1)
    op = {"BitwiseNot": "BITWISE_NOT"}.get(operator, operator.upper())
    compared_with_onnx_runtime(Unary(op=UnaryOperation[op]), operator, [x])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_products_of_matrices_wrap_as_in_onnx_runtime(dtype):
    x, y = integers(dtype, (4, 9)), integers(dtype, (9, 5), seed=1)
    compared_with_onnx_runtime(MatrixMultiply(), "MatMul", [x, y])


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("operator", ["ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd"])
def test_reductions_are_those_of_onnx_runtime(operator, dtype):
    # Sums that do not fit are left out: ONNX Runtime makes them in FP64, so that they saturate or become the lowest.
    x = integers(dtype, (3, 6), low=-5, high=5)
    op = {"ReduceMean": "AVG"}.get(operator, operator.removeprefix("Reduce").upper())
    if operator in ("ReduceMax", "ReduceMin"):
        x = integers(dtype, (3, 6))
    layer = Reduce(op=ReduceOperation[op], axes=0b10, keep_dims=True)
    compared_with_onnx_runtime(layer, operator, [x], [np.array([1])])


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("reduction", ["ADD", "MUL", "MIN", "MAX"])
def test_scattered_integers_wrap_as_in_onnx_runtime(reduction, dtype):
    x, updates = integers(dtype, (5,)), integers(dtype, (4,), seed=1)
    indices = np.array([0, 3, 3, 1])
    layer = Scatter(mode=ScatterMode.ELEMENT, axis=0, reduction=ScatterReduction[reduction])
    compared_with_onnx_runtime(layer, "ScatterElements", [x, indices, updates], axis=0, reduction=reduction.lower())
