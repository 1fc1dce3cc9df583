"""Dequantize: types and refusals; the scale's shapes are tested with quantize."""

import pytest
from tests.core.network.layers.inferring import assert_refused, spec

from dryfit.network.data_types import DataType
from dryfit.network.layers.dequantize import Dequantize
from dryfit.network.layers.quantize import QUANTIZED_TYPES


@pytest.mark.parametrize("dtype", DataType)
def test_quantized_types_and_int32_are_taken(dtype):
    if dtype in (*QUANTIZED_TYPES, DataType.INT32):
        (output,) = Dequantize(to_type=DataType.HALF).infer_outputs([spec(2, dtype=dtype), spec()])
        assert (output.shape, output.dtype) == ((2,), DataType.HALF)
    else:
        assert_refused(Dequantize(), [spec(2, dtype=dtype), spec()], "not quantized", found=dtype.name)


def test_what_does_not_fit_is_refused():
    x = spec(2, 3, dtype=DataType.INT8)
    assert_refused(Dequantize(to_type=DataType.FP8), [x, spec()], "wider", found="FP8")
    assert_refused(Dequantize(), [x, spec(3)], "does not say of which axis", remedy="Set `axis`")
    zero = spec(dtype=DataType.UINT8)
    assert_refused(Dequantize(), [x, spec(), zero], "input's type", found="UINT8", allowed="INT8")
    assert_refused(Dequantize(), [x], "Input 1 is not connected")
