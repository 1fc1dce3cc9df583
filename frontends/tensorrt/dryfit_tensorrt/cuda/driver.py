"""`cuda.bindings.driver`, once `cuda.cuda`: the driver API's functions for contexts, memory, streams and events.

Each function returns `(error, values...)`. What loads or launches kernels raises `KernelRequiredError`.
"""

from __future__ import annotations

import enum
from typing import Any

from dryfit_tensorrt import memory
from dryfit_tensorrt.cuda import copies, streams
from dryfit_tensorrt.cuda import device as devices
from dryfit_tensorrt.cuda.copies import MemcpyKind
from dryfit_tensorrt.cuda.results import TEXTS, CudaCallError, CUresult, answering, refusing
from dryfit_tensorrt.cuda.runtime import Handle
from dryfit_tensorrt.memory import MemoryKind

__all__ = ["CUresult"]

CUDA_VERSION = devices.CUDA_VERSION
CU_STREAM_LEGACY, CU_STREAM_PER_THREAD = 1, 2


class CUdevice(Handle):
    """A device."""


class CUcontext(Handle):
    """A context; all are the same, since there is one device."""


class CUdeviceptr(Handle):
    """An address of device memory."""


class CUstream(Handle):
    """A stream."""


class CUevent(Handle):
    """An event."""


class CUstream_flags(enum.IntEnum):
    """Flags of streams; none changes anything here."""

    CU_STREAM_DEFAULT = 0
    CU_STREAM_NON_BLOCKING = 1


class CUevent_flags(enum.IntEnum):
    """Flags of events; none changes anything here."""

    CU_EVENT_DEFAULT = 0
    CU_EVENT_BLOCKING_SYNC = 1
    CU_EVENT_DISABLE_TIMING = 2


class CUctx_flags(enum.IntEnum):
    """Flags of contexts; none changes anything here."""

    CU_CTX_SCHED_AUTO = 0
    CU_CTX_SCHED_SPIN = 1
    CU_CTX_SCHED_YIELD = 2
    CU_CTX_SCHED_BLOCKING_SYNC = 4
    CU_CTX_MAP_HOST = 8


_ATTRIBUTE_NAMES = {
    "MaxThreadsPerBlock": "MAX_THREADS_PER_BLOCK",
    "MaxBlockDimX": "MAX_BLOCK_DIM_X",
    "MaxBlockDimY": "MAX_BLOCK_DIM_Y",
    "MaxBlockDimZ": "MAX_BLOCK_DIM_Z",
    "MaxSharedMemoryPerBlock": "MAX_SHARED_MEMORY_PER_BLOCK",
    "WarpSize": "WARP_SIZE",
    "MultiProcessorCount": "MULTIPROCESSOR_COUNT",
    "Integrated": "INTEGRATED",
    "CanMapHostMemory": "CAN_MAP_HOST_MEMORY",
    "ConcurrentKernels": "CONCURRENT_KERNELS",
    "UnifiedAddressing": "UNIFIED_ADDRESSING",
    "ComputeCapabilityMajor": "COMPUTE_CAPABILITY_MAJOR",
    "ComputeCapabilityMinor": "COMPUTE_CAPABILITY_MINOR",
    "ManagedMemory": "MANAGED_MEMORY",
    "ConcurrentManagedAccess": "CONCURRENT_MANAGED_ACCESS",
    "MemoryPoolsSupported": "MEMORY_POOLS_SUPPORTED",
}
"""The runtime's name of an attribute to the driver's."""

CUdevice_attribute = enum.IntEnum(  # type: ignore[misc]  # the members come from the table
    "CUdevice_attribute",
    {f"CU_DEVICE_ATTRIBUTE_{_ATTRIBUTE_NAMES[name]}": value for name, (value, _) in devices.ATTRIBUTES.items()},
)

_code = answering(CUresult)
_value = answering(CUresult, 1)
_values = answering(CUresult, 2)

# The device -----------------------------------------------------------------------------------------------------------


