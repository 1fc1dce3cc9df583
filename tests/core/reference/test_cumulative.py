import numpy as np
import pytest

from dryfit.errors import NetworkError
from dryfit.network.layers.cumulative import Cumulative, CumulativeOperation
from dryfit.reference.registry import evaluate

from .oracle import onnx_runtime, random_array, run


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_sums_agree_with_onnx_runtime(axis, exclusive, reverse, dtype):
    x = random_array((3, 4, 5), dtype)
    (expected,) = onnx_runtime("CumSum", [x, np.array(axis)], exclusive=int(exclusive), reverse=int(reverse))
    (y,) = run(Cumulative(exclusive=exclusive, reverse=reverse), x, np.array(axis))
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("exclusive", "reverse", "expected"),
    [
        (False, False, [2, 6, 24]),
        (True, False, [1, 2, 6]),
        (False, True, [24, 12, 4]),
        (True, True, [12, 4, 1]),
    ],
)
def test_products_are_those_of_the_elements_counted(exclusive, reverse, expected):
    layer = Cumulative(op=CumulativeOperation.PROD, exclusive=exclusive, reverse=reverse)
    assert run(layer, np.array([2, 3, 4], np.float32), np.array([0]))[0].tolist() == expected


def test_an_axis_that_is_not_there_is_refused():
    with pytest.raises(NetworkError, match="found 2; allowed: -2 to 1"):
        evaluate(Cumulative(), [random_array((2, 2)), np.array(2)])


def test_fp16_sums_in_fp32_and_rounds_once():
    x = np.full((4096,), 1, np.float16)
    assert run(Cumulative(), x, np.array(0))[0][-1] == 4096
