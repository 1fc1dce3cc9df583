"""Which host kernel runs a group of layers: the device's own where it has one, else the CPU target's."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from dryfit.errors import BuildError
from dryfit.network.tensor import Tensor
from dryfit.plugins import registry
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Kernel, Specs


@functools.lru_cache(maxsize=64)
def kernels_for(device: str) -> Sequence[Kernel]:
    """All kernels that may run a device's layers, in the order in which they are asked."""

    def ordered(kernels: Sequence[Kernel]) -> list[Kernel]:
        return sorted(kernels, key=lambda kernel: (-kernel.priority, kernel.name))

    target, host = registry.target(device), registry.host()
    own = [] if target.device == host.device else ordered(target.kernels)
    return (*own, *ordered(host.kernels))


def serves(kernel: Kernel, group: LayerGroup, specs: Specs) -> bool:
    """Whether a kernel says that it can run a group."""
    return (
        group.main.kind in kernel.kinds
        and all(specs[tensor.name].dtype in kernel.data_types for tensor in activations(group, specs))
        and kernel.accepts(group, specs)
    )


def choose_kernel(device: str, group: LayerGroup, specs: Specs) -> Kernel:
    """The first kernel that can run a group.

    Raises:
        BuildError: there is none.
    """
    for kernel in kernels_for(device):
        if serves(kernel, group, specs):
            return kernel
    raise BuildError(
        f"No kernel runs this {group.main.kind} layer of {device}",
        where=f"layer {group.name!r}",
        found=", ".join(f"{tensor.name!r}: {specs[tensor.name].dtype.name}" for tensor in activations(group, specs)),
    )


def activations(group: LayerGroup, specs: Specs) -> Iterator[Tensor]:
    """The tensors that a group reads and writes at run time: not constants, and not what is known before the run."""
    for tensor in (*group.inputs, *group.outputs):
        is_constant = tensor.producer is not None and tensor.producer.kind == "constant"
        if not is_constant and specs[tensor.name].value is None:
            yield tensor
