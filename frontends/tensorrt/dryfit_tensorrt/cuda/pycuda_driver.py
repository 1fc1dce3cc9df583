"""`pycuda.driver`: allocations that free themselves, copies, streams, events and contexts; errors are exceptions."""

from __future__ import annotations

import builtins
import enum
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dryfit_tensorrt import memory
from dryfit_tensorrt.cuda import copies, streams
from dryfit_tensorrt.cuda import device as devices
from dryfit_tensorrt.cuda.copies import MemcpyKind
from dryfit_tensorrt.cuda.driver import CUdevice_attribute, allocate, free
from dryfit_tensorrt.cuda.results import TEXTS, CudaCallError, code_of, refusing
from dryfit_tensorrt.memory import DeviceMemoryError, MemoryKind

Array = npt.NDArray[Any]
Shape = int | Sequence[int]


class Error(Exception):
    """Anything that CUDA reports."""


class LogicError(Error):
    """A wrong argument or handle."""


class LaunchError(Error):
    """A kernel failed."""


class RuntimeError(Error):  # noqa: A001  PyCUDA's name
    """The system failed."""


class MemoryError(Error, builtins.MemoryError):  # noqa: A001  PyCUDA's name
    """There is not enough memory."""


Function = TypeVar("Function", bound=Callable[..., Any])


def raising(name: str) -> Callable[[Function], Function]:
    """Turn the errors of a function into PyCUDA's, with the name of the driver's function."""

    def made(function: Function) -> Function:
        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            try:
                return function(*arguments, **named)
            except (CudaCallError, DeviceMemoryError, builtins.MemoryError) as error:
                if isinstance(error, Error):
                    raise
                code = code_of(error)
                text = f"{name} failed: {TEXTS[code]}"
                kind = MemoryError if isinstance(error, builtins.MemoryError) else LogicError
                raise kind(f"{text}: {error}" if str(error) else text) from error

        return call  # type: ignore[return-value]  # it has the function's signature

    return made


# The device and its context -------------------------------------------------------------------------------------------


def init(flags: int = 0) -> None:
    """Do nothing: there is nothing to initialize."""


def get_version() -> tuple[int, int, int]:
    """Return the version of CUDA whose functions these are."""
    return devices.CUDA_VERSION // 1000, devices.CUDA_VERSION % 1000 // 10, 0


def get_driver_version() -> int:
    """Return the same, as the driver reports it."""
    return devices.CUDA_VERSION


def mem_get_info() -> tuple[int, int]:
    """Return free and total memory of the device in bytes."""
    gpu = devices.current_device()
    return gpu.free_bytes, gpu.total_bytes


device_attribute = enum.IntEnum(  # type: ignore[misc]  # the members come from the driver's
    "device_attribute", {one.name.removeprefix("CU_DEVICE_ATTRIBUTE_"): one.value for one in CUdevice_attribute}
)


class Device:
    """The device.

    Args:
        number: 0, or a PCI address, which is not compared.
    """

    @raising("cuDeviceGet")
    def __init__(self, number: int | str = 0) -> None:
        self._number = 0 if isinstance(number, str) else devices.check_ordinal(number)

    @staticmethod
    def count() -> int:
        """Return 1."""
        return 1

    def name(self) -> str:
        """Return its name."""
        return devices.current_device().name

    def compute_capability(self) -> tuple[int, int]:
        """Return its compute capability."""
        return devices.current_device().capability

    def total_memory(self) -> int:
        """Return its memory in bytes."""
        return devices.current_device().total_bytes

    def pci_bus_id(self) -> str:
        """Return an address."""
        return "0000:00:00.0"

    @raising("cuDeviceGetAttribute")
    def get_attribute(self, attr: int) -> int:
        """Return an attribute."""
        return devices.attribute(attr)

    def get_attributes(self) -> dict[Any, int]:
        """Return all attributes."""
        return {one: devices.attribute(one) for one in device_attribute}

    def __getattr__(self, name: str) -> int:
        if name.upper() in device_attribute.__members__:
            return devices.attribute(device_attribute[name.upper()])
        raise AttributeError(f"dryfit's pycuda.driver.Device does not have {name!r}", name=name)

    def make_context(self, flags: int = 0) -> Context:
        """Return the context."""
        return Context()

    def retain_primary_context(self) -> Context:
        """Return the context."""
        return Context()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device)

    def __hash__(self) -> int:
        return hash(Device)

    def __int__(self) -> int:
        return self._number


