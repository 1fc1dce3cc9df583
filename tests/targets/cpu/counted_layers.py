"""Layers whose instructions are counted: run as a script, also inside Callgrind.

`python counted_layers.py prepare` compiles what they need and prints the cache's key; `python counted_layers.py KEY`
runs each layer once while Callgrind counts. The key is handed over because a processor looks different inside Valgrind,
and because Numba inside it would take minutes.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterator

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.convolution import Convolution
from dryfit.network.layers.pooling import PoolingType
from dryfit.network.network import Network
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Binding, Schedule
from dryfit_cpu.compiler import object_cache
from dryfit_cpu.kernels import KERNELS
from dryfit_cpu.kernels.operands import aligned_empty
from dryfit_cpu.schedule import create_schedule


@attrs.frozen
class CountedLayer:
    """A layer, the kernel that runs it, and how many multiply-accumulates (or, in a pooling, values) it has."""

    name: str
    kernel: str
    network: Network
    operations: int


def convolution(name: str, kernel: str, C: int, K: int, extent: int, k: int, groups: int = 1) -> CountedLayer:
    """A square convolution that keeps the size of its image, channels last."""
    network, weights = Network(name), np.ones((K, C // groups, k, k), np.float32)
    padding = (k // 2, k // 2)
    layer = Convolution(
        num_output_maps=K, kernel_size_nd=(k, k), kernel=weights, bias=np.zeros(K, np.float32),
        pre_padding=padding, post_padding=padding, num_groups=groups,
    )  # fmt: skip
    network.add_layer(layer, [network.add_input("x", DataType.FLOAT, (1, C, extent, extent))])
    return CountedLayer(name, kernel, network, K * extent * extent * (C // groups) * k * k)


def pooling(name: str, C: int, extent: int) -> CountedLayer:
    """A maximum over 3x3 in steps of 2."""
    network = Network(name)
    layer = network.add_pooling_nd(
        network.add_input("x", DataType.FLOAT, (1, C, extent, extent)), PoolingType.MAX, (3, 3)
    )
    layer.stride_nd, layer.padding_nd = (2, 2), (1, 1)
    return CountedLayer(name, "cpu.pooling", network, C * (extent // 2) ** 2 * 9)


def counted_layers() -> Iterator[CountedLayer]:
    """The kernels that networks spend their time in."""
    yield convolution("3x3, 64 to 64, 28x28", "cpu.convolution", 64, 64, 28, 3)
    yield convolution("1x1, 256 to 64, 28x28", "cpu.convolution", 256, 64, 28, 1)
    yield convolution("3x3 by winograd, 64 to 64, 28x28", "cpu.winograd_4", 64, 64, 28, 3)
    yield convolution("depthwise 3x3, 192, 28x28", "cpu.depthwise_convolution", 192, 192, 28, 3, groups=192)
    yield pooling("maximum 3x3 stride 2, 64, 56x56", 64, 56)


def bound(layer: CountedLayer) -> Schedule:
    """A schedule that runs a layer with one thread, on channels-last memory."""
    network = layer.network
    network.mark_output(network.layers[-1].get_output(0))
    group = LayerGroup(network.layers)
    specs = {tensor.name: tensor.spec for tensor in network.tensors}
    kernel = next(kernel for kernel in KERNELS if kernel.name == layer.kernel)
    arrays = {}
    for tensor in (*group.inputs, *group.outputs):
        N, C, H, W = specs[tensor.name].shape
        arrays[tensor.name] = aligned_empty((N, H, W, C), np.float32).transpose(0, 3, 1, 2)
        arrays[tensor.name][...] = 1
    workspace = aligned_empty((kernel.workspace_bytes(group, specs, 1),), np.uint8)
    return create_schedule([kernel.bind(Binding(group, specs, arrays, kernel.pack(group), workspace, 1))], 1)


# Callgrind ------------------------------------------------------------------------------------------------------------

START, STOP, ZERO, DUMP_AS = 0x43540004, 0x43540005, 0x43540001, 0x43540003
"""Callgrind's client requests. Source: valgrind/callgrind.h, an enumeration from the letters C and T on."""

REQUEST = bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db 4889d0 c3")
"""rax = the argument, rdx = 0; four rotations and an exchange that change nothing, which Valgrind takes for a request;
return rdx. Source: valgrind.h, for amd64."""


class ClientRequests:
    """Tells Callgrind what to do; does nothing outside Valgrind."""

    def __init__(self) -> None:
        self._code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._code.write(REQUEST)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._code))
        self._function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(address)

    def __call__(self, request: int, argument: int = 0) -> None:
        """Make a request with one argument."""
        words = np.array([request, argument, 0, 0, 0, 0], np.int64)
        self._function(words.ctypes.data)


def main() -> None:
    """Prepare, or run and count."""
    is_preparation = sys.argv[1] == "prepare"
    if not is_preparation:
        object_cache.salt = lambda: sys.argv[1]
    layers = list(counted_layers())
    schedules = [bound(layer) for layer in layers]
    for schedule in schedules:
        schedule.run()
    if is_preparation:
        print(object_cache.salt())  # noqa: T201  read by the test
        return
    if "numba" in sys.modules:
        sys.exit("a kernel was compiled inside Valgrind")
    request = ClientRequests()
    for name, run in [
        ("nothing", lambda: None),
        *((one.name, two.run) for one, two in zip(layers, schedules, strict=True)),
    ]:
        text = ctypes.create_string_buffer(name.encode())
        request(START)
        request(ZERO)
        run()
        request(STOP)
        request(DUMP_AS, ctypes.addressof(text))


if __name__ == "__main__":
    main()
