"""What a network takes and gives, so that a pass from outside can be held to leaving it as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dryfit.errors import NetworkError
from dryfit.network.network import Network
from dryfit.network.tensor import TensorSpec

Border = Mapping[tuple[str, str], TensorSpec]
"""("input" or "output", name) to spec, in the network's order."""


def border_of(network: Network) -> Border:
    """The inputs and outputs of a network, as they are now."""
    sides = (("input", network.inputs), ("output", network.outputs))
    return {(side, tensor.name): tensor.spec for side, tensors in sides for tensor in tensors}


def require_same_border(before: Border, after: Border) -> None:
    """Refuse a change of inputs and outputs. An extent may get known that was dynamic.

    Raises:
        NetworkError: says what was and what is.
    """
    changed = [key for key in {**before, **after} if not _fits(before.get(key), after.get(key))]
    if changed or list(before) != list(after):
        raise NetworkError(
            "A pass keeps the inputs and outputs of the network",
            found=_described(after, changed or after),
            allowed=_described(before, changed or before),
        )


def _fits(before: TensorSpec | None, after: TensorSpec | None) -> bool:
    if before is None or after is None or before.dtype is not after.dtype or before.rank != after.rank:
        return False
    return all(extent in (-1, found) for extent, found in zip(before.shape, after.shape, strict=True))


def _described(border: Border, keys: Iterable[tuple[str, str]]) -> str:
    tensors = [(*key, border[key]) for key in keys if key in border]
    return ", ".join(f"{side} {name!r} {spec.dtype.name} {spec.shape}" for side, name, spec in tensors) or "nothing"
