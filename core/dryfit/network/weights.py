"""Weights with an explicit type, for packed 4-bit elements as in TensorRT's own `Weights`."""

from __future__ import annotations

from typing import Any

import numpy as np

from dryfit.errors import NetworkError
from dryfit.network.data_types import DataType
from dryfit.network.packed_elements import packed, unpacked
from dryfit.network.tensor import Array

_PACKED = "Pack two 4-bit or four 2-bit elements into a byte, the first in the low bits"


class Weights:
    """TensorRT's `Weights`: an array, or bytes with the type and number of their elements.

    Every layer parameter that accepts an array also accepts `Weights`. An array does not need to be wrapped: its dtype
    defines the element type, and numpy stores 4-bit elements one per byte (`ml_dtypes.int4`,
    `ml_dtypes.float4_e2m1fn`).

    Args:
        contents: an array, or the type of the elements in `data`.
        data: bytes in row-major order, little-endian; 4-bit elements are packed two per byte, the first in the low
            bits.
        count: number of elements.

    Raises:
        NetworkError: The number of bytes does not match the number of elements.

    Example:
        >>> from dryfit import DataType, Weights
        >>> weights = Weights(DataType.INT4, bytes([0x21, 0x0F]), 3)
        >>> weights.numpy().astype(int).tolist(), weights.nbytes
        ([1, 2, -1], 2)
    """

    def __init__(self, contents: Any = DataType.FLOAT, data: Any = b"", count: int = 0) -> None:
        if not isinstance(contents, DataType):
            self._elements = np.asarray(contents)
            self.dtype = DataType.from_numpy(self._elements.dtype)
            return
        self.dtype = contents
        found = np.frombuffer(np.ascontiguousarray(data) if isinstance(data, np.ndarray) else data, np.uint8)
        if count < 0 or found.size != contents.bytes_of(count):
            raise NetworkError(
                "The number of bytes does not match the number of elements",
                where="Weights",
                found=f"{found.size} bytes",
                allowed=f"{contents.bytes_of(max(count, 0))} bytes for {count} elements of {contents.name}",
                remedy=_PACKED if contents.bits < 8 else None,
            )
        self._elements = unpacked(found, contents, count) if contents.bits < 8 else found.view(contents.numpy)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._elements.size

    @property
    def nbytes(self) -> int:
        """Size of the packed elements in bytes."""
        return self.dtype.bytes_of(self.size)

    def numpy(self) -> Array:
        """Return the elements as an array; 4-bit elements are stored one per byte."""
        return self._elements

    def tobytes(self) -> bytes:
        """Return the elements in row-major order; 4-bit elements are packed two per byte."""
        return (packed(self._elements) if self.dtype.bits < 8 else self._elements).tobytes()

    def __len__(self) -> int:
        return self.size

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self._elements.astype(dtype or self._elements.dtype, copy=bool(copy))

    def __repr__(self) -> str:
        return f"Weights({self.dtype.name}, {self.size} elements)"
