"""CUDA's runtime for programs that load it through ctypes, Polygraphy's wrapper among them."""

import ctypes
import ctypes.util
import os
import subprocess
import sys

import pytest

from dryfit_tensorrt import imports, memory
from dryfit_tensorrt.cuda.libraries import CudaRuntimeLibrary, library_for
from dryfit_tensorrt.running import environment_of
from dryfit_tensorrt.settings import Settings


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("libcudart.so", "CudaRuntimeLibrary"),
        ("/usr/local/cuda/lib64/libcudart.so.12", "CudaRuntimeLibrary"),
        ("cudart64_12.dll", "CudaRuntimeLibrary"),
        ("libnvinfer_plugin.so.10", "TensorRTLibrary"),
        ("libnvinfer.so", "TensorRTLibrary"),
        ("libm.so.6", "NoneType"),
        ("libmy_cudart_plugin.so", "NoneType"),
        (None, "NoneType"),
    ],
)
def test_libraries_are_known_by_their_file_names(name, kind):
    assert type(library_for(name)).__name__ == kind


def test_functions_store_their_results_and_return_codes(capfd):
    library, address, count = CudaRuntimeLibrary(), ctypes.c_void_p(), ctypes.c_int()
    library.cudaMalloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]
    assert library.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(16)) == 0
    assert memory.is_device_address(address.value)
    host = (ctypes.c_uint8 * 16)(*range(16))
    assert library.cudaMemcpy(address, host, 16, ctypes.c_int(1)) == 0
    assert memory.view(address.value, 16).tolist() == [*range(16)]
    back = (ctypes.c_uint8 * 16)()
    assert library.cudaMemcpy(ctypes.cast(back, ctypes.c_void_p), address, ctypes.c_size_t(16), 2) == 0
    assert bytes(back) == bytes(range(16))
    assert library.cudaGetDeviceCount(ctypes.pointer(count)) == 0
    assert count.value == 1
    assert library.cudaFree(address) == 0
    assert library.cudaFree(address) == 1
    assert "The memory was freed before" in capfd.readouterr().err
    assert library.cudaGetErrorString(1) == b"invalid argument"


def test_times_and_streams_are_stored():
    library = CudaRuntimeLibrary()
    stream, start, end, time = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float(-1)
    for create, handle in (
        (library.cudaStreamCreate, stream),
        (library.cudaEventCreate, start),
        (library.cudaEventCreate, end),
    ):
        assert create(ctypes.byref(handle)) == 0
    assert library.cudaEventRecord(start, stream) == library.cudaEventRecord(end, stream) == 0
    assert library.cudaEventElapsedTime(ctypes.byref(time), start, end) == 0
    assert time.value >= 0
    assert library.cudaStreamDestroy(stream) == 0


def library_of(name):
    """The class of what ctypes loads; None for a library that is not there."""
    try:
        return type(ctypes.CDLL(name))
    except OSError:
        return None


def test_ctypes_gives_the_libraries_only_while_the_names_are_installed():
    found, cudart = ctypes.util.find_library("c"), ctypes.util.find_library("cudart")
    imports.install()
    try:
        assert isinstance(ctypes.CDLL("libcudart.so"), CudaRuntimeLibrary)
        assert ctypes.CDLL("libnvinfer_plugin.so", mode=ctypes.RTLD_GLOBAL).initLibNvInferPlugins(None, b"") == 1
        assert ctypes.CDLL(None)._name is None
        assert ctypes.util.find_library("cudart") == "libcudart.so"
        assert ctypes.util.find_library("c") == found
    finally:
        imports.uninstall()
    with pytest.raises(OSError, match="libcudart"):
        ctypes.CDLL("libcudart.so.0.0.0")  # a version that no machine has
    assert library_of("libcudart.so") is not CudaRuntimeLibrary
    assert ctypes.util.find_library("cudart") == cudart


def run(code, **variables):
    environment = environment_of(Settings(), dict(os.environ) | variables)
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_names_of_cuda_and_pycuda_are_ours_in_a_run():
    done = run(
        "from cuda import cuda, cudart, nvrtc\n"
        "from cuda.bindings import driver, runtime\n"
        "import pycuda.autoinit, pycuda.driver, pycuda.gpuarray, pycuda.tools\n"
        "from pycuda.compiler import SourceModule\n"
        "assert cuda.CUresult is driver.CUresult and cudart.cudaMalloc is runtime.cudaMalloc\n"
        "import importlib.metadata\n"
        "print(pycuda.driver.__name__, pycuda.autoinit.context is not None, nvrtc.nvrtcVersion()[1])\n"
        "print(pycuda.VERSION, importlib.metadata.version('cuda-python'))\n"
        "import ctypes; print(ctypes.CDLL('libcudart.so.12').cudaDeviceSynchronize())\n"
        "import cuda.core\n"
    )
    assert done.stdout.splitlines() == ["pycuda.driver True 12", "(2025, 1) 12.9.0", "0"]
    assert "No module named 'cuda.core'" in done.stderr


WRAPPER = """
import ctypes

class Cuda:
    def __init__(self):
        self.handle = ctypes.CDLL("libsomewhere_cudart_is_not.so")

    def malloc(self, nbytes):
        ptr = ctypes.c_void_p()
        assert self.handle.cudaMalloc(ctypes.byref(ptr), ctypes.c_size_t(nbytes)) == 0
        return ptr.value
"""


def test_polygraphys_wrapper_gets_the_library_and_keeps_its_own_source(tmp_path):
    (tmp_path / "polygraphy" / "cuda").mkdir(parents=True)
    (tmp_path / "polygraphy" / "__init__.py").touch()
    (tmp_path / "polygraphy" / "cuda" / "__init__.py").write_text("from polygraphy.cuda.cuda import Cuda")
    (tmp_path / "polygraphy" / "cuda" / "cuda.py").write_text(WRAPPER)
    done = run(
        "import inspect, polygraphy.cuda, polygraphy.cuda.cuda as module\n"
        "wrapper = polygraphy.cuda.Cuda()\n"
        "print(type(wrapper.handle).__name__, wrapper.malloc(8) > 0, 'class Cuda' in inspect.getsource(module))\n",
        PYTHONPATH=str(tmp_path),
    )
    assert done.stdout == "CudaRuntimeLibrary True True\n", done.stderr


POLYGRAPHY = """
import numpy as np
from polygraphy.cuda import DeviceArray, Stream
values = np.arange(6, dtype=np.float32).reshape(2, 3)
with DeviceArray(shape=(2, 3), dtype=np.float32) as array, Stream() as stream:
    array.copy_from(values, stream=stream)
    assert (array.numpy() == values).all()
    array.resize((12, 5))
    print(array.nbytes)
"""


def test_polygraphy_itself_copies_arrays():
    pytest.importorskip("polygraphy")
    done = run(POLYGRAPHY)
    assert done.stdout == "240\n", done.stderr
