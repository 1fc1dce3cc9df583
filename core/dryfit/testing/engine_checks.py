"""Whether engines for a target are right: small random networks, built, saved, loaded and run.

The oracle is `dryfit.reference`, which runs a network layer by layer in numpy and shares no code with kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from dryfit.builder.builder import Builder
from dryfit.builder.builder_config import BuilderConfig
from dryfit.builder.config_enumerations import BuilderFlag
from dryfit.engine.engine import Engine
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.plugins import registry
from dryfit.reference.executor import run_reference
from dryfit.target.target import Target
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

FLAGS = {DataType.FLOAT: None, DataType.HALF: BuilderFlag.FP16}
"""Precisions whose engines are compared with the reference, and the flag that asks for each."""

_LONGEST, _ATTEMPTS, _MOST_ELEMENTS = 6, 40, 1 << 14


@attrs.frozen(eq=False)
class Trial:
    """A network for a target, the config to build it with, and what to feed it.

    Attributes:
        network: of layers that the target says it supports.
        config: the target by default, the host where it refuses.
        feeds: input name to array.
        kinds: of the layers that the target supports, in order.
    """

    network: Network
    config: BuilderConfig
    feeds: dict[str, Array]
    kinds: Sequence[str]


def make_trial(target: Target, precision: DataType, seed: int) -> Trial:
    """A random network; the same for the same target, precision and seed.

    Each layer takes a tensor that a layer before it gave, and is kept where the target supports it. Tensors that
    nothing takes are outputs.
    """
    rng = np.random.default_rng(seed)
    config = _config(target, precision)
    network = Network(f"trial {seed}")
    shape = (1, int(rng.choice([3, 4, 16])), int(rng.choice([8, 13])), 8)
    tensors: list[Tensor] = [network.add_input("x", DataType.FLOAT, shape)]
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
    feeds = {"x": rng.standard_normal(shape).astype(np.float32)}
    return Trial(network, config, feeds, kinds)


def supported_examples(target: Target, precision: DataType) -> list[str]:
    """The kinds whose examples the target supports; where there are none, no network can be made for it."""
    config, found = _config(target, precision), []
    for kind in KINDS:
        network = Network(kind)
        x = network.add_input("x", DataType.FLOAT, (1, 4, 8, 8))
        layer = add_example(kind, network, x, np.random.default_rng(0)) if kind in EXAMPLES else None
        if layer is not None and config.can_run_on(layer, target.device):
            found.append(kind)
    return found


def _config(target: Target, precision: DataType) -> BuilderConfig:
    config = BuilderConfig()
    config.default_device_type = target.device
    if not target.segment_rules.is_host:
        config.allow_fallback(registry.host().device)
    flag = FLAGS[precision]
    if flag is not None:
        config.set_flag(flag)
    return config


def engine_problems(target: Target, precision: DataType, seed: int, tolerance: float, folder: Path) -> list[str]:
    """Build a random network twice, save, load and run it with 1 and 2 threads, and compare with the reference.

    Args:
        target: installed.
        precision: one of `FLAGS`.
        seed: which network.
        tolerance: the largest error of an output, as a fraction of its largest magnitude.
        folder: where the engine file goes.
    """
    trial = make_trial(target, precision, seed)
    where = f"network {seed} ({', '.join(trial.kinds)}), {precision.name}"
    if not trial.kinds:
        return []
    try:
        return [f"{where}: {problem}" for problem in _trial_problems(target, precision, seed, trial, tolerance, folder)]
    except Exception as error:  # noqa: BLE001  a target's kernels may raise anything
        return [f"{where}: {type(error).__name__}: {error}"]


def _trial_problems(
    target: Target, precision: DataType, seed: int, trial: Trial, tolerance: float, folder: Path
) -> list[str]:
    engine = Builder().build_engine(trial.network, trial.config)
    found = []
    if not any(layer.device == target.device for layer in engine.plan.layers):
        found.append(f"no layer is on {target.device}, though it supports them all: they run on the fallback device")
    path = folder / f"trial-{precision.name}-{seed}.engine"
    engine.save(path)
    loaded = Engine.load(path)
    again = make_trial(target, precision, seed)
    if path.read_bytes() != Builder().build_serialized_network(again.network, again.config):
        found.append("building it twice gives two different engine files")
    if loaded.serialize() != path.read_bytes():
        found.append("the loaded engine is saved as another file")
    results = [one.create_execution_context(n).run(trial.feeds) for one, n in ((engine, 1), (loaded, 1), (loaded, 2))]
    names = ("as built, 1 thread", "loaded, 1 thread", "loaded, 2 threads")
    for name, result in zip(names[1:], results[1:], strict=True):
        differing = [key for key in results[0] if results[0][key].tobytes() != result[key].tobytes()]
        if differing:
            found.append(f"{', '.join(differing)}: the bits differ between {names[0]!r} and {name!r}")
    expected = run_reference(trial.network, trial.feeds)
    for key, value in expected.items():
        found += number_problems(key, results[0][key], value, tolerance)
    return found


def number_problems(name: str, actual: Array, expected: Array, tolerance: float) -> list[str]:
    """Whether an output is what the reference gives: shape, type, and an error within the tolerance."""
    if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
        return [f"{name} is {actual.dtype} {actual.shape}, not {expected.dtype} {expected.shape}"]
    largest = float(np.max(np.abs(expected.astype(np.float64)), initial=0.0))
    error = float(np.max(np.abs(actual.astype(np.float64) - expected.astype(np.float64)), initial=0.0))
    if error <= tolerance * largest:
        return []
    return [f"{name} differs by {error:.3g} from the reference, whose largest magnitude is {largest:.3g}"]
