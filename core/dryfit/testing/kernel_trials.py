"""Test cases of kernels: a group within the limits of the device, and its memory layout."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.kernels.choice import kernels_for, serves
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import TensorSpec
from dryfit.reference.inference import infer_specs
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Kernel, is_activation
from dryfit.target.target import Target
from dryfit.testing.drawn_layers import Draw, draw_epilogue, draw_layer
from dryfit.testing.example_layers import Examples, add_example
from dryfit.testing.guarded_memory import Arrangement
from dryfit.testing.limit_checks import variants
from dryfit.testing.trial_networks import KINDS, config_for

Array = np.ndarray[Any, Any]

_MOST_ELEMENTS = 1 << 14
_MOST_FUSED = 2
_EXAMPLES_ASKED = 8


@frozen
class KernelCase:
    """The subject of one kernel test.

    Attributes:
        kind: kind of the main layer.
        dtype: type of the activations.
        kernel: the target's own kernel. None: the kernel inherited from the host.
    """

    kind: str
    dtype: DataType
    kernel: Kernel | None = None

    def __str__(self) -> str:
        return f"{'inherited' if self.kernel is None else self.kernel.name}-{self.kind}-{self.dtype.name}"


@frozen(eq=False)
class KernelTrial:
    """A group with the kernel that runs it.

    Attributes:
        kernel: kernel that runs the group.
        network: network with the layers of the group, and the group's outputs as outputs.
        group: a group within the limits of the device.
        specs: tensor name to spec.
        arrangements: tensor name to memory layout.
        seed: seed of the contents of the inputs.
    """

    kernel: Kernel
    network: Network
    group: LayerGroup
    specs: Mapping[str, TensorSpec]
    arrangements: Mapping[str, Arrangement]
    seed: int

    def __repr__(self) -> str:
        layers = ", ".join(repr(layer) for layer in self.group.layers)
        shapes = ", ".join(f"{name} {spec.dtype.name}{list(spec.shape)}" for name, spec in self.activations.items())
        places = ", ".join(f"{name} {arrangement}" for name, arrangement in self.arrangements.items())
        return f"{self.kernel.name} for {layers}; {shapes}; in memory: {places}"

    @property
    def activations(self) -> dict[str, TensorSpec]:
        """Tensors that the group reads and writes at run time."""
        tensors = (*self.group.inputs, *self.group.outputs)
        return {tensor.name: self.specs[tensor.name] for tensor in tensors if is_activation(tensor, self.specs)}

    def feeds(self) -> dict[str, Array]:
        """Return the contents of the inputs: floats of moderate size, small integers."""
        rng, found = np.random.default_rng(self.seed), {}
        for tensor in self.network.inputs:
            is_float = tensor.dtype.is_floating_point
            values = rng.standard_normal(tensor.shape) if is_float else rng.integers(0, 9, tensor.shape)
            found[tensor.name] = np.asarray(values).astype(tensor.dtype.numpy)
        return found


def kernel_cases(target: Target, dtypes: Sequence[DataType]) -> Iterator[KernelCase]:
    """Return each own kernel with its declared kinds and types, then each kind and type with inherited kernels.

    Args:
        target: target, installed or not, whose kernels are tested.
        dtypes: types whose values are compared.
    """
    table = target.limits
    kinds = [kind for kind in KINDS if table is None or table.supported_kinds is None or kind in table.supported_kinds]
    types = [dtype for dtype in dtypes if dtype in target.precisions]
    for kernel in target.kernels:
        for kind in kinds:
            if kind in kernel.kinds:
                yield from (KernelCase(kind, dtype, kernel) for dtype in types if dtype in kernel.data_types)
    if not target.segment_rules.is_host:
        for kind in kinds:
            yield from (KernelCase(kind, dtype) for dtype in types)


class Refusals:
    """Reasons why drawn cases were rejected; the last reason is reported if no case could be used."""

    def __init__(self) -> None:
        self.last = "no layer of this kind and type fits together"

    def because(self, reason: str) -> None:
        """Record a reason."""
        self.last = reason


def config_for_kind(target: Target, case: KernelCase, refusals: Refusals) -> BuilderConfig | None:
    """Return a builder config for a platform and software version that supports layers of a kind.

    None if no variant supports an example of the kind; the reason is recorded in `refusals`.
    """
    rng = np.random.default_rng(0)
    drawn = [_example(case, rng) for _ in range(_EXAMPLES_ASKED)]
    layers = [layer for layer in drawn if layer is not None]
    for platform, software in variants(target):
        config = config_for(target, case.dtype)
        config.set_platform(target.device, platform.name)
        if software:
            config.set_software(target.device, ".".join(map(str, software)))
        for layer in layers:
            verdict = config.can_run_on(layer, target.device)
            if verdict:
                return config
            refusals.because(str(verdict))
    return None


def _example(case: KernelCase, rng: np.random.Generator) -> Layer | None:
    network = Network(f"one {case.kind}")
    return add_example(case.kind, network, network.add_input("x", case.dtype, (1, 4, 8, 8)), rng)


def draw_trial(
    draw: Draw, target: Target, case: KernelCase, config: BuilderConfig, refusals: Refusals
) -> KernelTrial | None:
    """Return a trial; None if the target or the kernel rejects it, with the reason recorded in `refusals`."""
    layer = draw_layer(draw, case.kind, case.dtype)
    if layer is None or not layer.outputs or math.prod(layer.outputs[0].shape) > _MOST_ELEMENTS:
        return None
    verdict = config.can_run_on(layer, target.device)
    if not verdict:
        refusals.because(str(verdict))
        return None
    network = layer.network
    group, specs = LayerGroup((layer,)), infer_specs(network)
    kernel = _kernel(target, case, group, specs)
    if kernel is None:
        refusals.because(f"{case} does not serve {layer!r}")
        return None
    rng = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    for _ in range(draw(st.integers(0, _MOST_FUSED))):
        longer = _fused(draw, kernel, group, rng, lambda more: bool(config.can_run_on(more, target.device)))
        if longer is None:
            break
        group = longer
    for tensor in group.outputs:
        network.mark_output(tensor)
    specs = infer_specs(network)
    arrangements = {
        tensor.name: _draw_arrangement(draw, len(tensor.shape))
        for tensor in (*group.inputs, *group.outputs)
        if is_activation(tensor, specs)
    }
    return KernelTrial(kernel, network, group, specs, arrangements, draw(st.integers(0, 1 << 16)))


def _kernel(target: Target, case: KernelCase, group: LayerGroup, specs: Mapping[str, TensorSpec]) -> Kernel | None:
    """The kernel of the case where it serves the group; for an inherited one, the first of the host's that does."""
    own = set(map(id, target.kernels))
    candidates = [case.kernel] if case.kernel is not None else kernels_for(target.device)
    found = next((kernel for kernel in candidates if serves(kernel, group, specs)), None)
    return None if found is None or (case.kernel is None and id(found) in own) else found


def _fused(
    draw: Draw, kernel: Kernel, group: LayerGroup, rng: np.random.Generator, fits: Callable[[Layer], bool]
) -> LayerGroup | None:
    """The group with one more layer; None where the kernel or the device does not take the one that was drawn."""
    network, value = group.main.network, group.outputs[0]
    mark = len(network)
    layer = draw_epilogue(draw, value, Examples(network, value, rng))
    if layer is not None and fits(layer) and kernel.fuses(group, layer):
        longer = LayerGroup((*group.layers, layer))
        if serves(kernel, longer, infer_specs(network)):
            return longer
    network.remove_layers(network.layers[mark:])
    return None


def _draw_arrangement(draw: Draw, rank: int) -> Arrangement:
    """Row-major, channels last, or spaced with the axes in any order."""
    way = draw(st.sampled_from(["row-major", "channels last", "spaced"]))
    if way == "spaced":
        return Arrangement(tuple(draw(st.permutations(range(rank)))), is_spaced=True)
    return Arrangement((0, 2, 3, 1)) if way == "channels last" and rank == 4 else Arrangement()
