"""`cuda.bindings.runtime`, once `cuda.cudart`: allocation, copies, streams, events and facts about the device.

Each function returns `(error, values...)`. What launches or compiles kernels raises `KernelRequiredError`.
"""

from __future__ import annotations

import enum
from typing import Any

from dryfit_tensorrt import memory
from dryfit_tensorrt.cuda import copies, streams
from dryfit_tensorrt.cuda import device as devices
from dryfit_tensorrt.cuda.copies import MemcpyKind as cudaMemcpyKind
from dryfit_tensorrt.cuda.results import (
    TEXTS,
    answering,
    cudaError_t,
    last_error,
    refusing,
)
from dryfit_tensorrt.memory import MemoryKind

__all__ = ["cudaError_t", "cudaMemcpyKind"]

CUDART_VERSION = devices.CUDA_VERSION
cudaStreamDefault, cudaStreamNonBlocking = 0, 1
cudaStreamLegacy, cudaStreamPerThread = 1, 2
cudaEventDefault, cudaEventBlockingSync, cudaEventDisableTiming, cudaEventInterprocess = 0, 1, 2, 4
cudaHostAllocDefault, cudaHostAllocPortable, cudaHostAllocMapped, cudaHostAllocWriteCombined = 0, 1, 2, 4
cudaMemAttachGlobal, cudaMemAttachHost = 1, 2


class cudaMemoryType(enum.IntEnum):
    """Kinds of memory that `cudaPointerGetAttributes` reports."""

    cudaMemoryTypeUnregistered = 0
    cudaMemoryTypeHost = 1
    cudaMemoryTypeDevice = 2
    cudaMemoryTypeManaged = 3


cudaDeviceAttr = enum.IntEnum(  # type: ignore[misc]  # the members come from the table
    "cudaDeviceAttr", {f"cudaDevAttr{name}": value for name, (value, _) in devices.ATTRIBUTES.items()}
)


class Handle:
    """A pointer that CUDA gave out, as an object with `int()` and equality by it."""

    def __init__(self, init_value: int = 0) -> None:
        self._value = int(init_value)

    def __int__(self) -> int:
        return self._value

    def __index__(self) -> int:
        return self._value

    def __eq__(self, other: object) -> bool:
        return hasattr(other, "__int__") and int(other) == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._value:#x}>"

    def getPtr(self) -> int:
        """Return the handle."""
        return self._value


class cudaStream_t(Handle):
    """A stream."""


class cudaEvent_t(Handle):
    """An event."""


class cudaDeviceProp:
    """Facts about the device."""

    def __init__(self) -> None:
        gpu = devices.current_device()
        self.name = gpu.name.encode()
        self.totalGlobalMem = gpu.total_bytes
        self.major, self.minor = gpu.capability
        self.multiProcessorCount = gpu.multiprocessors
        self.integrated = int(gpu.is_integrated)
        self.warpSize = 32
        self.maxThreadsPerBlock = 1024
        self.sharedMemPerBlock = 49152
        self.unifiedAddressing = self.managedMemory = self.canMapHostMemory = 1


class cudaPointerAttributes:
    """What an address is.

    Args:
        address: any address.
    """

    def __init__(self, address: int) -> None:
        found = memory.allocation_at(address)
        types = {
            MemoryKind.DEVICE: cudaMemoryType.cudaMemoryTypeDevice,
            MemoryKind.PINNED: cudaMemoryType.cudaMemoryTypeHost,
            MemoryKind.REGISTERED: cudaMemoryType.cudaMemoryTypeHost,
            MemoryKind.MANAGED: cudaMemoryType.cudaMemoryTypeManaged,
        }
        self.type = types[found.kind] if found else cudaMemoryType.cudaMemoryTypeUnregistered
        self.device = 0 if found else -1
        self.devicePointer = address if found else 0
        self.hostPointer = 0 if found and found.kind is MemoryKind.DEVICE else address


_code = answering(cudaError_t)
_value = answering(cudaError_t, 1)
_values = answering(cudaError_t, 2)

# Memory ---------------------------------------------------------------------------------------------------------------


@_value
def cudaMalloc(size: int) -> int:
    """Allocate device memory; 0 bytes give null."""
    return memory.allocate(int(size)) if int(size) else 0


@_value
def cudaMallocAsync(size: int, hStream: Any) -> int:
    """Allocate device memory in the order of a stream."""
    streams.check_stream(hStream)
    return memory.allocate(int(size)) if int(size) else 0


