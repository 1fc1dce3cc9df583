"""The functions of CUDA's runtime and driver on host memory: results, and codes for what a GPU would refuse."""

import numpy as np
import pytest

from dryfit_tensorrt import memory
from dryfit_tensorrt.cuda import driver, nvrtc, runtime
from dryfit_tensorrt.cuda.results import KernelRequiredError
from dryfit_tensorrt.cuda.runtime import cudaError_t, cudaMemcpyKind

TO_DEVICE, TO_HOST = cudaMemcpyKind.cudaMemcpyHostToDevice, cudaMemcpyKind.cudaMemcpyDeviceToHost
ON_DEVICE, DEFAULT = cudaMemcpyKind.cudaMemcpyDeviceToDevice, cudaMemcpyKind.cudaMemcpyDefault
VALUES = np.arange(12, dtype=np.float32)


@pytest.fixture
def address():
    """48 bytes of device memory with VALUES."""
    code, found = runtime.cudaMalloc(VALUES.nbytes)
    assert code == 0
    assert runtime.cudaMemcpy(found, VALUES, VALUES.nbytes, TO_DEVICE) == (cudaError_t.cudaSuccess,)
    yield found
    if memory.allocation_at(found):
        runtime.cudaFree(found)


def values_at(address):
    found = np.zeros_like(VALUES)
    assert runtime.cudaMemcpy(found, address, found.nbytes, TO_HOST)[0] == 0
    return found


def refused(capfd, answer, code, words):
    """The code of an answer, and what stderr says about it."""
    assert answer[0].value == code
    assert all(value is None for value in answer[1:])
    told = capfd.readouterr().err
    assert told.startswith("dryfit: cu")
    assert words in told


def test_arrays_buffers_and_addresses_are_copied(address):
    assert values_at(address).tolist() == VALUES.tolist()
    found = np.zeros_like(VALUES)
    assert runtime.cudaMemcpy(found.ctypes.data, address, found.nbytes, TO_HOST)[0] == 0
    assert found.tolist() == VALUES.tolist()
    assert runtime.cudaMemcpy(np.uint64(address), VALUES[::-1].tobytes(), VALUES.nbytes, TO_DEVICE)[0] == 0
    assert values_at(address).tolist() == VALUES[::-1].tolist()


def test_a_copy_may_end_inside_of_an_allocation_and_begin_there(address):
    two = np.float32([7, 8])
    assert runtime.cudaMemcpyAsync(address + 40, two, 8, TO_DEVICE, 0)[0] == 0
    assert values_at(address)[-3:].tolist() == [9, 7, 8]


def test_copies_on_the_device_and_of_the_default_kind(address):
    _, other = runtime.cudaMallocAsync(VALUES.nbytes, 0)
    assert runtime.cudaMemcpy(other, address, VALUES.nbytes, ON_DEVICE)[0] == 0
    assert values_at(other).tolist() == VALUES.tolist()
    found = np.zeros_like(VALUES)
    assert runtime.cudaMemcpy(found.ctypes.data, other, VALUES.nbytes, DEFAULT)[0] == 0
    assert found.tolist() == VALUES.tolist()
    assert runtime.cudaFreeAsync(other, 0)[0] == 0


def test_memory_is_set(address):
    assert runtime.cudaMemset(address, 1, 4)[0] == 0
    assert values_at(address).view(np.uint32)[0] == 0x01010101
    assert driver.cuMemsetD32(address, 0x3F800000, 12)[0] == 0
    assert values_at(address).tolist() == [1] * 12


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda address: runtime.cudaMemcpy(address, VALUES, 49, TO_DEVICE), "to 1 bytes past the end of 48 bytes"),
        (
            lambda address: runtime.cudaMemcpy(VALUES.copy()[:2], address, 48, TO_HOST),
            "48 bytes for 8 bytes",
        ),
        (lambda address: runtime.cudaMemcpy(0, VALUES, 4, TO_DEVICE), "Null is not a device address"),
        (lambda address: runtime.cudaMemcpy(VALUES.ctypes.data, VALUES, 4, TO_DEVICE), "not one of device memory"),
        (lambda address: runtime.cudaMemcpy(address, address, 4, TO_DEVICE), "needs an address on the host"),
        (lambda address: runtime.cudaMemset(address + 40, 0, 16), "to 8 bytes past the end"),
        (lambda address: runtime.cudaFree(address + 4), "Memory must be freed by its first address"),
        (runtime.cudaFreeHost, "Only pinned host memory can be freed here"),
        (lambda address: driver.cuMemAlloc(0), "must be greater than 0"),
        (
            lambda address: runtime.cudaPointerGetAttributes(address)[:1] and runtime.cudaMalloc(-1),
            "must not be negative",
        ),
    ],
)
def test_a_wrong_address_is_a_code_and_its_reason_on_stderr(call, words, address, capfd):
    refused(capfd, call(address), 1, words)
    assert runtime.cudaPeekAtLastError() == runtime.cudaGetLastError() == (cudaError_t.cudaErrorInvalidValue,)
    assert runtime.cudaGetLastError() == (cudaError_t.cudaSuccess,)


