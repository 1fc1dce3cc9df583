"""PyCUDA's driver and arrays on host memory."""

import gc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dryfit_tensorrt import memory
from dryfit_tensorrt.cuda import pycuda_context, pycuda_kernels
from dryfit_tensorrt.cuda import pycuda_driver as cuda
from dryfit_tensorrt.cuda import pycuda_gpuarray as gpuarray
from dryfit_tensorrt.cuda.results import KernelRequiredError

VALUES = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_values_go_to_the_device_and_back():
    allocation, stream = cuda.mem_alloc(VALUES.nbytes), cuda.Stream()
    found = cuda.pagelocked_empty(VALUES.shape, VALUES.dtype)
    cuda.memcpy_htod_async(allocation, VALUES, stream)
    cuda.memcpy_dtoh_async(found, allocation, stream)
    stream.synchronize()
    assert found.tolist() == VALUES.tolist()
    assert memory.is_device_address(int(allocation))
    assert [int(allocation)] == [allocation.__index__()]
    assert cuda.from_device_like(allocation, VALUES).tolist() == VALUES.tolist()
    cuda.memcpy_htod(int(allocation) + 16, np.float32([9]))
    assert cuda.from_device(allocation, (5,), np.float32).tolist() == [0, 1, 2, 3, 9]


def test_memory_is_freed_with_its_last_reference():
    before = memory.statistics().live_allocations
    kept = [
        cuda.to_device(VALUES),
        cuda.pagelocked_zeros(8, np.int8),
        cuda.managed_empty((2, 2), np.float16, order="F"),
    ]
    row = kept[1][2:4]
    assert memory.statistics().live_allocations == before + 3
    kept.clear()
    gc.collect()
    assert memory.statistics().live_allocations == before + 1, "a part of an array keeps its memory"
    del row
    gc.collect()
    assert memory.statistics().live_allocations == before


def test_memory_is_freed_once():
    allocation = cuda.mem_alloc(4)
    allocation.free()
    with pytest.raises(cuda.LogicError, match="cuMemFree failed: invalid argument: The memory was freed before"):
        allocation.free()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda one: cuda.memcpy_htod(one, np.zeros(13, np.float32)),
            "cuMemcpyHtoD failed: invalid argument: The",
        ),
        (lambda one: cuda.memcpy_dtoh(np.zeros(1), 0), "cuMemcpyDtoH failed: invalid argument: Null"),
        (lambda one: cuda.mem_alloc(0), "cuMemAlloc failed: invalid argument"),
        (lambda one: cuda.Device(3), "cuDeviceGet failed: invalid device ordinal"),
        (lambda one: cuda.Event().time_since(cuda.Event()), "cuEventElapsedTime failed: invalid resource handle"),
    ],
)
def test_errors_are_those_of_pycuda_with_the_reason(call, words):
    allocation = cuda.to_device(VALUES)
    with pytest.raises(cuda.LogicError, match=words):
        call(allocation)


def test_too_much_memory_is_a_memory_error():
    with pytest.raises(cuda.MemoryError, match="out of memory"):
        cuda.mem_alloc(1 << 62)


@pytest.mark.parametrize("make", [cuda.pagelocked_empty, cuda.managed_zeros])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_have_the_shape_the_type_and_the_order(make, order):
    found = make((2, 3), np.int16, order=order)
    assert (found.shape, found.dtype) == ((2, 3), np.int16)
    assert found.flags[f"{order}_CONTIGUOUS"]
    found[1, 2] = 5
    assert found.sum() == 5
    assert memory.allocation_at(found.base.get_device_pointer()).size == 12
    assert make(6, np.int8).shape == (6,)


def test_arrays_of_the_host_are_registered_while_they_are_used():
    own = VALUES.copy()
    found = cuda.register_host_memory(own)
    address = found.base.get_device_pointer()
    assert memory.view(address, own.nbytes).view(np.float32).tolist() == own.ravel().tolist()
    with pytest.raises(cuda.LogicError, match="cuMemHostRegister failed"):
        cuda.register_host_memory(own)
    found.base.unregister()
    assert memory.allocation_at(address) is None
    again = cuda.register_host_memory(own)
    del again
    gc.collect()
    assert memory.allocation_at(address) is None