@_code
def cuInit(Flags: int) -> None:
    """Do nothing: there is nothing to initialize."""


@_value
def cuDriverGetVersion() -> int:
    """Return the version of CUDA whose functions these are."""
    return devices.CUDA_VERSION


@_value
def cuDeviceGetCount() -> int:
    """Return 1."""
    return 1


@_value
def cuDeviceGet(ordinal: int) -> CUdevice:
    """Return the device."""
    return CUdevice(devices.check_ordinal(ordinal))


@_value
def cuDeviceGetName(length: int, dev: Any) -> bytes:
    """Return the name of the device, padded with zeros to a length."""
    devices.check_ordinal(dev)
    return devices.current_device().name.encode()[: int(length) - 1].ljust(int(length), b"\0")


@_value
def cuDeviceTotalMem(dev: Any) -> int:
    """Return the device's memory in bytes."""
    devices.check_ordinal(dev)
    return devices.current_device().total_bytes


@_value
def cuDeviceGetAttribute(attrib: int, dev: Any) -> int:
    """Return an attribute of the device."""
    devices.check_ordinal(dev)
    return devices.attribute(attrib)


@_values
def cuDeviceComputeCapability(dev: Any) -> tuple[int, int]:
    """Return the compute capability."""
    devices.check_ordinal(dev)
    return devices.current_device().capability


# Contexts -------------------------------------------------------------------------------------------------------------

_CONTEXT = 0x100
"""The handle of every context."""


@_value
def cuCtxCreate(*arguments: Any) -> CUcontext:
    """Return the context; takes `(flags, device)`, and from CUDA 13 `(parameters, flags, device)`."""
    devices.check_ordinal(arguments[-1])
    return CUcontext(_CONTEXT)


@_value
def cuDevicePrimaryCtxRetain(dev: Any) -> CUcontext:
    """Return the context."""
    devices.check_ordinal(dev)
    return CUcontext(_CONTEXT)


@_value
def cuCtxGetCurrent() -> CUcontext:
    """Return the context."""
    return CUcontext(_CONTEXT)


@_value
def cuCtxPopCurrent() -> CUcontext:
    """Return the context, which stays current."""
    return CUcontext(_CONTEXT)


@_value
def cuCtxGetDevice() -> CUdevice:
    """Return the device."""
    return CUdevice(0)


@_code
def cuCtxSetCurrent(ctx: Any) -> None:
    """Do nothing: the one context is always current."""


@_code
def cuCtxPushCurrent(ctx: Any) -> None:
    """Do nothing: the one context is always current."""


@_code
def cuCtxSynchronize() -> None:
    """Wait for all work, which is done."""


@_code
def cuCtxDestroy(ctx: Any) -> None:
    """Do nothing: what is allocated stays valid."""


@_code
def cuDevicePrimaryCtxRelease(dev: Any) -> None:
    """Do nothing: what is allocated stays valid."""


# Memory ---------------------------------------------------------------------------------------------------------------


def allocate(size: int, kind: MemoryKind = MemoryKind.DEVICE) -> int:
    """Allocate as the driver does, which refuses 0 bytes.

    Raises:
        CudaCallError: the size is not positive.
    """
    if int(size) <= 0:
        raise CudaCallError(
            1, "The size of an allocation must be greater than 0", found=size, remedy="Do not allocate empty tensors"
        )
    return memory.allocate(int(size), kind)


@_value
def cuMemAlloc(bytesize: int) -> CUdeviceptr:
    """Allocate device memory."""
    return CUdeviceptr(allocate(bytesize))


@_value
def cuMemAllocAsync(bytesize: int, hStream: Any) -> CUdeviceptr:
    """Allocate device memory in the order of a stream."""
    streams.check_stream(hStream)
    return CUdeviceptr(allocate(bytesize))


@_value
def cuMemAllocManaged(bytesize: int, flags: int) -> CUdeviceptr:
    """Allocate memory that host and device share."""
    return CUdeviceptr(allocate(bytesize, MemoryKind.MANAGED))