class Context:
    """The context; there is one, and it is always current."""

    handle = 0x100

    def push(self) -> None:
        """Do nothing."""

    @staticmethod
    def pop() -> None:
        """Do nothing."""

    def detach(self) -> None:
        """Do nothing."""

    @staticmethod
    def attach(flags: int = 0) -> Context:
        """Return the context."""
        return Context()

    @staticmethod
    def get_current() -> Context:
        """Return the context."""
        return Context()

    @staticmethod
    def synchronize() -> None:
        """Wait for all work, which is done."""

    @staticmethod
    def get_device() -> Device:
        """Return the device."""
        return Device(0)

    def get_api_version(self) -> int:
        """Return the version of the driver's functions."""
        return devices.CUDA_VERSION

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context)

    def __hash__(self) -> int:
        return hash(Context)


class ctx_flags(enum.IntFlag):
    """Flags of contexts; none changes anything here."""

    SCHED_AUTO = 0
    SCHED_SPIN = 1
    SCHED_YIELD = 2
    SCHED_BLOCKING_SYNC = BLOCKING_SYNC = 4
    MAP_HOST = 8


class event_flags(enum.IntFlag):
    """Flags of events; none changes anything here."""

    DEFAULT = 0
    BLOCKING_SYNC = 1
    DISABLE_TIMING = 2
    INTERPROCESS = 4


class host_alloc_flags(enum.IntFlag):
    """Flags of pinned memory; none changes anything here."""

    PORTABLE = 1
    DEVICEMAP = 2
    WRITECOMBINED = 4


class mem_attach_flags(enum.IntFlag):
    """Flags of managed memory; none changes anything here."""

    GLOBAL = 1
    HOST = 2
    SINGLE = 4


# Allocations ----------------------------------------------------------------------------------------------------------


class PointerHolderBase:
    """A class to derive objects from that stand for a device address."""

    def get_pointer(self) -> int:
        """Return the address; derived classes define it."""
        raise NotImplementedError

    def __int__(self) -> int:
        return self.get_pointer()

    def __index__(self) -> int:
        return self.get_pointer()


class DeviceAllocation:
    """Device memory that is freed with the last reference to it.

    Args:
        address: of the allocation.
        size: its number of bytes.
    """

    def __init__(self, address: int, size: int) -> None:
        self._address = address
        self._size = size
        self._is_live = True

    def __int__(self) -> int:
        return self._address

    def __index__(self) -> int:
        return self._address

    def __eq__(self, other: object) -> bool:
        return hasattr(other, "__int__") and int(other) == self._address

    def __hash__(self) -> int:
        return hash(self._address)

    def as_buffer(self, size: int, offset: int = 0) -> memoryview:
        """Return a part of the memory as a buffer."""
        return memory.view(self._address + offset, size).data

    @raising("cuMemFree")
    def free(self) -> None:
        """Free the memory."""
        if not self._is_live:
            raise CudaCallError(
                1, "The memory was freed before", found=f"{self._address:#x}", remedy="Free each allocation once"
            )
        free(self._address)
        self._is_live = False

    def __del__(self) -> None:
        if self._is_live and memory.allocation_at(self._address) is not None:
            free(self._address)


@raising("cuMemAlloc")
def mem_alloc(bytes: int) -> DeviceAllocation:
    """Allocate device memory."""
    return DeviceAllocation(allocate(bytes), int(bytes))