def test_arrays_of_both_orders_are_copied_as_they_lie():
    columns = np.asfortranarray(VALUES)
    allocation = cuda.to_device(columns)
    assert cuda.from_device(allocation, 4, np.float32).tolist() == [0, 4, 8, 1]
    assert cuda.from_device_like(allocation, columns).tolist() == VALUES.tolist()


def test_the_device_and_its_context_exist_from_the_start(monkeypatch):
    monkeypatch.setenv("DRYFIT_TENSORRT_PLATFORM", "xavier")
    cuda.init()
    assert cuda.Device.count() == 1
    assert cuda.Device(0).compute_capability() == (7, 2)
    assert pycuda_context.device.name() == "Xavier (simulated by dryfit)"
    assert cuda.Device(0).warp_size == 32
    assert cuda.device_attribute.WARP_SIZE in cuda.Device(0).get_attributes()
    context = cuda.Device(0).make_context()
    context.push()
    assert cuda.Context.get_current() == pycuda_context.context == context
    context.pop()
    free, total = cuda.mem_get_info()
    assert free <= total
    assert cuda.get_version()[0] == 12


def test_events_measure_time_on_this_machine():
    start, end = cuda.Event(), cuda.Event()
    start.record()
    end.record(cuda.Stream())
    end.synchronize()
    assert start.time_till(end) == end.time_since(start) >= 0


def test_arrays_in_device_memory():
    found = gpuarray.to_gpu(VALUES)
    assert memory.is_device_address(found.ptr)
    assert (found.shape, found.dtype, found.nbytes, found.strides) == ((3, 4), np.float32, 48, (16, 4))
    assert found.get().tolist() == VALUES.tolist()
    assert found.reshape(2, 6).get()[1].tolist() == [6, 7, 8, 9, 10, 11]
    assert found[1:, 1].get().tolist() == [5, 9]
    found[0] = 1
    assert cuda.from_device(found.gpudata, 4, np.float32).tolist() == [1] * 4
    assert found.view(np.uint32).get()[0, 0] == 0x3F800000
    copy = found.copy().fill(2)
    assert (copy.get().sum(), found.get().sum()) == (24, VALUES[1:].sum() + 4)
    assert gpuarray.zeros_like(found).get().sum() == gpuarray.empty(5, np.int8).get().sum() == 0
    with pytest.raises(ValueError, match="same size"):
        found.set(np.zeros(3, np.float32))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda one: one + 1, "GPUArray.__add__"),
        (lambda one: 2 * one, "GPUArray.__rmul__"),
        (lambda one: one.astype(np.int8), "GPUArray.astype"),
        (gpuarray.sum, "sum"),
        (lambda one: cuda.module_from_file("a.cubin"), "module_from_file"),
        (lambda one: pycuda_kernels.SourceModule("__global__ void f() {}"), "SourceModule"),
        (lambda one: pycuda_kernels.ElementwiseKernel("float *x", "x[i] = 0"), "ElementwiseKernel"),
    ],
)
def test_what_needs_a_kernel_is_refused_by_name(call, name):
    with pytest.raises(KernelRequiredError, match=f"^{name} needs a kernel on a GPU"):
        call(gpuarray.to_gpu(VALUES))


def test_a_program_of_the_binding_api_infers_what_onnx_runtime_does(tmp_path, digits_model):
    onnxruntime = pytest.importorskip("onnxruntime")
    program, saved = Path(__file__).with_name("binding_program.py"), tmp_path / "saved.npz"
    command = [sys.executable, "-m", "dryfit_tensorrt", "--api", "8.6", str(program), str(digits_model), str(saved)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with np.load(saved) as found:
        expected = onnxruntime.InferenceSession(digits_model).run(None, {"image": found["image"]})[0]
        np.testing.assert_allclose(found["probabilities"].reshape(expected.shape), expected, atol=1e-5)