def test_memory_that_this_machine_does_not_have_is_a_code(capfd):
    refused(capfd, runtime.cudaMalloc(1 << 62), 2, "cudaMalloc")


def test_freed_memory_is_refused(address, capfd):
    assert runtime.cudaFree(address)[0] == 0
    refused(capfd, runtime.cudaMemcpy(address, VALUES, 4, TO_DEVICE), 1, "The memory was freed")
    refused(capfd, runtime.cudaFree(address), 1, "The memory was freed before")


def test_null_is_freed_and_nothing_is_allocated_as_null():
    assert runtime.cudaMalloc(0) == (cudaError_t.cudaSuccess, 0)
    assert runtime.cudaFree(0) == (cudaError_t.cudaSuccess,)


def test_kinds_of_memory_are_told_apart(address):
    _, pinned = runtime.cudaMallocHost(8)
    _, managed = runtime.cudaMallocManaged(8, 1)
    kinds = [
        runtime.cudaPointerGetAttributes(one)[1].type.name for one in (address, pinned, managed, VALUES.ctypes.data)
    ]
    ends = ["Device", "Host", "Managed", "Unregistered"]
    assert kinds == [f"cudaMemoryType{end}" for end in ends]
    assert runtime.cudaMemcpy(pinned, address, 8, TO_HOST)[0] == 0
    assert memory.view(pinned, 8).view(np.float32).tolist() == [0, 1]
    assert runtime.cudaFreeHost(pinned)[0] == runtime.cudaFree(managed)[0] == 0


def test_buffers_of_the_host_are_registered(capfd):
    host = np.arange(4, dtype=np.float32)
    address = host.ctypes.data
    assert runtime.cudaHostRegister(address, host.nbytes, 0)[0] == 0
    assert runtime.cudaHostGetDevicePointer(address, 0) == (cudaError_t.cudaSuccess, address)
    assert runtime.cudaPointerGetAttributes(address)[1].type.name == "cudaMemoryTypeHost"
    refused(capfd, runtime.cudaHostRegister(address, 4), 1, "Only memory of the host")
    assert runtime.cudaHostUnregister(address)[0] == 0
    assert driver.cuMemHostRegister(address, host.nbytes)[0] == 0
    assert driver.cuMemHostGetDevicePointer(address)[1] == address
    assert driver.cuMemHostUnregister(address)[0] == 0
    refused(capfd, runtime.cudaHostUnregister(address), 1, "The memory was freed before")


def test_what_only_tunes_a_gpu_does_nothing():
    _, managed = runtime.cudaMallocManaged(16)
    assert runtime.cudaMemPrefetchAsync(managed, 16, 0, 0)[0] == 0
    assert runtime.cudaDeviceGetStreamPriorityRange()[1:] == (0, 0)
    for call in (runtime.cudaProfilerStart, runtime.cudaProfilerStop, runtime.cudaDeviceReset):
        assert call() == (cudaError_t.cudaSuccess,)
    assert runtime.cudaFree(managed)[0] == 0


def test_rows_are_copied_between_pitches(address):
    host = np.arange(6, dtype=np.uint8).reshape(2, 3)
    _, rows, pitch = runtime.cudaMallocPitch(3, 2)
    assert pitch >= 3
    assert runtime.cudaMemcpy2D(rows, pitch, host.ctypes.data, 3, 3, 2, TO_DEVICE)[0] == 0
    assert memory.view(rows + pitch, 3).tolist() == [3, 4, 5]
    assert runtime.cudaMemcpy2D(rows, 2, host.ctypes.data, 3, 3, 2, TO_DEVICE)[0].name == "cudaErrorInvalidPitchValue"


