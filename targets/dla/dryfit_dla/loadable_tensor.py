"""Inputs and outputs of a loadable with their layout in the device's memory: what a runtime needs to fill a buffer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import ConfigError
from dryfit.network.data_types import DataType
from dryfit.target.formats import TensorFormat
from dryfit_dla.formats import INPUT_FORMATS, OUTPUT_FORMATS

Array = np.ndarray[Any, Any]


@frozen
class LoadableTensor:
    """One input or output.

    Attributes:
        name: the tensor's name in the network.
        dtype: FP16 or INT8.
        shape: logical extents, `[N, C, H, W]`.
        format: name of the tensor format, such as `CHW16`.
        strides_bytes: bytes from one element to the next along each axis of `shape`. Where channels are stored in
            vectors, the one along C goes from vector to vector, as `IExecutionContext.get_strides` counts it.
        size_bytes: bytes of the whole, with padding.
        family: platform family, which determines the padding of DLA_HWC4.
        scale: real value of one step for an INT8 tensor with a known scale; otherwise None.

    Example:
        >>> image = LoadableTensor.of("image", DataType.HALF, (1, 3, 4, 5), CHW16, "orin")
        >>> image.memory_shape, image.strides_bytes, image.size_bytes
        ((1, 1, 4, 5, 16), (640, 640, 160, 32), 640)
    """

    name: str
    dtype: DataType
    shape: tuple[int, ...]
    format: str
    strides_bytes: tuple[int, ...]
    size_bytes: int
    family: str
    scale: float | None = None

    @classmethod
    def of(
        cls,
        name: str,
        dtype: DataType,
        shape: tuple[int, ...],
        layout: TensorFormat,
        family: str,
        scale: float | None = None,
    ) -> LoadableTensor:
        """The record of a tensor in a format.

        Raises:
            ConfigError: the format is not defined for this shape and type.
        """
        vector = 1 if layout.channels_last else layout.channels_vector
        unit = dtype.bytes_of(1) * vector
        strides = [step * unit for step in layout.strides(shape, dtype, family)]
        return cls(
            name=name,
            dtype=dtype,
            shape=tuple(shape),
            format=layout.name,
            strides_bytes=tuple(strides),
            size_bytes=layout.size_bytes(shape, dtype, family),
            family=family,
            scale=scale,
        )

    @property
    def layout(self) -> TensorFormat:
        """The format's description.

        Raises:
            ConfigError: the DLA does not support this format for this type.
        """
        known = {one.name: one for table in (INPUT_FORMATS, OUTPUT_FORMATS) for one in table.get(self.dtype, ())}
        if self.format not in known:
            raise ConfigError(
                "The DLA does not support this tensor format for this type",
                where=f"tensor {self.name!r}",
                found=f"{self.format} for {self.dtype.text}",
                allowed=", ".join(known) or "FP16 or INT8",
                remedy="Choose a format that the DLA supports for this type",
            )
        return known[self.format]

    @property
    def memory_shape(self) -> tuple[int, ...]:
        """Extents of the C-contiguous array that fills the memory, in elements."""
        return self.layout.array_shape(self.shape, self.dtype, self.family)

    def memory(self, buffer: Any) -> Array:
        """A buffer's first `size_bytes` as an array of `memory_shape`: a view, writable where the buffer is.

        Args:
            buffer: anything with the buffer protocol, contiguous.

        Raises:
            ConfigError: the buffer is not contiguous, or is too small.
        """
        try:
            view = memoryview(buffer).cast("B")
        except TypeError as error:
            raise ConfigError(
                "The tensor's buffer must be contiguous",
                where=f"tensor {self.name!r}",
                found=f"{type(buffer).__name__}: {error}",
                allowed="a C-contiguous array, or anything with the buffer protocol",
                remedy="Pass a contiguous buffer, such as numpy.zeros(tensor.size_bytes, numpy.uint8)",
            ) from error
        if view.nbytes < self.size_bytes:
            raise ConfigError(
                "The buffer is too small for the tensor",
                where=f"tensor {self.name!r}, {self.dtype.text} {self.shape} in {self.format}",
                found=f"{view.nbytes} bytes",
                allowed=f"at least {self.size_bytes} bytes",
                remedy="Allocate the tensor's size_bytes",
            )
        elements = np.frombuffer(view, self.dtype.numpy, math.prod(self.memory_shape))
        return elements.reshape(self.memory_shape)

    def read(self, buffer: Any) -> Array:
        """Return a copy of the tensor of `shape` that a buffer holds in the device's format; padding is ignored.

        Raises:
            ConfigError: the buffer is too small.
        """
        return self.layout.unpack(self.memory(buffer), self.shape, self.family)

    def write(self, buffer: Any, array: Array) -> None:
        """Write a tensor of `shape` and `dtype` to a writable buffer, in the device's format; padding becomes zero.

        Raises:
            ConfigError: the array's shape or type differs, or the buffer is too small or read-only.
        """
        if array.shape != self.shape or array.dtype != self.dtype.numpy:
            raise ConfigError(
                "The array does not match the tensor's type and shape",
                where=f"tensor {self.name!r}",
                found=f"{array.dtype} {array.shape}",
                allowed=f"{self.dtype.numpy} {self.shape}",
                remedy="Cast and reshape the array",
            )
        memory = self.memory(buffer)
        if not memory.flags.writeable:
            raise ConfigError(
                "The buffer must be writable",
                where=f"tensor {self.name!r}",
                found=f"a read-only {type(buffer).__name__}",
                remedy="Use a writable one, such as numpy.zeros(tensor.size_bytes, numpy.uint8)",
            )
        memory[...] = self.layout.pack(array, self.family)
