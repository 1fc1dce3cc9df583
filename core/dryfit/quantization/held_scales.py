"""Which scales count as equal while a network is rewritten: those with equal values, or those that had them before.

A refit repeats the rewrites of a build with other scales. Two that were equal by chance may now differ, and two that
differed may be equal: so that neither makes another engine, they are compared as they were when it was built. Where a
rewrite relied on equal scales, the refit sees to it that they still are.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType

import numpy as np

from dryfit.network.layers.constant import Constant
from dryfit.network.network import Network

_held: ContextVar[Mapping[str, str]] = ContextVar("scales that are held", default=MappingProxyType({}))


def equal_scales(network: Network) -> list[tuple[str, ...]]:
    """Groups of constant scales that have equal values, by the names of their tensors.

    Args:
        network: the user's. A scale that no other one is equal to is in no group.
    """
    groups: dict[bytes, list[str]] = defaultdict(list)
    for name, constant in _scales(network).items():
        groups[np.ascontiguousarray(constant.weights, np.float64).tobytes()].append(name)
    return [tuple(names) for names in groups.values() if len(names) > 1]


@contextlib.contextmanager
def holding(network: Network, groups: Sequence[Sequence[str]]) -> Iterator[None]:
    """Inside, two constant scales of a network are equal if one of these groups has both, whatever their values are.

    Args:
        network: the user's, of which the scales are.
        groups: what `equal_scales` gave when the engine was built.
    """
    first = {name: group[0] for group in groups for name in group}
    token = _held.set({name: first.get(name, name) for name in _scales(network)})
    try:
        yield
    finally:
        _held.reset(token)


def held_identity(tensor_name: str) -> str | None:
    """What tells a scale from others where scales are held; None where values do, as in a build."""
    return _held.get().get(tensor_name)


def _scales(network: Network) -> dict[str, Constant]:
    """The constants that are scales of quantize and dequantize layers, by the names of their tensors."""
    found = {}
    for layer in network.layers:
        scale = layer.get_input(1) if layer.kind in ("quantize", "dequantize") else None
        if scale is not None and isinstance(scale.producer, Constant):
            found[scale.name] = scale.producer
    return found