@_value
def cudaMallocManaged(size: int, flags: int = cudaMemAttachGlobal) -> int:
    """Allocate memory that host and device share."""
    return memory.allocate(int(size), MemoryKind.MANAGED)


@_values
def cudaMallocPitch(width: int, height: int) -> tuple[int, int]:
    """Allocate rows of `width` bytes; returns the address and the distance between rows."""
    pitch = -(-int(width) // memory.ALIGNMENT) * memory.ALIGNMENT
    return memory.allocate(pitch * int(height)), pitch


@_value
def cudaMallocHost(size: int) -> int:
    """Allocate pinned host memory."""
    return memory.allocate(int(size), MemoryKind.PINNED)


@_value
def cudaHostAlloc(size: int, flags: int = cudaHostAllocDefault) -> int:
    """Allocate pinned host memory."""
    return memory.allocate(int(size), MemoryKind.PINNED)


@_value
def cudaHostGetDevicePointer(pHost: Any, flags: int = 0) -> int:
    """Return the device address of pinned memory, which is the same."""
    address = copies.address_of(pHost)
    memory.view(address, 0)
    return address


@_code
def cudaHostRegister(ptr: Any, size: int, flags: int = 0) -> None:
    """Let the device access a buffer of the host."""
    memory.register(copies.address_of(ptr), int(size))


@_code
def cudaHostUnregister(ptr: Any) -> None:
    """Undo `cudaHostRegister`."""
    memory.free(copies.address_of(ptr), MemoryKind.REGISTERED)


@_code
def cudaFree(devPtr: Any) -> None:
    """Free device or managed memory; null is accepted."""
    _free(devPtr)


@_code
def cudaFreeAsync(devPtr: Any, hStream: Any) -> None:
    """Free device memory in the order of a stream."""
    streams.check_stream(hStream)
    _free(devPtr)


@_code
def cudaFreeHost(ptr: Any) -> None:
    """Free pinned host memory; null is accepted."""
    address = copies.address_of(ptr)
    if address:
        memory.free(address, MemoryKind.PINNED)


def _free(pointer: Any) -> None:
    address = copies.address_of(pointer)
    if address:
        found = memory.allocation_at(address)
        is_managed = found is not None and found.kind is MemoryKind.MANAGED
        memory.free(address, MemoryKind.MANAGED if is_managed else MemoryKind.DEVICE)


@_code
def cudaMemcpy(dst: Any, src: Any, count: int, kind: int) -> None:
    """Copy bytes; on the host's side addresses and buffers are accepted."""
    copies.copy(dst, src, count, kind)


@_code
def cudaMemcpyAsync(dst: Any, src: Any, count: int, kind: int, stream: Any = 0) -> None:
    """Copy bytes in the order of a stream."""
    streams.check_stream(stream)
    copies.copy(dst, src, count, kind)


@_code
def cudaMemcpy2D(dst: Any, dpitch: int, src: Any, spitch: int, width: int, height: int, kind: int) -> None:
    """Copy rows."""
    copies.copy_rows(dst, dpitch, src, spitch, width, height, kind)


@_code
def cudaMemcpy2DAsync(
    dst: Any, dpitch: int, src: Any, spitch: int, width: int, height: int, kind: int, stream: Any = 0
) -> None:
    """Copy rows in the order of a stream."""
    streams.check_stream(stream)
    copies.copy_rows(dst, dpitch, src, spitch, width, height, kind)


@_code
def cudaMemset(devPtr: Any, value: int, count: int) -> None:
    """Set bytes."""
    copies.fill(devPtr, value, count)


@_code
def cudaMemsetAsync(devPtr: Any, value: int, count: int, stream: Any = 0) -> None:
    """Set bytes in the order of a stream."""
    streams.check_stream(stream)
    copies.fill(devPtr, value, count)


@_code
def cudaMemPrefetchAsync(devPtr: Any, count: int, dstDevice: Any, *more: Any) -> None:
    """Do nothing: managed memory is where it is needed."""
    memory.view(copies.address_of(devPtr), int(count))


@_values
def cudaMemGetInfo() -> tuple[int, int]:
    """Return free and total memory of the device in bytes."""
    gpu = devices.current_device()
    return gpu.free_bytes, gpu.total_bytes


@_value
def cudaPointerGetAttributes(ptr: Any) -> cudaPointerAttributes:
    """Return what an address is."""
    return cudaPointerAttributes(copies.address_of(ptr))


# Streams and events ---------------------------------------------------------------------------------------------------


@_value
def cudaStreamCreate() -> cudaStream_t:
    """Create a stream."""
    return cudaStream_t(streams.create_stream())


@_value
def cudaStreamCreateWithFlags(flags: int) -> cudaStream_t:
    """Create a stream."""
    return cudaStream_t(streams.create_stream())


@_value
def cudaStreamCreateWithPriority(flags: int, priority: int) -> cudaStream_t:
    """Create a stream."""
    return cudaStream_t(streams.create_stream())


@_code
def cudaStreamDestroy(stream: Any) -> None:
    """Destroy a stream."""
    streams.destroy_stream(stream)


@_code
def cudaStreamSynchronize(stream: Any) -> None:
    """Wait for the work of a stream, which is done."""
    streams.check_stream(stream)


@_code
def cudaStreamQuery(stream: Any) -> None:
    """Whether the work of a stream is done: always."""
    streams.check_stream(stream)


@_code
def cudaStreamWaitEvent(stream: Any, event: Any, flags: int = 0) -> None:
    """Let a stream wait for an event."""
    streams.check_stream(stream)
    streams.check_event(event)


@_value
def cudaEventCreate() -> cudaEvent_t:
    """Create an event."""
    return cudaEvent_t(streams.create_event())


@_value
def cudaEventCreateWithFlags(flags: int) -> cudaEvent_t:
    """Create an event."""
    return cudaEvent_t(streams.create_event())


@_code
def cudaEventRecord(event: Any, stream: Any = 0) -> None:
    """Record an event in a stream."""
    streams.record_event(event, stream)


@_code
def cudaEventSynchronize(event: Any) -> None:
    """Wait for an event, which has happened."""
    streams.check_event(event)


@_code
def cudaEventQuery(event: Any) -> None:
    """Whether an event has happened: always."""
    streams.check_event(event)


@_code
def cudaEventDestroy(event: Any) -> None:
    """Destroy an event."""
    streams.destroy_event(event)


@_value
def cudaEventElapsedTime(start: Any, end: Any) -> float:
    """Return the time between two events on this machine, in milliseconds."""
    return streams.elapsed_ms(start, end)


# The device -----------------------------------------------------------------------------------------------------------


@_value
def cudaGetDeviceCount() -> int:
    """Return 1."""
    return 1


@_value
def cudaGetDevice() -> int:
    """Return 0, the only device."""
    return 0


@_code
def cudaSetDevice(device: int) -> None:
    """Select the device."""
    devices.check_ordinal(device)


@_code
def cudaDeviceSynchronize() -> None:
    """Wait for all work, which is done."""


@_code
def cudaSetDeviceFlags(flags: int) -> None:
    """Do nothing: no flag changes how the simulated device works."""


@_values
def cudaDeviceGetStreamPriorityRange() -> tuple[int, int]:
    """Return 0 and 0: all streams have the same priority."""
    return 0, 0


@_code
def cudaProfilerStart() -> None:
    """Do nothing: there is no GPU to profile."""


@_code
def cudaProfilerStop() -> None:
    """Do nothing: there is no GPU to profile."""


@_code
def cudaDeviceReset() -> None:
    """Do nothing: what is allocated stays valid."""


@_value
def cudaGetDeviceProperties(device: int) -> cudaDeviceProp:
    """Return facts about the device."""
    devices.check_ordinal(device)
    return cudaDeviceProp()


@_value
def cudaDeviceGetAttribute(attr: int, device: int) -> int:
    """Return an attribute of the device."""
    devices.check_ordinal(device)
    return devices.attribute(attr)


@_value
def cudaRuntimeGetVersion() -> int:
    """Return the version of CUDA whose functions these are."""
    return devices.CUDA_VERSION


@_value
def cudaDriverGetVersion() -> int:
    """Return the version of CUDA whose functions these are."""
    return devices.CUDA_VERSION


# Errors ---------------------------------------------------------------------------------------------------------------


@_value
def cudaGetErrorName(error: int) -> bytes:
    """Return the name of an error."""
    known = int(error) in TEXTS
    return cudaError_t(int(error)).name.encode() if known else b"unrecognized error code"


@_value
def cudaGetErrorString(error: int) -> bytes:
    """Return what an error means."""
    return TEXTS.get(int(error), "unrecognized error code").encode()


def cudaGetLastError() -> tuple[Any, ...]:
    """Return the last error of this thread, and forget it."""
    return (cudaError_t(last_error(reset=True)),)


def cudaPeekAtLastError() -> tuple[Any, ...]:
    """Return the last error of this thread."""
    return (cudaError_t(last_error(reset=False)),)


__getattr__ = refusing(
    "the CUDA runtime",
    ("cudaLaunch", "cudaGraph", "cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaFunc", "cudaOccupancy"),
)
