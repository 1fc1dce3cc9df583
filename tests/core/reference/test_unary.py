import numpy as np
import pytest

from dryfit.network.layers.unary import Unary, UnaryOperation

from .oracle import onnx_runtime, random_array, run

Op = UnaryOperation
OPERATORS = {
    Op.EXP: "Exp",
    Op.LOG: "Log",
    Op.SQRT: "Sqrt",
    Op.RECIP: "Reciprocal",
    Op.ABS: "Abs",
    Op.NEG: "Neg",
    Op.SIN: "Sin",
    Op.COS: "Cos",
    Op.TAN: "Tan",
    Op.SINH: "Sinh",
    Op.COSH: "Cosh",
    Op.ASIN: "Asin",
    Op.ACOS: "Acos",
    Op.ATAN: "Atan",
    Op.ASINH: "Asinh",
    Op.ACOSH: "Acosh",
    Op.ATANH: "Atanh",
    Op.CEIL: "Ceil",
    Op.FLOOR: "Floor",
    Op.ERF: "Erf",
    Op.SIGN: "Sign",
    Op.ROUND: "Round",
    Op.ISINF: "IsInf",
    Op.ISNAN: "IsNaN",
}


@pytest.mark.parametrize(("op", "operator"), OPERATORS.items(), ids=[op.name for op in OPERATORS])
def test_it_agrees_with_onnx_runtime(op, operator):
    x = np.concatenate([random_array((500,)) * 2, np.array([0, 1, -1, 0.5, 1.5, 2.5, -0.5, -2.5, np.inf, -np.inf])])
    x = x.astype(np.float32)
    if op not in (Op.ASINH, Op.SIN, Op.COS, Op.TAN):
        x = np.append(x, np.float32(np.nan))
    (expected,) = onnx_runtime(operator, [x])
    (y,) = run(Unary(op=op), x)
    assert y.dtype == expected.dtype
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_not_and_bitwise_not_agree_with_onnx_runtime():
    flags, bits = np.array([True, False]), np.array([0, 5, 255], np.uint8)
    np.testing.assert_array_equal(run(Unary(op=Op.NOT), flags)[0], onnx_runtime("Not", [flags])[0])
    np.testing.assert_array_equal(run(Unary(op=Op.BITWISE_NOT), bits)[0], onnx_runtime("BitwiseNot", [bits])[0])


def test_every_operation_is_tested():
    assert set(OPERATORS) | {Op.NOT, Op.BITWISE_NOT} == set(UnaryOperation)


@pytest.mark.parametrize("op", [Op.ABS, Op.NEG, Op.SIGN])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_integers_agree_with_onnx_runtime(op, dtype):
    x = random_array((50,), dtype)
    np.testing.assert_array_equal(run(Unary(op=op), x)[0], onnx_runtime(OPERATORS[op], [x])[0])


def test_large_integers_keep_every_bit():
    x = np.array([2**53 + 1, -(2**53) - 1], np.int64)
    assert run(Unary(op=Op.ABS), x)[0].tolist() == [2**53 + 1, 2**53 + 1]


def test_fp16_is_computed_in_fp32_and_rounded_once():
    x = random_array((500,), np.float16)
    expected = np.exp(x.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(run(Unary(op=Op.EXP), x)[0], expected)


def test_int8_is_rounded_and_saturates():
    assert run(Unary(op=Op.EXP), np.array([-1, 0, 1, 10], np.int8))[0].tolist() == [0, 1, 3, 127]
