"""One quantize or dequantize layer of the user's network with where it ended up, as a record and in words."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from dryfit.network.layers.quantization import Dequantize, Quantize
from dryfit.network.tensor import Tensor
from dryfit.quantization.rewrites import Rewrite, RewriteAction
from dryfit.short_text import short_name, with_short_names

_LISTED = 3
"""So many names are in the text; the others are in the JSON."""


class QuantizationOutcome(enum.StrEnum):
    """Where a quantize or dequantize layer ended up; the values are the words of reports."""

    FOLDED = "folded"
    """It was applied to a constant while building."""
    MERGED = "merged"
    """Another one that does the same stands for it."""
    CANCELLED = "cancelled"
    """It and one of the other direction change nothing together."""
    FUSED = "fused"
    """It is part of the steps that it belongs to, and costs nothing of its own."""
    PARTLY = "partly fused"
    """It is part of some steps, and runs for other readers as a step of its own."""
    ALONE = "alone"
    """It is a step of its own."""
    CLAIMED = "claimed"
    """A plugin took it, and what stands beside it, as one layer."""
    OPERATOR = "quantized operator"
    """A quantize method computes it, and what stands beside it, as one layer on codes."""
    REMOVED = "removed"
    """Nothing needs its result."""
    UNPLACED = "unplaced"
    """The network has layers that can run nowhere, so that no steps are made."""


@attrs.frozen
class TracedQuantization:
    """One quantize or dequantize layer of the user's network.

    Attributes:
        layer: the layer, in the user's network.
        outcome: where it ended up.
        steps: names of the main layers of the steps that it is part of, in execution order.
        part: which part of these it is: `input`, `output`, `inside`; "" for none.
        reason: why, in one sentence without its full stop.
        rewrites: what the passes did to it, in order.
    """

    JSON_NAMES: ClassVar[Mapping[str, str]] = {
        name: name
        for name in (
            *("name", "kind", "onnx_nodes", "tensor", "type", "scale", "granularity"),
            *("outcome", "steps", "part", "reason", "rewrites"),
        )
    }

    layer: Quantize | Dequantize
    outcome: QuantizationOutcome
    steps: tuple[str, ...] = ()
    part: str = ""
    reason: str = ""
    rewrites: tuple[Rewrite, ...] = ()

    @property
    def name(self) -> str:
        """The quantize or dequantize layer."""
        return self.layer.name

    @property
    def kind(self) -> str:
        """`quantize` or `dequantize`."""
        return self.layer.kind

    @property
    def onnx_nodes(self) -> Sequence[str]:
        """Names of the nodes that it came from."""
        return list(self.layer.onnx_nodes)

    @property
    def tensor(self) -> str | None:
        """Its tensor in real numbers."""
        real = self._ends[0]
        return None if real is None else real.name

    @property
    def type(self) -> str | None:
        """The type on its other side."""
        narrow = self._ends[1]
        return None if narrow is None else narrow.dtype.name

    @property
    def scale(self) -> float | None:
        """Null where there are several, and where it is computed."""
        source = self.layer.inputs[1]
        value = None if source is None else source.spec.value
        return float(value.reshape(-1)[0]) if value is not None and value.size == 1 else None

    @property
    def granularity(self) -> str:
        """What shares a scale: `per tensor`, `64 along axis 0`, `blocks of 1x32`."""
        scale = self.layer.inputs[1]
        size = 1 if scale is None else abs(math.prod(scale.shape))
        if self.layer.block_shape:
            return f"blocks of {'x'.join(map(str, self.layer.block_shape))}"
        if scale is not None and len(scale.shape) > 1 and size > 1:
            return f"{'x'.join(map(str, scale.shape))} blocks"
        return f"{size} along axis {self.layer.axis}" if size > 1 else "per tensor"

    @property
    def _ends(self) -> tuple[Tensor | None, Tensor | None]:
        """The tensors on both sides: in real numbers, and in codes."""
        source, result = self.layer.inputs[0], self.layer.outputs[0]
        return (source, result) if isinstance(self.layer, Quantize) else (result, source)

    @property
    def path_text(self) -> str:
        """Where it went in words: what it moved over, and what it is part of, or why it is alone."""
        moved = [name for step in self.rewrites if step.action is RewriteAction.MOVED for name in step.over]
        where = [f"moved over {_names(moved)}"] if moved else []
        if self.outcome in _JOINT:
            where.append(f"{self.outcome} {_JOINT[self.outcome]} {_names(self.steps)}")
        elif self.steps:
            where.append(f"{self.part} of {_names(self.steps)}")
        if self.outcome is not QuantizationOutcome.FUSED:
            where.append(with_short_names(f"{self.reason[:1].lower()}{self.reason[1:]}"))
        return "; ".join(where)


_JOINT = {
    QuantizationOutcome.FOLDED: "into",
    QuantizationOutcome.MERGED: "into",
    QuantizationOutcome.CANCELLED: "with",
    QuantizationOutcome.CLAIMED: "by",
}
"""What stands between an outcome and the names after it."""


def _names(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    rest = f" and {len(unique) - _LISTED} more" if len(unique) > _LISTED else ""
    return ", ".join(map(short_name, unique[:_LISTED])) + rest
