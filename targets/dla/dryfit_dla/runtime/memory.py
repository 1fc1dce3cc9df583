"""The contents of a core: loaded modules, and registered buffers, which stay in the program's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit_dla.loadable import Loadable, LoadableTensor
from dryfit_dla.runtime.status import DlaError, Status

if TYPE_CHECKING:
    from dryfit_dla.runtime.device import Device


Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@frozen(eq=False)
class RegisteredMemory:
    """A buffer that tasks of one core can use. Made by `Device.register`.

    Attributes:
        device: the core that it is registered on.
        data: `uint8[size_bytes]`, the program's own memory.
    """

    device: Device = attrs.field(repr=False)
    data: Bytes = attrs.field(repr=False)

    @property
    def size_bytes(self) -> int:
        """Bytes of the buffer."""
        return self.data.nbytes

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return int(self.data.ctypes.data)

    def unregister(self) -> None:
        """Unregister it from the device.

        Raises:
            DlaError: a submission that has not ended uses it, or it is no longer registered.
        """
        self.device.unregister(self)

    def overlaps(self, other: RegisteredMemory) -> bool:
        """Whether they have a byte in common."""
        first, second = sorted((self, other), key=lambda one: one.address)
        return first.address + first.size_bytes > second.address


def raw_bytes(buffer: Any) -> Bytes:
    """The memory of a buffer as `uint8[size_bytes]`, without a copy, writable where the buffer is.

    Args:
        buffer: a numpy array, or anything with the buffer protocol, `__array_interface__` or DLPack in the CPU's
            memory; C-contiguous.

    Raises:
        DlaError: the buffer is not supported, not contiguous or empty.
    """
    array = _as_array(buffer)
    if array.dtype.hasobject or not array.flags.c_contiguous:
        raise DlaError(
            Status.INVALID_PARAM,
            "A buffer must be contiguous and hold plain numbers",
            where="register",
            found=f"{array.dtype} {array.shape} with strides {array.strides}",
            allowed="a C-contiguous array",
            remedy="Pass a C-contiguous array, such as numpy.zeros(tensor.size_bytes, numpy.uint8)",
        )
    if not array.nbytes:
        raise DlaError(
            Status.INVALID_ADDRESS,
            "A buffer must not be empty",
            where="register",
            found="0 bytes",
            allowed="at least 1 byte",
            remedy="Allocate the tensor's size_bytes",
        )
    return array.reshape(-1).view(np.uint8)


def _as_array(buffer: Any) -> np.ndarray[Any, Any]:
    try:
        if hasattr(buffer, "__array_interface__"):
            return np.asarray(buffer)
        if hasattr(buffer, "__dlpack__"):
            return np.from_dlpack(buffer)
        return np.frombuffer(memoryview(buffer).cast("B"), np.uint8)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise DlaError(
            Status.INVALID_PARAM,
            "The buffer is not accessible from the host",
            where="register",
            found=f"{type(buffer).__name__}: {error}",
            allowed="a numpy array, or anything with the buffer protocol, __array_interface__ or DLPack",
            remedy="Pass a host buffer, such as numpy.zeros(tensor.size_bytes, numpy.uint8)",
        ) from error


class Module:
    """A loadable that a core has loaded. Made by `Device.load`.

    Attributes:
        device: the core.
        loadable: what was loaded.
    """

    def __init__(self, device: Device, loadable: Loadable, num_threads: int) -> None:
        self.device = device
        self.loadable = loadable
        self._context = loadable.create_engine().create_execution_context(num_threads)

    def __repr__(self) -> str:
        return f"<Module {self.name!r} on {self.device.name}>"

    @property
    def name(self) -> str:
        """The loadable's name."""
        return self.loadable.name

    @property
    def input_attributes(self) -> Sequence[LoadableTensor]:
        """The inputs and their memory layouts, in the order in which tasks pass them."""
        return self.loadable.inputs

    @property
    def output_attributes(self) -> Sequence[LoadableTensor]:
        """The outputs and their memory layouts, in the order in which tasks pass them."""
        return self.loadable.outputs

    def unload(self) -> None:
        """Unload the module from its core.

        Raises:
            DlaError: a submission that has not ended uses it, or it is no longer loaded.
        """
        self.device.unload(self)

    def execute(self, inputs: Sequence[Bytes], outputs: Sequence[Bytes]) -> None:
        """Run the module once on raw memory, at least as large as the attributes specify; for the core's queue.

        The padding of inputs is not read. That of outputs becomes zero; bytes behind them stay as they are.

        Raises:
            DryfitError: a kernel fails.
        """
        arrays = {tensor.name: tensor.read(data) for tensor, data in zip(self.input_attributes, inputs, strict=True)}
        found = self._context.run(arrays)
        for tensor, data in zip(self.output_attributes, outputs, strict=True):
            tensor.write(data, found[tensor.name])
