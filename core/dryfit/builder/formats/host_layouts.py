"""How the host keeps each tensor, so that the kernels find it as they are fast for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dryfit.builder.fusion.groups import FusedGroup
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.target.kernels import HostLayout

_IMAGE_RANKS = (4, 5)
"""Images, and volumes."""


def choose_host_layouts(network: Network, groups: Sequence[FusedGroup]) -> dict[str, HostLayout]:
    """Tensor name to layout, for every tensor that groups read or write.

    An image or a volume is kept with its channels last where its producer or a reader asks for that. Where only kernels
    without a preference touch it, it lies as its neighbours do. The engine's inputs and outputs are row-major.
    """
    border = {tensor.name for tensor in (*network.inputs, *network.outputs)}
    wishes: dict[str, HostLayout] = {}
    for fused in groups:
        for tensor in _tensors(fused):
            is_free = tensor.name not in border and len(tensor.shape) in _IMAGE_RANKS
            wish = fused.kernel.layout if is_free else HostLayout.LINEAR
            wishes[tensor.name] = _stronger(wishes.get(tensor.name, HostLayout.ANY), wish)
    for direction in (groups, groups[::-1]):
        _spread(direction, wishes, border)
    return {
        name: HostLayout.CHANNELS_LAST if wish is HostLayout.CHANNELS_LAST else HostLayout.LINEAR
        for name, wish in wishes.items()
    }


def _spread(groups: Iterable[FusedGroup], wishes: dict[str, HostLayout], border: set[str]) -> None:
    """Let kernels without a preference keep what is still open as they keep the rest.

    One network input or output in a group says nothing: it is row-major for the caller's sake.
    """
    for fused in groups:
        if fused.kernel.layout is not HostLayout.ANY:
            continue
        images = [
            tensor for tensor in _tensors(fused) if len(tensor.shape) in _IMAGE_RANKS and tensor.name not in border
        ]
        known = [wishes[tensor.name] for tensor in images if wishes[tensor.name] is not HostLayout.ANY]
        if known:
            wish = HostLayout.CHANNELS_LAST if HostLayout.CHANNELS_LAST in known else known[0]
            for tensor in images:
                wishes[tensor.name] = _stronger(wishes[tensor.name], wish)


def _tensors(fused: FusedGroup) -> list[Tensor]:
    """What a group reads and writes, without constants."""
    return [tensor for tensor in (*fused.group.inputs, *fused.group.outputs) if not tensor.is_constant]


def _stronger(first: HostLayout, second: HostLayout) -> HostLayout:
    """The wish that wins where two meet: channels last, then row-major, then none."""
    order = (HostLayout.CHANNELS_LAST, HostLayout.LINEAR, HostLayout.ANY)
    return order[min(order.index(first), order.index(second))]
