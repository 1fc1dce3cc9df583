"""ONNX tensors become the same arrays that onnx reads, in each of the ways they can be stored."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dryfit.errors import OnnxImportError
from dryfit.network.data_types import DataType
from dryfit.onnx.external_data import ExternalData
from dryfit.onnx.tensors import DATA_TYPES, array_of

NOWHERE = ExternalData(None)


@pytest.mark.parametrize("number", DATA_TYPES, ids=TensorProto.DataType.Name)
@pytest.mark.parametrize("raw", [True, False], ids=["raw", "fields"])
def test_every_element_type_is_read_as_onnx_reads_it(number: int, raw: bool) -> None:
    dtype = helper.tensor_dtype_to_np_dtype(number)
    generator = np.random.default_rng(number)
    codes = generator.integers(0, 256, (3, 5)).astype(np.uint8)
    values = (
        (codes & 1).astype(dtype) if DATA_TYPES[number] is DataType.BOOL else codes.astype(np.float32).astype(dtype)
    )
    if raw:
        tensor = numpy_helper.from_array(values, "t")
    else:
        tensor = helper.make_tensor("t", number, values.shape, values.reshape(-1))
        assert not tensor.HasField("raw_data")
    expected = numpy_helper.to_array(tensor)
    array = array_of(tensor, NOWHERE)
    assert array.dtype == DATA_TYPES[number].numpy == expected.dtype
    assert array.shape == (3, 5)
    np.testing.assert_array_equal(array.view(np.uint8), expected.view(np.uint8))


def test_negative_four_bit_integers_keep_their_sign() -> None:
    values = np.arange(-8, 7).astype(ml_dtypes.int4)
    np.testing.assert_array_equal(array_of(numpy_helper.from_array(values, "t"), NOWHERE), values)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_scalars_and_empty_tensors_keep_their_shape(shape: tuple[int, ...]) -> None:
    assert array_of(numpy_helper.from_array(np.ones(shape, np.float32), "t"), NOWHERE).shape == shape


def test_raw_data_are_not_copied_by_the_conversion() -> None:
    array = array_of(numpy_helper.from_array(np.ones((4, 4), np.float32), "t"), NOWHERE)
    assert not array.flags.owndata
    assert not array.flags.writeable


@pytest.mark.parametrize(
    ("number", "name"),
    [(TensorProto.STRING, "STRING"), (TensorProto.COMPLEX64, "COMPLEX64"), (TensorProto.UNDEFINED, "UNDEFINED")],
)
def test_a_type_that_networks_lack_is_named(number: int, name: str) -> None:
    with pytest.raises(OnnxImportError, match=f"tensor 't'.*found {name}; allowed: FP32, FP16"):
        array_of(TensorProto(name="t", data_type=number), NOWHERE)


def test_a_wrong_number_of_values_is_refused() -> None:
    tensor = TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[3], float_data=[1, 2])
    with pytest.raises(OnnxImportError, match=r"found 2 values; allowed: 3 for shape \(3,\)"):
        array_of(tensor, NOWHERE)
    tensor = TensorProto(name="t", data_type=TensorProto.INT16, dims=[3], raw_data=bytes(5))
    with pytest.raises(OnnxImportError, match=r"found 5 bytes; allowed: 6 bytes for INT16 \(3,\)"):
        array_of(tensor, NOWHERE)


def test_a_negative_extent_is_refused() -> None:
    with pytest.raises(OnnxImportError, match=r"tensor 't': .*must not be negative.*\(-3, -1\)"):
        array_of(onnx.TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[-3, -1]), NOWHERE)
