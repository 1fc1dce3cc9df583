"""The references of elementwise, unary, select and scale layers, held against ONNX Runtime and numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from dryfit.network.layers.activation import Scale, ScaleMode
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation, Select, Unary, UnaryOperation

from .oracle import onnx_runtime, random_array, run

Op = ElementWiseOperation
ARITHMETIC = [
    (Op.SUM, "Add", {}),
    (Op.PROD, "Mul", {}),
    (Op.MAX, "Max", {}),
    (Op.MIN, "Min", {}),
    (Op.SUB, "Sub", {}),
    (Op.DIV, "Div", {}),
    (Op.FMOD, "Mod", {"fmod": 1}),
]
COMPARISONS = [
    (Op.EQUAL, "Equal"),
    (Op.GREATER, "Greater"),
    (Op.LESS, "Less"),
    (Op.GREATER_EQUAL, "GreaterOrEqual"),
    (Op.LESS_EQUAL, "LessOrEqual"),
]
BITWISE = [
    (Op.BITWISE_AND, "BitwiseAnd", {}),
    (Op.BITWISE_OR, "BitwiseOr", {}),
    (Op.BITWISE_XOR, "BitwiseXor", {}),
    (Op.SHIFT_LEFT, "BitShift", {"direction": "LEFT"}),
    (Op.SHIFT_RIGHT, "BitShift", {"direction": "RIGHT"}),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize(("op", "operator", "attributes"), ARITHMETIC, ids=[case[0].name for case in ARITHMETIC])
def test_arithmetic_agrees_with_onnx_runtime(op, operator, attributes, dtype):
    x, y = random_array((50, 40), dtype), random_array((50, 40), dtype, seed=1)
    y[y == 0] = 1
    (expected,) = onnx_runtime(operator, [x, y], **attributes)
    np.testing.assert_array_equal(run(Elementwise(op=op), x, y)[0], expected)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
def test_modulo_has_the_sign_of_the_divisor_as_in_onnx_runtime(dtype):
    x, y = random_array((500,), dtype), random_array((500,), dtype, seed=1)
    y[y == 0] = 3
    np.testing.assert_array_equal(run(Elementwise(op=Op.MOD), x, y)[0], onnx_runtime("Mod", [x, y])[0])


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
@pytest.mark.parametrize(("op", "operator"), COMPARISONS)
def test_comparisons_agree_with_onnx_runtime(op, operator, dtype):
    x, y = random_array((300,), dtype), random_array((300,), dtype, seed=1)
    y[::3] = x[::3]
    if dtype == np.float32:
        x[5], y[6], x[7], y[7] = np.nan, np.nan, np.inf, np.inf
    (result,) = run(Elementwise(op=op), x, y)
    assert result.dtype == np.bool_
    np.testing.assert_array_equal(result, onnx_runtime(operator, [x, y])[0])


@pytest.mark.parametrize(("op", "operator"), [(Op.AND, "And"), (Op.OR, "Or"), (Op.XOR, "Xor"), (Op.EQUAL, "Equal")])
def test_logic_agrees_with_onnx_runtime(op, operator):
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    np.testing.assert_array_equal(run(Elementwise(op=op), x, y)[0], onnx_runtime(operator, [x, y])[0])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64])
@pytest.mark.parametrize(("op", "operator", "attributes"), BITWISE, ids=[case[0].name for case in BITWISE])
def test_bits_agree_with_onnx_runtime(op, operator, attributes, dtype):
    x, y = random_array((100,), dtype), random_array((100,), dtype, seed=1) % 8
    np.testing.assert_array_equal(run(Elementwise(op=op), x, y)[0], onnx_runtime(operator, [x, y], **attributes)[0])


@pytest.mark.parametrize(
    ("base", "exponent"),
    [
        (np.float32, np.float32),
        (np.float32, np.int32),
        (np.float32, np.int64),
        (np.int32, np.int32),
        (np.int64, np.int64),
        (np.int32, np.float32),
        (np.int64, np.float32),
    ],
)
def test_powers_agree_with_onnx_runtime(base, exponent):
    x = np.array([1, 2, 3, 4, 5, 6, 7], base)
    y = np.array([0, 1, 2, 3, 0.5, 2.5, 4]).astype(exponent)
    (expected,) = onnx_runtime("Pow", [x, y])
    np.testing.assert_allclose(run(Elementwise(op=Op.POW), x, y)[0], expected, rtol=1e-6)


def test_integers_to_a_negative_power_are_truncated():
    x, y = np.array([1, 2, -1], np.int32), np.array([-1, -1, -3], np.int32)
    assert run(Elementwise(op=Op.POW), x, y)[0].tolist() == [1, 0, -1]


def test_division_of_integers_truncates_and_floor_division_does_not():
    x, y = np.array([7, -7, 7, -7], np.int32), np.array([2, 2, -2, -2], np.int32)
    assert run(Elementwise(op=Op.DIV), x, y)[0].tolist() == [3, -3, -3, 3]
    assert run(Elementwise(op=Op.FLOOR_DIV), x, y)[0].tolist() == [3, -4, -4, 3]
    floats = run(Elementwise(op=Op.FLOOR_DIV), x.astype(np.float32), y.astype(np.float32))[0]
    assert floats.tolist() == [3, -4, -4, 3]


def test_integers_wrap_around():
    x = np.array([100, -100, -128], np.int8)
    assert run(Elementwise(op=Op.SUM), x, x)[0].tolist() == [-56, 56, 0]


def test_fp16_is_computed_in_fp32_and_rounded_once_for_elementwise():
    x, y = random_array((500,), np.float16), random_array((500,), np.float16, seed=1)
    expected = (x.astype(np.float32) / y.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(run(Elementwise(op=Op.DIV), x, y)[0], expected)


@given(shapes=mutually_broadcastable_shapes(num_shapes=2, min_dims=3, max_dims=3, max_side=4), seed=st.integers(0, 5))
def test_shapes_broadcast_as_in_onnx_runtime(shapes, seed):
    shapes = [(1,) * (3 - len(shape)) + shape for shape in shapes.input_shapes]
    x, y = random_array(shapes[0], seed=seed), random_array(shapes[1], seed=seed + 10)
    np.testing.assert_array_equal(run(Elementwise(op=Op.SUB), x, y)[0], onnx_runtime("Sub", [x, y])[0])


UnaryOp = UnaryOperation
OPERATORS = {
    UnaryOp.EXP: "Exp",
    UnaryOp.LOG: "Log",
    UnaryOp.SQRT: "Sqrt",
    UnaryOp.RECIP: "Reciprocal",
    UnaryOp.ABS: "Abs",
    UnaryOp.NEG: "Neg",
    UnaryOp.SIN: "Sin",
    UnaryOp.COS: "Cos",
    UnaryOp.TAN: "Tan",
    UnaryOp.SINH: "Sinh",
    UnaryOp.COSH: "Cosh",
    UnaryOp.ASIN: "Asin",
    UnaryOp.ACOS: "Acos",
    UnaryOp.ATAN: "Atan",
    UnaryOp.ASINH: "Asinh",
    UnaryOp.ACOSH: "Acosh",
    UnaryOp.ATANH: "Atanh",
    UnaryOp.CEIL: "Ceil",
    UnaryOp.FLOOR: "Floor",
    UnaryOp.ERF: "Erf",
    UnaryOp.SIGN: "Sign",
    UnaryOp.ROUND: "Round",
    UnaryOp.ISINF: "IsInf",
    UnaryOp.ISNAN: "IsNaN",
}


@pytest.mark.parametrize(("op", "operator"), OPERATORS.items(), ids=[op.name for op in OPERATORS])
def test_unary_agrees_with_onnx_runtime(op, operator):
    x = np.concatenate([random_array((500,)) * 2, np.array([0, 1, -1, 0.5, 1.5, 2.5, -0.5, -2.5, np.inf, -np.inf])])
    x = x.astype(np.float32)
    if op not in (UnaryOp.ASINH, UnaryOp.SIN, UnaryOp.COS, UnaryOp.TAN):
        x = np.append(x, np.float32(np.nan))
    (expected,) = onnx_runtime(operator, [x])
    (y,) = run(Unary(op=op), x)
    assert y.dtype == expected.dtype
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_not_and_bitwise_not_agree_with_onnx_runtime():
    flags, bits = np.array([True, False]), np.array([0, 5, 255], np.uint8)
    np.testing.assert_array_equal(run(Unary(op=UnaryOp.NOT), flags)[0], onnx_runtime("Not", [flags])[0])
    np.testing.assert_array_equal(run(Unary(op=UnaryOp.BITWISE_NOT), bits)[0], onnx_runtime("BitwiseNot", [bits])[0])


def test_every_operation_is_tested():
    assert set(OPERATORS) | {UnaryOp.NOT, UnaryOp.BITWISE_NOT, UnaryOp.RSQRT} == set(UnaryOperation)


def test_reciprocal_roots_and_squared_differences():
    x, y = random_array((50,)), random_array((50,))
    (root,) = run(Unary(op=UnaryOp.RSQRT), np.abs(x))
    np.testing.assert_allclose(root, 1 / np.sqrt(np.abs(x)), rtol=1e-6)
    (square,) = run(Elementwise(op=ElementWiseOperation.SQUARED_DIFFERENCE), x, y)
    np.testing.assert_array_equal(square, (x - y) ** 2)


@pytest.mark.parametrize("op", [UnaryOp.ABS, UnaryOp.NEG, UnaryOp.SIGN])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_integers_agree_with_onnx_runtime(op, dtype):
    x = random_array((50,), dtype)
    np.testing.assert_array_equal(run(Unary(op=op), x)[0], onnx_runtime(OPERATORS[op], [x])[0])


def test_large_integers_keep_every_bit():
    x = np.array([2**53 + 1, -(2**53) - 1], np.int64)
    assert run(Unary(op=UnaryOp.ABS), x)[0].tolist() == [2**53 + 1, 2**53 + 1]


def test_fp16_is_computed_in_fp32_and_rounded_once_for_unary():
    x = random_array((500,), np.float16)
    expected = np.exp(x.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(run(Unary(op=UnaryOp.EXP), x)[0], expected)


def test_int8_is_rounded_and_saturates():
    assert run(Unary(op=UnaryOp.EXP), np.array([-1, 0, 1, 10], np.int8))[0].tolist() == [0, 1, 3, 127]


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("shapes", [((2, 3),) * 3, ((2, 1), (1, 3), (2, 3)), ((1, 1), (2, 3), (1, 3))])
def test_select_agrees_with_onnx_runtime(dtype, shapes):
    condition = random_array(shapes[0]) > 0
    a, b = random_array(shapes[1], dtype, seed=1), random_array(shapes[2], dtype, seed=2)
    (expected,) = onnx_runtime("Where", [condition, a, b])
    (output,) = run(Select(), condition, a, b)
    np.testing.assert_array_equal(output, expected)


def test_one_coefficient_a_channel_agrees_with_batch_normalization_of_onnx_runtime():
    x = random_array((2, 3, 4, 5))
    gamma, beta, mean = (random_array((3,), seed=seed) for seed in (1, 2, 3))
    variance = np.abs(random_array((3,), seed=4)) + 0.5
    (expected,) = onnx_runtime("BatchNormalization", [x, gamma, beta, mean, variance], epsilon=1e-3)
    factor = gamma / np.sqrt(variance + 1e-3)
    (y,) = run(Scale(mode=ScaleMode.CHANNEL, scale=factor, shift=beta - mean * factor), x)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("mode", "axis", "shape"),
    [
        (ScaleMode.UNIFORM, 1, (1, 1, 1)),
        (ScaleMode.CHANNEL, 0, (2, 1, 1)),
        (ScaleMode.CHANNEL, 2, (1, 1, 4)),
        (ScaleMode.ELEMENTWISE, 1, (1, 3, 4)),
        (ScaleMode.ELEMENTWISE, 0, (2, 3, 4)),
    ],
)
def test_coefficients_are_spread_as_the_mode_has_it(mode, axis, shape):
    x = np.abs(random_array((2, 3, 4)))
    scale, shift, power = (np.abs(random_array(shape, seed=seed)) for seed in (1, 2, 3))
    layer = Scale(mode=mode, channel_axis=axis, scale=scale.ravel(), shift=shift.ravel(), power=power.ravel())
    np.testing.assert_allclose(run(layer, x)[0], (x * scale + shift) ** power, rtol=1e-5)


@pytest.mark.parametrize("absent", [None, np.zeros(0, np.float32)])
def test_absent_coefficients_change_nothing(absent):
    x = random_array((1, 2, 2))
    np.testing.assert_array_equal(run(Scale(mode=ScaleMode.CHANNEL, scale=absent, shift=absent, power=absent), x)[0], x)


def test_fp16_rounds_the_scale_and_not_the_shift():
    x = np.ones((1, 1, 1), np.float16)
    layer = Scale(mode=ScaleMode.UNIFORM, scale=np.array([-2049.0]), shift=np.array([2049.25]))
    assert run(layer, x)[0].item() == 1.25  # -2049 is -2048 in FP16
