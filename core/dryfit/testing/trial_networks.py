"""Small random networks of layers that a target supports, and the builder configs for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.network.data_types import DataType
from dryfit.network.layer import Layer
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.plugins import registry
from dryfit.target.target import Target
from dryfit.target.verdict import Verdict
from dryfit.testing.example_layers import EXAMPLES, add_example

Array = np.ndarray[Any, Any]

KINDS = (
    "activation",
    "concatenation",
    "convolution",
    "deconvolution",
    "elementwise",
    "fully_connected",
    "lrn",
    "matrix_multiply",
    "normalization",
    "parametric_relu",
    "pooling",
    "reduce",
    "resize",
    "scale",
    "shuffle",
    "slice",
    "softmax",
    "unary",
)
"""Kinds whose examples map numbers of ordinary size to such numbers."""

PRECISION_FLAGS = {DataType.HALF: BuilderFlag.FP16, DataType.BF16: BuilderFlag.BF16, DataType.INT8: BuilderFlag.INT8}
"""Computation type to the flag that asks for it; FLOAT needs none."""

TRIAL_PRECISIONS = (DataType.FLOAT, DataType.HALF)
"""Those whose engines are compared with the reference."""

_LONGEST, _ATTEMPTS, _MOST_ELEMENTS = 6, 40, 1 << 14


@frozen(eq=False)
class Trial:
    """A network for a target, its builder config and its inputs.

    Attributes:
        network: network of supported layers, except those that a test adds.
        config: builder config with the target as the default device, and the host as fallback.
        feeds: input name to array.
        kinds: kinds of the supported layers, in order.
    """

    network: Network
    config: BuilderConfig
    feeds: dict[str, Array]
    kinds: Sequence[str]


def trial_problems(
    target: Target,
    precision: DataType,
    seed: int,
    look: Callable[[Trial], Iterable[str]],
    *,
    fallback: bool = True,
    said: str = "",
) -> list[str]:
    """Return what a check finds wrong with a random network, each with the network; empty without layers.

    Args:
        target: see `make_trial`.
        precision: see `make_trial`.
        seed: see `make_trial`.
        look: the check. Its exceptions are findings too, because a target may raise anything.
        fallback: see `make_trial`.
        said: additional text about the network.
    """
    trial = make_trial(target, precision, seed, fallback=fallback)
    return problems_of_trial(trial, f"network {seed}", f"{precision.text}{said}", look)


def problems_of_trial(trial: Trial, name: str, said: str, look: Callable[[Trial], Iterable[str]]) -> list[str]:
    """Return what a check finds wrong with a network, each with the network: see `trial_problems`."""
    if not trial.kinds:
        return []
    where = f"{name} ({', '.join(trial.kinds)}), {said}"
    try:
        return [f"{where}: {problem}" for problem in look(trial)]
    except Exception as error:  # noqa: BLE001  kernels, compilers, exporters of a stranger
        return [f"{where}: {type(error).__name__}: {error}"]


def make_trial(target: Target, precision: DataType, seed: int, *, fallback: bool = True) -> Trial:
    """Return a random network; the same for the same arguments.

    Each layer reads the output of an earlier layer, and is kept if the target supports it. Unread tensors are outputs.
    Without fallback, nothing copies between the caller's and the device's memory, so inputs and outputs have the
    device's own type and formats.

    Args:
        target: an installed target.
        precision: computation type.
        seed: which network.
        fallback: whether the host runs the layers that the target does not support.
    """
    rng = np.random.default_rng(seed)
    config = config_for(target, precision, fallback=fallback)
    network = Network(f"trial {seed}")
    shape = (1, int(rng.choice([3, 4, 16])), int(rng.choice([8, 13])), 8)
    tensors: list[Tensor] = [network.add_input("x", DataType.FLOAT if fallback else precision, shape)]
    kinds: list[str] = []
    for _ in range(_ATTEMPTS):
        if len(kinds) == _LONGEST:
            break
        kind, mark = KINDS[int(rng.integers(len(KINDS)))], len(network)
        layer = add_example(kind, network, tensors[-int(rng.integers(1, min(2, len(tensors)) + 1))], rng)
        fits = layer is not None and int(np.prod(layer.get_output(0).shape)) <= _MOST_ELEMENTS
        if layer is not None and fits and config.can_run_on(layer, target.device):
            tensors.append(layer.get_output(0))
            kinds.append(kind)
        else:
            network.remove_layers(network.layers[mark:])
    for tensor in tensors[1:]:
        if not tensor.consumers:
            network.mark_output(tensor)
    if not fallback:
        _keep_in_device_formats(network, target)
    feeds = {"x": rng.standard_normal(shape).astype(tensors[0].dtype.numpy)}
    return Trial(network, config, feeds, kinds)


def _keep_in_device_formats(network: Network, target: Target) -> None:
    """Let inputs and outputs lie as the device reads and writes them, where it has formats for them."""
    for tensors, table in ((network.inputs, target.input_formats), (network.outputs, target.output_formats)):
        for tensor in tensors:
            names = [one.name for one in table.get(tensor.dtype, ()) if one.allows(tensor.shape, tensor.dtype)]
            tensor.allowed_formats = frozenset(names) or None


def mixed_trial(target: Target, precision: DataType, *, fallback: bool) -> tuple[Trial, Layer, Verdict] | None:
    """Return a network with a supported layer before an unsupported one, that layer and its verdict; or None."""
    config = config_for(target, precision, fallback=fallback)
    for first in KINDS:
        for second in KINDS:
            network, rng = Network(f"{first} and {second}"), np.random.default_rng(0)
            x = network.add_input("x", DataType.FLOAT, (1, 4, 8, 8))
            supported = add_example(first, network, x, rng)
            if supported is None or not config.can_run_on(supported, target.device):
                break
            refused = add_example(second, network, supported.get_output(0), rng)
            verdict = None if refused is None else config.can_run_on(refused, target.device)
            if refused is not None and verdict is not None and not verdict:
                network.mark_output(refused.get_output(0))
                feeds = {"x": rng.standard_normal(x.shape).astype(np.float32)}
                return Trial(network, config, feeds, [first]), refused, verdict
    return None


def supported_examples(target: Target, precision: DataType) -> list[str]:
    """Return the kinds whose examples the target supports; if empty, no network can be created for it."""
    config, found = config_for(target, precision), []
    for kind in KINDS:
        network = Network(kind)
        x = network.add_input("x", DataType.FLOAT, (1, 4, 8, 8))
        layer = add_example(kind, network, x, np.random.default_rng(0)) if kind in EXAMPLES else None
        if layer is not None and config.can_run_on(layer, target.device):
            found.append(kind)
    return found


def config_for(target: Target, precision: DataType, *, fallback: bool = False) -> BuilderConfig:
    """Return a builder config with the target as the default device and the flag for the precision.

    Args:
        target: an installed target.
        precision: computation type.
        fallback: whether the host runs the layers that the target does not support.
    """
    config = BuilderConfig()
    config.default_device_type = target.device
    if fallback and not target.segment_rules.is_host:
        config.allow_fallback(registry.host().device)
    if precision in PRECISION_FLAGS:
        config.set_flag(PRECISION_FLAGS[precision])
    return config