@_value
def cuMemAllocHost(bytesize: int) -> int:
    """Allocate pinned host memory."""
    return allocate(bytesize, MemoryKind.PINNED)


@_value
def cuMemHostAlloc(bytesize: int, Flags: int) -> int:
    """Allocate pinned host memory."""
    return allocate(bytesize, MemoryKind.PINNED)


@_value
def cuMemHostGetDevicePointer(p: Any, Flags: int = 0) -> CUdeviceptr:
    """Return the device address of pinned or registered memory, which is the same."""
    address = copies.address_of(p)
    memory.view(address, 0)
    return CUdeviceptr(address)


@_code
def cuMemHostRegister(p: Any, bytesize: int, Flags: int = 0) -> None:
    """Let the device access a buffer of the host."""
    memory.register(copies.address_of(p), int(bytesize))


@_code
def cuMemHostUnregister(p: Any) -> None:
    """Undo `cuMemHostRegister`."""
    memory.free(copies.address_of(p), MemoryKind.REGISTERED)


@_code
def cuMemFree(dptr: Any) -> None:
    """Free device or managed memory; null is accepted."""
    free(dptr)


@_code
def cuMemFreeAsync(dptr: Any, hStream: Any) -> None:
    """Free device memory in the order of a stream."""
    streams.check_stream(hStream)
    free(dptr)


@_code
def cuMemFreeHost(p: Any) -> None:
    """Free pinned host memory."""
    memory.free(copies.address_of(p), MemoryKind.PINNED)


def free(pointer: Any) -> None:
    """Free device or managed memory; null is accepted.

    Raises:
        DeviceMemoryError: no live allocation of these kinds begins there.
    """
    address = copies.address_of(pointer)
    if address:
        found = memory.allocation_at(address)
        is_managed = found is not None and found.kind is MemoryKind.MANAGED
        memory.free(address, MemoryKind.MANAGED if is_managed else MemoryKind.DEVICE)


@_code
def cuMemcpyHtoD(dstDevice: Any, srcHost: Any, ByteCount: int) -> None:
    """Copy from the host, an address or a buffer, to the device."""
    copies.copy(dstDevice, srcHost, ByteCount, MemcpyKind.cudaMemcpyHostToDevice)


@_code
def cuMemcpyHtoDAsync(dstDevice: Any, srcHost: Any, ByteCount: int, hStream: Any = 0) -> None:
    """Copy from the host to the device in the order of a stream."""
    streams.check_stream(hStream)
    copies.copy(dstDevice, srcHost, ByteCount, MemcpyKind.cudaMemcpyHostToDevice)


@_code
def cuMemcpyDtoH(dstHost: Any, srcDevice: Any, ByteCount: int) -> None:
    """Copy from the device to the host, an address or a buffer."""
    copies.copy(dstHost, srcDevice, ByteCount, MemcpyKind.cudaMemcpyDeviceToHost)


@_code
def cuMemcpyDtoHAsync(dstHost: Any, srcDevice: Any, ByteCount: int, hStream: Any = 0) -> None:
    """Copy from the device to the host in the order of a stream."""
    streams.check_stream(hStream)
    copies.copy(dstHost, srcDevice, ByteCount, MemcpyKind.cudaMemcpyDeviceToHost)


@_code
def cuMemcpyDtoD(dstDevice: Any, srcDevice: Any, ByteCount: int) -> None:
    """Copy on the device."""
    copies.copy(dstDevice, srcDevice, ByteCount, MemcpyKind.cudaMemcpyDeviceToDevice)


@_code
def cuMemcpyDtoDAsync(dstDevice: Any, srcDevice: Any, ByteCount: int, hStream: Any = 0) -> None:
    """Copy on the device in the order of a stream."""
    streams.check_stream(hStream)
    copies.copy(dstDevice, srcDevice, ByteCount, MemcpyKind.cudaMemcpyDeviceToDevice)


@_code
def cuMemcpy(dst: Any, src: Any, ByteCount: int) -> None:
    """Copy between addresses of any kind."""
    copies.copy(dst, src, ByteCount)