def mem_alloc_like(ary: Any) -> DeviceAllocation:
    """Allocate device memory for as many bytes as an array has."""
    return mem_alloc(ary.nbytes)


@raising("cuMemAllocPitch")
def mem_alloc_pitch(width: int, height: int, access_size: int) -> tuple[DeviceAllocation, int]:
    """Allocate rows of `width` bytes; returns the allocation and the distance between rows."""
    pitch = -(-int(width) // memory.ALIGNMENT) * memory.ALIGNMENT
    return mem_alloc(pitch * int(height)), pitch


class HostAllocation:
    """Pinned or managed memory behind an array, which is freed with the last array that uses it.

    Args:
        shape: of the array.
        dtype: of the array.
        order: C or F.
        kind: of the memory.
    """

    def __init__(self, shape: Shape, dtype: npt.DTypeLike, order: str, kind: MemoryKind) -> None:
        dims = dims_of(shape)
        item = np.dtype(dtype)
        self._kind = kind
        self._address = memory.allocate(math.prod(dims) * item.itemsize, kind)
        self.__array_interface__ = {
            "version": 3,
            "shape": dims,
            "strides": strides_of(dims, item.itemsize, order),
            "typestr": item.str,
            "data": (self._address, False),
        }

    def get_device_pointer(self) -> int:
        """Return the address, which is the same on the device."""
        return self._address

    def attach(self, mem_flags: int, stream: Any = None) -> None:
        """Do nothing: managed memory is always visible to all streams."""

    def free(self) -> None:
        """Do nothing: the memory is freed with the last array that uses it."""

    def __del__(self) -> None:
        if hasattr(self, "_address"):
            memory.free(self._address, self._kind)


def dims_of(shape: Any) -> tuple[int, ...]:
    """Return extents from an integer or a sequence, such as TensorRT's `Dims`."""
    return tuple(map(int, shape)) if hasattr(shape, "__len__") else (int(shape),)


def strides_of(dims: Sequence[int], itemsize: int, order: str) -> tuple[int, ...]:
    """Return the bytes between values per axis, for order C or F."""
    steps = dims if order == "F" else dims[::-1]
    found = [itemsize * math.prod(steps[:index]) for index in range(len(dims))]
    return tuple(found if order == "F" else found[::-1])


class PagelockedHostAllocation(HostAllocation):
    """Pinned host memory: the `base` of arrays in it."""


class ManagedAllocation(HostAllocation):
    """Managed memory: the `base` of arrays in it."""


@raising("cuMemHostAlloc")
def pagelocked_empty(shape: Shape, dtype: npt.DTypeLike, order: str = "C", mem_flags: int = 0) -> Array:
    """Return an array in pinned host memory."""
    return np.asarray(PagelockedHostAllocation(shape, dtype, order, MemoryKind.PINNED))


def pagelocked_zeros(shape: Shape, dtype: npt.DTypeLike, order: str = "C", mem_flags: int = 0) -> Array:
    """Return an array of zeros in pinned host memory."""
    return pagelocked_empty(shape, dtype, order, mem_flags)


def pagelocked_empty_like(array: Array, mem_flags: int = 0) -> Array:
    """Return an array in pinned host memory with the shape and type of another."""
    return pagelocked_empty(array.shape, array.dtype, order_of(array), mem_flags)


pagelocked_zeros_like = pagelocked_empty_like


@raising("cuMemAllocManaged")
def managed_empty(shape: Shape, dtype: npt.DTypeLike, order: str = "C", mem_flags: int = 1) -> Array:
    """Return an array in memory that host and device share."""
    return np.asarray(ManagedAllocation(shape, dtype, order, MemoryKind.MANAGED))


def managed_zeros(shape: Shape, dtype: npt.DTypeLike, order: str = "C", mem_flags: int = 1) -> Array:
    """Return an array of zeros in memory that host and device share."""
    return managed_empty(shape, dtype, order, mem_flags)


def managed_empty_like(array: Array, mem_flags: int = 1) -> Array:
    """Return an array in shared memory with the shape and type of another."""
    return managed_empty(array.shape, array.dtype, order_of(array), mem_flags)


managed_zeros_like = managed_empty_like


def aligned_empty(shape: Shape, dtype: npt.DTypeLike, order: str = "C", alignment: int = 4096) -> Array:
    """Return an array on the host; memory need not be aligned here to be registered."""
    return np.zeros(shape, dtype, order="F" if order == "F" else "C")


aligned_zeros = aligned_empty


class RegisteredHostMemory:
    """An array of the host that the device can access: the `base` of what `register_host_memory` returns.

    Args:
        array: the array.
    """

    def __init__(self, array: Array) -> None:
        self._array = array
        self._address = array.ctypes.data
        memory.register(self._address, array.nbytes)
        self.__array_interface__ = array.__array_interface__

    def get_device_pointer(self) -> int:
        """Return the address, which is the same on the device."""
        return self._address

    def unregister(self) -> None:
        """Take the array from the device; again does nothing."""
        if self._address:
            memory.free(self._address, MemoryKind.REGISTERED)
            self._address = 0

    def __del__(self) -> None:
        if hasattr(self, "__array_interface__"):
            self.unregister()


@raising("cuMemHostRegister")
def register_host_memory(ary: Array, flags: int = 0) -> Array:
    """Return an array with the same memory, which the device can access."""
    return np.asarray(RegisteredHostMemory(ary))


def start_profiler() -> None:
    """Do nothing: there is no GPU to profile."""


def stop_profiler() -> None:
    """Do nothing: there is no GPU to profile."""


def order_of(array: Array) -> str:
    """Return F for an array in Fortran's order, and C for others."""
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


# Copies ---------------------------------------------------------------------------------------------------------------


def _bytes_of(buffer: Any) -> int:
    return memoryview(buffer).nbytes if not hasattr(buffer, "nbytes") else int(buffer.nbytes)


def _on_host(buffer: Any) -> Any:
    """Return a buffer as it lies in memory; PyCUDA copies arrays in Fortran's order as they are."""
    return buffer.T if isinstance(buffer, np.ndarray) and order_of(buffer) == "F" else buffer


@raising("cuMemcpyHtoD")
def memcpy_htod(dest: Any, src: Any) -> None:
    """Copy a buffer to the device."""
    copies.copy(dest, _on_host(src), _bytes_of(src), MemcpyKind.cudaMemcpyHostToDevice)


@raising("cuMemcpyHtoDAsync")
def memcpy_htod_async(dest: Any, src: Any, stream: Any = None) -> None:
    """Copy a buffer to the device in the order of a stream."""
    streams.check_stream(stream)
    copies.copy(dest, _on_host(src), _bytes_of(src), MemcpyKind.cudaMemcpyHostToDevice)


@raising("cuMemcpyDtoH")
def memcpy_dtoh(dest: Any, src: Any) -> None:
    """Copy from the device into a buffer."""
    copies.copy(_on_host(dest), src, _bytes_of(dest), MemcpyKind.cudaMemcpyDeviceToHost)


@raising("cuMemcpyDtoHAsync")
def memcpy_dtoh_async(dest: Any, src: Any, stream: Any = None) -> None:
    """Copy from the device into a buffer in the order of a stream."""
    streams.check_stream(stream)
    copies.copy(_on_host(dest), src, _bytes_of(dest), MemcpyKind.cudaMemcpyDeviceToHost)


@raising("cuMemcpyDtoD")
def memcpy_dtod(dest: Any, src: Any, size: int) -> None:
    """Copy on the device."""
    copies.copy(dest, src, size, MemcpyKind.cudaMemcpyDeviceToDevice)


@raising("cuMemcpyDtoDAsync")
def memcpy_dtod_async(dest: Any, src: Any, size: int, stream: Any = None) -> None:
    """Copy on the device in the order of a stream."""
    streams.check_stream(stream)
    copies.copy(dest, src, size, MemcpyKind.cudaMemcpyDeviceToDevice)


@raising("cuMemsetD8")
def memset_d8(dest: Any, data: int, size: int) -> None:
    """Set bytes."""
    copies.fill(dest, data, size)


@raising("cuMemsetD16")
def memset_d16(dest: Any, data: int, size: int) -> None:
    """Set values of 16 bits."""
    copies.fill(dest, data, size, 2)


@raising("cuMemsetD32")
def memset_d32(dest: Any, data: int, size: int) -> None:
    """Set values of 32 bits."""
    copies.fill(dest, data, size, 4)


def memset_d8_async(dest: Any, data: int, size: int, stream: Any = None) -> None:
    """Set bytes in the order of a stream."""
    memset_d8(dest, data, size)


def memset_d32_async(dest: Any, data: int, size: int, stream: Any = None) -> None:
    """Set values of 32 bits in the order of a stream."""
    memset_d32(dest, data, size)


def to_device(bf_obj: Any) -> DeviceAllocation:
    """Return an allocation with a copy of a buffer."""
    found = mem_alloc(_bytes_of(bf_obj))
    memcpy_htod(found, bf_obj)
    return found


def from_device(devptr: Any, shape: Shape, dtype: npt.DTypeLike, order: str = "C") -> Array:
    """Return a copy of device memory as an array."""
    found = np.empty(shape, dtype, order="F" if order == "F" else "C")
    memcpy_dtoh(found, devptr)
    return found


def from_device_like(devptr: Any, other_ary: Array) -> Array:
    """Return a copy of device memory as an array with the shape and type of another."""
    return from_device(devptr, other_ary.shape, other_ary.dtype, order_of(other_ary))


# Streams and events ---------------------------------------------------------------------------------------------------


class Stream:
    """A stream, whose work is done when it is queued.

    Args:
        flags: ignored.
    """

    def __init__(self, flags: int = 0) -> None:
        self.handle = streams.create_stream()

    def synchronize(self) -> None:
        """Wait for its work, which is done."""

    def is_done(self) -> bool:
        """Return True."""
        return True

    def wait_for_event(self, event: Event) -> None:
        """Let the stream wait for an event."""
        streams.check_event(event.handle)

    def __int__(self) -> int:
        return self.handle

    def __index__(self) -> int:
        return self.handle

    def __del__(self) -> None:
        streams.destroy_stream(self.handle)


class Event:
    """An event.

    Args:
        flags: ignored.
    """

    def __init__(self, flags: int = 0) -> None:
        self.handle = streams.create_event()

    @raising("cuEventRecord")
    def record(self, stream: Any = None) -> Event:
        """Record it in a stream."""
        streams.record_event(self.handle, stream)
        return self

    def synchronize(self) -> Event:
        """Wait for it; it has happened."""
        return self

    def query(self) -> bool:
        """Return True."""
        return True

    @raising("cuEventElapsedTime")
    def time_since(self, event: Event) -> float:
        """Return the time from another event to this one on this machine, in milliseconds."""
        return streams.elapsed_ms(event.handle, self.handle)

    def time_till(self, event: Event) -> float:
        """Return the time from this event to another one on this machine, in milliseconds."""
        return event.time_since(self)

    def __del__(self) -> None:
        streams.destroy_event(self.handle)


KERNEL_NAMES = ("Module", "module_from", "Function", "In", "Out", "Linker", "Memcpy", "Texture", "Array")
"""How names begin that load kernels, pass arguments to them or need textures."""

__getattr__ = refusing("pycuda.driver", KERNEL_NAMES)
