"""The memory that the segments of a network need: pools against their limits, and what is live at each step.

Nothing is built: the layout is the one that a build would make, and `Segment.pools` are its sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

from dryfit.answers.asked import Model, asked
from dryfit.answers.defaults import with_defaults
from dryfit.answers.json_data import Count
from dryfit.answers.options import Options
from dryfit.attrs_classes import frozen
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.design import Design
from dryfit.errors import DryfitError

CALLER = "inputs and outputs"
"""Where the network's inputs and outputs lie: with the caller, in no pool."""


@frozen
class PoolUse:
    """What one segment needs of one memory pool of its device.

    Attributes:
        segment: index of the segment.
        device: device that runs the segment.
        pool: name of the pool.
        holds: contents of the pool: `activations`, `weights`, `cache` or `workspace`.
        needed_bytes: bytes that the segment needs.
        limit_bytes: limit that applies to each segment: the one that was set, or the platform's default; None for none.
    """

    segment: Count
    device: str
    pool: str
    holds: str
    needed_bytes: Count
    limit_bytes: Count | None


@frozen
class MemoryStep:
    """Layers that run as one.

    Attributes:
        device: device that runs the step.
        segment: index of the segment; None for steps outside of segments.
        layers: names of the layers.
    """

    device: str
    segment: Count | None
    layers: Sequence[str]


@frozen
class LiveTensors:
    """Bytes of the tensors of one pool that are live at each step.

    A tensor is live from the step that writes it to the last one that reads it. Alignment is not counted.

    Attributes:
        device: device that the memory belongs to; "" for the caller's.
        pool: name of the pool.
        live_bytes: bytes by step.
    """

    device: str
    pool: str
    live_bytes: Sequence[Count]

    @property
    def peak_bytes(self) -> int:
        """The largest number of bytes that are live at one step."""
        return max(self.live_bytes, default=0)


@frozen
class MemoryUse:
    """The memory that a network needs on its devices.

    Attributes:
        pools: needs of each segment, in execution order, for the pools of its device.
        steps: steps of the engine, in execution order; empty if the network cannot be built.
        live: live tensors of each pool at these steps.
    """

    pools: Sequence[PoolUse]
    steps: Sequence[MemoryStep]
    live: Sequence[LiveTensors]


def memory_use(model: Model, config: BuilderConfig | None = None, **options: Unpack[Options]) -> MemoryUse:
    """Return the memory that a model would need on its devices.

    Args:
        model: a path, an ONNX model, a network, or a PyTorch module with `example_inputs`.
        config: build settings; None to use the options.
        options: keyword arguments named like the options of `dryfit check`, with the same defaults.

    Raises:
        ConfigError: The options, the config and the model conflict.
        NetworkError: The network is invalid; the message lists all problems.
        OnnxImportError: The model is corrupt or has unsupported operators.
        UnknownNameError: A device, platform or option value does not exist.
    """
    return memory_of(asked(model, config, options, defaults=with_defaults, needs_shapes=False, shares=True).design)


def memory_of(design: Design) -> MemoryUse:
    """Return the memory of a network that was designed."""
    steps, live = _live(design)
    return MemoryUse(_pools(design), steps, live)


def _pools(design: Design) -> list[PoolUse]:
    found = []
    for index, run in enumerate(design.partition.runs):
        variant = design.variants[run.device]
        holds = {pool.name: pool.holds for pool in variant.target.memory_pools}
        for name, needed in design.pools(index).items():
            found.append(PoolUse(index, run.device, name, holds[name], needed, variant.pool_limits.get(name)))
    return found


def _live(design: Design) -> tuple[list[MemoryStep], list[LiveTensors]]:
    if not design.is_whole:
        return [], []
    try:
        groups, contents = design.cut.groups, design.cut.contents
    except DryfitError:  # a build refuses the network for it, and `dryfit check` says why
        return [], []
    steps = [
        MemoryStep(
            one.place.device,
            one.place.segment if one.place.segment >= 0 else None,
            [layer.name for layer in one.group.layers],
        )
        for one in groups
    ]
    changes: dict[tuple[str, str], dict[int, int]] = {("", CALLER): {}}
    lives = [(("", CALLER), one.size, one.life) for one in contents.on_border.values()]
    for (name, _), (pool, members) in contents.pools.items():
        lives += [((name.partition("/")[0], pool.name), one.size, one.life) for one in members]
    for key, size, (first, last) in lives:
        own = changes.setdefault(key, {})
        own[max(first, 0)] = own.get(max(first, 0), 0) + size
        own[last + 1] = own.get(last + 1, 0) - size
    live = [LiveTensors(*key, _summed(own, len(steps))) for key, own in changes.items() if own]
    return steps, live


def _summed(changes: Mapping[int, int], steps: int) -> list[int]:
    now, found = 0, []
    for step in range(steps):
        now += changes.get(step, 0)
        found.append(now)
    return found
