"""Runs a static network straight through the host kernels: groups, layouts and buffers, and nothing else.

It measures kernels without builder and engine, which have benchmarks of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Binding, Kernel
from dryfit_cpu.kernels import KERNELS
from dryfit_cpu.kernels.operands import aligned_empty
from dryfit_cpu.schedule import create_schedule

Array = np.ndarray[Any, Any]


class KernelRunner:
    """A static network, bound to memory; rank-4 tensors inside it are channels last.

    Args:
        network: what to run.
        num_threads: how many threads run it.
        channels_last: whether the network's inputs and outputs are channels last too.
    """

    def __init__(self, network: Network, num_threads: int = 1, *, channels_last: bool = False) -> None:
        self.specs = {
            tensor.name: tensor.spec
            for layer in network.layers
            for tensor in [*layer.inputs, *layer.outputs]
            if tensor is not None
        }
        self.groups = group_layers(network, self.specs)
        self.arrays: dict[str, Array] = {}
        self.buffer_bytes = 0
        for tensor in [*network.inputs, *network.outputs]:
            spec = self.specs[tensor.name]
            memory = aligned_empty((int(np.prod(spec.shape)),), spec.dtype.numpy)
            is_image = channels_last and spec.rank == 4
            self.arrays[tensor.name] = as_channels_last(memory, spec.shape) if is_image else memory.reshape(spec.shape)
        self._allocate()
        work_bytes = [kernel.workspace_bytes(group, self.specs, num_threads) for group, kernel in self.groups]
        workspace = aligned_empty((max(work_bytes),), np.uint8)
        self.buffer_bytes += workspace.size
        self.steps = [
            kernel.bind(Binding(group, self.specs, self.arrays, kernel.pack(group), workspace, num_threads))
            for group, kernel in self.groups
        ]
        self.schedule = create_schedule(self.steps, num_threads)

    def load(self, feeds: Mapping[str, Array]) -> None:
        """Copy the inputs in."""
        for name, value in feeds.items():
            self.arrays[name][...] = value

    def run(self, feeds: Mapping[str, Array], observe: Callable[[str, float], None] | None = None) -> None:
        """Copy the inputs in and run; outputs are in `arrays`."""
        self.load(feeds)
        self.schedule.run(observe)

    def _allocate(self) -> None:
        """Memory for inner tensors; a buffer is used again when its tensor is dead."""
        kept = set(self.arrays)
        last = {tensor.name: index for index, (group, _) in enumerate(self.groups) for tensor in group.inputs}
        free: dict[int, list[Array]] = {}
        owners: dict[str, Array] = {}
        for index, (group, _) in enumerate(self.groups):
            for tensor in group.outputs:
                if tensor.name not in kept:
                    owners[tensor.name] = self._take(free, tensor)
            for tensor in group.inputs:
                if last[tensor.name] == index and tensor.name in owners:
                    free.setdefault(owners[tensor.name].size, []).append(owners[tensor.name])

    def _take(self, free: dict[int, list[Array]], tensor: Tensor) -> Array:
        spec = self.specs[tensor.name]
        count = int(np.prod(spec.shape)) * spec.dtype.numpy.itemsize
        waiting = free.get(count)
        memory = waiting.pop() if waiting else aligned_empty((count,), np.uint8)
        self.buffer_bytes += 0 if waiting else count
        typed = memory.view(spec.dtype.numpy)
        is_image = spec.rank == 4
        self.arrays[tensor.name] = as_channels_last(typed, spec.shape) if is_image else typed.reshape(spec.shape)
        return memory


def as_channels_last(memory: Array, shape: tuple[int, ...]) -> Array:
    """Memory as an array of logical shape (N, C, H, W) whose channels lie together."""
    N, C, H, W = shape
    return memory.reshape(N, H, W, C).transpose(0, 3, 1, 2)


def group_layers(network: Network, specs: Mapping[str, Any]) -> list[tuple[LayerGroup, Kernel]]:
    """Greedy groups in an order in which every input is ready, each with the best kernel that accepts it."""
    chains: list[list[Layer]] = []
    taken: set[str] = set()
    ready = {tensor.name for tensor in network.inputs}
    for layer in network.layers:
        if layer.name in taken or layer.kind == "constant":
            ready |= {tensor.name for tensor in layer.outputs} if layer.kind == "constant" else set()
            continue
        chain = [layer]
        kernel = choose(LayerGroup((layer,)), specs)
        while kernel is not None:
            output = chain[-1].outputs[0]
            consumers = output.consumers
            if len(consumers) != 1 or output.is_network_output:
                break
            following = consumers[0][0]
            others = {t.name for t in following.inputs if t is not None and t is not output}
            if not others <= ready or not kernel.fuses(LayerGroup(tuple(chain)), following):
                break
            chain.append(following)
            taken.add(following.name)
        taken.add(layer.name)
        ready |= {tensor.name for tensor in chain[-1].outputs}
        chains.append(chain)
    groups = [LayerGroup(tuple(chain)) for chain in chains]
    return [(group, choose(group, specs)) for group in groups]


def choose(group: LayerGroup, specs: Mapping[str, Any]) -> Kernel:
    """The best kernel that accepts a group."""
    dtype = specs[group.main.outputs[0].name].dtype
    fitting = [
        kernel
        for kernel in KERNELS
        if group.main.kind in kernel.kinds and dtype in kernel.data_types and kernel.accepts(group, specs)
    ]
    return max(fitting, key=lambda kernel: kernel.priority)