def test_streams_and_events_have_handles_that_are_checked(capfd):
    _, stream = runtime.cudaStreamCreate()
    _, first = runtime.cudaEventCreate()
    _, second = runtime.cudaEventCreateWithFlags(0)
    assert int(stream) not in {0, int(first), int(second)}
    refused(capfd, runtime.cudaEventElapsedTime(first, second), 400, "The first event was not recorded")
    assert runtime.cudaEventRecord(first, stream)[0] == runtime.cudaEventRecord(second, int(stream))[0] == 0
    assert runtime.cudaEventElapsedTime(first, second)[1] >= 0
    for call in (runtime.cudaStreamSynchronize, runtime.cudaStreamQuery, runtime.cudaStreamDestroy):
        assert call(stream) == (cudaError_t.cudaSuccess,)
    refused(capfd, runtime.cudaStreamSynchronize(stream), 400, "Unknown stream")
    refused(capfd, runtime.cudaStreamDestroy(0), 400, "Unknown stream")
    assert runtime.cudaEventDestroy(first)[0] == 0
    refused(capfd, runtime.cudaEventQuery(first), 400, "Unknown event")


def test_there_is_one_device_with_the_facts_of_the_board(monkeypatch, capfd):
    assert runtime.cudaGetDeviceCount() == (cudaError_t.cudaSuccess, 1)
    refused(capfd, runtime.cudaSetDevice(1), 101, "Use device 0")
    monkeypatch.setenv("DRYFIT_TENSORRT_PLATFORM", "orin")
    found = runtime.cudaGetDeviceProperties(0)[1]
    assert (found.major, found.minor, found.multiProcessorCount, found.integrated) == (8, 7, 16, 1)
    assert found.name == b"Orin (simulated by dryfit)"
    free, total = runtime.cudaMemGetInfo()[1:]
    assert free <= total == found.totalGlobalMem
    _, size = driver.cuDeviceGetAttribute(driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0)
    assert size == 32


@pytest.mark.parametrize("arguments", [(0, 0), (None, 0, 0)])
def test_the_driver_creates_contexts_of_both_signatures(arguments):
    assert driver.cuInit(0) == (driver.CUresult.CUDA_SUCCESS,)
    code, device = driver.cuDeviceGet(0)
    code, context = driver.cuCtxCreate(*arguments[:-1], device)
    assert code == 0
    assert int(context)


def test_the_driver_copies(address):
    _, other = driver.cuMemAlloc(48)
    found = np.zeros_like(VALUES)
    assert driver.cuMemcpyDtoD(other, address, 48)[0] == driver.cuMemcpyDtoH(found, other, 48)[0] == 0
    assert found.tolist() == VALUES.tolist()
    assert driver.cuMemFree(other)[0] == 0


def test_errors_have_names_and_texts():
    assert runtime.cudaGetErrorName(cudaError_t.cudaErrorInvalidValue)[1] == b"cudaErrorInvalidValue"
    assert runtime.cudaGetErrorString(2)[1] == b"out of memory"
    assert runtime.cudaGetErrorName(12345)[1] == b"unrecognized error code"
    assert driver.cuGetErrorName(driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY)[1] == b"CUDA_ERROR_OUT_OF_MEMORY"
    assert nvrtc.nvrtcGetErrorString(nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION)[1] == b"NVRTC_ERROR_COMPILATION"


@pytest.mark.parametrize(
    "call",
    [
        lambda: runtime.cudaLaunchKernel(1, 2),
        lambda: runtime.cudaStreamBeginCapture(0, 0),
        lambda: driver.cuModuleLoadData(b""),
        driver.cuLaunchKernel,
        lambda: nvrtc.nvrtcCreateProgram(b"", b"", 0, [], []),
    ],
)
def test_what_needs_a_kernel_is_refused_by_name(call):
    with pytest.raises(KernelRequiredError, match=r"^\w+ needs a kernel on a GPU") as refusal:
        call()
    assert isinstance(refusal.value, NotImplementedError)


@pytest.mark.parametrize("module", [runtime, driver])
def test_a_name_that_does_not_exist_is_an_attribute_error(module):
    assert not hasattr(module, "cuAnything")
    with pytest.raises(AttributeError, match="does not have 'cuAnything'"):
        _ = module.cuAnything


def test_an_array_that_is_no_address_is_a_type_error(address):
    with pytest.raises(TypeError, match="An address on the device is required"):
        runtime.cudaMemcpy(VALUES.copy(), address, 4, TO_DEVICE)
    with pytest.raises(TypeError, match="C-contiguous"):
        runtime.cudaMemcpy(address, VALUES[::2], 4, TO_DEVICE)
    fixed = VALUES.copy()
    fixed.flags.writeable = False
    with pytest.raises(TypeError, match="writable"):
        runtime.cudaMemcpy(fixed, address, 4, TO_HOST)