@_code
def cuMemcpyAsync(dst: Any, src: Any, ByteCount: int, hStream: Any = 0) -> None:
    """Copy between addresses of any kind in the order of a stream."""
    streams.check_stream(hStream)
    copies.copy(dst, src, ByteCount)


@_code
def cuMemsetD8(dstDevice: Any, uc: int, N: int) -> None:
    """Set bytes."""
    copies.fill(dstDevice, uc, N)


@_code
def cuMemsetD8Async(dstDevice: Any, uc: int, N: int, hStream: Any = 0) -> None:
    """Set bytes in the order of a stream."""
    streams.check_stream(hStream)
    copies.fill(dstDevice, uc, N)


@_code
def cuMemsetD16(dstDevice: Any, us: int, N: int) -> None:
    """Set values of 16 bits."""
    copies.fill(dstDevice, us, N, 2)


@_code
def cuMemsetD32(dstDevice: Any, ui: int, N: int) -> None:
    """Set values of 32 bits."""
    copies.fill(dstDevice, ui, N, 4)


@_values
def cuMemGetInfo() -> tuple[int, int]:
    """Return free and total memory of the device in bytes."""
    gpu = devices.current_device()
    return gpu.free_bytes, gpu.total_bytes


# Streams and events ---------------------------------------------------------------------------------------------------


@_value
def cuStreamCreate(Flags: int) -> CUstream:
    """Create a stream."""
    return CUstream(streams.create_stream())


@_value
def cuStreamCreateWithPriority(flags: int, priority: int) -> CUstream:
    """Create a stream."""
    return CUstream(streams.create_stream())


@_code
def cuStreamDestroy(hStream: Any) -> None:
    """Destroy a stream."""
    streams.destroy_stream(hStream)


@_code
def cuStreamSynchronize(hStream: Any) -> None:
    """Wait for the work of a stream, which is done."""
    streams.check_stream(hStream)


@_code
def cuStreamQuery(hStream: Any) -> None:
    """Whether the work of a stream is done: always."""
    streams.check_stream(hStream)


@_code
def cuStreamWaitEvent(hStream: Any, hEvent: Any, Flags: int = 0) -> None:
    """Let a stream wait for an event."""
    streams.check_stream(hStream)
    streams.check_event(hEvent)


@_value
def cuEventCreate(Flags: int) -> CUevent:
    """Create an event."""
    return CUevent(streams.create_event())


@_code
def cuEventRecord(hEvent: Any, hStream: Any = 0) -> None:
    """Record an event in a stream."""
    streams.record_event(hEvent, hStream)


@_code
def cuEventSynchronize(hEvent: Any) -> None:
    """Wait for an event, which has happened."""
    streams.check_event(hEvent)


@_code
def cuEventQuery(hEvent: Any) -> None:
    """Whether an event has happened: always."""
    streams.check_event(hEvent)


@_code
def cuEventDestroy(hEvent: Any) -> None:
    """Destroy an event."""
    streams.destroy_event(hEvent)


@_value
def cuEventElapsedTime(hStart: Any, hEnd: Any) -> float:
    """Return the time between two events on this machine, in milliseconds."""
    return streams.elapsed_ms(hStart, hEnd)


# Errors ---------------------------------------------------------------------------------------------------------------


@_value
def cuGetErrorName(error: int) -> bytes:
    """Return the name of an error."""
    return CUresult(int(error)).name.encode()


@_value
def cuGetErrorString(error: int) -> bytes:
    """Return what an error means."""
    return TEXTS[int(error)].encode()


KERNEL_FUNCTIONS = ("cuLaunch", "cuModule", "cuLibrary", "cuKernel", "cuFunc", "cuGraph", "cuLink")
"""How the names of functions begin that load, run or record kernels."""

__getattr__ = refusing(
    "the CUDA driver", ("cuLaunch", "cuModule", "cuLibrary", "cuKernel", "cuFunc", "cuGraph", "cuLink")
)
