"""Fusion patterns: chains of layers that a device runs as one, as listed in its documentation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs

from dryfit.attrs_classes import frozen
from dryfit.errors import PluginError

if TYPE_CHECKING:
    from dryfit.network.layer import Layer

Kinds = tuple[str, ...]

QUANTIZING = ("quantize", "dequantize")
"""The kinds of layers that only change how numbers are kept."""
_OPTIONAL = "?"


def _any_chain(layers: Sequence[Layer]) -> bool:
    del layers
    return True


def _kinds(kinds: Sequence[str]) -> Kinds:
    return tuple(kinds)


@frozen
class Fusion:
    """A fusion pattern. A device that declares fusions runs no other chains of layers as one.

    Patterns must not contain quantize and dequantize layers: a chain of quantized layers is allowed if the same chain
    without them is allowed, and any layer can run together with those around it.

    Attributes:
        name: hyphenated name, such as `convolution-relu`; unique on the device. Shown in the build log.
        kinds: layer kinds in the order of the chain; a trailing `?` marks an optional kind. Each layer of a chain
            except the first reads the output of its predecessor, which no other layer reads.
        where: function of the layers, in order, that returns whether a chain of these kinds is fused, for conditions
            that the kinds cannot express.
        source: document and section.

    Raises:
        PluginError: The pattern has fewer than two kinds, all kinds but one are optional, or a kind is quantize or
            dequantize.

    Example:
        >>> fusion = Fusion("convolution-sum-relu", ["convolution", "elementwise?", "activation"])
        >>> fusion.chains
        (('convolution', 'elementwise', 'activation'), ('convolution', 'activation'))
    """

    name: str
    kinds: Kinds = attrs.field(converter=_kinds)
    where: Callable[[Sequence[Layer]], bool] = _any_chain
    source: str = ""

    def __attrs_post_init__(self) -> None:
        if any(len(chain) < 2 for chain in self.chains):
            raise PluginError(
                "A fusion must join at least two layers",
                where=f"fusion {self.name!r}",
                found=", ".join(self.kinds) or "no layer kinds",
                allowed="two or more layer kinds without `?`",
                remedy="Name the kinds of at least two layers that are not optional",
            )
        if any(kind.rstrip(_OPTIONAL) in QUANTIZING for kind in self.kinds):
            raise PluginError(
                "A fusion must not list quantize and dequantize layers",
                where=f"fusion {self.name!r}",
                found=", ".join(self.kinds),
                remedy=f"Leave out {' and '.join(QUANTIZING)}",
            )

    @property
    def chains(self) -> tuple[Kinds, ...]:
        """Kinds of every chain that matches the pattern, longest first."""
        choices = [(kind[:-1], None) if kind.endswith(_OPTIONAL) else (kind,) for kind in self.kinds]
        chains = [tuple(kind for kind in one if kind is not None) for one in itertools.product(*choices)]
        return tuple(sorted(dict.fromkeys(chains), key=len, reverse=True))

    def allows(self, layers: Sequence[Layer]) -> bool:
        """Return whether these layers, in order, are a complete chain of the pattern."""
        return tuple(layer.kind for layer in layers) in self.chains and self.where(layers)

    def may_begin_with(self, layers: Sequence[Layer]) -> bool:
        """Return whether a chain of the pattern begins with, or equals, layers of these kinds."""
        kinds = tuple(layer.kind for layer in layers)
        return any(chain[: len(kinds)] == kinds for chain in self.chains)


def allowing(
    fusions: Sequence[Fusion], layers: Sequence[Layer], failed: Callable[[Fusion, BaseException], None] | None = None
) -> Fusion | None:
    """Return the first fusion that runs these layers as one; None if there is none.

    Args:
        fusions: fusions of the device.
        layers: the layers, in order.
        failed: called with a fusion whose own code raises, which then fuses no layers. None: the exception propagates.
    """
    for fusion in fusions:
        try:
            if fusion.allows(layers):
                return fusion
        except (Exception, SystemExit) as error:  # the pattern may be a stranger's
            if failed is None:
                raise
            failed(fusion, error)
    return None


def chain(layers: Sequence[Layer]) -> list[Layer]:
    """Return the layers of a group that fusions apply to: all that do more than quantize; otherwise the first."""
    return [layer for layer in layers if layer.kind not in QUANTIZING] or list(layers[:1])
