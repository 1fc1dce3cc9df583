"""Packing of 4-bit and 2-bit elements, held against onnx's own and against the bytes that documents draw."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from dryfit.network.data_types import DataType
from dryfit.network.packed_elements import packed, unpacked

NARROW = [dtype for dtype in DataType if dtype.bits < 8]


def elements_of(dtype: DataType, codes: list[int]) -> np.ndarray:
    """Elements by their bit patterns."""
    return unpacked(np.array(codes, np.uint8), dtype, len(codes) * 8 // dtype.bits)


def test_the_first_element_lies_in_the_low_bits() -> None:
    # The (2, 3) tensor that "Working with Quantized Types" packs has its first element in the 4 lowest bits.
    assert packed(np.array([[1, 2, 3], [4, 5, 6]], ml_dtypes.int4)).tolist() == [0x21, 0x43, 0x65]
    assert packed(np.array([-1, 7, -8], ml_dtypes.int4)).tolist() == [0x7F, 0x08]
    assert packed(np.array([1, 2, 3, 0, 1], ml_dtypes.uint2)).tolist() == [0b00111001, 0b01]


@pytest.mark.parametrize("dtype", NARROW, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 15])
def test_bytes_are_those_of_an_onnx_tensor(dtype: DataType, count: int) -> None:
    values = elements_of(dtype, [0xE4, 0x1B, 0x9C, 0x07, 0xF8, 0x35, 0xA2, 0x61])[:count]
    raw = numpy_helper.from_array(values, "t").raw_data
    assert packed(values).tobytes() == raw
    back = unpacked(np.frombuffer(raw, np.uint8), dtype, count)
    assert back.dtype == dtype.numpy
    np.testing.assert_array_equal(back.view(np.uint8), values.view(np.uint8))


@pytest.mark.parametrize("dtype", NARROW, ids=lambda dtype: dtype.name)
@given(data=st.binary(min_size=1, max_size=20))
def test_packing_what_was_unpacked_gives_the_same_bytes(dtype: DataType, data: bytes) -> None:
    contents = np.frombuffer(data, np.uint8)
    assert packed(unpacked(contents, dtype, contents.size * 8 // dtype.bits)).tobytes() == data


def test_codes_mean_the_numbers_that_onnx_reads() -> None:
    for dtype, number in ((DataType.INT4, TensorProto.INT4), (DataType.FP4, TensorProto.FLOAT4E2M1)):
        tensor = helper.make_tensor("t", number, [16], bytes(range(0x10, 0x100, 0x22)), raw=True)
        np.testing.assert_array_equal(
            unpacked(np.frombuffer(tensor.raw_data, np.uint8), dtype, 16).astype(np.float32),
            numpy_helper.to_array(tensor).astype(np.float32),
        )
