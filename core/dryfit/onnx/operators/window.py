"""The attributes of a sliding window, which convolutions and poolings share."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dryfit.network.layers.spatial_window import PaddingMode
from dryfit.onnx.node import Node
from dryfit.onnx.problems import ErrorCode


@attrs.frozen
class Window:
    """Kernel, strides, dilations and paddings of a node, one value a spatial axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    padding_mode: PaddingMode


def window_of(node: Node, kernel: Sequence[int]) -> Window:
    """The window of a node whose kernel has these extents.

    Raises:
        NodeRefusedError: an attribute has a wrong number of values, or `auto_pad` a value that does not exist.
    """
    axes = len(kernel)
    auto_pad = node.choice("auto_pad", "NOTSET", ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"))
    pads = _list(node, "pads", 2 * axes, 0)
    ceil = bool(node.get_int("ceil_mode", 0))
    mode = PaddingMode.EXPLICIT_ROUND_UP if ceil else PaddingMode.EXPLICIT_ROUND_DOWN
    if auto_pad.startswith("SAME"):
        mode = PaddingMode[auto_pad]
    if auto_pad != "NOTSET":
        pads = (0,) * (2 * axes)
    return Window(
        tuple(kernel),
        _list(node, "strides", axes, 1),
        _list(node, "dilations", axes, 1),
        pads[:axes],
        pads[axes:],
        mode,
    )


def _list(node: Node, name: str, count: int, default: int) -> tuple[int, ...]:
    values = node.get_ints(name)
    if not values:
        return (default,) * count
    if len(values) != count:
        raise node.refusal(
            f"Attribute {name!r} has a wrong number of values",
            code=ErrorCode.INVALID_NODE,
            found=values,
            allowed=f"{count} values",
        )
    return values
